/* place_list.c -- log_device_placement: writes which devices a session has, and on which device
 * each node is placed, in TensorFlow's words. A session writes a node once, in the order in which
 * TensorFlow does: first those that have inputs. */
#include <pthread.h>
#include <stdlib.h>
#include <string.h>

#include "core/alloc.h"
#include "core/log.h"
#include "core/map.h"
#include "core/strbuf.h"
#include "passes/pass.h"

struct leat_placements {
    pthread_mutex_t lock; /* guards seen */
    leat_map seen;        /* by "NAME DEVICE" of the nodes that were written */
};

leat_placements *leat_placements_new(void)
{
    leat_placements *p = leat_new(leat_placements);
    pthread_mutex_init(&p->lock, NULL);
    return p;
}

void leat_placements_free(leat_placements *p)
{
    if (!p)
        return;
    leat_map_release(&p->seen);
    pthread_mutex_destroy(&p->lock);
    free(p);
}

void leat_placements_devices(const char *const *names, const char *const *what, int n)
{
    leat_strbuf b = {0};
    for (int i = 0; i < n; i++)
        if (what[i])
            leat_strbuf_printf(&b, "%s -> %s\n", names[i], what[i]);
    if (b.n) {
        leat_strbuf all = {0};
        leat_strbuf_printf(&all, "Device mapping:\n%s", leat_strbuf_text(&b));
        leat_log_print(leat_strbuf_text(&all), __FILE__, __LINE__);
        leat_strbuf_release(&all);
    } else {
        leat_log_print("Device mapping: no known devices.\n", __FILE__, __LINE__);
    }
    leat_strbuf_release(&b);
}

/* Whether the node gives a value without inputs, such as a constant. */
static bool generates(const leat_node *n)
{
    return n->n_in == 0 && n->n_out == 1 && !leat_dtype_is_ref(n->out_types[0]);
}

/* Adds the node's line, unless the session has written it before. */
static void add_line(leat_placements *p, const leat_node *n, leat_strbuf *key, leat_strbuf *b)
{
    leat_strbuf_clear(key);
    leat_strbuf_printf(key, "%s %s", n->name, n->device);
    if (leat_map_get_n(&p->seen, key->s, key->n))
        return;
    leat_map_put_n(&p->seen, key->s, key->n, p);
    leat_strbuf_printf(b, "%s: (%s): %s\n", n->name, n->op->def->name, n->device);
}

void leat_placements_nodes(leat_placements *p, const leat_graph *g)
{
    leat_strbuf b = {0}, key = {0};
    int count;
    leat_node **order = leat_pass_order(g, &count);
    pthread_mutex_lock(&p->lock);
    for (int second = 0; second < 2; second++)
        for (int i = 0; i < count; i++)
            /* Names that begin so are those of feeds and fetches of the run. */
            if (order[i]->name[0] != '_' && generates(order[i]) == second)
                add_line(p, order[i], &key, &b);
    pthread_mutex_unlock(&p->lock);
    free(order);
    if (b.n)
        leat_log_print(leat_strbuf_text(&b), __FILE__, __LINE__);
    leat_strbuf_release(&b);
    leat_strbuf_release(&key);
}
