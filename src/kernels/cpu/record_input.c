/* record_input.c -- RecordInput: batches of the records of TFRecord files, in random order, epoch
 * after epoch.
 *
 * 1. In each epoch the files that match the pattern are shuffled, rotated and divided among
 *    `parallelism` shards. A shard collects 16 records and puts them, the last one first, into the
 *    buffer, each at a random place.
 * 2. TensorFlow has a thread for each shard, which run while records are taken out. Here the kernel
 *    that wants a record fills the buffer first, and the shards take turns: one of the orders that
 *    TensorFlow may give, and the same in each run.
 * 3. After an epoch whose records did not fill the buffer, the buffer is made that much smaller, as
 *    in TensorFlow. The next epoch begins when the buffer is empty.
 */
#define _GNU_SOURCE /* asprintf, strsep */
#include <leat/io.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>

#include "core/alloc.h"
#include "core/fingerprint.h"
#include "core/mersenne.h"
#include "io/path.h"
#include "kernels/cpu/cpu.h"
#include "runtime/callable.h"

enum { CHUNK = 16 };

typedef struct record {
    size_t size;
    char bytes[];
} record;

typedef struct shard {
    size_t next; /* file */
    leat_record_reader *reader;
    record *values[CHUNK];
    int n_values;
} shard;

typedef struct input {
    leat_resource base;
    leat_record_form form; /* does not change */
    int64_t seed;          /* does not change */
    float shift_ratio;     /* does not change */
    int64_t parallelism;   /* does not change */
    char *pattern;         /* does not change */
    pthread_mutex_t lock;  /* guards what follows; held while files are read */
    leat_status status;    /* what ended the input, after the records that came before */
    leat_status failed;    /* the first error of a shard in this epoch */
    leat_mersenne random;
    int64_t epoch;
    int64_t size; /* records that the buffer is to have */
    record **buffer;
    int64_t n, cap;
    record *
        *drawn; /* of a batch: taken out of the buffer and not given yet; NULL before the first */
    int64_t n_drawn;
    int64_t added; /* records in this epoch */
    char **files;  /* of this epoch */
    size_t n_files;
    shard *shards; /* as many as there are files, at most parallelism */
    size_t n_shards, turn;
    size_t at_work; /* shards that have not ended */
} input;

static void close_file(shard *d)
{
    leat_record_reader_free(d->reader);
    d->reader = NULL;
}

/* ---- Epochs ---- */

static void end_epoch(input *x)
{
    for (size_t i = 0; i < x->n_shards; i++) {
        close_file(&x->shards[i]);
        while (x->shards[i].n_values)
            free(x->shards[i].values[--x->shards[i].n_values]);
    }
    free(x->shards);
    leat_paths_free(x->files, x->n_files);
    x->shards = NULL;
    x->files = NULL;
    x->n_shards = x->n_files = x->at_work = 0;
}

/* Adds the files that match one of the patterns, which are separated by commas. */
static leat_status match(input *x)
{
    char *patterns = leat_xstrdup(x->pattern), *rest = patterns;
    leat_status s = NULL;
    for (const char *one; !s && (one = strsep(&rest, ","));) {
        char **v = NULL, **all = NULL;
        size_t n = 0;
        s = leat_path_match(one, &v, &n);
        if (!s && n && !(all = realloc(x->files, sizeof(*all) * (x->n_files + n)))) {
            leat_paths_free(v, n);
            s = leat_error(RESOURCE_EXHAUSTED, "No memory for %zu file names", x->n_files + n);
        } else if (!s && n) {
            memcpy(all + x->n_files, v, sizeof(*v) * n);
            x->files = all;
            x->n_files += n;
            free(v);
        } else if (!s) {
            leat_paths_free(v, n);
        }
    }
    free(patterns);
    return s;
}

