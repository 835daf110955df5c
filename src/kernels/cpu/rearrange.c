/* rearrange.c -- ops that move elements: Roll, NthElement, InplaceUpdate, InplaceAdd, InplaceSub,
 * Empty, ParallelConcat, DataFormatVecPermute, DataFormatDimMap, CompareAndBitpack. */
#include <stdlib.h>

#include "core/element.h"
#include "kernels/cpu/shapes.h"
#include "kernels/cpu/update.h"

/* ---- Roll ---- */

static leat_status roll_run(leat_kernel *k)
{
    const leat_tensor *x = leat_kernel_in(k, 0), *shift = leat_kernel_in(k, 1),
                      *axis = leat_kernel_in(k, 2);
    const leat_shape *s = &x->shape;
    int64_t by[LEAT_MAX_RANK] = {0};
    LEAT_REQUIRE(s->rank >= 1, INVALID_ARGUMENT, "input must be 1-D or higher");
    LEAT_REQUIRE(shift->shape.rank <= 1, INVALID_ARGUMENT,
                 "shift must be a scalar or a 1-D vector. Found: %s",
                 leat_shape_show(&shift->shape).s);
    LEAT_REQUIRE(axis->shape.rank <= 1, INVALID_ARGUMENT,
                 "axis must be a scalar or a 1-D vector. Found: %s",
                 leat_shape_show(&axis->shape).s);
    LEAT_REQUIRE(leat_shape_equal(&shift->shape, &axis->shape), INVALID_ARGUMENT,
                 "shift and axis must have the same size");
    for (int64_t i = 0; i < axis->count; i++) {
        int64_t a = leat_index_at(axis, i);
        a += a < 0 ? s->rank : 0;
        LEAT_REQUIRE(a >= 0 && a < s->rank, INVALID_ARGUMENT, "axis %lld is out of range",
                     (long long)leat_index_at(axis, i));
        if (s->dim[a] > 0) {
            by[a] = (by[a] + leat_index_at(shift, i) % s->dim[a]) % s->dim[a];
            by[a] += by[a] < 0 ? s->dim[a] : 0;
        }
    }
    leat_tensor *y;
    LEAT_TRY(leat_kernel_out(k, 0, s, &y));
    if (!x->count)
        return NULL;
    int64_t row = s->dim[s->rank - 1], cut = row - by[s->rank - 1];
    size_t size = leat_element_size(x->dtype);
    for (int64_t r = 0; r < x->count / row; r++) {
        int64_t to = 0, stride = 1, left = r;
        for (int d = s->rank - 2; d >= 0; d--) {
            to += (left % s->dim[d] + by[d]) % s->dim[d] * stride;
            left /= s->dim[d];
            stride *= s->dim[d];
        }
        const char *from = (const char *)x->data + (size_t)(r * row) * size;
        char *at = (char *)y->data + (size_t)(to * row) * size;
        LEAT_TRY(leat_elements_copy(x->dtype, at + (size_t)(row - cut) * size, from, cut));
        LEAT_TRY(leat_elements_copy(x->dtype, at, from + (size_t)cut * size, row - cut));
    }
    return NULL;
}

/* ---- NthElement ---- */

#define NTH(dtype, T)                                                                              \
    static int compare_##T(const void *a, const void *b)                                           \
    {                                                                                              \
        const T x = *(const T *)a, y = *(const T *)b;                                              \
        return (x > y) - (x < y);                                                                  \
    }
LEAT_X_REAL(NTH)

