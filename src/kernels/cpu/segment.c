/* segment.c -- reductions of rows by segments, sorted and unsorted. */
#include <float.h>
#include <stdio.h>

#include "kernels/cpu/complex.h"
#include "kernels/cpu/reduce.h"

typedef struct segment_state {
    leat_reduce_fn fn;   /* for sorted segments */
    leat_reduce_add add; /* for unsorted segments */
    leat_reducer op;
    bool mean;
    double lowest; /* the lowest finite number of the node's float type, which may be half */
} segment_state;

static leat_status init(const leat_node *n, void *state)
{
    static const struct {
        const char *end; /* of the op's name */
        leat_reducer op;
    } ops[] = {{"Sum", LEAT_REDUCE_SUM},
               {"Mean", LEAT_REDUCE_SUM},
               {"Prod", LEAT_REDUCE_PROD},
               {"Max", LEAT_REDUCE_MAX},
               {"Min", LEAT_REDUCE_MIN}};
    segment_state *s = state;
    const char *end = strstr(leat_node_op(n), "Segment") + strlen("Segment");
    const leat_dtype t = leat_node_type(n, "T"), as = leat_compute_dtype(t);
    for (size_t i = 0; i < sizeof(ops) / sizeof(*ops); i++)
        if (strcmp(end, ops[i].end) == 0)
            s->op = ops[i].op;
    s->mean = strcmp(end, "Mean") == 0;
    s->fn = leat_reduce_find(s->op, as);
    s->add = leat_reduce_add_find(s->op, as);
    s->lowest = t == LEAT_HALF       ? -65504
                : t == LEAT_BFLOAT16 ? -0x1.fep127
                : t == LEAT_FLOAT    ? -FLT_MAX
                                     : -DBL_MAX;
    return NULL;
}

#define DIVIDE(name, dtype, T)                                                                     \
    static void divide_##T(T *y, int64_t n, int64_t by)                                            \
    {                                                                                              \
        const T d = (T)by;                                                                         \
        for (int64_t i = 0; i < n && d != 0; i++)                                                  \
            y[i] = (T)-1 < 0 && d == (T)-1 ? (T)(0 - (LEAT_WIDE(T))y[i]) : (T)(y[i] / d);          \
    }                                                                                              \
    static void fill_##T(T *y, int64_t n, T v)                                                     \
    {                                                                                              \
        for (int64_t i = 0; i < n; i++)                                                            \
            y[i] = v;                                                                              \
    }
LEAT_Y_REAL(DIVIDE, )

#define COMPLEX_DIVIDE(name, dtype, T)                                                             \
    static void divide_##T(T *y, int64_t n, int64_t by)                                            \
    {                                                                                              \
        for (int64_t i = 0; i < n; i++)                                                            \
            y[i] /= (T)by;                                                                         \
    }                                                                                              \
    static void fill_##T(T *y, int64_t n, T v)                                                     \
    {                                                                                              \
        for (int64_t i = 0; i < n; i++)                                                            \
            y[i] = v;                                                                              \
    }
LEAT_Y_COMPLEX(COMPLEX_DIVIDE, )

#define DIVIDE_CASE(name, dtype, T)                                                                \
    case LEAT_##dtype:                                                                             \
        divide_##T(y, n, by);                                                                      \
        break;
#define FILL_CASE(name, dtype, T)                                                                  \
    case LEAT_##dtype:                                                                             \
        fill_##T(y, n, (T)v);                                                                      \
        break;

static void divide(leat_dtype t, void *y, int64_t n, int64_t by)
{
    switch (t) {
        LEAT_Y_REAL(DIVIDE_CASE, )
        LEAT_Y_COMPLEX(DIVIDE_CASE, )
    default:
        break;
    }
}

static void fill(leat_dtype t, void *y, int64_t n, int v)
{
    switch (t) {
        LEAT_Y_REAL(FILL_CASE, )
        LEAT_Y_COMPLEX(FILL_CASE, )
    default:
        break;
    }
}

