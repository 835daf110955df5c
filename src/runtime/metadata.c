/* metadata.c -- times and memory of a traced run, as a RunMetadata message. chrome_trace.c makes a
 * Chrome trace of them. */
#include <stdlib.h>
#include <string.h>

#include "core/alloc.h"
#include "core/strbuf.h"
#include "proto/config.pb-c.h"
#include "proto/wire.h"
#include "runtime/session_int.h"
#include "runtime/trace.h"

struct leat_metadata {
    leat_object object;
    leat_trace *trace;
};

leat_metadata *leat_metadata_of(leat_trace *t)
{
    leat_metadata *m = leat_new_object(leat_metadata, METADATA);
    m->trace = t;
    return m;
}

void leat_metadata_free(leat_metadata *m)
{
    if (!m)
        return;
    if (!LEAT_USABLE(METADATA, m))
        return;
    leat_trace_free(m->trace);
    leat_object_free(&m->object);
}

static Leat__NodeExecStats *node_stats(const leat_trace_row *r, int64_t offset)
{
    Leat__NodeExecStats *s = leat_xmalloc(sizeof(*s));
    leat__node_exec_stats__init(s);
    int64_t took = r->end_ns - r->start_ns, start = r->start_ns + offset;
    s->node_name = leat_xstrdup(r->name);
    s->timeline_label = leat_xstrdup(r->label);
    s->all_start_micros = s->scheduled_micros = start / 1000;
    s->all_start_nanos = s->scheduled_nanos = start;
    s->op_end_rel_micros = s->all_end_rel_micros = (took + 999) / 1000;
    s->op_end_rel_nanos = s->all_end_rel_nanos = took;
    s->thread_id = (uint32_t)r->thread;
    Leat__AllocatorMemoryUsed *m = leat_xmalloc(sizeof(*m));
    leat__allocator_memory_used__init(m);
    m->allocator_name = leat_xstrdup("cpu");
    m->total_bytes = m->peak_bytes = m->live_bytes = r->bytes;
    s->memory = leat_new_array(Leat__AllocatorMemoryUsed *, 1);
    s->memory[s->n_memory++] = m;
    return s;
}

static Leat__DeviceStepStats *device_stats(Leat__StepStats *all, const char *device, int most)
{
    for (size_t i = 0; i < all->n_dev_stats; i++)
        if (strcmp(all->dev_stats[i]->device, device) == 0)
            return all->dev_stats[i];
    Leat__DeviceStepStats *d = leat_xmalloc(sizeof(*d));
    leat__device_step_stats__init(d);
    d->device = leat_xstrdup(device);
    d->node_stats = leat_new_array(Leat__NodeExecStats *, most + 1);
    all->dev_stats[all->n_dev_stats++] = d;
    return d;
}

static Leat__StepStats *step_stats(const leat_trace *trace)
{
    int n;
    const leat_trace_row *rows = leat_trace_rows(trace, &n);
    Leat__StepStats *p = leat_xmalloc(sizeof(*p));
    leat__step_stats__init(p);
    p->dev_stats = leat_new_array(Leat__DeviceStepStats *, n + 1);
    for (int i = 0; i < n; i++) {
        Leat__DeviceStepStats *d = device_stats(p, rows[i].device, n);
        d->node_stats[d->n_node_stats++] = node_stats(&rows[i], leat_trace_wall_offset_ns(trace));
    }
    return p;
}

leat_status leat_metadata_stats(const leat_metadata *m, void **bytes_out, size_t *size_out)
{
    Leat__StepStats *p = step_stats(m->trace);
    leat_status s = leat_proto_bytes(p, bytes_out, size_out);
    leat_proto_free(p);
    return s;
}

leat_status leat_metadata_to_binary(const leat_metadata *m, void **bytes_out, size_t *size_out)
{
    LEAT_CHECK(METADATA, m);
    enum { RUN_METADATA_PARTITION_GRAPHS = 3, WIRE_BYTES = 2 }; /* a field's number and layout */
    Leat__RunMetadata p = LEAT__RUN_METADATA__INIT;
    p.step_stats = step_stats(m->trace);
    leat_strbuf b = {.checked = true};
    leat_status s = leat_proto_pack(&p, &b);
    leat_proto_free(p.step_stats);
    int n;
    const leat_trace_graph *graphs = leat_trace_graphs(m->trace, &n);
    for (int i = 0; i < n && !s; i++) {
        leat_strbuf_putc(&b, RUN_METADATA_PARTITION_GRAPHS << 3 | WIRE_BYTES);
        size_t left = graphs[i].size;
        for (; left > 127; left >>= 7)
            leat_strbuf_putc(&b, (char)(left | 128));
        leat_strbuf_putc(&b, (char)left);
        leat_strbuf_add(&b, graphs[i].bytes, graphs[i].size);
    }
    if (!s)
        s = leat_strbuf_check(&b);
    if (s) {
        leat_strbuf_release(&b);
        return s;
    }
    *size_out = b.n;
    *bytes_out = leat_strbuf_take(&b);
    return NULL;
}

const leat_trace *leat_metadata_trace(const leat_metadata *m)
{
    return m->trace;
}
