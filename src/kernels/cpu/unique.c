/* unique.c -- Unique and similar ops, ListDiff: a hash table with open addressing.
 *
 * A tensor is seen as (outer, n, inner): its n items are slices of outer * inner elements. -0.0
 * equals 0.0, and a NaN equals nothing, not even itself. */
#include <inttypes.h>

#include "core/map.h"
#include "kernels/cpu/move.h"
#include "kernels/cpu/shapes.h"

typedef struct items {
    const leat_tensor *t;
    int64_t outer, n, inner;
} items;

typedef struct table {
    items x;       /* the tensor whose items are in the table */
    int64_t *slot; /* item + 1, or 0: empty */
    uint64_t mask;
} table;

static const void *element(const items *x, int64_t item, int64_t o, int64_t i)
{
    return leat_element(x->t, (o * x->n + item) * x->inner + i);
}

static uint64_t hash_element(leat_dtype t, const void *p)
{
    uint64_t v = 0;
    if (t == LEAT_STRING) {
        const leat_string *s = p;
        return s->size ? leat_hash(s->data, s->size, leat_hash_secret()) : 0;
    }
    memcpy(&v, p, leat_element_size(t));
    bool minus_zero = (t == LEAT_FLOAT && v == 0x80000000) ||
                      (t == LEAT_DOUBLE && v == UINT64_C(1) << 63) ||
                      (t == LEAT_HALF && v == 0x8000) || (t == LEAT_BFLOAT16 && v == 0x8000);
    return minus_zero ? 0 : v;
}

static bool same_element(leat_dtype t, const void *a, const void *b)
{
    switch (t) {
    case LEAT_FLOAT:
        return *(const float *)a == *(const float *)b;
    case LEAT_DOUBLE:
        return *(const double *)a == *(const double *)b;
    case LEAT_HALF:
        return leat_half_to_float(*(const leat_half *)a) ==
               leat_half_to_float(*(const leat_half *)b);
    case LEAT_BFLOAT16:
        return leat_bfloat16_to_float(*(const leat_bfloat16 *)a) ==
               leat_bfloat16_to_float(*(const leat_bfloat16 *)b);
    case LEAT_STRING: {
        const leat_string *s = a, *u = b;
        return s->size == u->size && (s->size == 0 || memcmp(s->data, u->data, s->size) == 0);
    }
    default:
        return memcmp(a, b, leat_element_size(t)) == 0;
    }
}

/* Items that are not equal to themselves get different hashes, so that many of them do not
 * collide. */
static uint64_t hash_item(const items *x, int64_t item)
{
    uint64_t h = leat_hash_secret(); /* items may have been chosen to collide */
    for (int64_t o = 0; o < x->outer; o++)
        for (int64_t i = 0; i < x->inner; i++) {
            const void *e = element(x, item, o, i);
            bool nan = !same_element(x->t->dtype, e, e);
            h = leat_mix(h ^ (nan ? (uint64_t)item : hash_element(x->t->dtype, e)));
        }
    return h;
}

static bool same_item(const items *x, int64_t a, const items *y, int64_t b)
{
    for (int64_t o = 0; o < x->outer; o++)
        for (int64_t i = 0; i < x->inner; i++)
            if (!same_element(x->t->dtype, element(x, a, o, i), element(y, b, o, i)))
                return false;
    return true;
}

static leat_status table_new(leat_kernel *k, const items *x, table *out)
{
    int64_t size = 16;
    while (size < 2 * x->n)
        size *= 2;
    leat_shape s = {.rank = 1, .dim = {size}};
    leat_tensor *slots;
    LEAT_TRY(leat_kernel_temp(k, LEAT_INT64, &s, &slots));
    memset(slots->data, 0, sizeof(int64_t) * (size_t)size);
    *out = (table){*x, slots->data, (uint64_t)size - 1};
    return NULL;
}

/* The slot of item i of x, or the free one where it would be inserted. */
static int64_t *find(const table *t, const items *x, int64_t i)
{
    uint64_t at = hash_item(x, i);
    for (;; at++) {
        int64_t *slot = &t->slot[at & t->mask];
        if (!*slot || same_item(&t->x, *slot - 1, x, i))
            return slot;
    }
}

static void store(leat_tensor *t, int64_t i, int64_t v)
{
    if (t->dtype == LEAT_INT32)
        AT(int32_t, t)[i] = (int32_t)v;
    else
        AT(int64_t, t)[i] = v;
}

/* The items along the axis at input 1, if there is one. */
static leat_status read_items(leat_kernel *k, bool v2, items *x, int *axis_out)
{
    const leat_tensor *t = leat_kernel_in(k, 0), *a = v2 ? leat_kernel_in(k, 1) : NULL;
    LEAT_REQUIRE(t->count <= INT32_MAX, INVALID_ARGUMENT,
                 "unique does not support input tensors larger than %d elements", INT32_MAX);
    LEAT_REQUIRE(!a || a->shape.rank == 1, INVALID_ARGUMENT, "axis expects a 1D vector.");
    LEAT_REQUIRE(!a || a->count <= 1, INVALID_ARGUMENT,
                 "axis does not support input tensors larger than 1 elements");
    int64_t axis = 0;
    if (a && a->count == 1) {
        axis = leat_index_at(a, 0) + (leat_index_at(a, 0) < 0 ? t->shape.rank : 0);
        LEAT_REQUIRE(axis >= 0 && axis < t->shape.rank, INVALID_ARGUMENT,
                     "axis has to be between [0, %d)", t->shape.rank);
    } else {
        LEAT_REQUIRE(t->shape.rank == 1, INVALID_ARGUMENT, "unique expects a 1D vector.");
    }
    *x = (items){t, leat_shape_product(&t->shape, 0, (int)axis), t->shape.dim[axis],
                 leat_shape_product(&t->shape, (int)axis + 1, t->shape.rank)};
    *axis_out = (int)axis;
    return NULL;
}

