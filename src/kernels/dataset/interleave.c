/* interleave.c -- datasets whose function gives a dataset for each element of the input, and that
 * give the elements of these datasets: FlatMap, Interleave, and the parallel forms, in which the
 * datasets of a cycle work ahead. All of them give the same elements in the same order. */
#include <stdlib.h>

#include "core/alloc.h"
#include "kernels/dataset/ahead_kinds.h"
#include "kernels/dataset/interleave.h"
#include "kernels/dataset/map.h"
#include "kernels/dataset/program.h"
#include "kernels/dataset/pull.h"
#include "kernels/dataset/state.h"
#include "kernels/dataset/stats.h"

enum { MOST_CYCLE = 1 << 20 };

typedef struct interleave {
    leat_dataset base;
    int64_t cycle, block;
    int64_t ahead; /* elements that each dataset of the cycle keeps ready; 0: none */
} interleave;

/* A dataset of the cycle. */
typedef struct branch {
    leat_iterator *it;  /* NULL: none */
    leat_element args;  /* the element that it was made of */
    leat_status failed; /* why it could not be opened; given when it is the branch's turn */
} branch;

typedef struct interleaver {
    leat_iterator base;
    branch *v;
    int64_t at;     /* the branch whose turn it is */
    int64_t given;  /* elements of this turn */
    int64_t open;   /* branches that have an iterator */
    int64_t fill;   /* the branch that is being opened */
    int64_t opened; /* branches so far */
    bool input_over;
} interleaver;

/* ---- Branches ---- */

static leat_status dataset_of(const leat_element *results, leat_dataset **out)
{
    LEAT_REQUIRE(results->n == 1 && results->v[0]->dtype == LEAT_VARIANT &&
                     results->v[0]->shape.rank == 0,
                 INVALID_ARGUMENT, "Function must return a single scalar of dtype DT_VARIANT.");
    return leat_dataset_in(results->v[0], out);
}

static leat_status open_branch(leat_iterator *it, const leat_element *results, int64_t i,
                               leat_iterator **out)
{
    const interleave *d = (const interleave *)it->d;
    leat_dataset *made, *stage = NULL;
    LEAT_TRY(dataset_of(results, &made));
    if (d->ahead)
        LEAT_TRY(leat_dataset_prefetched(made, made->name, d->ahead, &stage));
    leat_status s = leat_iterator_new(it->iteration, stage ? stage : made, it, 1 + i, out);
    leat_dataset_unref(stage);
    return s;
}

static void close_branch(branch *b)
{
    leat_iterator_free(b->it);
    b->it = NULL;
    leat_element_clear(&b->args);
    leat_status_free(b->failed);
    b->failed = NULL;
}

static leat_status interleave_open(leat_iterator *it)
{
    void *v;
    LEAT_TRY(leat_try_calloc(((const interleave *)it->d)->cycle, sizeof(branch), &v));
    ((interleaver *)it)->v = v;
    return NULL;
}

static void interleave_close(leat_iterator *it)
{
    interleaver *x = (interleaver *)it;
    for (int64_t i = 0; x->v && i < ((const interleave *)it->d)->cycle; i++)
        close_branch(&x->v[i]);
    free(x->v);
}

/* ---- Elements ---- */

static void advance(interleaver *x)
{
    x->given = 0;
    x->at = (x->at + 1) % ((const interleave *)x->base.d)->cycle;
}

/* The branch to open next: the one whose turn it is, or, if branches work ahead, the first one from
 * there on that has no iterator. -1: none. */
static int64_t to_fill(const interleaver *x)
{
    const interleave *d = (const interleave *)x->base.d;
    if (x->input_over)
        return -1;
    for (int64_t i = 0; i < (d->ahead ? d->cycle : 1); i++) {
        int64_t b = (x->at + i) % d->cycle;
        if (!x->v[b].it && !x->v[b].failed)
            return b;
    }
    return -1;
}

/* The pull of the input for a branch, or its function, has failed. A branch that was opened ahead
 * gives the error when it is its turn. True: *out is to be returned. Takes s. */
static bool fail(interleaver *x, leat_pull *p, branch *b, leat_status s, leat_next *out)
{
    p->status = NULL;
    if (!b->it)
        leat_element_clear(&b->args);
    if (x->fill >= 0 && x->fill != x->at) {
        b->failed = leat_data_error(&x->base, s);
        x->open++;
        return false;
    }
    *out = leat_pull_fail(p, s);
    return true;
}

