/* groups.c -- see groups.h. */
#include "runtime/groups.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "core/alloc.h"
#include "core/map.h"
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

/* The open group of the task and wave of a _Recv; a new one is added to the array. */
static growing *group_for(leat_map *open, const leat_node *recv, leat_rendezvous_group ***groups,
                          int *n)
{
    const char *sender = leat_node_string(recv, "send_device");
    const char *end = strstr(sender, "/device:");
    size_t len = end ? (size_t)(end - sender) : strlen(sender);
    char key[256];
    int k = snprintf(key, sizeof(key), "%.*s#%lld", (int)len, sender,
                     (long long)leat_node_int(recv, "_wave"));
    growing *g = leat_map_get_n(open, key, (size_t)k);
    if (g && g->bytes < GROUP_BYTES && g->group->n < GROUP_KEYS)
        return g;
    if (!g) {
        g = leat_new(growing);
        leat_map_put_n(open, key, (size_t)k, g);
    }
    *g = (growing){.group = leat_new(leat_rendezvous_group)};
    atomic_init(&g->group->refs, 1);
    g->group->task = leat_xstrndup(sender, len);
    *groups = leat_xrealloc(*groups, sizeof(**groups) * (size_t)(*n + 1));
    (*groups)[(*n)++] = g->group;
    return g;
}

void leat_groups_add(const leat_graph *g, leat_rendezvous_group ***groups, int *n)
{
    leat_map open = {0};
    for (int i = 0; i < g->n_nodes; i++) {
        const leat_node *x = g->nodes[i];
        if (x->dead || leat_node_role(x) != LEAT_ROLE_RECV || !leat_node_attr(x, "_wave"))
            continue;
        growing *to = group_for(&open, x, groups, n);
        leat_edge_state e = {0};
        leat_status s = leat_edge_init(x, &e);
        leat_status_free(s); /* leat_edge_init gives the same error when the kernel is bound */
        leat_grow(to->group->keys, to->group->n, to->cap);
        to->group->keys[to->group->n++] = e.key;
        to->bytes += bytes_of(x);
    }
    size_t at = 0;
    const char *key;
    void *g_open;
    while (leat_map_next(&open, &at, &key, &g_open))
        free(g_open);
    leat_map_release(&open);
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