/* ---- Sorted ---- */
static leat_status sorted(leat_kernel *k)
{
    const segment_state *s = leat_kernel_state(k);
    const leat_tensor *x = leat_kernel_in(k, 0), *ids = leat_kernel_in(k, 1);
    LEAT_REQUIRE(ids->shape.rank == 1, INVALID_ARGUMENT, "segment_ids should be a vector.");
    LEAT_REQUIRE(x->shape.rank >= 1 && x->shape.dim[0] == ids->count, INVALID_ARGUMENT,
                 "segment_ids should be the same size as dimension 0 of input.");
    const int64_t n = ids->count, last = n ? leat_index_at(ids, n - 1) : -1;
    LEAT_REQUIRE(last >= (n ? 0 : -1) && last < INT64_MAX, INVALID_ARGUMENT,
                 "segment ids must be >= 0");
    leat_shape out = x->shape;
    out.dim[0] = last + 1;
    leat_tensor *y;
    LEAT_TRY(leat_kernel_out(k, 0, &out, &y));
    if (!n)
        return NULL;
    const int64_t row = x->count / n;
    const size_t bytes = (size_t)row * leat_dtype_size(x->dtype);
    const char *from = x->data;
    char *to = y->data;
    int64_t done = 0; /* rows of y that are set */
    for (int64_t i = 0, end; i < n; i = end) {
        const int64_t id = leat_index_at(ids, i);
        for (end = i + 1; end < n && leat_index_at(ids, end) == id; end++)
            ;
        LEAT_REQUIRE(end == n || id < leat_index_at(ids, end), INVALID_ARGUMENT,
                     "segment ids are not increasing");
        LEAT_REQUIRE(id >= 0 && id <= last, INVALID_ARGUMENT,
                     "Segment id %lld out of range [0, %lld), possibly because 'segment_ids' input "
                     "is not sorted.",
                     (long long)id, (long long)last + 1);
        if (!row)
            continue;
        fill(x->dtype, to + (size_t)done * bytes, (id - done) * row, s->op == LEAT_REDUCE_PROD);
        s->fn(from + (size_t)i * bytes, end - i, row, row, to + (size_t)id * bytes);
        if (s->mean)
            divide(x->dtype, to + (size_t)id * bytes, row, end - i);
        done = id + 1;
    }
    return NULL;
}

/* ---- Unsorted ---- */
typedef struct unsorted_args {
    const segment_state *s;
    const leat_tensor *x, *ids;
    leat_tensor *y;
    int64_t row; /* elements */
} unsorted_args;

enum { TILE = 128 }; /* columns to a unit of work */

/* Threads divide the columns, so each sum is computed in the order of the rows. */
static void unsorted_part(void *arg, int64_t begin, int64_t end)
{
    const unsorted_args *u = arg;
    const size_t size = leat_dtype_size(u->x->dtype);
    const int64_t c = begin * TILE, w = (end * TILE < u->row ? end * TILE : u->row) - c;
    for (int64_t i = 0; i < u->ids->count; i++) {
        const int64_t id = leat_index_at(u->ids, i);
        if (id >= 0)
            u->s->add((char *)u->y->data + (size_t)(id * u->row + c) * size,
                      (const char *)u->x->data + (size_t)(i * u->row + c) * size, 1, 0, w);
    }
}

/* The value of segments without rows: 0, 1, the lowest or highest finite number. */
static void fill_empty(const segment_state *s, leat_tensor *y)
{
    if (s->op == LEAT_REDUCE_SUM || s->op == LEAT_REDUCE_PROD) {
        fill(y->dtype, y->data, y->count, s->op == LEAT_REDUCE_PROD);
    } else if (y->dtype == LEAT_FLOAT || y->dtype == LEAT_DOUBLE) {
        const double v = s->op == LEAT_REDUCE_MAX ? s->lowest : -s->lowest;
        if (y->dtype == LEAT_FLOAT)
            fill_float(y->data, y->count, (float)v);
        else
            fill_double(y->data, y->count, v);
    } else {
        s->fn(y->data, 0, y->count, y->count, y->data); /* of no rows */
    }
}

