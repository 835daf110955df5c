/* place_choose.c -- which device a group of nodes gets: see place.c. */
#include <stdlib.h>
#include <string.h>

#include "core/alloc.h"
#include "core/strbuf.h"
#include "passes/place_int.h"

void leat_place_init(placer *p)
{
    const leat_compile *c = p->c;
    p->groups = leat_new_array(group, c->graph->n_nodes + 1);
    p->class_of = leat_new_array(int, c->n_devices + 1);
    for (int i = 0; i < c->n_devices; i++) {
        const leat_target *d = &c->devices[i];
        bool foreign = c->by_process && !d->together;
        int k = 0;
        while (k < p->n_classes && (p->classes[k].foreign != foreign ||
                                    strcmp(p->classes[k].type, d->parsed.type) != 0))
            k++;
        if (k == p->n_classes && k < MAX_CLASSES)
            p->classes[p->n_classes++] = (kernel_class){d->parsed.type, foreign};
        p->class_of[i] = k < MAX_CLASSES ? k : -1; /* -1: of too many kinds, never chosen */
    }
}

void leat_place_release(placer *p)
{
    free(p->groups);
    free(p->class_of);
}

/* Which kernels a task of TensorFlow has, it knows itself. */
static bool has_kernel(const placer *p, const leat_node *n, int k)
{
    return p->classes[k].foreign || p->c->has_kernel(n, p->classes[k].type);
}

unsigned leat_place_classes(const placer *p, const leat_node *n)
{
    unsigned all = (1u << p->n_classes) - 1, can = 0;
    if (p->n_classes == 1)
        return all;
    for (int k = 0; k < p->n_classes; k++)
        can |= has_kernel(p, n, k) ? 1u << k : 0;
    return can ? can : all;
}

/* Of the devices that fit, the first one of the highest priority. */
static const leat_target *best_fit(const placer *p, const leat_device_name *asked, unsigned classes)
{
    const leat_target *best = NULL;
    for (int i = 0; i < p->c->n_devices; i++) {
        const leat_target *d = &p->c->devices[i];
        if (p->class_of[i] >= 0 && classes >> p->class_of[i] & 1 &&
            (!best || d->priority > best->priority) && leat_device_name_fits(&d->parsed, asked))
            best = d;
    }
    return best;
}

