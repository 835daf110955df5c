/* snapshot.c -- Snapshot: the first iterator that goes through the whole input writes its elements
 * to files; later iterators, of this and other programs, read the files and leave the input alone.
 *
 * The files are TensorFlow's (io/snapshot.h), in a directory named after a fingerprint of the
 * input, which is Leat's own: each of the two finds the snapshots that it has written itself. While
 * one iterator writes, others hand the input's elements through, until the writer has not ended for
 * pending_snapshot_expiry_seconds.
 *
 * A writer is one element ahead of what it gives, so that the snapshot is complete when the last
 * element is given. One thread writes, and one reads, whatever the attributes say of threads.
 */
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>

#include "core/alloc.h"
#include "io/event.h"
#include "io/file.h"
#include "io/path.h"
#include "io/snapshot.h"
#include "kernels/dataset/iteration.h"
#include "kernels/dataset/origin.h"
#include "kernels/dataset/sources.h"
#include "kernels/dataset/state.h"

enum {
    LEAST_SHARD = 1024 * 1024, /* bytes */
    DEFAULT_EXPIRY = 86400,    /* seconds */
};
#define DEFAULT_SHARD (INT64_C(10) << 30)

typedef struct snapshot {
    leat_dataset base;
    char *dir; /* of the fingerprint */
    char fingerprint[20];
    char *reader_prefix, *writer_prefix; /* before names of files of elements */
    bool gzip;
    int64_t shard_bytes, expiry_seconds;
} snapshot;

typedef struct snapshot_iterator {
    leat_iterator base;
    enum { UNDECIDED, READS, WRITES, PASSES } mode;
    int64_t given; /* elements, while it reads */
    /* READS: */
    char **files;
    size_t n_files, next_file;
    leat_snapshot_reader *reader;
    /* WRITES: */
    leat_snapshot_metadata run;
    leat_snapshot_writer *writer;
    int64_t shard, shard_bytes; /* files so far, and bytes of the elements in the last one */
    leat_element ahead;         /* written, and given next */
    leat_element next;          /* given after it, and to be written */
    bool input_over;
} snapshot_iterator;

/* ---- The dataset ---- */

static leat_status read_attrs(const leat_node *n, snapshot *d)
{
    const char *compression = leat_node_string(n, "compression");
    LEAT_REQUIRE(!*compression || strcmp(compression, "GZIP") == 0, INVALID_ARGUMENT,
                 "compression must be either '' or 'GZIP'.");
    d->gzip = *compression;
    d->reader_prefix = leat_xstrdup(leat_node_string(n, "reader_path_prefix"));
    d->writer_prefix = leat_xstrdup(leat_node_string(n, "writer_path_prefix"));
    d->shard_bytes = leat_node_int(n, "shard_size_bytes");
    d->expiry_seconds = leat_node_int(n, "pending_snapshot_expiry_seconds");
    if (d->shard_bytes == -1)
        d->shard_bytes = DEFAULT_SHARD;
    if (d->expiry_seconds == -1)
        d->expiry_seconds = DEFAULT_EXPIRY;
    LEAT_REQUIRE(d->shard_bytes >= LEAST_SHARD, INVALID_ARGUMENT,
                 "shard_size_bytes must be at least 1 MiB.");
    LEAT_REQUIRE(d->expiry_seconds >= 1, INVALID_ARGUMENT,
                 "pending_snapshot_expiry_seconds must be at least 1 second.");
    return NULL;
}

static leat_status snapshot_make(leat_kernel *k, leat_dataset *base)
{
    snapshot *d = (snapshot *)base;
    uint64_t fingerprint = 0;
    char *path;
    LEAT_TRY(read_attrs(leat_kernel_node(k), d));
    LEAT_TRY(leat_data_string(k, 1, "path", &path));
    leat_status s = leat_dataset_fingerprint(base->in[0], &fingerprint);
    if (!s) {
        snprintf(d->fingerprint, sizeof(d->fingerprint), "%016" PRIx64, fingerprint);
        d->dir = leat_path_join(path, d->fingerprint);
    }
    free(path);
    return s;
}

static void snapshot_release(leat_dataset *base)
{
    snapshot *d = (snapshot *)base;
    free(d->dir);
    free(d->reader_prefix);
    free(d->writer_prefix);
}

