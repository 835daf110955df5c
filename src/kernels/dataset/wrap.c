/* wrap.c -- datasets that give the elements of their input as they are. Those that only set
 * threads or optimisations of TensorFlow's are their input itself: Leat runs all stages on the
 * device's pool and does not rewrite datasets. */
#include <stdlib.h>
#include <time.h>

#include "core/alloc.h"
#include "core/strbuf.h"
#include "kernels/any/resource_op.h"
#include "kernels/dataset/iteration.h"

static leat_status same_run(leat_kernel *k)
{
    leat_dataset *d;
    LEAT_TRY(leat_dataset_in(leat_kernel_in(k, 0), &d));
    leat_kernel_forward(k, 0, 0);
    return NULL;
}

/* ---- ChooseFastest: all inputs have the same elements ---- */

static void types_of(const leat_dataset *d, leat_strbuf *out)
{
    for (int i = 0; i < d->n; i++)
        leat_strbuf_printf(out, "%s%s", i ? ", " : "", leat_dtype_name(d->types[i]));
}

static leat_status same_types(const leat_dataset *first, const leat_dataset *d, int i)
{
    bool same = d->n == first->n;
    for (int j = 0; same && j < d->n; j++)
        same = d->types[j] == first->types[j];
    if (same)
        return NULL;
    leat_strbuf has = {0}, want = {0};
    types_of(d, &has);
    types_of(first, &want);
    leat_status s = leat_error(INVALID_ARGUMENT,
                               "All inputs to ChooseFastestDataset must have the same output "
                               "types. Input %d has output types: %s. Expected: %s.",
                               i, leat_strbuf_text(&has), leat_strbuf_text(&want));
    leat_strbuf_release(&has);
    leat_strbuf_release(&want);
    return s;
}

static leat_status same_sort(const leat_dataset *first, const leat_dataset *d, int i)
{
    LEAT_TRY(same_types(first, d, i));
    for (int j = 0; j < d->n; j++)
        LEAT_REQUIRE(leat_shape_compatible(&first->shapes[j], &d->shapes[j]), INVALID_ARGUMENT,
                     "All inputs to ChooseFastestDataset must have compatible output shapes. "
                     "Component %d of input %d has shape: %s. Expected to be compatible with "
                     "shape: %s.",
                     j, i, leat_shape_show(&d->shapes[j]).s, leat_shape_show(&first->shapes[j]).s);
    return NULL;
}

/* TensorFlow measures which input is the fastest; here it is the first one. */
static leat_status fastest_run(leat_kernel *k)
{
    leat_dataset *first, *d;
    LEAT_TRY(leat_dataset_in(leat_kernel_in(k, 0), &first));
    int64_t cardinality = leat_dataset_cardinality(first);
    for (int i = 1; i < leat_kernel_inputs(k); i++) {
        LEAT_TRY(leat_dataset_in(leat_kernel_in(k, i), &d));
        LEAT_TRY(same_sort(first, d, i));
        const int64_t n = leat_dataset_cardinality(d);
        if (cardinality == LEAT_CARDINALITY_UNKNOWN)
            cardinality = n;
        LEAT_REQUIRE(n == cardinality || n == LEAT_CARDINALITY_UNKNOWN, INVALID_ARGUMENT,
                     "All inputs to ChooseFastestDataset must have compatible cardinalities. Input "
                     "%d has cardinality: %lld, while all prior inputs have cardinality: %lld.",
                     i, (long long)n, (long long)cardinality);
    }
    leat_kernel_forward(k, 0, 0);
    return NULL;
}

static leat_status not_negative(leat_kernel *k, const char *name)
{
    int64_t n;
    LEAT_TRY(leat_data_int(k, 1, name, &n));
    LEAT_REQUIRE(n >= 0, INVALID_ARGUMENT, "`%s` must be >= 0", name);
    return same_run(k);
}

static leat_status max_intra_run(leat_kernel *k)
{
    return not_negative(k, "max_intra_op_parallelism");
}

static leat_status threads_run(leat_kernel *k)
{
    return not_negative(k, "num_threads");
}

/* ---- IgnoreErrors: elements that fail are left out ---- */

static leat_next ignore_next(leat_iterator *it, leat_pull *p)
{
    if (p->why == LEAT_WHY_PULLED && !p->status)
        return p->end ? LEAT_NEXT_END : LEAT_NEXT_ELEMENT;
    if (p->status && leat_iteration_closed(it->iteration))
        return LEAT_NEXT_FAILED;
    leat_status_free(p->status);
    p->status = NULL;
    return leat_pull_through(p, it);
}

static const leat_dataset_kind ignore_kind = {
    .size = sizeof(leat_dataset),
    .iterator_size = sizeof(leat_iterator),
    .inputs = 1,
    .catches = true,
    .next = ignore_next,
};
LEAT_DATASET_RUN(ignore_kind)

/* ---- Sleep: each element comes later ---- */

typedef struct delayed {
    leat_dataset base;
    int64_t us;
} delayed;

typedef struct delay {
    leat_iterator base;
    leat_element element;
} delay;

static leat_status sleep_make(leat_kernel *k, leat_dataset *d)
{
    return leat_data_int(k, 1, "sleep_microseconds", &((delayed *)d)->us);
}

static int64_t same_cardinality(const leat_dataset *d)
{
    return leat_dataset_cardinality(d->in[0]);
}

