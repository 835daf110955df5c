/* move.h -- one engine for all kernels that only move elements: slices, transposes, pads, tiles,
 * broadcasts and reversals are copies between two strided views of the same dims.
 *
 *     leat_move m;
 *     leat_move_begin(&m);
 *     for (int d = 0; d < rank; d++)                    -- outermost first
 *         leat_move_dim(&m, dim[d], to_stride[d], from_stride[d]);
 *     LEAT_TRY(leat_move_run(k, &m, dtype, to, from));
 *
 * Strides are in elements; a source stride of 0 repeats, a negative one reverses. Elements of any
 * dtype are moved. Destination and source do not overlap.
 *
 * A kernel that touches elements by these functions alone can run on a kind of devices with memory
 * of its own, if the kind can move elements (leat_device_kind.move) and lists the kernel. */
#ifndef LEAT_CPU_MOVE_H
#define LEAT_CPU_MOVE_H

#include "core/element.h"
#include "kernels/cpu/cpu.h"

/* Copies elements by their size. complex64 is aligned to 4 bytes only. */
typedef uint8_t leat_m1;
typedef uint16_t leat_m2 __attribute__((may_alias));
typedef uint32_t leat_m4 __attribute__((may_alias));
typedef uint64_t leat_m8 __attribute__((may_alias, aligned(4)));
typedef struct leat_m16 {
    uint64_t a, b;
} __attribute__((may_alias)) leat_m16;

enum { LEAT_MOVE_RANK = 2 * LEAT_MAX_RANK }; /* Tile makes two dims of each */

typedef struct leat_move {
    int rank;
    bool empty; /* some dim is 0: nothing to move */
    int64_t dim[LEAT_MOVE_RANK], to[LEAT_MOVE_RANK], from[LEAT_MOVE_RANK];
} leat_move;

static inline void leat_move_begin(leat_move *m)
{
    m->rank = 0;
    m->empty = false;
}
/* Adds a dim inside the present ones. Dims that are contiguous are merged. */
void leat_move_dim(leat_move *m, int64_t dim, int64_t to, int64_t from);
leat_status leat_move_run(leat_kernel *k, const leat_move *m, leat_dtype t, void *to,
                          const void *from) LEAT_MUST_CHECK;

/* Moves n contiguous elements. */
leat_status leat_move_flat(leat_kernel *k, leat_dtype t, void *to, const void *from,
                           int64_t n) LEAT_MUST_CHECK;
/* Sets all elements of y to *value, which is in the same memory as y. */
leat_status leat_move_fill(leat_kernel *k, leat_tensor *y, const void *value) LEAT_MUST_CHECK;
/* Sets all elements of y to zero, or to empty strings or null handles. */
leat_status leat_move_zero(leat_kernel *k, leat_tensor *y) LEAT_MUST_CHECK;
/* Whether the kernel's elements are in the memory of a device that moves them itself. */
static inline bool leat_move_is_far(const leat_kernel *k)
{
    return k->device->kind->move && !(k->bound->def->flags & LEAT_KERNEL_ON_HOST);
}

/* move_tile.c: to[a * ts + b] = from[b * fs + a] for a < rows, b < cols; size is an element's. */
void leat_move_crossed(size_t size, void *to, int64_t ts, const void *from, int64_t fs,
                       int64_t rows, int64_t cols);

/* The address of element i. */
static inline void *leat_element(const leat_tensor *t, int64_t i)
{
    return (char *)t->data + (size_t)i * leat_element_size(t->dtype);
}

/* Row-major strides of a known shape, in elements. */
static inline void leat_strides(const leat_shape *s, int64_t *stride)
{
    uint64_t n = 1; /* may wrap in a shape without elements */
    for (int i = s->rank - 1; i >= 0; i--) {
        stride[i] = (int64_t)n;
        n *= (uint64_t)s->dim[i];
    }
}

#endif
