/* candidate.c -- candidate samplers, in TensorFlow's sequences, and ComputeAccidentalHits. */
#include <float.h>
#include <inttypes.h>
#include <math.h>
#include <pthread.h>

#include "core/checked.h"
#include "core/map.h"
#include "kernels/cpu/candidate.h"
#include "kernels/cpu/distributions.h"

enum { A_CLASS = 64 }; /* elements whose time a class takes */

typedef struct sampler_state {
    _Atomic(leat_resource *) generator; /* first, as leat_random_reserve wants it */
    _Atomic(leat_resource *) learned;
    leat_fixed *fixed; /* FixedUnigramCandidateSampler's */
} sampler_state;

/* One batch of samples. */
typedef struct batch {
    leat_kernel *k;
    int64_t range, sampled;
    double log_range; /* log(range + 1) */
    const leat_fixed *fixed;
    leat_learned *learned;
    int64_t (*draw)(const struct batch *b, leat_philox_single *s);
    float (*chance)(const struct batch *b, int64_t value); /* that a draw gives the class */
} batch;

static int64_t draw_uniform(const batch *b, leat_philox_single *s)
{
    return (int64_t)leat_uniform_below_64(s, (uint64_t)b->range);
}

static float chance_uniform(const batch *b, int64_t value)
{
    (void)value;
    return (float)(1.0 / (double)b->range);
}

static int64_t draw_log(const batch *b, leat_philox_single *s)
{
    const uint32_t low = leat_philox_one(s), high = leat_philox_one(s);
    const double x = exp(leat_uniform_double(low, high) * b->log_range);
    const int64_t value = x < 9e18 ? (int64_t)x - 1 : INT64_MAX;
    return value % b->range; /* rounding may have given the range itself */
}

static float chance_log(const batch *b, int64_t value)
{
    return (float)(log(((double)value + 2.0) / ((double)value + 1.0)) / b->log_range);
}

static int64_t draw_learned(const batch *b, leat_philox_single *s)
{
    return leat_learned_draw(b->learned, s);
}

static float chance_learned(const batch *b, int64_t value)
{
    return (float)leat_learned_weight(b->learned, value) / (float)b->learned->total;
}

static int64_t draw_fixed(const batch *b, leat_philox_single *s)
{
    return leat_fixed_draw(b->fixed, s);
}

static float chance_fixed(const batch *b, int64_t value)
{
    return value < 0 || value >= b->range ? 0 : b->fixed->weight[value] / b->fixed->total;
}

/* ---- A hash table of classes, in memory of the run ---- */

typedef struct classes {
    int64_t *slot; /* a class and a number for each slot; the number is -1 where there is none */
    uint64_t mask, secret;
} classes;

static leat_status classes_init(leat_kernel *k, int64_t n, classes *out)
{
    uint64_t slots = 4;
    leat_tensor *t;
    while (slots < 2 * (uint64_t)n)
        slots *= 2;
    const leat_shape s = leat_shape((int64_t)slots, 2);
    LEAT_TRY(leat_kernel_temp(k, LEAT_INT64, &s, &t));
    memset(t->data, 0xff, leat_tensor_bytes(t));
    *out = (classes){.slot = AT(int64_t, t), .mask = slots - 1, .secret = leat_hash_secret()};
    return NULL;
}

/* The number of the class, for the caller to read or write. */
static int64_t *classes_at(const classes *c, int64_t value)
{
    for (uint64_t h = leat_mix((uint64_t)value ^ c->secret);; h++) {
        int64_t *slot = c->slot + 2 * (h & c->mask);
        if (slot[1] < 0)
            slot[0] = value;
        if (slot[0] == value)
            return slot + 1;
    }
}

/* ---- Samplers ---- */

/* How often a class of this chance is expected among the samples, which took `tries` draws. If
 * they are distinct, it is how likely the class is among them. */
static float expected(const batch *b, float chance, int64_t tries)
{
    if (tries == b->sampled)
        return chance * (float)b->sampled;
    return -expm1f((float)tries * log1pf(-chance));
}

static leat_status draw_distinct(const batch *b, leat_philox_single *s, int64_t *out,
                                 int64_t *tries_out)
{
    classes used;
    int64_t tries = 0, found = 0;
    LEAT_TRY(classes_init(b->k, b->sampled, &used));
    while (found < b->sampled) {
        LEAT_REQUIRE(++tries < INT32_MAX, INVALID_ARGUMENT,
                     "%" PRId64 " draws gave %" PRId64 " distinct classes of the %" PRId64
                     " that num_sampled wants: too many classes are too unlikely",
                     tries, found, b->sampled);
        if (tries % 65536 == 0)
            LEAT_TRY(leat_kernel_check(b->k));
        const int64_t value = b->draw(b, s);
        int64_t *number = classes_at(&used, value);
        if (*number < 0) {
            *number = found;
            out[found++] = value;
        }
    }
    *tries_out = tries;
    return NULL;
}

