/* graph_tasks.c -- the tasks of a cluster that a graph's nodes are placed on. A session needs no
 * others, so that a worker neither waits for workers that it does not use nor fails with them. */
#include <stdlib.h>
#include <string.h>

#include "core/alloc.h"
#include "core/arena.h"
#include "graph/device_name.h"
#include "graph/graph_int.h"
#include "train/session_manager.h"

static bool has(const char *const *v, int n, const char *s)
{
    for (int i = 0; i < n; i++)
        if (strcmp(v[i], s) == 0)
            return true;
    return false;
}

const char *const *leat_graph_tasks(leat_graph *g)
{
    const char **v = NULL, *last = NULL;
    int n = 0, cap = 0;
    pthread_mutex_lock(&g->lock);
    for (int i = 0; i < g->n_nodes; i++) {
        leat_device_name d;
        char text[128];
        const char *device = g->nodes[i]->device;
        if (!device[0] || (last && strcmp(device, last) == 0))
            continue;
        last = device;
        leat_status s = leat_device_name_parse(device, &d);
        if (s || !d.job[0]) {
            leat_status_free(s);
            continue;
        }
        d.type[0] = 0;
        d.id = -1;
        leat_device_name_text(&d, text, sizeof(text));
        if (has(v, n, text))
            continue;
        leat_grow(v, n, cap);
        v[n++] = leat_xstrdup(text);
    }
    if (n) {
        leat_grow(v, n, cap);
        v[n] = NULL;
    }
    pthread_mutex_unlock(&g->lock);
    return v;
}

void leat_graph_tasks_free(const char *const *v)
{
    for (int i = 0; v && v[i]; i++)
        free((char *)v[i]);
    free((void *)v);
}
