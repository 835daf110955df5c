/* sampled_loss.c -- sampled softmax and noise-contrastive estimation: losses over the true classes
 * and a sample of the others. */
#include <leat/embedding.h>

#include "graph/given.h"
#include "train/train_int.h"

typedef struct sampled {
    leat_graph *g;
    const leat_out *weights, *biases; /* in parts */
    int n_weights, n_biases;
    leat_out labels, inputs; /* (batch, num_true) of int64, (batch, dim) */
    int64_t n_true, n_sampled;
    const leat_sampled_loss_options *o;
} sampled;

/* The sum of each row; a product, whose gradient is one, too. */
static leat_out sum_rows(leat_out x)
{
    leat_graph *g = leat_graph_of(x);
    leat_out one = leat_scalar(g, LEAT_INT32, 1);
    leat_out columns = leat_gather(leat_shape_of(x), one, leat_scalar(g, LEAT_INT32, 0));
    const leat_out sizes[2] = {columns, one};
    leat_out ones = leat_fill(leat_pack(sizes, 2, 0), leat_scalar_like(x, 1));
    return leat_reshape(leat_matmul(x, ones), leat_ints(g, -1));
}

static leat_out joined(leat_out a, leat_out b, int axis)
{
    const leat_out both[2] = {a, b};
    return leat_concat(both, 2, leat_scalar(leat_graph_of(a), LEAT_INT32, axis));
}

/* The rows of the true classes and of the samples, by one lookup. */
static void look_up(const sampled *v, const leat_out *params, int n, leat_out labels, leat_out ids,
                    leat_out *true_out, leat_out *sampled_out)
{
    const leat_embedding_options options = {.given = {.at = v->o->given.at},
                                            .in_blocks = v->o->in_blocks};
    leat_out rows = leat_embedding_lookup_at(v->o->given.at, params, n, ids, &options);
    rows = leat_cast(rows, leat_dtype_base(leat_out_dtype(v->inputs)));
    leat_out zero = leat_ints(v->g, 0), rest = leat_ints(v->g, -1), count = leat_shape_of(labels);
    const bool matrix = params == v->weights;
    *true_out = leat_slice(rows, matrix ? leat_ints(v->g, 0, 0) : zero,
                           matrix ? joined(count, rest, 0) : count);
    *sampled_out = leat_slice(rows, matrix ? joined(count, zero, 0) : count,
                              matrix ? leat_ints(v->g, -1, -1) : rest);
}

/* (batch, num_true): the product of each input with the weights of its classes. */
static leat_out true_products(const sampled *v, leat_out weights)
{
    leat_graph *g = v->g;
    leat_out dim = leat_strided_slice(leat_shape_of(weights), leat_ints(g, 1), leat_ints(g, 2),
                                      leat_ints(g, 1));
    leat_out each = leat_reshape(weights, joined(leat_ints(g, -1, v->n_true), dim, 0));
    leat_out dots = leat_mul(leat_expand_dims(v->inputs, leat_scalar(g, LEAT_INT32, 1)), each);
    leat_out sums = sum_rows(leat_reshape(dots, joined(leat_ints(g, -1), dim, 0)));
    return leat_reshape(sums, leat_ints(g, -1, v->n_true));
}

/* (batch, samples): the least float where a sample is a true class, else 0. */
static leat_out accidental_hits(const sampled *v, leat_out samples, leat_dtype t)
{
    leat_graph *g = v->g;
    leat_out hits =
        LEAT_OP2("ComputeAccidentalHits", v->labels, samples, leat_attr_int("num_true", v->n_true));
    leat_out column = leat_ints(g, -1, 1);
    leat_out rows = leat_reshape(hits, column);
    leat_out places = leat_reshape(leat_cast(leat_output(hits, 1), LEAT_INT32), column);
    leat_out batch = leat_strided_slice(leat_shape_of(v->labels), leat_ints(g, 0), leat_ints(g, 1),
                                        leat_ints(g, 1));
    leat_out shape = joined(batch, leat_ints(g, v->n_sampled), 0);
    leat_out least = leat_cast(leat_output(hits, 2), t);
    return LEAT_OP4("SparseToDense", joined(rows, places, 1), shape, least,
                    leat_scalar_like(least, 0), leat_attr_bool("validate_indices", false));
}

