/* cache.c -- Cache: the elements of the input are kept when they were all seen, in memory or in a
 * file, and later iterators give the kept ones.
 *
 * A cache in memory belongs to the iterators of one dataset at one place of an iteration; with
 * CacheDatasetV2, to the resource that is its input. A cache in a file is a bundle with
 * TensorFlow's keys. While it is written there is a lock file beside it.
 */
#include "kernels/dataset/cache.h"

#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

#include "core/alloc.h"
#include "io/bundle.h"
#include "io/path.h"
#include "kernels/dataset/handles.h"
#include "kernels/dataset/iteration.h"
#include "kernels/dataset/state.h"

/* ---- In memory ---- */

typedef struct memory {
    leat_resource base;
    pthread_mutex_t lock; /* guards what follows */
    bool complete;        /* `all` does not change any more */
    leat_elements all;
} memory;

static void memory_free(void *object)
{
    memory *m = object;
    leat_elements_clear(&m->all);
    pthread_mutex_destroy(&m->lock);
    free(m);
}

static const leat_resource_type memory_type = {"N10tensorflow4data11MemoryCacheE", memory_free};

static memory *memory_new(void)
{
    memory *m = leat_new(memory);
    leat_resource_init(&m->base, &memory_type);
    pthread_mutex_init(&m->lock, NULL);
    return m;
}

static void *make_memory(void *arg)
{
    return memory_new();
}

static void drop_memory(void *object)
{
    leat_resource_unref(object);
}

static bool is_complete(memory *m)
{
    pthread_mutex_lock(&m->lock);
    bool yes = m->complete;
    pthread_mutex_unlock(&m->lock);
    return yes;
}

/* Takes the elements, unless another iterator was faster. */
static void complete(memory *m, leat_elements *l)
{
    pthread_mutex_lock(&m->lock);
    if (!m->complete) {
        m->all = *l;
        *l = (leat_elements){0};
        m->complete = true;
    }
    pthread_mutex_unlock(&m->lock);
    leat_elements_clear(l);
}

typedef struct cache {
    leat_dataset base;
    char *path;     /* "": in memory */
    memory *shared; /* CacheDatasetV2: a reference; else NULL */
} cache;

typedef struct memory_iterator {
    leat_iterator base;
    memory *m;         /* borrowed */
    bool reads;        /* gives what m has */
    int64_t i;         /* the next element of m */
    leat_elements got; /* elements of the input so far, if it writes */
} memory_iterator;

static leat_status memory_open(leat_iterator *it)
{
    memory_iterator *x = (memory_iterator *)it;
    const cache *d = (const cache *)it->d;
    x->m = d->shared ? d->shared : leat_iterator_shared(it, make_memory, NULL, drop_memory);
    x->reads = is_complete(x->m);
    return x->reads ? NULL : leat_iterator_reopen(it, 0);
}

static leat_next memory_next(leat_iterator *it, leat_pull *p)
{
    memory_iterator *x = (memory_iterator *)it;
    if (x->reads) {
        if (x->i >= x->m->all.n)
            return LEAT_NEXT_END;
        return leat_pull_give(p, leat_element_copy(&x->m->all.v[x->i++]));
    }
    if (p->why == LEAT_WHY_START)
        return leat_pull_from(p, it->input);
    if (p->end) {
        complete(x->m, &x->got);
        return LEAT_NEXT_END;
    }
    leat_element e = leat_element_copy(&p->element);
    leat_elements_add(&x->got, &e);
    return LEAT_NEXT_ELEMENT;
}

static void memory_close(leat_iterator *it)
{
    leat_elements_clear(&((memory_iterator *)it)->got);
}

/* The cache is part of the position: it belongs to the iteration that is restored. */
static leat_status memory_save(leat_iterator *it, leat_state_writer *w)
{
    memory_iterator *x = (memory_iterator *)it;
    leat_state_put_int(w, x->reads);
    leat_state_put_int(w, x->i);
    LEAT_TRY(leat_state_put_iterator(w, it->input));
    return leat_state_put_elements(w, x->reads ? &x->m->all : &x->got);
}

static leat_status memory_restore(leat_iterator *it, leat_state_reader *r)
{
    memory_iterator *x = (memory_iterator *)it;
    leat_elements l = {0};
    LEAT_TRY(leat_state_get_bool(r, &x->reads));
    LEAT_TRY(leat_state_get_within(r, 0, INT64_MAX, &x->i));
    LEAT_TRY(leat_state_get_iterator(r, it->iteration, it->d->in[0], it, 0, &it->input));
    leat_status s = leat_state_get_elements_of(r, it->d->n, it->d->types, &l);
    if (!s && !x->reads && !it->input && !it->ended)
        s = leat_error(DATA_LOSS, "The position lacks the input of %s", it->d->name);
    if (!s && x->reads) {
        complete(x->m, &l);
    } else if (!s) {
        leat_elements_clear(&x->got);
        x->got = l;
        l = (leat_elements){0};
    }
    leat_elements_clear(&l);
    return s;
}

