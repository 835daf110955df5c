/* sequence_loss.c -- the weighted cross entropy of sequences. */
#include <leat/sequence.h>

#include "graph/given.h"
#include "train/train_int.h"

/* How losses are added over steps and over examples. */
typedef struct reduction {
    bool average_time, average_batch, sum_time, sum_batch;
} reduction;

static leat_status check(const reduction *r, leat_out logits, leat_out targets, leat_out weights)
{
    LEAT_REQUIRE(leat_out_shape(logits).rank == 3, INVALID_ARGUMENT,
                 "Logits must be a [batch_size x sequence_length x logits] tensor");
    LEAT_REQUIRE(leat_out_shape(targets).rank == 2, INVALID_ARGUMENT,
                 "Targets must be a [batch_size x sequence_length] tensor");
    LEAT_REQUIRE(leat_out_shape(weights).rank == 2, INVALID_ARGUMENT,
                 "Weights must be a [batch_size x sequence_length] tensor");
    LEAT_REQUIRE(!r->average_time || !r->sum_time, INVALID_ARGUMENT,
                 "average_across_timesteps and sum_over_timesteps cannot be set to True at same "
                 "time.");
    LEAT_REQUIRE(!r->average_batch || !r->sum_batch, INVALID_ARGUMENT,
                 "average_across_batch and sum_over_batch cannot be set to True at same time.");
    return NULL;
}

/* The sum of the losses along the axes, divided by that of the weights or by their number. */
static leat_out reduce(leat_out losses, leat_out weights, leat_out axes, bool average)
{
    leat_out sum = leat_sum(losses, axes);
    if (average)
        return leat_div_no_nan(sum, leat_sum(weights, axes));
    leat_out some = leat_not_equal(weights, leat_scalar_like(weights, 0));
    leat_out count = leat_sum(leat_cast(some, LEAT_INT64), axes);
    return leat_div_no_nan(sum, leat_cast(count, leat_dtype_base(leat_out_dtype(sum))));
}

static leat_out sequence_loss(leat_graph *g, leat_out logits, leat_out targets, leat_out weights,
                              const reduction *r, const leat_sequence_loss_options *o)
{
    leat_out shape = leat_shape_of(logits), all = leat_ints(g, -1), both = leat_ints(g, 0, 1);
    leat_out classes = leat_strided_slice(shape, leat_ints(g, 2), leat_ints(g, 3), leat_ints(g, 1));
    const leat_out rows[2] = {all, classes};
    leat_out flat = leat_reshape(logits, leat_concat(rows, 2, leat_scalar(g, LEAT_INT32, 0)));
    leat_out labels = leat_reshape(targets, all);
    leat_out losses =
        o->loss ? o->loss(o->arg, labels, flat) : leat_sparse_softmax_cross_entropy(flat, labels);
    losses = leat_mul(losses, leat_reshape(weights, all));
    losses = leat_reshape(losses, leat_slice(shape, leat_ints(g, 0), leat_ints(g, 2)));
    if (r->average_time && r->average_batch)
        return reduce(losses, weights, both, true);
    if (r->sum_time && r->sum_batch)
        return reduce(losses, weights, both, false);
    if (r->average_time || r->average_batch)
        return reduce(losses, weights, leat_ints(g, r->average_batch ? 0 : 1), true);
    if (r->sum_time || r->sum_batch)
        return reduce(losses, weights, leat_ints(g, r->sum_batch ? 0 : 1), false);
    return losses;
}

leat_out leat_sequence_loss_at(leat_loc at, leat_out logits, leat_out targets, leat_out weights,
                               const leat_sequence_loss_options *o)
{
    if (!leat_out_ok(logits) || !leat_out_ok(targets) || !leat_out_ok(weights))
        return !leat_out_ok(logits) ? logits : !leat_out_ok(targets) ? targets : weights;
    leat_graph *g = leat_graph_of(logits);
    const reduction r = {.average_time = leat_given_int_or(&o->given, "average_across_timesteps",
                                                           o->average_across_timesteps, true),
                         .average_batch = leat_given_int_or(&o->given, "average_across_batch",
                                                            o->average_across_batch, true),
                         .sum_time = o->sum_over_timesteps,
                         .sum_batch = o->sum_over_batch};
    leat_status s = check(&r, logits, targets, weights);
    if (s)
        return leat_graph_fail(g, at, s);
    leat_loc outer = leat_at_enter(g, at);
    leat_out y = {0};
    leat_with_name(g, o->name ? o->name : "sequence_loss") y =
        sequence_loss(g, logits, targets, weights, &r, o);
    leat_at_leave(g, outer);
    return y;
}
