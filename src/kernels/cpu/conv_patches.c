/* conv_patches.c -- the matrix of an image's patches, made in parts when a product needs them, so
 * that it is never in memory as a whole. */
#include "kernels/cpu/conv.h"

#define INLINE static inline __attribute__((always_inline))

/* Copies n elements by vectors of 8 floats or 4 doubles; the last vector may overlap the one before
 * it, so that there is no loop over what is left. */
#define COPY(T, LANES)                                                                             \
    typedef T vec_##T __attribute__((vector_size(32), aligned(sizeof(T)), may_alias));             \
    INLINE void copy_##T(T *to, const T *from, int64_t n)                                          \
    {                                                                                              \
        if (n < LANES) {                                                                           \
            for (int64_t i = 0; i < n; i++)                                                        \
                to[i] = from[i];                                                                   \
            return;                                                                                \
        }                                                                                          \
        for (int64_t i = 0; i + LANES <= n; i += LANES)                                            \
            *(vec_##T *)(to + i) = *(const vec_##T *)(from + i);                                   \
        *(vec_##T *)(to + n - LANES) = *(const vec_##T *)(from + n - LANES);                       \
    }                                                                                              \
    INLINE void zero_##T(T *to, int64_t n)                                                         \
    {                                                                                              \
        for (int64_t i = 0; i < n; i++)                                                            \
            to[i] = 0;                                                                             \
    }

/* Elements [off, off + n) of (window width, channels), whose first pixel is `left` of a row of
 * `width` pixels. */
#define LINE(T)                                                                                    \
    INLINE void line_##T(const leat_conv_patches *p, const T *row, int64_t left, int64_t off,      \
                         int64_t n, T *to)                                                         \
    {                                                                                              \
        const int64_t width = p->c->in[2], rate = p->c->rate[2], channels = p->channels;           \
        if (rate == 1 && channels == p->depth) {                                                   \
            const int64_t at = left * channels + off, end = width * channels;                      \
            if (at >= 0 && at + n <= end) {                                                        \
                copy_##T(to, row + at, n);                                                         \
                return;                                                                            \
            }                                                                                      \
            const int64_t skip = at >= 0 ? 0 : -at < n ? -at : n;                                  \
            const int64_t stop = at + n <= end ? n : end - at > skip ? end - at : skip;            \
            zero_##T(to, skip);                                                                    \
            if (stop > skip)                                                                       \
                copy_##T(to + skip, row + at + skip, stop - skip);                                 \
            zero_##T(to + stop, n - stop);                                                         \
            return;                                                                                \
        }                                                                                          \
        int64_t x = left + off / channels * rate, ch = off % channels;                             \
        for (; n > 0; x += rate, ch = 0) {                                                         \
            const int64_t some = channels - ch < n ? channels - ch : n;                            \
            if (x >= 0 && x < width)                                                               \
                copy_##T(to, row + x * p->depth + ch, some);                                       \
            else                                                                                   \
                zero_##T(to, some);                                                                \
            to += some;                                                                            \
            n -= some;                                                                             \
        }                                                                                          \
    }

/* Columns begin at element `off` of line `line`; a patch has lines of (window width, channels). */
#define READ(T)                                                                                    \
    static void read_##T(const leat_conv_patches *p, int64_t row, int64_t rows, int64_t line,      \
                         int64_t off, int64_t cols, T *to, int64_t ld)                             \
    {                                                                                              \
        const leat_conv *c = p->c;                                                                 \
        const int64_t length = c->window[2] * p->channels, in_row = c->in[2] * p->depth;           \
        const int64_t image = c->in[0] * c->in[1] * in_row;                                        \
        const int64_t first0 = line / c->window[1], first1 = line % c->window[1];                  \
        int64_t o2 = row % c->out[2], rest = row / c->out[2];                                      \
        int64_t o1 = rest % c->out[1], o0 = rest / c->out[1] % c->out[0];                          \
        const T *x = (const T *)p->x + rest / c->out[1] / c->out[0] * image;                       \
        for (int64_t r = 0; r < rows; r++, to += ld) {                                             \
            const int64_t left = o2 * c->stride[2] - c->before[2];                                 \
            int64_t w0 = first0, w1 = first1, from = off;                                          \
            for (int64_t done = 0, n; done < cols; done += n, from = 0) {                          \
                const int64_t i0 = o0 * c->stride[0] - c->before[0] + w0 * c->rate[0];             \
                const int64_t i1 = o1 * c->stride[1] - c->before[1] + w1 * c->rate[1];             \
                n = length - from < cols - done ? length - from : cols - done;                     \
                if (i0 >= 0 && i0 < c->in[0] && i1 >= 0 && i1 < c->in[1])                          \
                    line_##T(p, x + (i0 * c->in[1] + i1) * in_row, left, from, n, to + done);      \
                else                                                                               \
                    zero_##T(to + done, n);                                                        \
                if (++w1 == c->window[1])                                                          \
                    w1 = 0, w0++;                                                                  \
            }                                                                                      \
            if (++o2 == c->out[2]) {                                                               \
                o2 = 0;                                                                            \
                if (++o1 == c->out[1]) {                                                           \
                    o1 = 0;                                                                        \
                    if (++o0 == c->out[0])                                                         \
                        o0 = 0, x += image;                                                        \
                }                                                                                  \
            }                                                                                      \
        }                                                                                          \
    }

COPY(float, 8)
COPY(double, 4)
LINE(float)
LINE(double)
READ(float)
READ(double)

void leat_conv_patches_read(const void *arg, int64_t row, int64_t rows, int64_t col, int64_t cols,
                            void *to, int64_t ld)
{
    const leat_conv_patches *p = arg;
    const int64_t length = p->c->window[2] * p->channels;
    row += p->first;
    if (p->dtype == LEAT_DOUBLE)
        read_double(p, row, rows, col / length, col % length, cols, to, ld);
    else
        read_float(p, row, rows, col / length, col % length, cols, to, ld);
}

bool leat_conv_flat(const leat_conv *c)
{
    bool pixels = true, whole = c->groups == 1;
    for (int i = 0; i < LEAT_CONV_SPACE; i++) {
        pixels &= c->window[i] == 1 && c->stride[i] == 1 && !c->before[i] && c->out[i] == c->in[i];
        whole &= c->window[i] == c->in[i] && c->rate[i] == 1 && !c->before[i] && c->out[i] == 1;
    }
    return pixels || whole;
}

leat_status leat_conv_multiply(leat_kernel *k, leat_pool *pool, leat_gemm_op t, int64_t m,
                               int64_t n, int64_t kk, const leat_conv_patches *p, const void *b,
                               int64_t ldb, void *c, int64_t ldc, const leat_gemm_epilogue *e)
{
    if (leat_conv_flat(p->c)) {
        const int64_t lda = p->c->groups > 1 ? p->depth : t == LEAT_GEMM_N ? kk : m;
        const char *x = (const char *)p->x + (size_t)(p->first * lda) * leat_dtype_size(p->dtype);
        leat_gemm(p->dtype, pool, t, LEAT_GEMM_N, m, n, kk, x, lda, b, ldb, c, ldc, e);
        return NULL;
    }
    const leat_gemm_source a = {leat_conv_patches_read, p};
    LEAT_REQUIRE(leat_gemm_made(p->dtype, pool, t, m, n, kk, &a, b, ldb, c, ldc, e),
                 RESOURCE_EXHAUSTED, "%s: out of memory for patches of the images",
                 leat_node_op(leat_kernel_node(k)));
    return NULL;
}