/* Logits and labels (batch, num_true + samples), the true classes first. */
static void sampled_logits(const sampled *v, const leat_candidates *c, bool remove_hits,
                           leat_out *logits_out, leat_out *labels_out)
{
    leat_graph *g = v->g;
    const leat_dtype t = leat_dtype_base(leat_out_dtype(v->inputs));
    leat_out samples = leat_cast(leat_stop_gradient(c->sampled), LEAT_INT64);
    leat_out flat = leat_reshape(v->labels, leat_ints(g, -1)), ids = joined(flat, samples, 0);
    leat_out true_w, sampled_w, true_b, sampled_b;
    look_up(v, v->weights, v->n_weights, flat, ids, &true_w, &sampled_w);
    look_up(v, v->biases, v->n_biases, flat, ids, &true_b, &sampled_b);
    leat_out others =
        leat_add(leat_matmul(v->inputs, sampled_w, leat_attr_bool("transpose_b", true)), sampled_b);
    leat_out truth =
        leat_add(true_products(v, true_w), leat_reshape(true_b, leat_ints(g, -1, v->n_true)));
    if (remove_hits)
        others = leat_add(others, accidental_hits(v, samples, t));
    /* How likely a class was among the samples must not count for or against it. */
    truth = leat_sub(truth, leat_log(leat_cast(leat_stop_gradient(c->true_expected), t)));
    others = leat_sub(others, leat_log(leat_cast(leat_stop_gradient(c->sampled_expected), t)));
    leat_out share = leat_div(leat_ones_like(truth), leat_scalar_like(truth, (double)v->n_true));
    *logits_out = joined(truth, others, 1);
    *labels_out = joined(share, leat_zeros_like(others), 1);
}

/* The cross entropy of independent decisions with these logits. */
static leat_out sigmoid_cross_entropy(leat_out logits, leat_out labels)
{
    leat_out zeros = leat_zeros_like(logits), positive = leat_greater_equal(logits, zeros);
    leat_out above = leat_select(positive, logits, zeros);
    leat_out minus_abs = leat_select(positive, leat_neg(logits), logits);
    return leat_add(leat_sub(above, leat_mul(logits, labels)), leat_log1p(leat_exp(minus_abs)));
}

typedef leat_out (*loss_fn)(leat_out logits, leat_out labels);

static leat_out softmax_loss(leat_out logits, leat_out labels)
{
    return leat_softmax_cross_entropy(logits, leat_stop_gradient(labels));
}

static leat_out nce_loss(leat_out logits, leat_out labels)
{
    return sum_rows(sigmoid_cross_entropy(logits, labels));
}

static leat_status check(const sampled *v)
{
    const leat_shape s = leat_out_shape(v->labels);
    LEAT_REQUIRE(v->n_weights >= 1 && v->n_biases >= 1, INVALID_ARGUMENT,
                 "a sampled loss needs weights and biases, got %d and %d parts", v->n_weights,
                 v->n_biases);
    LEAT_REQUIRE(s.rank == 2 && s.dim[1] >= 1, INVALID_ARGUMENT,
                 "labels must be (batch, num_true), with a known num_true of at least 1: their "
                 "shape is %s",
                 leat_shape_show(&s).s);
    return NULL;
}

static leat_out sampled_loss(leat_loc at, sampled v, int64_t n_classes, bool remove_by_default,
                             const char *name, loss_fn loss)
{
    if (!leat_out_ok(v.labels) || !leat_out_ok(v.inputs))
        return leat_out_ok(v.labels) ? v.inputs : v.labels;
    leat_graph *g = v.g = leat_graph_of(v.labels);
    leat_status s = check(&v);
    if (s)
        return leat_graph_fail(g, at, s);
    leat_loc outer = leat_at_enter(g, at);
    leat_out y = {0}, logits, labels;
    const leat_given *given = &v.o->given;
    const bool remove_hits = leat_given_int_or(given, "remove_accidental_hits",
                                               v.o->remove_accidental_hits, remove_by_default);
    leat_with_name(g, v.o->name ? v.o->name : name)
    {
        v.labels = leat_cast(v.labels, LEAT_INT64);
        v.n_true = leat_out_shape(v.labels).dim[1];
        leat_sampler_options options = {.given = *given, .seed = v.o->seed};
        leat_candidates c = v.o->candidates
                                ? *v.o->candidates
                                : leat_candidate_sampler_at(at, LEAT_SAMPLE_LOG_UNIFORM, v.labels,
                                                            v.n_sampled, n_classes, &options);
        sampled_logits(&v, &c, remove_hits, &logits, &labels);
        y = loss(logits, labels);
    }
    leat_at_leave(g, outer);
    return y;
}

leat_out leat_sampled_softmax_loss_at(leat_loc at, const leat_out *weights, int n_weights,
                                      const leat_out *biases, int n_biases, leat_out labels,
                                      leat_out inputs, int64_t n_sampled, int64_t n_classes,
                                      const leat_sampled_loss_options *o)
{
    const sampled v = {.weights = weights,
                       .n_weights = n_weights,
                       .biases = biases,
                       .n_biases = n_biases,
                       .labels = labels,
                       .inputs = inputs,
                       .n_sampled = n_sampled,
                       .o = o};
    return sampled_loss(at, v, n_classes, true, "sampled_softmax_loss", softmax_loss);
}

leat_out leat_nce_loss_at(leat_loc at, const leat_out *weights, int n_weights,
                          const leat_out *biases, int n_biases, leat_out labels, leat_out inputs,
                          int64_t n_sampled, int64_t n_classes, const leat_sampled_loss_options *o)
{
    const sampled v = {.weights = weights,
                       .n_weights = n_weights,
                       .biases = biases,
                       .n_biases = n_biases,
                       .labels = labels,
                       .inputs = inputs,
                       .n_sampled = n_sampled,
                       .o = o};
    return sampled_loss(at, v, n_classes, false, "nce_loss", nce_loss);
}
