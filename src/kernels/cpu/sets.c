/* sets.c -- rows of the last dimension as sets: their unions, intersections, differences and sizes.
 * Both sides are converted to lists of (group, value), sorted and without duplicates, which are
 * then merged. */
#include <ctype.h>
#include <stdlib.h>

#include "core/alloc.h"
#include "core/strbuf.h"
#include "kernels/cpu/shapes.h"
#include "kernels/cpu/sparse.h"

typedef struct member {
    int64_t group; /* number of the row */
    int64_t number;
    const leat_string *text; /* or NULL */
} member;

typedef struct side {
    member *v;
    int64_t n;
    leat_shape groups; /* the shape without its last dimension */
} side;

static int compare(const void *pa, const void *pb)
{
    const member *a = pa, *b = pb;
    if (a->group != b->group)
        return a->group < b->group ? -1 : 1;
    if (!a->text)
        return (a->number > b->number) - (a->number < b->number);
    size_t n = a->text->size < b->text->size ? a->text->size : b->text->size;
    int c = n ? memcmp(a->text->data, b->text->data, n) : 0;
    return c ? c : (a->text->size > b->text->size) - (a->text->size < b->text->size);
}

static member member_of(const leat_tensor *t, int64_t i, int64_t group)
{
    member m = {.group = group};
    switch (t->dtype) {
        LEAT_CASES(INTEGER, m.number = (int64_t)AT(T, t)[i]);
    default:
        m.text = AT(leat_string, t) + i;
    }
    return m;
}

static void sort(side *s)
{
    int64_t n = 0;
    if (s->n)
        qsort(s->v, (size_t)s->n, sizeof(*s->v), compare);
    for (int64_t i = 0; i < s->n; i++)
        if (n == 0 || compare(&s->v[n - 1], &s->v[i]) != 0)
            s->v[n++] = s->v[i];
    s->n = n;
}

static leat_status dense_side(const leat_tensor *t, side *out)
{
    LEAT_REQUIRE(t->shape.rank >= 2, INVALID_ARGUMENT, "Shape %s has rank %d < 2",
                 leat_shape_show(&t->shape).s, t->shape.rank);
    int64_t last = t->shape.dim[t->shape.rank - 1];
    LEAT_TRY(leat_try_array(t->count, &out->v));
    out->n = t->count;
    out->groups = t->shape;
    out->groups.rank--;
    for (int64_t i = 0; i < t->count; i++)
        out->v[i] = member_of(t, i, i / last);
    sort(out);
    return NULL;
}

static leat_status sparse_side(leat_kernel *k, int i, bool validate, side *out)
{
    leat_sparse s;
    LEAT_TRY(leat_sparse_input(k, i, &s));
    LEAT_REQUIRE(s.rank >= 2, INVALID_ARGUMENT, "Invalid rank %d.", s.rank);
    LEAT_TRY(leat_sparse_check(&s, validate));
    LEAT_TRY(leat_try_array(s.n, &out->v));
    out->n = s.n;
    out->groups = s.shape;
    out->groups.rank--;
    for (int64_t j = 0; j < s.n; j++)
        out->v[j] =
            member_of(s.values, j, leat_place_flat(&s.shape, s.rank - 1, leat_sparse_at(&s, j)));
    sort(out);
    return NULL;
}

/* ---- Operations ---- */

typedef struct set_op {
    bool only_a, only_b, both; /* which elements the result has */
} set_op;

static leat_status op_init(const leat_node *n, void *state)
{
    const char *name = leat_node_string(n, "set_operation");
    char lower[16] = {0};
    for (size_t i = 0; i < sizeof(lower) - 1 && name[i]; i++)
        lower[i] = (char)tolower((unsigned char)name[i]);
    set_op *op = state;
    op->only_a = strcmp(lower, "a-b") == 0 || strcmp(lower, "union") == 0;
    op->only_b = strcmp(lower, "b-a") == 0 || strcmp(lower, "union") == 0;
    op->both = strcmp(lower, "intersection") == 0 || strcmp(lower, "union") == 0;
    LEAT_REQUIRE(op->only_a || op->only_b || op->both, INVALID_ARGUMENT,
                 "Invalid set_operation %s.", name);
    return NULL;
}

/* Merges a and b, in order; out has room for all. */
static int64_t combine(const set_op *op, const side *a, const side *b, member *out)
{
    int64_t i = 0, j = 0, n = 0;
    while (i < a->n || j < b->n) {
        int c = i == a->n ? 1 : j == b->n ? -1 : compare(&a->v[i], &b->v[j]);
        if (c < 0 ? op->only_a : c > 0 ? op->only_b : op->both)
            out[n++] = c <= 0 ? a->v[i] : b->v[j];
        i += c <= 0;
        j += c >= 0;
    }
    return n;
}

