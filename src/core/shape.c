/* shape.c -- shapes by value, with unknown ranks and sizes. */
#include <leat/tensor.h>

#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "core/checked.h"

leat_shape leat_shape_unknown(void)
{
    return (leat_shape){.rank = -1};
}

leat_shape leat_shape_unknown_dims(int rank)
{
    if (rank < 0 || rank > LEAT_MAX_RANK)
        return leat_shape_unknown();
    leat_shape s = {.rank = rank};
    for (int i = 0; i < rank; i++)
        s.dim[i] = -1;
    return s;
}

leat_shape leat_shape_make(int rank, const int64_t *dims)
{
    if (rank < 0 || rank > LEAT_MAX_RANK)
        return leat_shape_unknown();
    leat_shape s = {.rank = rank};
    for (int i = 0; i < rank; i++) {
        if (dims[i] < -1)
            return leat_shape_unknown();
        s.dim[i] = dims[i];
    }
    return s;
}

bool leat_shape_known(const leat_shape *s)
{
    for (int i = 0; i < s->rank; i++) {
        if (s->dim[i] < 0)
            return false;
    }
    return s->rank >= 0;
}

bool leat_shape_equal(const leat_shape *a, const leat_shape *b)
{
    if (a->rank < 0 || b->rank < 0)
        return a->rank < 0 && b->rank < 0;
    return a->rank == b->rank && memcmp(a->dim, b->dim, (size_t)a->rank * sizeof(a->dim[0])) == 0;
}

bool leat_shape_compatible(const leat_shape *a, const leat_shape *b)
{
    if (a->rank < 0 || b->rank < 0)
        return true;
    if (a->rank != b->rank)
        return false;
    for (int i = 0; i < a->rank; i++) {
        if (a->dim[i] >= 0 && b->dim[i] >= 0 && a->dim[i] != b->dim[i])
            return false;
    }
    return true;
}

int64_t leat_shape_count(const leat_shape *s)
{
    int64_t count = 1;
    bool empty = false, fits = true;
    if (s->rank < 0)
        return -1;
    for (int i = 0; i < s->rank; i++) {
        if (s->dim[i] < 0)
            return -1;
        if (s->dim[i] == 0)
            empty = true;
        else
            fits = fits && leat_mul_ok(count, s->dim[i], &count);
    }
    return !fits ? -1 : empty ? 0 : count;
}

char *leat_shape_text(const leat_shape *s, char *buf, size_t n)
{
    if (n == 0)
        return buf;
    if (s->rank < 0) {
        snprintf(buf, n, "<unknown>");
        return buf;
    }
    size_t at = (size_t)snprintf(buf, n, "[");
    for (int i = 0; i < s->rank && at < n; i++) {
        const char *comma = i ? "," : "";
        if (s->dim[i] < 0)
            at += (size_t)snprintf(buf + at, n - at, "%s?", comma);
        else
            at += (size_t)snprintf(buf + at, n - at, "%s%" PRId64, comma, s->dim[i]);
    }
    if (at < n)
        snprintf(buf + at, n - at, "]");
    return buf;
}

leat_text leat_shape_show(const leat_shape *s)
{
    leat_text text;
    leat_shape_text(s, text.s, sizeof text.s);
    return text;
}
