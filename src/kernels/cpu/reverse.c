/* reverse.c -- Reverse, ReverseV2, ReverseSequence: copies with negative strides. */
#include <inttypes.h>

#include "kernels/cpu/move.h"
#include "kernels/cpu/shapes.h"

/* Bit d of dims: reverse dim d. */
static leat_status turn(leat_kernel *k, uint32_t dims)
{
    const leat_tensor *x = leat_kernel_in(k, 0);
    int64_t stride[LEAT_MAX_RANK], at = 0;
    leat_tensor *y;
    leat_move m;
    LEAT_REQUIRE(x->shape.rank <= 8, UNIMPLEMENTED,
                 "reverse is not implemented for tensors of rank > 8.");
    if (dims == 0) {
        leat_kernel_forward(k, 0, 0);
        return NULL;
    }
    LEAT_TRY(leat_kernel_out(k, 0, &x->shape, &y));
    if (y->count == 0)
        return NULL;
    leat_strides(&x->shape, stride);
    leat_move_begin(&m);
    for (int d = 0; d < x->shape.rank; d++) {
        bool back = dims >> d & 1;
        leat_move_dim(&m, x->shape.dim[d], stride[d], back ? -stride[d] : stride[d]);
        at += back ? (x->shape.dim[d] - 1) * stride[d] : 0;
    }
    return leat_move_run(k, &m, x->dtype, y->data, leat_element(x, at));
}

static leat_status reverse(leat_kernel *k)
{
    const leat_tensor *x = leat_kernel_in(k, 0), *t = leat_kernel_in(k, 1);
    uint32_t dims = 0;
    LEAT_REQUIRE(t->shape.rank == 1, INVALID_ARGUMENT, "'dims' must be 1-dimension, not %d",
                 t->shape.rank);
    LEAT_REQUIRE(t->count == x->shape.rank, INVALID_ARGUMENT,
                 "'dims' must have the same number of values as 'input' has dimensions. 'input' "
                 "has %d'dims' has %" PRId64 " values",
                 x->shape.rank, t->count);
    for (int d = 0; d < x->shape.rank; d++)
        dims |= (uint32_t)AT(bool, t)[d] << d;
    return turn(k, dims);
}

static leat_status reverse_v2(leat_kernel *k)
{
    const leat_tensor *x = leat_kernel_in(k, 0), *t = leat_kernel_in(k, 1);
    int rank = x->shape.rank;
    uint32_t dims = 0;
    if (rank == 0)
        return turn(k, 0);
    LEAT_REQUIRE(t->shape.rank == 1, INVALID_ARGUMENT, "'dims' must be 1-dimension, not %d",
                 t->shape.rank);
    for (int64_t i = 0; i < t->count; i++) {
        int64_t given = leat_index_at(t, i), axis = given < 0 ? given + rank : given;
        LEAT_REQUIRE(axis >= 0 && axis < rank, INVALID_ARGUMENT,
                     "'axis'[%" PRId64 "] = %" PRId64 " is out of valid range [0, %d", i, given,
                     rank - 1);
        LEAT_REQUIRE(!(dims >> axis & 1), INVALID_ARGUMENT,
                     "axis %" PRId64 " specified more than once.", axis);
        dims |= 1u << axis;
    }
    return turn(k, dims);
}

typedef struct sequence_dims {
    int64_t seq, batch;
} sequence_dims;

static leat_status sequence_init(const leat_node *n, void *state)
{
    *(sequence_dims *)state =
        (sequence_dims){leat_node_int(n, "seq_dim"), leat_node_int(n, "batch_dim")};
    return NULL;
}

static leat_status check_sequence(const leat_tensor *x, const leat_tensor *t,
                                  const sequence_dims *d)
{
    LEAT_REQUIRE(t->shape.rank == 1, INVALID_ARGUMENT, "seq_lens input must be 1-dim, not %d",
                 t->shape.rank);
    LEAT_REQUIRE(d->batch != d->seq, INVALID_ARGUMENT, "batch_dim == seq_dim == %" PRId64, d->seq);
    LEAT_REQUIRE(d->seq >= 0 && d->seq < x->shape.rank, INVALID_ARGUMENT,
                 "seq_dim must be < input.dims()( %" PRId64 " vs. %d)", d->seq, x->shape.rank);
    LEAT_REQUIRE(d->batch >= 0 && d->batch < x->shape.rank, INVALID_ARGUMENT,
                 "batch_dim must be < input.dims()( %" PRId64 " vs. %d)", d->batch, x->shape.rank);
    LEAT_REQUIRE(t->count == x->shape.dim[d->batch], INVALID_ARGUMENT,
                 "len(seq_lens) != input.dims(%" PRId64 "), (%" PRId64 " vs. %" PRId64 ")",
                 d->batch, t->count, x->shape.dim[d->batch]);
    for (int64_t i = 0; i < t->count; i++) {
        LEAT_REQUIRE(leat_index_at(t, i) >= 0, INVALID_ARGUMENT, "seq_lens(%" PRId64 ") < 0", i);
        LEAT_REQUIRE(leat_index_at(t, i) <= x->shape.dim[d->seq], INVALID_ARGUMENT,
                     "seq_lens(%" PRId64 ") > input.dims(%" PRId64 ")", i, d->seq);
    }
    return NULL;
}

/* In each entry of the batch the first `length` elements of the sequence are reversed. */
static leat_status reverse_sequence(leat_kernel *k)
{
    const leat_tensor *x = leat_kernel_in(k, 0), *t = leat_kernel_in(k, 1);
    const sequence_dims *dims = leat_kernel_state(k);
    int64_t stride[LEAT_MAX_RANK];
    leat_tensor *y;
    LEAT_TRY(check_sequence(x, t, dims));
    LEAT_TRY(leat_kernel_out(k, 0, &x->shape, &y));
    if (y->count == 0)
        return NULL;
    leat_strides(&x->shape, stride);
    for (int64_t b = 0; b < t->count; b++) {
        int64_t n = leat_index_at(t, b), all = x->shape.dim[dims->seq], s = stride[dims->seq];
        int64_t at = b * stride[dims->batch];
        for (int part = 0; part < 2; part++) { /* the part that is reversed, then the rest */
            leat_move m;
            leat_move_begin(&m);
            for (int d = 0; d < x->shape.rank; d++) {
                if (d == dims->seq)
                    leat_move_dim(&m, part ? all - n : n, s, part ? s : -s);
                else if (d != dims->batch)
                    leat_move_dim(&m, x->shape.dim[d], stride[d], stride[d]);
            }
            int64_t to = at + (part ? n * s : 0), from = at + (part ? n : n - 1) * s;
            if (!m.empty)
                LEAT_TRY(
                    leat_move_run(k, &m, x->dtype, leat_element(y, to), leat_element(x, from)));
        }
    }
    return NULL;
}

const leat_kernel_def leat_cpu_reverse[] = {
    {.op = "Reverse", .run = reverse},
    {.op = "ReverseV2", .run = reverse_v2},
    {.op = "ReverseSequence",
     .run = reverse_sequence,
     .state_size = sizeof(sequence_dims),
     .init = sequence_init},
    {0},
};