static leat_status outputs(leat_kernel *k, const leat_tensor *true_classes, leat_tensor **y)
{
    const leat_node *n = leat_kernel_node(k);
    const int64_t num_true = leat_node_int(n, "num_true");
    const leat_shape sampled = leat_shape(leat_node_int(n, "num_sampled"));
    LEAT_REQUIRE(true_classes->shape.rank == 2, INVALID_ARGUMENT, "true_classes must be a matrix");
    LEAT_REQUIRE(true_classes->shape.dim[1] == num_true, INVALID_ARGUMENT,
                 "true_classes must have num_true columns, expected: %" PRId64 " was: %" PRId64,
                 true_classes->shape.dim[1], num_true);
    LEAT_TRY(leat_kernel_out(k, 0, &sampled, &y[0]));
    LEAT_TRY(leat_kernel_out(k, 1, &true_classes->shape, &y[1]));
    return leat_kernel_out(k, 2, &sampled, &y[2]);
}

static leat_status draw_batch(const batch *b, const leat_tensor *true_classes, leat_tensor **y)
{
    const bool unique = leat_node_bool(leat_kernel_node(b->k), "unique");
    leat_philox p;
    int64_t tries = b->sampled, *out = AT(int64_t, y[0]);
    /* Draws beyond these use numbers that the next run uses, too, as in TensorFlow. */
    LEAT_TRY(leat_random_reserve(b->k, ((uint64_t)b->sampled * 2048 + 3) / 4, &p));
    leat_philox_single s = {.gen = &p, .used = 4};
    leat_look look = leat_look_begin(b->k);
    if (unique)
        LEAT_TRY(draw_distinct(b, &s, out, &tries));
    for (int64_t i = 0; !unique && i < b->sampled; i++) {
        out[i] = b->draw(b, &s);
        if (leat_look_over(&look, A_CLASS))
            return leat_kernel_check(b->k);
    }
    for (int64_t i = 0; i < b->sampled; i++) {
        AT(float, y[2])[i] = expected(b, b->chance(b, out[i]), tries);
        if (leat_look_over(&look, A_CLASS))
            return leat_kernel_check(b->k);
    }
    for (int64_t i = 0; i < true_classes->count; i++) {
        AT(float, y[1])[i] = expected(b, b->chance(b, AT(int64_t, true_classes)[i]), tries);
        if (leat_look_over(&look, A_CLASS))
            return leat_kernel_check(b->k);
    }
    return NULL;
}

static leat_status run_batch(batch *b)
{
    const leat_node *n = leat_kernel_node(b->k);
    const leat_tensor *true_classes = leat_kernel_in(b->k, 0);
    leat_tensor *y[3];
    b->range = leat_node_int(n, "range_max");
    b->sampled = leat_node_int(n, "num_sampled");
    LEAT_REQUIRE(!leat_node_bool(n, "unique") || b->sampled <= b->range, INVALID_ARGUMENT,
                 "Sampler's range is too small.");
    LEAT_TRY(outputs(b->k, true_classes, y));
    return draw_batch(b, true_classes, y);
}

static leat_status uniform_run(leat_kernel *k)
{
    return run_batch(&(batch){.k = k, .draw = draw_uniform, .chance = chance_uniform});
}

static leat_status log_run(leat_kernel *k)
{
    const double range = (double)leat_node_int(leat_kernel_node(k), "range_max");
    return run_batch(
        &(batch){.k = k, .draw = draw_log, .chance = chance_log, .log_range = log1p(range)});
}

static leat_status fixed_run(leat_kernel *k)
{
    const leat_node *n = leat_kernel_node(k);
    const leat_fixed *fixed = ((sampler_state *)leat_kernel_state(k))->fixed;
    LEAT_REQUIRE(!leat_node_bool(n, "unique") || leat_node_int(n, "num_sampled") <= fixed->likely,
                 INVALID_ARGUMENT,
                 "num_sampled is %" PRId64 ", but only %" PRId64
                 " classes have a weight above 0: so many distinct ones cannot be drawn",
                 leat_node_int(n, "num_sampled"), fixed->likely);
    return run_batch(&(batch){.k = k, .draw = draw_fixed, .chance = chance_fixed, .fixed = fixed});
}

