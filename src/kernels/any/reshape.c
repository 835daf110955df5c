/* reshape.c -- Reshape, ExpandDims, Squeeze: new headers over the input's buffer. */
#include <inttypes.h>

#include "kernels/cpu/cpu.h"

static leat_status out_as(leat_kernel *k, const leat_shape *s)
{
    leat_tensor *y;
    LEAT_TRY(leat_tensor_reshape(leat_kernel_in(k, 0), *s, &y));
    leat_kernel_set(k, 0, y);
    return NULL;
}

/* The requested shape; a dim of -1 is left at 1. The last three arguments are initially 1, -1,
 * false. */
static leat_status read_sizes(const leat_tensor *sizes, leat_shape *s, int64_t *product,
                              int *unknown, bool *has_zero)
{
    LEAT_REQUIRE(sizes->shape.rank == 1, INVALID_ARGUMENT, "sizes input must be 1-D, not %s",
                 leat_shape_show(&sizes->shape).s);
    LEAT_REQUIRE(sizes->count <= LEAT_MAX_RANK, INVALID_ARGUMENT, "Too many dimensions");
    s->rank = (int)sizes->count;
    for (int d = 0; d < s->rank; d++) {
        int64_t size = leat_index_at(sizes, d);
        LEAT_REQUIRE(size != -1 || *unknown < 0, INVALID_ARGUMENT,
                     "Only one input size may be -1, not both %d and %d", *unknown, d);
        LEAT_REQUIRE(size >= -1, INVALID_ARGUMENT, "Size %d must be non-negative, not %" PRId64, d,
                     size);
        if (size == -1)
            *unknown = d;
        *has_zero |= size == 0;
        s->dim[d] = size < 0 ? 1 : size;
        LEAT_REQUIRE(size <= 0 || leat_mul_ok(*product, size, product), INVALID_ARGUMENT,
                     "Shape %s would have more than 2**63 - 1 elements", leat_shape_show(s).s);
    }
    return NULL;
}

static leat_status reshape(leat_kernel *k)
{
    const leat_tensor *x = leat_kernel_in(k, 0);
    leat_shape s;
    int64_t product = 1;
    int unknown = -1;
    bool has_zero = false;
    LEAT_TRY(read_sizes(leat_kernel_in(k, 1), &s, &product, &unknown, &has_zero));
    if (unknown >= 0) { /* zeros on both sides cancel out */
        int64_t n = 1;
        bool skipped = false;
        for (int d = 0; d < x->shape.rank; d++) {
            if (x->shape.dim[d] == 0 && has_zero)
                skipped = true;
            else
                LEAT_REQUIRE(leat_mul_ok(n, x->shape.dim[d], &n), INVALID_ARGUMENT,
                             "Shape %s would have more than 2**63 - 1 elements",
                             leat_shape_show(&x->shape).s);
        }
        LEAT_REQUIRE(skipped || n % product == 0, INVALID_ARGUMENT,
                     "Input to reshape is a tensor with %" PRId64
                     " values, but the requested shape requires a multiple of %" PRId64,
                     n, product);
        s.dim[unknown] = n / product;
    }
    return out_as(k, &s);
}

static leat_status expand_dims(leat_kernel *k)
{
    const leat_shape *s = &leat_kernel_in(k, 0)->shape;
    const leat_tensor *t = leat_kernel_in(k, 1);
    LEAT_REQUIRE(t->count == 1, INVALID_ARGUMENT, "'dim' must be a tensor with a single value");
    int64_t dim = leat_index_at(t, 0);
    LEAT_REQUIRE(dim >= -1 - s->rank && dim <= s->rank, INVALID_ARGUMENT,
                 "Tried to expand dim index %" PRId64 " for tensor with %d dimensions.", dim,
                 s->rank);
    LEAT_REQUIRE(s->rank < LEAT_MAX_RANK, INVALID_ARGUMENT, "Too many dimensions");
    dim += dim < 0 ? s->rank + 1 : 0;
    leat_shape y;
    y.rank = s->rank + 1;
    for (int d = 0; d < y.rank; d++)
        y.dim[d] = d < dim ? s->dim[d] : d == dim ? 1 : s->dim[d - 1];
    return out_as(k, &y);
}

typedef struct squeeze_state {
    int n;
    const int64_t *dims; /* owned by the node */
} squeeze_state;

static leat_status squeeze_init(const leat_node *n, void *state)
{
    squeeze_state *st = state;
    st->dims = leat_node_ints(n, "squeeze_dims", &st->n);
    return NULL;
}

static leat_status squeeze(leat_kernel *k)
{
    const leat_shape *s = &leat_kernel_in(k, 0)->shape;
    const squeeze_state *st = leat_kernel_state(k);
    uint32_t asked = 0;
    for (int i = 0; i < st->n; i++) {
        LEAT_REQUIRE(st->dims[i] >= -s->rank && st->dims[i] < s->rank, INVALID_ARGUMENT,
                     "Tried to squeeze dim index %" PRId64 " for tensor with %d dimensions.",
                     st->dims[i], s->rank);
        asked |= 1u << (st->dims[i] < 0 ? st->dims[i] + s->rank : st->dims[i]);
    }
    leat_shape y;
    y.rank = 0;
    for (int d = 0; d < s->rank; d++) {
        bool match = asked >> d & 1;
        LEAT_REQUIRE(!match || s->dim[d] == 1, INVALID_ARGUMENT,
                     "Can not squeeze dim[%d], expected a dimension of 1, got %" PRId64, d,
                     s->dim[d]);
        if (!match && (s->dim[d] != 1 || st->n > 0))
            y.dim[y.rank++] = s->dim[d];
    }
    return out_as(k, &y);
}

const leat_kernel_def leat_any_reshape[] = {
    {.op = "Reshape", .run = reshape, .flags = LEAT_KERNEL_ANY_MEMORY, .host = "shape"},
    {.op = "ExpandDims", .run = expand_dims, .flags = LEAT_KERNEL_ANY_MEMORY, .host = "dim"},
    {.op = "Squeeze",
     .run = squeeze,
     .state_size = sizeof(squeeze_state),
     .init = squeeze_init,
     .flags = LEAT_KERNEL_ANY_MEMORY},
    {0},
};
