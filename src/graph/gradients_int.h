/* gradients_int.h -- one call of leat_gradients, shared by the files that carry it out.
 *
 * 1. Only nodes that were in the graph when the call began (id < n_nodes) are differentiated. 2. A
 * slot collects the gradients that consumers contribute to an output. When the node is
 * differentiated, they are summed into one. The Switch of a loop is differentiated twice; a
 * gradient that is contributed between the two times replaces the sum.
 */
#ifndef LEAT_GRADIENTS_INT_H
#define LEAT_GRADIENTS_INT_H

#include "graph/graph_int.h"

/* The gradients contributed to one output. */
typedef struct leat_grad_slot {
    leat_grad_value *v;
    int n, cap;
    bool summed; /* v[0] is the sum (node NULL: no gradient) */
} leat_grad_slot;

typedef struct leat_grad_node_state {
    leat_grad_slot *slots; /* one for each output; NULL: no gradient yet */
    int pending;           /* consumers between that have not been differentiated yet */
    bool reached;          /* depends on an x */
    bool between;          /* depends on an x, and a y depends on it */
    bool is_x;             /* an output of it is among the xs */
    bool stop;             /* not differentiated itself */
    bool queued_y;         /* a y that no other y depends on */
} leat_grad_node_state;

typedef struct leat_loop_grads leat_loop_grads; /* loops between ys and xs: loop_grad.h */

typedef struct leat_backprop {
    leat_graph *g;
    leat_arena scratch;
    int n_nodes;
    leat_grad_node_state *nodes; /* by id */
    leat_node **between;         /* in the order they were found, from the ys back */
    int n_between, cap_between;
    leat_node **queue; /* nodes ready to be differentiated */
    int queue_head, queue_tail, cap_queue;
    leat_loop_grads *loops; /* NULL if there are none */
    leat_control_ctx *ctx;  /* the context that leat_gradients was called in */
    bool gate, colocate;
} leat_backprop;

/* The gradient of one node, as its gradient function sees it. */
struct leat_grad {
    leat_backprop *b;
    leat_node *node;
    leat_grad_value *out; /* by output: the sum of its gradients */
    leat_grad_value *in;  /* by input: the result of the gradient function */
};

static inline bool leat_grad_some(leat_grad_value v)
{
    return v.value.node != NULL;
}
static inline leat_grad_value leat_grad_tensor(leat_out x)
{
    return (leat_grad_value){.value = x};
}
static inline leat_grad_node_state *leat_grad_state_of(leat_backprop *b, const leat_node *n)
{
    return &b->nodes[n->id];
}

/* Gradients flow through these dtypes only. */
bool leat_dtype_trainable(leat_dtype t);
void leat_backprop_enqueue(leat_backprop *b, leat_node *n);
void leat_backprop_between(leat_backprop *b, leat_node *n); /* adds n to the nodes between */

/* grad_sum.c: collecting and summing. */
void leat_grad_send(leat_backprop *b, leat_out to, leat_grad_value v);
/* Whether any output of n has a gradient. */
bool leat_grad_came(leat_backprop *b, const leat_node *n);
/* Sums the gradients of an output, or of each output of n. */
leat_grad_value leat_grad_sum(leat_backprop *b, leat_out x);
void leat_grad_sums(leat_backprop *b, leat_node *n, leat_grad_value *sums_out);
void leat_grad_gate(
    leat_grad *c); /* no gradient of c->node's inputs is used before all of them are computed */

/* grad_zeros.c: zeros of the shape of an output that has no gradient. */
leat_out leat_grad_zeros(leat_backprop *b, leat_node *n, int i);
leat_out leat_zeros_of_shape(leat_out shape, leat_dtype t); /* shape: an integer vector */

#endif
