/* reread.c -- reads of variables that are used after an update.
 *
 * In TensorFlow, the read of a reference ("w/read") gives the variable's memory: a consumer that
 * runs after an update, as a moving average of trained variables does, sees the new value. In Leat
 * a read gives a value that does not change. So a consumer that runs after an update in the same
 * step gets a read of its own, with the control inputs of the consumer. This also lets updates
 * write in place, because the old value has no other owner then.
 *
 * A read outside a condition or loop is passed into it as a value, through Switch and Enter. If the
 * variable is updated inside, or if a consumer inside runs after an update outside, then the
 * reference is passed in, too, and the consumers inside get reads of their own: a loop that trains
 * sees in each iteration the updates of the one before.
 */
#include <stdlib.h>
#include <string.h>

#include "core/alloc.h"
#include "passes/pass.h"

typedef struct rereader {
    const leat_compile *c;
    leat_graph *g;
    leat_uses uses;
    int n_nodes; /* number of nodes before the pass */
    int *after;  /* by id: the last variable (1 + its id) whose update comes before the node */
    leat_node **queue, **writers, **beside;
    int n_queue, n_writers;
    bool inside; /* some of the variable's writers are in a condition or a loop */
} rereader;

static rereader begin(leat_compile *c)
{
    leat_graph *g = c->graph;
    rereader r = {.c = c, .g = g, .uses = leat_uses_of(g), .n_nodes = g->n_nodes};
    r.after = leat_new_array(int, g->n_nodes + 1);
    r.queue = leat_new_array(leat_node *, g->n_nodes + 1);
    /* a writer may be found more than once. */
    r.writers = leat_new_array(leat_node *, r.uses.at[g->n_nodes] + 1);
    r.beside = leat_new_array(leat_node *, g->n_nodes + 1);
    return r;
}

static void end(rereader *r)
{
    leat_uses_free(&r->uses);
    free(r->after);
    free(r->queue);
    free(r->writers);
    free(r->beside);
}

static bool is_variable(const leat_node *n)
{
    return leat_node_role(n) == LEAT_ROLE_VARIABLE;
}

static void mark(rereader *r, leat_node *n, int stamp)
{
    if (r->after[n->id] == stamp)
        return;
    r->after[n->id] = stamp;
    r->queue[r->n_queue++] = n;
}

/* The nodes that write to v, also those that get the reference through other nodes. */
static void find_writers(rereader *r, leat_node *v)
{
    const int stamp = -1 - v->id;
    r->n_queue = r->n_writers = 0;
    r->inside = false;
    mark(r, v, stamp);
    for (int at = 0; at < r->n_queue; at++) {
        const int id = r->queue[at]->id;
        for (int k = r->uses.at[id]; k < r->uses.at[id + 1]; k++) {
            const leat_use *u = &r->uses.v[k];
            if (u->input < 0 || !leat_dtype_is_ref(r->queue[at]->out_types[u->output]))
                continue;
            const leat_op_info *op = u->node->op;
            if (leat_node_flag(u->node, LEAT_OP_NO_EFFECTS)) {
                if (op->n_out && op->out[0].is_ref)
                    mark(r, u->node, stamp);
            } else if (u->input < op->n_in && op->in[u->input].number_attr < 0 &&
                       op->in[u->input].is_ref &&
                       (r->n_writers == 0 || r->writers[r->n_writers - 1] != u->node)) {
                r->writers[r->n_writers++] = u->node;
                r->inside |= at > 0;
            }
        }
    }
}

/* ---- Uses that come after an update ---- */

