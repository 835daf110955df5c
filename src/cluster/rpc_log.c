/* rpc_log.c -- see rpc_log.h. */
#include "cluster/rpc_log.h"

#include <inttypes.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "core/alloc.h"
#include "proto/cluster.pb-c.h"
#include "proto/wire.h"

/* With more steps and devices than this the log is taken to be forgotten, and all of it is dropped,
 * as in TensorFlow. */
enum { ROWS_MAX = 1024 };

/* What one device received in one step. */
typedef struct leat_rpc_rows {
    int64_t step;
    char *device;
    leat_strbuf stats; /* a DeviceStepStats, encoded */
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
    atomic_store(&l->wanted, n > 0 ? n : 0); /* a master may turn the log off twice */
    pthread_mutex_unlock(&l->lock);
}

int64_t leat_rpc_log_now(void)
{
    struct timespec t;
    clock_gettime(CLOCK_REALTIME, &t);
    return (int64_t)t.tv_sec * 1000000 + t.tv_nsec / 1000;
}

static void rows_free(rows *r)
{
    leat_strbuf_release(&r->stats);
    free(r->device);
    free(r);
}

static void clear(leat_rpc_log *l)
{
    while (l->rows) {
        rows *r = l->rows;
        l->rows = r->next;
        rows_free(r);
    }
    l->n_rows = 0;
}

void leat_rpc_log_clear(leat_rpc_log *l)
{
    pthread_mutex_lock(&l->lock);
    clear(l);
    pthread_mutex_unlock(&l->lock);
}

/* A row that is too large for a message is left out. */
static void put_stats(rows *r, const Leat__DeviceStepStats *stats)
{
    leat_status_free(leat_proto_pack(stats, &r->stats));
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
    Leat__DeviceStepStats stats = LEAT__DEVICE_STEP_STATS__INIT;
    stats.device = r->device;
    put_stats(r, &stats);
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

/* Adds a row to the rows of a step and a device. In protobuf's format the bytes of two messages,
 * one after the other, are a message with the rows of both. */
static void add_row(leat_rpc_log *l, int64_t step, const char *device, size_t n,
                    Leat__NodeExecStats *row)
{
    Leat__DeviceStepStats stats = LEAT__DEVICE_STEP_STATS__INIT;
    stats.node_stats = &row;
    stats.n_node_stats = 1;
    pthread_mutex_lock(&l->lock);
    put_stats(find(l, step, device, n), &stats);
    pthread_mutex_unlock(&l->lock);
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
    leat_strbuf label = {0};
    put_label(&label, part, n, bytes, end - start);
    Leat__AllocationDescription allocation = LEAT__ALLOCATION_DESCRIPTION__INIT;
    Leat__TensorDescription description = LEAT__TENSOR_DESCRIPTION__INIT;
    Leat__NodeOutput output = LEAT__NODE_OUTPUT__INIT, *outputs = &output;
    Leat__NodeExecStats row = LEAT__NODE_EXEC_STATS__INIT;
    allocation.requested_bytes = bytes;
    description.allocation_description = &allocation;
    output.tensor_description = &description;
    row.node_name = "RecvTensor";
    row.all_start_micros = start;
    row.op_end_rel_micros = end - start;
    row.all_end_rel_micros = end - start;
    row.output = &outputs;
    row.n_output = 1;
    row.timeline_label = label.s;
    add_row(l, step, part[2], n[2], &row);
    leat_strbuf_release(&label);
}

/* Removes the rows of a step from the log, and gives them, linked. */
static rows *take_off(leat_rpc_log *l, int64_t step, int *n_out)
{
    rows *taken = NULL;
    *n_out = 0;
    pthread_mutex_lock(&l->lock);
    for (rows **at = &l->rows; *at;) {
        rows *r = *at;
        if (r->step != step) {
            at = &r->next;
            continue;
        }
        *at = r->next;
        r->next = taken;
        taken = r;
        l->n_rows--;
        ++*n_out;
    }
    pthread_mutex_unlock(&l->lock);
    return taken;
}

leat_status leat_rpc_log_take(leat_rpc_log *l, int64_t step, leat_strbuf *response)
{
    int n;
    rows *taken = take_off(l, step, &n);
    if (!taken)
        return NULL;
    Leat__StepStats stats = LEAT__STEP_STATS__INIT;
    Leat__LabeledStepStats labeled = LEAT__LABELED_STEP_STATS__INIT, *steps = &labeled;
    Leat__LoggingResponse r = LEAT__LOGGING_RESPONSE__INIT;
    stats.dev_stats = leat_new_array(Leat__DeviceStepStats *, n);
    labeled.step_id = step;
    labeled.step_stats = &stats;
    r.step = &steps;
    r.n_step = 1;
    leat_status s = NULL;
    while (taken) {
        rows *next = taken->next;
        if (!s)
            s = LEAT_UNPACK(device_step_stats, taken->stats.s, taken->stats.n,
                            &stats.dev_stats[stats.n_dev_stats]);
        stats.n_dev_stats += !s;
        rows_free(taken);
        taken = next;
    }
    if (!s)
        s = leat_proto_pack(&r, response);
    for (size_t i = 0; i < stats.n_dev_stats; i++)
        leat_proto_free(stats.dev_stats[i]);
    free(stats.dev_stats);
    return s;
}
