/* pad.c -- Pad, PadV2, MirrorPad, MirrorPadGrad. */
#include <inttypes.h>

#include "kernels/cpu/move.h"
#include "kernels/cpu/shapes.h"
#include "kernels/cpu/update.h"

typedef struct pads {
    int rank;
    int64_t before[LEAT_MAX_RANK], after[LEAT_MAX_RANK];
} pads;

static leat_status read_pads(leat_kernel *k, pads *p)
{
    const leat_shape *s = &leat_kernel_in(k, 0)->shape;
    const leat_tensor *t = leat_kernel_in(k, 1);
    LEAT_REQUIRE(t->shape.rank == 2 && t->shape.dim[1] == 2, INVALID_ARGUMENT,
                 "paddings must be a matrix with 2 columns: %s", leat_shape_show(&t->shape).s);
    LEAT_REQUIRE(t->shape.dim[0] == s->rank, INVALID_ARGUMENT,
                 "The first dimension of paddings must be the rank of inputs%s %s",
                 leat_shape_show(&t->shape).s, leat_shape_show(s).s);
    p->rank = s->rank;
    for (int d = 0; d < p->rank; d++) {
        p->before[d] = leat_index_at(t, 2 * d);
        p->after[d] = leat_index_at(t, 2 * d + 1);
        LEAT_REQUIRE(p->before[d] >= 0 && p->after[d] >= 0, INVALID_ARGUMENT,
                     "%saddings must be non-negative: %" PRId64 " %" PRId64,
                     strncmp(leat_node_op(leat_kernel_node(k)), "Mirror", 6) == 0 ? "p" : "P",
                     p->before[d], p->after[d]);
    }
    return NULL;
}

static leat_status padded_shape(const leat_shape *s, const pads *p, leat_shape *out)
{
    out->rank = s->rank;
    for (int d = 0; d < s->rank; d++) {
        int64_t n;
        LEAT_REQUIRE(leat_add_ok(s->dim[d], p->before[d], &n) && leat_add_ok(n, p->after[d], &n),
                     INVALID_ARGUMENT, "Dimension %d is too large with its paddings", d);
        out->dim[d] = n;
    }
    return NULL;
}

/* A box in a padded tensor: its start and its size in each dim. */
typedef struct box {
    int64_t at[LEAT_MAX_RANK], dim[LEAT_MAX_RANK];
} box;

static int64_t corner(const box *b, const int64_t *stride, int rank)
{
    int64_t at = 0;
    for (int d = 0; d < rank; d++)
        at += b->at[d] * stride[d];
    return at;
}

/* Copies x to the middle of y. */
static leat_status move_in(leat_kernel *k, const leat_tensor *x, const pads *p, leat_tensor *y)
{
    int64_t to[LEAT_MAX_RANK], from[LEAT_MAX_RANK], at = 0;
    leat_move m;
    leat_strides(&y->shape, to);
    leat_strides(&x->shape, from);
    leat_move_begin(&m);
    for (int d = 0; d < p->rank; d++) {
        leat_move_dim(&m, x->shape.dim[d], to[d], from[d]);
        at += p->before[d] * to[d];
    }
    return leat_move_run(k, &m, x->dtype, leat_element(y, at), x->data);
}

/* Makes y, or outputs x itself if all paddings are 0; then *y is NULL. */
static leat_status padded(leat_kernel *k, const pads *p, leat_tensor **y)
{
    const leat_tensor *x = leat_kernel_in(k, 0);
    leat_shape s;
    LEAT_TRY(padded_shape(&x->shape, p, &s));
    if (leat_shape_count(&s) != x->count)
        return leat_kernel_out(k, 0, &s, y);
    leat_tensor *same;
    LEAT_TRY(leat_tensor_reshape(x, s, &same));
    leat_kernel_set(k, 0, same);
    *y = NULL;
    return NULL;
}

