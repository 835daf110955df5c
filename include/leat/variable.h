/* variable.h -- variables: values that are kept from step to step; their initial values
 * (initialisers), names and sharing (variable scopes), and terms that are added to the loss for
 * them (regularisers).
 *
 * leat_variable gives the output that reads the variable's value. Functions that need the variable
 * itself (optimizers, assignments) take that output, or the variable's reference or handle, and
 * find the others. The nodes and names are TensorFlow's: "w", "w/Assign", "w/read".
 */
#ifndef LEAT_VARIABLE_PUBLIC_H
#define LEAT_VARIABLE_PUBLIC_H

#include <leat/ops.h>

/* Collections of variables. They hold the references or handles. */
#define LEAT_GLOBAL_VARIABLES "variables"
#define LEAT_LOCAL_VARIABLES "local_variables"
#define LEAT_TRAINABLE_VARIABLES "trainable_variables"
#define LEAT_MOVING_AVERAGE_VARIABLES "moving_average_variables"
#define LEAT_UPDATE_OPS "update_ops" /* what layers want run with every step of training */
#define LEAT_REGULARIZATION_LOSSES "regularization_losses"

/* ---- Making one: leat_out w = leat_variable(g, "w", leat_zeros(g, LEAT_FLOAT, shape)) ---- */
typedef struct leat_variable_options {
    bool not_trainable; /* optimizers do not update it unless it is in their list of variables */
    bool use_resource;  /* a resource variable (VarHandleOp) instead of a reference */
    bool any_shape;     /* values of any shape may be assigned to it */
    const char *const *collections; /* a list that ends with NULL; not set: {"variables", NULL} */
} leat_variable_options;
#define leat_variable(g, name, initial_value, ...)                                                 \
    leat_variable_at(LEAT_AT, g, name, initial_value,                                              \
                     LEAT_OPTIONS(leat_variable_options, __VA_ARGS__))
LEAT_API leat_out leat_variable_at(leat_loc at, leat_graph *g, const char *name,
                                   leat_out initial_value, const leat_variable_options *options);
/* Neither trained nor saved: for counters of this process. */
#define leat_local_variable(g, name, initial_value)                                                \
    leat_variable(g, name, initial_value, .not_trainable = true,                                   \
                  .collections = LEAT_ARRAY(char *const, LEAT_LOCAL_VARIABLES, NULL))

/* ---- From any output of a variable to the others. If v is not an output of a variable, the result
 * has a NULL node. ---- */
LEAT_API leat_out leat_variable_ref(leat_out v);         /* the reference, or the handle */
LEAT_API leat_out leat_variable_value(leat_out v);       /* the output that leat_variable gave */
LEAT_API leat_out leat_variable_initializer(leat_out v); /* the op that assigns the initial value */
LEAT_API leat_out leat_variable_initial_value(leat_out v); /* the tensor that is assigned */
LEAT_API const char *leat_variable_name(leat_out v);       /* "h1/w"; "" if v is not a variable's */
LEAT_API bool leat_variable_is_resource(leat_out v);
/* The value if the variable has one when this node runs, else the initial value; a new node each
 * time. */
#define leat_variable_initialized_value(v) leat_variable_initialized_value_at(LEAT_AT, v)
LEAT_API leat_out leat_variable_initialized_value_at(leat_loc at, leat_out v);
/* Assignments; v may be a reference or a handle. */
#define leat_variable_assign(v, x) leat_variable_assign_at(LEAT_AT, "Assign", v, x)
#define leat_variable_assign_add(v, x) leat_variable_assign_at(LEAT_AT, "AssignAdd", v, x)
#define leat_variable_assign_sub(v, x) leat_variable_assign_at(LEAT_AT, "AssignSub", v, x)
LEAT_API leat_out leat_variable_assign_at(leat_loc at, const char *op, leat_out v, leat_out x);

/* All variables of a collection; free with free(). */
LEAT_API leat_out *leat_global_variables(const leat_graph *g, int *count_out);
LEAT_API leat_out *leat_trainable_variables(const leat_graph *g, int *count_out);

