/* lrn.c -- LRN and LRNGrad.
 *
 * Both add up elements over windows along the channels. Rows of channels are laid out one after
 * another with gaps of zeros between them, as long as a window reaches, so that many short rows are
 * summed like one long row. Sums over 1, 2, 4, 8 ... neighbours are made of each other; those that
 * the binary digits of the window's length name are added.
 */
#include <inttypes.h>

#include "kernels/cpu/arith.h"
#include "kernels/cpu/vmath.h"

enum { LINE = 2048 }; /* elements that are computed at a time, unless a row is longer */

typedef struct lrn {
    const float *x, *y, *dy;
    float *out;
    int64_t depth;
    int64_t reach;  /* neighbours on each side; less than depth */
    int64_t step;   /* from one row to the next in a line: depth + reach */
    int64_t length; /* of a line: reach, and some steps */
    float bias, alpha, beta;
    float *line; /* three lines for each row, if a row is longer than LINE; else NULL */
} lrn;

/* sums[i] = line[i] + ... + line[i + 2 * reach], for i in [0, n); overwrites line, which has
 * n + 2 * reach elements. */
static void window_sums(float *line, int64_t n, int64_t reach, float *sums)
{
    int64_t width = 1, offset = 0, left = n + 2 * reach;
    bool first = true;
    for (int64_t rest = 2 * reach + 1;; rest >>= 1) {
        if (rest & 1) {
            const float *from = line + offset;
            if (first)
                memcpy(sums, from, (size_t)n * sizeof(float));
            else
                LEAT_SIMD
            for (int64_t i = 0; i < n; i++)
                sums[i] += from[i];
            first = false;
            offset += width;
        }
        if (rest == 1)
            return;
        left -= width;
        LEAT_SIMD
        for (int64_t i = 0; i < left; i++)
            line[i] += line[i + width];
        width *= 2;
    }
}

#ifdef __AVX__
#include <immintrin.h>
#ifdef __AVX512F__
enum { LANES = 16 };
#else
enum { LANES = 8 };
#endif
typedef float vec __attribute__((vector_size(LANES * 4)));
typedef float vec_any __attribute__((vector_size(LANES * 4), aligned(4), may_alias));

/* x ^ -1/2, for x that is neither tiny nor huge: the processor's estimate and one step of Newton's
 * method, whose error is below that of rounding twice. Roots and divisions take longer. */
static inline vec inverse_root(vec x)
{
#ifdef __AVX512F__
    const vec r = (vec)_mm512_rsqrt14_ps((__m512)x);
#else
    const vec r = (vec)_mm256_rsqrt_ps((__m256)x);
#endif
    return r * (1.5f - 0.5f * x * r * r);
}

static inline bool all_between(vec x, float low, float high)
{
#ifdef __AVX512F__
    const __m512 v = (__m512)x;
    return (_mm512_cmp_ps_mask(v, _mm512_set1_ps(low), _CMP_GE_OQ) &
            _mm512_cmp_ps_mask(v, _mm512_set1_ps(high), _CMP_LE_OQ)) == 0xffff;
#else
    const __m256 v = (__m256)x;
    return _mm256_movemask_ps(_mm256_and_ps(_mm256_cmp_ps(v, _mm256_set1_ps(low), _CMP_GE_OQ),
                                            _mm256_cmp_ps(v, _mm256_set1_ps(high), _CMP_LE_OQ))) ==
           0xff;
#endif
}

/* p[i] = s[i] ^ -0.75, for i in [0, the result), by vectors as long as all their elements allow it.
 */
static int64_t powers_of_most(const float *s, int64_t n, float *p)
{
    int64_t i = 0;
    for (; i + LANES <= n; i += LANES) {
        const vec x = *(const vec_any *)(s + i);
        if (!all_between(x, 1e-16f, 1e16f))
            break;
        const vec r = inverse_root(x);
        *(vec_any *)(p + i) = r * r * inverse_root(r);
    }
    return i;
}
#else
static int64_t powers_of_most(const float *s, int64_t n, float *p)
{
    return 0;
}
#endif

/* p[i] = s[i] ^ -beta. */
static void powers(const float *s, int64_t n, float beta, float *p)
{
    if (beta == 1.0f) {
        for (int64_t i = 0; i < n; i++)
            p[i] = 1.0f / s[i];
    } else if (beta == 0.5f) {
        for (int64_t i = 0; i < n; i++)
            p[i] = 1.0f / sqrtf(s[i]);
    } else if (beta == 0.75f) {
        for (int64_t i = powers_of_most(s, n, p); i < n; i++) {
            const float root = sqrtf(s[i]);
            p[i] = 1.0f / (root * sqrtf(root));
        }
    } else {
        for (int64_t i = 0; i < n; i++)
            p[i] = leat_expf(-beta * leat_logf(s[i]));
    }
}

/* Lays `rows` rows out in a line, with zeros before, between and after them; what a row has is
 * x * x, or dy * y / norm. */
static void lay_out(const lrn *a, int64_t first, int64_t rows, const float *norm, float *line)
{
    const int64_t depth = a->depth, gap = a->reach;
    memset(line, 0, (size_t)gap * sizeof(float));
    for (int64_t r = 0; r < rows; r++) {
        const int64_t at = (first + r) * depth;
        float *to = line + gap + r * a->step;
        if (norm) {
            const float *n = norm + r * a->step;
            LEAT_SIMD
            for (int64_t i = 0; i < depth; i++)
                to[i] = a->dy[at + i] * a->y[at + i] / n[i];
        } else {
            LEAT_SIMD
            for (int64_t i = 0; i < depth; i++)
                to[i] = a->x[at + i] * a->x[at + i];
        }
        memset(to + depth, 0, (size_t)gap * sizeof(float));
    }
}