static leat_status put_value(leat_tensor *y, int64_t i, const member *m)
{
    switch (y->dtype) {
        LEAT_CASES(INTEGER, AT(T, y)[i] = (T)m->number);
    default:
        LEAT_REQUIRE(leat_string_set(AT(leat_string, y) + i, m->text->data, m->text->size),
                     RESOURCE_EXHAUSTED, "no memory for a string of %zu bytes", m->text->size);
    }
    return NULL;
}

static leat_status give(leat_kernel *k, const leat_shape *groups, const member *v, int64_t n)
{
    int rank = groups->rank + 1;
    leat_tensor *indices, *values, *shape;
    LEAT_TRY(leat_kernel_out(k, 0, &(leat_shape){.rank = 2, .dim = {n, rank}}, &indices));
    LEAT_TRY(leat_kernel_out(k, 1, &(leat_shape){.rank = 1, .dim = {n}}, &values));
    LEAT_TRY(leat_kernel_out(k, 2, &(leat_shape){.rank = 1, .dim = {rank}}, &shape));
    int64_t at = 0, most = 0;
    for (int64_t i = 0; i < n; i++) {
        at = i > 0 && v[i].group == v[i - 1].group ? at + 1 : 0;
        most = at + 1 > most ? at + 1 : most;
        int64_t *place = AT(int64_t, indices) + i * rank, left = v[i].group;
        for (int d = rank - 2; d >= 0; d--) {
            place[d] = left % groups->dim[d];
            left /= groups->dim[d];
        }
        place[rank - 1] = at;
        LEAT_TRY(put_value(values, i, &v[i]));
    }
    memcpy(shape->data, groups->dim, sizeof(int64_t) * (size_t)(rank - 1));
    AT(int64_t, shape)[rank - 1] = most;
    return NULL;
}

static leat_status operate(leat_kernel *k, const side *a, const side *b)
{
    leat_text one = leat_shape_show(&a->groups), two = leat_shape_show(&b->groups);
    LEAT_REQUIRE(leat_shape_equal(&a->groups, &b->groups), INVALID_ARGUMENT,
                 "Mismatched shapes %s vs %s", one.s, two.s);
    member *v;
    LEAT_TRY(leat_try_array(a->n + b->n, &v));
    int64_t n = combine(leat_kernel_state(k), a, b, v);
    leat_status s = give(k, &a->groups, v, n);
    free(v);
    return s;
}

/* A sparse side takes three inputs. */
static leat_status run(leat_kernel *k, bool sparse_a, bool sparse_b)
{
    bool validate = leat_node_bool(leat_kernel_node(k), "validate_indices");
    side a = {0}, b = {0};
    leat_status s =
        sparse_a ? sparse_side(k, 0, validate, &a) : dense_side(leat_kernel_in(k, 0), &a);
    int second = sparse_a ? 3 : 1;
    if (!s)
        s = sparse_b ? sparse_side(k, second, validate, &b)
                     : dense_side(leat_kernel_in(k, second), &b);
    if (!s)
        s = operate(k, &a, &b);
    free(a.v);
    free(b.v);
    return s;
}

static leat_status dense_dense_run(leat_kernel *k)
{
    return run(k, false, false);
}

static leat_status dense_sparse_run(leat_kernel *k)
{
    return run(k, false, true);
}

static leat_status sparse_sparse_run(leat_kernel *k)
{
    return run(k, true, true);
}

static leat_status size_run(leat_kernel *k)
{
    side a = {0};
    leat_tensor *y;
    LEAT_TRY(sparse_side(k, 0, true, &a));
    leat_status s = leat_kernel_out(k, 0, &a.groups, &y);
    if (!s) {
        memset(y->data, 0, (size_t)y->count * sizeof(int32_t));
        for (int64_t i = 0; i < a.n; i++)
            AT(int32_t, y)[a.v[i].group]++;
    }
    free(a.v);
    return s;
}

#define SET(name, fn)                                                                              \
    {                                                                                              \
        .op = name, .run = fn, .init = op_init, .state_size = sizeof(set_op)                       \
    }

const leat_kernel_def leat_cpu_sets[] = {
    SET("DenseToDenseSetOperation", dense_dense_run),
    SET("DenseToSparseSetOperation", dense_sparse_run),
    SET("SparseToSparseSetOperation", sparse_sparse_run),
    {.op = "SetSize", .run = size_run},
    {0},
};