/* ---- Initialising ---- */
#define leat_global_variables_initializer(g)                                                       \
    leat_initializer_of_at(LEAT_AT, g, LEAT_GLOBAL_VARIABLES)
#define leat_local_variables_initializer(g) leat_initializer_of_at(LEAT_AT, g, LEAT_LOCAL_VARIABLES)
LEAT_API leat_out leat_initializer_of_at(leat_loc at, leat_graph *g, const char *collection);
#define leat_variables_initializer(g, vars, n) leat_variables_initializer_at(LEAT_AT, g, vars, n)
LEAT_API leat_out leat_variables_initializer_at(leat_loc at, leat_graph *g, const leat_out *vars,
                                                int n);
#define leat_is_variable_initialized(v) leat_is_variable_initialized_at(LEAT_AT, v) /* a bool */
LEAT_API leat_out leat_is_variable_initialized_at(leat_loc at, leat_out v);
/* The names, a string vector, of global and local variables that have no value yet. */
#define leat_report_uninitialized_variables(g) leat_report_uninitialized_variables_at(LEAT_AT, g)
LEAT_API leat_out leat_report_uninitialized_variables_at(leat_loc at, leat_graph *g);
#define leat_report_uninitialized_of(g, vars, n)                                                   \
    leat_report_uninitialized_of_at(LEAT_AT, g, vars, n)
LEAT_API leat_out leat_report_uninitialized_of_at(leat_loc at, leat_graph *g, const leat_out *vars,
                                                  int n);

/* ---- Initialisers: functions that make an initial value when dtype and shape are known. You can
 * write your own; the fields a, b, seed and mode are free for its use. ---- */
typedef struct leat_initializer leat_initializer;
struct leat_initializer {
    leat_given given; /* set by the macro */
    leat_out (*make)(leat_graph *g, leat_dtype t, leat_shape s, const leat_initializer *self);
    double a, b;
    int64_t seed;
    int mode;
    const leat_shape *whole; /* for a slice: the shape of the whole variable */
};
enum { LEAT_FAN_IN = 0, LEAT_FAN_OUT = 1, LEAT_FAN_AVG = 2 };
enum { LEAT_DRAW_TRUNCATED_NORMAL = 0, LEAT_DRAW_NORMAL = 4, LEAT_DRAW_UNIFORM = 8 };
LEAT_API leat_out leat_init_constant(leat_graph *g, leat_dtype t, leat_shape s,
                                     const leat_initializer *self);
LEAT_API leat_out leat_init_normal(leat_graph *g, leat_dtype t, leat_shape s,
                                   const leat_initializer *self);
LEAT_API leat_out leat_init_truncated_normal(leat_graph *g, leat_dtype t, leat_shape s,
                                             const leat_initializer *self);
LEAT_API leat_out leat_init_uniform(leat_graph *g, leat_dtype t, leat_shape s,
                                    const leat_initializer *self);
LEAT_API leat_out leat_init_variance_scaling(leat_graph *g, leat_dtype t, leat_shape s,
                                             const leat_initializer *self);
#define LEAT_INITIALIZER(fn, ...)                                                                  \
    LEAT_STRUCT(leat_initializer, .given = LEAT_GIVEN(__VA_ARGS__), .make = fn, __VA_ARGS__)