static leat_status nth_run(leat_kernel *k)
{
    const leat_tensor *x = leat_kernel_in(k, 0), *n = leat_kernel_in(k, 1);
    LEAT_REQUIRE(n->shape.rank == 0, INVALID_ARGUMENT, "N must be scalar, got shape %s",
                 leat_shape_show(&n->shape).s);
    int64_t at = AT(int32_t, n)[0];
    LEAT_REQUIRE(at >= 0, INVALID_ARGUMENT, "Need n >= 0, got %lld", (long long)at);
    LEAT_REQUIRE(x->shape.rank >= 1, INVALID_ARGUMENT, "Input must be >= 1-D, got shape %s",
                 leat_shape_show(&x->shape).s);
    leat_shape s = x->shape;
    int64_t row = s.dim[--s.rank];
    LEAT_REQUIRE(row > at, INVALID_ARGUMENT, "Input must have at least n+1 columns");
    if (leat_node_bool(leat_kernel_node(k), "reverse"))
        at = row - at - 1;
    leat_tensor *y, *sorted;
    LEAT_TRY(leat_kernel_out(k, 0, &s, &y));
    LEAT_TRY(leat_kernel_temp(k, x->dtype, &(leat_shape){.rank = 1, .dim = {row}}, &sorted));
#define NTH_CASE(dtype, T)                                                                         \
    case LEAT_##dtype:                                                                             \
        for (int64_t r = 0; r < y->count; r++) {                                                   \
            memcpy(sorted->data, AT(T, x) + r * row, (size_t)row * sizeof(T));                     \
            qsort(sorted->data, (size_t)row, sizeof(T), compare_##T);                              \
            AT(T, y)[r] = AT(T, sorted)[at];                                                       \
        }                                                                                          \
        break;
    switch (x->dtype) {
        LEAT_X_REAL(NTH_CASE)
    default:
        break;
    }
    return NULL;
}

/* ---- Inplace: some rows of a copy of x are replaced or updated ---- */

static leat_status inplace(leat_kernel *k, leat_update_op op)
{
    const leat_tensor *x = leat_kernel_in(k, 0), *at = leat_kernel_in(k, 1),
                      *v = leat_kernel_in(k, 2);
    LEAT_REQUIRE(at->shape.rank == 1, INVALID_ARGUMENT, "i must be a vector. %s",
                 leat_shape_show(&at->shape).s);
    LEAT_REQUIRE(x->shape.rank == v->shape.rank && x->shape.rank >= 1, INVALID_ARGUMENT,
                 "x and v shape doesn't match (ranks differ): %s vs. %s",
                 leat_shape_show(&x->shape).s, leat_shape_show(&v->shape).s);
    for (int d = 1; d < x->shape.rank; d++)
        LEAT_REQUIRE(x->shape.dim[d] == v->shape.dim[d], INVALID_ARGUMENT,
                     "x and v shape doesn't match at index %d : %s vs. %s", d,
                     leat_shape_show(&x->shape).s, leat_shape_show(&v->shape).s);
    LEAT_REQUIRE(at->count == v->shape.dim[0], INVALID_ARGUMENT,
                 "i and x shape doesn't match at index 0: %s vs. %s", leat_shape_show(&at->shape).s,
                 leat_shape_show(&v->shape).s);
    leat_update_fn fn = op == LEAT_UPDATE_ASSIGN ? NULL : leat_update_of(x->dtype, op);
    LEAT_REQUIRE(op == LEAT_UPDATE_ASSIGN || fn, INVALID_ARGUMENT, "Unsupported data type: %s",
                 leat_dtype_name(x->dtype));
    leat_tensor *y;
    LEAT_TRY(leat_tensor_clone(NULL, x, &y));
    leat_kernel_set(k, 0, y);
    int64_t rows = x->shape.dim[0], row = rows ? x->count / rows : 0;
    size_t size = leat_element_size(x->dtype);
    for (int64_t i = 0; i < at->count && rows; i++) {
        int64_t r = AT(int32_t, at)[i] % rows; /* like in TensorFlow, row numbers wrap */
        char *to = (char *)y->data + (size_t)((r < 0 ? r + rows : r) * row) * size;
        const char *from = (const char *)v->data + (size_t)(i * row) * size;
        if (fn)
            fn(to, from, row, 1);
        else
            LEAT_TRY(leat_elements_copy(x->dtype, to, from, row));
    }
    return NULL;
}

static leat_status inplace_update_run(leat_kernel *k)
{
    return inplace(k, LEAT_UPDATE_ASSIGN);
}

static leat_status inplace_add_run(leat_kernel *k)
{
    return inplace(k, LEAT_UPDATE_ADD);
}

static leat_status inplace_sub_run(leat_kernel *k)
{
    return inplace(k, LEAT_UPDATE_SUB);
}

/* ---- Empty ---- */

static leat_status empty_run(leat_kernel *k)
{
    const leat_tensor *shape = leat_kernel_in(k, 0);
    leat_shape s;
    leat_tensor *y;
    LEAT_REQUIRE(shape->shape.rank == 1, INVALID_ARGUMENT,
                 "shape must be a vector of int32, got shape %s", leat_shape_show(&shape->shape).s);
    LEAT_TRY(leat_shape_from_tensor(shape, &s));
    LEAT_TRY(leat_tensor_new(leat_kernel_out_dtype(k, 0), s, &y));
    leat_kernel_set(k, 0, y);
    return NULL;
}

/* ---- ParallelConcat: rows (1, ...) one above the other ---- */

static leat_status parallel_concat_run(leat_kernel *k)
{
    leat_shape s = leat_node_shape(leat_kernel_node(k), "shape");
    int n = leat_kernel_inputs(k);
    leat_tensor *y;
    LEAT_REQUIRE(leat_shape_known(&s) && s.rank >= 1 && s.dim[0] == n, INVALID_ARGUMENT,
                 "ParallelConcat of %d values to shape %s", n, leat_shape_show(&s).s);
    LEAT_TRY(leat_kernel_out(k, 0, &s, &y));
    int64_t row = y->count / n;
    for (int i = 0; i < n; i++) {
        const leat_tensor *x = leat_kernel_in(k, i);
        LEAT_REQUIRE(x->count == row, INVALID_ARGUMENT,
                     "value and update shape doesn't match: %s vs. %s", leat_shape_show(&s).s,
                     leat_shape_show(&x->shape).s);
        LEAT_TRY(leat_elements_copy(
            y->dtype, (char *)y->data + (size_t)(i * row) * leat_element_size(y->dtype), x->data,
            row));
    }
    return NULL;
}

/* ---- DataFormatVecPermute, DataFormatDimMap ---- */

typedef struct formats {
    int n, to[8]; /* dimension i of the source is dimension to[i] of the other */
} formats;

static leat_status formats_init(const leat_node *n, void *state)
{
    const char *from = leat_node_string(n, "src_format"), *to = leat_node_string(n, "dst_format");
    size_t a = strlen(from), b = strlen(to);
    formats *f = state;
    LEAT_REQUIRE(a == 4 || a == 5, INVALID_ARGUMENT,
                 "Source format must be of length 4 or 5, received src_format = %s", from);
    LEAT_REQUIRE(b == 4 || b == 5, INVALID_ARGUMENT,
                 "Destination format must be of length 4 or 5, received dst_format = %s", to);
    f->n = (int)a;
    for (size_t i = 0; i < a; i++) {
        const char *at = strchr(to, from[i]);
        LEAT_REQUIRE(a == b && at && !strchr(from + i + 1, from[i]), INVALID_ARGUMENT,
                     "Destination and source format must determine a permutation, got %s and %s",
                     from, to);
        f->to[i] = (int)(at - to);
    }
    return NULL;
}

static void put(leat_tensor *y, int64_t i, int64_t v)
{
    if (y->dtype == LEAT_INT32)
        AT(int32_t, y)[i] = (int32_t)v;
    else
        AT(int64_t, y)[i] = v;
}

static leat_status vec_permute_run(leat_kernel *k)
{
    const leat_tensor *x = leat_kernel_in(k, 0);
    const formats *f = leat_kernel_state(k);
    LEAT_REQUIRE(x->shape.rank == 1 || x->shape.rank == 2, INVALID_ARGUMENT,
                 "input must be a vector or 2D tensor, but got shape %s",
                 leat_shape_show(&x->shape).s);
    LEAT_REQUIRE(x->shape.dim[0] == f->n, INVALID_ARGUMENT,
                 x->shape.rank == 1
                     ? "1D input must be of size %d, but got shape %s"
                     : "First dimension of 2D input must be of size %d, but got shape %s",
                 f->n, leat_shape_show(&x->shape).s);
    LEAT_REQUIRE(x->shape.rank == 1 || x->shape.dim[1] == 2, INVALID_ARGUMENT,
                 "Second dimension of 2D input must be of size 2, but got shape %s",
                 leat_shape_show(&x->shape).s);
    leat_tensor *y;
    LEAT_TRY(leat_kernel_out(k, 0, &x->shape, &y));
    int64_t each = x->shape.rank == 1 ? 1 : 2;
    for (int i = 0; i < f->n; i++)
        for (int64_t j = 0; j < each; j++)
            put(y, f->to[i] * each + j, leat_index_at(x, i * each + j));
    return NULL;
}

static leat_status dim_map_run(leat_kernel *k)
{
    const leat_tensor *x = leat_kernel_in(k, 0);
    const formats *f = leat_kernel_state(k);
    leat_tensor *y;
    LEAT_TRY(leat_kernel_out(k, 0, &x->shape, &y));
    for (int64_t i = 0; i < x->count; i++) {
        int64_t d = (leat_index_at(x, i) % f->n + f->n) % f->n;
        put(y, i, f->to[d]);
    }
    return NULL;
}

/* ---- CompareAndBitpack: a bit for each element above a threshold, eight to a byte ---- */

static leat_status bitpack_run(leat_kernel *k)
{
    const leat_tensor *x = leat_kernel_in(k, 0), *least = leat_kernel_in(k, 1);
    leat_shape s = x->shape;
    LEAT_REQUIRE(least->shape.rank == 0, INVALID_ARGUMENT,
                 "Compare must be a scalar, but saw shape: %s", leat_shape_show(&least->shape).s);
    LEAT_REQUIRE(s.rank >= 1, INVALID_ARGUMENT,
                 "Input should be at least a vector, but saw a scalar.");
    LEAT_REQUIRE(s.dim[s.rank - 1] % 8 == 0, INVALID_ARGUMENT,
                 "Inner dimension of input should be divisible by 8, but saw shape: %s",
                 leat_shape_show(&s).s);
    s.dim[s.rank - 1] /= 8;
    leat_tensor *y;
    LEAT_TRY(leat_kernel_out(k, 0, &s, &y));
    bool wide = x->dtype == LEAT_INT64, flags = x->dtype == LEAT_BOOL;
    double limit = leat_tensor_at(least, 0);
    for (int64_t i = 0; i < y->count; i++) {
        unsigned bits = 0;
        for (int64_t j = 8 * i; j < 8 * i + 8; j++) {
            bool above = wide    ? AT(int64_t, x)[j] > AT(int64_t, least)[0]
                         : flags ? AT(bool, x)[j]
                                 : leat_tensor_at(x, j) > limit;
            bits = bits << 1 | above;
        }
        AT(uint8_t, y)[i] = (uint8_t)bits;
    }
    return NULL;
}

#define FORMATS(name, fn)                                                                          \
    {                                                                                              \
        .op = name, .run = fn, .init = formats_init, .state_size = sizeof(formats)                 \
    }

const leat_kernel_def leat_cpu_rearrange[] = {
    {.op = "Roll", .run = roll_run},
    {.op = "NthElement",
     .where = {{"T", LEAT_TYPES_REAL & ~LEAT_TYPES_SMALL_FLOAT}},
     .run = nth_run,
     .flags = LEAT_KERNEL_VIA_FLOAT},
    {.op = "InplaceUpdate", .run = inplace_update_run},
    {.op = "InplaceAdd", .run = inplace_add_run},
    {.op = "InplaceSub", .run = inplace_sub_run},
    {.op = "Empty", .run = empty_run},
    {.op = "ParallelConcat", .run = parallel_concat_run},
    FORMATS("DataFormatVecPermute", vec_permute_run),
    FORMATS("DataFormatDimMap", dim_map_run),
    {.op = "CompareAndBitpack", .run = bitpack_run},
    {0},
};
