/* stats_test.c -- times of another task in a trace: its clock is aligned by what is known of it,
 * and then by when its part of the step was called and replied. */
#include <stdlib.h>

#include "cluster/stats.h"
#include "core/threadpool.h"
#include "test.h"

enum { MS = 1000000 };

/* Adds two nodes that run from 1 ms to 3 ms and from 4 ms to 6 ms after `start`, a time of the
 * other task's clock, to a trace; then checks that the first one starts `want` after `begin`, and
 * that the distances stay. */
static void check(int64_t ahead, int64_t offset, int64_t begin_ms, int64_t end_ms, int64_t want)
{
    leat_trace *t = leat_trace_new();
    const int64_t now = leat_now_ns(), wall = now + leat_trace_wall_offset_ns(t);
    Leat__NodeExecStats a = LEAT__NODE_EXEC_STATS__INIT, b = LEAT__NODE_EXEC_STATS__INIT;
    Leat__NodeExecStats *first[] = {&b}, *second[] = {&a};
    Leat__DeviceStepStats x = LEAT__DEVICE_STEP_STATS__INIT, y = LEAT__DEVICE_STEP_STATS__INIT;
    Leat__DeviceStepStats *devices[] = {&x, &y};
    Leat__StepStats all = LEAT__STEP_STATS__INIT;
    a.node_name = b.node_name = "n";
    a.timeline_label = b.timeline_label = "n = Add(x, y)";
    a.all_start_nanos = wall + 1 * MS + ahead;
    b.all_start_micros = (wall + 4 * MS + ahead) / 1000; /* as TensorFlow writes it */
    a.all_end_rel_nanos = 2 * MS;
    b.all_end_rel_micros = 2 * MS / 1000;
    x.device = "/job:ps/replica:0/task:0/device:CPU:0";
    y.device = "/job:ps/replica:0/task:0/device:CPU:1";
    x.node_stats = first;
    y.node_stats = second;
    x.n_node_stats = y.n_node_stats = 1;
    all.dev_stats = devices;
    all.n_dev_stats = 2;
    leat_trace_add_stats(t, &all, offset, begin_ms || end_ms ? now + begin_ms * MS : 0,
                         now + end_ms * MS);
    int n = 0;
    const leat_trace_row *r = leat_trace_rows(t, &n);
    CHECK_INT(n, 2);
    CHECK_NEAR((double)(r[1].start_ns - now), (double)(want * MS), 2000);
    CHECK_NEAR((double)(r[0].start_ns - r[1].start_ns), 3.0 * MS, 2000);
    CHECK_INT(r[1].end_ns - r[1].start_ns, 2 * MS);
    CHECK_STR(r[0].op, "Add");
    leat_trace_free(t);
}

static void aligned(void)
{
    check(0, 0, 0, 0, 1);                       /* nothing is known of the call */
    check(0, 0, 1, 10, 1);                      /* the times fit as they are */
    check(70 * MS, -70 * MS, 1, 10, 1);         /* the difference of the clocks is known */
    check(INT64_C(3600000) * MS, 0, 1, 10, 5);  /* an hour ahead: ends with the reply */
    check(-INT64_C(3600000) * MS, 0, 1, 10, 1); /* behind: begins with the call */
    check(70 * MS, -69 * MS, 1, 6, 1);          /* known, but not exactly */
    check(70 * MS, 0, 2, 4, 2);                 /* they took longer than the call */
}

static void none(void)
{
    leat_trace *t = leat_trace_new();
    Leat__StepStats all = LEAT__STEP_STATS__INIT;
    int n = -1;
    leat_trace_add_stats(t, &all, 0, 5, 6);
    leat_trace_rows(t, &n);
    CHECK_INT(n, 0);
    leat_trace_free(t);
}

int main(int argc, char **argv)
{
    return RUN(argc, argv, {"aligned", aligned}, {"none", none});
}
