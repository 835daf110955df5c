/* common_lm.c -- see common_lm.h. */
#include "common_lm.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* ---- The net. Inside, tensors are (steps, batch, ...), so that a step is contiguous. ---- */

leat_status lm_check(const lm_config *c)
{
    LEAT_REQUIRE(c->vocab_size > 0, INVALID_ARGUMENT, "the vocabulary has no word");
    LEAT_REQUIRE(c->hidden_size > 0 && c->batch_size > 0, INVALID_ARGUMENT,
                 "hidden_size and batch_size must be positive");
    LEAT_REQUIRE(c->num_layers > 0 && c->num_layers <= LM_MOST_LAYERS, INVALID_ARGUMENT,
                 "num_layers must be 1 to %d, not %lld", LM_MOST_LAYERS, (long long)c->num_layers);
    LEAT_REQUIRE(c->num_steps > 0 && c->num_steps <= LM_MOST_STEPS, INVALID_ARGUMENT,
                 "num_steps must be 1 to %d, not %lld", LM_MOST_STEPS, (long long)c->num_steps);
    LEAT_REQUIRE(c->keep_prob > 0 && c->keep_prob <= 1, INVALID_ARGUMENT,
                 "keep_prob must be above 0 and at most 1, not %g", c->keep_prob);
    LEAT_REQUIRE(strcmp(c->rnn_mode, "basic") == 0 || strcmp(c->rnn_mode, "block") == 0 ||
                     strcmp(c->rnn_mode, "fused") == 0,
                 INVALID_ARGUMENT, "rnn_mode is basic, block or fused, not %s", c->rnn_mode);
    return NULL;
}

/* A variable that is cut along the dimension of the words, which is `axis`. */
static leat_out by_words(leat_graph *g, const lm_config *c, const char *name, leat_shape s,
                         int axis)
{
    const int64_t n = c->slices < c->vocab_size ? c->slices : c->vocab_size;
    if (n <= 1)
        return leat_get_variable(g, name, s);
    return leat_get_variable(g, name, s,
                             .partitioner = leat_fixed_size_partitioner(n, .axis = axis));
}

static leat_out looked_up(leat_graph *g, const lm_config *c, leat_out ids)
{
    int n;
    leat_out table = by_words(g, c, "embedding", leat_shape(c->vocab_size, c->hidden_size), 0);
    leat_out *parts = leat_variable_parts(table, &n);
    leat_out x = leat_embedding_lookup(parts, n, ids, .in_blocks = n > 1);
    free(parts);
    return x;
}

static leat_out embedded(leat_graph *g, const lm_config *c, leat_out ids)
{
    leat_out x = {0};
    ids = leat_transpose(ids, leat_ints(g, 1, 0));
    if (c->home)
        leat_with_device(g, c->home) x = looked_up(g, c, ids);
    else
        x = looked_up(g, c, ids);
    return x;
}

static leat_out dropped(const lm_config *c, bool training, leat_out x)
{
    return training && c->keep_prob < 1 ? leat_dropout(x, 1 - c->keep_prob) : x;
}

static leat_cell *cell_of(leat_graph *g, const lm_config *c, bool training)
{
    leat_cell *cells[LM_MOST_LAYERS];
    for (int i = 0; i < c->num_layers; i++) {
        cells[i] = strcmp(c->rnn_mode, "basic") == 0
                       ? leat_basic_lstm_cell(g, c->hidden_size, .forget_bias = c->forget_bias)
                       : leat_block_lstm_cell(g, c->hidden_size, .forget_bias = c->forget_bias);
        if (training && c->keep_prob < 1)
            cells[i] = leat_dropout_cell(cells[i], .output_keep_prob = c->keep_prob);
    }
    return leat_multi_cell(g, cells, (int)c->num_layers);
}

/* Gives (steps * batch, hidden). */
static leat_out unrolled(leat_graph *g, bool training, leat_out x, lm_model *m)
{
    leat_out in[LM_MOST_STEPS], out[LM_MOST_STEPS];
    const int n = (int)m->c.num_steps;
    leat_cell *cell = cell_of(g, &m->c, training);
    leat_cell_zero_state(cell, m->c.batch_size, LEAT_FLOAT, m->first);
    leat_out all = leat_unpack(x, n, 0);
    for (int i = 0; i < n; i++)
        in[i] = leat_output(all, i);
    leat_static_rnn(cell, in, n, out, m->last, .initial_state = m->first, .scope = "RNN");
    return n > 1 ? leat_concat(out, n, leat_scalar(g, LEAT_INT32, 0)) : out[0];
}

/* The same, of layers that are one op each. */
static leat_out fused(leat_graph *g, bool training, leat_out x, lm_model *m)
{
    const lm_config *c = &m->c;
    const leat_shape s = leat_shape(c->batch_size, c->hidden_size);
    for (int i = 0; i < c->num_layers; i++) {
        char scope[64];
        leat_out *first = m->first + 2 * i;
        snprintf(scope, sizeof(scope), "RNN/multi_rnn_cell/cell_%d", i);
        for (int k = 0; k < 2; k++)
            first[k] = leat_zeros(g, LEAT_FLOAT, s);
        const leat_rnn_options o = {.initial_state = first};
        leat_with_variable_scope(g, scope) x =
            leat_block_lstm(x, c->hidden_size, m->last + 2 * i, &o, .forget_bias = c->forget_bias,
                            .name = "lstm_cell");
        x = dropped(c, training, x);
    }
    return leat_reshape_to(x, leat_shape(-1, c->hidden_size));
}

