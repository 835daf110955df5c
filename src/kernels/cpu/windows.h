/* windows.h -- windows that slide over images and volumes, as pooling ops have them.
 *
 * All data formats are computed alike: as `images` arrays of (planes, rows, columns, channels). An
 * image has one plane. Where channels come first (NCHW), each channel is an image of its own, of
 * one channel. Pooling over the depth is pooling over columns of one row.
 */
#ifndef LEAT_CPU_WINDOWS_H
#define LEAT_CPU_WINDOWS_H

#include "kernels/cpu/cpu.h"

typedef struct leat_windows {
    int64_t images, channels;
    int64_t in[3], out[3];      /* planes, rows, columns */
    int64_t size[3], stride[3]; /* of windows */
    int64_t before[3];          /* padding before the first element of a dimension */
    leat_shape x, y;            /* what is pooled, and the result */
    leat_kernel *k;             /* which pools, for leat_look_begin */
} leat_windows;

/* Reads the windows of a pooling op over `dims` dimensions (2 or 3), whose image or volume has the
 * shape x. over_depth: windows may be over the channels instead. */
leat_status leat_windows_read(leat_kernel *k, const leat_shape *x, int dims, bool over_depth,
                              leat_windows *w) LEAT_MUST_CHECK;
/* The init of a kernel whose node has its windows as attributes: refuses those that no image can
 * have, before any step. The kernel needs no state. */
leat_status leat_windows_init(const leat_node *n, void *state) LEAT_MUST_CHECK;
/* INVALID_ARGUMENT unless an input has the shape that it must have. */
leat_status leat_windows_expect(const char *name, const leat_shape *got,
                                const leat_shape *want) LEAT_MUST_CHECK;

/* Where window o along dimension d begins and ends, without the padding. */
static inline void leat_window_at(const leat_windows *w, int d, int64_t o, int64_t *from,
                                  int64_t *to)
{
    const int64_t start = o * w->stride[d] - w->before[d], end = start + w->size[d];
    *from = start < 0 ? 0 : start;
    *to = end > w->in[d] ? w->in[d] : end;
}

/* For output row `row`, counted over all images: the bounds of its windows' planes and rows.
 * Returns the number of the first pixel of its image. */
static inline int64_t leat_windows_of_row(const leat_windows *w, int64_t row, int64_t b[6])
{
    leat_window_at(w, 1, row % w->out[1], &b[2], &b[3]);
    leat_window_at(w, 0, row / w->out[1] % w->out[0], &b[0], &b[1]);
    return row / w->out[1] / w->out[0] * w->in[0] * w->in[1] * w->in[2];
}

/* Output rows, over all images and planes, and what a row costs. */
static inline int64_t leat_windows_rows(const leat_windows *w)
{
    return w->images * w->out[0] * w->out[1];
}

/* Elements of a window that lies wholly in the image. */
static inline int64_t leat_window_elements(const leat_windows *w)
{
    int64_t n = w->channels;
    for (int d = 0; d < 3; d++)
        n *= w->size[d] < w->in[d] ? w->size[d] : w->in[d];
    return n;
}

static inline double leat_windows_row_ns(const leat_windows *w, double element_ns)
{
    return (double)w->out[2] * (double)leat_window_elements(w) * element_ns;
}

/* Runs the statement for each pixel of the clipped window ([p0, p1), [r0, r1), [c0, c1)); `at` is
 * the pixel's place in the image. */
#define LEAT_EACH_PIXEL(w, p0, p1, r0, r1, c0, c1, at)                                             \
    for (int64_t p_ = (p0); p_ < (p1); p_++)                                                       \
        for (int64_t r_ = (r0); r_ < (r1); r_++)                                                   \
            for (int64_t at = (p_ * (w)->in[1] + r_) * (w)->in[2] + (c0), end_ = at + (c1) - (c0); \
                 at < end_; at++)

#endif
