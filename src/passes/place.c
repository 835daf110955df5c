/* place.c -- decides on which device each node runs.
 *
 * Nodes that must be together form a group: those colocated by _class, those that use one
 * variable's reference or handle, those of one loop unless they ask for several devices. A group
 * gets one device: among those that fit what its members ask for and that have kernels for all of
 * them, the first one of the kind of the highest priority. With soft placement, a group for which
 * there is no such device goes, as a whole, to any device that can run it (place_choose.c).
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "core/alloc.h"
#include "graph/function.h"
#include "passes/place_int.h"

/* Error: two nodes of a group name different devices. */
static bool conflict(const leat_device_name *a, const leat_device_name *b)
{
    return (a->job[0] && b->job[0] && strcmp(a->job, b->job) != 0) ||
           (a->task >= 0 && b->task >= 0 && a->task != b->task) ||
           (a->replica >= 0 && b->replica >= 0 && a->replica != b->replica) ||
           (a->type[0] && b->type[0] && strcmp(a->type, b->type) != 0) ||
           (a->id >= 0 && b->id >= 0 && a->id != b->id);
}

static leat_status join(placer *p, const leat_node *a, const leat_node *b)
{
    int x = root_of(p, a->id), y = root_of(p, b->id);
    if (x == y)
        return NULL;
    group *gx = &p->groups[x], *gy = &p->groups[y];
    if (conflict(&gx->asked, &gy->asked)) {
        char dx[160], dy[160];
        LEAT_REQUIRE(p->c->soft_placement, INVALID_ARGUMENT,
                     "Cannot colocate nodes {{colocation_node %s}} and {{colocation_node %s}} "
                     "because no device type supports both of those nodes and the other nodes "
                     "colocated with them: %s asks for '%s', %s for '%s'",
                     a->name, b->name, gx->asked_by,
                     leat_device_name_text(&gx->asked, dx, sizeof(dx)), gy->asked_by,
                     leat_device_name_text(&gy->asked, dy, sizeof(dy)));
        gy->asked = LEAT_DEVICE_ANY; /* the device that the first one names is used */
    }
    gx->asked = leat_device_name_merge(&gx->asked, &gy->asked);
    if (!gx->asked_by)
        gx->asked_by = gy->asked_by;
    gy->parent = x;
    gx->joined = true;
    return NULL;
}

static leat_status join_class(placer *p, const leat_node *n)
{
    const leat_attr *a = leat_node_attr(n, "_class");
    for (int i = 0; a && a->kind == LEAT_ARG_STRINGS && i < a->n; i++) {
        if (strncmp(a->strings[i], "loc:@", 5) != 0)
            continue;
        const leat_node *with = leat_graph_find(p->c->graph, a->strings[i] + 5);
        if (with) /* nodes that a run does not need do not count */
            LEAT_TRY(join(p, with, n));
    }
    return NULL;
}

/* A node that uses a reference or a handle is placed with the variable, whatever device it names;
 * but one that passes handles to a function need not be: the function is placed with the
 * variables. */
static leat_status join_inputs(placer *p, const leat_node *n)
{
    int at = 0;
    for (int a = 0; a < n->op->n_in; a++) {
        const leat_arg_info *arg = &n->op->in[a];
        int count = arg->number_attr >= 0 ? (int)n->attrs[arg->number_attr].i
                    : arg->list_attr >= 0 ? n->attrs[arg->list_attr].n
                                          : 1;
        for (int i = 0; i < count; i++, at++) {
            const leat_node *from = n->in[at].node;
            leat_dtype t = leat_out_dtype(n->in[at]);
            if (!(arg->is_ref && leat_dtype_is_ref(t)) && t != LEAT_RESOURCE)
                continue;
            group *user = &p->groups[root_of(p, n->id)];
            if (conflict(&p->groups[root_of(p, from->id)].asked, &user->asked)) {
                if (leat_node_names_functions(n))
                    continue;
                user->asked = LEAT_DEVICE_ANY;
            }
            LEAT_TRY(join(p, from, n));
        }
    }
    return NULL;
}

/* The flow nodes of a loop variable are on one device, that of its Merge, whatever devices they
 * name. */
static leat_status join_around(placer *p, const leat_node *merge, const leat_node *n)
{
    group *of = &p->groups[root_of(p, n->id)];
    if (!of->joined && conflict(&p->groups[root_of(p, merge->id)].asked, &of->asked))
        of->asked = LEAT_DEVICE_ANY;
    return join(p, merge, n);
}

