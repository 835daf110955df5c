/* dataset_stats_test.c -- statistics of datasets: what iterators below a SetStatsAggregator report,
 * under TensorFlow's names. */
#include "dataset_graph.h"

#include "core/buffer.h"
#include "proto/event.pb-c.h"
#include "proto/wire.h"

#define NONE leat_ins(NULL, 0)

static leat_out text(leat_graph *g, const char *s)
{
    return leat_string_const(g, s);
}

static void even(leat_graph *g, void *arg, const leat_out *in, leat_out *out)
{
    out[0] =
        leat_equal(leat_op(g, "FloorMod", leat_in(in[0]), leat_in(number(g, 2))), number(g, 0));
}

static void twice(leat_graph *g, void *arg, const leat_out *in, leat_out *out)
{
    out[0] = leat_mul(in[0], number(g, 2));
}

static void up_to_3(leat_graph *g, void *arg, const leat_out *in, leat_out *out)
{
    out[0] = range(g, 3);
}

static leat_graph *new_graph(void)
{
    leat_graph *g = leat_graph_new();
    leat_function_define(g, "Even", even, NULL, 1, LEAT_INT64);
    leat_function_define(g, "Twice", twice, NULL, 1, LEAT_INT64);
    leat_function_define(g, "UpTo3", up_to_3, NULL, 1, LEAT_INT64);
    return g;
}

static leat_out aggregator_of(leat_graph *g, const char *op)
{
    return leat_op(g, op, leat_name("aggregator"));
}

static leat_out reported(leat_graph *g, leat_out in, leat_out aggregator, const char *tag)
{
    return DATASET("SetStatsAggregatorDataset", leat_in(in), leat_in(aggregator),
                   leat_in(text(g, tag)), leat_in(text(g, "")));
}

/* The summary as text, without histograms' buckets: "tag num sum min max" or "tag = scalar", a line
 * each; latencies and times without sum, min and max. */
static void summary(const elements *e, leat_out op, char *out, size_t size)
{
    leat_tensor *t = NULL;
    Leat__Summary *m = NULL;
    *out = 0;
    CHECK_OK(leat_session_run(e->s, LEAT_NO_FEED, LEAT_FETCH({op, &t}), LEAT_NO_TARGET));
    const leat_string *s = t ? t->data : NULL;
    if (s)
        CHECK_OK(LEAT_UNPACK(summary, s->data, s->size, &m));
    for (size_t i = 0, n = 0; m && i < m->n_value; i++, n = strlen(out)) {
        const Leat__Summary__Value *v = m->value[i];
        const Leat__HistogramProto *h = v->histo;
        const bool time = strstr(v->tag, "latency") || strstr(v->tag, "execution_time");
        if (v->value_case != LEAT__SUMMARY__VALUE__VALUE_HISTO) {
            snprintf(out + n, size - n, "%s = %g\n", v->tag, v->simple_value);
            continue;
        }
        double in_buckets = 0;
        for (size_t b = 0; b < h->n_bucket; b++)
            in_buckets += h->bucket[b];
        CHECK(in_buckets == h->num && h->n_bucket == h->n_bucket_limit);
        CHECK(h->min >= 0 && h->min <= h->max && h->max <= h->sum);
        if (time)
            snprintf(out + n, size - n, "%s %g\n", v->tag, h->num);
        else
            snprintf(out + n, size - n, "%s %g %g %g %g\n", v->tag, h->num, h->sum, h->min, h->max);
    }
    if (m)
        leat__summary__free_unpacked(m, NULL);
    leat_tensor_unref(t);
}

static void read_all(const elements *e, const char *want)
{
    char got[2000] = "";
    CHECK_OK(begin(e));
    read_some(e, 1000, got, sizeof(got));
    CHECK_STR(got, want);
}

/* Numbers and names are those of TensorFlow 1.15. */
static void names(void)
{
    leat_graph *g = new_graph();
    leat_out a = aggregator_of(g, "ExperimentalStatsAggregatorHandle"), d = range(g, 6);
    d = DATASET("FilterDataset", leat_in(d), NONE, leat_attr_func("predicate", "Even"));
    d = DATASET("LatencyStatsDataset", leat_in(d), leat_in(text(g, "latency")));
    d = DATASET("BytesProducedStatsDataset", leat_in(d), leat_in(text(g, "bytes")));
    d = counted(g, "PrefetchDataset", d, 1);
    d = reported(g, d, a, "T");
    leat_out get = leat_op(g, "StatsAggregatorSummary", leat_in(a));
    elements e = elements_of(g, d);
    char got[2000];
    summary(&e, get, got, sizeof(got));
    CHECK_STR(got, "");
    read_all(&e, "0 2 4 END");
    summary(&e, get, got, sizeof(got));
    static const char *const want[] = {
        "T::latency 3\n",
        "T::bytes 3 24 8 8\n",
        "T::PrefetchDataset/_10::buffer_utilization 3 3 1 1\n",
        "T::FilterDataset/_4::filtered_elements = 3\n",
        "T::FilterDataset/_4::dropped_elements = 3\n",
        "T::PrefetchDataset/_10::buffer_size = 1\n",
        "T::PrefetchDataset/_10::buffer_capacity = 1\n",
    };
    size_t length = 0;
    for (size_t i = 0; i < sizeof(want) / sizeof(*want); i++) {
        if (!strstr(got, want[i]))
            CHECK_STR(got, want[i]);
        length += strlen(want[i]);
    }
    CHECK(strlen(got) == length);
    read_all(&e, "0 2 4 END"); /* Another iterator reports to the same aggregator. */
    summary(&e, get, got, sizeof(got));
    CHECK(strstr(got, "T::bytes 6 48 8 8\n") && strstr(got, "T::latency 6\n"));
    CHECK(strstr(got, "::filtered_elements = 3\n"));
    close_elements(&e);
}

