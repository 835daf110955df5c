/* input_state.c -- finds what has a position in a graph: see input_state.h. */
#include "train/input_state.h"

#include <leat/input.h>

#include <stdlib.h>

#include "core/alloc.h"
#include "graph/op_info.h"
#include "train/train_int.h"

typedef struct input_state {
    bool saved;
} input_state;

static input_state *state_of(leat_graph *g)
{
    return leat_graph_extra(g, "input_state", sizeof(input_state));
}

void leat_save_input(leat_graph *g)
{
    if (LEAT_USABLE(GRAPH, g))
        state_of(g)->saved = true;
}

bool leat_input_saved(leat_graph *g)
{
    return state_of(g)->saved;
}

/* Other queues are not input: those of tokens and gradients, for example. */
static bool is_filled(const leat_graph *g, const leat_node *queue)
{
    for (const leat_runner *r = leat_runners(g); r; r = r->next)
        if (r->queue.node == queue)
            return true;
    return false;
}

static bool part_of(const leat_graph *g, leat_node *n, leat_input_part *out)
{
    leat_variable_nodes nodes;
    if (leat_node_role(n) == LEAT_ROLE_COUNTER && leat_variable_find(n->in[0], &nodes)) {
        *out = (leat_input_part){.of = n->in[0]};
        return true;
    }
    const leat_op_def *def = n->op->def;
    if (!def->save_position || (leat_node_role(n) == LEAT_ROLE_QUEUE && !is_filled(g, n)))
        return false;
    *out = (leat_input_part){{n, 0},
                             def->save_position,
                             def->restore_position,
                             leat_op_find(def->save_position)->out[0].type};
    return true;
}

leat_status leat_input_parts(leat_graph *g, leat_input_part **out, int *n_out)
{
    leat_input_part *parts = NULL;
    int n = 0, cap = 0;
    for (const leat_runner *r = leat_runners(g); r; r = r->next)
        LEAT_REQUIRE(r->queue.node->out_types[0] == LEAT_RESOURCE, INVALID_ARGUMENT,
                     "The position of the input cannot be saved: %s is a %s, which has no resource "
                     "handle; make it a %sV2",
                     leat_node_name(r->queue.node), leat_node_op(r->queue.node),
                     leat_node_op(r->queue.node));
    for (int i = 0; i < g->n_nodes; i++) {
        leat_input_part p;
        if (g->nodes[i]->dead || !part_of(g, g->nodes[i], &p))
            continue;
        leat_grow(parts, n, cap);
        parts[n++] = p;
    }
    *out = parts;
    *n_out = n;
    return NULL;
}