/* What the pull of the input, the function or a branch has given. True: *out is to be returned. */
static bool take(interleaver *x, leat_pull *p, leat_next *out)
{
    leat_iterator *it = &x->base;
    branch *b = &x->v[x->fill >= 0 ? x->fill : x->at];
    if (p->why == LEAT_WHY_CALLED) {
        leat_status s = p->status;
        if (!s)
            s = open_branch(it, &p->element, x->opened++, &b->it);
        if (s)
            return fail(x, p, b, s, out);
        x->open++;
        leat_prefetch_start(b->it);
    } else if (p->status) {
        return fail(x, p, b, p->status, out);
    } else if (x->fill >= 0) { /* The input was pulled. */
        x->input_over = p->end;
        if (p->end)
            return false;
        leat_element_clear(&b->args);
        b->args = leat_element_take(&p->element);
        *out = leat_pull_call(p, &it->d->fn[0], &b->args);
        return true;
    } else if (p->end) { /* A branch was pulled. */
        close_branch(b);
        x->open--;
        advance(x);
    } else {
        const interleave *d = (const interleave *)it->d;
        if (d->ahead)
            leat_stats_set_of(it->stats, it->d, "thread_utilization",
                              (float)x->open / (float)d->cycle);
        if (++x->given == d->block)
            advance(x);
        *out = LEAT_NEXT_ELEMENT;
        return true;
    }
    return false;
}

static leat_next interleave_next(leat_iterator *it, leat_pull *p)
{
    interleaver *x = (interleaver *)it;
    leat_next n;
    if (p->why != LEAT_WHY_START && take(x, p, &n))
        return n;
    if ((x->fill = to_fill(x)) >= 0)
        return leat_pull_from(p, it->input);
    if (x->open == 0)
        return LEAT_NEXT_END;
    while (!x->v[x->at].it && !x->v[x->at].failed)
        advance(x);
    branch *b = &x->v[x->at];
    if (!b->failed)
        return leat_pull_from(p, b->it);
    x->open--;
    p->status = b->failed;
    b->failed = NULL;
    advance(x); /* The next element of the input is in the next branch. */
    return LEAT_NEXT_FAILED;
}

/* ---- Positions ---- */

static leat_status interleave_save(leat_iterator *it, leat_state_writer *w)
{
    interleaver *x = (interleaver *)it;
    leat_state_put_int(w, x->at);
    leat_state_put_int(w, x->given);
    leat_state_put_int(w, x->opened);
    leat_state_put_int(w, x->input_over);
    leat_state_put_int(w, x->open);
    for (int64_t i = 0; i < ((const interleave *)it->d)->cycle; i++) {
        if (!x->v[i].it && !x->v[i].failed)
            continue;
        LEAT_REQUIRE(x->v[i].it, FAILED_PRECONDITION,
                     "The iterator has an error that no step has got yet: %s",
                     leat_status_message(x->v[i].failed));
        leat_state_put_int(w, i);
        LEAT_TRY(leat_state_put_element(w, &x->v[i].args));
        LEAT_TRY(leat_state_put_iterator(w, x->v[i].it));
    }
    return NULL;
}

/* The function is called again with the element that the branch was made of. */
static leat_status restore_branch(interleaver *x, leat_state_reader *r)
{
    leat_iterator *it = &x->base;
    leat_element results = {0};
    int64_t i;
    LEAT_TRY(leat_state_get_within(r, 0, ((const interleave *)it->d)->cycle - 1, &i));
    branch *b = &x->v[i];
    LEAT_REQUIRE(!b->it, DATA_LOSS, "The position has a dataset of %s twice", it->d->name);
    const leat_dataset *in = it->d->in[0];
    LEAT_TRY(leat_state_get_element_of(r, in->n, in->types, &b->args));
    leat_status s = leat_data_call(it->iteration, &it->d->fn[0], &b->args, &results);
    if (!s)
        s = open_branch(it, &results, x->opened, &b->it);
    leat_element_clear(&results);
    LEAT_TRY(s);
    x->open++;
    LEAT_TRY(leat_state_get_iterator(r, it->iteration, b->it->d, it, 0, &b->it));
    LEAT_REQUIRE(b->it, DATA_LOSS, "The position lacks the iterator of a dataset of %s",
                 it->d->name);
    return NULL;
}

