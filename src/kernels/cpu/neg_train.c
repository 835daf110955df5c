/* neg_train.c -- NegTrain: one step of gradient descent for vectors of words, in which a word's
 * vector predicts its label and does not predict words that are drawn at random (Mikolov, 2013). */
#include <math.h>
#include <stdatomic.h>
#include <stdlib.h>

#include "kernels/cpu/candidate.h"
#include "kernels/cpu/random.h"
#include "runtime/variable_lock.h"

typedef struct neg_state {
    _Atomic(leat_resource *) generator; /* first, as leat_random_reserve wants it */
    leat_fixed *words;                  /* drawn by frequency to the power of 3/4 */
} neg_state;

static leat_status init(const leat_node *n, void *state)
{
    int count;
    const int64_t *given = leat_node_ints(n, "vocab_count", &count);
    const int64_t samples = leat_node_int(n, "num_negative_samples");
    LEAT_REQUIRE(samples >= 0 && samples <= INT32_MAX, INVALID_ARGUMENT,
                 "num_negative_samples must be from 0 to %d, got %lld", INT32_MAX,
                 (long long)samples);
    LEAT_REQUIRE(count > 0, INVALID_ARGUMENT, "vocab_count has no words");
    for (int i = 0; i < count; i++)
        LEAT_REQUIRE(given[i] >= 0, INVALID_ARGUMENT,
                     "vocab_count[%d] is %lld; it must not be negative", i, (long long)given[i]);
    return leat_fixed_of_counts(given, count, 0.75f, &((neg_state *)state)->words);
}

static void release(void *state)
{
    leat_random_release(state);
    leat_fixed_free(((neg_state *)state)->words);
}

typedef struct vectors {
    float *in, *out; /* (words, size) */
    float *step;     /* (size): what is added to the vector of the example */
    int64_t words, size;
    float rate;
} vectors;

/* Moves the vector of the example towards that of another word, and that one towards it, as far as
 * the loss of their product x falls: log(sigmoid(x)) of the label, log(sigmoid(-x)) of others. */
static void learn(const vectors *v, int64_t example, int64_t other, bool is_label)
{
    const float *a = v->in + example * v->size;
    float *b = v->out + other * v->size, dot = 0;
    for (int64_t i = 0; i < v->size; i++)
        dot += a[i] * b[i];
    const float slope = is_label ? 1 / (expf(dot) + 1) : -1 / (expf(-dot) + 1);
    const float by = slope * v->rate;
    for (int64_t i = 0; i < v->size; i++) {
        v->step[i] += b[i] * by;
        b[i] += a[i] * by;
    }
}

static leat_status check_words(const char *name, const leat_tensor *t, int64_t words)
{
    for (int64_t i = 0; i < t->count; i++)
        LEAT_REQUIRE(AT(int32_t, t)[i] >= 0 && AT(int32_t, t)[i] < words, INVALID_ARGUMENT,
                     "%s[%lld] = %d is not in [0, %lld)", name, (long long)i, AT(int32_t, t)[i],
                     (long long)words);
    return NULL;
}

/* The variables are locked. */
static leat_status train(leat_kernel *k, const leat_locked *l)
{
    const leat_tensor *in = l->value[0], *out = l->value[1];
    const leat_tensor *examples = leat_kernel_in(k, 2), *labels = leat_kernel_in(k, 3);
    const leat_tensor *rate = leat_kernel_in(k, 4);
    const neg_state *state = leat_kernel_state(k);
    const int64_t samples = leat_node_int(leat_kernel_node(k), "num_negative_samples");
    LEAT_REQUIRE(in->shape.rank == 2, INVALID_ARGUMENT, "Must be a matrix: w_in is %s",
                 leat_shape_show(&in->shape).s);
    LEAT_REQUIRE(leat_shape_equal(&in->shape, &out->shape), INVALID_ARGUMENT,
                 "w_in.shape == w_out.shape: they are %s and %s", leat_shape_show(&in->shape).s,
                 leat_shape_show(&out->shape).s);
    LEAT_REQUIRE(examples->shape.rank == 1, INVALID_ARGUMENT, "Must be a vector: examples is %s",
                 leat_shape_show(&examples->shape).s);
    LEAT_REQUIRE(leat_shape_equal(&examples->shape, &labels->shape), INVALID_ARGUMENT,
                 "examples.shape == labels.shape: they are %s and %s",
                 leat_shape_show(&examples->shape).s, leat_shape_show(&labels->shape).s);
    LEAT_REQUIRE(rate->shape.rank == 0, INVALID_ARGUMENT, "Must be a scalar: lr is %s",
                 leat_shape_show(&rate->shape).s);
    vectors v = {.in = AT(float, in),
                 .out = AT(float, out),
                 .words = in->shape.dim[0],
                 .size = in->shape.dim[1],
                 .rate = AT(float, rate)[0]};
    LEAT_REQUIRE(v.words == state->words->range, INVALID_ARGUMENT,
                 "vocab_size mismatches: %lld vs. %lld", (long long)v.words,
                 (long long)state->words->range);
    LEAT_TRY(check_words("examples", examples, v.words));
    LEAT_TRY(check_words("labels", labels, v.words));
    leat_tensor *step;
    leat_philox p;
    LEAT_TRY(leat_kernel_temp(k, LEAT_FLOAT, &(leat_shape){1, {v.size}}, &step));
    v.step = AT(float, step);
    LEAT_TRY(leat_random_reserve(k, (uint64_t)examples->count * (uint64_t)samples * 2, &p));
    leat_philox_single random = {.gen = &p, .used = 4};
    /* Neither the batch nor the number of samples has a bound, so a cancelled step ends early,
     * although a part of the update is made then. */
    leat_look look = leat_look_begin(k);
    for (int64_t i = 0; i < examples->count; i++) {
        const int32_t example = AT(int32_t, examples)[i], label = AT(int32_t, labels)[i];
        memset(v.step, 0, (size_t)v.size * sizeof(float));
        learn(&v, example, label, true);
        for (int64_t j = 0; j < samples; j++) {
            const int64_t other = leat_fixed_draw(state->words, &random);
            if (leat_look_over(&look, 2 * v.size + 16))
                return leat_kernel_check(k);
            if (other != label)
                learn(&v, example, other, false);
        }
        for (int64_t d = 0; d < v.size; d++)
            v.in[example * v.size + d] += v.step[d];
    }
    return NULL;
}

static leat_status neg_train_run(leat_kernel *k)
{
    leat_locked l;
    LEAT_TRY(leat_kernel_lock(k, 2, LEAT_FLOAT, k->n_in, &l));
    leat_status s = train(k, &l);
    leat_kernel_unlock(&l);
    return s;
}

const leat_kernel_def leat_cpu_neg_train[] = {
    {.op = "NegTrain",
     .run = neg_train_run,
     .init = init,
     .state_size = sizeof(neg_state),
     .release = release},
    {0},
};
