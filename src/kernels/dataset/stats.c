/* stats.c -- aggregators of statistics, and the datasets that have to do with them: see stats.h.
 * Aggregators of the second version write events to a summary writer, which is for programs that
 * run op by op; here they are there, and keep nothing. */
#include "kernels/dataset/stats.h"

#include <pthread.h>
#include <stdlib.h>

#include "core/alloc.h"
#include "core/map.h"
#include "core/strbuf.h"
#include "kernels/any/histogram.h"
#include "kernels/any/resource_op.h"
#include "kernels/dataset/pull.h"
#include "kernels/dataset/state.h"
#include "proto/wire.h"

/* ---- Aggregators ---- */

typedef struct series {
    struct series *next;
    char *name;
    leat_histogram *histogram; /* or NULL: a scalar */
    float scalar;
} series;

typedef struct aggregator {
    leat_resource base;
    bool keeps;           /* first version: StatsAggregatorSummary gives what was reported */
    pthread_mutex_t lock; /* Guards what follows. */
    leat_map by_name;     /* histograms, and scalars, whose keys begin with a space */
    series *first, **last;
} aggregator;

static void aggregator_free(void *resource)
{
    aggregator *a = resource;
    for (series *s = a->first, *next; s; s = next) {
        next = s->next;
        free(s->name);
        free(s->histogram);
        free(s);
    }
    leat_map_release(&a->by_name);
    pthread_mutex_destroy(&a->lock);
    free(a);
}

static const leat_resource_type aggregator_type = {
    "N10tensorflow4data12experimental12_GLOBAL__N_123StatsAggregatorResourceE", aggregator_free};

static aggregator *aggregator_new(bool keeps)
{
    aggregator *a = leat_new(aggregator);
    leat_resource_init(&a->base, &aggregator_type);
    a->keeps = keeps;
    a->last = &a->first;
    pthread_mutex_init(&a->lock, NULL);
    return a;
}

static leat_status first_make(leat_kernel *k, const char *name, leat_resource **out)
{
    *out = &aggregator_new(true)->base;
    return NULL;
}

static leat_status second_make(leat_kernel *k, const char *name, leat_resource **out)
{
    *out = &aggregator_new(false)->base;
    return NULL;
}

static leat_status first_run(leat_kernel *k)
{
    return leat_resource_op_run(
        k, &(leat_resource_maker){.type = &aggregator_type, .make = first_make});
}

static leat_status second_run(leat_kernel *k)
{
    return leat_resource_op_run(
        k, &(leat_resource_maker){.type = &aggregator_type, .make = second_make});
}

/* With the lock held. */
static series *series_of(aggregator *a, const char *name, bool histogram)
{
    leat_strbuf key = {0};
    leat_strbuf_printf(&key, "%s%s", histogram ? "" : " ", name);
    series *s = leat_map_get(&a->by_name, leat_strbuf_text(&key));
    if (!s) {
        s = leat_new(series);
        s->name = leat_xstrdup(name);
        if (histogram)
            leat_histogram_init(s->histogram = leat_new(leat_histogram));
        leat_map_put(&a->by_name, leat_strbuf_text(&key), s);
        *a->last = s;
        a->last = &s->next;
    }
    leat_strbuf_release(&key);
    return s;
}

static leat_status aggregator_in(leat_kernel *k, int i, aggregator **out)
{
    leat_resource *r;
    LEAT_TRY(leat_kernel_resource(k, i, &aggregator_type, &r));
    *out = (aggregator *)r;
    return NULL;
}

/* With the lock held: adds the values of one sort to the list of values, of which there are n. */
static size_t encode(const aggregator *a, bool histograms, Leat__Summary__Value **list, size_t n)
{
    for (const series *s = a->first; s; s = s->next) {
        if (histograms != (s->histogram != NULL))
            continue;
        Leat__Summary__Value *v = leat_new(Leat__Summary__Value);
        leat__summary__value__init(v);
        v->tag = s->name;
        if (histograms) {
            leat_histogram_message *m = leat_new(leat_histogram_message);
            leat_histogram_encode(s->histogram, m);
            v->value_case = LEAT__SUMMARY__VALUE__VALUE_HISTO;
            v->histo = &m->proto; /* the first field of *m */
        } else {
            v->value_case = LEAT__SUMMARY__VALUE__VALUE_SIMPLE_VALUE;
            v->simple_value = s->scalar;
        }
        list[n++] = v;
    }
    return n;
}

