/* function.h -- functions: graphs with a name, arguments and results, that can be called any number
 * of times and have gradients. They are stored in the graph (GraphDef's library).
 *
 *     static void twice(leat_graph *body, void *arg, const leat_out *in, leat_out *out)
 *     {
 *         out[0] = leat_add(in[0], in[0]);
 *     }
 *     leat_function_define(g, "Twice", twice, NULL, 1, LEAT_FLOAT);
 *     leat_out y = leat_op(g, "Twice", leat_in(x));
 *
 * After leat_function_define, the name can be used as an op. PartitionedCall and
 * StatefulPartitionedCall call it by their attribute f (leat_attr_func).
 */
#ifndef LEAT_FUNCTION_H
#define LEAT_FUNCTION_H

#include <leat/graph.h>

/* Builds the body, in a graph of its own: what it uses comes in as arguments. */
typedef void (*leat_function_fn)(leat_graph *body, void *arg, const leat_out *in, leat_out *out);

/* Adds a function with n_out results; the dtypes of its arguments follow. Nodes of the body that
 * have side effects run in every call. A function that is defined in a body belongs to the graph. */
#define leat_function_define(g, name, fn, arg, n_out, ...)                                         \
    leat_function_define_at(LEAT_AT, g, name, fn, arg, n_out, LEAT_ARRAY(leat_dtype, __VA_ARGS__), \
                            LEAT_COUNT(leat_dtype, __VA_ARGS__))
LEAT_API void leat_function_define_at(leat_loc at, leat_graph *g, const char *name,
                                      leat_function_fn fn, void *arg, int n_out,
                                      const leat_dtype *in_types, int n_in);

/* Calls a function with n_in arguments; writes n_out results. */
#define leat_call(g, name, in, n_in, outs, n_out)                                                  \
    leat_call_at(LEAT_AT, g, name, in, n_in, outs, n_out)
LEAT_API void leat_call_at(leat_loc at, leat_graph *g, const char *name, const leat_out *in,
                           int n_in, leat_out *outs, int n_out);

#endif