static int64_t same_cardinality(const leat_dataset *d)
{
    return leat_dataset_cardinality(d->in[0]);
}

static void cache_release(leat_dataset *d)
{
    free(((cache *)d)->path);
    leat_resource_unref(((cache *)d)->shared ? &((cache *)d)->shared->base : NULL);
}

static leat_status cache_make(leat_kernel *k, leat_dataset *base)
{
    cache *d = (cache *)base;
    LEAT_TRY(leat_data_string(k, 1, "filename", &d->path));
    if (leat_kernel_inputs(k) < 3 || *d->path)
        return NULL;
    leat_resource *r;
    LEAT_TRY(leat_anonymous_resource(k, 2, &memory_type, &r));
    d->shared = (memory *)r;
    return NULL;
}

static const leat_dataset_kind memory_kind = {
    .size = sizeof(cache),
    .iterator_size = sizeof(memory_iterator),
    .inputs = 1,
    .no_input = true,
    .make = cache_make,
    .release = cache_release,
    .cardinality = same_cardinality,
    .open = memory_open,
    .next = memory_next,
    .close = memory_close,
    .save = memory_save,
    .restore = memory_restore,
};

/* ---- In a file ---- */

typedef struct file_iterator {
    leat_iterator base;
    bool opened; /* it is decided whether the file is read or written */
    leat_bundle *bundle;
    leat_bundle_writer *writer;
    char *lock; /* the name of the lock file, if this iterator has made it */
    leat_element element;
    int64_t i;
    bool input_over;
    bool skips; /* the position was restored: the rest is given and not written */
} file_iterator;

static int digits(int64_t n)
{
    char text[32];
    return snprintf(text, sizeof(text), "%lld", (long long)(n > 0 ? n - 1 : 0));
}

enum { MOST_ITEMS = 10000000 };

/* TensorFlow's key of a tensor of an element. */
static int key_of(const leat_iterator *it, int64_t i, int c, char *key, size_t size)
{
    return snprintf(key, size, "%*lld_%*d", digits(MOST_ITEMS), (long long)i, digits(it->d->n), c);
}

static leat_status take_lock(file_iterator *x, const char *path)
{
    leat_strbuf name = {0};
    int fd;
    leat_strbuf_printf(&name, "%s_0.lockfile", path);
    leat_status s = leat_path_open(leat_strbuf_text(&name), O_CREAT | O_EXCL | O_WRONLY, &fd);
    if (leat_status_code(s) == LEAT_ALREADY_EXISTS) {
        leat_status_free(s);
        s = leat_error(ALREADY_EXISTS,
                       "There appears to be a concurrent caching iterator running - cache lockfile "
                       "already exists ('%s'). If you are sure no other running TF computations "
                       "are using this cache prefix, delete the lockfile and re-initialize the "
                       "iterator.",
                       name.s);
    }
    if (s) {
        leat_strbuf_release(&name);
        return s;
    }
    close(fd);
    x->lock = leat_strbuf_take(&name);
    return NULL;
}

static leat_status open_cache(file_iterator *x)
{
    const char *path = ((const cache *)x->base.d)->path;
    x->opened = true;
    if (leat_bundle_exists(path))
        return leat_bundle_open(path, &x->bundle);
    LEAT_TRY(leat_iterator_reopen(&x->base, 0));
    if (x->skips)
        return NULL;
    LEAT_TRY(take_lock(x, path));
    return leat_bundle_writer_open(path, &x->writer);
}

static void end_writing(file_iterator *x)
{
    leat_bundle_writer_free(x->writer);
    x->writer = NULL;
    if (x->lock)
        leat_status_free(leat_path_remove(x->lock));
    free(x->lock);
    x->lock = NULL;
}

static leat_status write_element(file_iterator *x)
{
    char key[64];
    LEAT_REQUIRE(x->i < MOST_ITEMS, INVALID_ARGUMENT,
                 "Upstream iterator is producing more than %d items, which is more than the cache "
                 "limit.",
                 MOST_ITEMS);
    for (int c = 0; c < x->element.n; c++) {
        int n = key_of(&x->base, x->i, c, key, sizeof(key));
        LEAT_TRY(leat_bundle_add(x->writer, key, (size_t)n, x->element.v[c]));
    }
    return NULL;
}

