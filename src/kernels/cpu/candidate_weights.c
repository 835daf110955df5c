/* candidate_weights.c -- classes drawn by their weights, in TensorFlow's sequences. */
#include <inttypes.h>
#include <math.h>
#include <pthread.h>
#include <stdlib.h>

#include "core/alloc.h"
#include "kernels/cpu/candidate.h"
#include "kernels/cpu/distributions.h"
#include "kernels/cpu/lookup.h"

uint32_t leat_uniform_below(leat_philox_single *s, uint32_t n)
{
    if ((n & (n - 1)) == 0)
        return leat_philox_one(s) & (n - 1);
    /* Numbers below `few` would make small results likelier: 2^32 - few is a multiple of n. */
    const uint32_t few = UINT32_MAX % n + 1;
    uint32_t x;
    do
        x = leat_philox_one(s);
    while (x < few);
    return x % n;
}

static uint64_t two(leat_philox_single *s)
{
    const uint64_t low = leat_philox_one(s);
    return low | (uint64_t)leat_philox_one(s) << 32;
}

uint64_t leat_uniform_below_64(leat_philox_single *s, uint64_t n)
{
    if ((n & (n - 1)) == 0)
        return two(s) & (n - 1);
    const uint64_t few = UINT64_MAX % n + 1;
    uint64_t x;
    do
        x = two(s);
    while (x < few);
    return x % n;
}

/* ---- Learned ---- */

static void learned_free(void *resource)
{
    leat_learned *l = resource;
    pthread_mutex_destroy(&l->lock);
    free(l->added);
    free(l);
}
const leat_resource_type leat_learned_type = {"UnigramSampler", learned_free};

leat_status leat_learned_make(void *node, leat_resource **out)
{
    const int64_t range = leat_node_int(node, "range_max");
    LEAT_REQUIRE(range > 0 && range < INT32_MAX, INVALID_ARGUMENT,
                 "range_max must be from 1 to %d for a learned distribution, got %" PRId64,
                 INT32_MAX - 1, range);
    int32_t *added = calloc((size_t)range + 1, sizeof(int32_t));
    LEAT_REQUIRE(added, RESOURCE_EXHAUSTED, "no memory for the weights of %" PRId64 " classes",
                 range);
    leat_learned *l = leat_new(leat_learned);
    leat_resource_init(&l->base, &leat_learned_type);
    pthread_mutex_init(&l->lock, NULL);
    l->range = range;
    l->total = (int32_t)range;
    l->added = added;
    *out = &l->base;
    return NULL;
}

/* The class whose share of the total a uniform number falls into, when the shares lie side by side
 * in the classes' order. */
int64_t leat_learned_draw(const leat_learned *l, leat_philox_single *s)
{
    int64_t left = leat_uniform_below(s, (uint32_t)l->total), at = 0, step = 1;
    while (step <= l->range / 2)
        step *= 2;
    for (; step > 0; step /= 2) {
        /* Node at + step of the tree is the sum over the `step` classes after class `at`. */
        if (at + step > l->range || left < step + l->added[at + step])
            continue;
        at += step;
        left -= step + l->added[at];
    }
    return at;
}

int32_t leat_learned_weight(const leat_learned *l, int64_t value)
{
    int32_t sum = 1;
    for (int64_t i = value + 1; i > 0; i -= i & -i)
        sum += l->added[i];
    for (int64_t i = value; i > 0; i -= i & -i)
        sum -= l->added[i];
    return sum;
}

void leat_learned_add(leat_learned *l, int64_t value)
{
    if (l->total == INT32_MAX)
        return;
    for (int64_t i = value + 1; i <= l->range; i += i & -i)
        l->added[i]++;
    l->total++;
}

/* ---- Fixed ---- */

/* The weights that belong to the node's shard, one after the other. */
typedef struct weights {
    leat_fixed *f;
    int64_t word, n; /* words seen, weights stored */
    int64_t shards, shard;
    float distortion;
} weights;

static leat_status add_weight(weights *w, float weight)
{
    if (w->word++ % w->shards != w->shard)
        return NULL;
    const float p = powf(weight, w->distortion);
    LEAT_REQUIRE(p >= 0 && isfinite(p), INVALID_ARGUMENT,
                 "the weight of class %" PRId64 " is %g; it must be a number that is not negative",
                 w->n, (double)p);
    LEAT_REQUIRE(w->n < w->f->range, INVALID_ARGUMENT,
                 "range_max is %" PRId64 ", but there are weights for more classes", w->f->range);
    w->f->weight[w->n++] = p;
    w->f->total += p;
    w->f->likely += p > 0;
    return NULL;
}

/* A line ends with the weight of its class, after the last comma. */
static leat_status read_weights(weights *w, const char *path)
{
    leat_tensor *lines = NULL;
    LEAT_TRY(leat_vocabulary_read(path, -1, &lines));
    leat_status s = NULL;
    for (int64_t i = 0; !s && i < lines->count; i++) {
        const char *line = ((const leat_string *)lines->data)[i].data;
        const char *comma = strrchr(line, ','), *text = comma ? comma + 1 : line;
        char *end;
        const float weight = strtof(text, &end);
        s = end == text || end[strspn(end, " \t\r")]
                ? leat_error(INVALID_ARGUMENT, "Wrong vocabulary format at line: %s", line)
                : add_weight(w, weight);
    }
    leat_tensor_unref(lines);
    return s;
}