static leat_status interleave_restore(leat_iterator *it, leat_state_reader *r)
{
    interleaver *x = (interleaver *)it;
    const int64_t cycle = ((const interleave *)it->d)->cycle;
    int64_t n;
    LEAT_TRY(leat_state_get_within(r, 0, cycle - 1, &x->at));
    LEAT_TRY(leat_state_get_within(r, 0, INT64_MAX, &x->given));
    LEAT_TRY(leat_state_get_within(r, 0, INT64_MAX, &x->opened));
    LEAT_TRY(leat_state_get_bool(r, &x->input_over));
    LEAT_TRY(leat_state_get_within(r, 0, cycle, &n));
    for (int64_t i = 0; i < n; i++)
        LEAT_TRY(restore_branch(x, r));
    return NULL;
}

/* ---- The kinds ---- */

static leat_status read_function(leat_kernel *k, leat_dataset *d)
{
    LEAT_TRY(leat_data_fn_get(k, "f", 1, leat_data_count(k, "Targuments"), &d->fn[0]));
    return leat_data_fn_check(&d->fn[0], "f", d->in[0]->types, d->in[0]->n, NULL, -1);
}

static leat_status flat_map_make(leat_kernel *k, leat_dataset *d)
{
    ((interleave *)d)->cycle = ((interleave *)d)->block = 1;
    return read_function(k, d);
}

static leat_status check_cycle(const interleave *x)
{
    LEAT_REQUIRE(x->cycle > 0, INVALID_ARGUMENT, "`cycle_length` must be > 0");
    LEAT_REQUIRE(x->cycle <= MOST_CYCLE, INVALID_ARGUMENT, "`cycle_length` is %lld; it may be %d",
                 (long long)x->cycle, MOST_CYCLE);
    LEAT_REQUIRE(x->block > 0, INVALID_ARGUMENT, "`block_length` must be > 0");
    return NULL;
}

/* cycle_length and block_length are the inputs after the captured tensors. */
static leat_status read_cycle(leat_kernel *k, leat_dataset *d)
{
    interleave *x = (interleave *)d;
    const int at = 1 + leat_data_count(k, "Targuments");
    LEAT_TRY(leat_data_int(k, at, "cycle_length", &x->cycle));
    if (x->cycle == LEAT_AUTOTUNE)
        x->cycle = leat_cpu_count();
    LEAT_TRY(leat_data_int(k, at + 1, "block_length", &x->block));
    LEAT_TRY(check_cycle(x));
    return read_function(k, d);
}

static int64_t few(int64_t n)
{
    return n < 64 ? n : 64;
}

/* buffer_output_elements and prefetch_input_elements are inputs i and i + 1; TensorFlow 2 leaves
 * them to the runtime by -1. */
static leat_status read_buffers(leat_kernel *k, int i, interleave *x)
{
    int64_t output, input;
    LEAT_TRY(leat_data_int(k, i, "buffer_output_elements", &output));
    LEAT_REQUIRE(output > 0 || output == LEAT_AUTOTUNE, INVALID_ARGUMENT,
                 "`buffer_output_elements` must be > 0");
    LEAT_TRY(leat_data_int(k, i + 1, "prefetch_input_elements", &input));
    LEAT_REQUIRE(input >= 0 || input == LEAT_AUTOTUNE, INVALID_ARGUMENT,
                 "`prefetch_input_elements` must be >= 0");
    x->ahead = few(output == LEAT_AUTOTUNE ? x->block : output);
    return NULL;
}

/* After block_length comes `sloppy`, which the second version has as an attribute. */
static leat_status parallel_make(leat_kernel *k, leat_dataset *d)
{
    const int at = 3 + leat_data_count(k, "Targuments");
    LEAT_TRY(read_cycle(k, d));
    return read_buffers(k, at + 1, (interleave *)d);
}

static leat_status legacy2_make(leat_kernel *k, leat_dataset *d)
{
    LEAT_TRY(read_cycle(k, d));
    return read_buffers(k, 3 + leat_data_count(k, "Targuments"), (interleave *)d);
}