/* The true classes are counted after the batch was drawn. */
static leat_status learned_run(leat_kernel *k)
{
    sampler_state *state = leat_kernel_state(k);
    const leat_tensor *t = leat_kernel_in(k, 0);
    leat_resource *r;
    LEAT_TRY(leat_random_resource(k, &state->learned, "_samplers", &leat_learned_type,
                                  leat_learned_make, &r));
    leat_learned *l = (leat_learned *)r;
    for (int64_t i = 0; i < t->count; i++)
        LEAT_REQUIRE(AT(int64_t, t)[i] >= 0 && AT(int64_t, t)[i] < l->range, INVALID_ARGUMENT,
                     "true class %" PRId64 " is not in [0, %" PRId64 ")", AT(int64_t, t)[i],
                     l->range);
    pthread_mutex_lock(&l->lock);
    leat_status s =
        run_batch(&(batch){.k = k, .draw = draw_learned, .chance = chance_learned, .learned = l});
    for (int64_t i = 0; !s && i < t->count; i++)
        leat_learned_add(l, AT(int64_t, t)[i]);
    pthread_mutex_unlock(&l->lock);
    return s;
}

/* All classes, each of which is expected once. */
static leat_status all_run(leat_kernel *k)
{
    leat_tensor *y[3];
    LEAT_TRY(outputs(k, leat_kernel_in(k, 0), y));
    for (int64_t i = 0; i < y[0]->count; i++) {
        AT(int64_t, y[0])[i] = i;
        AT(float, y[2])[i] = 1;
    }
    for (int64_t i = 0; i < y[1]->count; i++)
        AT(float, y[1])[i] = 1;
    return NULL;
}

static leat_status fixed_init(const leat_node *n, void *state)
{
    return leat_fixed_make(n, &((sampler_state *)state)->fixed);
}

static void release(void *state)
{
    sampler_state *s = state;
    leat_resource *learned = atomic_load(&s->learned);
    leat_random_release(state);
    if (learned)
        leat_resource_unref(learned);
    leat_fixed_free(s->fixed);
}

/* ---- ComputeAccidentalHits ---- */

static leat_status hits_run(leat_kernel *k)
{
    const leat_tensor *t = leat_kernel_in(k, 0), *sampled = leat_kernel_in(k, 1);
    const int64_t num_true = leat_node_int(leat_kernel_node(k), "num_true");
    LEAT_REQUIRE(t->shape.rank == 2 && t->shape.dim[1] == num_true, INVALID_ARGUMENT,
                 "true_candidates must be a batch_size * num_true matrix");
    LEAT_REQUIRE(sampled->shape.rank == 1, INVALID_ARGUMENT,
                 "sampled_candidates must be a vector, which is typically an output from "
                 "CandidateSampler");
    classes c;
    LEAT_TRY(classes_init(k, sampled->count, &c));
    leat_look look = leat_look_begin(k);
    for (int64_t i = 0; i < sampled->count; i++) {
        *classes_at(&c, AT(int64_t, sampled)[i]) = i;
        if (leat_look_over(&look, A_CLASS))
            return leat_kernel_check(k);
    }
    int64_t n = 0;
    for (int64_t i = 0; i < t->count; i++) {
        n += *classes_at(&c, AT(int64_t, t)[i]) >= 0;
        if (leat_look_over(&look, A_CLASS))
            return leat_kernel_check(k);
    }
    leat_tensor *rows, *ids, *weights;
    const leat_shape s = leat_shape(n);
    LEAT_TRY(leat_kernel_out(k, 0, &s, &rows));
    LEAT_TRY(leat_kernel_out(k, 1, &s, &ids));
    LEAT_TRY(leat_kernel_out(k, 2, &s, &weights));
    n = 0;
    for (int64_t i = 0; i < t->count; i++) {
        if (leat_look_over(&look, A_CLASS))
            return leat_kernel_check(k);
        const int64_t at = *classes_at(&c, AT(int64_t, t)[i]);
        if (at < 0)
            continue;
        AT(int32_t, rows)[n] = (int32_t)(i / num_true);
        AT(int64_t, ids)[n] = at;
        AT(float, weights)[n++] = -FLT_MAX;
    }
    return NULL;
}

#define SAMPLER(name, fn, ...)                                                                     \
    {                                                                                              \
        .op = name, .run = fn, .state_size = sizeof(sampler_state), .release = release,            \
        ##__VA_ARGS__                                                                              \
    }

const leat_kernel_def leat_cpu_candidate[] = {
    SAMPLER("AllCandidateSampler", all_run),
    SAMPLER("UniformCandidateSampler", uniform_run),
    SAMPLER("LogUniformCandidateSampler", log_run),
    SAMPLER("LearnedUnigramCandidateSampler", learned_run),
    SAMPLER("ThreadUnsafeUnigramCandidateSampler", learned_run),
    SAMPLER("FixedUnigramCandidateSampler", fixed_run, .init = fixed_init),
    {.op = "ComputeAccidentalHits", .run = hits_run},
    {0},
};