static int64_t same_cardinality(const leat_dataset *d)
{
    return leat_dataset_cardinality(d->in[0]);
}

/* ---- Reading ---- */

static leat_status open_run(snapshot_iterator *x, const leat_snapshot_metadata *m)
{
    const snapshot *d = (const snapshot *)x->base.d;
    char *run = leat_path_join(d->dir, m->run_id);
    leat_strbuf pattern = {0};
    for (const char *p = run; *p; p++) { /* the name of the directory is no pattern */
        if (strchr("*?[\\", *p))
            leat_strbuf_putc(&pattern, '\\');
        leat_strbuf_putc(&pattern, *p);
    }
    leat_strbuf_puts(&pattern, "/*");
    leat_status s = leat_path_match(leat_strbuf_text(&pattern), &x->files, &x->n_files);
    if (!s && x->n_files == 0)
        s = leat_error(INVALID_ARGUMENT, "Could not find any files in dir: %s", run);
    leat_strbuf_release(&pattern);
    free(run);
    return s;
}

static leat_status open_file(snapshot_iterator *x)
{
    const snapshot *d = (const snapshot *)x->base.d;
    leat_strbuf path = {0};
    leat_strbuf_printf(&path, "%s%s", d->reader_prefix, x->files[x->next_file]);
    leat_status s = leat_snapshot_reader_open(leat_strbuf_text(&path), d->gzip, &x->reader);
    leat_strbuf_release(&path);
    x->next_file += !s;
    return s;
}

/* Calls leat_snapshot_next, or leat_snapshot_skip if out is NULL, for the file that has the next
 * element. *over: there is none. */
static leat_status read_next(snapshot_iterator *x, leat_tensor **out, bool *over)
{
    *over = false;
    for (;;) {
        if (!x->reader) {
            *over = x->next_file == x->n_files;
            if (*over)
                return NULL;
            LEAT_TRY(open_file(x));
        }
        leat_status s =
            out ? leat_snapshot_next(x->reader, out, x->base.d->n) : leat_snapshot_skip(x->reader);
        if (leat_status_code(s) != LEAT_OUT_OF_RANGE)
            return s;
        leat_status_free(s);
        leat_snapshot_reader_free(x->reader);
        x->reader = NULL;
    }
}

static leat_status check_types(const leat_dataset *d, const leat_element *e)
{
    for (int i = 0; i < e->n; i++)
        LEAT_REQUIRE(e->v[i]->dtype == d->types[i], DATA_LOSS,
                     "%s: component %d of an element is %s, not %s", ((const snapshot *)d)->dir, i,
                     leat_dtype_name(e->v[i]->dtype), leat_dtype_name(d->types[i]));
    return NULL;
}

static leat_next read_element(snapshot_iterator *x, leat_pull *p)
{
    bool over;
    leat_element e = leat_element_new(x->base.d->n);
    leat_status s = read_next(x, e.v, &over);
    if (!s && !over)
        s = check_types(x->base.d, &e);
    if (s || over) {
        leat_element_clear(&e);
        return s ? leat_pull_fail(p, s) : LEAT_NEXT_END;
    }
    x->given++;
    return leat_pull_give(p, e);
}

/* ---- Writing ---- */

static int64_t now_us(void)
{
    return (int64_t)(leat_wall_time() * 1e6);
}

static leat_status begin_run(snapshot_iterator *x)
{
    const snapshot *d = (const snapshot *)x->base.d;
    x->run = (leat_snapshot_metadata){.created_us = now_us()};
    snprintf(x->run.graph_hash, sizeof(x->run.graph_hash), "%s", d->fingerprint);
    int64_t a = 0, b = 0;
    leat_data_random_seeds(&a, &b);
    snprintf(x->run.run_id, sizeof(x->run.run_id), "%016" PRIx64, (uint64_t)a ^ (uint64_t)b << 32);
    return leat_snapshot_metadata_write(d->dir, &x->run);
}

