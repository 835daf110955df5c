/* train_int.h -- what the files of this folder share: making a variable, and idioms of TensorFlow's
 * client that determine names. */
#ifndef LEAT_TRAIN_INT_H
#define LEAT_TRAIN_INT_H

#include <leat/variable.h>

#include "graph/graph_int.h"

/* The description of a new variable. Its initial value is given by exactly one of initial,
 * initializer and scalar. */
typedef struct leat_variable_spec {
    const char *name; /* within the name scope; with a slash at the end ("a/b/"): final */
    leat_out initial;
    const leat_initializer *initializer; /* used with dtype and shape */
    double scalar; /* of dtype, used if neither initial nor initializer is set */
    leat_dtype dtype;
    leat_shape shape;
    leat_variable_options options;
} leat_variable_spec;

/* Makes a variable; gives its value. A mistake is recorded in the graph. */
leat_out leat_variable_make(leat_graph *g, const leat_variable_spec *spec);
leat_shape leat_variable_shape(leat_out v); /* the variable's shape, as declared */
leat_dtype leat_variable_dtype(leat_out v);
/* The nodes of a variable, found from any of its outputs; false if v is not an output of a
 * variable. */
typedef struct leat_variable_nodes {
    leat_node *self; /* VariableV2, Variable, VarHandleOp */
    leat_node *init; /* the assignment of the initial value, or NULL */
    leat_node *read; /* NULL: there is no read node of the usual name */
    bool resource;
} leat_variable_nodes;
bool leat_variable_find(leat_out v, leat_variable_nodes *out);

/* A copy of x in which variables that x depends on are replaced by their initialized values, so
 * that the variable `name` can be initialised in any order with them. */
leat_out leat_guard_initial_value(leat_graph *g, const char *name, leat_out x);

/* A variable that belongs to another one ("w" -> "w/Adam", "w/Adam_1"): on the same device, not
 * trainable, a resource variable if the other is. An initializer must be a constant one; the shape
 * is the other's. */
leat_out leat_slot_make(leat_out primary, const char *name, leat_dtype t,
                        const leat_initializer *initializer, leat_out initial);

/* layers_conv.c: a value for each dimension of the images of a layer. Those of rows and columns are
 * given by the layer's option `name`, or else by `otherwise`; the others are 1. */
leat_status leat_layer_steps(const leat_given *o, const char *layer, const char *name,
                             const int64_t given[2], const int64_t otherwise[2],
                             bool channels_first, int64_t out[4]) LEAT_MUST_CHECK;

/* ---- Queue runners of a graph ---- */
typedef struct leat_runner {
    leat_out queue, close_op, cancel_op;
    leat_out *enqueue_ops; /* n of them */
    int n;
    uint32_t closed_codes; /* bit c: an op that fails with code c means that the queue is closed */
    /* Make the queue take elements beyond its capacity, and end that; without a node unless the
     * position of the input is saved. */
    leat_out lift_op, limit_op;
    struct leat_runner *next;
} leat_runner;
const leat_runner *leat_runners(const leat_graph *g); /* the first; NULL: there are none */
/* Adds a copy of r to g. */
void leat_runner_add(leat_graph *g, const leat_runner *r);
enum { LEAT_RUNNER_CLOSED = 1 << LEAT_OUT_OF_RANGE | 1 << LEAT_CANCELLED };

/* ---- Python's operators and converted numbers, which determine names: "mul", "mul/y" ---- */
static inline leat_graph *leat_graph_of(leat_out x)
{
    return x.node->graph;
}
/* clip.c: x has the shape of ids followed by that of a row; each row is clipped to the norm. If ids
 * has no node, x is one row. */
leat_out leat_clip_rows_by_norm(leat_out x, double norm, leat_out ids);
/* moving_average.c: shadow -= (shadow - x) * by */
leat_out leat_average_follow(leat_out shadow, leat_out x, leat_out by, const char *name);
leat_out leat_py(const char *op, const char *name, leat_out x, leat_out y);
leat_out leat_py_right(const char *op, const char *name, leat_out x, double y); /* x op number */
leat_out leat_py_left(const char *op, const char *name, double x, leat_out y);  /* number op y */
leat_out leat_py_number(leat_graph *g, leat_dtype t, double v, const char *name);
leat_out leat_string_vector(leat_graph *g, const char *const *v, int n); /* a constant */

#endif
