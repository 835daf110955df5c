/* graph.h -- dataflow graphs: nodes, edges, attributes, names, scopes.
 *
 * Constructors return no status: the first mistake is recorded in the graph and is reported by
 * leat_graph_status and by every session that runs the graph, with the op, the node, the shapes,
 * and the file and line of the call that made the mistake. After a mistake the constructors give
 * outputs that other constructors accept and that cannot be run.
 *
 * A graph is built by one thread at a time; sessions may run it meanwhile. Nodes, names and
 * attributes live as long as the graph.
 */
#ifndef LEAT_GRAPH_H
#define LEAT_GRAPH_H

#include <string.h>

#include <leat/tensor.h>

typedef struct leat_graph leat_graph;
typedef struct leat_node leat_node;
/* Output `index` of a node; index -1 stands for its completion (a control edge). */
typedef struct leat_out {
    leat_node *node;
    int index;
} leat_out;
typedef struct leat_loc {
    const char *file;
    int line;
} leat_loc;
#define LEAT_AT LEAT_STRUCT(leat_loc, __FILE__, __LINE__)

/* ---- Options of constructors: leat_adam(.learning_rate = 0.01, .beta1 = 0) ----
 * An option that is not written has the default that is documented beside it. An option that is
 * written has the value that is written, 0 included. To C both are 0; therefore the macros also
 * pass the text of their arguments, in which the constructor looks for the option's name. A program
 * that fills an options struct itself, without a macro, leaves `given` zero; options that are 0
 * then have their defaults, unless given.options names them: ".beta1, .seed". */
typedef struct leat_given {
    const char *options; /* the text of the constructor's arguments; NULL: none */
    leat_loc at;         /* where the constructor was called */
} leat_given;
#define LEAT_GIVEN(...)                                                                            \
    {                                                                                              \
        #__VA_ARGS__, { __FILE__, __LINE__ }                                                       \
    }
/* LEAT_OPTIONS for a struct whose first member is `leat_given given`. */
#define LEAT_GIVEN_OPTIONS(type, ...)                                                              \
    LEAT_OPTIONS(type, .given = LEAT_GIVEN(__VA_ARGS__), __VA_ARGS__)

LEAT_API leat_graph *leat_graph_new(void);
/* Free it after the sessions on it; of NULL does nothing. */
LEAT_API void leat_graph_free(leat_graph *g);
/* The first mistake made while building, or OK. Gives a copy. */
LEAT_API leat_status leat_graph_status(const leat_graph *g) LEAT_MUST_CHECK;

/* ---- Any op, by its name ----
 *     leat_out y = leat_op(g, "MatMul", leat_in(x), leat_in(w), leat_attr_bool("transpose_b", true));
 * Inputs come in the order of the op's definition; type attributes and list lengths follow from
 * the inputs. The functions of ops.h and nn.h are short forms of this one. */
typedef struct leat_arg {
    int kind; /* one of the constructors below */
    const char *name;
    int64_t i;
    double f;
    const void *p;
    leat_out out;
    leat_shape shape;
} leat_arg;

#define leat_op(g, op, ...)                                                                        \
    leat_op_at(LEAT_AT, (g), (op),                                                                 \
               LEAT_ARRAY(leat_arg, __VA_ARGS__, leat_arg_new(LEAT_ARG_END, NULL)))
LEAT_API leat_out leat_op_at(leat_loc at, leat_graph *g, const char *op, const leat_arg *args);