/* Elements whose time it takes to find an item. */
static int64_t find_elements(const items *x)
{
    enum { JUMP = 16 }; /* to what is not in a cache */
    return JUMP + x->outer * x->inner;
}

/* Copies item first[j] to position j of y for all j below n. */
static leat_status copy_items(leat_kernel *k, leat_tensor *y, const items *x, const int64_t *first,
                              int64_t n)
{
    leat_look look = leat_look_begin(k);
    for (int64_t o = 0; o < x->outer; o++)
        for (int64_t j = 0; j < n; j++) {
            if (leat_look_over(&look, find_elements(x)))
                return leat_kernel_check(k);
            if (x->inner)
                LEAT_TRY(leat_elements_copy(y->dtype, leat_element(y, (o * n + j) * x->inner),
                                            element(x, first[j], o, 0), x->inner));
        }
    return NULL;
}

static leat_status unique(leat_kernel *k, bool v2)
{
    items x = {0};
    int axis = 0;
    LEAT_TRY(read_items(k, v2, &x, &axis));
    leat_shape n = {.rank = 1, .dim = {x.n}}, s = x.t->shape;
    leat_tensor *idx, *first_t, *count_t, *y;
    table seen = {0};
    LEAT_TRY(table_new(k, &x, &seen));
    LEAT_TRY(leat_kernel_out(k, 1, &n, &idx));
    LEAT_TRY(leat_kernel_temp(k, LEAT_INT64, &n, &first_t));
    LEAT_TRY(leat_kernel_temp(k, LEAT_INT64, &n, &count_t));
    int64_t *first = first_t->data, *count = count_t->data, found = 0;
    leat_look look = leat_look_begin(k);
    for (int64_t i = 0; i < x.n; i++) {
        if (leat_look_over(&look, find_elements(&x)))
            return leat_kernel_check(k);
        int64_t *slot = find(&seen, &x, i);
        if (!*slot) {
            *slot = i + 1;
            first[found] = i;
            count[found] = 0;
            store(idx, i, found++);
        } else {
            store(idx, i, leat_index_at(idx, *slot - 1));
        }
        count[leat_index_at(idx, i)]++;
    }
    s.dim[axis] = found;
    LEAT_TRY(leat_kernel_out(k, 0, &s, &y));
    LEAT_TRY(copy_items(k, y, &x, first, found));
    if (leat_node_outputs(leat_kernel_node(k)) == 3) {
        leat_tensor *counts;
        n.dim[0] = found;
        LEAT_TRY(leat_kernel_out(k, 2, &n, &counts));
        for (int64_t i = 0; i < found; i++)
            store(counts, i, count[i]);
    }
    return NULL;
}

static leat_status unique_v1(leat_kernel *k)
{
    return unique(k, false);
}

static leat_status unique_v2(leat_kernel *k)
{
    return unique(k, true);
}

static leat_status list_diff(leat_kernel *k)
{
    const leat_tensor *xt = leat_kernel_in(k, 0), *yt = leat_kernel_in(k, 1);
    LEAT_REQUIRE(xt->shape.rank == 1, INVALID_ARGUMENT, "x should be a 1D vector.");
    LEAT_REQUIRE(yt->shape.rank == 1, INVALID_ARGUMENT, "y should be a 1D vector.");
    LEAT_REQUIRE(xt->count < INT32_MAX, INVALID_ARGUMENT, "x too large for int32 indexing");
    items x = {xt, 1, xt->count, 1}, y = {yt, 1, yt->count, 1};
    leat_tensor *kept_t, *out, *idx;
    table others = {0};
    LEAT_TRY(table_new(k, &y, &others));
    LEAT_TRY(leat_kernel_temp(k, LEAT_INT64, &xt->shape, &kept_t));
    int64_t *kept = kept_t->data, n = 0;
    leat_look look = leat_look_begin(k);
    for (int64_t i = 0; i < y.n; i++) {
        if (leat_look_over(&look, find_elements(&y)))
            return leat_kernel_check(k);
        *find(&others, &y, i) = i + 1;
    }
    for (int64_t i = 0; i < x.n; i++) {
        if (leat_look_over(&look, find_elements(&x)))
            return leat_kernel_check(k);
        if (!*find(&others, &x, i))
            kept[n++] = i;
    }
    leat_shape s = {.rank = 1, .dim = {n}};
    LEAT_TRY(leat_kernel_out(k, 0, &s, &out));
    LEAT_TRY(leat_kernel_out(k, 1, &s, &idx));
    for (int64_t i = 0; i < n; i++)
        store(idx, i, kept[i]);
    return copy_items(k, out, &x, kept, n);
}

#define PLAIN (LEAT_TYPES_REAL | LEAT_T(BOOL) | LEAT_T(STRING))

const leat_kernel_def leat_cpu_unique[] = {
    {.op = "Unique", .where = {{"T", PLAIN}}, .run = unique_v1},
    {.op = "UniqueWithCounts", .where = {{"T", PLAIN}}, .run = unique_v1},
    {.op = "UniqueV2", .where = {{"T", PLAIN}}, .run = unique_v2},
    {.op = "UniqueWithCountsV2", .where = {{"T", PLAIN}}, .run = unique_v2},
    {.op = "ListDiff", .where = {{"T", PLAIN}}, .run = list_diff},
    {0},
};