/* Marks the nodes that run after the writers that were found; false if there are none. */
static bool mark_after(rereader *r, int stamp)
{
    r->n_queue = 0;
    for (int i = 0; i < r->n_writers; i++)
        for (int id = r->writers[i]->id, k = r->uses.at[id]; k < r->uses.at[id + 1]; k++)
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

/* The updates whose outputs are inputs of n. */
static void wait_for_updates(rereader *r, leat_node *again, const leat_node *n)
{
    for (int i = 0; i < r->n_writers; i++) {
        for (int k = 0; k < n->n_in; k++)
            if (n->in[k].node == r->writers[i])
                leat_node_add_control(again, r->writers[i]);
        for (int k = 0; k < n->n_controls; k++)
            if (n->controls[k] == r->writers[i])
                leat_node_add_control(again, r->writers[i]);
    }
}

/* A copy of n under a name of its own, without its edges. */
static leat_node *another(rereader *r, leat_node *n)
{
    leat_node *x = leat_node_clone(r->g, n);
    x->name = leat_arena_printf(&r->g->arena, "%s/again_%d", n->name, x->id);
    leat_map_put(&r->g->by_name, x->name, x);
    leat_map_put(&r->g->by_name, n->name, n);
    return x;
}

static void read_again(rereader *r, leat_node *read, const leat_use *use, int stamp)
{
    leat_node *n = use->node, *again = another(r, read);
    again->in[0] = read->in[0];
    for (int i = 0; i < n->n_in; i++)
        wait_for(r, again, n->in[i].node, stamp);
    for (int i = 0; i < n->n_controls; i++)
        wait_for(r, again, n->controls[i], stamp);
    wait_for_updates(r, again, n);
    n->in[use->input] = (leat_out){again, 0};
}

static void look_at_variable(rereader *r, leat_node *v)
{
    int stamp = v->id + 1;
    find_writers(r, v);
    if (!mark_after(r, stamp))
        return;
    for (int i = r->uses.at[v->id]; i < r->uses.at[v->id + 1]; i++) {
        leat_node *read = r->uses.v[i].node;
        if (r->uses.v[i].input != 0 || !leat_is_identity(read) || r->after[read->id] == stamp)
            continue;
        for (int k = r->uses.at[read->id]; k < r->uses.at[read->id + 1]; k++)
            if (r->uses.v[k].input >= 0 && r->after[r->uses.v[k].node->id] == stamp)
                read_again(r, read, &r->uses.v[k], stamp);
    }
}

leat_status leat_pass_reread(leat_compile *c)
{
    rereader r = begin(c);
    for (int i = 0; i < r.n_nodes; i++)
        if (is_variable(r.g->nodes[i]))
            look_at_variable(&r, r.g->nodes[i]);
    end(&r);
    return NULL;
}

/* ---- Uses in conditions and loops ---- */

/* A RefEnter or RefSwitch for the reference, like n for the value. */
static leat_node *take_along(rereader *r, leat_node *n, leat_out reference)
{
    leat_node *x = another(r, n);
    x->op = leat_op_find(leat_is_enter(n) ? "RefEnter" : "RefSwitch");
    x->wanted = false;
    for (int i = 0; i < n->n_in; i++)
        x->in[i] = i == 0 ? reference : n->in[i];
    for (int i = 0; i < n->n_out; i++)
        x->out_types[i] = n->out_types[i] + LEAT_REF;
    leat_take_controls(x, n);
    return x;
}

static bool enters_value(const leat_node *n)
{
    return leat_is_enter(n) && !leat_dtype_is_ref(n->out_types[0]);
}

/* Makes n's input k a read that runs after all other inputs of n. */
static void read_for(rereader *r, leat_node *read, leat_node *n, int k, leat_out reference)
{
    leat_node *again = another(r, read);
    again->device = n->device;
    again->wanted = false;
    again->in[0] = reference;
    for (int i = 0; i < n->n_in; i++)
        if (i != k && n->in[i].node && !enters_value(n->in[i].node))
            leat_node_add_control(again, n->in[i].node);
    leat_take_controls(again, n);
    n->in[k] = (leat_out){again, 0};
}

/* Whether input k of n is a value that is passed into a condition or a loop. */
static bool goes_inside(const leat_node *n, int k)
{
    return k == 0 && (leat_is_switch(n) || (leat_is_enter(n) && leat_node_bool(n, "is_constant")));
}

/* Visits the consumers of the value at the queue's head. */
static void go_inside(rereader *r, leat_node *read, int at)
{
    const leat_node *value = r->queue[at];
    for (int k = r->uses.at[value->id]; k < r->uses.at[value->id + 1]; k++) {
        const leat_use *u = &r->uses.v[k];
        leat_node *n = u->node;
        if (u->input < 0 || leat_pass_device(r->c, n) != leat_pass_device(r->c, read))
            continue;
        const leat_out reference = {r->beside[at], u->output};
        if (goes_inside(n, u->input)) {
            r->beside[r->n_queue] = take_along(r, n, reference);
            r->queue[r->n_queue++] = n;
        } else if (at > 0 && !leat_node_is_flow(n)) {
            read_for(r, read, n, u->input, reference);
        }
    }
}

/* Passes the reference along wherever the value is passed: beside[i] is the reference for
 * queue[i]. */
static void follow(rereader *r, leat_node *v, leat_node *read)
{
    r->queue[0] = read;
    r->beside[0] = v;
    r->n_queue = 1;
    for (int at = 0; at < r->n_queue; at++)
        go_inside(r, read, at);
}

static bool is_read(const leat_use *u)
{
    return u->input == 0 && leat_is_identity(u->node);
}

static bool some_read_goes_inside(const rereader *r, const leat_node *v)
{
    for (int i = r->uses.at[v->id]; i < r->uses.at[v->id + 1]; i++) {
        const int id = r->uses.v[i].node->id;
        for (int k = r->uses.at[id]; is_read(&r->uses.v[i]) && k < r->uses.at[id + 1]; k++)
            if (goes_inside(r->uses.v[k].node, r->uses.v[k].input))
                return true;
    }
    return false;
}

/* Whether a consumer of v's value, in a condition or a loop that the value is passed into, runs
 * after an update outside. */
static bool used_inside_after(rereader *r, leat_node *v)
{
    const int stamp = v->id + 1;
    if (!some_read_goes_inside(r, v) || !mark_after(r, stamp))
        return false;
    r->n_queue = 0;
    for (int i = r->uses.at[v->id]; i < r->uses.at[v->id + 1]; i++)
        if (is_read(&r->uses.v[i]))
            r->queue[r->n_queue++] = r->uses.v[i].node;
    for (int at = 0, reads = r->n_queue; at < r->n_queue; at++) {
        const int id = r->queue[at]->id;
        for (int k = r->uses.at[id]; k < r->uses.at[id + 1]; k++) {
            const leat_use *u = &r->uses.v[k];
            if (goes_inside(u->node, u->input))
                r->queue[r->n_queue++] = u->node;
            else if (at >= reads && u->input >= 0 && !leat_node_is_flow(u->node) &&
                     r->after[u->node->id] == stamp)
                return true;
        }
    }
    return false;
}

leat_status leat_pass_reread_inside(leat_compile *c)
{
    rereader r = begin(c);
    for (int i = 0; i < r.n_nodes; i++) {
        leat_node *v = r.g->nodes[i];
        if (!is_variable(v))
            continue;
        find_writers(&r, v);
        const bool again = r.inside || (r.n_writers && used_inside_after(&r, v));
        for (int k = r.uses.at[v->id]; again && k < r.uses.at[v->id + 1]; k++) {
            leat_node *read = r.uses.v[k].node;
            if (r.uses.v[k].input == 0 && leat_is_identity(read) &&
                leat_pass_device(c, read) == leat_pass_device(c, v))
                follow(&r, v, read);
        }
    }
    end(&r);
    return NULL;
}
