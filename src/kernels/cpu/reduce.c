/* reduce.c -- Sum, Mean, Prod, Max, Min, All, Any and EuclideanNorm. Adjacent dimensions are merged
 * into runs that are alternately reduced and kept; each pass then reduces the innermost run that is
 * left. */
#include "kernels/cpu/reduce.h"

#include "kernels/cpu/complex.h"

/* ---- One pass ---- */
typedef struct pass_args {
    leat_reduce_fn fn;
    const char *x;
    char *y;
    int64_t along, inner, tile, tiles, chunk, chunks;
    size_t size; /* bytes of an element */
} pass_args;

enum { PART = 1 << 16 }; /* elements that are worth a thread */

/* Unit i of work is tile i % tiles of the columns, then the chunk of the rows, then the outer
 * index. */
static void pass_part(void *arg, int64_t begin, int64_t end)
{
    const pass_args *p = arg;
    if (p->tiles == 1 && p->chunks == 1) {
        const size_t step = (size_t)(p->along * p->inner) * p->size;
        const size_t y_step = (size_t)p->inner * p->size;
        for (int64_t i = begin; i < end; i++)
            p->fn(p->x + (size_t)i * step, p->along, p->inner, p->inner, p->y + (size_t)i * y_step);
        return;
    }
    for (int64_t i = begin; i < end; i++) {
        const int64_t c = i % p->tiles * p->tile, oc = i / p->tiles;
        const int64_t r = oc % p->chunks * p->chunk, o = oc / p->chunks;
        const int64_t w = p->inner - c < p->tile ? p->inner - c : p->tile;
        const int64_t rows = p->along - r < p->chunk ? p->along - r : p->chunk;
        const int64_t from = (o * p->along + r) * p->inner + c, to = oc * p->inner + c;
        p->fn(p->x + (size_t)from * p->size, rows, p->inner, w, p->y + (size_t)to * p->size);
    }
}

leat_status leat_reduce_pass(leat_kernel *k, leat_reduce_fn fn, leat_dtype t, const void *x,
                             int64_t outer, int64_t along, int64_t inner, void *y)
{
    pass_args p = {.fn = fn, .x = x, .y = y, .along = along, .inner = inner};
    if (outer == 0 || inner == 0)
        return NULL;
    if (outer == 1 && along * inner <= PART / 4) { /* along * inner: x's size, which fits */
        fn(x, along, inner, inner, y);
        return NULL;
    }
    p.size = leat_dtype_size(t);
    p.tile = inner > 4096 ? 2048 : inner;
    p.tiles = (inner + p.tile - 1) / p.tile;
    p.chunk = along;
    p.chunks = 1;
    leat_tensor *parts = NULL;
    const int64_t chunk = PART / p.tile > 64 ? PART / p.tile : 64;
    if (outer * p.tiles < 32 && along * p.tile >= 2 * PART && along > chunk) {
        p.chunk = chunk;
        p.chunks = (along + chunk - 1) / chunk;
        leat_shape s = leat_shape(outer * p.chunks * inner);
        LEAT_TRY(leat_kernel_temp(k, t, &s, &parts));
        p.y = parts->data;
    }
    const int64_t rows = p.chunk > 0 ? p.chunk : 1;
    leat_kernel_for(k, outer * p.chunks * p.tiles, 0.15 * (double)(rows * p.tile) + 5, pass_part,
                    &p);
    if (p.chunks > 1)
        return leat_reduce_pass(k, fn, t, parts->data, outer, p.chunks, inner, y);
    return NULL;
}

/* ---- Dimensions, merged ---- */
typedef enum finish { NOTHING, DIVIDE, ROOT } finish;
typedef struct runs {
    int n;
    int64_t dim[LEAT_MAX_RANK];
    bool reduced[LEAT_MAX_RANK];
    int64_t in_one; /* elements that are reduced to one */
    leat_shape out;
} runs;