static leat_status next_shard(snapshot_iterator *x)
{
    const snapshot *d = (const snapshot *)x->base.d;
    leat_snapshot_writer *w = x->writer;
    leat_strbuf path = {0};
    x->writer = NULL;
    LEAT_TRY(leat_snapshot_writer_close(w));
    leat_strbuf_printf(&path, "%s%s/%s/%08lld.snapshot", d->writer_prefix, d->dir, x->run.run_id,
                       (long long)x->shard);
    leat_status s = leat_snapshot_writer_open(leat_strbuf_text(&path), d->gzip, &x->writer);
    leat_strbuf_release(&path);
    x->shard += !s;
    x->shard_bytes = 0;
    return s;
}

/* As in TensorFlow: the element with which a file would become too large begins the next one, in
 * which it is not counted. */
static leat_status write_element(snapshot_iterator *x)
{
    const snapshot *d = (const snapshot *)x->base.d;
    for (int i = 0; i < x->next.n; i++)
        x->shard_bytes += (int64_t)leat_tensor_bytes(x->next.v[i]);
    if (!x->writer && x->shard == 0) {
        const int64_t bytes = x->shard_bytes;
        LEAT_TRY(next_shard(x));
        x->shard_bytes = bytes;
    }
    if (x->shard_bytes > d->shard_bytes)
        LEAT_TRY(next_shard(x));
    return leat_snapshot_write(x->writer, x->next.v, x->next.n);
}

/* The run becomes the snapshot, unless another one was begun since. */
static leat_status end_run(snapshot_iterator *x)
{
    const snapshot *d = (const snapshot *)x->base.d;
    leat_snapshot_metadata m;
    if (x->shard == 0)
        LEAT_TRY(next_shard(x)); /* A snapshot without elements has an empty file. */
    leat_snapshot_writer *w = x->writer;
    x->writer = NULL;
    LEAT_TRY(leat_snapshot_writer_close(w));
    LEAT_TRY(leat_snapshot_metadata_read(d->dir, &m));
    if (strcmp(m.run_id, x->run.run_id) != 0)
        return NULL;
    m.finalized = true;
    return leat_snapshot_metadata_write(d->dir, &m);
}

/* The files cannot be written: after this error, the elements are handed through, those that the
 * iterator has first. */
static leat_next give_up(snapshot_iterator *x, leat_pull *p, leat_status s)
{
    leat_status_free(leat_snapshot_writer_close(x->writer));
    x->writer = NULL;
    x->mode = PASSES;
    return leat_pull_fail(p, s);
}

/* PASSES: the next element that the iterator has, if it has one, or that of its input. */
static leat_next pass(snapshot_iterator *x, leat_pull *p)
{
    leat_element *e = x->ahead.v ? &x->ahead : &x->next;
    if (e->v)
        return leat_pull_give(p, leat_element_take(e));
    return x->input_over ? LEAT_NEXT_END : leat_pull_from(p, x->base.input);
}

/* ---- Elements ---- */

static leat_status decide(snapshot_iterator *x)
{
    const snapshot *d = (const snapshot *)x->base.d;
    leat_snapshot_metadata m;
    leat_status s = leat_snapshot_metadata_read(d->dir, &m);
    const bool none = leat_status_code(s) == LEAT_NOT_FOUND;
    if (s && !none)
        return s;
    leat_status_free(s);
    if (!none && m.finalized) {
        LEAT_TRY(open_run(x, &m));
        x->mode = READS;
        return NULL;
    }
    LEAT_TRY(leat_iterator_reopen(&x->base, 0));
    if (!none && m.created_us >= now_us() - d->expiry_seconds * 1000000) {
        x->mode = PASSES;
        return NULL;
    }
    LEAT_TRY(begin_run(x));
    x->mode = WRITES;
    return NULL;
}

/* On a thread that may block: writes what was pulled. */
static leat_next write_next(snapshot_iterator *x, leat_pull *p)
{
    leat_status s = NULL;
    if (x->input_over) {
        x->mode = PASSES;
        s = end_run(x);
    } else if (x->next.v) {
        s = write_element(x);
    }
    if (s)
        return give_up(x, p, s);
    if (x->mode == PASSES)
        return pass(x, p);
    if (!x->next.v)
        return leat_pull_from(p, x->base.input);
    leat_element e = leat_element_take(&x->ahead);
    x->ahead = leat_element_take(&x->next);
    return e.v ? leat_pull_give(p, e) : leat_pull_from(p, x->base.input);
}

