/* shuffle.c -- Shuffle, in its three forms, and ShuffleAndRepeat. The order is TensorFlow's for the
 * same seeds: the same generator draws from the same buffer.
 *
 * The buffer has elements of several rounds through the input. Elements of one round are a slice
 * [start, end) of positions, each of which is a place of the buffer modulo its size; the next
 * element is drawn from the first slice and replaced by the one at the slice's start.
 */
#include "kernels/dataset/shuffle.h"

#include <stdlib.h>

#include "core/alloc.h"
#include "kernels/any/resource_op.h"
#include "kernels/dataset/handles.h"
#include "kernels/dataset/iteration.h"
#include "kernels/dataset/packed.h"
#include "kernels/dataset/sources.h"
#include "kernels/dataset/state.h"

enum { MOST_ROUNDS = 3 }; /* whose elements are in the buffer */

typedef struct shuffle {
    leat_dataset base;
    int64_t size;        /* of the buffer */
    int64_t count;       /* rounds through the input; -1: for ever */
    int64_t seed, seed2; /* of the iterators, or, with `reshuffles`, of their seeds */
    bool reshuffles;
    leat_seeds *seeds; /* ShuffleDatasetV2: of the seed generator; a reference, or NULL */
} shuffle;

typedef struct slice {
    int64_t start, end;
} slice;

typedef struct shuffler {
    leat_iterator base;
    int64_t seed, seed2, drawn;
    uint32_t random[4]; /* numbers from random_at on, if that is not -1 */
    int64_t random_at;
    leat_seeds *seeds; /* where the seeds are from; borrowed, or NULL */
    bool strings;      /* so are all tensors of an element */
    leat_packed **buffer;
    int64_t cap; /* places of the buffer that were allocated */
    int64_t n;   /* elements in the buffer */
    int64_t round;
    bool first; /* no element of the input was seen yet */
    bool input_over;
    slice *slices;
    int64_t n_slices, cap_slices;
} shuffler;

static void add_slice(shuffler *x, slice s)
{
    leat_grow(x->slices, x->n_slices, x->cap_slices);
    x->slices[x->n_slices++] = s;
}

static void *make_seeds(void *arg)
{
    const shuffle *d = arg;
    return leat_seeds_new(d->seed, d->seed2);
}

static void free_seeds(void *seeds)
{
    leat_seeds_unref(seeds);
}

static leat_status shuffle_open(leat_iterator *it)
{
    shuffler *x = (shuffler *)it;
    shuffle *d = (shuffle *)it->d;
    x->first = true;
    x->random_at = -1;
    x->seed = d->seed;
    x->seed2 = d->seed2;
    x->seeds = d->seeds        ? d->seeds
               : d->reshuffles ? leat_iterator_shared(it, make_seeds, d, free_seeds)
                               : NULL;
    if (x->seeds)
        leat_seeds_draw(x->seeds, &x->seed, &x->seed2);
    x->strings = true;
    for (int i = 0; i < it->d->n; i++)
        x->strings &= it->d->types[i] == LEAT_STRING;
    add_slice(x, (slice){0, 0});
    return NULL;
}

/* Place i of the buffer, which grows up to its size as it is filled. */
static leat_packed **place(shuffler *x, int64_t position)
{
    const int64_t size = ((const shuffle *)x->base.d)->size, i = position % size;
    if (i >= x->cap) {
        int64_t cap = x->cap ? x->cap : 16;
        while (cap <= i)
            cap *= 2;
        cap = cap < size ? cap : size;
        x->buffer = leat_xrealloc(x->buffer, sizeof(*x->buffer) * (size_t)cap);
        memset(x->buffer + x->cap, 0, sizeof(*x->buffer) * (size_t)(cap - x->cap));
        x->cap = cap;
    }
    return &x->buffer[i];
}

/* The input has ended. True: nothing was ever there, and the data end. */
static leat_status next_round(shuffler *x, bool *empty)
{
    const shuffle *d = (const shuffle *)x->base.d;
    *empty = x->first && d->count < 0;
    if (*empty)
        return NULL;
    const int64_t end = x->slices[x->n_slices - 1].end;
    x->round++;
    add_slice(x, (slice){end, end});
    LEAT_TRY(leat_iterator_reopen(&x->base, 0)); /* as TensorFlow, also after the last round */
    x->input_over = d->count >= 0 && x->round >= d->count;
    return NULL;
}

