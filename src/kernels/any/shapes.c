/* shapes.c -- shapes read from tensors, and text of indices for messages. */
#include "kernels/cpu/shapes.h"

#include <inttypes.h>
#include <stdio.h>

leat_status leat_shape_from_tensor(const leat_tensor *t, leat_shape *out)
{
    LEAT_REQUIRE(t->shape.rank == 1, INVALID_ARGUMENT,
                 "shape must be a vector of {int32,int64}, got shape %s",
                 leat_shape_show(&t->shape).s);
    LEAT_REQUIRE(t->count <= LEAT_MAX_RANK, INVALID_ARGUMENT, "Too many dimensions");
    leat_shape s = {.rank = (int)t->count};
    for (int i = 0; i < s.rank; i++) {
        s.dim[i] = leat_index_at(t, i);
        LEAT_REQUIRE(s.dim[i] >= 0, INVALID_ARGUMENT, "Dimension %" PRId64 " must be >= 0",
                     s.dim[i]);
    }
    LEAT_REQUIRE(leat_shape_count(&s) >= 0, INVALID_ARGUMENT,
                 "Shape %s would have more than 2**63 - 1 elements", leat_shape_show(&s).s);
    *out = s;
    return NULL;
}

bool leat_shape_starts_with(const leat_shape *s, const leat_shape *prefix)
{
    return s->rank >= prefix->rank &&
           memcmp(s->dim, prefix->dim, sizeof(*s->dim) * (size_t)prefix->rank) == 0;
}

leat_status leat_shape_join(const leat_shape *prefix, const leat_shape *s, int from,
                            leat_shape *out)
{
    int more = s->rank - from;
    LEAT_REQUIRE(prefix->rank + more <= LEAT_MAX_RANK, INVALID_ARGUMENT,
                 "a tensor of %d dimensions would result, and %d are the most", prefix->rank + more,
                 LEAT_MAX_RANK);
    leat_shape r = *prefix;
    memcpy(r.dim + r.rank, s->dim + from, sizeof(*r.dim) * (size_t)more);
    r.rank += more;
    *out = r;
    return NULL;
}

leat_text leat_ints_show(const leat_tensor *t, const char *between)
{
    leat_text text = {""};
    size_t at = 0;
    for (int64_t i = 0; i < t->count && at < sizeof text.s; i++)
        at += (size_t)snprintf(text.s + at, sizeof text.s - at, "%s%" PRId64, i ? between : "",
                               leat_index_at(t, i));
    return text;
}

int64_t leat_broadcast_at(const leat_shape *out, const leat_shape *x, int64_t flat)
{
    int64_t at = 0, stride = 1;
    for (int d = out->rank - 1, e = x->rank - 1; e >= 0; d--, e--) {
        at += (x->dim[e] == 1 ? 0 : flat % out->dim[d]) * stride;
        stride *= x->dim[e];
        flat /= out->dim[d];
    }
    return at;
}
