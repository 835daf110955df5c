/* train_int.h -- what the files of this room share: how a variable is made, and the small idioms
 * of TensorFlow's client that names depend on. */
#ifndef LEAT_TRAIN_INT_H
#define LEAT_TRAIN_INT_H

#include <leat/variable.h>

#include "graph/graph_int.h"

/* What is to be made. Exactly one of initial, initializer, and the scalar is its first value. */
typedef struct leat_variable_spec {
    const char *name; /* within the name scope; "a/b/" with a slash: as it stands */
    leat_out initial;
    const leat_initializer *initializer; /* with dtype and shape */
    double scalar;                       /* of dtype, if neither is set */
    leat_dtype dtype;
    leat_shape shape;
    leat_variable_options options;
} leat_variable_spec;

/* Makes it; gives its value. A mistake sticks to the graph. */
leat_out leat_variable_make(leat_graph *g, const leat_variable_spec *spec);
leat_shape leat_variable_shape(leat_out v); /* of the variable, as declared */
leat_dtype leat_variable_dtype(leat_out v);
/* The nodes that a variable is. Any output of it will do; false if v is not a variable's. */
typedef struct leat_variable_nodes {
    leat_node *self; /* VariableV2, Variable, VarHandleOp */
    leat_node *init; /* the first assignment, or NULL */
    leat_node *read; /* NULL: not read by a node of the usual name */
    bool resource;
} leat_variable_nodes;
bool leat_variable_find(leat_out v, leat_variable_nodes *out);

/* x, but where it depends on variables their initialized values are used instead, so that the
 * variable `name` can be initialised in any order with them. */
leat_out leat_guard_initial_value(leat_graph *g, const char *name, leat_out x);

/* A variable that goes with another one ("w" -> "w/Adam", "w/Adam_1"): on the same device, not
 * trainable, behind a handle if the other is. With an initializer, a constant one, of the other's
 * shape. */
leat_out leat_slot_make(leat_out primary, const char *name, leat_dtype t,
                        const leat_initializer *initializer, leat_out initial);

/* ---- Queue runners of a graph ---- */
typedef struct leat_runner {
    leat_out queue, close_op, cancel_op;
    leat_out *enqueue_ops; /* n of them */
    int n;
    uint32_t closed_codes; /* bit c: an op that fails with code c tells that the queue is closed */
    struct leat_runner *next;
} leat_runner;
const leat_runner *leat_runners(const leat_graph *g); /* the first; NULL: there are none */
/* Copies r into g. */
void leat_runner_add(leat_graph *g, const leat_runner *r);
enum { LEAT_RUNNER_CLOSED = 1 << LEAT_OUT_OF_RANGE | 1 << LEAT_CANCELLED };

/* ---- Python's operators and converted numbers, for their names: "mul", "mul/y" ---- */
static inline leat_graph *leat_graph_of(leat_out x)
{
    return x.node->graph;
}
leat_out leat_py(const char *op, const char *name, leat_out x, leat_out y);
leat_out leat_py_right(const char *op, const char *name, leat_out x, double y); /* x op number */
leat_out leat_py_left(const char *op, const char *name, double x, leat_out y);  /* number op y */
leat_out leat_py_number(leat_graph *g, leat_dtype t, double v, const char *name);
leat_out leat_string_vector(leat_graph *g, const char *const *v, int n); /* a constant */

#endif