static void remove_slices(shuffler *x)
{
    int64_t n = 0;
    while (n < x->n_slices && x->slices[n].start == x->slices[n].end)
        n++;
    memmove(x->slices, x->slices + n, sizeof(slice) * (size_t)(x->n_slices - n));
    x->n_slices -= n;
}

/* The place from which the next element is drawn, if the first slice is s then. */
static leat_packed **next_place(shuffler *x, slice s)
{
    if (x->random_at != x->drawn / 4 * 4) {
        x->random_at = x->drawn / 4 * 4;
        leat_data_random_four(x->seed, x->seed2, x->drawn / 4, x->random);
    }
    return place(x, s.start + x->random[x->drawn % 4] % (s.end - s.start));
}

/* Elements of a large buffer are not in the processor's cache: makes it fetch the one that is drawn
 * next, as if the input gives one more element before. Strings that are given packed are not read
 * in this thread. */
static void fetch_next(shuffler *x)
{
    const slice s = {x->slices[0].start, x->slices[0].end + (x->n_slices == 1 && !x->input_over)};
    if (s.start < s.end)
        leat_packed_fetch(*next_place(x, s), !(x->strings && x->base.packs));
}

static leat_next give(shuffler *x, leat_pull *p, leat_packed *drawn)
{
    leat_element e;
    if (x->base.packs && leat_packed_plain(drawn))
        return leat_pull_give_packed(p, drawn);
    leat_status s = leat_element_unpack(drawn, &e);
    if (s)
        return leat_pull_fail(p, s);
    leat_packed_spare(drawn, &p->spares);
    return leat_pull_give(p, e);
}

static leat_next draw(shuffler *x, leat_pull *p)
{
    remove_slices(x);
    slice *s = &x->slices[0];
    leat_packed **from = next_place(x, *s), **start = place(x, s->start);
    const leat_next result = give(x, p, *from);
    if (result == LEAT_NEXT_FAILED)
        return result;
    *from = *start;
    *start = NULL;
    x->drawn++;
    s->start++;
    x->n--;
    fetch_next(x);
    return result;
}

static leat_next shuffle_next(leat_iterator *it, leat_pull *p)
{
    shuffler *x = (shuffler *)it;
    const shuffle *d = (const shuffle *)it->d;
    bool enough = false; /* Elements of enough rounds are in the buffer. */
    if (p->why == LEAT_WHY_PULLED && p->end) {
        bool empty;
        leat_status s = next_round(x, &empty);
        if (s)
            return leat_pull_fail(p, s);
        if (empty)
            return LEAT_NEXT_END;
        enough = x->input_over && x->n_slices > MOST_ROUNDS;
    } else if (p->why == LEAT_WHY_PULLED) {
        x->first = false;
        slice *last = &x->slices[x->n_slices - 1];
        *place(x, last->end++) =
            p->packed ? leat_pull_take_packed(p) : leat_element_pack(&p->element, &p->spares);
        x->n++;
        enough = x->n_slices > MOST_ROUNDS;
    }
    if (!enough && !x->input_over && x->n < d->size)
        return leat_pull_packed(p, it->input);
    return x->n ? draw(x, p) : LEAT_NEXT_END;
}

static void shuffle_close(leat_iterator *it)
{
    shuffler *x = (shuffler *)it;
    for (int64_t i = 0; i < x->cap; i++)
        leat_packed_free(x->buffer[i]);
    free(x->buffer);
    free(x->slices);
}

/* ---- Positions ---- */

static leat_status save_element(leat_state_writer *w, const leat_packed *p)
{
    leat_element e;
    LEAT_TRY(leat_element_unpack(p, &e));
    leat_status s = leat_state_put_element(w, &e);
    leat_element_clear(&e);
    return s;
}

static leat_status shuffle_save(leat_iterator *it, leat_state_writer *w)
{
    shuffler *x = (shuffler *)it;
    int64_t drawn = 0;
    if (x->seeds) {
        pthread_mutex_lock(&x->seeds->lock);
        drawn = x->seeds->drawn;
        pthread_mutex_unlock(&x->seeds->lock);
    }
    const int64_t numbers[] = {drawn,    x->seed,  x->seed2,      x->drawn,
                               x->round, x->first, x->input_over, x->n_slices};
    for (size_t i = 0; i < sizeof(numbers) / sizeof(*numbers); i++)
        leat_state_put_int(w, numbers[i]);
    for (int64_t i = 0; i < x->n_slices; i++) {
        leat_state_put_int(w, x->slices[i].start);
        leat_state_put_int(w, x->slices[i].end);
        for (int64_t at = x->slices[i].start; at < x->slices[i].end; at++)
            LEAT_TRY(save_element(w, *place(x, at)));
    }
    return NULL;
}