/* START and PULLED may be on any thread; AGAIN is on one that may block. */
static leat_next snapshot_next(leat_iterator *it, leat_pull *p)
{
    snapshot_iterator *x = (snapshot_iterator *)it;
    if (p->why == LEAT_WHY_PULLED) {
        x->input_over = p->end;
        if (x->mode == PASSES)
            return p->end ? LEAT_NEXT_END : LEAT_NEXT_ELEMENT;
        leat_element_clear(&x->next);
        x->next = leat_element_take(&p->element);
        return LEAT_NEXT_BLOCK;
    }
    if (x->mode == PASSES)
        return pass(x, p);
    if (p->why == LEAT_WHY_START)
        return LEAT_NEXT_BLOCK;
    if (x->mode == UNDECIDED) {
        leat_status s = decide(x);
        if (s)
            return leat_pull_fail(p, s);
    }
    if (x->mode == READS)
        return read_element(x, p);
    return x->mode == WRITES ? write_next(x, p) : pass(x, p);
}

static void snapshot_close(leat_iterator *it)
{
    snapshot_iterator *x = (snapshot_iterator *)it;
    leat_paths_free(x->files, x->n_files);
    leat_snapshot_reader_free(x->reader);
    leat_status_free(leat_snapshot_writer_close(x->writer));
    leat_element_clear(&x->ahead);
    leat_element_clear(&x->next);
}

/* ---- Positions: an iterator that wrote hands the rest of its input through when it is restored,
 * and does not write ---- */

static leat_status snapshot_save(leat_iterator *it, leat_state_writer *w)
{
    snapshot_iterator *x = (snapshot_iterator *)it;
    leat_state_put_int(w, x->mode);
    leat_state_put_int(w, x->given);
    leat_state_put_int(w, x->input_over);
    LEAT_TRY(leat_state_put_element(w, &x->ahead));
    LEAT_TRY(leat_state_put_element(w, &x->next));
    return leat_state_put_iterator(w, it->input);
}

static leat_status skip_given(snapshot_iterator *x)
{
    const snapshot *d = (const snapshot *)x->base.d;
    leat_snapshot_metadata m;
    bool over = false;
    LEAT_TRY(leat_snapshot_metadata_read(d->dir, &m));
    LEAT_TRY(open_run(x, &m));
    for (int64_t i = 0; i < x->given; i++) {
        LEAT_TRY(read_next(x, NULL, &over));
        LEAT_REQUIRE(!over, DATA_LOSS,
                     "The snapshot in %s has %lld elements; the position that is restored is after "
                     "%lld",
                     d->dir, (long long)i, (long long)x->given);
    }
    return NULL;
}

static leat_status snapshot_restore(leat_iterator *it, leat_state_reader *r)
{
    snapshot_iterator *x = (snapshot_iterator *)it;
    int64_t mode;
    LEAT_TRY(leat_state_get_within(r, UNDECIDED, PASSES, &mode));
    LEAT_TRY(leat_state_get_within(r, 0, INT64_MAX, &x->given));
    LEAT_TRY(leat_state_get_bool(r, &x->input_over));
    LEAT_TRY(leat_state_get_element_or_none(r, it->d->n, it->d->types, &x->ahead));
    LEAT_TRY(leat_state_get_element_or_none(r, it->d->n, it->d->types, &x->next));
    LEAT_TRY(leat_state_get_iterator(r, it->iteration, it->d->in[0], it, 0, &it->input));
    x->mode = mode == WRITES ? PASSES : mode;
    LEAT_REQUIRE(x->mode != PASSES || it->input || x->input_over, DATA_LOSS,
                 "The position lacks the input of %s", it->d->name);
    return x->mode == READS ? skip_given(x) : NULL;
}

static const leat_dataset_kind snapshot_kind = {
    .size = sizeof(snapshot),
    .iterator_size = sizeof(snapshot_iterator),
    .inputs = 1,
    .no_input = true,
    .make = snapshot_make,
    .release = snapshot_release,
    .cardinality = same_cardinality,
    .next = snapshot_next,
    .close = snapshot_close,
    .save = snapshot_save,
    .restore = snapshot_restore,
};
LEAT_DATASET_RUN(snapshot_kind)

const leat_kernel_def leat_data_kernels_snapshot[] = {
    {.op = "SnapshotDataset", .run = snapshot_kind_run},
    {0},
};
