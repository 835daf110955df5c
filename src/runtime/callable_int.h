/* callable_int.h -- callables from the inside: callable.c finds and compiles them, call.c runs
 * them. */
#ifndef LEAT_CALLABLE_INT_H
#define LEAT_CALLABLE_INT_H

#include "runtime/callable.h"

struct leat_callables {
    atomic_int refs;
    leat_graph *library; /* a graph without nodes, only functions */
    leat_device **devices;
    leat_plan_options options; /* for the plans of callables */
    atomic_int under_way;      /* calls that have not ended */
    pthread_mutex_t lock;      /* guards what follows; no other lock is taken under it */
    leat_map by_node;          /* address of a node's leat_func, device -> callable */
    leat_map by_text;          /* device, gradient or not, function, attributes -> callable */
    leat_callable *all;        /* linked */
};

/* A function's body, compiled for arguments some of which are handles of resources. */
typedef struct body {
    /* For each argument that is a handle the device of its resource; NULL: no handle, or a resource
     * on callable->device. */
    char **arg_devices;
    leat_plan *plan;
    struct body *next;
} body;

struct leat_callable {
    leat_callables *set; /* without a reference */
    leat_arena arena;
    leat_attr f; /* the function with its attributes; of kind LEAT_ARG_FUNC */
    bool gradient;
    leat_device *device; /* one of the set's */
    leat_callable *next;
    pthread_mutex_t lock; /* guards what follows, and is held while a body is compiled */
    bool ready; /* the signature (bad to result_types) was read, and does not change any more */
    leat_status bad; /* why the signature could not be read */
    int n_args, n_results;
    leat_dtype *arg_types, *result_types;
    body *bodies; /* linked; freed with the callable */
};

/* The plan for these arguments, compiled if it is new. */
leat_status leat_callable_plan(leat_callable *c, leat_tensor *const *args,
                               leat_plan **out) LEAT_MUST_CHECK;

#endif