static leat_status find_runs(const leat_tensor *x, const leat_tensor *axes, bool keep_dims, runs *r)
{
    const int rank = x->shape.rank;
    bool reduced[LEAT_MAX_RANK] = {0};
    for (int64_t i = 0; i < axes->count; i++) {
        const int64_t a = leat_index_at(axes, i);
        LEAT_REQUIRE(a >= -rank && a < rank, INVALID_ARGUMENT,
                     "Invalid reduction dimension (%lld for input with %d dimension(s)",
                     (long long)a, rank);
        reduced[a < 0 ? a + rank : a] = true;
    }
    r->n = 0;
    r->in_one = 1;
    r->out.rank = 0;
    for (int d = 0; d < rank; d++) {
        const int64_t n = x->shape.dim[d];
        if (!reduced[d])
            r->out.dim[r->out.rank++] = n;
        else if (keep_dims)
            r->out.dim[r->out.rank++] = 1;
        if (reduced[d])
            r->in_one *= n;
        if (n == 1)
            continue;
        if (r->n && r->reduced[r->n - 1] == reduced[d]) {
            r->dim[r->n - 1] *= n;
        } else {
            r->dim[r->n] = n;
            r->reduced[r->n++] = reduced[d];
        }
    }
    return NULL;
}

/* ---- After a sum: the mean divides by the number of elements (for integers, of a sum that may
 * have wrapped, rounding toward zero), the norm takes the root ---- */
#define FLOAT_DIVIDE(name, dtype, T)                                                               \
    static inline T divide_##T(T x, T by)                                                          \
    {                                                                                              \
        return x / by;                                                                             \
    }
#define INT_DIVIDE(name, dtype, T)                                                                 \
    static inline T divide_##T(T x, T by)                                                          \
    {                                                                                              \
        if ((T)-1 < 0 && by == (T)-1) /* what the number of elements may wrap to */                \
            return (T)(0 - (LEAT_WIDE(T))x);                                                       \
        return by == 0 ? 0 : (T)(x / by);                                                          \
    }
LEAT_Y_FLOAT(FLOAT_DIVIDE, )
LEAT_Y_INTEGER(INT_DIVIDE, )

#define AROUND_SUM(name, dtype, T)                                                                 \
    static void square_##T(const T *x, T *y, int64_t n)                                            \
    {                                                                                              \
        for (int64_t i = 0; i < n; i++)                                                            \
            y[i] = (T)((LEAT_WIDE(T))x[i] * (LEAT_WIDE(T))x[i]);                                   \
    }                                                                                              \
    static void finish_##T(T *y, int64_t n, finish f, int64_t in_one)                              \
    {                                                                                              \
        for (int64_t i = 0; i < n; i++)                                                            \
            y[i] = f == ROOT ? (T)sqrt((double)y[i]) : divide_##T(y[i], (T)in_one);                \
    }
LEAT_Y_REAL(AROUND_SUM, )

/* The square of a complex number's length; the sum of such squares is real. */
#define AROUND_COMPLEX_SUM(name, dtype, T)                                                         \
    static void square_##T(const T *x, T *y, int64_t n)                                            \
    {                                                                                              \
        for (int64_t i = 0; i < n; i++)                                                            \
            y[i] = __real__ x[i] * __real__ x[i] + __imag__ x[i] * __imag__ x[i];                  \
    }                                                                                              \
    static void finish_##T(T *y, int64_t n, finish f, int64_t in_one)                              \
    {                                                                                              \
        for (int64_t i = 0; i < n; i++)                                                            \
            y[i] = f == ROOT ? (T)sqrt(__real__ y[i]) : y[i] / (double)in_one;                     \
    }
LEAT_Y_COMPLEX(AROUND_COMPLEX_SUM, )

#define SQUARE_CASE(name, dtype, T)                                                                \
    case LEAT_##dtype:                                                                             \
        square_##T(x->data, y->data, x->count);                                                    \
        break;
#define FINISH_CASE(name, dtype, T)                                                                \
    case LEAT_##dtype:                                                                             \
        finish_##T(y->data, y->count, f, in_one);                                                  \
        break;

static leat_status squares(leat_kernel *k, const leat_tensor **x_inout)
{
    const leat_tensor *x = *x_inout;
    leat_tensor *y;
    LEAT_TRY(leat_kernel_temp(k, x->dtype, &x->shape, &y));
    switch (x->dtype) {
        LEAT_Y_REAL(SQUARE_CASE, )
        LEAT_Y_COMPLEX(SQUARE_CASE, )
    default:
        break;
    }
    *x_inout = y;
    return NULL;
}

static void finish_sum(leat_tensor *y, finish f, int64_t in_one)
{
    switch (y->dtype) {
        LEAT_Y_REAL(FINISH_CASE, )
        LEAT_Y_COMPLEX(FINISH_CASE, )
    default:
        break;
    }
}

/* ---- Kernels ---- */
typedef struct reduce_state {
    leat_reduce_fn fn;
    finish finish;
    bool keep_dims;
} reduce_state;