static leat_status summary_run(leat_kernel *k)
{
    aggregator *a;
    leat_strbuf b = {0};
    leat_tensor *y;
    LEAT_TRY(aggregator_in(k, 0, &a));
    pthread_mutex_lock(&a->lock);
    Leat__Summary m = LEAT__SUMMARY__INIT;
    m.value = leat_new_array(Leat__Summary__Value *, a->by_name.n + 1);
    m.n_value = encode(a, true, m.value, 0);
    m.n_value = encode(a, false, m.value, m.n_value);
    leat_status s = leat_proto_pack(&m, &b);
    pthread_mutex_unlock(&a->lock);
    for (size_t i = 0; i < m.n_value; i++) {
        if (m.value[i]->value_case == LEAT__SUMMARY__VALUE__VALUE_HISTO)
            free(m.value[i]->histo);
        free(m.value[i]);
    }
    free(m.value);
    leat_resource_unref(&a->base);
    if (!s)
        s = leat_tensor_of_string(b.s ? b.s : "", b.n, &y);
    leat_strbuf_release(&b);
    if (!s)
        leat_kernel_set(k, 0, y);
    return s;
}

static leat_status set_writer_run(leat_kernel *k)
{
    aggregator *a;
    LEAT_TRY(aggregator_in(k, 0, &a));
    leat_resource_unref(&a->base);
    return NULL;
}

/* ---- What iterators report ---- */

struct leat_stats {
    atomic_int refs;
    aggregator *to; /* a reference */
    char *tag;
};

leat_stats *leat_stats_ref(leat_stats *s)
{
    if (s)
        atomic_fetch_add_explicit(&s->refs, 1, memory_order_relaxed);
    return s;
}

void leat_stats_unref(leat_stats *s)
{
    if (!s || atomic_fetch_sub_explicit(&s->refs, 1, memory_order_acq_rel) != 1)
        return;
    leat_resource_unref(&s->to->base);
    free(s->tag);
    free(s);
}

static void report(leat_stats *s, const char *name, bool histogram, double value)
{
    if (!s || !s->to->keeps)
        return;
    leat_strbuf full = {0};
    leat_strbuf_printf(&full, "%s%s%s", s->tag, *s->tag ? "::" : "", name);
    pthread_mutex_lock(&s->to->lock);
    series *x = series_of(s->to, leat_strbuf_text(&full), histogram);
    if (histogram)
        leat_histogram_add(x->histogram, value);
    else
        x->scalar = (float)value;
    pthread_mutex_unlock(&s->to->lock);
    leat_strbuf_release(&full);
}

void leat_stats_add(leat_stats *s, const char *name, double value)
{
    report(s, name, true, value);
}

void leat_stats_set(leat_stats *s, const char *name, float value)
{
    report(s, name, false, value);
}

static void report_of(leat_stats *s, const leat_dataset *d, const char *what, bool histogram,
                      double value)
{
    if (!s)
        return;
    leat_strbuf name = {0};
    leat_strbuf_printf(&name, "%s/_%llu::%s", d->op, (unsigned long long)(d->nodes - 1), what);
    report(s, name.s, histogram, value);
    leat_strbuf_release(&name);
}

void leat_stats_add_of(leat_stats *s, const leat_dataset *d, const char *what, double value)
{
    report_of(s, d, what, true, value);
}

void leat_stats_set_of(leat_stats *s, const leat_dataset *d, const char *what, float value)
{
    report_of(s, d, what, false, value);
}

void leat_stats_called(leat_stats *s, const leat_dataset *d, int64_t ns)
{
    static const char prefix[] = "Experimental";
    if (!s)
        return;
    const char *op = d->op, *function = d->fn[0].name ? d->fn[0].name : "function";
    if (strncmp(op, prefix, strlen(prefix)) == 0)
        op += strlen(prefix);
    const char *end = strstr(op, "Dataset");
    leat_strbuf name = {0};
    leat_strbuf_printf(&name, "%.*s::%s::execution_time", end ? (int)(end - op) : (int)strlen(op),
                       op, function);
    report(s, name.s, true, (double)ns);
    leat_strbuf_release(&name);
}

/* ---- SetStatsAggregator ---- */

typedef struct set_stats {
    leat_dataset base;
    leat_stats *stats;
} set_stats;

static leat_status set_make(leat_kernel *k, leat_dataset *d)
{
    aggregator *a;
    char *tag, *prefix;
    LEAT_TRY(leat_data_string(k, 2, "tag", &tag));
    leat_status s = leat_data_string(k, 3, "counter_prefix", &prefix);
    if (!s)
        free(prefix); /* Counters are seen by a process's monitoring only. */
    if (!s)
        s = aggregator_in(k, 1, &a);
    if (s) {
        free(tag);
        return s;
    }
    leat_stats *stats = ((set_stats *)d)->stats = leat_new(leat_stats);
    atomic_init(&stats->refs, 1);
    stats->to = a;
    stats->tag = tag;
    return NULL;
}

static void set_release(leat_dataset *d)
{
    leat_stats_unref(((set_stats *)d)->stats);
}

