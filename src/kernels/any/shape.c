/* shape.c -- Shape, ShapeN, Size, Rank. */
#include <inttypes.h>

#include "kernels/cpu/cpu.h"

static leat_status shape_of(leat_kernel *k, int i)
{
    const leat_shape *s = &leat_kernel_in(k, i)->shape;
    leat_shape vector = {.rank = 1, .dim = {s->rank}};
    leat_tensor *y;
    LEAT_TRY(leat_kernel_out(k, i, &vector, &y));
    if (y->dtype == LEAT_INT64) {
        memcpy(y->data, s->dim, sizeof(*s->dim) * (size_t)s->rank);
        return NULL;
    }
    for (int d = 0; d < s->rank; d++) {
        LEAT_REQUIRE(s->dim[d] < INT32_MAX, INVALID_ARGUMENT,
                     "Shape output type is 32-bit  but dim %d is %" PRId64, d, s->dim[d]);
        AT(int32_t, y)[d] = (int32_t)s->dim[d];
    }
    return NULL;
}

static leat_status shape_run(leat_kernel *k)
{
    return shape_of(k, 0);
}

static leat_status shape_n(leat_kernel *k)
{
    for (int i = 0; i < leat_kernel_inputs(k); i++)
        LEAT_TRY(shape_of(k, i));
    return NULL;
}

static leat_status scalar(leat_kernel *k, int64_t v)
{
    leat_shape s = {0};
    leat_tensor *y;
    LEAT_TRY(leat_kernel_out(k, 0, &s, &y));
    if (y->dtype == LEAT_INT64) {
        AT(int64_t, y)[0] = v;
        return NULL;
    }
    LEAT_REQUIRE(v < INT32_MAX, INVALID_ARGUMENT,
                 "Number of elements was larger than representable by 32-bit output type");
    AT(int32_t, y)[0] = (int32_t)v;
    return NULL;
}

static leat_status size(leat_kernel *k)
{
    return scalar(k, leat_kernel_in(k, 0)->count);
}

static leat_status rank(leat_kernel *k)
{
    return scalar(k, leat_kernel_in(k, 0)->shape.rank);
}

const leat_kernel_def leat_any_shape[] = {
    {.op = "Shape", .run = shape_run, .host = "output"},
    {.op = "ShapeN", .run = shape_n, .host = "output"},
    {.op = "Size", .run = size, .host = "output"},
    {.op = "Rank", .run = rank, .host = "output"},
    {0},
};
