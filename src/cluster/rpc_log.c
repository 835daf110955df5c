/* rpc_log.c -- see rpc_log.h. */
#include "cluster/rpc_log.h"

#include <inttypes.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "cluster/tensor_wire.h"
#include "core/alloc.h"

/* Steps that nobody asks for: then something is wrong, and all is forgotten. As in TensorFlow. */
enum { ROWS_MAX = 1024 };

/* What came in one step for one device. */
typedef struct leat_rpc_rows {
    int64_t step;
    char *device;
    leat_strbuf nodes; /* DeviceStepStats.node_stats, encoded */
    struct leat_rpc_rows *next;
} rows;

void leat_rpc_log_init(leat_rpc_log *l)
{
    *l = (leat_rpc_log){0};
    pthread_mutex_init(&l->lock, NULL);
}

void leat_rpc_log_release(leat_rpc_log *l)
{
    leat_rpc_log_clear(l);
    pthread_mutex_destroy(&l->lock);
}

void leat_rpc_log_turn(leat_rpc_log *l, bool on)
{
    pthread_mutex_lock(&l->lock);
    int n = atomic_load(&l->wanted) + (on ? 1 : -1);
    atomic_store(&l->wanted, n > 0 ? n : 0); /* a master may turn it off twice */
    pthread_mutex_unlock(&l->lock);
}

int64_t leat_rpc_log_now(void)
{
    struct timespec t;
    clock_gettime(CLOCK_REALTIME, &t);
    return (int64_t)t.tv_sec * 1000000 + t.tv_nsec / 1000;
}

/* Takes *at off the list. */
static void drop(leat_rpc_log *l, rows **at)
{
    rows *r = *at;
    *at = r->next;
    l->n_rows--;
    leat_strbuf_release(&r->nodes);
    free(r->device);
    free(r);
}

static void clear(leat_rpc_log *l)
{
    while (l->rows)
        drop(l, &l->rows);
}

void leat_rpc_log_clear(leat_rpc_log *l)
{
    pthread_mutex_lock(&l->lock);
    clear(l);
    pthread_mutex_unlock(&l->lock);
}

static rows *find(leat_rpc_log *l, int64_t step, const char *device, size_t n)
{
    for (rows *r = l->rows; r; r = r->next)
        if (r->step == step && strlen(r->device) == n && memcmp(r->device, device, n) == 0)
            return r;
    if (l->n_rows >= ROWS_MAX)
        clear(l);
    rows *r = leat_new(rows);
    r->step = step;
    r->device = leat_xstrndup(device, n);
    r->next = l->rows;
    l->rows = r;
    l->n_rows++;
    return r;
}

static void put_label(leat_strbuf *b, const char *const part[5], const size_t n[5], int64_t bytes,
                      int64_t micros)
{
    double mb = (double)bytes / 1048576, rate = 8.0 * (double)bytes / (double)(micros ? micros : 1);
    if (mb >= 0.1)
        leat_strbuf_printf(b, "[%.1fMB] ", mb);
    else
        leat_strbuf_printf(b, "[%" PRId64 "B] ", bytes);
    if (rate >= 1000)
        leat_strbuf_printf(b, "[%.1fGb/s] ", rate / 1000);
    else
        leat_strbuf_printf(b, "[%fMb/s] ", rate);
    leat_strbuf_printf(b, "%.*s from %.*s to %.*s", (int)n[3], part[3], (int)n[0], part[0],
                       (int)n[2], part[2]);
}

/* A message inside another one; takes what is in sub. */
static void put_sub(leat_strbuf *b, int field, leat_strbuf *sub)
{
    leat_put_bytes(b, field, leat_strbuf_text(sub), sub->n);
    leat_strbuf_release(sub);
}

void leat_rpc_log_add(leat_rpc_log *l, int64_t step, const char *key, int64_t bytes, int64_t start,
                      int64_t end)
{
    const char *part[5]; /* sender; incarnation; receiver; name; frame */
    size_t n[5];
    for (int i = 0; i < 5; i++) {
        part[i] = key;
        n[i] = strcspn(key, ";");
        key += n[i];
        if (!*key && i < 4)
            return;
        key += *key == ';';
    }
    leat_strbuf node = {0}, label = {0}, output = {0}, description = {0}, allocation = {0};
    put_label(&label, part, n, bytes, end - start);
    leat_put_text(&node, 1, "RecvTensor");
    leat_put_int(&node, 2, start);
    leat_put_int(&node, 4, end - start);
    leat_put_int(&node, 5, end - start);
    leat_put_int(&allocation, 1, bytes);
    put_sub(&description, 4, &allocation);
    put_sub(&output, 3, &description);
    put_sub(&node, 7, &output);
    put_sub(&node, 8, &label);
    pthread_mutex_lock(&l->lock);
    put_sub(&find(l, step, part[2], n[2])->nodes, 2, &node);
    pthread_mutex_unlock(&l->lock);
}

void leat_rpc_log_take(leat_rpc_log *l, int64_t step, leat_strbuf *response)
{
    leat_strbuf stats = {0}, labeled = {0};
    bool any = false;
    pthread_mutex_lock(&l->lock);
    for (rows **at = &l->rows; *at;) {
        if ((*at)->step != step) {
            at = &(*at)->next;
            continue;
        }
        leat_strbuf device = {0};
        leat_put_text(&device, 1, (*at)->device);
        leat_strbuf_add(&device, leat_strbuf_text(&(*at)->nodes), (*at)->nodes.n);
        put_sub(&stats, 1, &device);
        drop(l, at);
        any = true;
    }
    pthread_mutex_unlock(&l->lock);
    if (!any)
        return;
    leat_put_int(&labeled, 1, step);
    put_sub(&labeled, 2, &stats);
    put_sub(response, 1, &labeled);
}