static leat_status read_calls(leat_kernel *k, int64_t *calls)
{
    LEAT_TRY(leat_data_int(k, leat_kernel_inputs(k) - 1, "num_parallel_calls", calls));
    LEAT_REQUIRE(*calls > 0 || *calls == LEAT_AUTOTUNE, INVALID_ARGUMENT,
                 "num_parallel_calls must be greater than zero.");
    return NULL;
}

static leat_status parallel3_make(leat_kernel *k, leat_dataset *d)
{
    int64_t calls;
    LEAT_TRY(read_cycle(k, d));
    ((interleave *)d)->ahead = few(((interleave *)d)->block);
    return read_calls(k, &calls);
}

static leat_status parallel4_make(leat_kernel *k, leat_dataset *d)
{
    LEAT_TRY(legacy2_make(k, d));
    int64_t calls;
    return read_calls(k, &calls);
}

static leat_status parallel2_make(leat_kernel *k, leat_dataset *d)
{
    interleave *x = (interleave *)d;
    int64_t calls;
    LEAT_TRY(read_cycle(k, d));
    LEAT_TRY(read_calls(k, &calls));
    LEAT_REQUIRE(calls <= x->cycle, INVALID_ARGUMENT,
                 "num_parallel_calls must less than or equal to cycle_length.");
    x->ahead = few(x->block);
    return NULL;
}

#define INTERLEAVE_KIND                                                                            \
    .size = sizeof(interleave), .iterator_size = sizeof(interleaver), .inputs = 1,                 \
    .own_types = true, .catches = true, .open = interleave_open, .next = interleave_next,          \
    .close = interleave_close, .save = interleave_save, .restore = interleave_restore
static const leat_dataset_kind flat_map_kind = {INTERLEAVE_KIND, .make = flat_map_make};
LEAT_DATASET_RUN(flat_map_kind)
static const leat_dataset_kind interleave_kind = {INTERLEAVE_KIND, .make = read_cycle};
LEAT_DATASET_RUN(interleave_kind)
static const leat_dataset_kind parallel_kind = {INTERLEAVE_KIND, .make = parallel_make};
LEAT_DATASET_RUN(parallel_kind)
static const leat_dataset_kind parallel2_kind = {INTERLEAVE_KIND, .make = parallel2_make};
LEAT_DATASET_RUN(parallel2_kind)
static const leat_dataset_kind parallel3_kind = {INTERLEAVE_KIND, .make = parallel3_make};
LEAT_DATASET_RUN(parallel3_kind)
static const leat_dataset_kind parallel4_kind = {INTERLEAVE_KIND, .make = parallel4_make};
LEAT_DATASET_RUN(parallel4_kind)
static const leat_dataset_kind legacy2_kind = {INTERLEAVE_KIND, .make = legacy2_make};
LEAT_DATASET_RUN(legacy2_kind)

leat_status leat_dataset_interleaved(leat_dataset *in, leat_program_fn *fn, int64_t cycle,
                                     int64_t block, bool ahead, leat_dataset **out)
{
    const bool flat = cycle == 1 && block == 1 && !ahead;
    leat_dataset *d;
    LEAT_TRY(leat_program_over(flat ? &flat_map_kind : &interleave_kind,
                               flat ? "FlatMapDataset" : "InterleaveDataset",
                               flat ? "flat_map" : "interleave", in, fn, &d));
    interleave *x = (interleave *)d;
    x->cycle = cycle == LEAT_AUTOTUNE ? leat_cpu_count() : cycle;
    x->block = block;
    x->ahead = ahead ? few(block) : 0;
    leat_status s = check_cycle(x);
    if (s)
        leat_dataset_unref(d);
    else
        *out = d;
    return s;
}

const leat_kernel_def leat_data_kernels_interleave[] = {
    {.op = "FlatMapDataset", .run = flat_map_kind_run},
    {.op = "InterleaveDataset", .run = interleave_kind_run},
    {.op = "ParallelInterleaveDataset", .run = parallel_kind_run},
    {.op = "ExperimentalParallelInterleaveDataset", .run = parallel_kind_run},
    {.op = "ParallelInterleaveDatasetV2", .run = parallel2_kind_run},
    {.op = "ParallelInterleaveDatasetV3", .run = parallel3_kind_run},
    {.op = "ParallelInterleaveDatasetV4", .run = parallel4_kind_run},
    {.op = "LegacyParallelInterleaveDatasetV2", .run = legacy2_kind_run},
    {0},
};