static leat_status rotate(input *x, size_t by)
{
    char **v;
    LEAT_TRY(leat_try_array((int64_t)x->n_files, &v));
    for (size_t i = 0; i < x->n_files; i++)
        v[i] = x->files[(i + by) % x->n_files];
    free(x->files);
    x->files = v;
    return NULL;
}

static leat_status begin_epoch(input *x)
{
    x->epoch++;
    x->added = 0;
    LEAT_TRY(match(x));
    LEAT_REQUIRE(x->n_files, NOT_FOUND, "Found no files at %s", x->pattern);
    leat_mersenne random;
    leat_mersenne_init(&random, leat_hash64_with(&x->epoch, sizeof(x->epoch), (uint64_t)x->seed));
    leat_mersenne_shuffle(&random, (void **)x->files, x->n_files);
    if (0 <= x->shift_ratio && x->shift_ratio < 1)
        LEAT_TRY(rotate(x, (size_t)(x->shift_ratio * (float)x->n_files)));
    const size_t n = (uint64_t)x->parallelism < x->n_files ? (size_t)x->parallelism : x->n_files;
    LEAT_TRY(leat_try_array((int64_t)n, &x->shards));
    x->n_shards = x->at_work = n;
    x->turn = 0;
    for (size_t i = 0; i < n; i++)
        x->shards[i].next = i;
    return NULL;
}

/* ---- Shards ---- */

static leat_status open_file(input *x, const char *name, leat_record_reader **out)
{
    leat_status s = leat_record_reader_open(name, x->form, out);
    if (!s || leat_status_code(s) == LEAT_PERMISSION_DENIED)
        return s;
    leat_status bad =
        leat_error(INVALID_ARGUMENT, "Can't open %s: %s", name, leat_status_message(s));
    leat_status_free(s);
    return bad;
}

/* Reads one record of the shard; *out is NULL after its last one. */
static leat_status read_one(input *x, shard *d, record **out)
{
    const void *bytes;
    size_t n;
    *out = NULL;
    for (;;) {
        if (!d->reader && d->next >= x->n_files)
            return NULL;
        if (!d->reader) {
            LEAT_TRY(open_file(x, x->files[d->next], &d->reader));
            d->next = (uint64_t)x->parallelism < x->n_files - d->next
                          ? d->next + (size_t)x->parallelism
                          : x->n_files;
        }
        leat_status s = leat_record_next(d->reader, &bytes, &n);
        if (!s)
            break;
        if (leat_status_code(s) != LEAT_OUT_OF_RANGE)
            return s;
        leat_status_free(s);
        close_file(d);
    }
    record *r = malloc(sizeof(*r) + n);
    LEAT_REQUIRE(r, RESOURCE_EXHAUSTED, "No memory for a record of %zu bytes", n);
    r->size = n;
    memcpy(r->bytes, bytes, n);
    *out = r;
    return NULL;
}

static leat_status reserve(input *x)
{
    if (x->n < x->cap)
        return NULL;
    const int64_t cap = x->cap ? 2 * x->cap : 64;
    record **v = realloc(x->buffer, sizeof(*v) * (size_t)cap);
    LEAT_REQUIRE(v, RESOURCE_EXHAUSTED, "No memory for a buffer of %lld records", (long long)cap);
    x->buffer = v;
    x->cap = cap;
    return NULL;
}

/* Puts the shard's records into the buffer, the last one first, until the buffer is full. */
static leat_status add(input *x, shard *d)
{
    while (x->n < x->size && d->n_values) {
        LEAT_TRY(reserve(x));
        const uint64_t i = leat_mersenne_next(&x->random) % ((uint64_t)x->n + 1);
        record *r = d->values[--d->n_values];
        x->buffer[x->n] = x->buffer[i]; /* or itself, if i is n */
        x->buffer[i] = r;
        x->n++;
        x->added++;
    }
    return NULL;
}