/* Iterators in other threads, and in functions' datasets. */
static void parallel(void)
{
    leat_graph *g = new_graph();
    leat_out a = aggregator_of(g, "StatsAggregatorHandle");
    leat_out d = parallel_map(g, range(g, 100), "Twice", 4);
    d = DATASET("BytesProducedStatsDataset", leat_in(d), leat_in(text(g, "")));
    d = counted(g, "PrefetchDataset", d, 8);
    d = counted(g, "TakeDataset", d, 60); /* The rest is under way when the iteration ends. */
    d = DATASET("ParallelInterleaveDatasetV2", leat_in(d), NONE, leat_in(number(g, 3)),
                leat_in(number(g, 1)), leat_in(number(g, 2)), leat_attr_func("f", "UpTo3"));
    d = reported(g, d, a, "");
    leat_out get = leat_op(g, "ExperimentalStatsAggregatorSummary", leat_in(a));
    elements e = elements_of(g, d);
    char got[2000];
    for (int round = 0; round < 20; round++) {
        CHECK_OK(begin(&e));
        for (int i = 0; i < 180; i++) {
            leat_tensor *t = NULL;
            CHECK_OK(leat_session_run(e.s, LEAT_NO_FEED, LEAT_FETCH({e.next, &t}), LEAT_NO_TARGET));
            leat_tensor_unref(t);
        }
        summary(&e, get, got, sizeof(got));
        CHECK(strstr(got, "ParallelMap::Twice::execution_time "));
        CHECK(strstr(got, "ParallelMapDataset/_5::thread_utilization = "));
        CHECK(strstr(got, "ParallelInterleaveDatasetV2/_15::thread_utilization = "));
        CHECK(strstr(got, "PrefetchDataset/_9::buffer_capacity = 8\n"));
        /* Prefetches that are part of the interleave are no datasets of the graph. */
        const char *first = strstr(got, "::buffer_size");
        CHECK(first && !strstr(first + 1, "::buffer_size"));
    }
    close_elements(&e);
}

static void without(void)
{
    leat_graph *g = new_graph();
    leat_out a = aggregator_of(g, "StatsAggregatorHandle");
    leat_out inner = reported(g, counted(g, "TakeDataset", range(g, 5), 3), a, "");
    leat_out d = DATASET("BytesProducedStatsDataset", leat_in(inner), leat_in(text(g, "above")));
    leat_out get = leat_op(g, "StatsAggregatorSummary", leat_in(a));
    elements e = elements_of(g, d);
    char got[2000];
    read_all(&e, "0 1 2 END"); /* The iterator of "above" is above the aggregator's. */
    summary(&e, get, got, sizeof(got));
    CHECK_STR(got, "");
    close_elements(&e);
}

static void position(void)
{
    leat_graph *g = new_graph();
    leat_out a = aggregator_of(g, "StatsAggregatorHandle");
    leat_out d = DATASET("LatencyStatsDataset", leat_in(range(g, 5)), leat_in(text(g, "latency")));
    leat_out get = leat_op(g, "StatsAggregatorSummary", leat_in(a));
    elements e = elements_of(g, reported(g, d, a, "T"));
    char got[2000] = "";
    leat_tensor *saved = NULL;
    CHECK_OK(begin(&e));
    read_some(&e, 2, got, sizeof(got));
    CHECK_OK(leat_session_run(e.s, LEAT_NO_FEED, LEAT_FETCH({e.position, &saved}), LEAT_NO_TARGET));
    read_some(&e, 2, got, sizeof(got));
    CHECK_OK(
        leat_session_run(e.s, LEAT_FEED({e.saved, saved}), LEAT_NO_FETCH, LEAT_TARGET(e.restore)));
    read_some(&e, 9, got, sizeof(got));
    CHECK_STR(got, "0 1 2 3 2 3 4 END");
    summary(&e, get, got, sizeof(got));
    CHECK_STR(got, "T::latency 7\n");
    leat_tensor_unref(saved);
    close_elements(&e);
}

static void errors(void)
{
    leat_graph *g = new_graph();
    leat_out queue = leat_op(g, "FIFOQueueV2", leat_name("queue"),
                             leat_attr_types("component_types", int64_type, 1));
    leat_out other = leat_op(g, "StatsAggregatorSummary", leat_in(queue));
    leat_out two =
        leat_op(g, "StatsAggregatorSummary", leat_in(aggregator_of(g, "StatsAggregatorHandleV2")));
    elements e = elements_of(g, reported(g, range(g, 2), queue, "T"));
    char got[200];
    CHECK_ERROR(begin(&e), NOT_FOUND, "StatsAggregatorResource");
    CHECK_ERROR(leat_session_run(e.s, LEAT_NO_FEED, LEAT_NO_FETCH, LEAT_TARGET(other)), NOT_FOUND,
                "StatsAggregatorResource");
    summary(&e, two, got, sizeof(got));
    CHECK_STR(got, "");
    close_elements(&e);
}

int main(int argc, char **argv)
{
    return RUN(argc, argv, {"names", names}, {"parallel", parallel}, {"without", without},
               {"position", position}, {"errors", errors});
}
