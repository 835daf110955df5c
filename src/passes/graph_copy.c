/* graph_copy.c -- what passes share: copying nodes, their order, their uses. */
#include <stdlib.h>
#include <string.h>

#include "core/alloc.h"
#include "passes/pass.h"

leat_node *leat_node_clone(leat_graph *to, const leat_node *n)
{
    leat_arena *a = &to->arena;
    leat_node *c = leat_arena_new(a, leat_node);
    *c = *n;
    c->graph = to;
    c->id = to->n_nodes;
    c->name = leat_arena_strdup(a, n->name);
    c->device = leat_graph_device(to, n->device);
    c->in = leat_arena_array(a, leat_out, n->n_in);
    c->controls = NULL;
    c->n_controls = c->cap_controls = 0;
    c->mark = 0;
    c->dead = false;
    c->attrs = leat_arena_array(a, leat_attr, n->n_attrs);
    for (int i = 0; i < n->n_attrs; i++)
        c->attrs[i] = leat_attr_copy_of(a, n->op, i, &n->attrs[i]);
    c->out_types = leat_arena_memdup(a, n->out_types, sizeof(*n->out_types) * (size_t)n->n_out);
    c->out_shapes = leat_arena_memdup(a, n->out_shapes, sizeof(*n->out_shapes) * (size_t)n->n_out);
    c->out_handles = NULL;
    for (int i = 0; n->out_handles && i < n->n_out; i++) {
        if (!c->out_handles)
            c->out_handles = leat_arena_array(a, leat_handle_info *, n->n_out);
        if (n->out_handles[i])
            c->out_handles[i] = leat_arena_memdup(a, n->out_handles[i], sizeof(leat_handle_info));
    }
    leat_grow(to->nodes, to->n_nodes, to->cap_nodes);
    to->nodes[to->n_nodes++] = c;
    leat_map_put(&to->by_name, c->name, c);
    return c;
}

static bool back_edge(const leat_node *n, const leat_node *from)
{
    return leat_is_merge(n) && leat_is_next_iteration(from);
}

leat_node **leat_pass_order(const leat_graph *g, int *count_out)
{
    leat_uses u = leat_uses_of(g);
    int *pending = leat_new_array(int, g->n_nodes + 1), n = 0;
    leat_node **order = leat_new_array(leat_node *, g->n_nodes + 1);
    for (int i = 0; i < g->n_nodes; i++) {
        leat_node *x = g->nodes[i];
        for (int j = 0; j < x->n_in; j++)
            pending[i] += x->in[j].node && !back_edge(x, x->in[j].node);
        pending[i] += x->n_controls;
        if (!x->dead && pending[i] == 0)
            order[n++] = x;
    }
    for (int at = 0; at < n; at++) {
        int id = order[at]->id;
        for (int i = u.at[id]; i < u.at[id + 1]; i++) {
            leat_node *to = u.v[i].node;
            if (u.v[i].input >= 0 && back_edge(to, order[at]))
                continue;
            if (--pending[to->id] == 0)
                order[n++] = to;
        }
    }
    leat_uses_free(&u);
    free(pending);
    *count_out = n;
    return order;
}

leat_uses leat_uses_of(const leat_graph *g)
{
    leat_uses u = {.at = leat_new_array(int, g->n_nodes + 2)};
    int total = 0;
    for (int pass = 0; pass < 2; pass++) {
        for (int i = 0; i < g->n_nodes; i++) {
            leat_node *n = g->nodes[i];
            for (int j = 0; !n->dead && j < n->n_in + n->n_controls; j++) {
                bool data = j < n->n_in;
                const leat_node *from = data ? n->in[j].node : n->controls[j - n->n_in];
                if (!from)
                    continue;
                if (pass)
                    u.v[u.at[from->id + 1]] =
                        (leat_use){n, data ? j : -1, data ? n->in[j].index : -1};
                u.at[from->id + 1]++;
                total++;
            }
        }
        if (pass)
            break;
        /* at[i + 1] becomes the start of node i's uses; filling moves it to their end */
        int begin = 0;
        for (int i = 0; i < g->n_nodes; i++) {
            int n = u.at[i + 1];
            u.at[i + 1] = begin;
            begin += n;
        }
        u.v = leat_new_array(leat_use, total + 1);
    }
    return u;
}

void leat_uses_free(leat_uses *u)
{
    free(u->v);
    free(u->at);
    *u = (leat_uses){0};
}

bool leat_used_elsewhere(const leat_uses *u, const leat_node *n)
{
    for (int i = u->at[n->id]; i < u->at[n->id + 1]; i++)
        if (u->v[i].node->device != n->device && strcmp(u->v[i].node->device, n->device) != 0)
            return true;
    return false;
}

const leat_target *leat_pass_device(const leat_compile *c, const leat_node *n)
{
    for (int i = 0; i < c->n_devices; i++)
        if (c->devices[i].name == n->device || strcmp(c->devices[i].name, n->device) == 0)
            return &c->devices[i];
    return NULL;
}