enum {
    LEAT_ARG_END, LEAT_ARG_IN, LEAT_ARG_INS, LEAT_ARG_CONTROL, LEAT_ARG_NAME, LEAT_ARG_DEVICE,
    LEAT_ARG_INT, LEAT_ARG_BOOL, LEAT_ARG_FLOAT, LEAT_ARG_TYPE, LEAT_ARG_STRING, LEAT_ARG_SHAPE,
    LEAT_ARG_TENSOR, LEAT_ARG_FUNC, LEAT_ARG_INTS, LEAT_ARG_TYPES, LEAT_ARG_SHAPES,
    LEAT_ARG_STRINGS, LEAT_ARG_FLOATS, LEAT_ARG_SKIP,
};
static inline leat_arg leat_arg_new(int kind, const char *name)
{
    leat_arg a;
    memset(&a, 0, sizeof(a));
    a.kind = kind;
    a.name = name;
    return a;
}
static inline leat_arg leat_in(leat_out x)
{
    leat_arg a = leat_arg_new(LEAT_ARG_IN, NULL);
    a.out = x;
    return a;
}
/* A list input of n tensors. */
static inline leat_arg leat_ins(const leat_out *x, int n)
{
    leat_arg a = leat_arg_new(LEAT_ARG_INS, NULL);
    a.p = x;
    a.i = n;
    return a;
}
static inline leat_arg leat_after(leat_out x)
{
    leat_arg a = leat_arg_new(LEAT_ARG_CONTROL, NULL);
    a.out = x;
    return a;
}
/* The node's name; NULL: a name is made from the op's. */
static inline leat_arg leat_name(const char *s)
{
    leat_arg a = leat_arg_new(LEAT_ARG_NAME, NULL);
    a.p = s;
    return a;
}
static inline leat_arg leat_on(const char *device)
{
    leat_arg a = leat_arg_new(LEAT_ARG_DEVICE, NULL);
    a.p = device;
    return a;
}
static inline leat_arg leat_attr_int(const char *name, int64_t v)
{
    leat_arg a = leat_arg_new(LEAT_ARG_INT, name);
    a.i = v;
    return a;
}
static inline leat_arg leat_attr_bool(const char *name, bool v)
{
    leat_arg a = leat_arg_new(LEAT_ARG_BOOL, name);
    a.i = v;
    return a;
}
static inline leat_arg leat_attr_float(const char *name, double v)
{
    leat_arg a = leat_arg_new(LEAT_ARG_FLOAT, name);
    a.f = v;
    return a;
}
static inline leat_arg leat_attr_type(const char *name, leat_dtype v)
{
    leat_arg a = leat_arg_new(LEAT_ARG_TYPE, name);
    a.i = v;
    return a;
}
static inline leat_arg leat_attr_string(const char *name, const char *v) /* NULL: the default */
{
    leat_arg a = leat_arg_new(v ? LEAT_ARG_STRING : LEAT_ARG_SKIP, name);
    a.p = v;
    return a;
}
static inline leat_arg leat_attr_shape(const char *name, leat_shape v)
{
    leat_arg a = leat_arg_new(LEAT_ARG_SHAPE, name);
    a.shape = v;
    return a;
}
static inline leat_arg leat_attr_tensor(const char *name, const leat_tensor *v)
{
    leat_arg a = leat_arg_new(LEAT_ARG_TENSOR, name);
    a.p = v;
    return a;
}
static inline leat_arg leat_attr_func(const char *name, const char *function)
{
    leat_arg a = leat_arg_new(LEAT_ARG_FUNC, name);
    a.p = function;
    return a;
}
static inline leat_arg leat_attr_ints(const char *name, const int64_t *v, int n)
{
    leat_arg a = leat_arg_new(LEAT_ARG_INTS, name);
    a.p = v;
    a.i = n;
    return a;
}
static inline leat_arg leat_attr_types(const char *name, const leat_dtype *v, int n)
{
    leat_arg a = leat_arg_new(LEAT_ARG_TYPES, name);
    a.p = v;
    a.i = n;
    return a;
}
static inline leat_arg leat_attr_shapes(const char *name, const leat_shape *v, int n)
{
    leat_arg a = leat_arg_new(LEAT_ARG_SHAPES, name);
    a.p = v;
    a.i = n;
    return a;
}
static inline leat_arg leat_attr_strings(const char *name, const char *const *v, int n)
{
    leat_arg a = leat_arg_new(LEAT_ARG_STRINGS, name);
    a.p = v;
    a.i = n;
    return a;
}
static inline leat_arg leat_attr_floats(const char *name, const double *v, int n)
{
    leat_arg a = leat_arg_new(LEAT_ARG_FLOATS, name);
    a.p = v;
    a.i = n;
    return a;
}

