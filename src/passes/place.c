/* place.c -- decides on which device each node runs.
 *
 * Nodes that must be together form a group: those colocated by _class, those that use one
 * variable's reference or handle, those of one loop unless they ask for several devices. A group
 * gets the first device that fits what all its members ask for and has kernels for all of them.
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "core/alloc.h"
#include "core/log.h"
#include "core/strbuf.h"
#include "passes/pass.h"

typedef struct group {
    int parent;             /* union-find, by node id */
    leat_device_name asked; /* of the whole group, at its root */
    const char *asked_by;   /* a node that asked, for messages */
} group;

typedef struct placer {
    leat_compile *c;
    group *groups;
} placer;

static int root_of(placer *p, int i)
{
    while (p->groups[i].parent != i)
        i = p->groups[i].parent = p->groups[p->groups[i].parent].parent;
    return i;
}

/* What two nodes ask for cannot be one device. */
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
        gy->asked = LEAT_DEVICE_ANY; /* the first one's wish counts */
    }
    gx->asked = leat_device_name_merge(&gx->asked, &gy->asked);
    if (!gx->asked_by)
        gx->asked_by = gy->asked_by;
    gy->parent = x;
    return NULL;
}

static leat_status join_class(placer *p, const leat_node *n)
{
    const leat_attr *a = leat_node_attr(n, "_class");
    for (int i = 0; a && a->kind == LEAT_ARG_STRINGS && i < a->n; i++) {
        if (strncmp(a->strings[i], "loc:@", 5) != 0)
            continue;
        const leat_node *with = leat_graph_find(p->c->graph, a->strings[i] + 5);
        if (with) /* what a run does not need holds nobody */
            LEAT_TRY(join(p, with, n));
    }
    return NULL;
}

/* The user of a reference or of a handle goes where the variable is, whatever it asks for. */
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
            if (conflict(&p->groups[root_of(p, from->id)].asked, &user->asked))
                user->asked = LEAT_DEVICE_ANY;
            LEAT_TRY(join(p, from, n));
        }
    }
    return NULL;
}

/* A value that goes round in a loop has its flow nodes on one device, its Merge's: what they ask
 * for counts less than that. */
static leat_status join_around(placer *p, const leat_node *merge, const leat_node *n)
{
    int y = root_of(p, n->id);
    bool alone = conflict(&p->groups[root_of(p, merge->id)].asked, &p->groups[y].asked);
    for (int i = 0; i < p->c->graph->n_nodes && alone; i++)
        alone = i == n->id || root_of(p, i) != y;
    if (alone)
        p->groups[y].asked = LEAT_DEVICE_ANY;
    return join(p, merge, n);
}

static leat_status join_rounds(placer *p)
{
    leat_graph *g = p->c->graph;
    for (int i = 0; i < g->n_nodes; i++) {
        const leat_node *n = g->nodes[i];
        if (n->dead)
            continue;
        bool merge = leat_node_is(n, "Merge") || leat_node_is(n, "RefMerge");
        for (int j = 0; merge && j < n->n_in; j++) {
            const leat_node *from = n->in[j].node;
            if (leat_node_is(from, "Enter") || leat_node_is(from, "RefEnter") ||
                leat_node_is(from, "NextIteration") || leat_node_is(from, "RefNextIteration"))
                LEAT_TRY(join_around(p, n, from));
        }
        const leat_node *from = n->n_in ? n->in[0].node : NULL;
        if ((leat_node_is(n, "Switch") && leat_node_is(from, "Merge")) ||
            (leat_node_is(n, "Exit") && leat_node_is(from, "Switch")))
            LEAT_TRY(join_around(p, from, n));
    }
    return NULL;
}

