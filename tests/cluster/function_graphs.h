/* function_graphs.h -- for tests of functions that are called over several tasks: graphs with calls
 * on other tasks and variables there. */
#ifndef LEAT_TESTS_CLUSTER_FUNCTION_GRAPHS_H
#define LEAT_TESTS_CLUSTER_FUNCTION_GRAPHS_H

#include "cluster/pair.h"
#include "runtime/callable_ops.h"

/* Lists end with one that has no name. */
typedef struct function {
    const char *name;
    leat_function_fn fn; /* of one number, gives one */
} function;

/* Calls f on the device that `to` names. */
static inline leat_out remote(leat_graph *g, const char *to, const char *f, leat_out x)
{
    return leat_op(g, "RemoteCall", leat_in(leat_string_const(g, to)), leat_ins(&x, 1),
                   leat_attr_types("Tout", (leat_dtype[]){LEAT_FLOAT}, 1), leat_attr_func("f", f),
                   leat_name("remote"));
}

/* A variable on one task. */
typedef struct counter {
    leat_out handle, start, value; /* start sets it to 0 */
} counter;

static inline counter counter_new(leat_graph *g, const char *device)
{
    counter c;
    leat_with_device(g, device)
    {
        c.handle = leat_op(g, "VarHandleOp", leat_attr_type("dtype", LEAT_FLOAT),
                           leat_attr_shape("shape", leat_shape()));
        c.start = leat_op(g, "AssignVariableOp", leat_in(c.handle), leat_in(number(g, 0)));
        c.value =
            leat_op(g, "ReadVariableOp", leat_in(c.handle), leat_attr_type("dtype", LEAT_FLOAT));
    }
    return c;
}

/* f(x, handle) = x; adds 1 to the variable. The sum is computed on the worker. */
static inline void counts_over_tasks(leat_graph *g, void *arg, const leat_out *in, leat_out *out)
{
    leat_out add = leat_op(g, "AssignAddVariableOp", leat_in(in[1]), leat_in(number(g, 1)));
    leat_out read = leat_op(g, "ReadVariableOp", leat_in(in[1]),
                            leat_attr_type("dtype", LEAT_FLOAT), leat_after(add));
    leat_with_device(g, "/job:worker/task:0") out[0] =
        leat_add(leat_mul(read, number(g, 0)), in[0]);
}

#endif