static leat_status restore_slice(shuffler *x, leat_state_reader *r)
{
    const int64_t size = ((const shuffle *)x->base.d)->size;
    slice s;
    const int64_t before = x->n_slices ? x->slices[x->n_slices - 1].end : 0;
    LEAT_TRY(leat_state_get_within(r, before, INT64_MAX, &s.start));
    LEAT_TRY(leat_state_get_within(r, s.start, INT64_MAX - size, &s.end));
    LEAT_REQUIRE(s.end - s.start <= size - x->n && (x->n_slices == 0 || s.start == before) &&
                     s.end - s.start <= (int64_t)((r->n - r->at) / 9),
                 DATA_LOSS, "The position has more elements than the buffer of %s",
                 x->base.d->name);
    add_slice(x, s);
    leat_spares none = {0};
    for (int64_t at = s.start; at < s.end; at++, x->n++) {
        leat_element e = {0};
        LEAT_TRY(leat_state_get_element_of(r, x->base.d->n, x->base.d->types, &e));
        *place(x, at) = leat_element_pack(&e, &none);
    }
    return NULL;
}

static leat_status shuffle_restore(leat_iterator *it, leat_state_reader *r)
{
    shuffler *x = (shuffler *)it;
    int64_t seeds_drawn, slices;
    LEAT_TRY(leat_state_get_within(r, 0, INT64_MAX, &seeds_drawn));
    LEAT_TRY(leat_state_get_int(r, &x->seed));
    LEAT_TRY(leat_state_get_int(r, &x->seed2));
    LEAT_TRY(leat_state_get_within(r, 0, INT64_MAX, &x->drawn));
    LEAT_TRY(leat_state_get_within(r, 0, INT64_MAX, &x->round));
    LEAT_TRY(leat_state_get_bool(r, &x->first));
    LEAT_TRY(leat_state_get_bool(r, &x->input_over));
    LEAT_TRY(leat_state_get_within(r, 1, (int64_t)(r->n / 9), &slices));
    LEAT_REQUIRE(x->input_over || it->input, DATA_LOSS, "The position lacks the input of %s",
                 it->d->name);
    if (x->seeds) {
        pthread_mutex_lock(&x->seeds->lock);
        x->seeds->drawn = seeds_drawn;
        pthread_mutex_unlock(&x->seeds->lock);
    }
    x->n_slices = 0;
    x->random_at = -1;
    for (int64_t i = 0; i < slices; i++)
        LEAT_TRY(restore_slice(x, r));
    return NULL;
}

/* ---- The datasets ---- */

static int64_t shuffle_cardinality(const leat_dataset *d)
{
    const int64_t count = ((const shuffle *)d)->count, n = leat_dataset_cardinality(d->in[0]);
    int64_t all;
    if (count < 0 || n == LEAT_CARDINALITY_INFINITE)
        return LEAT_CARDINALITY_INFINITE;
    if (n == LEAT_CARDINALITY_UNKNOWN)
        return n;
    return leat_mul_ok(n, count, &all) ? all : INT64_MAX;
}

static leat_status check_size(const shuffle *d)
{
    LEAT_REQUIRE(d->size > 0, INVALID_ARGUMENT, "buffer_size must be greater than zero.");
    return NULL;
}

static leat_status shuffle_make(leat_kernel *k, leat_dataset *base)
{
    shuffle *d = (shuffle *)base;
    const leat_node *node = leat_kernel_node(k);
    LEAT_TRY(leat_data_int(k, 1, "buffer_size", &d->size));
    LEAT_TRY(check_size(d));
    d->count = 1;
    if (leat_kernel_inputs(k) == 3) {
        leat_resource *r;
        LEAT_TRY(leat_anonymous_resource(k, 2, &leat_seed_generator_type, &r));
        d->seeds = leat_seeds_ref(((leat_seed_generator *)r)->seeds);
        leat_resource_unref(r);
        return NULL;
    }
    LEAT_TRY(leat_data_int(k, 2, "seed", &d->seed));
    LEAT_TRY(leat_data_int(k, 3, "seed2", &d->seed2));
    leat_data_random_seeds(&d->seed, &d->seed2);
    if (leat_kernel_inputs(k) == 4) {
        d->reshuffles = leat_node_bool(node, "reshuffle_each_iteration");
        return NULL;
    }
    LEAT_TRY(leat_data_int(k, 4, "count", &d->count));
    LEAT_REQUIRE(d->count > 0 || d->count == -1, INVALID_ARGUMENT,
                 "count must be greater than zero or equal to -1.");
    return NULL;
}