static leat_status join_rounds(placer *p)
{
    leat_graph *g = p->c->graph;
    for (int i = 0; i < g->n_nodes; i++) {
        const leat_node *n = g->nodes[i];
        if (n->dead)
            continue;
        bool merge = leat_is_merge(n);
        for (int j = 0; merge && j < n->n_in; j++) {
            const leat_node *from = n->in[j].node;
            if (leat_is_enter(from) || leat_is_next_iteration(from))
                LEAT_TRY(join_around(p, n, from));
        }
        const leat_node *from = n->n_in ? n->in[0].node : NULL;
        if ((leat_is_switch(n) && leat_is_merge(from)) || (leat_is_exit(n) && leat_is_switch(from)))
            LEAT_TRY(join_around(p, from, n));
    }
    return NULL;
}

/* The other nodes of a loop are in the same group, except those that name another device. */
static leat_status join_loops(placer *p)
{
    leat_graph *g = p->c->graph;
    LEAT_TRY(join_rounds(p));
    leat_uses u = leat_uses_of(g);
    int *stack = leat_new_array(int, g->n_nodes + 1);
    bool *seen = leat_new_array(bool, g->n_nodes + 1);
    leat_status s = NULL;
    for (int i = 0; i < g->n_nodes && !s; i++) {
        leat_node *n = g->nodes[i];
        if (n->dead || seen[i] || !leat_is_enter(n))
            continue;
        int top = 0;
        stack[top++] = i;
        seen[i] = true;
        while (top && !s) {
            const leat_node *x = g->nodes[stack[--top]];
            if (leat_is_exit(x))
                continue;
            for (int k = u.at[x->id]; k < u.at[x->id + 1] && !s; k++) {
                leat_node *to = u.v[k].node;
                if (!conflict(&p->groups[root_of(p, i)].asked,
                              &p->groups[root_of(p, to->id)].asked))
                    s = join(p, n, to);
                if (!seen[to->id]) {
                    seen[to->id] = true;
                    stack[top++] = to->id;
                }
            }
        }
    }
    free(stack);
    free(seen);
    leat_uses_free(&u);
    return s;
}

static leat_status make_groups(placer *p)
{
    leat_graph *g = p->c->graph;
    for (int i = 0; i < g->n_nodes; i++) {
        leat_node *n = g->nodes[i];
        group *x = &p->groups[i];
        *x = (group){.parent = i, .asked_by = n->device[0] ? n->name : NULL, .classes = ~0u};
        leat_status s = leat_device_name_parse(n->device, &x->asked);
        if (s)
            return leat_status_suffix(s, "\n\t [[{{node %s}}]]", n->name);
    }
    for (int i = 0; i < g->n_nodes; i++) {
        if (g->nodes[i]->dead)
            continue;
        LEAT_TRY(leat_pass_stopped(p->c, i));
        LEAT_TRY(join_class(p, g->nodes[i]));
        LEAT_TRY(join_inputs(p, g->nodes[i]));
    }
    return join_loops(p);
}

static leat_status place_all(placer *p)
{
    leat_graph *g = p->c->graph;
    leat_place_state(p);
    for (int i = 0; i < g->n_nodes; i++)
        if (!g->nodes[i]->dead)
            p->groups[root_of(p, i)].classes &= leat_place_classes(p, g->nodes[i]);
    for (int i = 0; i < g->n_nodes; i++) {
        int root = root_of(p, i);
        if (g->nodes[i]->dead)
            continue;
        if (!p->groups[root].chosen)
            LEAT_TRY(leat_place_choose(p, root, g->nodes[i]));
        g->nodes[i]->device = p->groups[root].chosen->name;
    }
    return NULL;
}

/* The nodes that use an argument are placed where its value belongs, as those of a variable's
 * handle are; but the argument itself is given to this process. */
static void bring_args(const leat_compile *c)
{
    for (int i = 0; c->client_device && i < c->graph->n_nodes; i++) {
        leat_node *n = c->graph->nodes[i];
        if (n->dead || leat_node_role(n) != LEAT_ROLE_ARG)
            continue;
        for (int d = 0; d < c->n_devices; d++)
            if (c->devices[d].process != 0 && strcmp(c->devices[d].name, n->device) == 0)
                n->device = c->client_device;
    }
}

leat_status leat_pass_place(leat_compile *c)
{
    placer p = {.c = c};
    leat_place_init(&p);
    leat_status s = make_groups(&p);
    if (!s)
        s = place_all(&p);
    if (!s)
        bring_args(c);
    if (!s && c->placements)
        leat_placements_nodes(c->placements, c->graph);
    leat_place_release(&p);
    return s;
}
