/* candidate.c -- candidate samplers: classes drawn to be told apart from the true ones, with how
 * often each is expected among the samples, so that a loss need not look at all classes; and
 * ComputeAccidentalHits, which finds the samples that are true classes. */
#include <leat/ops.h>

#include "ops/infer_util.h"

/* true_classes is (batch, num_true). */
static leat_status sampler_shape(leat_infer *c)
{
    const leat_node *n = leat_infer_node(c);
    const int64_t sampled = leat_node_int(n, "num_sampled");
    leat_shape s;
    LEAT_TRY(leat_infer_rank(c, 0, 2, &s));
    leat_infer_out(c, 0, leat_shape(sampled));
    leat_infer_out(c, 1, leat_shape(s.dim[0], leat_node_int(n, "num_true")));
    leat_infer_out(c, 2, leat_shape(sampled));
    return NULL;
}

static leat_status hits_shape(leat_infer *c)
{
    const int64_t num_true = leat_node_int(leat_infer_node(c), "num_true");
    leat_shape s, unused;
    LEAT_TRY(leat_infer_rank(c, 0, 2, &s));
    LEAT_REQUIRE(s.dim[1] < 0 || s.dim[1] == num_true, INVALID_ARGUMENT,
                 "Dimension must be %lld but is %lld", (long long)num_true, (long long)s.dim[1]);
    LEAT_TRY(leat_infer_rank(c, 1, 1, &unused));
    for (int i = 0; i < 3; i++)
        leat_infer_out(c, i, leat_shape(-1));
    return NULL;
}

#define SEEDS "seed: int = 0; seed2: int = 0"
#define SAMPLER(name_, attrs_)                                                                     \
    {                                                                                              \
        .name = name_, .inputs = "true_classes: int64",                                            \
        .outputs = "sampled_candidates: int64, true_expected_count: float, "                       \
                   "sampled_expected_count: float",                                                \
        .attrs = "num_true: int >= 1; num_sampled: int >= 1; unique: bool; " attrs_ SEEDS,         \
        .shape = sampler_shape, .grad = leat_grad_none, .flags = LEAT_OP_STATEFUL                  \
    }

const leat_op_def leat_ops_candidate[] = {
    SAMPLER("AllCandidateSampler", ""),
    SAMPLER("UniformCandidateSampler", "range_max: int >= 1; "),
    SAMPLER("LogUniformCandidateSampler", "range_max: int >= 1; "),
    SAMPLER("LearnedUnigramCandidateSampler", "range_max: int >= 1; "),
    SAMPLER("ThreadUnsafeUnigramCandidateSampler", "range_max: int >= 1; "),
    SAMPLER("FixedUnigramCandidateSampler",
            "range_max: int >= 1; vocab_file: string = ''; distortion: float = 1.0; "
            "num_reserved_ids: int = 0; num_shards: int >= 1 = 1; shard: int >= 0 = 0; "
            "unigrams: list(float) = []; "),
    {.name = "ComputeAccidentalHits",
     .inputs = "true_classes: int64, sampled_candidates: int64",
     .outputs = "indices: int32, ids: int64, weights: float",
     .attrs = "num_true: int; " SEEDS,
     .shape = hits_shape,
     .grad = leat_grad_none},
    {0},
};