/* The shard whose turn it is adds a chunk of records. */
static leat_status take_turn(input *x, leat_kernel *k)
{
    shard *d = &x->shards[x->turn];
    record *r = NULL;
    do {
        LEAT_TRY(leat_kernel_check(k));
        leat_status s = read_one(x, d, &r);
        if (s) { /* The records before are given, and those of other shards. */
            close_file(d);
            d->next = x->n_files;
        }
        x->failed = leat_status_first(x->failed, s);
        if (r)
            d->values[d->n_values++] = r;
    } while (r && d->n_values < CHUNK);
    LEAT_TRY(add(x, d));
    if (!r && !d->n_values) { /* The last shard takes the place of one that has ended. */
        x->shards[x->turn] = x->shards[--x->at_work];
        x->shards[x->at_work] = (shard){0};
        x->turn = x->turn < x->at_work ? x->turn : 0;
    } else {
        x->turn = (x->turn + 1) % x->at_work;
    }
    return NULL;
}

static leat_status fill(input *x, leat_kernel *k)
{
    if (!x->n && !x->at_work) {
        end_epoch(x);
        LEAT_TRY(begin_epoch(x));
    }
    while (x->at_work && x->n < x->size) {
        LEAT_TRY(take_turn(x, k));
        if (x->at_work)
            continue;
        x->status = x->failed;
        x->failed = NULL;
        LEAT_REQUIRE(x->added || x->status, NOT_FOUND, "The files at %s have no records",
                     x->pattern);
        x->size = x->added < x->size ? x->added : x->size;
    }
    return NULL;
}

/* ---- The resource: as random generators, one for each node of a session ---- */

static void input_free(void *resource)
{
    input *x = resource;
    end_epoch(x);
    while (x->n)
        free(x->buffer[--x->n]);
    while (x->n_drawn)
        free(x->drawn[--x->n_drawn]);
    free(x->buffer);
    free(x->drawn);
    free(x->pattern);
    leat_status_free(x->status);
    leat_status_free(x->failed);
    pthread_mutex_destroy(&x->lock);
    free(x);
}
static const leat_resource_type input_type = {"RecordInput", input_free};

static leat_status make(void *arg, leat_resource **out)
{
    const leat_node *n = arg;
    const char *form = leat_node_string(n, "compression_type");
    const int64_t parallelism = leat_node_int(n, "file_parallelism"),
                  size = leat_node_int(n, "file_buffer_size");
    LEAT_REQUIRE(!*form || strcmp(form, "GZIP") == 0 || strcmp(form, "ZLIB") == 0, INVALID_ARGUMENT,
                 "Unsupported compression_type:%s.", form);
    LEAT_REQUIRE(parallelism > 0, INVALID_ARGUMENT, "file_parallelism is %lld, must be at least 1",
                 (long long)parallelism);
    LEAT_REQUIRE(size > 0, INVALID_ARGUMENT, "file_buffer_size is %lld, must be at least 1",
                 (long long)size);
    input *x = leat_new(input);
    leat_resource_init(&x->base, &input_type);
    pthread_mutex_init(&x->lock, NULL);
    x->form = !*form ? LEAT_RECORD_PLAIN : *form == 'G' ? LEAT_RECORD_GZIP : LEAT_RECORD_ZLIB;
    x->seed = leat_node_int(n, "file_random_seed");
    x->shift_ratio = (float)leat_node_float(n, "file_shuffle_shift_ratio");
    x->parallelism = parallelism;
    x->size = size;
    x->pattern = leat_xstrdup(leat_node_string(n, "file_pattern"));
    leat_mersenne_init(&x->random, (uint64_t)x->seed);
    *out = &x->base;
    return NULL;
}

typedef struct input_state {
    _Atomic(input *) input; /* found on the first run */
} input_state;

static void state_release(void *state)
{
    input *x = atomic_load(&((input_state *)state)->input);
    leat_resource_unref(x ? &x->base : NULL);
}