#define leat_zeros_initializer() LEAT_INITIALIZER(leat_init_constant, .mode = 1)
#define leat_ones_initializer() LEAT_INITIALIZER(leat_init_constant, .mode = 1, .a = 1)
#define leat_constant_initializer(v) LEAT_INITIALIZER(leat_init_constant, .a = (v))
/* A further argument may set the seed: leat_random_normal_initializer(0, 0.1, .seed = 7). */
#define leat_random_normal_initializer(mean, stddev, ...)                                          \
    LEAT_INITIALIZER(leat_init_normal, .a = (mean), .b = (stddev), ##__VA_ARGS__)
#define leat_truncated_normal_initializer(mean, stddev, ...)                                       \
    LEAT_INITIALIZER(leat_init_truncated_normal, .a = (mean), .b = (stddev), ##__VA_ARGS__)
#define leat_random_uniform_initializer(low, high, ...)                                            \
    LEAT_INITIALIZER(leat_init_uniform, .a = (low), .b = (high), ##__VA_ARGS__)
/* fan: LEAT_FAN_...; draw: LEAT_DRAW_... */
#define leat_variance_scaling_initializer(scale, fan, draw, ...)                                   \
    LEAT_INITIALIZER(leat_init_variance_scaling, .a = (scale), .mode = (fan) | (draw),             \
                     ##__VA_ARGS__)
#define leat_glorot_uniform_initializer(...)                                                       \
    leat_variance_scaling_initializer(1.0, LEAT_FAN_AVG, LEAT_DRAW_UNIFORM, ##__VA_ARGS__)
#define leat_glorot_normal_initializer(...)                                                        \
    leat_variance_scaling_initializer(1.0, LEAT_FAN_AVG, LEAT_DRAW_TRUNCATED_NORMAL, ##__VA_ARGS__)

/* ---- Regularisers: a loss for the size of a variable, put into "regularization_losses" ---- */
typedef struct leat_regularizer leat_regularizer;
struct leat_regularizer {
    leat_out (*make)(leat_out w, const leat_regularizer *self); /* a NULL node: no loss */
    double scale, scale2;
};
LEAT_API leat_out leat_make_l1(leat_out w, const leat_regularizer *self);
LEAT_API leat_out leat_make_l2(leat_out w, const leat_regularizer *self);
LEAT_API leat_out leat_make_l1_l2(leat_out w, const leat_regularizer *self);
LEAT_API leat_out leat_make_no_loss(leat_out w, const leat_regularizer *self);
#define leat_l1_regularizer(s) LEAT_STRUCT(leat_regularizer, leat_make_l1, s, 0)
#define leat_l2_regularizer(s) LEAT_STRUCT(leat_regularizer, leat_make_l2, s, 0)
#define leat_l1_l2_regularizer(s1, s2) LEAT_STRUCT(leat_regularizer, leat_make_l1_l2, s1, s2)
/* Inside a scope that has a regulariser: none for this variable. */
#define leat_no_regularizer() LEAT_STRUCT(leat_regularizer, leat_make_no_loss, 0, 0)
/* The sum of the collected losses under a scope (NULL: all); 0 if there are none. */
#define leat_get_regularization_loss(g, scope) leat_regularization_loss_at(LEAT_AT, g, scope)
LEAT_API leat_out leat_regularization_loss_at(leat_loc at, leat_graph *g, const char *scope);

/* ---- Partitioners: how a variable is cut into slices along one axis, each a variable of its own
 * ("w/part_0", "w/part_1" ...), so that several tasks can hold them. You can write your own; the
 * other fields are free for its use. ---- */
typedef struct leat_partitioner leat_partitioner;
struct leat_partitioner {
    leat_given given; /* set by the macro */
    /* Writes the number of slices of each dimension to slices_out, which has shape's rank
     * elements. */
    leat_status (*slices)(const leat_shape *shape, leat_dtype t, const leat_partitioner *self,
                          leat_shape *slices_out);
    int64_t n, bytes;
    int axis;
    int64_t bytes_per_string; /* default 16 */
};
LEAT_API leat_status leat_slices_fixed(const leat_shape *shape, leat_dtype t,
                                       const leat_partitioner *self, leat_shape *slices_out);
LEAT_API leat_status leat_slices_axis_size(const leat_shape *shape, leat_dtype t,
                                           const leat_partitioner *self, leat_shape *slices_out);
LEAT_API leat_status leat_slices_min_max(const leat_shape *shape, leat_dtype t,
                                         const leat_partitioner *self, leat_shape *slices_out);
#define LEAT_PARTITIONER(fn, ...)                                                                  \
    LEAT_STRUCT(leat_partitioner, .given = LEAT_GIVEN(__VA_ARGS__), .slices = fn, __VA_ARGS__)
/* A further argument may set the axis: leat_fixed_size_partitioner(3, .axis = 1). */
#define leat_fixed_size_partitioner(num_shards, ...)                                               \
    LEAT_PARTITIONER(leat_slices_fixed, .n = (num_shards), ##__VA_ARGS__)
/* Slices of at most so many bytes; .n = 8: at most 8 of them; default: any number. */
#define leat_variable_axis_size_partitioner(max_shard_bytes, ...)                                  \
    LEAT_PARTITIONER(leat_slices_axis_size, .bytes = (max_shard_bytes), ##__VA_ARGS__)
/* Slices of at least so many bytes (.bytes, default 256 KB), but not more than max_partitions. */
#define leat_min_max_variable_partitioner(max_partitions, ...)                                     \
    LEAT_PARTITIONER(leat_slices_min_max, .n = (max_partitions), ##__VA_ARGS__)

/* ---- Variable scopes: names and defaults for leat_get_variable ---- */
typedef enum leat_reuse {
    LEAT_REUSE_INHERIT, /* as in the scope outside; in the outermost: variables must be new */
    LEAT_REUSE,         /* variables must exist */
    LEAT_AUTO_REUSE,    /* variables that do not exist are made */
} leat_reuse;
typedef struct leat_variable_scope leat_variable_scope; /* lives as long as the graph */
typedef struct leat_variable_scope_options {
    leat_reuse reuse;
    const char *default_name; /* used if the scope's name is NULL; it is made unique */
    leat_initializer initializer;
    leat_regularizer regularizer;
    leat_partitioner partitioner;
    leat_dtype dtype;
    bool use_resource;
    const leat_variable_scope *scope; /* enter this scope again; the scope's name is then NULL */
} leat_variable_scope_options;
#define leat_variable_scope_enter(g, name, ...)                                                    \
    leat_variable_scope_enter_at(LEAT_AT, g, name,                                                 \
                                 LEAT_OPTIONS(leat_variable_scope_options, __VA_ARGS__))
LEAT_API void leat_variable_scope_enter_at(leat_loc at, leat_graph *g, const char *name,
                                           const leat_variable_scope_options *options);
LEAT_API void leat_variable_scope_leave(leat_graph *g);
#define leat_with_variable_scope(g, name, ...)                                                     \
    LEAT_WITH(leat_variable_scope_enter(g, name, ##__VA_ARGS__), leat_variable_scope_leave(g))
LEAT_API const char *leat_variable_scope_name(leat_graph *g); /* "" outside */
/* The innermost open scope, which can be entered again: leat_with_variable_scope(g, NULL, .scope =
 * s) */
LEAT_API const leat_variable_scope *leat_variable_scope_current(leat_graph *g);
LEAT_API void leat_variable_scope_reuse(leat_graph *g); /* from here on variables must exist */

typedef struct leat_get_variable_options {
    leat_dtype dtype;
    leat_initializer initializer;
    leat_out initial_value; /* used instead of shape and initializer */
    leat_regularizer regularizer;
    leat_partitioner partitioner;
    bool not_trainable, use_resource, any_shape;
    const char *const *collections;
} leat_get_variable_options;
/* The variable of this name in the open scope, made or found as the scope's reuse says. With a
 * partitioner, of the scope or the options, the concatenation of its slices. */
#define leat_get_variable(g, name, shape, ...)                                                     \
    leat_get_variable_at(LEAT_AT, g, name, shape,                                                  \
                         LEAT_OPTIONS(leat_get_variable_options, __VA_ARGS__))
LEAT_API leat_out leat_get_variable_at(leat_loc at, leat_graph *g, const char *name,
                                       leat_shape shape, const leat_get_variable_options *options);
/* The slices of a variable that leat_get_variable made with a partitioner, in order; for any other
 * variable, that one. Free with free(). */
LEAT_API leat_out *leat_variable_parts(leat_out v, int *count_out);
/* For a slice: its description in a checkpoint, "10 3 0,4:0,3" (the whole variable's shape; the
 * start and length in each dimension), and the whole variable's name. NULL if v is not a slice. */
LEAT_API const char *leat_variable_slice(leat_out v, const char **name_out);

#endif
