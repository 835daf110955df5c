/* counts.c -- datasets that choose elements of their input by counting: Repeat, Take, Skip,
 * Shard. */
#include "kernels/dataset/counts.h"

#include "kernels/dataset/pull.h"
#include "kernels/dataset/state.h"

typedef struct counted {
    leat_dataset base;
    int64_t count; /* below 0: all */
} counted;

typedef struct counter {
    leat_iterator base;
    int64_t i;
    bool any; /* Repeat: this round has given an element */
} counter;

static leat_status count_make(leat_kernel *k, leat_dataset *d)
{
    return leat_data_int(k, 1, "count", &((counted *)d)->count);
}

static leat_status counter_save(leat_iterator *it, leat_state_writer *w)
{
    leat_state_put_int(w, ((counter *)it)->i);
    leat_state_put_int(w, ((counter *)it)->any);
    return NULL;
}

static leat_status counter_restore(leat_iterator *it, leat_state_reader *r)
{
    LEAT_TRY(leat_state_get_within(r, 0, INT64_MAX, &((counter *)it)->i));
    return leat_state_get_bool(r, &((counter *)it)->any);
}

#define COUNTED_KIND                                                                               \
    .size = sizeof(counted), .iterator_size = sizeof(counter), .inputs = 1, .make = count_make,    \
    .save = counter_save, .restore = counter_restore

/* ---- Repeat ---- */

static int64_t repeat_cardinality(const leat_dataset *d)
{
    int64_t n = leat_dataset_cardinality(d->in[0]), count = ((const counted *)d)->count, all;
    if (count < 0)
        return n == 0 ? 0 : LEAT_CARDINALITY_INFINITE;
    if (count == 0)
        return 0;
    if (n == LEAT_CARDINALITY_INFINITE || n == LEAT_CARDINALITY_UNKNOWN)
        return n;
    return leat_mul_ok(n, count, &all) ? all : INT64_MAX;
}

/* An input without elements that is repeated for ever is the end of the data. */
static leat_next repeat_next(leat_iterator *it, leat_pull *p)
{
    counter *c = (counter *)it;
    const int64_t count = ((const counted *)it->d)->count;
    if (p->why == LEAT_WHY_PULLED) {
        if (!p->end) {
            c->any = true;
            return LEAT_NEXT_ELEMENT;
        }
        if (count < 0 && !c->any)
            return LEAT_NEXT_END;
        c->any = false;
        c->i++;
        /* Also after the last round, as in TensorFlow: the input's seeds go on. */
        leat_status s = leat_iterator_reopen(it, 0);
        if (s)
            return leat_pull_fail(p, s);
    }
    if (count >= 0 && c->i >= count)
        return LEAT_NEXT_END;
    return leat_pull_through(p, it);
}

static const leat_dataset_kind repeat_kind = {
    COUNTED_KIND,
    .cardinality = repeat_cardinality,
    .next = repeat_next,
};
LEAT_DATASET_RUN(repeat_kind)

/* ---- Take ---- */

static int64_t take_cardinality(const leat_dataset *d)
{
    int64_t n = leat_dataset_cardinality(d->in[0]), count = ((const counted *)d)->count;
    if (n == LEAT_CARDINALITY_UNKNOWN)
        return LEAT_CARDINALITY_UNKNOWN;
    if (n == LEAT_CARDINALITY_INFINITE)
        return count < 0 ? LEAT_CARDINALITY_INFINITE : count;
    return count < 0 || n < count ? n : count;
}

static leat_next take_next(leat_iterator *it, leat_pull *p)
{
    counter *c = (counter *)it;
    const int64_t count = ((const counted *)it->d)->count;
    if (p->why == LEAT_WHY_PULLED)
        return p->end ? LEAT_NEXT_END : LEAT_NEXT_ELEMENT;
    if (count >= 0 && c->i >= count)
        return LEAT_NEXT_END;
    c->i++;
    return leat_pull_through(p, it);
}

static const leat_dataset_kind take_kind = {
    COUNTED_KIND,
    .cardinality = take_cardinality,
    .next = take_next,
};
LEAT_DATASET_RUN(take_kind)

/* ---- Skip ---- */

static int64_t skip_cardinality(const leat_dataset *d)
{
    int64_t n = leat_dataset_cardinality(d->in[0]), count = ((const counted *)d)->count;
    if (n == LEAT_CARDINALITY_UNKNOWN)
        return LEAT_CARDINALITY_UNKNOWN;
    if (n == LEAT_CARDINALITY_INFINITE)
        return count < 0 ? 0 : LEAT_CARDINALITY_INFINITE;
    return count < 0 || n < count ? 0 : n - count;
}

static leat_next skip_next(leat_iterator *it, leat_pull *p)
{
    counter *c = (counter *)it;
    const int64_t count = ((const counted *)it->d)->count;
    if (count < 0)
        return LEAT_NEXT_END;
    if (p->why == LEAT_WHY_PULLED) {
        if (p->end)
            return LEAT_NEXT_END;
        if (c->i >= count)
            return LEAT_NEXT_ELEMENT;
        c->i++;
    }
    return leat_pull_through(p, it);
}

static const leat_dataset_kind skip_kind = {
    COUNTED_KIND,
    .cardinality = skip_cardinality,
    .next = skip_next,
};
LEAT_DATASET_RUN(skip_kind)

