/* checkpoint.c -- reading checkpoints of both formats (io.h), and finding the newest one. */
#include <stdlib.h>
#include <string.h>

#include "core/alloc.h"
#include "core/arg.h"
#include "core/object.h"
#include "io/bundle.h"
#include "io/checkpoint_state.h"
#include "io/path.h"
#include "io/slice_table.h"
#include "proto/wire.h"

struct leat_checkpoint {
    leat_object object;
    char *path;
    leat_bundle *bundle;      /* set for V2 */
    leat_slice_reader *table; /* set for V1 */
    leat_checkpoint_entry *entries;
    size_t n, cap;
};

static void add(leat_checkpoint *c, const char *name, size_t n, leat_dtype dtype,
                const leat_shape *shape, int slices)
{
    leat_grow(c->entries, c->n, c->cap);
    c->entries[c->n++] = (leat_checkpoint_entry){leat_xstrndup(name, n), dtype, *shape, slices};
}

static leat_status list_bundle(leat_checkpoint *c)
{
    const leat_table *t = leat_bundle_table(c->bundle);
    for (size_t i = 1; i < t->n; i++) {
        const leat_table_entry *at = &t->entries[i];
        leat_dtype dtype;
        leat_shape shape;
        Leat__BundleEntryProto *e;
        /* The key of a slice: its tensor has an entry of its own. */
        if (memchr(at->key, 0, at->n_key))
            continue;
        LEAT_TRY(leat_bundle_entry(c->bundle, at->key, at->n_key, &dtype, &shape, &e));
        add(c, at->key, at->n_key, dtype, &shape, (int)e->n_slices);
        leat_proto_free(e);
    }
    return NULL;
}

static int by_name(const void *a, const void *b)
{
    return strcmp(((const leat_checkpoint_entry *)a)->name,
                  ((const leat_checkpoint_entry *)b)->name);
}

static void list_table(leat_checkpoint *c)
{
    const char *name;
    for (size_t i = 0; (name = leat_slice_reader_name(c->table, i)); i++) {
        leat_dtype dtype;
        leat_shape shape;
        leat_slice_reader_has(c->table, name, strlen(name), &dtype, &shape);
        add(c, name, strlen(name), dtype, &shape, 0);
    }
    if (c->n)
        qsort(c->entries, c->n, sizeof(*c->entries), by_name);
}

leat_status leat_checkpoint_open(const char *prefix, leat_checkpoint **out)
{
    LEAT_CHECK_ARG(prefix);
    leat_checkpoint *c = leat_new_object(leat_checkpoint, CHECKPOINT);
    leat_status s;
    const bool is_bundle = leat_bundle_exists(prefix);
    char *newest = is_bundle ? NULL : leat_latest_checkpoint(prefix);
    c->path = newest ? newest : leat_xstrdup(prefix);
    if (is_bundle || leat_bundle_exists(c->path)) {
        s = leat_bundle_open(c->path, &c->bundle);
        if (!s)
            s = list_bundle(c);
    } else {
        s = leat_slice_reader_open(c->path, &c->table);
        if (!s)
            list_table(c);
    }
    if (s)
        leat_checkpoint_free(c);
    else
        *out = c;
    return s;
}

void leat_checkpoint_free(leat_checkpoint *c)
{
    if (!c)
        return;
    if (!LEAT_USABLE(CHECKPOINT, c))
        return;
    leat_bundle_free(c->bundle);
    leat_slice_reader_free(c->table);
    for (size_t i = 0; i < c->n; i++)
        free((char *)c->entries[i].name);
    free(c->entries);
    free(c->path);
    leat_object_free(&c->object);
}

const char *leat_checkpoint_path(const leat_checkpoint *c)
{
    return LEAT_USABLE(CHECKPOINT, c) ? c->path : "";
}

int leat_checkpoint_count(const leat_checkpoint *c)
{
    if (!LEAT_USABLE(CHECKPOINT, c))
        return 0;
    return (int)c->n;
}

const leat_checkpoint_entry *leat_checkpoint_at(const leat_checkpoint *c, int i)
{
    if (!LEAT_USABLE(CHECKPOINT, c))
        return NULL;
    return i >= 0 && (size_t)i < c->n ? &c->entries[i] : NULL;
}

const leat_checkpoint_entry *leat_checkpoint_find(const leat_checkpoint *c, const char *name)
{
    if (!LEAT_USABLE(CHECKPOINT, c))
        return NULL;
    if (!name)
        return NULL;
    leat_checkpoint_entry key = {.name = name};
    return c->n ? bsearch(&key, c->entries, c->n, sizeof(key), by_name) : NULL;
}

leat_status leat_checkpoint_read(leat_checkpoint *c, const char *name, leat_tensor **out)
{
    LEAT_CHECK(CHECKPOINT, c);
    LEAT_CHECK_ARG(name);
    if (c->bundle)
        return leat_bundle_tensor(c->bundle, name, strlen(name), out);
    const leat_checkpoint_entry *e = leat_checkpoint_find(c, name);
    LEAT_REQUIRE(e, NOT_FOUND, "Key %s not found in checkpoint", name);
    leat_slice all = leat_slice_all(e->shape.rank);
    return leat_slice_reader_read(c->table, name, strlen(name), &all, out);
}

bool leat_checkpoint_exists(const char *prefix)
{
    if (!prefix)
        return false;
    if (leat_bundle_exists(prefix))
        return true;
    char **found = NULL;
    size_t n = 0;
    leat_status_free(leat_path_match(prefix, &found, &n));
    leat_paths_free(found, n);
    return n > 0;
}