/* The position of element i in a tensor of this shape: "[1,2]". */
static void place(const leat_shape *s, int64_t i, char *text, size_t n)
{
    int64_t at[LEAT_MAX_RANK];
    for (int d = s->rank - 1; d >= 0; i /= s->dim[d--])
        at[d] = i % s->dim[d];
    *text = 0;
    size_t used = 0;
    for (int d = 0; d < s->rank && used + 24 < n; d++)
        used += (size_t)snprintf(text + used, n - used, "%s%lld%s", d ? "," : "[", (long long)at[d],
                                 d + 1 < s->rank ? "" : "]");
}

static leat_status unsorted(leat_kernel *k)
{
    unsorted_args u = {leat_kernel_state(k), leat_kernel_in(k, 0), leat_kernel_in(k, 1), NULL, 0};
    const leat_tensor *number = leat_kernel_in(k, 2);
    const leat_shape *x = &u.x->shape, *ids = &u.ids->shape;
    LEAT_REQUIRE(number->shape.rank == 0, INVALID_ARGUMENT,
                 "num_segments should be a scalar, not shape %s",
                 leat_shape_show(&number->shape).s);
    bool starts = x->rank >= ids->rank;
    for (int d = 0; starts && d < ids->rank; d++)
        starts = x->dim[d] == ids->dim[d];
    LEAT_REQUIRE(starts, INVALID_ARGUMENT,
                 "data.shape = %s does not start with segment_ids.shape = %s", leat_shape_show(x).s,
                 leat_shape_show(ids).s);
    const int64_t n = leat_index_at(number, 0);
    LEAT_REQUIRE(n >= 0, INVALID_ARGUMENT, "Input num_segments == %lld must not be negative.",
                 (long long)n);
    LEAT_REQUIRE(x->rank - ids->rank < LEAT_MAX_RANK, INVALID_ARGUMENT, "Too many dimensions");
    leat_shape out = {.rank = 1, .dim = {n}};
    u.row = 1;
    for (int d = ids->rank; d < x->rank; u.row *= x->dim[d++])
        out.dim[out.rank++] = x->dim[d];
    for (int64_t i = 0; i < u.ids->count && u.x->count; i++) {
        const int64_t id = leat_index_at(u.ids, i);
        if (id < n)
            continue;
        char where[256];
        place(ids, i, where, sizeof(where));
        return leat_error(INVALID_ARGUMENT, "segment_ids%s = %lld is out of range [0, %lld)", where,
                          (long long)id, (long long)n);
    }
    LEAT_TRY(leat_kernel_out(k, 0, &out, &u.y));
    if (u.y->count)
        fill_empty(u.s, u.y);
    if (u.x->count)
        leat_kernel_for(k, (u.row + TILE - 1) / TILE,
                        (double)u.ids->count * (5 + 0.2 * (u.row < TILE ? u.row : TILE)),
                        unsorted_part, &u);
    return NULL;
}

#define KERNEL(op_, fn, types)                                                                     \
    {                                                                                              \
        .op = op_, .where = {{"T", types}}, .run = fn, .state_size = sizeof(segment_state),        \
        .init = init, .flags = LEAT_KERNEL_VIA_FLOAT                                               \
    }

#define NUMBERS (LEAT_ROW_REAL | LEAT_TYPES_COMPLEX)

const leat_kernel_def leat_cpu_segment[] = {
    KERNEL("SegmentSum", sorted, NUMBERS),
    KERNEL("SegmentMean", sorted, NUMBERS),
    KERNEL("SegmentProd", sorted, NUMBERS),
    KERNEL("SegmentMax", sorted, LEAT_ROW_REAL),
    KERNEL("SegmentMin", sorted, LEAT_ROW_REAL),
    KERNEL("UnsortedSegmentSum", unsorted, NUMBERS),
    KERNEL("UnsortedSegmentProd", unsorted, NUMBERS),
    KERNEL("UnsortedSegmentMax", unsorted, LEAT_ROW_REAL),
    KERNEL("UnsortedSegmentMin", unsorted, LEAT_ROW_REAL),
    {0},
};
