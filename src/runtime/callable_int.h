/* callable_int.h -- callables from the inside: callable.c finds and compiles them, call.c runs
 * them. */
#ifndef LEAT_CALLABLE_INT_H
#define LEAT_CALLABLE_INT_H

#include "runtime/callable.h"

struct leat_callables {
    atomic_int refs;
    leat_graph *library; /* functions alone */
    leat_device **devices;
    leat_plan_options options; /* for the plans of callables */
    atomic_int under_way;      /* calls that have not ended */
    pthread_mutex_t lock;      /* guards what follows; no other lock is taken under it */
    leat_map by_node;          /* the address of a node's leat_func, and a device -> callable */
    leat_map by_text;   /* device, whether the gradient, function and attributes -> callable */
    leat_callable *all; /* linked */
};

/* A function's body compiled, for arguments that are handles of resources on these devices. */
typedef struct body {
    char **arg_devices; /* for each argument: NULL if it is no handle, or of callable->device */
    leat_plan *plan;
    struct body *next;
} body;

struct leat_callable {
    leat_callables *set; /* not counted */
    leat_arena arena;
    leat_attr f; /* the function with its attributes; of kind LEAT_ARG_FUNC */
    bool gradient;
    leat_device *device; /* one of the set's */
    leat_callable *next;
    pthread_mutex_t lock; /* guards what follows, and is held while a body is compiled */
    bool ready;           /* what follows was read; it does not change after that */
    leat_status bad;      /* why the signature could not be read */
    int n_args, n_results;
    leat_dtype *arg_types, *result_types;
    body *bodies; /* linked; those that were made never go */
};

/* The plan for these arguments, compiled if it is new. */
leat_status leat_callable_plan(leat_callable *c, leat_tensor *const *args,
                               leat_plan **out) LEAT_MUST_CHECK;

#endif