static leat_status pad(leat_kernel *k)
{
    const leat_tensor *x = leat_kernel_in(k, 0);
    leat_tensor *y = NULL;
    pads p;
    LEAT_TRY(read_pads(k, &p));
    const leat_tensor *value = leat_kernel_inputs(k) == 3 ? leat_kernel_in(k, 2) : NULL;
    LEAT_REQUIRE(!value || value->shape.rank == 0, INVALID_ARGUMENT,
                 "constant_values must be a scalar. Found: %s", leat_shape_show(&value->shape).s);
    LEAT_TRY(padded(k, &p, &y));
    if (!y)
        return NULL;
    LEAT_TRY(value ? leat_move_fill(k, y, value->data) : leat_move_zero(k, y));
    return x->count ? move_in(k, x, &p, y) : NULL;
}

/* ---- Mirrors. Borders are made one dim after another, from the last to the first: each is a
 * reversed copy of the elements next to it. The gradient is computed in the opposite order. ---- */

static leat_status mirror_init(const leat_node *n, void *state)
{
    *(int64_t *)state = strcmp(leat_node_string(n, "mode"), "REFLECT") == 0; /* skips the edge */
    return NULL;
}

static leat_status check_mirror(const pads *p, const leat_shape *s, int64_t offset)
{
    for (int d = 0; d < p->rank; d++) {
        int64_t more = p->before[d] > p->after[d] ? p->before[d] : p->after[d];
        LEAT_REQUIRE(offset || more <= s->dim[d], INVALID_ARGUMENT,
                     "paddings must be no greater than the dimension size: %" PRId64 ", %" PRId64
                     " greater than %" PRId64,
                     p->before[d], p->after[d], s->dim[d]);
        LEAT_REQUIRE(!offset || more < s->dim[d], INVALID_ARGUMENT,
                     "paddings must be less than the dimension size: %" PRId64 ", %" PRId64
                     " not less than %" PRId64,
                     p->before[d], p->after[d], s->dim[d]);
    }
    return NULL;
}

/* The border of y along dim d, in front or behind, and the box that it mirrors. Dims after d are
 * taken completely, dims before d without their borders. */
static void border(const leat_shape *y, const pads *p, int d, bool behind, int64_t offset,
                   box *edge, box *inside)
{
    for (int i = 0; i < y->rank; i++) {
        edge->at[i] = i < d ? p->before[i] : 0;
        edge->dim[i] = i < d ? y->dim[i] - p->before[i] - p->after[i] : y->dim[i];
    }
    edge->dim[d] = behind ? p->after[d] : p->before[d];
    *inside = *edge;
    edge->at[d] = behind ? y->dim[d] - p->after[d] : p->before[d] - 1;
    inside->at[d] = behind ? y->dim[d] - p->after[d] - 1 - offset : p->before[d] + offset;
}

static leat_status mirror_pad(leat_kernel *k)
{
    const leat_tensor *x = leat_kernel_in(k, 0);
    int64_t offset = *(const int64_t *)leat_kernel_state(k), stride[LEAT_MAX_RANK];
    leat_tensor *y = NULL;
    pads p;
    LEAT_TRY(read_pads(k, &p));
    LEAT_TRY(check_mirror(&p, &x->shape, offset));
    LEAT_TRY(padded(k, &p, &y));
    if (!y)
        return NULL;
    leat_strides(&y->shape, stride);
    LEAT_TRY(move_in(k, x, &p, y));
    for (int d = p.rank - 1; d >= 0; d--)
        for (int behind = 0; behind < 2; behind++) {
            box edge, inside;
            leat_move m;
            border(&y->shape, &p, d, behind, offset, &edge, &inside);
            leat_move_begin(&m);
            int64_t way = behind ? 1 : -1; /* the outward direction */
            for (int i = 0; i < p.rank; i++)
                leat_move_dim(&m, edge.dim[i], i == d ? way * stride[i] : stride[i],
                              i == d ? -way * stride[i] : stride[i]);
            if (!m.empty)
                LEAT_TRY(leat_move_run(k, &m, y->dtype,
                                       leat_element(y, corner(&edge, stride, p.rank)),
                                       leat_element(y, corner(&inside, stride, p.rank))));
        }
    return NULL;
}

