/* reread.c -- reads of variables that are used after an update.
 *
 * TensorFlow's read of a reference ("w/read") is another name for the variable's memory: whoever
 * uses it after an update, as a moving average of trained variables does, sees the new value. Our
 * reads are values that stay as they were. So a use that comes after an update in the same step
 * gets a read of its own, which waits for what the use waits for. This also lets updates write in
 * place: nobody holds the old value any more.
 */
#include <stdlib.h>
#include <string.h>

#include "core/alloc.h"
#include "passes/pass.h"

typedef struct rereader {
    leat_graph *g;
    leat_uses uses;
    int n_nodes; /* when this began */
    int *after;  /* by id: the last variable (1 + its id) whose update comes before the node */
    leat_node **queue;
    int n_queue;
} rereader;

static bool writes(const leat_use *u)
{
    const leat_op_info *op = u->node->op;
    bool single = u->input >= 0 && u->input < op->n_in && op->in[u->input].number_attr < 0;
    return single && op->in[u->input].is_ref && !leat_node_is(u->node, "IsVariableInitialized") &&
           !leat_node_is(u->node, "RefSwitch") && !leat_node_is(u->node, "RefEnter") &&
           !leat_node_is(u->node, "RefIdentity");
}

static void mark(rereader *r, leat_node *n, int stamp)
{
    if (r->after[n->id] == stamp)
        return;
    r->after[n->id] = stamp;
    r->queue[r->n_queue++] = n;
}

/* What comes after an update of v gets its stamp; false if there is no update. */
static bool mark_after(rereader *r, const leat_node *v, int stamp)
{
    r->n_queue = 0;
    for (int i = r->uses.at[v->id]; i < r->uses.at[v->id + 1]; i++)
        if (writes(&r->uses.v[i]))
            for (int id = r->uses.v[i].node->id, k = r->uses.at[id]; k < r->uses.at[id + 1]; k++)
                mark(r, r->uses.v[k].node, stamp);
    for (int at = 0; at < r->n_queue; at++) {
        int id = r->queue[at]->id;
        for (int k = r->uses.at[id]; k < r->uses.at[id + 1]; k++)
            mark(r, r->uses.v[k].node, stamp);
    }
    return r->n_queue > 0;
}

static void wait_for(rereader *r, leat_node *again, leat_node *n, int stamp)
{
    if (n && n->id < r->n_nodes && r->after[n->id] == stamp)
        leat_node_add_control(again, n);
}

/* The updates that n itself takes the outputs of. */
static void wait_for_updates(rereader *r, leat_node *again, const leat_node *n, const leat_node *v)
{
    for (int i = r->uses.at[v->id]; i < r->uses.at[v->id + 1]; i++) {
        leat_node *w = r->uses.v[i].node;
        if (!writes(&r->uses.v[i]))
            continue;
        for (int k = 0; k < n->n_in; k++)
            if (n->in[k].node == w)
                leat_node_add_control(again, w);
        for (int k = 0; k < n->n_controls; k++)
            if (n->controls[k] == w)
                leat_node_add_control(again, w);
    }
}

static void read_again(rereader *r, leat_node *read, const leat_use *use, int stamp)
{
    leat_node *n = use->node, *again = leat_node_clone(r->g, read);
    again->name = leat_arena_printf(&r->g->arena, "%s/again_%d", read->name, again->id);
    leat_map_put(&r->g->by_name, again->name, again);
    leat_map_put(&r->g->by_name, read->name, read);
    again->in[0] = read->in[0];
    for (int i = 0; i < n->n_in; i++)
        wait_for(r, again, n->in[i].node, stamp);
    for (int i = 0; i < n->n_controls; i++)
        wait_for(r, again, n->controls[i], stamp);
    wait_for_updates(r, again, n, read->in[0].node);
    n->in[use->input] = (leat_out){again, 0};
}

static void look_at_variable(rereader *r, leat_node *v)
{
    int stamp = v->id + 1;
    if (!mark_after(r, v, stamp))
        return;
    for (int i = r->uses.at[v->id]; i < r->uses.at[v->id + 1]; i++) {
        leat_node *read = r->uses.v[i].node;
        if (r->uses.v[i].input != 0 || !leat_node_is(read, "Identity") ||
            r->after[read->id] == stamp)
            continue;
        for (int k = r->uses.at[read->id]; k < r->uses.at[read->id + 1]; k++)
            if (r->uses.v[k].input >= 0 && r->after[r->uses.v[k].node->id] == stamp)
                read_again(r, read, &r->uses.v[k], stamp);
    }
}

leat_status leat_pass_reread(leat_compile *c)
{
    leat_graph *g = c->graph;
    rereader r = {.g = g, .uses = leat_uses_of(g), .n_nodes = g->n_nodes};
    r.after = leat_new_array(int, g->n_nodes + 1);
    r.queue = leat_new_array(leat_node *, g->n_nodes + 1);
    for (int i = 0; i < r.n_nodes; i++)
        if (leat_node_is(g->nodes[i], "VariableV2") || leat_node_is(g->nodes[i], "Variable"))
            look_at_variable(&r, g->nodes[i]);
    leat_uses_free(&r.uses);
    free(r.after);
    free(r.queue);
    return NULL;
}