static leat_status collect(const leat_node *n, leat_fixed *f)
{
    int n_given;
    const double *given = leat_node_floats(n, "unigrams", &n_given);
    const char *path = leat_node_string(n, "vocab_file");
    const int64_t reserved = leat_node_int(n, "num_reserved_ids");
    weights w = {.f = f,
                 .shards = leat_node_int(n, "num_shards"),
                 .shard = leat_node_int(n, "shard"),
                 .distortion = (float)leat_node_float(n, "distortion")};
    LEAT_REQUIRE(*path || n_given, INVALID_ARGUMENT, "Must provide either vocab_file or unigrams.");
    LEAT_REQUIRE(!*path || !n_given, INVALID_ARGUMENT,
                 "Must only provide one of vocab_file and unigrams.");
    if (reserved > w.shard && w.shard < w.shards)
        w.n = (reserved - w.shard - 1) / w.shards + 1; /* Their weights are 0 already. */
    LEAT_REQUIRE(reserved >= 0 && w.n <= f->range, INVALID_ARGUMENT,
                 "num_reserved_ids is %" PRId64 ", for a range_max of %" PRId64, reserved,
                 f->range);
    /* As in TensorFlow, words are counted from the number of reserved classes that are stored. */
    w.word = w.n;
    for (int i = 0; i < n_given; i++)
        LEAT_TRY(add_weight(&w, (float)given[i]));
    if (*path)
        LEAT_TRY(read_weights(&w, path));
    LEAT_REQUIRE(w.n == f->range, INVALID_ARGUMENT,
                 "range_max is %" PRId64 ", but there are weights for %" PRId64 " classes",
                 f->range, w.n);
    LEAT_REQUIRE(f->total > 0 && isfinite(f->total), INVALID_ARGUMENT,
                 "the sum of the weights is %g; it must be positive", (double)f->total);
    return NULL;
}

/* Classes below the average share with those above it. `p` has room for n shares, `stack` for n
 * classes: those below the average at its front, those above at its end. */
static void share(leat_fixed *f, double *p, int32_t *stack)
{
    const int64_t n = f->range;
    double sum = 0;
    int64_t low = 0, high = n;
    for (int64_t i = 0; i < n; i++)
        sum += f->weight[i];
    for (int64_t i = 0; i < n; i++) {
        p[i] = (double)(f->weight[i] * (float)n) / sum;
        f->other[i] = -1;
        if (p[i] < 1)
            stack[low++] = (int32_t)i;
        else
            stack[--high] = (int32_t)i;
    }
    while (low > 0 && high < n) {
        const int32_t l = stack[--low], h = stack[high++];
        f->other[l] = h;
        p[h] = p[h] - (1 - p[l]);
        if (p[h] < 1)
            stack[low++] = h;
        else
            stack[--high] = h;
    }
    for (int64_t i = 0; i < n; i++)
        f->chance[i] = (float)p[i];
    /* What rounding has left is close to 1. */
    for (int64_t i = 0; i < n; i++)
        if (i < low || i >= high) {
            f->chance[stack[i]] = 1;
            f->other[stack[i]] = stack[i];
        }
}

void leat_fixed_free(leat_fixed *f)
{
    if (!f)
        return;
    free(f->weight);
    free(f->chance);
    free(f->other);
    free(f);
}

/* Makes the tables that classes are drawn by, from their weights. */
static leat_status make_tables(leat_fixed *f)
{
    const int64_t n = f->range;
    double *p = NULL;
    int32_t *stack = NULL;
    f->chance = malloc((size_t)n * sizeof(float));
    f->other = malloc((size_t)n * sizeof(int32_t));
    p = malloc((size_t)n * sizeof(double));
    stack = malloc((size_t)n * sizeof(int32_t));
    const bool ok = f->chance && f->other && p && stack;
    if (ok)
        share(f, p, stack);
    free(p);
    free(stack);
    LEAT_REQUIRE(ok, RESOURCE_EXHAUSTED, "no memory to draw from %" PRId64 " classes", n);
    return NULL;
}

/* A distribution over `range` classes without weights. */
static leat_status fixed_new(int64_t range, leat_fixed **out)
{
    leat_fixed *f = leat_new(leat_fixed);
    f->range = range;
    f->weight = calloc((size_t)range, sizeof(float));
    *out = f;
    if (f->weight)
        return NULL;
    leat_fixed_free(f);
    return leat_error(RESOURCE_EXHAUSTED, "no memory for the weights of %" PRId64 " classes",
                      range);
}

static leat_status fixed_finish(leat_fixed *f, leat_status s, leat_fixed **out)
{
    if (!s)
        s = make_tables(f);
    if (s)
        leat_fixed_free(f);
    else
        *out = f;
    return s;
}

leat_status leat_fixed_make(const leat_node *n, leat_fixed **out)
{
    const int64_t range = leat_node_int(n, "range_max");
    leat_fixed *f;
    LEAT_REQUIRE(range > 0 && range <= INT32_MAX, INVALID_ARGUMENT,
                 "range_max must be from 1 to %d, got %" PRId64, INT32_MAX, range);
    LEAT_TRY(fixed_new(range, &f));
    return fixed_finish(f, collect(n, f), out);
}

leat_status leat_fixed_of_counts(const int64_t *counts, int64_t n, float power, leat_fixed **out)
{
    leat_fixed *f;
    LEAT_TRY(fixed_new(n, &f));
    for (int64_t i = 0; i < n; i++) {
        f->weight[i] = powf((float)counts[i], power);
        f->total += f->weight[i];
        f->likely += f->weight[i] > 0;
    }
    leat_status s =
        f->total > 0 ? NULL : leat_error(INVALID_ARGUMENT, "the sum of all counts is 0");
    return fixed_finish(f, s, out);
}

int64_t leat_fixed_draw(const leat_fixed *f, leat_philox_single *s)
{
    const float r = leat_uniform_float(leat_philox_one(s));
    const uint32_t i = leat_uniform_below(s, (uint32_t)f->range);
    return r < f->chance[i] ? (int64_t)i : f->other[i];
}
