/* embedding.h -- tables with a row for each of many ids, of which a step uses few: lookups by
 * sparse ids, candidate samplers, and losses that look at some classes only.
 *
 *     leat_out w = leat_get_variable(g, "w", leat_shape(50000, 128));
 *     leat_out b = leat_get_variable(g, "b", leat_shape(50000));
 *     leat_out loss = leat_reduce_mean(leat_nce_loss(&w, 1, &b, 1, labels, inputs, 64, 50000));
 *
 * A table may have n parts, such as those that leat_variable_parts gives: leat_embedding_lookup
 * (nn.h) says which row is where. The functions here build nodes; a mistake is recorded in the
 * graph (leat_graph_status).
 */
#ifndef LEAT_EMBEDDING_H
#define LEAT_EMBEDDING_H

#include <leat/nn.h>

/* A sparse tensor: values (n) are at indices (n, rank), int64, sorted, of a dense tensor of
 * dense_shape (rank), int64. */
typedef struct leat_sparse_value {
    leat_out indices, values, dense_shape;
} leat_sparse_value;

/* ---- Lookups by sparse ids ---- */
typedef enum leat_combiner {
    LEAT_COMBINE_MEAN,  /* the sum of the weighted rows, divided by the sum of the weights */
    LEAT_COMBINE_SUM,   /* the sum of the weighted rows */
    LEAT_COMBINE_SQRTN, /* that sum, divided by the root of the sum of the weights' squares */
} leat_combiner;
typedef struct leat_sparse_embedding_options {
    leat_given given; /* set by the macro */
    /* True if each part has consecutive rows, as in the parts that leat_variable_parts gives. */
    bool in_blocks;
    leat_combiner combiner;           /* LEAT_COMBINE_MEAN */
    const leat_sparse_value *weights; /* at the indices of the ids; NULL: all are 1 */
    double max_norm; /* rows of a larger norm are scaled down to it; default: none is */
    /* Safe lookups: whose row an example without ids gets; default: it gets zeros. */
    int64_t default_id;
} leat_sparse_embedding_options;
/* Combines the rows of the ids of each example. ids is (examples, any number), every example has
 * ids; the result is (examples, ...). tf.nn.embedding_lookup_sparse */
#define leat_embedding_lookup_sparse(params, n, ids, ...)                                          \
    leat_embedding_lookup_sparse_at(                                                               \
        LEAT_AT, params, n, ids, LEAT_GIVEN_OPTIONS(leat_sparse_embedding_options, __VA_ARGS__))
LEAT_API leat_out leat_embedding_lookup_sparse_at(leat_loc at, const leat_out *params, int n,
                                                  leat_sparse_value ids,
                                                  const leat_sparse_embedding_options *o);
/* The same for ids of any rank, which are combined along the last dimension. Ids below 0 are left
 * out, and so are, unless they are only added, those of a weight that is not positive.
 * tf.nn.safe_embedding_lookup_sparse, which by default takes parts for blocks. */
#define leat_safe_embedding_lookup_sparse(params, n, ids, ...)                                     \
    leat_safe_embedding_lookup_sparse_at(                                                          \
        LEAT_AT, params, n, ids, LEAT_GIVEN_OPTIONS(leat_sparse_embedding_options, __VA_ARGS__))
LEAT_API leat_out leat_safe_embedding_lookup_sparse_at(leat_loc at, const leat_out *params, int n,
                                                       leat_sparse_value ids,
                                                       const leat_sparse_embedding_options *o);