static leat_next sleep_next(leat_iterator *it, leat_pull *p)
{
    delay *x = (delay *)it;
    if (p->why == LEAT_WHY_START)
        return leat_pull_from(p, it->input);
    if (p->why == LEAT_WHY_PULLED) {
        if (p->end)
            return LEAT_NEXT_END;
        x->element = leat_element_take(&p->element);
        return LEAT_NEXT_BLOCK;
    }
    int64_t until = leat_now_ns() + ((const delayed *)it->d)->us * 1000, left;
    while ((left = until - leat_now_ns()) > 0 && !leat_iteration_closed(it->iteration)) {
        const long most = 5000000; /* nanoseconds, so that closing does not wait for long */
        nanosleep(&(struct timespec){0, left < most ? (long)left : most}, NULL);
    }
    return leat_pull_give(p, leat_element_take(&x->element));
}

static void sleep_close(leat_iterator *it)
{
    leat_element_clear(&((delay *)it)->element);
}

static const leat_dataset_kind sleep_kind = {
    .size = sizeof(delayed),
    .iterator_size = sizeof(delay),
    .inputs = 1,
    .make = sleep_make,
    .cardinality = same_cardinality,
    .next = sleep_next,
    .close = sleep_close,
};
LEAT_DATASET_RUN(sleep_kind)

/* ---- Thread pools: all stages use the device's ---- */

enum { MOST_THREADS = 65536 }; /* as in TensorFlow */

static void plain_free(void *resource)
{
    free(resource);
}

static const leat_resource_type threads_type = {
    "N10tensorflow4data12experimental12_GLOBAL__N_118ThreadPoolResourceE", plain_free};

static leat_status threads_make(leat_kernel *k, const char *name, leat_resource **out)
{
    leat_resource *r = leat_new(leat_resource);
    leat_resource_init(r, &threads_type);
    *out = r;
    return NULL;
}

static const leat_resource_maker threads_maker = {.type = &threads_type, .make = threads_make};

static leat_status threads_handle_run(leat_kernel *k)
{
    const int64_t n = leat_node_int(leat_kernel_node(k), "num_threads");
    LEAT_REQUIRE(n > 0, INVALID_ARGUMENT, "`num_threads` must be greater than zero.");
    LEAT_REQUIRE(n < MOST_THREADS, INVALID_ARGUMENT, "`num_threads` must be less than %d",
                 MOST_THREADS);
    return leat_resource_op_run(k, &threads_maker);
}

static leat_status use_threads_run(leat_kernel *k)
{
    leat_resource *r;
    LEAT_TRY(leat_kernel_resource(k, 1, &threads_type, &r));
    leat_resource_unref(r);
    return same_run(k);
}

/* ---- AssertCardinality ---- */

typedef struct counted {
    leat_dataset base;
    int64_t want;
} counted;

static leat_status counted_make(leat_kernel *k, leat_dataset *d)
{
    return leat_data_int(k, 1, "cardinality", &((counted *)d)->want);
}

static int64_t counted_cardinality(const leat_dataset *d)
{
    return ((const counted *)d)->want;
}

static leat_next counted_next(leat_iterator *it, leat_pull *p)
{
    const int64_t want = ((const counted *)it->d)->want;
    if (p->why == LEAT_WHY_START)
        return leat_pull_through(p, it);
    if (want == LEAT_CARDINALITY_INFINITE && p->end)
        return leat_pull_fail(p, leat_error(FAILED_PRECONDITION,
                                            "Input dataset was expected to contain an infinite "
                                            "number of elements but contained only %lld.",
                                            (long long)it->count));
    if (want >= 0 && p->end && it->count < want)
        return leat_pull_fail(p, leat_error(FAILED_PRECONDITION,
                                            "Input dataset was expected to contain %lld elements "
                                            "but contained only %lld elements.",
                                            (long long)want, (long long)it->count));
    if (want >= 0 && !p->end && it->count >= want)
        return leat_pull_fail(p, leat_error(FAILED_PRECONDITION,
                                            "Input dataset was expected to contain %lld elements "
                                            "but contained at least %lld elements.",
                                            (long long)want, (long long)it->count + 1));
    return p->end ? LEAT_NEXT_END : LEAT_NEXT_ELEMENT;
}

static const leat_dataset_kind counted_kind = {
    .size = sizeof(counted),
    .iterator_size = sizeof(leat_iterator),
    .inputs = 1,
    .make = counted_make,
    .cardinality = counted_cardinality,
    .next = counted_next,
};
LEAT_DATASET_RUN(counted_kind)

const leat_kernel_def leat_data_kernels_wrap[] = {
    {.op = "ModelDataset", .run = same_run},
    {.op = "OptimizeDataset", .run = same_run},
    {.op = "OptimizeDatasetV2", .run = same_run},
    {.op = "OptionsDataset", .run = same_run},
    {.op = "FinalizeDataset", .run = same_run},
    {.op = "RewriteDataset", .run = same_run},
    {.op = "AssertCardinalityDataset", .run = counted_kind_run},
    LEAT_DATASET_BOTH("AssertNextDataset", same_run),
    LEAT_DATASET_BOTH("NonSerializableDataset", same_run),
    LEAT_DATASET_BOTH("MaxIntraOpParallelismDataset", max_intra_run),
    LEAT_DATASET_BOTH("PrivateThreadPoolDataset", threads_run),
    LEAT_DATASET_BOTH("ChooseFastestDataset", fastest_run),
    LEAT_DATASET_HANDLE("ThreadPoolHandle", threads_handle_run),
    LEAT_DATASET_HANDLE("ExperimentalThreadPoolHandle", threads_handle_run),
    LEAT_DATASET_BOTH("ThreadPoolDataset", use_threads_run),
    LEAT_DATASET_BOTH("IgnoreErrorsDataset", ignore_kind_run),
    LEAT_DATASET_BOTH("SleepDataset", sleep_kind_run),
    {0},
};