static leat_status no_device(const placer *p, const leat_node *n, const group *g)
{
    const leat_compile *c = p->c;
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

/* A member of the group that a device of class k cannot run. */
static const leat_node *member_without(placer *p, int root, int k)
{
    for (int i = 0; i < p->c->graph->n_nodes; i++) {
        const leat_node *n = p->c->graph->nodes[i];
        if (!n->dead && root_of(p, i) == root && !(leat_place_classes(p, n) >> k & 1))
            return n;
    }
    return p->c->graph->nodes[root];
}

static void put_kernels(const placer *p, const leat_node *n, leat_strbuf *b)
{
    bool any = false;
    leat_strbuf_printf(b, "\nOp: %s\nNode attrs: ", n->op->def->name);
    for (int i = 0, listed = 0; i < n->n_attrs; i++)
        if (n->attrs[i].kind == LEAT_ARG_TYPE)
            leat_strbuf_printf(b, "%s%s=%s", listed++ ? ", " : "", n->attrs[i].name,
                               leat_dtype_name((leat_dtype)n->attrs[i].i));
    leat_strbuf_puts(b, "\nRegistered kernels:\n");
    for (int k = 0; k < p->n_classes; k++)
        if (!p->classes[k].foreign && has_kernel(p, n, k)) {
            leat_strbuf_printf(b, "  device='%s'\n", p->classes[k].type);
            any = true;
        }
    if (!any)
        leat_strbuf_puts(b, "  <no registered kernels>\n");
}

/* There is such a device, d, but it cannot run all members of the group. */
static leat_status no_kernel(placer *p, int root, const leat_target *d)
{
    const group *g = &p->groups[root];
    const leat_node *n = member_without(p, root, p->class_of[d - p->c->devices]);
    char asked[160];
    leat_strbuf b = {0};
    leat_device_name_text(&g->asked, asked, sizeof(asked));
    if (g->asked.type[0])
        leat_strbuf_printf(&b,
                           "Could not satisfy explicit device specification '%s' because no "
                           "supported kernel for %s devices is available.",
                           asked, d->parsed.type);
    else
        leat_strbuf_printf(&b,
                           "no kind of devices%s%s has kernels for it and for the nodes that are "
                           "colocated with it",
                           asked[0] ? " at " : "", asked);
    if (g->asked_by && strcmp(g->asked_by, n->name) != 0)
        leat_strbuf_printf(&b, "\nIt is colocated with {{node %s}}, which asks for that device",
                           g->asked_by);
    put_kernels(p, n, &b);
    leat_status s = leat_error(INVALID_ARGUMENT, "Cannot assign a device for operation %s: %s",
                               n->name, leat_strbuf_text(&b));
    leat_strbuf_release(&b);
    return s;
}

leat_status leat_place_choose(placer *p, int root, const leat_node *n)
{
    group *g = &p->groups[root];
    leat_device_name any_type = g->asked, anything = LEAT_DEVICE_ANY;
    any_type.type[0] = 0;
    any_type.id = -1;
    g->chosen = best_fit(p, &g->asked, g->classes);
    if (!g->chosen && p->c->soft_placement)
        g->chosen = best_fit(p, &any_type, g->classes);
    if (!g->chosen && p->c->soft_placement)
        g->chosen = best_fit(p, &anything, g->classes);
    if (g->chosen)
        return NULL;
    const leat_target *without = best_fit(p, &g->asked, ~0u);
    return without ? no_kernel(p, root, without) : no_device(p, n, g);
}

/* Whether what leads along this edge is the state itself: a reference or a handle. */
static bool takes_state(const leat_node *user, int input)
{
    leat_dtype t = leat_out_dtype(user->in[input]);
    int at = 0;
    if (t == LEAT_RESOURCE || !leat_dtype_is_ref(t))
        return t == LEAT_RESOURCE;
    for (int a = 0; a < user->op->n_in; a++) {
        const leat_arg_info *arg = &user->op->in[a];
        at += arg->number_attr >= 0 ? (int)user->attrs[arg->number_attr].i
              : arg->list_attr >= 0 ? user->attrs[arg->list_attr].n
                                    : 1;
        if (input < at)
            return arg->is_ref;
    }
    return false;
}

/* What a node of the source graph keeps is used by all its users, whichever of them this run needs:
 * the classes that can run all of these. */
static unsigned classes_of_users(const placer *p, const leat_uses *u, const leat_node *owner,
                                 int *stack, int *seen, int search)
{
    unsigned classes = ~0u;
    int top = 0;
    stack[top++] = owner->id;
    while (top) {
        int id = stack[--top];
        for (int k = u->at[id]; k < u->at[id + 1]; k++) {
            const leat_node *user = u->v[k].node;
            if (u->v[k].input < 0 || seen[user->id] == search || !takes_state(user, u->v[k].input))
                continue;
            seen[user->id] = search;
            classes &= leat_place_classes(p, user);
            stack[top++] = user->id;
        }
    }
    return classes;
}

static bool owns_state(const leat_node *n)
{
    return !n->dead && !n->n_in && n->n_out &&
           (leat_dtype_is_ref(n->out_types[0]) || n->out_types[0] == LEAT_RESOURCE);
}

/* What the source graph has colocated with an owner of state is placed with it in those runs that
 * need both: an initial value that only the CPU can draw keeps the variable there in all runs. */
static void add_colocated(placer *p, const leat_node *n)
{
    const leat_attr *a = leat_node_attr(n, "_class");
    for (int i = 0; a && a->kind == LEAT_ARG_STRINGS && i < a->n; i++) {
        const leat_node *with = strncmp(a->strings[i], "loc:@", 5) == 0
                                    ? leat_graph_find(p->c->graph, a->strings[i] + 5)
                                    : NULL;
        if (with && owns_state(with))
            p->groups[root_of(p, with->id)].classes &= leat_place_classes(p, n);
    }
}

void leat_place_state(placer *p)
{
    const leat_graph *source = p->c->source;
    if (p->n_classes < 2 || !source)
        return;
    pthread_mutex_lock((pthread_mutex_t *)&source->lock);
    leat_uses u = leat_uses_of(source);
    int *stack = leat_new_array(int, source->n_nodes + 1);
    int *seen = leat_new_array(int, source->n_nodes + 1); /* by id: the last search that saw it */
    for (int i = 0; i < p->c->graph->n_nodes; i++) {
        const leat_node *n = p->c->graph->nodes[i];
        const leat_node *owner = owns_state(n) ? leat_graph_find(source, n->name) : NULL;
        if (owner)
            p->groups[root_of(p, i)].classes &= classes_of_users(p, &u, owner, stack, seen, i + 1);
    }
    for (int i = 0; i < source->n_nodes; i++)
        if (!source->nodes[i]->dead)
            add_colocated(p, source->nodes[i]);
    free(stack);
    free(seen);
    leat_uses_free(&u);
    pthread_mutex_unlock((pthread_mutex_t *)&source->lock);
}