static void shuffle_release(leat_dataset *d)
{
    leat_seeds_unref(((shuffle *)d)->seeds);
}

static const leat_dataset_kind shuffle_kind = {
    .size = sizeof(shuffle),
    .iterator_size = sizeof(shuffler),
    .inputs = 1,
    .make = shuffle_make,
    .release = shuffle_release,
    .cardinality = shuffle_cardinality,
    .open = shuffle_open,
    .next = shuffle_next,
    .close = shuffle_close,
    .save = shuffle_save,
    .restore = shuffle_restore,
};
LEAT_DATASET_RUN(shuffle_kind)

leat_status leat_dataset_shuffled(leat_dataset *in, int64_t buffer_size, int64_t seed,
                                  int64_t seed2, bool reshuffle, int64_t count, leat_dataset **out)
{
    leat_dataset *d;
    LEAT_REQUIRE(count > 0 || count == -1, INVALID_ARGUMENT,
                 "count must be greater than zero or equal to -1.");
    LEAT_TRY(leat_dataset_over(&shuffle_kind,
                               count == 1 ? "ShuffleDataset" : "ShuffleAndRepeatDataset", "shuffle",
                               &in, 1, &d));
    shuffle *x = (shuffle *)d;
    x->size = buffer_size;
    x->count = count;
    x->seed = seed;
    x->seed2 = seed2;
    x->reshuffles = reshuffle;
    leat_data_random_seeds(&x->seed, &x->seed2);
    leat_status s = check_size(x);
    if (s)
        leat_dataset_unref(d);
    else
        *out = d;
    return s;
}

leat_status leat_dataset_shuffled_like(const leat_dataset *like, leat_dataset *in,
                                       leat_dataset **out)
{
    leat_dataset *d;
    LEAT_TRY(leat_dataset_over(&shuffle_kind, like->op, like->name, &in, 1, &d));
    shuffle *x = (shuffle *)d;
    const shuffle *from = (const shuffle *)like;
    x->size = from->size;
    x->count = from->count;
    x->seed = from->seed;
    x->seed2 = from->seed2;
    x->reshuffles = from->reshuffles;
    x->seeds = from->seeds ? leat_seeds_ref(from->seeds) : NULL;
    *out = d;
    return NULL;
}

/* ---- Seed generators ---- */

static void generator_free(void *object)
{
    leat_seeds_unref(((leat_seed_generator *)object)->seeds);
    free(object);
}

const leat_resource_type leat_seed_generator_type = {"N10tensorflow4data19RandomSeedGeneratorE",
                                                     generator_free};

static leat_status generator_run(leat_kernel *k)
{
    int64_t seed, seed2;
    LEAT_TRY(leat_data_int(k, 0, "seed", &seed));
    LEAT_TRY(leat_data_int(k, 1, "seed2", &seed2));
    leat_data_random_seeds(&seed, &seed2);
    leat_seed_generator *g = leat_new(leat_seed_generator);
    leat_resource_init(&g->base, &leat_seed_generator_type);
    g->seeds = leat_seeds_new(seed, seed2);
    return leat_anonymous_handle(k, 0, "AnonymousRandomSeedGenerator", &g->base);
}

static leat_status nothing_run(leat_kernel *k)
{
    return NULL;
}

const leat_kernel_def leat_data_kernels_shuffle[] = {
    {.op = "ShuffleDataset", .run = shuffle_kind_run},
    {.op = "ShuffleDatasetV2", .run = shuffle_kind_run},
    {.op = "ShuffleAndRepeatDataset", .run = shuffle_kind_run},
    {.op = "AnonymousRandomSeedGenerator", .run = generator_run},
    {.op = "DeleteRandomSeedGenerator", .run = nothing_run},
    {0},
};