/* ---- Looking at nodes ---- */
LEAT_API leat_graph *leat_node_graph(const leat_node *n);
LEAT_API const char *leat_node_name(const leat_node *n);
LEAT_API const char *leat_node_op(const leat_node *n);
LEAT_API const char *leat_node_device(const leat_node *n); /* as given by the user; "" for any */
LEAT_API int leat_node_inputs(const leat_node *n);
LEAT_API leat_out leat_node_input(const leat_node *n, int i);
LEAT_API int leat_node_controls(const leat_node *n);
LEAT_API leat_node *leat_node_control(const leat_node *n, int i);
LEAT_API int leat_node_outputs(const leat_node *n);
LEAT_API leat_dtype leat_out_dtype(leat_out x);
/* What is known of the shape while the graph is built. */
LEAT_API leat_shape leat_out_shape(leat_out x);
LEAT_API leat_out leat_output(leat_out x, int index); /* another output of the same node */
static inline leat_out leat_done(leat_out x)
{
    x.index = -1;
    return x;
}
LEAT_API int leat_graph_nodes(const leat_graph *g);
LEAT_API leat_node *leat_graph_node(const leat_graph *g, int i);
LEAT_API int leat_node_index(const leat_node *n); /* the i for which leat_graph_node gives n */
/* By name ("a/b"); NULL if there is none. */
LEAT_API leat_node *leat_graph_find(const leat_graph *g, const char *name);
/* By tensor name ("a/b:0", "a/b" meaning output 0, "^a/b"). NOT_FOUND names the nearest; if the
 * graph has a mistake, a name that is not found gives that mistake. */
LEAT_API leat_status leat_graph_find_out(const leat_graph *g, const char *name, leat_out *out)
    LEAT_MUST_CHECK;

/* Attributes. Defaults of the op are filled in, so a declared attribute always has a value. A wrong
 * name or kind gives 0, "", unknown or NULL. For lists, *n is set. */
LEAT_API bool leat_node_has(const leat_node *n, const char *attr);
LEAT_API int64_t leat_node_int(const leat_node *n, const char *attr);
LEAT_API bool leat_node_bool(const leat_node *n, const char *attr);
LEAT_API double leat_node_float(const leat_node *n, const char *attr);
LEAT_API leat_dtype leat_node_type(const leat_node *n, const char *attr);
LEAT_API const char *leat_node_string(const leat_node *n, const char *attr);
LEAT_API leat_shape leat_node_shape(const leat_node *n, const char *attr);
LEAT_API const leat_tensor *leat_node_tensor(const leat_node *n, const char *attr);
LEAT_API const char *leat_node_func(const leat_node *n, const char *attr);
LEAT_API const int64_t *leat_node_ints(const leat_node *n, const char *attr, int *count);
LEAT_API const leat_dtype *leat_node_types(const leat_node *n, const char *attr, int *count);
LEAT_API const leat_shape *leat_node_shapes(const leat_node *n, const char *attr, int *count);
LEAT_API const char *const *leat_node_strings(const leat_node *n, const char *attr, int *count);
LEAT_API const double *leat_node_floats(const leat_node *n, const char *attr, int *count);

/* ---- Scopes, which apply to nodes that are built between enter and leave. The leat_with_ forms
 * are for blocks; do not jump out of such a block. ---- */
LEAT_API void leat_name_scope_enter(leat_graph *g, const char *name); /* the name is made unique */
LEAT_API void leat_name_scope_leave(leat_graph *g);
LEAT_API const char *leat_name_scope(const leat_graph *g); /* "tower_0/", "" outside */
/* Merged with the device of the scopes outside. */
LEAT_API void leat_device_enter(leat_graph *g, const char *device);
/* The function is called for each new node, and gives a device string or NULL. */
typedef const char *(*leat_device_fn)(void *arg, const leat_node *n);
LEAT_API void leat_device_fn_enter(leat_graph *g, leat_device_fn fn, void *arg);
LEAT_API void leat_device_leave(leat_graph *g);
/* As tf.control_dependencies. */
LEAT_API void leat_control_enter(leat_graph *g, const leat_out *x, int n);
LEAT_API void leat_control_clear_enter(leat_graph *g); /* as tf.control_dependencies(None) */
LEAT_API void leat_control_leave(leat_graph *g);
LEAT_API void leat_colocate_enter(leat_graph *g, leat_out with);
LEAT_API void leat_colocate_leave(leat_graph *g);
LEAT_API void leat_graph_set_seed(leat_graph *g, int64_t seed); /* as tf.set_random_seed */
/* Attributes seed and seed2 of the next random op, whose own seed is *op_seed (NULL if it has
 * none). If the graph has no seed either, both are 0, which means a random seed. */
