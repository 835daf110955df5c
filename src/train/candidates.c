/* candidates.c -- candidate samplers. */
#include <leat/embedding.h>

#include "graph/given.h"
#include "train/train_int.h"

static const char *const samplers[] = {
    [LEAT_SAMPLE_LOG_UNIFORM] = "LogUniformCandidateSampler",
    [LEAT_SAMPLE_UNIFORM] = "UniformCandidateSampler",
    [LEAT_SAMPLE_LEARNED] = "LearnedUnigramCandidateSampler",
    [LEAT_SAMPLE_THREAD_UNSAFE_LEARNED] = "ThreadUnsafeUnigramCandidateSampler",
    [LEAT_SAMPLE_FIXED] = "FixedUnigramCandidateSampler",
    [LEAT_SAMPLE_ALL] = "AllCandidateSampler",
};

static leat_status check(leat_sampler kind, leat_out classes, int64_t n_sampled, int64_t n_classes)
{
    LEAT_REQUIRE((unsigned)kind <= LEAT_SAMPLE_ALL, INVALID_ARGUMENT,
                 "sampler %d is none of leat_sampler", (int)kind);
    const leat_shape s = leat_out_shape(classes);
    LEAT_REQUIRE(s.rank == 2 && s.dim[1] >= 1, INVALID_ARGUMENT,
                 "true classes must be (batch, num_true), with a known num_true of at least 1: "
                 "their shape is %s",
                 leat_shape_show(&s).s);
    LEAT_REQUIRE(n_sampled >= 1, INVALID_ARGUMENT,
                 "the number of samples must be positive, got %lld", (long long)n_sampled);
    LEAT_REQUIRE(n_classes >= 1, INVALID_ARGUMENT,
                 "the number of classes must be positive, got %lld", (long long)n_classes);
    return NULL;
}

static leat_out sample(leat_graph *g, leat_sampler kind, leat_out classes, int64_t n_sampled,
                       int64_t n_classes, const leat_sampler_options *o)
{
    const leat_shape s = leat_out_shape(classes);
    int64_t seed, seed2;
    leat_graph_seeds(g, leat_is_given(&o->given, "seed", o->seed != 0) ? &o->seed : NULL, &seed,
                     &seed2);
    const leat_arg num_true = leat_attr_int("num_true", s.dim[1]);
    const leat_arg sampled = leat_attr_int("num_sampled", n_sampled);
    const leat_arg unique = leat_attr_bool("unique", !o->repeated);
    const leat_arg range = leat_attr_int("range_max", n_classes);
    const leat_arg seeds[] = {leat_attr_int("seed", seed), leat_attr_int("seed2", seed2)};
    const char *op = samplers[kind];
    if (kind == LEAT_SAMPLE_ALL)
        return LEAT_OP1(op, classes, num_true, sampled, unique, seeds[0], seeds[1],
                        leat_name(o->name));
    if (kind != LEAT_SAMPLE_FIXED)
        return LEAT_OP1(op, classes, num_true, sampled, unique, range, seeds[0], seeds[1],
                        leat_name(o->name));
    return LEAT_OP1(
        op, classes, num_true, sampled, unique, range, seeds[0], seeds[1], leat_name(o->name),
        leat_attr_string("vocab_file", o->vocab_file ? o->vocab_file : ""),
        leat_attr_floats("unigrams", o->unigrams, o->n_unigrams),
        leat_attr_float("distortion", leat_given_or(&o->given, "distortion", o->distortion, 1)),
        leat_attr_int("num_reserved_ids", o->num_reserved_ids),
        leat_attr_int("num_shards", leat_given_int_or(&o->given, "num_shards", o->num_shards, 1)),
        leat_attr_int("shard", o->shard));
}

leat_candidates leat_candidate_sampler_at(leat_loc at, leat_sampler kind, leat_out true_classes,
                                          int64_t n_sampled, int64_t n_classes,
                                          const leat_sampler_options *o)
{
    if (!true_classes.node || !leat_out_ok(true_classes))
        return (leat_candidates){true_classes, true_classes, true_classes};
    leat_graph *g = leat_graph_of(true_classes);
    leat_status s = check(kind, true_classes, n_sampled, n_classes);
    if (s) {
        leat_out bad = leat_graph_fail(g, at, s);
        return (leat_candidates){bad, bad, bad};
    }
    leat_loc outer = leat_at_enter(g, at);
    leat_out y = sample(g, kind, leat_cast(true_classes, LEAT_INT64), n_sampled, n_classes, o);
    leat_at_leave(g, outer);
    return (leat_candidates){y, leat_output(y, 1), leat_output(y, 2)};
}