/* Shares the input. Its name has all attributes: nodes of functions may have equal names. */
static leat_status input_of_node(leat_kernel *k, leat_resource **out)
{
    const leat_node *n = leat_kernel_node(k);
    const leat_device *d = leat_kernel_device(k);
    char *name;
    if (leat_kernel_again(k))
        return make((void *)n, out);
    if (asprintf(&name, "%s %lld %lld %lld %lld %a %s %s", leat_node_name(n),
                 (long long)leat_node_int(n, "file_random_seed"),
                 (long long)leat_node_int(n, "file_buffer_size"),
                 (long long)leat_node_int(n, "file_parallelism"),
                 (long long)leat_node_int(n, "batch_size"),
                 (double)leat_node_float(n, "file_shuffle_shift_ratio"),
                 leat_node_string(n, "compression_type"), leat_node_string(n, "file_pattern")) < 0)
        return leat_error(RESOURCE_EXHAUSTED, "No memory for the name of an input");
    leat_status s = leat_resources_find_or_make(d->own ? d->own : d->resources, "_record_inputs",
                                                name, &input_type, make, (void *)n, out);
    free(name);
    return s;
}

static leat_status find(leat_kernel *k, input **out)
{
    input_state *state = leat_kernel_state(k);
    input *none = NULL;
    leat_resource *r;
    *out = atomic_load_explicit(&state->input, memory_order_acquire);
    if (*out)
        return NULL;
    LEAT_TRY(input_of_node(k, &r));
    if (atomic_compare_exchange_strong(&state->input, &none, (input *)r)) {
        *out = (input *)r;
    } else {
        leat_resource_unref(r); /* another step has found it meanwhile */
        *out = none;
    }
    return NULL;
}

/* ---- Batches ---- */

/* With the lock held: draws records until there are `count`. */
static leat_status draw(input *x, leat_kernel *k, int64_t count)
{
    while (x->n_drawn < count) {
        leat_status s = x->status ? NULL : fill(x, k);
        if (leat_status_code(s) == LEAT_CANCELLED || leat_status_code(s) == LEAT_DEADLINE_EXCEEDED)
            return s; /* the step's end, not the input's */
        if (s) {
            x->status = s;
            x->at_work = 0;
        }
        if (!x->n)
            return leat_status_copy(x->status);
        x->drawn[x->n_drawn++] = x->buffer[--x->n];
    }
    return NULL;
}

/* With the lock held: fills t. What was drawn for a batch that fails is in the next one. */
static leat_status take(input *x, leat_kernel *k, leat_tensor *t)
{
    if (!x->drawn)
        LEAT_TRY(leat_try_array(t->count, &x->drawn));
    LEAT_TRY(draw(x, k, t->count));
    for (int64_t i = 0; i < t->count; i++)
        LEAT_REQUIRE(leat_string_set(AT(leat_string, t) + i, x->drawn[i]->bytes, x->drawn[i]->size),
                     RESOURCE_EXHAUSTED, "No memory for a record of %zu bytes", x->drawn[i]->size);
    while (x->n_drawn)
        free(x->drawn[--x->n_drawn]);
    return NULL;
}

static leat_status record_input_run(leat_kernel *k)
{
    input *x = NULL;
    leat_tensor *y;
    const int64_t batch = leat_node_int(leat_kernel_node(k), "batch_size");
    LEAT_REQUIRE(batch >= 0, INVALID_ARGUMENT, "batch_size is %lld, must not be negative",
                 (long long)batch);
    LEAT_TRY(find(k, &x));
    LEAT_TRY(leat_kernel_out(k, 0, &(leat_shape){.rank = 1, .dim = {batch}}, &y));
    pthread_mutex_lock(&x->lock);
    leat_status s = take(x, k, y);
    pthread_mutex_unlock(&x->lock);
    return s;
}

const leat_kernel_def leat_cpu_record_input[] = {
    {.op = "RecordInput",
     .run = record_input_run,
     .state_size = sizeof(input_state),
     .release = state_release,
     .flags = LEAT_KERNEL_BLOCKS},
    {0},
};