static int64_t same_cardinality(const leat_dataset *d)
{
    return leat_dataset_cardinality(d->in[0]);
}

/* Iterators report to what the iterator above them reports to, so this is set before the input is
 * opened. */
static leat_status set_open(leat_iterator *it)
{
    leat_stats_unref(it->stats);
    it->stats = leat_stats_ref(((const set_stats *)it->d)->stats);
    return leat_iterator_reopen(it, 0);
}

static leat_status set_save(leat_iterator *it, leat_state_writer *w)
{
    return leat_state_put_iterator(w, it->input);
}

static leat_status set_restore(leat_iterator *it, leat_state_reader *r)
{
    return leat_state_get_iterator(r, it->iteration, it->d->in[0], it, 0, &it->input);
}

static leat_next same_next(leat_iterator *it, leat_pull *p)
{
    if (p->why == LEAT_WHY_START)
        return leat_pull_from(p, it->input);
    return p->end ? LEAT_NEXT_END : LEAT_NEXT_ELEMENT;
}

static const leat_dataset_kind set_kind = {
    .size = sizeof(set_stats),
    .iterator_size = sizeof(leat_iterator),
    .inputs = 1,
    .no_input = true,
    .make = set_make,
    .release = set_release,
    .cardinality = same_cardinality,
    .open = set_open,
    .next = same_next,
    .save = set_save,
    .restore = set_restore,
};
LEAT_DATASET_RUN(set_kind)

/* ---- LatencyStats, BytesProducedStats ---- */

typedef struct measured {
    leat_dataset base;
    char *tag;
} measured;

typedef struct measure {
    leat_iterator base;
    int64_t started;
} measure;

static leat_status measured_make(leat_kernel *k, leat_dataset *d)
{
    return leat_data_string(k, 1, "tag", &((measured *)d)->tag);
}

static void measured_release(leat_dataset *d)
{
    free(((measured *)d)->tag);
}

/* Microseconds, of elements that fail, too. */
static leat_next latency_next(leat_iterator *it, leat_pull *p)
{
    measure *m = (measure *)it;
    if (p->why == LEAT_WHY_START) {
        m->started = leat_now_ns();
        return leat_pull_from(p, it->input);
    }
    if (p->end)
        return LEAT_NEXT_END;
    leat_stats_add(it->stats, ((const measured *)it->d)->tag,
                   (double)((leat_now_ns() - m->started) / 1000));
    return p->status ? LEAT_NEXT_FAILED : LEAT_NEXT_ELEMENT;
}

/* A string counts as its bytes and 8, as in TensorFlow 1.15. */
static double bytes_of(const leat_tensor *t)
{
    if (t->dtype != LEAT_STRING)
        return (double)leat_tensor_bytes(t);
    double sum = 8 * (double)t->count;
    for (int64_t i = 0; i < t->count; i++)
        sum += (double)AT(leat_string, t)[i].size;
    return sum;
}

static leat_next bytes_next(leat_iterator *it, leat_pull *p)
{
    if (p->why == LEAT_WHY_START)
        return leat_pull_from(p, it->input);
    if (p->end)
        return LEAT_NEXT_END;
    double sum = 0;
    for (int i = 0; i < p->element.n && it->stats; i++)
        sum += bytes_of(p->element.v[i]);
    leat_stats_add(it->stats, ((const measured *)it->d)->tag, sum);
    return LEAT_NEXT_ELEMENT;
}

#define MEASURED_KIND                                                                              \
    .size = sizeof(measured), .iterator_size = sizeof(measure), .inputs = 1,                       \
    .make = measured_make, .release = measured_release, .cardinality = same_cardinality
static const leat_dataset_kind latency_kind = {MEASURED_KIND, .catches = true,
                                               .next = latency_next};
LEAT_DATASET_RUN(latency_kind)
static const leat_dataset_kind bytes_kind = {MEASURED_KIND, .next = bytes_next};
LEAT_DATASET_RUN(bytes_kind)

const leat_kernel_def leat_data_kernels_stats[] = {
    LEAT_DATASET_HANDLE("StatsAggregatorHandle", first_run),
    LEAT_DATASET_HANDLE("ExperimentalStatsAggregatorHandle", first_run),
    LEAT_DATASET_HANDLE("StatsAggregatorHandleV2", second_run),
    LEAT_DATASET_BOTH("StatsAggregatorSummary", summary_run),
    {.op = "StatsAggregatorSetSummaryWriter", .run = set_writer_run},
    LEAT_DATASET_BOTH("SetStatsAggregatorDataset", set_kind_run),
    LEAT_DATASET_BOTH("LatencyStatsDataset", latency_kind_run),
    LEAT_DATASET_BOTH("BytesProducedStatsDataset", bytes_kind_run),
    {0},
};