/* norm[i] = bias + alpha * the sum of squares, of `rows` rows that are `step` apart. */
static void norms(const lrn *a, int64_t first, int64_t rows, float *line, float *norm)
{
    const int64_t n = rows * a->step - a->reach;
    lay_out(a, first, rows, NULL, line);
    window_sums(line, n, a->reach, norm);
    for (int64_t i = 0; i < n; i++)
        norm[i] = a->bias + a->alpha * norm[i];
}

static void forward_rows(const lrn *a, int64_t first, int64_t rows, float *line, float *norm)
{
    const int64_t depth = a->depth;
    norms(a, first, rows, line, norm);
    powers(norm, rows * a->step - a->reach, a->beta, norm);
    for (int64_t r = 0; r < rows; r++) {
        const float *x = a->x + (first + r) * depth, *p = norm + r * a->step;
        float *out = a->out + (first + r) * depth;
        LEAT_SIMD
        for (int64_t i = 0; i < depth; i++)
            out[i] = x[i] * p[i];
    }
}

/* dx = dy * norm ^ -beta - 2 * alpha * beta * x * the sum of dy * y / norm over neighbours. */
static void backward_rows(const lrn *a, int64_t first, int64_t rows, float *line, float *norm,
                          float *sums)
{
    const int64_t depth = a->depth, n = rows * a->step - a->reach;
    const float factor = -2.0f * a->alpha * a->beta;
    norms(a, first, rows, line, norm);
    lay_out(a, first, rows, norm, line);
    window_sums(line, n, a->reach, sums);
    powers(norm, n, a->beta, norm);
    for (int64_t r = 0; r < rows; r++) {
        const int64_t at = (first + r) * depth;
        const float *p = norm + r * a->step, *s = sums + r * a->step;
        LEAT_SIMD
        for (int64_t i = 0; i < depth; i++)
            a->out[at + i] = a->dy[at + i] * p[i] + factor * a->x[at + i] * s[i];
    }
}

static void part(void *arg, int64_t begin, int64_t end)
{
    const lrn *a = arg;
    float lines[3][LINE];
    for (int64_t row = begin; row < end;) {
        float *line = lines[0], *norm = lines[1], *sums = lines[2];
        int64_t rows = (LINE - a->reach) / a->step;
        if (a->line) {
            rows = 1;
            line = a->line + 3 * row * a->length;
            norm = line + a->length;
            sums = norm + a->length;
        }
        if (rows > end - row)
            rows = end - row;
        if (a->dy)
            backward_rows(a, row, rows, line, norm, sums);
        else
            forward_rows(a, row, rows, line, norm);
        row += rows;
    }
}

static leat_status run(leat_kernel *k, const leat_shape *s, lrn *a)
{
    const leat_node *n = leat_kernel_node(k);
    const int64_t radius = leat_node_int(n, "depth_radius");
    LEAT_REQUIRE(s->rank == 4, INVALID_ARGUMENT, "in must be 4-dimensional");
    LEAT_REQUIRE(radius >= 0 && radius < INT32_MAX, INVALID_ARGUMENT,
                 "depth_radius = %" PRId64 " larger than int max", radius);
    leat_tensor *out, *lines;
    LEAT_TRY(leat_kernel_out(k, 0, s, &out));
    if (out->count == 0)
        return NULL;
    a->out = out->data;
    a->depth = s->dim[3];
    a->reach = radius < a->depth ? radius : a->depth - 1;
    a->step = a->depth + a->reach;
    a->length = a->step + a->reach;
    a->bias = (float)leat_node_float(n, "bias");
    a->alpha = (float)leat_node_float(n, "alpha");
    a->beta = (float)leat_node_float(n, "beta");
    const int64_t rows = out->count / a->depth;
    if (a->length > LINE) {
        LEAT_TRY(leat_kernel_temp(k, LEAT_FLOAT, &(leat_shape){3, {rows, 3, a->length}}, &lines));
        a->line = lines->data;
    }
    leat_kernel_for(k, rows, (double)a->depth * (a->dy ? 2 : 1.5), part, a);
    return NULL;
}

static leat_status lrn_run(leat_kernel *k)
{
    const leat_tensor *x = leat_kernel_in(k, 0);
    return run(k, &x->shape, &(lrn){.x = x->data});
}

static leat_status lrn_grad_run(leat_kernel *k)
{
    const leat_tensor *dy = leat_kernel_in(k, 0), *x = leat_kernel_in(k, 1);
    const leat_tensor *y = leat_kernel_in(k, 2);
    LEAT_REQUIRE(dy->shape.rank == 4 && x->shape.rank == 4 && y->shape.rank == 4, INVALID_ARGUMENT,
                 "inputs must be 4-dimensional");
    LEAT_REQUIRE(leat_shape_equal(&x->shape, &dy->shape) && leat_shape_equal(&y->shape, &dy->shape),
                 INVALID_ARGUMENT,
                 "input_grads, input_image, and out_image should have the same shape: %s, %s, %s",
                 leat_shape_show(&dy->shape).s, leat_shape_show(&x->shape).s,
                 leat_shape_show(&y->shape).s);
    return run(k, &x->shape, &(lrn){.x = x->data, .y = y->data, .dy = dy->data});
}

const leat_kernel_def leat_cpu_lrn[] = {
    {.op = "LRN", .where = {{"T", LEAT_T(FLOAT)}}, .run = lrn_run, .flags = LEAT_KERNEL_VIA_FLOAT},
    {.op = "LRNGrad",
     .where = {{"T", LEAT_T(FLOAT)}},
     .run = lrn_grad_run,
     .flags = LEAT_KERNEL_VIA_FLOAT},
    {0},
};
