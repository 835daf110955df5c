/* groups.c -- see groups.h. */
#include "runtime/groups.h"

#include <stdlib.h>

#include "core/alloc.h"
#include "core/map.h"
#include "core/strbuf.h"
#include "runtime/send_recv.h"

/* A group with this many bytes or keys is full: later tensors do not wait for it. */
enum { GROUP_BYTES = 4 << 20, GROUP_KEYS = 256 };

/* A group that is not full yet. */
typedef struct growing {
    leat_rendezvous_group *group;
    int cap;
    double bytes;
} growing;

static double bytes_of(const leat_node *recv)
{
    int64_t count = leat_shape_count(&recv->out_shapes[0]);
    return count < 0 ? 0 : (double)count * (double)leat_dtype_size(recv->out_types[0]);
}

/* The groups made so far, and by process and wave those that are not full. */
typedef struct group_list {
    leat_rendezvous_group **v;
    int n, cap;
    leat_map open;
} group_list;

/* The group that is not full of the process and wave of a _Recv; makes one if there is none. */
static growing *group_for(group_list *l, const leat_node *recv)
{
    const char *process = leat_node_string(recv, "_process");
    leat_strbuf key = {0};
    leat_strbuf_printf(&key, "%s#%lld", process, (long long)leat_node_int(recv, "_wave"));
    growing *g = leat_map_get_n(&l->open, key.s, key.n);
    if (!g) {
        g = leat_new(growing);
        leat_map_put_n(&l->open, key.s, key.n, g);
    }
    leat_strbuf_release(&key);
    if (g->group && g->bytes < GROUP_BYTES && g->group->n < GROUP_KEYS)
        return g;
    *g = (growing){.group = leat_new(leat_rendezvous_group)};
    atomic_init(&g->group->refs, 1);
    g->group->task = leat_xstrdup(process);
    leat_grow(l->v, l->n, l->cap);
    l->v[l->n++] = g->group;
    return g;
}

static void add_graph(group_list *l, const leat_graph *g)
{
    for (int i = 0; i < g->n_nodes; i++) {
        const leat_node *x = g->nodes[i];
        if (x->dead || leat_node_role(x) != LEAT_ROLE_RECV || !leat_edge_grouped(x))
            continue;
        growing *to = group_for(l, x);
        leat_edge_state e = {0};
        leat_status s = leat_edge_init(x, &e);
        leat_status_free(s); /* leat_edge_init gives the same error when the kernel is bound */
        leat_grow(to->group->keys, to->group->n, to->cap);
        to->group->keys[to->group->n++] = e.key;
        to->bytes += bytes_of(x);
    }
}

leat_rendezvous_group **leat_groups_new(const leat_graph *const *graphs, int n_graphs, int *n_out)
{
    group_list l = {0};
    for (int i = 0; i < n_graphs; i++)
        add_graph(&l, graphs[i]);
    size_t at = 0;
    const char *key;
    void *g_open;
    while (leat_map_next(&l.open, &at, &key, &g_open))
        free(g_open);
    leat_map_release(&l.open);
    *n_out = l.n;
    return l.v;
}

void leat_rendezvous_group_unref(leat_rendezvous_group *g)
{
    if (atomic_fetch_sub(&g->refs, 1) != 1)
        return;
    for (int k = 0; k < g->n; k++)
        free((char *)g->keys[k].text);
    free(g->keys);
    free(g->task);
    free(g);
}

void leat_groups_free(leat_rendezvous_group **groups, int n)
{
    for (int i = 0; i < n; i++)
        leat_rendezvous_group_unref(groups[i]);
    free(groups);
}
