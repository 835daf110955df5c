/* select.c -- Select, SelectV2 and Where. */
#include <inttypes.h>

#include "kernels/cpu/move.h"
#include "kernels/cpu/shapes.h"

typedef struct select_args {
    const leat_tensor *cond, *t, *e;
    leat_tensor *y;
    int64_t row; /* elements that one condition selects */
} select_args;

#define SELECT(bytes, T)                                                                           \
    static void select_##T(const bool *c, const T *t, const T *e, T *y, int64_t n)                 \
    {                                                                                              \
        for (int64_t i = 0; i < n; i++)                                                            \
            y[i] = c[i] ? t[i] : e[i];                                                             \
    }
#define SIZES(X) X(1, leat_m1) X(2, leat_m2) X(4, leat_m4) X(8, leat_m8) X(16, leat_m16)
SIZES(SELECT)

#define CASE(bytes, T)                                                                             \
    case bytes:                                                                                    \
        select_##T(AT(bool, s->cond) + begin, AT(T, s->t) + begin, AT(T, s->e) + begin,            \
                   AT(T, s->y) + begin, end - begin);                                              \
        break;

static void elements_part(void *arg, int64_t begin, int64_t end)
{
    select_args *s = arg;
    switch (leat_element_size(s->y->dtype)) {
        SIZES(CASE)
    }
}

static void rows_part(void *arg, int64_t begin, int64_t end)
{
    select_args *s = arg;
    size_t bytes = (size_t)s->row * leat_element_size(s->y->dtype);
    for (int64_t i = begin; i < end; i++) {
        const leat_tensor *from = AT(bool, s->cond)[i] ? s->t : s->e;
        if (from->data != s->y->data) /* if the input's memory is the output's, nothing is copied */
            memcpy((char *)s->y->data + (size_t)i * bytes,
                   (const char *)from->data + (size_t)i * bytes, bytes);
    }
}

static leat_status select_managed(select_args *s)
{
    for (int64_t i = 0; i < s->cond->count; i++)
        LEAT_TRY(leat_elements_copy(s->y->dtype, leat_element(s->y, i * s->row),
                                    leat_element(AT(bool, s->cond)[i] ? s->t : s->e, i * s->row),
                                    s->row));
    return NULL;
}

static leat_status select_run(leat_kernel *k)
{
    select_args s = {leat_kernel_in(k, 0), leat_kernel_in(k, 1), leat_kernel_in(k, 2), NULL, 1};
    const leat_shape *cs = &s.cond->shape, *ts = &s.t->shape;
    bool rows = cs->rank == 1 && ts->rank != 1;
    if (cs->rank == 0 || rows)
        LEAT_REQUIRE(leat_shape_equal(ts, &s.e->shape), INVALID_ARGUMENT,
                     "'then' and 'else' must have the same size.  but received: %s vs. %s",
                     leat_shape_show(ts).s, leat_shape_show(&s.e->shape).s);
    if (cs->rank == 0) {
        leat_kernel_forward(k, 0, AT(bool, s.cond)[0] ? 1 : 2);
        return NULL;
    }
    if (rows) {
        LEAT_REQUIRE(ts->rank >= 1, INVALID_ARGUMENT,
                     "'then' must be at least a vector, but saw shape: %s", leat_shape_show(ts).s);
        LEAT_REQUIRE(ts->dim[0] == s.cond->count, INVALID_ARGUMENT,
                     "Number of batches of 'then' must match size of 'cond', but saw: %" PRId64
                     " vs. %" PRId64,
                     ts->dim[0], s.cond->count);
        s.row = leat_shape_product(ts, 1, ts->rank);
    } else {
        for (int i = 1; i <= 2; i++)
            LEAT_REQUIRE(leat_shape_equal(cs, &leat_kernel_in(k, i)->shape), INVALID_ARGUMENT,
                         "Inputs to operation %s of type Select must have the same size and "
                         "shape.  Input 0: %s != input %d: %s",
                         leat_node_name(leat_kernel_node(k)), leat_shape_show(cs).s, i,
                         leat_shape_show(&leat_kernel_in(k, i)->shape).s);
    }
    LEAT_TRY(leat_kernel_out_over(k, 0, leat_tensor_sole(s.t) ? 1 : 2, ts, &s.y));
    if (s.y->count == 0)
        return NULL;
    if (leat_is_managed(s.y->dtype))
        return select_managed(&s);
    double bytes = (double)s.row * (double)leat_element_size(s.y->dtype);
    leat_kernel_for(k, s.cond->count, rows ? 4 + 0.1 * bytes : 0.3 + 0.1 * bytes,
                    rows ? rows_part : elements_part, &s);
    return NULL;
}

/* ---- SelectV2: inputs that are smaller than the output are broadcast first ---- */

static leat_status common_shape(const leat_shape *a, const leat_shape *b, leat_shape *out)
{
    const leat_shape *more = a->rank > b->rank ? a : b, *less = a->rank > b->rank ? b : a;
    leat_shape s = *more;
    for (int d = 0; d < less->rank; d++) {
        int64_t *dim = &s.dim[s.rank - less->rank + d];
        LEAT_REQUIRE(*dim == less->dim[d] || *dim == 1 || less->dim[d] == 1, INVALID_ARGUMENT,
                     "must be broadcastable");
        *dim = *dim == 1 ? less->dim[d] : *dim;
    }
    *out = s;
    return NULL;
}

