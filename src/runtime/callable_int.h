/* callable_int.h -- callables from the inside: callable.c finds and compiles them, call.c runs
 * them. */
#ifndef LEAT_CALLABLE_INT_H
#define LEAT_CALLABLE_INT_H

#include "graph/function.h"
#include "runtime/callable.h"
#include "runtime/plan_cache.h"

struct leat_callables {
    atomic_int refs;
    /* A graph without nodes, only functions; those of one name are the same in all plans. */
    leat_graph *library;
    leat_device **devices;
    leat_plan_options options; /* for the plans of callables */
    atomic_int under_way;      /* calls that have not ended */
    /* Guards what follows, and is held while functions are added to the library, whose lock comes
     * after it. */
    pthread_mutex_t lock;
    leat_map by_node;   /* address of a node's leat_func, device -> callable */
    leat_map by_text;   /* device, gradient or not, function, attributes -> callable */
    leat_callable *all; /* linked */
};

struct leat_callable {
    leat_callables *set; /* without a reference */
    leat_arena arena;
    leat_attr f; /* the function with its attributes; of kind LEAT_ARG_FUNC */
    bool gradient;
    const char *device; /* full name */
    uint64_t hash;      /* of function, attributes, whether the gradient, and device */
    leat_callable *next;
    /* The body compiled, by the devices of the resources whose handles are passed. */
    leat_plan_cache plans;
    pthread_mutex_t lock; /* guards what follows */
    bool ready;           /* the signature, which follows, was read, and does not change any more */
    leat_status bad;      /* why the signature could not be read */
    int n_args, n_results;
    leat_dtype *arg_types, *result_types;
};

/* callable_body.c: the plan for these arguments, compiled if it is new; that may wait for other
 * tasks, until the step (NULL: none) is cancelled or its deadline has passed. */
leat_status leat_callable_plan(leat_callable *c, leat_tensor *const *args, leat_step *step,
                               leat_plan **out) LEAT_MUST_CHECK;
/* Gives the function's nodes; those that name no device are to run on the callable's. */
leat_status leat_callable_instantiate(leat_callable *c, leat_body *out) LEAT_MUST_CHECK;

#endif