static leat_next read_element(file_iterator *x, leat_pull *p)
{
    const int n = x->base.d->n;
    leat_element e = leat_element_new(n);
    leat_status s = NULL;
    for (int c = 0; c < n && !s; c++) {
        char key[64];
        int size = key_of(&x->base, x->i, c, key, sizeof(key));
        s = leat_bundle_tensor(x->bundle, key, (size_t)size, &e.v[c]);
        if (c == 0 && leat_status_code(s) == LEAT_NOT_FOUND) {
            leat_status_free(s);
            leat_element_clear(&e);
            return LEAT_NEXT_END;
        }
    }
    x->i++;
    if (!s)
        return leat_pull_give(p, e);
    leat_element_clear(&e);
    return leat_pull_fail(p, s);
}

/* START and PULLED may be on any thread; AGAIN is on one that may block. */
static leat_next file_next(leat_iterator *it, leat_pull *p)
{
    file_iterator *x = (file_iterator *)it;
    if (p->why == LEAT_WHY_START)
        return LEAT_NEXT_BLOCK;
    if (p->why == LEAT_WHY_PULLED) {
        if (!x->writer && !p->end)
            x->i++;
        if (!x->writer)
            return p->end ? LEAT_NEXT_END : LEAT_NEXT_ELEMENT;
        leat_element_clear(&x->element);
        x->element = leat_element_take(&p->element);
        x->input_over = p->end;
        return LEAT_NEXT_BLOCK;
    }
    leat_status s = NULL;
    if (!x->opened)
        s = open_cache(x);
    if (s)
        return leat_pull_fail(p, s);
    if (x->bundle)
        return read_element(x, p);
    if (x->writer && x->input_over) {
        s = leat_bundle_finish(x->writer);
        end_writing(x);
        return s ? leat_pull_fail(p, s) : LEAT_NEXT_END;
    }
    if (!x->element.v)
        return leat_pull_from(p, it->input);
    s = write_element(x);
    x->i++;
    return s ? leat_pull_fail(p, s) : leat_pull_give(p, leat_element_take(&x->element));
}

static void file_close(leat_iterator *it)
{
    file_iterator *x = (file_iterator *)it;
    leat_bundle_free(x->bundle);
    end_writing(x);
    leat_element_clear(&x->element);
}

static leat_status file_save(leat_iterator *it, leat_state_writer *w)
{
    file_iterator *x = (file_iterator *)it;
    leat_state_put_int(w, x->i);
    leat_state_put_int(w, x->bundle != NULL);
    return leat_state_put_iterator(w, it->input);
}

static leat_status file_restore(leat_iterator *it, leat_state_reader *r)
{
    file_iterator *x = (file_iterator *)it;
    bool reads;
    LEAT_TRY(leat_state_get_within(r, 0, INT64_MAX, &x->i));
    LEAT_TRY(leat_state_get_bool(r, &reads));
    LEAT_TRY(leat_state_get_iterator(r, it->iteration, it->d->in[0], it, 0, &it->input));
    if (reads) {
        x->opened = true;
        return leat_bundle_open(((const cache *)it->d)->path, &x->bundle);
    }
    x->skips = x->i > 0;
    x->opened = x->skips && it->input;
    return NULL;
}

static const leat_dataset_kind file_kind = {
    .size = sizeof(cache),
    .iterator_size = sizeof(file_iterator),
    .inputs = 1,
    .no_input = true,
    .make = cache_make,
    .release = cache_release,
    .cardinality = same_cardinality,
    .next = file_next,
    .close = file_close,
    .save = file_save,
    .restore = file_restore,
};

/* ---- The ops ---- */

leat_status leat_dataset_cached(leat_dataset *in, const char *path, leat_dataset **out)
{
    LEAT_TRY(
        leat_dataset_over(*path ? &file_kind : &memory_kind, "CacheDataset", "cache", &in, 1, out));
    ((cache *)*out)->path = leat_xstrdup(path);
    return NULL;
}

static leat_status cache_run(leat_kernel *k)
{
    char *path;
    LEAT_TRY(leat_data_string(k, 1, "filename", &path));
    bool in_memory = !*path;
    free(path);
    return leat_dataset_run(k, in_memory ? &memory_kind : &file_kind);
}

static leat_status anonymous_run(leat_kernel *k)
{
    return leat_anonymous_handle(k, 0, "AnonymousMemoryCache", &memory_new()->base);
}

static leat_status nothing_run(leat_kernel *k)
{
    return NULL;
}

const leat_kernel_def leat_data_kernels_cache[] = {
    {.op = "CacheDataset", .run = cache_run},
    {.op = "CacheDatasetV2", .run = cache_run},
    {.op = "AnonymousMemoryCache", .run = anonymous_run},
    {.op = "DeleteMemoryCache", .run = nothing_run},
    {0},
};