void lm_build(leat_graph *g, const lm_config *c, bool training, lm_model *m)
{
    const leat_shape s = leat_shape(c->batch_size, c->num_steps);
    *m = (lm_model){.c = *c, .n_states = 2 * (int)c->num_layers};
    m->x = leat_placeholder(g, LEAT_INT32, s, leat_name("x"));
    m->y = leat_placeholder(g, LEAT_INT32, s, leat_name("y"));
    leat_out x = dropped(c, training, embedded(g, c, m->x));
    leat_out rows =
        strcmp(c->rnn_mode, "fused") == 0 ? fused(g, training, x, m) : unrolled(g, training, x, m);
    leat_out w = by_words(g, c, "softmax_w", leat_shape(c->hidden_size, c->vocab_size), 1);
    leat_out b = by_words(g, c, "softmax_b", leat_shape(c->vocab_size), 0);
    m->logits = leat_xw_plus_b(rows, w, b);
    leat_out next = leat_reshape(leat_transpose(m->y, leat_ints(g, 1, 0)), leat_ints(g, -1));
    m->cost = leat_div(leat_reduce_sum(leat_sparse_softmax_cross_entropy(m->logits, next)),
                       leat_scalar(g, LEAT_FLOAT, (double)c->batch_size));
}

/* ---- Steps ---- */

leat_status lm_begin(leat_session *s, lm_model *m)
{
    leat_fetch fetches[LM_MOST_STATES];
    lm_end(m);
    for (int i = 0; i < m->n_states; i++)
        fetches[i] = (leat_fetch){m->first[i], &m->state[i]};
    return leat_session_run(s, LEAT_NO_FEED, (leat_fetches){fetches, m->n_states}, LEAT_NO_TARGET);
}

int lm_feeds(const lm_model *m, const leat_tensor *x, const leat_tensor *y, leat_feed *feeds)
{
    int n = 0;
    feeds[n++] = (leat_feed){m->x, x};
    if (y)
        feeds[n++] = (leat_feed){m->y, y};
    for (int i = 0; i < m->n_states; i++)
        feeds[n++] = (leat_feed){m->first[i], m->state[i]};
    return n;
}

int lm_fetches(lm_model *m, leat_fetch *fetches)
{
    for (int i = 0; i < m->n_states; i++)
        fetches[i] = (leat_fetch){m->last[i], &m->next[i]};
    return m->n_states;
}

void lm_advance(lm_model *m)
{
    for (int i = 0; i < m->n_states; i++) {
        leat_tensor_unref(m->state[i]);
        m->state[i] = m->next[i];
        m->next[i] = NULL;
    }
}

void lm_end(lm_model *m)
{
    for (int i = 0; i < m->n_states; i++) {
        leat_tensor_unref(m->state[i]);
        leat_tensor_unref(m->next[i]);
        m->state[i] = m->next[i] = NULL;
    }
}

/* ---- Drawing ---- */

void lm_sampler_build(leat_graph *g, const lm_config *c, lm_sampler *d)
{
    lm_config one = *c;
    int64_t seed, seed2;
    one.batch_size = one.num_steps = 1;
    lm_build(g, &one, false, &d->m);
    leat_graph_seeds(g, NULL, &seed, &seed2);
    d->temperature = leat_placeholder(g, LEAT_FLOAT, leat_shape(), leat_name("temperature"));
    d->drawn = LEAT_OP2("Multinomial", leat_div(d->m.logits, d->temperature),
                        leat_scalar(g, LEAT_INT32, 1), leat_attr_type("output_dtype", LEAT_INT32),
                        leat_attr_int("seed", seed), leat_attr_int("seed2", seed2));
}

static leat_status read_and_draw(leat_session *s, lm_sampler *d, const leat_tensor *x,
                                 const leat_tensor *temperature, int *next_out)
{
    leat_feed feeds[LM_MOST_FEEDS];
    leat_fetch fetches[LM_MOST_STATES + 1];
    leat_tensor *drawn = NULL;
    int n = lm_feeds(&d->m, x, NULL, feeds);
    feeds[n++] = (leat_feed){d->temperature, temperature};
    int n_fetches = lm_fetches(&d->m, fetches);
    fetches[n_fetches++] = (leat_fetch){d->drawn, &drawn};
    LEAT_TRY(leat_session_run(s, (leat_feeds){feeds, n}, (leat_fetches){fetches, n_fetches},
                              LEAT_NO_TARGET));
    lm_advance(&d->m);
    if (next_out)
        *next_out = (int)leat_tensor_at(drawn, 0);
    leat_tensor_unref(drawn);
    return NULL;
}

leat_status lm_sampler_next(leat_session *s, lm_sampler *d, int id, double temperature,
                            int *next_out)
{
    leat_tensor *x;
    const int32_t ids[] = {id};
    LEAT_TRY(leat_tensor_copy_of(LEAT_INT32, leat_shape(1, 1), ids, &x));
    leat_tensor *t = leat_scalar_float((float)temperature);
    leat_status e = read_and_draw(s, d, x, t, next_out);
    leat_tensor_unref(x);
    leat_tensor_unref(t);
    return e;
}

/* ---- NaN ---- */

bool lm_diverged(leat_status s)
{
    return leat_status_code(s) == LEAT_INVALID_ARGUMENT &&
           strstr(leat_status_message(s), " : Tensor had ");
}

leat_status lm_name_op(leat_session *session, leat_feeds feeds, leat_out checks, leat_status s)
{
    s = leat_status_prefix(s, "Model diverged: ");
    leat_status found = leat_session_run(session, feeds, LEAT_NO_FETCH, LEAT_TARGET(checks));
    s = leat_status_suffix(s, "\nThe first op: %s",
                           found ? leat_status_message(found)
                                 : "none when the step was repeated with other dropout");
    leat_status_free(found);
    return s;
}
