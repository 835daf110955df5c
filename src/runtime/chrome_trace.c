/* chrome_trace.c -- a traced run as JSON for chrome://tracing and Perfetto. Each device of each
 * task is shown as a process, in the order of their names. Nodes of a device that ran, or waited,
 * at the same time are in different lanes, which the viewers show as threads. Times are
 * microseconds since the first node began. */
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "core/alloc.h"
#include "core/strbuf.h"
#include "runtime/session_int.h"
#include "runtime/trace.h"

static void json_string(leat_strbuf *b, const char *s)
{
    leat_strbuf_putc(b, '"');
    for (; *s; s++) {
        if (*s == '"' || *s == '\\')
            leat_strbuf_printf(b, "\\%c", *s);
        else if ((unsigned char)*s < 0x20)
            leat_strbuf_printf(b, "\\u%04x", *s);
        else
            leat_strbuf_putc(b, *s);
    }
    leat_strbuf_putc(b, '"');
}

/* By device, then by time, the longer one first. */
static int by_place(const void *a, const void *b)
{
    const leat_trace_row *x = *(const leat_trace_row *const *)a;
    const leat_trace_row *y = *(const leat_trace_row *const *)b;
    const int device = strcmp(x->device, y->device);
    if (device)
        return device;
    if (x->start_ns != y->start_ns)
        return x->start_ns < y->start_ns ? -1 : 1;
    return (x->end_ns < y->end_ns) - (x->end_ns > y->end_ns);
}

/* The lanes of a device: when the last node of each ended. */
typedef struct lanes {
    int64_t *end_ns; /* room for one for each row */
    int n;
} lanes;

/* The first lane in which nothing runs any more when r starts. */
static int lane_of(lanes *l, const leat_trace_row *r)
{
    int i = 0;
    while (i < l->n && l->end_ns[i] > r->start_ns)
        i++;
    l->n += i == l->n;
    l->end_ns[i] = r->end_ns;
    return i;
}

/* The name of a device, and its place among the others. */
static void put_device(leat_strbuf *b, int pid, const char *name)
{
    leat_strbuf_printf(
        b, "{\"name\":\"process_name\",\"ph\":\"M\",\"pid\":%d,\"args\":{\"name\":", pid);
    json_string(b, name);
    leat_strbuf_printf(b,
                       "}},\n{\"name\":\"process_sort_index\",\"ph\":\"M\",\"pid\":%d,"
                       "\"args\":{\"sort_index\":%d}},\n",
                       pid, pid);
}

static void put_node(leat_strbuf *b, const leat_trace_row *r, int pid, int tid, int64_t first_ns)
{
    leat_strbuf_puts(b, "{\"ph\":\"X\",\"cat\":\"Op\",\"name\":");
    json_string(b, r->op);
    leat_strbuf_printf(
        b, ",\"pid\":%d,\"tid\":%d,\"ts\":%.3f,\"dur\":%.3f,\"args\":{\"name\":", pid, tid,
        (double)(r->start_ns - first_ns) / 1e3, (double)(r->end_ns - r->start_ns) / 1e3);
    json_string(b, r->name);
    leat_strbuf_puts(b, ",\"op\":");
    json_string(b, r->op);
    leat_strbuf_puts(b, ",\"label\":");
    json_string(b, r->label);
    leat_strbuf_printf(b, ",\"thread\":%d,\"bytes\":%" PRId64 "}}", r->thread, r->bytes);
}

leat_status leat_metadata_to_chrome(const leat_metadata *m, char **json_out)
{
    LEAT_CHECK(METADATA, m);
    int n, pid = -1;
    int64_t first_ns = INT64_MAX;
    const leat_trace_row *rows = leat_trace_rows(leat_metadata_trace(m), &n);
    const leat_trace_row **order = leat_new_array(const leat_trace_row *, n + 1);
    lanes l = {.end_ns = leat_new_array(int64_t, n + 1)};
    for (int i = 0; i < n; i++) {
        order[i] = &rows[i];
        first_ns = rows[i].start_ns < first_ns ? rows[i].start_ns : first_ns;
    }
    qsort(order, (size_t)n, sizeof(*order), by_place);
    leat_strbuf b = {.checked = true};
    leat_strbuf_puts(&b, "{\"displayTimeUnit\":\"ms\",\"traceEvents\":[\n");
    for (int i = 0; i < n; i++) {
        leat_strbuf_puts(&b, i ? ",\n" : "");
        if (i == 0 || strcmp(order[i - 1]->device, order[i]->device) != 0) {
            put_device(&b, ++pid, order[i]->device);
            l.n = 0;
        }
        put_node(&b, order[i], pid, lane_of(&l, order[i]), first_ns);
    }
    leat_strbuf_puts(&b, "\n]}\n");
    free(order);
    free(l.end_ns);
    leat_status s = leat_strbuf_check(&b);
    if (s) {
        leat_strbuf_release(&b);
        return s;
    }
    *json_out = leat_strbuf_take(&b);
    return NULL;
}