/* Adds the border to the elements that it mirrors, in runs of the dims after d, which are
 * complete. */
static void fold(leat_tensor *t, int d, bool behind, const box *edge, const box *inside)
{
    int64_t stride[LEAT_MAX_RANK], index[LEAT_MAX_RANK] = {0}, n = stride[0] = 1;
    leat_strides(&t->shape, stride);
    for (int i = 0; i <= d; i++)
        n *= edge->dim[i];
    int64_t to = corner(inside, stride, d + 1), from = corner(edge, stride, d + 1);
    leat_update_fn add = leat_update_of(t->dtype, LEAT_UPDATE_ADD);
    int64_t way = behind ? stride[d] : -stride[d];
    for (int64_t r = 0; r < n; r++) {
        add(leat_element(t, to), leat_element(t, from), stride[d], 1);
        for (int i = d; i >= 0; i--) {
            int64_t step_to = i == d ? -way : stride[i], step_from = i == d ? way : stride[i];
            to += step_to;
            from += step_from;
            if (++index[i] < edge->dim[i])
                break;
            to -= index[i] * step_to;
            from -= index[i] * step_from;
            index[i] = 0;
        }
    }
}

static leat_status mirror_pad_grad(leat_kernel *k)
{
    const leat_tensor *dy = leat_kernel_in(k, 0);
    int64_t offset = *(const int64_t *)leat_kernel_state(k), stride[LEAT_MAX_RANK], at = 0;
    leat_tensor *t, *dx;
    leat_shape s = dy->shape;
    pads p;
    LEAT_TRY(read_pads(k, &p));
    for (int d = 0; d < p.rank; d++) {
        s.dim[d] = p.before[d] > dy->shape.dim[d] ? -1 : s.dim[d] - p.before[d];
        s.dim[d] = p.after[d] > s.dim[d] ? -1 : s.dim[d] - p.after[d];
        LEAT_REQUIRE(s.dim[d] >= 0, INVALID_ARGUMENT,
                     "Total paddings must be no greater than the dimension size: %" PRId64
                     " of dimension %d",
                     dy->shape.dim[d], d);
    }
    LEAT_TRY(check_mirror(&p, &s, offset));
    LEAT_TRY(leat_kernel_out(k, 0, &s, &dx));
    if (dx->count == 0)
        return NULL;
    LEAT_TRY(leat_kernel_temp(k, dy->dtype, &dy->shape, &t));
    LEAT_TRY(leat_move_flat(k, dy->dtype, t->data, dy->data, dy->count));
    for (int d = 0; d < p.rank; d++)
        for (int behind = 0; behind < 2; behind++) {
            box edge, inside;
            border(&dy->shape, &p, d, behind, offset, &edge, &inside);
            if (edge.dim[d] > 0)
                fold(t, d, behind, &edge, &inside);
        }
    int64_t to[LEAT_MAX_RANK];
    leat_move m;
    leat_strides(&dy->shape, stride);
    leat_strides(&s, to);
    leat_move_begin(&m);
    for (int d = 0; d < p.rank; d++) {
        leat_move_dim(&m, s.dim[d], to[d], stride[d]);
        at += p.before[d] * stride[d];
    }
    return leat_move_run(k, &m, dy->dtype, dx->data, leat_element(t, at));
}

#define NUMBERS (LEAT_TYPES_REAL | LEAT_TYPES_COMPLEX)

const leat_kernel_def leat_cpu_pad[] = {
    {.op = "Pad", .run = pad},
    {.op = "PadV2", .run = pad},
    {.op = "MirrorPad", .run = mirror_pad, .state_size = sizeof(int64_t), .init = mirror_init},
    {.op = "MirrorPadGrad",
     .where = {{"T", NUMBERS}},
     .run = mirror_pad_grad,
     .state_size = sizeof(int64_t),
     .init = mirror_init},
    {0},
};