static leat_status spread(leat_kernel *k, const leat_shape *s, const leat_tensor **x)
{
    if (leat_shape_equal(&(*x)->shape, s))
        return NULL;
    int64_t from[LEAT_MAX_RANK], to[LEAT_MAX_RANK];
    int front = s->rank - (*x)->shape.rank;
    leat_tensor *y;
    leat_move m;
    LEAT_TRY(leat_kernel_temp(k, (*x)->dtype, s, &y));
    leat_strides(&(*x)->shape, from);
    leat_strides(s, to);
    leat_move_begin(&m);
    for (int d = 0; d < s->rank; d++)
        leat_move_dim(&m, s->dim[d], to[d],
                      d < front || (*x)->shape.dim[d - front] == 1 ? 0 : from[d - front]);
    LEAT_TRY(leat_move_run(k, &m, y->dtype, y->data, (*x)->data));
    *x = y;
    return NULL;
}

static leat_status select_v2(leat_kernel *k)
{
    select_args s = {leat_kernel_in(k, 0), leat_kernel_in(k, 1), leat_kernel_in(k, 2), NULL, 1};
    leat_shape out;
    leat_status bad = common_shape(&s.t->shape, &s.e->shape, &out);
    if (bad)
        return leat_status_prefix(bad, "then %s and else %s ", leat_shape_show(&s.t->shape).s,
                                  leat_shape_show(&s.e->shape).s);
    bad = common_shape(&s.cond->shape, &out, &out);
    if (bad)
        return leat_status_prefix(bad, "condition %s, then %s, and else %s ",
                                  leat_shape_show(&s.cond->shape).s, leat_shape_show(&s.t->shape).s,
                                  leat_shape_show(&s.e->shape).s);
    LEAT_TRY(leat_kernel_out(k, 0, &out, &s.y));
    if (s.y->count == 0)
        return NULL;
    LEAT_TRY(spread(k, &out, &s.cond));
    LEAT_TRY(spread(k, &out, &s.t));
    LEAT_TRY(spread(k, &out, &s.e));
    if (leat_is_managed(s.y->dtype))
        return select_managed(&s);
    leat_kernel_for(k, s.y->count, 0.3 + 0.1 * (double)leat_element_size(s.y->dtype), elements_part,
                    &s);
    return NULL;
}

/* ---- Where ---- */

#define WHERE(dtype, T)                                                                            \
    static int64_t count_##T(const T *x, int64_t n)                                                \
    {                                                                                              \
        int64_t found = 0;                                                                         \
        for (int64_t i = 0; i < n; i++)                                                            \
            found += x[i] != 0;                                                                    \
        return found;                                                                              \
    }                                                                                              \
    static int64_t *places_##T(const T *x, int64_t n, int64_t *y)                                  \
    {                                                                                              \
        for (int64_t i = 0; i < n; i++)                                                            \
            if (x[i] != 0)                                                                         \
                *y++ = i;                                                                          \
        return y;                                                                                  \
    }
#define EACH(X) LEAT_X_REAL(X) X(BOOL, bool)
EACH(WHERE)

#define COUNT(dtype, T)                                                                            \
    case LEAT_##dtype:                                                                             \
        n = count_##T(x->data, x->count);                                                          \
        break;
#define PLACES(dtype, T)                                                                           \
    case LEAT_##dtype:                                                                             \
        places_##T(x->data, x->count, at);                                                         \
        break;

/* From the last on, each flat index is replaced by rank numbers; the ones before it are still
 * flat. */
static void unravel(int64_t *y, int64_t n, const leat_shape *s)
{
    if (s->rank == 1)
        return;
    for (int64_t i = n - 1; i >= 0; i--) {
        int64_t flat = y[i];
        for (int d = s->rank - 1; d >= 0; d--) {
            y[i * s->rank + d] = flat % s->dim[d];
            flat /= s->dim[d];
        }
    }
}

static leat_status where(leat_kernel *k)
{
    const leat_tensor *x = leat_kernel_in(k, 0);
    int64_t n = 0;
    switch (x->dtype) {
        EACH(COUNT)
    default:
        break;
    }
    leat_shape s = {.rank = 2, .dim = {n, x->shape.rank}};
    leat_tensor *y;
    LEAT_TRY(leat_kernel_out(k, 0, &s, &y));
    if (y->count == 0)
        return NULL;
    int64_t *at = y->data;
    switch (x->dtype) {
        EACH(PLACES)
    default:
        break;
    }
    unravel(at, n, &x->shape);
    return NULL;
}

#define WHERE_TYPES ((LEAT_TYPES_REAL & ~LEAT_TYPES_SMALL_FLOAT) | LEAT_T(BOOL))

const leat_kernel_def leat_cpu_select[] = {
    {.op = "Select", .run = select_run},
    {.op = "SelectV2", .run = select_v2},
    {.op = "Where", .where = {{"T", WHERE_TYPES}}, .run = where, .flags = LEAT_KERNEL_VIA_FLOAT},
    {0},
};