LEAT_API void leat_graph_seeds(const leat_graph *g, const int64_t *op_seed, int64_t *seed_out,
                               int64_t *seed2_out);

#define LEAT_WITH(enter, leave)                                                                    \
    for (int leat_once_ = ((enter), 1); leat_once_; leat_once_ = 0, (leave))
#define leat_with_name(g, name) LEAT_WITH(leat_name_scope_enter(g, name), leat_name_scope_leave(g))
#define leat_with_device(g, device) LEAT_WITH(leat_device_enter(g, device), leat_device_leave(g))
#define leat_with_device_fn(g, fn, arg)                                                            \
    LEAT_WITH(leat_device_fn_enter(g, fn, arg), leat_device_leave(g))
#define leat_with_control(g, ...)                                                                  \
    LEAT_WITH(leat_control_enter(g, LEAT_ARRAY(leat_out, __VA_ARGS__),                             \
                                 LEAT_COUNT(leat_out, __VA_ARGS__)),                               \
              leat_control_leave(g))
#define leat_with_colocate(g, x) LEAT_WITH(leat_colocate_enter(g, x), leat_colocate_leave(g))

/* ---- Collections: named lists of tensors ---- */
LEAT_API void leat_collect(leat_graph *g, const char *collection, leat_out x);
/* Gives those whose names begin with scope (NULL: all), in an array to be freed with free(). */
LEAT_API leat_out *leat_collection(const leat_graph *g, const char *collection, const char *scope,
                                   int *count_out);

/* ---- GraphDef in and out ---- */
/* Gives the graph as a GraphDef; the same graph always gives the same bytes. Free with free(). */
LEAT_API leat_status leat_graph_to_binary(const leat_graph *g, void **bytes_out, size_t *size_out)
    LEAT_MUST_CHECK;
LEAT_API leat_status leat_graph_to_text(const leat_graph *g, char **text_out) LEAT_MUST_CHECK;
/* Adds a GraphDef's nodes and functions to g, with prefix in front of each name (with "", inputs
 * may be nodes that g already has). If this fails, the graph is unchanged. */
LEAT_API leat_status leat_graph_from_binary(leat_graph *g, const void *bytes, size_t size,
                                            const char *prefix) LEAT_MUST_CHECK;
LEAT_API leat_status leat_graph_from_text(leat_graph *g, const char *text, const char *prefix)
    LEAT_MUST_CHECK;

/* ---- Gradients ---- */
typedef struct leat_gradients_options {
    const leat_out *grad_ys; /* one for each y; NULL: ones */
    const leat_out *stop;    /* tensors that are treated as constants */
    int n_stop;
    bool gate;             /* all gradients of an op are ready before one is used */
    bool colocate; /* place gradients on the devices of the ops that they are gradients of */
    const char *name;      /* of the scope; "gradients" */
} leat_gradients_options;
/* A gradient: a tensor, or rows of one (IndexedSlices: values at indices of dimension 0). For an x
 * that no y depends on, value.node is NULL; who uses such a value gets an error that names x. */
typedef struct leat_grad_value {
    leat_out value;   /* the tensor, or the rows */
    leat_out indices; /* node NULL: dense */
    leat_out dense_shape;
} leat_grad_value;
/* Adds nodes that compute d(sum of ys)/dx for each x; writes n_x values. */
#define leat_gradients(ys, n_y, xs, n_x, grads_out, ...)                                           \
    leat_gradients_at(LEAT_AT, ys, n_y, xs, n_x,                                                   \
                      LEAT_OPTIONS(leat_gradients_options, __VA_ARGS__), grads_out)
LEAT_API leat_status leat_gradients_at(leat_loc at, const leat_out *ys, int n_y, const leat_out *xs,
                                       int n_x, const leat_gradients_options *options,
                                       leat_grad_value *grads_out);
#define leat_grad_dense(v) leat_grad_dense_at(LEAT_AT, v) /* rows are converted to a dense tensor */
LEAT_API leat_out leat_grad_dense_at(leat_loc at, leat_grad_value v);

#endif