/* The rest of a loop goes with it, but for nodes that ask for another device. */
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
        if (n->dead || seen[i] || !(leat_node_is(n, "Enter") || leat_node_is(n, "RefEnter")))
            continue;
        int top = 0;
        stack[top++] = i;
        seen[i] = true;
        while (top && !s) {
            const leat_node *x = g->nodes[stack[--top]];
            if (leat_node_is(x, "Exit") || leat_node_is(x, "RefExit"))
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

static const leat_target *first_fit(const leat_compile *c, const leat_device_name *asked)
{
    for (int i = 0; i < c->n_devices; i++)
        if (leat_device_name_fits(&c->devices[i].parsed, asked))
            return &c->devices[i];
    return NULL;
}

static leat_status no_device(const leat_compile *c, const leat_node *n, const group *g)
{
    char asked[160];
    leat_strbuf b = {0};
    for (int i = 0; i < c->n_devices; i++)
        leat_strbuf_printf(&b, "%s%s", i ? ", " : " ", c->devices[i].name);
    leat_status s = leat_error(
        INVALID_ARGUMENT,
        "Cannot assign a device for operation %s: {{node %s}} was explicitly assigned to %s but "
        "available devices are [%s ]. Make sure the device specification refers to a valid device.",
        n->name, g->asked_by ? g->asked_by : n->name,
        leat_device_name_text(&g->asked, asked, sizeof(asked)), leat_strbuf_text(&b));
    leat_strbuf_release(&b);
    return s;
}

/* The device of a group, found when its first node asks, and kept as that node's. */
static leat_status choose(placer *p, leat_node *n, const leat_target **chosen)
{
    leat_compile *c = p->c;
    group *g = &p->groups[root_of(p, n->id)];
    const leat_target *d = first_fit(c, &g->asked);
    leat_device_name any_type = g->asked, anything = LEAT_DEVICE_ANY;
    any_type.type[0] = 0;
    any_type.id = -1;
    if (!d && c->soft_placement)
        d = first_fit(c, &any_type);
    if (!d && c->soft_placement)
        d = first_fit(c, &anything);
    if (!d)
        return no_device(c, n, g);
    *chosen = d;
    return NULL;
}

/* To the log; to standard error if nobody listens, since somebody asked. */
static void list(const leat_compile *c)
{
    leat_strbuf b = {0};
    leat_strbuf_puts(&b, "Device mapping:\n");
    for (int i = 0; i < c->n_devices; i++)
        leat_strbuf_printf(&b, "%s -> %s device\n", c->devices[i].name, c->devices[i].parsed.type);
    for (int i = 0; i < c->graph->n_nodes; i++) {
        const leat_node *n = c->graph->nodes[i];
        if (!n->dead && n->name[0] != '_')
            leat_strbuf_printf(&b, "%s: (%s): %s\n", n->name, n->op->def->name, n->device);
    }
    if (leat_log_wanted(LEAT_LOG_INFO))
        LEAT_LOG(INFO, "%s", leat_strbuf_text(&b));
    else
        fputs(leat_strbuf_text(&b), stderr);
    leat_strbuf_release(&b);
}

static leat_status make_groups(placer *p)
{
    leat_graph *g = p->c->graph;
    for (int i = 0; i < g->n_nodes; i++) {
        leat_node *n = g->nodes[i];
        group *x = &p->groups[i];
        *x = (group){.parent = i, .asked_by = n->device[0] ? n->name : NULL};
        leat_status s = leat_device_name_parse(n->device, &x->asked);
        if (s)
            return leat_status_suffix(s, "\n\t [[{{node %s}}]]", n->name);
    }
    for (int i = 0; i < g->n_nodes; i++) {
        if (g->nodes[i]->dead)
            continue;
        LEAT_TRY(join_class(p, g->nodes[i]));
        LEAT_TRY(join_inputs(p, g->nodes[i]));
    }
    return join_loops(p);
}

static leat_status place_all(placer *p)
{
    leat_compile *c = p->c;
    for (int i = 0; i < c->graph->n_nodes; i++) {
        leat_node *n = c->graph->nodes[i];
        const leat_target *d = NULL;
        if (n->dead)
            continue;
        LEAT_TRY(choose(p, n, &d));
        if (!c->has_kernel(n, d->parsed.type) && c->soft_placement)
            for (int k = 0; k < c->n_devices && !c->has_kernel(n, d->parsed.type); k++)
                d = &c->devices[k];
        n->device = d->name;
    }
    return NULL;
}

leat_status leat_pass_place(leat_compile *c)
{
    placer p = {.c = c, .groups = leat_new_array(group, c->graph->n_nodes + 1)};
    leat_status s = make_groups(&p);
    if (!s)
        s = place_all(&p);
    if (!s && c->log_placement)
        list(c);
    free(p.groups);
    return s;
}
