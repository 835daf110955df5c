/* callable_int.h -- callables from the inside: callable.c finds them, callable_body.c compiles
 * them, call.c runs them. */
#ifndef LEAT_CALLABLE_INT_H
#define LEAT_CALLABLE_INT_H

#include "graph/function.h"
#include "runtime/callable.h"
#include "runtime/plan_cache.h"

struct leat_callables {
    atomic_int refs;
    /* A graph without nodes, for functions. Functions of the same name are equal in all plans. */
    leat_graph *library;
    leat_callables *origin; /* The set whose library this one uses; a reference. NULL: none. */
    leat_device **devices;
    leat_plan_options options; /* For the plans of callables. */
    atomic_int under_way;      /* Calls that have not ended. */
    atomic_bool seeded;        /* Some function of the library has an op with a seed. */
    /* Guards what follows. Also held while functions are added to the library, so it is taken
     * before the library's lock. */
    pthread_mutex_t lock;
    leat_map by_node;   /* Addresses of a node's leat_func and of a device's name -> callable. */
    leat_map by_text;   /* The text of key_of in callable.c -> callable. */
    leat_callable *all; /* Linked by next. */
    int n_looked_at;    /* Functions of the library that `seeded` is about. */
};

struct leat_callable {
    leat_callables *set; /* Borrowed. */
    leat_arena arena;
    leat_attr f;        /* The function and its attributes; of kind LEAT_ARG_FUNC. */
    bool gradient;      /* The callable computes the gradient of f. */
    const char *device; /* The full name. */
    uint64_t hash;      /* Of the callable's key in by_text. */
    leat_callable *next;
    /* The compiled bodies, by the devices of the resources whose handles are arguments. */
    leat_plan_cache plans;
    _Atomic(leat_plan *) here; /* the one for arguments that are no handles, or NULL; borrowed */
    pthread_mutex_t lock;      /* Guards what follows until ready is true. */
    bool ready;      /* The signature was read, well or not; it does not change any more. */
    leat_status bad; /* Why the signature could not be read. */
    /* The signature. */
    int n_args, n_results;
    leat_dtype *arg_types, *result_types;
};

/* callable_body.c: *out is the plan for these arguments, borrowed from the callable. A new plan is
 * compiled, which may wait for other tasks until the step is cancelled or its deadline has passed.
 * step may be NULL. */
leat_status leat_callable_plan(leat_callable *c, leat_tensor *const *args, leat_step *step,
                               leat_plan **out) LEAT_MUST_CHECK;
/* callable_body.c: gives the function's nodes; free with leat_body_free. Nodes that name no device
 * get the callable's. */
leat_status leat_callable_instantiate(leat_callable *c, leat_body *out) LEAT_MUST_CHECK;

#endif