leat_status leat_dataset_counted(leat_dataset *in, const char *op, int64_t count,
                                 leat_dataset **out)
{
    const leat_dataset_kind *kind = strcmp(op, "RepeatDataset") == 0 ? &repeat_kind
                                    : strcmp(op, "TakeDataset") == 0 ? &take_kind
                                                                     : &skip_kind;
    leat_dataset *d;
    LEAT_TRY(leat_dataset_over(kind, op, op, &in, 1, &d));
    ((counted *)d)->count = count;
    *out = d;
    return NULL;
}

/* ---- Shard: every num_shards-th element ---- */

typedef struct shard {
    leat_dataset base;
    int64_t shards, index;
    bool require_non_empty;
} shard;

static leat_status check_shard(const shard *s)
{
    LEAT_REQUIRE(s->shards > 0, INVALID_ARGUMENT,
                 "Number of shards must be greater than zero (currently num_shards = %lld).",
                 (long long)s->shards);
    LEAT_REQUIRE(s->index >= 0 && s->index < s->shards, INVALID_ARGUMENT,
                 "Index must be between 0 and %lld (currently index = %lld).",
                 (long long)s->shards - 1, (long long)s->index);
    return NULL;
}

static leat_status shard_make(leat_kernel *k, leat_dataset *d)
{
    shard *s = (shard *)d;
    LEAT_TRY(leat_data_int(k, 1, "num_shards", &s->shards));
    LEAT_TRY(leat_data_int(k, 2, "index", &s->index));
    s->require_non_empty = leat_node_bool(leat_kernel_node(k), "require_non_empty");
    return check_shard(s);
}

static int64_t shard_cardinality(const leat_dataset *d)
{
    const shard *s = (const shard *)d;
    int64_t n = leat_dataset_cardinality(d->in[0]);
    return n < 0 ? n : n / s->shards + (s->index < n % s->shards);
}

/* i counts the elements of the input. If each shard must have an element, the first element of this
 * shard is given only after the input was seen to have as many elements as there are shards; it is
 * kept meanwhile. */
typedef struct shard_iterator {
    leat_iterator base;
    int64_t i;
    leat_element kept;
} shard_iterator;

static leat_next shard_next(leat_iterator *it, leat_pull *p)
{
    shard_iterator *c = (shard_iterator *)it;
    const shard *s = (const shard *)it->d;
    if (p->why == LEAT_WHY_PULLED && p->end) {
        if (c->kept.v) /* As in TensorFlow, a shard without elements of its own just ends. */
            return leat_pull_fail(
                p, leat_error(INVALID_ARGUMENT,
                              "There aren't enough elements in this dataset for each shard to have "
                              "at least one element (# elems = %lld, # shards = %lld). If you are "
                              "using datasets with distribution strategy, consider setting the "
                              "auto sharding policy to either DATA or OFF using the "
                              "`experimental_distribute.auto_shard_policy` option of "
                              "`tf.data.Options()`.",
                              (long long)c->i, (long long)s->shards));
        return LEAT_NEXT_END;
    }
    if (p->why == LEAT_WHY_PULLED) {
        bool mine = c->i++ % s->shards == s->index;
        if (mine && (!s->require_non_empty || c->i >= s->shards))
            return LEAT_NEXT_ELEMENT;
        if (mine)
            c->kept = leat_element_take(&p->element);
        if (c->kept.v && c->i >= s->shards)
            return leat_pull_give(p, leat_element_take(&c->kept));
    }
    return leat_pull_from(p, it->input);
}

static void shard_close(leat_iterator *it)
{
    leat_element_clear(&((shard_iterator *)it)->kept);
}

static leat_status shard_save(leat_iterator *it, leat_state_writer *w)
{
    leat_state_put_int(w, ((shard_iterator *)it)->i);
    return leat_state_put_element(w, &((shard_iterator *)it)->kept);
}

static leat_status shard_restore(leat_iterator *it, leat_state_reader *r)
{
    LEAT_TRY(leat_state_get_within(r, 0, INT64_MAX, &((shard_iterator *)it)->i));
    return leat_state_get_element_or_none(r, it->d->n, it->d->types, &((shard_iterator *)it)->kept);
}

static const leat_dataset_kind shard_kind = {
    .size = sizeof(shard),
    .iterator_size = sizeof(shard_iterator),
    .inputs = 1,
    .make = shard_make,
    .cardinality = shard_cardinality,
    .next = shard_next,
    .close = shard_close,
    .save = shard_save,
    .restore = shard_restore,
};
LEAT_DATASET_RUN(shard_kind)

leat_status leat_dataset_sharded(leat_dataset *in, const leat_sharded *o, leat_dataset **out)
{
    leat_dataset *d;
    LEAT_TRY(leat_dataset_over(&shard_kind, "ShardDataset", o->name, &in, 1, &d));
    ((shard *)d)->shards = o->shards;
    ((shard *)d)->index = o->index;
    ((shard *)d)->require_non_empty = o->require_non_empty;
    leat_status s = check_shard((const shard *)d);
    if (s)
        leat_dataset_unref(d);
    else
        *out = d;
    return s;
}

const leat_kernel_def leat_data_kernels_counts[] = {
    {.op = "RepeatDataset", .run = repeat_kind_run},
    {.op = "TakeDataset", .run = take_kind_run},
    {.op = "SkipDataset", .run = skip_kind_run},
    {.op = "ShardDataset", .run = shard_kind_run},
    {0},
};
