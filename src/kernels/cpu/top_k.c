/* top_k.c -- the k largest elements of each row, the largest first, of equal ones the leftmost
 * first; and whether a class is among the k likeliest. If not sorted, they are in the order of
 * TensorFlow's heap. */
#include <stdlib.h>

#include "core/alloc.h"
#include "kernels/cpu/cpu.h"

enum { SINK_ELEMENTS = 32 }; /* whose time an element takes that sinks in a heap */

typedef struct top_k_args {
    leat_kernel *kernel;
    const leat_tensor *x;
    leat_tensor *values, *indices;
    int64_t n, k; /* number of columns; how many of them are selected */
} top_k_args;

/* A heap of k columns with the least at the top; sorted at the end. Comparisons with NaN are false,
 * so the position of a NaN is not defined, but it does no harm. */
#define TOP_K(dtype, T)                                                                            \
    static inline bool worse_##T(const T *x, int32_t a, int32_t b)                                 \
    {                                                                                              \
        return x[a] < x[b] || (!(x[b] < x[a]) && a > b);                                           \
    }                                                                                              \
    static void sink_##T(const T *x, int32_t *heap, int64_t i, int64_t n)                          \
    {                                                                                              \
        int32_t item = heap[i];                                                                    \
        for (int64_t child; (child = 2 * i + 1) < n; i = child) {                                  \
            if (child + 1 < n && worse_##T(x, heap[child + 1], heap[child]))                       \
                child++;                                                                           \
            if (!worse_##T(x, heap[child], item))                                                  \
                break;                                                                             \
            heap[i] = heap[child];                                                                 \
        }                                                                                          \
        heap[i] = item;                                                                            \
    }                                                                                              \
    static void row_##T(const top_k_args *a, int64_t r, leat_look *look)                           \
    {                                                                                              \
        const T *x = AT(T, a->x) + r * a->n;                                                       \
        int32_t *heap = AT(int32_t, a->indices) + r * a->k;                                        \
        for (int64_t i = 0; i < a->k; i++)                                                         \
            heap[i] = (int32_t)i;                                                                  \
        for (int64_t i = a->k / 2; i-- > 0;) {                                                     \
            if (leat_look_over(look, SINK_ELEMENTS))                                               \
                return;                                                                            \
            sink_##T(x, heap, i, a->k);                                                            \
        }                                                                                          \
        for (int64_t c = a->k; c < a->n; c++) {                                                    \
            if (worse_##T(x, heap[0], (int32_t)c)) {                                               \
                if (leat_look_over(look, SINK_ELEMENTS))                                           \
                    return;                                                                        \
                heap[0] = (int32_t)c;                                                              \
                sink_##T(x, heap, 0, a->k);                                                        \
            }                                                                                      \
        }                                                                                          \
        for (int64_t last = a->k - 1; last > 0; last--) {                                          \
            if (leat_look_over(look, SINK_ELEMENTS))                                               \
                return;                                                                            \
            int32_t worst = heap[0];                                                               \
            heap[0] = heap[last];                                                                  \
            heap[last] = worst;                                                                    \
            sink_##T(x, heap, 0, last);                                                            \
        }                                                                                          \
        for (int64_t i = 0; i < a->k; i++)                                                         \
            AT(T, a->values)[r * a->k + i] = x[heap[i]];                                           \
    }
LEAT_X_REAL(TOP_K)

/* The heap of the C++ library that TensorFlow uses, least at the top, with the same moves: a hole
 * sinks to the bottom along the lesser children, then the item rises from there. scratch has k + 1
 * elements. */
#define AS_HEAP(dtype, T)                                                                          \
    static void settle_##T(const T *x, int32_t *heap, int64_t hole, int64_t n, int32_t item)       \
    {                                                                                              \
        const int64_t top = hole;                                                                  \
        for (int64_t child; (child = 2 * hole + 1) < n; hole = child) {                            \
            if (child + 1 < n && !worse_##T(x, heap[child], heap[child + 1]))                      \
                child++;                                                                           \
            heap[hole] = heap[child];                                                              \
        }                                                                                          \
        for (int64_t up; hole > top && worse_##T(x, item, heap[up = (hole - 1) / 2]); hole = up)   \
            heap[hole] = heap[up];                                                                 \
        heap[hole] = item;                                                                         \
    }                                                                                              \
    static void heap_row_##T(const top_k_args *a, int64_t r, int32_t *scratch, leat_look *look)    \
    {                                                                                              \
        const T *x = AT(T, a->x) + r * a->n;                                                       \
        const int64_t k = a->k;                                                                    \
        for (int64_t i = 0; i <= k; i++)                                                           \
            scratch[i] = (int32_t)i;                                                               \
        for (int64_t i = (k - 1) / 2; i >= 0; i--) {                                               \
            if (leat_look_over(look, SINK_ELEMENTS))                                               \
                return;                                                                            \
            settle_##T(x, scratch, i, k + 1, scratch[i]);                                          \
        }                                                                                          \
        settle_##T(x, scratch, 0, k, scratch[k]);                                                  \
        for (int64_t c = k + 1; c < a->n; c++)                                                     \
            if (worse_##T(x, scratch[0], (int32_t)c)) {                                            \
                if (leat_look_over(look, SINK_ELEMENTS))                                           \
                    return;                                                                        \
                settle_##T(x, scratch, 0, k, (int32_t)c);                                          \
            }                                                                                      \
        for (int64_t i = 0; i < k; i++) {                                                          \
            AT(int32_t, a->indices)[r * k + i] = scratch[i];                                       \
            AT(T, a->values)[r * k + i] = x[scratch[i]];                                           \
        }                                                                                          \
    }
LEAT_X_REAL(AS_HEAP)

#define ROW_CASE(dtype, T)                                                                         \
    case LEAT_##dtype:                                                                             \
        row_##T(arg, r, &look);                                                                    \
        break;

#define HEAP_CASE(dtype, T)                                                                        \
    case LEAT_##dtype:                                                                             \
        heap_row_##T(arg, r, scratch, &look);                                                      \
        break;

static void heap_part(void *arg, int64_t begin, int64_t end)
{
    int32_t *scratch = leat_new_array(int32_t, ((top_k_args *)arg)->k + 1);
    leat_look look = leat_look_begin(((top_k_args *)arg)->kernel);
    for (int64_t r = begin; r < end; r++) {
        switch (((top_k_args *)arg)->x->dtype) {
            LEAT_X_REAL(HEAP_CASE)
        default:
            break;
        }
    }
    free(scratch);
}

static void top_k_part(void *arg, int64_t begin, int64_t end)
{
    leat_look look = leat_look_begin(((top_k_args *)arg)->kernel);
    for (int64_t r = begin; r < end; r++) {
        switch (((top_k_args *)arg)->x->dtype) {
            LEAT_X_REAL(ROW_CASE)
        default:
            break;
        }
    }
}

static leat_status top_k(leat_kernel *k)
{
    top_k_args a = {.kernel = k, .x = leat_kernel_in(k, 0)};
    if (leat_kernel_inputs(k) > 1) {
        const leat_tensor *t = leat_kernel_in(k, 1);
        LEAT_REQUIRE(t->shape.rank == 0, INVALID_ARGUMENT, "k must be scalar, got shape %s",
                     leat_shape_show(&t->shape).s);
        a.k = AT(int32_t, t)[0];
    } else {
        a.k = leat_node_int(leat_kernel_node(k), "k");
    }
    leat_shape s = a.x->shape;
    LEAT_REQUIRE(a.k >= 0, INVALID_ARGUMENT, "Need k >= 0, got %lld", (long long)a.k);
    LEAT_REQUIRE(s.rank >= 1, INVALID_ARGUMENT, "input must be >= 1-D, got shape %s",
                 leat_shape_show(&s).s);
    a.n = s.dim[s.rank - 1];
    LEAT_REQUIRE(a.n >= a.k, INVALID_ARGUMENT,
                 "input must have at least k columns. Had %lld, needed %lld", (long long)a.n,
                 (long long)a.k);
    LEAT_REQUIRE(a.n <= INT32_MAX, INVALID_ARGUMENT,
                 "input has too many columns for int32 indices: %lld", (long long)a.n);
    s.dim[s.rank - 1] = a.k;
    LEAT_TRY(leat_kernel_out(k, 0, &s, &a.values));
    LEAT_TRY(leat_kernel_out(k, 1, &s, &a.indices));
    bool as_heap = !leat_node_bool(leat_kernel_node(k), "sorted") && a.k > 1 && a.k < a.n;
    if (a.values->count > 0)
        leat_kernel_for(k, a.x->count / a.n, 3 * (double)a.n + 10 * (double)a.k,
                        as_heap ? heap_part : top_k_part, &a);
    return NULL;
}

/* Whether fewer than k classes are likelier than the target; false if any of them is not finite. */
static bool in_top_k_row(const float *p, int64_t n, int64_t target, int64_t k)
{
    if ((uint64_t)target >= (uint64_t)n || !isfinite(p[target]))
        return false;
    int64_t likelier = 0;
    for (int64_t c = 0; c < n; c++) {
        if (!isfinite(p[c]))
            return false;
        if (p[c] > p[target] && ++likelier > k)
            break;
    }
    return likelier < k;
}

static leat_status in_top_k(leat_kernel *k)
{
    const leat_tensor *predictions = leat_kernel_in(k, 0), *targets = leat_kernel_in(k, 1);
    int64_t top;
    if (leat_kernel_inputs(k) > 2) {
        const leat_tensor *t = leat_kernel_in(k, 2);
        LEAT_REQUIRE(t->shape.rank == 0, INVALID_ARGUMENT, "k must be 0-D, got shape %s",
                     leat_shape_show(&t->shape).s);
        top = leat_index_at(t, 0);
    } else {
        top = leat_node_int(leat_kernel_node(k), "k");
    }
    LEAT_REQUIRE(predictions->shape.rank == 2, INVALID_ARGUMENT,
                 "predictions must be 2-dimensional");
    LEAT_REQUIRE(targets->shape.rank == 1, INVALID_ARGUMENT, "targets must be 1-dimensional");
    int64_t batch = predictions->shape.dim[0], n = predictions->shape.dim[1];
    LEAT_REQUIRE(batch == targets->count, INVALID_ARGUMENT,
                 "First dimension of predictions %lld must match length of targets %lld",
                 (long long)batch, (long long)targets->count);
    leat_tensor *y;
    LEAT_TRY(leat_kernel_out(k, 0, &targets->shape, &y));
    bool *in = AT(bool, y);
    for (int64_t r = 0; r < batch; r++)
        in[r] = in_top_k_row(AT(float, predictions) + r * n, n, leat_index_at(targets, r), top);
    return NULL;
}

#define REAL (LEAT_TYPES_REAL & ~LEAT_TYPES_SMALL_FLOAT)

const leat_kernel_def leat_cpu_top_k[] = {
    {.op = "TopK", .where = {{"T", REAL}}, .run = top_k, .flags = LEAT_KERNEL_VIA_FLOAT},
    {.op = "TopKV2", .where = {{"T", REAL}}, .run = top_k, .flags = LEAT_KERNEL_VIA_FLOAT},
    {.op = "InTopK", .where = {{"T", LEAT_TYPES_INDEX}}, .run = in_top_k},
    {.op = "InTopKV2", .where = {{"T", LEAT_TYPES_INDEX}}, .run = in_top_k},
    {0},
};
