/* stitch.c -- DynamicStitch, ParallelDynamicStitch, DynamicPartition. */
#include <inttypes.h>

#include "kernels/cpu/move.h"
#include "kernels/cpu/shapes.h"
#include "kernels/cpu/update.h"

/* data[i].shape is indices[i].shape followed by dimensions that all have in common */
static leat_status check_stitch(leat_kernel *k, int n)
{
    const leat_shape *ix0 = &leat_kernel_in(k, 0)->shape, *d0 = &leat_kernel_in(k, n)->shape;
    for (int i = 0; i < n; i++) {
        const leat_shape *ix = &leat_kernel_in(k, i)->shape, *d = &leat_kernel_in(k, n + i)->shape;
        LEAT_REQUIRE(leat_shape_starts_with(d, ix), INVALID_ARGUMENT,
                     "data[%d].shape = %s does not start with indices[%d].shape = %s", i,
                     leat_shape_show(d).s, i, leat_shape_show(ix).s);
        int rest = d->rank - ix->rank;
        LEAT_REQUIRE(rest == d0->rank - ix0->rank && memcmp(d->dim + ix->rank, d0->dim + ix0->rank,
                                                            sizeof(*d->dim) * (size_t)rest) == 0,
                     INVALID_ARGUMENT,
                     "Need data[0].shape[%d:] = data[%d].shape[%d:], got data[0].shape = %s, "
                     "data[%d].shape = %s, indices[0].shape = %s, indices[%d].shape = %s",
                     ix0->rank, i, ix->rank, leat_shape_show(d0).s, i, leat_shape_show(d).s,
                     leat_shape_show(ix0).s, i, leat_shape_show(ix).s);
    }
    return NULL;
}

typedef struct stitch_args {
    const leat_tensor *indices, *data;
    leat_tensor *y;
    size_t bytes; /* of a row */
} stitch_args;

static void stitch_part(void *arg, int64_t begin, int64_t end)
{
    const stitch_args *s = arg;
    const int32_t *index = s->indices->data;
    for (int64_t i = begin; i < end; i++)
        memcpy((char *)s->y->data + (size_t)index[i] * s->bytes,
               (const char *)s->data->data + (size_t)i * s->bytes, s->bytes);
}

/* If an index occurs twice the last one counts, so only the parallel form, which does not define
 * that, splits the rows of one input among threads. */
static leat_status stitch_inputs(leat_kernel *k, int n, leat_tensor *y, int64_t row, bool parallel)
{
    stitch_args s = {.y = y, .bytes = (size_t)row * leat_element_size(y->dtype)};
    for (int i = 0; i < n; i++) {
        s.indices = leat_kernel_in(k, i);
        s.data = leat_kernel_in(k, n + i);
        if (leat_is_managed(y->dtype))
            for (int64_t e = 0; e < s.indices->count; e++)
                LEAT_TRY(leat_elements_copy(y->dtype,
                                            leat_element(y, AT(int32_t, s.indices)[e] * row),
                                            leat_element(s.data, e * row), row));
        else if (parallel)
            leat_kernel_for(k, s.indices->count, 3 + 0.1 * (double)s.bytes, stitch_part, &s);
        else
            stitch_part(&s, 0, s.indices->count);
    }
    return NULL;
}

static leat_status stitch(leat_kernel *k, bool parallel)
{
    int n = leat_kernel_inputs(k) / 2;
    int64_t max = -1, total = 0;
    for (int i = 0; i < n; i++) {
        const leat_tensor *ix = leat_kernel_in(k, i);
        for (int64_t e = 0; e < ix->count; e++) {
            LEAT_REQUIRE(AT(int32_t, ix)[e] >= 0, INVALID_ARGUMENT,
                         "indices[%" PRId64 "] is out of range", e);
            max = AT(int32_t, ix)[e] > max ? AT(int32_t, ix)[e] : max;
        }
        total += ix->count;
    }
    LEAT_TRY(check_stitch(k, n));
    leat_shape rows = {.rank = 1, .dim = {max + 1}}, s;
    LEAT_TRY(
        leat_shape_join(&rows, &leat_kernel_in(k, n)->shape, leat_kernel_in(k, 0)->shape.rank, &s));
    leat_tensor *y;
    LEAT_TRY(leat_kernel_out(k, 0, &s, &y));
    if (y->count == 0)
        return NULL;
    if (total <= max && !leat_is_managed(y->dtype)) /* rows that no index names are not written */
        LEAT_TRY(leat_move_zero(k, y));
    return stitch_inputs(k, n, y, y->count / (max + 1), parallel);
}

static leat_status stitch_in_order(leat_kernel *k)
{
    return stitch(k, false);
}

static leat_status stitch_parallel(leat_kernel *k)
{
    return stitch(k, true);
}

static leat_status partition(leat_kernel *k)
{
    const leat_tensor *data = leat_kernel_in(k, 0), *parts = leat_kernel_in(k, 1);
    int n = leat_node_outputs(leat_kernel_node(k));
    LEAT_REQUIRE(leat_shape_starts_with(&data->shape, &parts->shape), INVALID_ARGUMENT,
                 "data.shape must start with partitions.shape, got data.shape = %s, "
                 "partitions.shape = %s",
                 leat_shape_show(&data->shape).s, leat_shape_show(&parts->shape).s);
    leat_shape counts_shape = {.rank = 1, .dim = {n}}, s;
    leat_tensor *counts, *next;
    LEAT_TRY(leat_kernel_temp(k, LEAT_INT64, &counts_shape, &counts));
    LEAT_TRY(leat_kernel_temp(k, LEAT_INT64, &counts_shape, &next));
    int64_t *count = counts->data, *at = next->data;
    memset(count, 0, sizeof(*count) * (size_t)n);
    memset(at, 0, sizeof(*at) * (size_t)n);
    for (int64_t i = 0; i < parts->count; i++) {
        int32_t p = AT(int32_t, parts)[i];
        LEAT_REQUIRE(p >= 0 && p < n, INVALID_ARGUMENT, "partitions%s = %d is not in [0, %d)",
                     leat_index_show(&parts->shape, i).s, p, n);
        count[p]++;
    }
    for (int p = 0; p < n; p++) {
        leat_shape rows = {.rank = 1, .dim = {count[p]}};
        leat_tensor *y;
        LEAT_TRY(leat_shape_join(&rows, &data->shape, parts->shape.rank, &s));
        LEAT_TRY(leat_kernel_out(k, p, &s, &y));
    }
    if (data->count == 0)
        return NULL;
    int64_t row = data->count / parts->count;
    for (int64_t i = 0; i < parts->count; i++) {
        int32_t p = AT(int32_t, parts)[i];
        LEAT_TRY(leat_elements_copy(data->dtype, leat_element(k->out[p].tensor, at[p]++ * row),
                                    leat_element(data, i * row), row));
    }
    return NULL;
}

const leat_kernel_def leat_cpu_stitch[] = {
    {.op = "DynamicStitch", .run = stitch_in_order},
    {.op = "ParallelDynamicStitch", .run = stitch_parallel},
    {.op = "DynamicPartition", .run = partition},
    {0},
};
