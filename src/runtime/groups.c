/* groups.c -- see groups.h. */
#include "runtime/groups.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "core/alloc.h"
#include "core/map.h"
#include "runtime/send_recv.h"

/* A group that holds so many bytes takes no more: the next ones need not wait for them. */
enum { GROUP_BYTES = 4 << 20, GROUP_KEYS = 256 };

/* One that grows. */
typedef struct growing {
    leat_rendezvous_key *keys;
    int n, cap;
    double bytes;
    char *task;
} growing;

static double bytes_of(const leat_node *recv)
{
    int64_t count = leat_shape_count(&recv->out_shapes[0]);
    return count < 0 ? 0 : (double)count * (double)leat_dtype_size(recv->out_types[0]);
}

static growing *group_for(leat_map *open, const leat_node *n, growing ***all, int *n_all, int *cap)
{
    const char *sender = leat_node_string(n, "send_device");
    const char *end = strstr(sender, "/device:");
    size_t len = end ? (size_t)(end - sender) : strlen(sender);
    char key[256];
    int k = snprintf(key, sizeof(key), "%.*s#%lld", (int)len, sender,
                     (long long)leat_node_int(n, "_wave"));
    growing *g = leat_map_get_n(open, key, (size_t)k);
    if (g && g->bytes < GROUP_BYTES && g->n < GROUP_KEYS)
        return g;
    leat_grow(*all, *n_all, *cap);
    g = (*all)[(*n_all)++] = leat_new(growing);
    g->task = leat_xstrndup(sender, len);
    leat_map_put_n(open, key, (size_t)k, g);
    return g;
}

void leat_groups_add(const leat_graph *g, leat_rendezvous_group **groups, int *n)
{
    leat_map open = {0};
    growing **all = NULL;
    int n_all = 0, cap = 0;
    for (int i = 0; i < g->n_nodes; i++) {
        const leat_node *x = g->nodes[i];
        if (x->dead || !leat_node_is(x, "_Recv") || !leat_node_attr(x, "_wave"))
            continue;
        growing *to = group_for(&open, x, &all, &n_all, &cap);
        leat_edge_state e = {0};
        leat_status s = leat_edge_init(x, &e);
        leat_status_free(s); /* the kernel's own init says it again */
        leat_grow(to->keys, to->n, to->cap);
        to->keys[to->n++] = e.key;
        to->bytes += bytes_of(x);
    }
    if (n_all)
        *groups = leat_xrealloc(*groups, sizeof(**groups) * (size_t)(*n + n_all));
    for (int i = 0; i < n_all; i++) {
        (*groups)[(*n)++] = (leat_rendezvous_group){all[i]->task, all[i]->keys, all[i]->n};
        free(all[i]);
    }
    free(all);
    leat_map_release(&open);
}

void leat_groups_free(leat_rendezvous_group *groups, int n)
{
    for (int i = 0; i < n; i++) {
        for (int k = 0; k < groups[i].n; k++)
            free((char *)groups[i].keys[k].text);
        free((void *)groups[i].keys);
        free((char *)groups[i].task);
    }
    free(groups);
}