static leat_status init(const leat_node *n, void *state)
{
    static const struct {
        const char *op;
        leat_reducer reducer;
        finish finish;
    } ops[] = {
        {"Sum", LEAT_REDUCE_SUM, NOTHING},   {"Mean", LEAT_REDUCE_SUM, DIVIDE},
        {"Prod", LEAT_REDUCE_PROD, NOTHING}, {"Max", LEAT_REDUCE_MAX, NOTHING},
        {"Min", LEAT_REDUCE_MIN, NOTHING},   {"All", LEAT_REDUCE_ALL, NOTHING},
        {"Any", LEAT_REDUCE_ANY, NOTHING},   {"EuclideanNorm", LEAT_REDUCE_SUM, ROOT},
    };
    const leat_dtype t = leat_dtype_base(leat_out_dtype(leat_node_input(n, 0)));
    reduce_state *s = state;
    for (size_t i = 0; i < sizeof(ops) / sizeof(*ops); i++)
        if (strcmp(ops[i].op, leat_node_op(n)) == 0) {
            s->fn = leat_reduce_find(ops[i].reducer, leat_compute_dtype(t));
            s->finish = ops[i].finish;
        }
    s->keep_dims = leat_node_bool(n, "keep_dims");
    LEAT_REQUIRE(s->fn, INTERNAL, "%s has no reducer for %s", leat_node_op(n), leat_dtype_name(t));
    return NULL;
}

/* Reduces run i: (dims outside it, run i, dims inside it). */
static leat_status reduce_run(leat_kernel *k, const reduce_state *s, leat_dtype t, runs *r, int i,
                              const void **x_inout, leat_tensor *y)
{
    int64_t outer = 1, inner = 1;
    for (int d = 0; d < r->n; d++)
        *(d < i ? &outer : &inner) *= d == i ? 1 : r->dim[d];
    bool last = true;
    for (int d = 0; d < i; d++)
        last &= !r->reduced[d];
    leat_tensor *to = y;
    if (!last) {
        leat_shape shape = leat_shape(outer, inner);
        LEAT_TRY(leat_kernel_temp(k, t, &shape, &to));
    }
    LEAT_TRY(leat_reduce_pass(k, s->fn, t, *x_inout, outer, r->dim[i], inner, to->data));
    r->dim[i] = 1;
    r->reduced[i] = false;
    *x_inout = to->data;
    return NULL;
}

static leat_status reduce(leat_kernel *k)
{
    const reduce_state *s = leat_kernel_state(k);
    const leat_tensor *x = leat_kernel_in(k, 0), *axes = leat_kernel_in(k, 1);
    runs r;
    LEAT_TRY(find_runs(x, axes, s->keep_dims, &r));
    bool any = false;
    for (int i = 0; i < r.n; i++)
        any |= r.reduced[i];
    leat_tensor *y;
    if (s->finish == ROOT)
        LEAT_TRY(squares(k, &x));
    if (!any) {
        LEAT_TRY(leat_tensor_reshape(x, r.out, &y));
        leat_kernel_set(k, 0, y);
    } else {
        LEAT_TRY(leat_kernel_out(k, 0, &r.out, &y));
        const void *from = x->data;
        for (int i = r.n - 1; i >= 0; i--)
            if (r.reduced[i])
                LEAT_TRY(reduce_run(k, s, x->dtype, &r, i, &from, y));
    }
    if (s->finish == ROOT || (s->finish == DIVIDE && any))
        finish_sum(y, s->finish, r.in_one);
    return NULL;
}

#define SUMS (LEAT_ROW_REAL | LEAT_ROW_COMPLEX)
#define REDUCE(op_, types)                                                                         \
    {                                                                                              \
        .op = op_, .where = {{"T", types}}, .run = reduce, .state_size = sizeof(reduce_state),     \
        .init = init, .flags = LEAT_KERNEL_VIA_FLOAT                                               \
    }
#define REDUCE_BOOL(op_)                                                                           \
    {                                                                                              \
        .op = op_, .run = reduce, .state_size = sizeof(reduce_state), .init = init                 \
    }

const leat_kernel_def leat_cpu_reduce[] = {
    REDUCE("Sum", SUMS),          REDUCE("Mean", SUMS),         REDUCE("Prod", SUMS),
    REDUCE("Max", LEAT_ROW_REAL), REDUCE("Min", LEAT_ROW_REAL), REDUCE("EuclideanNorm", SUMS),
    REDUCE_BOOL("All"),           REDUCE_BOOL("Any"),           {0},
};
