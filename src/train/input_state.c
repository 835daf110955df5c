/* input_state.c -- finds what has a position in a graph: see input_state.h. */
#include "train/input_state.h"

#include <leat/input.h>

#include <stdlib.h>
#include <string.h>

#include "core/alloc.h"
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

static const struct {
    const char *op, *save, *restore;
    leat_dtype state;
} kinds[] = {
    {"Iterator", "SerializeIterator", "DeserializeIterator", LEAT_VARIANT},
    {"IteratorV2", "SerializeIterator", "DeserializeIterator", LEAT_VARIANT},
    {"OneShotIterator", "SerializeIterator", "DeserializeIterator", LEAT_VARIANT},
    {"FIFOQueueV2", "_QueueState", "_QueueSetState", LEAT_STRING},
    {"PaddingFIFOQueueV2", "_QueueState", "_QueueSetState", LEAT_STRING},
    {"PriorityQueueV2", "_QueueState", "_QueueSetState", LEAT_STRING},
    {"RandomShuffleQueueV2", "_QueueState", "_QueueSetState", LEAT_STRING},
    {"TextLineReaderV2", "_ReaderState", "_ReaderSetState", LEAT_STRING},
    {"WholeFileReaderV2", "_ReaderState", "_ReaderSetState", LEAT_STRING},
    {"TFRecordReaderV2", "_ReaderState", "_ReaderSetState", LEAT_STRING},
    {"FixedLengthRecordReaderV2", "_ReaderState", "_ReaderSetState", LEAT_STRING},
    {"IdentityReaderV2", "_ReaderState", "_ReaderSetState", LEAT_STRING},
};

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
    if ((leat_node_is(n, "CountUpTo") || leat_node_is(n, "ResourceCountUpTo")) &&
        leat_variable_find(n->in[0], &nodes)) {
        *out = (leat_input_part){.of = n->in[0]};
        return true;
    }
    for (size_t i = 0; i < sizeof(kinds) / sizeof(*kinds); i++)
        if (leat_node_is(n, kinds[i].op)) {
            *out = (leat_input_part){{n, 0}, kinds[i].save, kinds[i].restore, kinds[i].state};
            return !strstr(kinds[i].op, "Queue") || is_filled(g, n);
        }
    return false;
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