/* ---- Candidate samplers: classes drawn to be told apart from the true ones ---- */
typedef enum leat_sampler {
    LEAT_SAMPLE_LOG_UNIFORM, /* of class c: (log(c + 2) - log(c + 1)) / log(classes + 1) */
    LEAT_SAMPLE_UNIFORM,
    LEAT_SAMPLE_LEARNED,               /* 1 + how often the class was a true one so far */
    LEAT_SAMPLE_THREAD_UNSAFE_LEARNED, /* the same; TensorFlow's name for a faster one */
    LEAT_SAMPLE_FIXED,                 /* by the weights that the options give */
    LEAT_SAMPLE_ALL,                   /* no draw: every class once; n_sampled is their number */
} leat_sampler;
typedef struct leat_candidates {
    leat_out sampled; /* (n_sampled), int64 */
    /* How often each true class (batch, num_true), and each sampled class (n_sampled), is expected
     * among the samples; float. */
    leat_out true_expected, sampled_expected;
} leat_candidates;
typedef struct leat_sampler_options {
    leat_given given; /* set by the macro */
    bool repeated;    /* a class may be drawn several times */
    int64_t seed;     /* as in leat_random_options */
    /* LEAT_SAMPLE_FIXED: one of these two is required. Of each line of the file the number behind
     * the last comma is the weight of a class. */
    const char *vocab_file;
    const double *unigrams;
    int n_unigrams;
    double distortion;         /* weights are taken to this power; default 1 */
    int64_t num_reserved_ids;  /* classes before those of the weights, which are never drawn */
    int64_t num_shards, shard; /* draw from every num_shards-th class only; default 1, 0 */
    const char *name;
} leat_sampler_options;
/* true_classes is (batch, num_true), of integers. */
#define leat_candidate_sampler(kind, true_classes, n_sampled, n_classes, ...)                      \
    leat_candidate_sampler_at(LEAT_AT, kind, true_classes, n_sampled, n_classes,                   \
                              LEAT_GIVEN_OPTIONS(leat_sampler_options, __VA_ARGS__))
LEAT_API leat_candidates leat_candidate_sampler_at(leat_loc at, leat_sampler kind,
                                                   leat_out true_classes, int64_t n_sampled,
                                                   int64_t n_classes,
                                                   const leat_sampler_options *o);

/* ---- Losses over samples of classes ---- */
typedef struct leat_sampled_loss_options {
    leat_given given; /* set by the macro */
    bool in_blocks;   /* of weights and biases, as in leat_embedding_options */
    /* Default: leat_candidate_sampler(LEAT_SAMPLE_LOG_UNIFORM, labels, n_sampled, n_classes). */
    const leat_candidates *candidates;
    /* Samples that are true classes do not count. Default: true for the sampled softmax, false for
     * noise-contrastive estimation. */
    bool remove_accidental_hits;
    int64_t seed; /* of the default sampler */
    const char *name;
} leat_sampled_loss_options;
/* The loss of each example, (batch). weights are (n_classes, dim), biases (n_classes), both in
 * parts; labels are the true classes (batch, num_true), inputs is (batch, dim). For training only:
 * to evaluate, compute the loss of all classes. */
#define leat_sampled_softmax_loss(weights, n_weights, biases, n_biases, labels, inputs, n_sampled, \
                                  n_classes, ...)                                                  \
    leat_sampled_softmax_loss_at(LEAT_AT, weights, n_weights, biases, n_biases, labels, inputs,    \
                                 n_sampled, n_classes,                                             \
                                 LEAT_GIVEN_OPTIONS(leat_sampled_loss_options, __VA_ARGS__))
LEAT_API leat_out leat_sampled_softmax_loss_at(leat_loc at, const leat_out *weights, int n_weights,
                                               const leat_out *biases, int n_biases,
                                               leat_out labels, leat_out inputs, int64_t n_sampled,
                                               int64_t n_classes,
                                               const leat_sampled_loss_options *o);
/* Noise-contrastive estimation: every class, true or sampled, is a binary decision. */
#define leat_nce_loss(weights, n_weights, biases, n_biases, labels, inputs, n_sampled, n_classes,  \
                      ...)                                                                         \
    leat_nce_loss_at(LEAT_AT, weights, n_weights, biases, n_biases, labels, inputs, n_sampled,     \
                     n_classes, LEAT_GIVEN_OPTIONS(leat_sampled_loss_options, __VA_ARGS__))
LEAT_API leat_out leat_nce_loss_at(leat_loc at, const leat_out *weights, int n_weights,
                                   const leat_out *biases, int n_biases, leat_out labels,
                                   leat_out inputs, int64_t n_sampled, int64_t n_classes,
                                   const leat_sampled_loss_options *o);

#endif
