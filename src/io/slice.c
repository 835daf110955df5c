/* slice.c -- parts of tensors: arithmetic, and copying between two parts of one tensor. */
#include "io/slice.h"

#include <stdio.h>
#include <string.h>

#include "core/alloc.h"
#include "core/buffer.h"
#include "core/checked.h"
#include "core/element.h"

leat_slice leat_slice_all(int rank)
{
    leat_slice s = {.rank = rank};
    for (int d = 0; d < rank; d++)
        s.length[d] = -1;
    return s;
}

bool leat_slice_equal(const leat_slice *a, const leat_slice *b)
{
    for (int d = 0; d < a->rank && a->rank == b->rank; d++)
        if (a->start[d] != b->start[d] || a->length[d] != b->length[d])
            return false;
    return a->rank == b->rank;
}

leat_text leat_slice_text(const leat_slice *s)
{
    leat_text t = {{0}};
    size_t n = 0;
    for (int d = 0; d < s->rank && n < sizeof(t.s); d++) {
        const char *colon = d ? ":" : "";
        if (s->length[d] < 0)
            n += (size_t)snprintf(t.s + n, sizeof(t.s) - n, "%s-", colon);
        else
            n += (size_t)snprintf(t.s + n, sizeof(t.s) - n, "%s%lld,%lld", colon,
                                  (long long)s->start[d], (long long)s->length[d]);
    }
    return t;
}

leat_status leat_slice_shape(const leat_slice *s, const leat_shape *whole, leat_shape *out)
{
    LEAT_REQUIRE(s->rank == whole->rank, INTERNAL, "Mismatching ranks: shape = %s, slice = %s",
                 leat_shape_show(whole).s, leat_slice_text(s).s);
    leat_shape part = {.rank = s->rank};
    for (int d = 0; d < s->rank; d++) {
        int64_t end = 0;
        part.dim[d] = s->length[d] < 0 ? whole->dim[d] : s->length[d];
        LEAT_REQUIRE(s->length[d] < 0 ||
                         (s->start[d] >= 0 && leat_add_ok(s->start[d], s->length[d], &end) &&
                          end <= whole->dim[d]),
                     INTERNAL, "Extent in dimension %d out of bounds: shape = %s, slice = %s", d,
                     leat_shape_show(whole).s, leat_slice_text(s).s);
    }
    *out = part;
    return NULL;
}

bool leat_slice_is_all(const leat_slice *s, const leat_shape *whole)
{
    bool all = s->rank == whole->rank;
    for (int d = 0; all && d < s->rank; d++)
        all = s->length[d] < 0 || (s->start[d] == 0 && s->length[d] == whole->dim[d]);
    return all;
}

bool leat_slice_intersect(const leat_slice *a, const leat_slice *b, leat_slice *out)
{
    if (a->rank != b->rank)
        return false;
    leat_slice both = {.rank = a->rank};
    for (int d = 0; d < a->rank; d++) {
        const leat_slice *one = a->length[d] < 0 ? b : a, *two = a->length[d] < 0 ? a : b;
        both.start[d] = one->start[d];
        both.length[d] = one->length[d];
        if (two->length[d] < 0)
            continue;
        int64_t end = one->start[d] + one->length[d], end_two = two->start[d] + two->length[d];
        if (two->start[d] > both.start[d])
            both.start[d] = two->start[d];
        both.length[d] = (end < end_two ? end : end_two) - both.start[d];
        if (both.length[d] <= 0)
            return false;
    }
    *out = both;
    return true;
}

/* The memory layout of a part: its start in the whole tensor, and the strides in bytes. */
typedef struct layout {
    int64_t start[LEAT_MAX_RANK], stride[LEAT_MAX_RANK];
} layout;

static layout layout_of(const leat_slice *s, const leat_shape *whole, int64_t element)
{
    layout l;
    for (int d = s->rank - 1; d >= 0; d--) {
        l.start[d] = s->length[d] < 0 ? 0 : s->start[d];
        l.stride[d] = element;
        element *= s->length[d] < 0 ? whole->dim[d] : s->length[d];
    }
    return l;
}

leat_status leat_slice_copy(leat_dtype t, const leat_shape *whole, const leat_slice *from,
                            const void *src, const leat_slice *to, void *dst)
{
    leat_slice both;
    leat_shape n;
    if (!leat_slice_intersect(from, to, &both))
        return NULL;
    LEAT_TRY(leat_slice_shape(&both, whole, &n));
    if (leat_shape_count(&n) <= 0)
        return NULL;
    int64_t element = (int64_t)leat_element_size(t);
    layout a = layout_of(from, whole, element), b = layout_of(to, whole, element);
    const char *p = src;
    char *q = dst;
    int rank = whole->rank;
    for (int d = 0; d < rank; d++) {
        int64_t start = both.length[d] < 0 ? 0 : both.start[d];
        p += (start - a.start[d]) * a.stride[d];
        q += (start - b.start[d]) * b.stride[d];
    }
    int64_t at[LEAT_MAX_RANK] = {0};
    int64_t row = rank ? n.dim[rank - 1] : 1; /* number of contiguous elements */
    for (;;) {
        LEAT_TRY(leat_elements_copy(t, q, p, row));
        int d = rank - 2;
        for (; d >= 0; d--) {
            p += a.stride[d];
            q += b.stride[d];
            if (++at[d] < n.dim[d])
                break;
            p -= a.stride[d] * n.dim[d];
            q -= b.stride[d] * n.dim[d];
            at[d] = 0;
        }
        if (d < 0)
            return NULL;
    }
}
