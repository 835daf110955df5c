/* unique.c -- Unique: elements that did not come before; Rebatch: batches, each cut into as many
 * parts as there are replicas; its second version, which TensorFlow 2 has: batches of other sizes.
 */
#include <stdlib.h>

#include "core/alloc.h"
#include "core/map.h"
#include "kernels/dataset/batch.h"
#include "kernels/dataset/pull.h"
#include "kernels/dataset/sources.h"
#include "kernels/dataset/state.h"

/* ---- Unique ---- */

typedef struct unique_iterator {
    leat_iterator base;
    leat_map seen; /* tensors as positions have them -> key */
} unique_iterator;

static leat_status unique_make(leat_kernel *k, leat_dataset *d)
{
    LEAT_REQUIRE(d->n == 1, INVALID_ARGUMENT,
                 "UniqueDataset only supports inputs with a single component.");
    LEAT_REQUIRE(d->types[0] == LEAT_INT32 || d->types[0] == LEAT_INT64 ||
                     d->types[0] == LEAT_STRING,
                 INVALID_ARGUMENT,
                 "UniqueDataset only supports inputs with a single `tf.int32`, `tf.int64`, or "
                 "`tf.string` component.");
    return NULL;
}

/* A key of the table `seen`, which is its value, too. */
typedef struct key {
    size_t n;
    char *bytes;
} key;

/* Notes that the tensor came; *new says whether it did not before. */
static leat_status note(unique_iterator *u, const leat_tensor *t, bool *new)
{
    leat_state_writer w = {.bytes = {.checked = true}};
    leat_status s = leat_state_put_tensor(&w, t);
    if (!s)
        s = leat_strbuf_check(&w.bytes);
    *new = !s && !leat_map_get_n(&u->seen, w.bytes.s, w.bytes.n);
    if (*new) {
        key *x = leat_new(key);
        x->n = w.bytes.n;
        x->bytes = leat_strbuf_take(&w.bytes);
        leat_map_put_n(&u->seen, x->bytes, x->n, x);
    }
    leat_strbuf_release(&w.bytes);
    return s;
}

static leat_status unique_open(leat_iterator *it)
{
    leat_map *seen = &((unique_iterator *)it)->seen;
    seen->borrows_keys = true;
    seen->seed = leat_hash_secret();
    return NULL;
}

static leat_next unique_next(leat_iterator *it, leat_pull *p)
{
    bool new = false;
    if (p->why == LEAT_WHY_START)
        return leat_pull_from(p, it->input);
    if (p->end)
        return LEAT_NEXT_END;
    leat_status s = note((unique_iterator *)it, p->element.v[0], &new);
    if (s)
        return leat_pull_fail(p, s);
    return new ? LEAT_NEXT_ELEMENT : leat_pull_from(p, it->input);
}

static void unique_close(leat_iterator *it)
{
    unique_iterator *u = (unique_iterator *)it;
    size_t i = 0;
    const char *bytes;
    void *x;
    while (leat_map_next(&u->seen, &i, &bytes, &x)) {
        free(((key *)x)->bytes);
        free(x);
    }
    leat_map_release(&u->seen);
}

static leat_status unique_save(leat_iterator *it, leat_state_writer *w)
{
    unique_iterator *u = (unique_iterator *)it;
    size_t i = 0;
    const char *bytes;
    void *x;
    leat_state_put_int(w, (int64_t)u->seen.n);
    while (leat_map_next(&u->seen, &i, &bytes, &x))
        leat_strbuf_add(&w->bytes, bytes, ((const key *)x)->n);
    return NULL;
}

static leat_status unique_restore(leat_iterator *it, leat_state_reader *r)
{
    int64_t n;
    LEAT_TRY(leat_state_get_within(r, 0, (int64_t)((r->n - r->at) / 9), &n));
    for (int64_t i = 0; i < n; i++) {
        leat_tensor *t;
        bool new;
        LEAT_TRY(leat_state_get_tensor(r, &t));
        leat_status s = note((unique_iterator *)it, t, &new);
        leat_tensor_unref(t);
        LEAT_TRY(s);
    }
    return NULL;
}

static const leat_dataset_kind unique_kind = {
    .size = sizeof(leat_dataset),
    .iterator_size = sizeof(unique_iterator),
    .inputs = 1,
    .make = unique_make,
    .open = unique_open,
    .next = unique_next,
    .close = unique_close,
    .save = unique_save,
    .restore = unique_restore,
};
LEAT_DATASET_RUN(unique_kind)

/* ---- Rebatch ---- */

typedef struct rebatch {
    leat_dataset base;
    int64_t parts;
} rebatch;

typedef struct rebatch_iterator {
    leat_iterator base;
    leat_element whole; /* the batch whose parts are given */
    int64_t part;       /* the next one; 0: none is left */
} rebatch_iterator;

static leat_status rebatch_make(leat_kernel *k, leat_dataset *d)
{
    LEAT_TRY(leat_data_int(k, 1, "num_replicas", &((rebatch *)d)->parts));
    LEAT_REQUIRE(((rebatch *)d)->parts > 0, INVALID_ARGUMENT,
                 "num_replicas must be greater than zero.");
    return NULL;
}

static leat_status check_whole(const leat_element *e)
{
    for (int i = 0; i < e->n; i++)
        LEAT_REQUIRE(e->v[i]->shape.rank > 0, INVALID_ARGUMENT,
                     "Cannot rebatch dataset: All components must have at least one dimension. "
                     "Perhaps your input dataset is not batched? Component %d is scalar.",
                     i);
    return NULL;
}

/* Part `part` of the batch. Components may have different numbers of rows; those that have too few
 * give empty tensors in the end. */
static leat_status cut(const rebatch_iterator *x, int64_t parts, leat_element *out)
{
    leat_element e = leat_element_new(x->whole.n);
    leat_status s = NULL;
    for (int i = 0; i < e.n && !s; i++) {
        const int64_t rows = x->whole.v[i]->shape.dim[0];
        const int64_t each = rows / parts + (rows % parts != 0);
        const int64_t begin = each && x->part > rows / each ? rows : each * x->part;
        const int64_t end = rows - begin < each ? rows : begin + each;
        s = leat_tensor_rows(x->whole.v[i], begin, end, &e.v[i]);
    }
    if (s)
        leat_element_clear(&e);
    else
        *out = e;
    return s;
}

static leat_next rebatch_next(leat_iterator *it, leat_pull *p)
{
    rebatch_iterator *x = (rebatch_iterator *)it;
    const int64_t parts = ((const rebatch *)it->d)->parts;
    leat_element e;
    leat_status s = NULL;
    if (p->why == LEAT_WHY_START && x->part == 0)
        return leat_pull_from(p, it->input);
    if (p->why == LEAT_WHY_PULLED) {
        if (p->end)
            return LEAT_NEXT_END;
        s = check_whole(&p->element);
        leat_element_clear(&x->whole);
        x->whole = leat_element_take(&p->element);
    }
    if (!s)
        s = cut(x, parts, &e);
    if (s)
        return leat_pull_fail(p, s);
    x->part = (x->part + 1) % parts;
    return leat_pull_give(p, e);
}

static void rebatch_close(leat_iterator *it)
{
    leat_element_clear(&((rebatch_iterator *)it)->whole);
}

static leat_status rebatch_save(leat_iterator *it, leat_state_writer *w)
{
    rebatch_iterator *x = (rebatch_iterator *)it;
    leat_state_put_int(w, x->part);
    return x->part ? leat_state_put_element(w, &x->whole) : NULL;
}

static leat_status rebatch_restore(leat_iterator *it, leat_state_reader *r)
{
    rebatch_iterator *x = (rebatch_iterator *)it;
    LEAT_TRY(leat_state_get_within(r, 0, ((const rebatch *)it->d)->parts - 1, &x->part));
    if (x->part == 0)
        return NULL;
    LEAT_TRY(leat_state_get_element_of(r, it->d->n, it->d->types, &x->whole));
    return check_whole(&x->whole);
}

static const leat_dataset_kind rebatch_kind = {
    .size = sizeof(rebatch),
    .iterator_size = sizeof(rebatch_iterator),
    .inputs = 1,
    .own_types = true,
    .make = rebatch_make,
    .next = rebatch_next,
    .close = rebatch_close,
    .save = rebatch_save,
    .restore = rebatch_restore,
};
LEAT_DATASET_RUN(rebatch_kind)

/* ---- RebatchDatasetV2: the rows of all batches, in batches of the sizes given, in turn ---- */

typedef struct resize {
    leat_dataset base;
    int64_t *sizes;
    int64_t n;
    bool drop_remainder;
} resize;

typedef struct resize_iterator {
    leat_iterator base;
    leat_element whole; /* the batch whose rows are taken */
    int64_t row, rows;  /* the next one, and their number */
    leat_elements got;  /* rows of the batch that is made */
    int64_t turn;       /* index of its size */
} resize_iterator;

static leat_status resize_make(leat_kernel *k, leat_dataset *base)
{
    resize *d = (resize *)base;
    const leat_tensor *t = leat_kernel_in(k, 1);
    LEAT_REQUIRE(t->shape.rank <= 1 && t->count > 0, INVALID_ARGUMENT,
                 "Expected `batch_sizes` to be a scalar or a vector that is not empty, but its "
                 "shape is %s",
                 leat_shape_show(&t->shape).s);
    LEAT_TRY(leat_try_array(t->count, &d->sizes));
    for (; d->n < t->count; d->n++) {
        d->sizes[d->n] = AT(int64_t, t)[d->n];
        LEAT_REQUIRE(d->sizes[d->n] > 0, INVALID_ARGUMENT,
                     "`batch_sizes` must be greater than zero, but one is %lld",
                     (long long)d->sizes[d->n]);
    }
    return leat_data_bool(k, 2, "drop_remainder", &d->drop_remainder);
}

static void resize_release(leat_dataset *d)
{
    free(((resize *)d)->sizes);
}

static leat_status take_batch(resize_iterator *x, leat_element *e)
{
    LEAT_TRY(check_whole(e));
    for (int i = 1; i < e->n; i++)
        LEAT_REQUIRE(e->v[i]->shape.dim[0] == e->v[0]->shape.dim[0], INVALID_ARGUMENT,
                     "Cannot rebatch dataset: all components must have the same number of rows, "
                     "but component 0 has %lld and component %d has %lld",
                     (long long)e->v[0]->shape.dim[0], i, (long long)e->v[i]->shape.dim[0]);
    x->row = 0;
    x->rows = e->n ? e->v[0]->shape.dim[0] : 0;
    leat_element_clear(&x->whole);
    x->whole = leat_element_take(e);
    return NULL;
}

static leat_status take_rows(resize_iterator *x, int64_t size)
{
    while (x->row < x->rows && x->got.n < size) {
        leat_element e;
        LEAT_TRY(leat_element_row(&x->whole, x->row++, &e));
        leat_elements_add(&x->got, &e);
    }
    return NULL;
}

static leat_next give_batch(resize_iterator *x, leat_pull *p)
{
    leat_element e;
    leat_status s = leat_batch_elements(&x->got, &e);
    leat_elements_clear(&x->got);
    x->turn = (x->turn + 1) % ((const resize *)x->base.d)->n;
    return s ? leat_pull_fail(p, s) : leat_pull_give(p, e);
}

static leat_next resize_next(leat_iterator *it, leat_pull *p)
{
    resize_iterator *x = (resize_iterator *)it;
    const resize *d = (const resize *)it->d;
    const int64_t size = d->sizes[x->turn];
    leat_status s = NULL;
    if (p->why == LEAT_WHY_PULLED && p->end)
        return x->got.n && !d->drop_remainder ? give_batch(x, p) : LEAT_NEXT_END;
    if (p->why == LEAT_WHY_PULLED)
        s = take_batch(x, &p->element);
    if (!s)
        s = take_rows(x, size);
    if (s)
        return leat_pull_fail(p, s);
    return x->got.n == size ? give_batch(x, p) : leat_pull_from(p, it->input);
}

static void resize_close(leat_iterator *it)
{
    leat_element_clear(&((resize_iterator *)it)->whole);
    leat_elements_clear(&((resize_iterator *)it)->got);
}

static leat_status resize_save(leat_iterator *it, leat_state_writer *w)
{
    resize_iterator *x = (resize_iterator *)it;
    leat_state_put_int(w, x->turn);
    leat_state_put_int(w, x->row);
    LEAT_TRY(leat_state_put_element(w, &x->whole));
    return leat_state_put_elements(w, &x->got);
}

static leat_status resize_restore(leat_iterator *it, leat_state_reader *r)
{
    resize_iterator *x = (resize_iterator *)it;
    leat_element e = {0};
    int64_t row;
    LEAT_TRY(leat_state_get_within(r, 0, ((const resize *)it->d)->n - 1, &x->turn));
    LEAT_TRY(leat_state_get_within(r, 0, INT64_MAX, &row));
    LEAT_TRY(leat_state_get_element_or_none(r, it->d->n, it->d->types, &e));
    leat_status s = take_batch(x, &e);
    leat_element_clear(&e);
    LEAT_TRY(s);
    x->row = row;
    return leat_state_get_elements_of(r, it->d->n, it->d->types, &x->got);
}

static const leat_dataset_kind resize_kind = {
    .size = sizeof(resize),
    .iterator_size = sizeof(resize_iterator),
    .inputs = 1,
    .own_types = true,
    .make = resize_make,
    .release = resize_release,
    .next = resize_next,
    .close = resize_close,
    .save = resize_save,
    .restore = resize_restore,
};
LEAT_DATASET_RUN(resize_kind)

const leat_kernel_def leat_data_kernels_unique[] = {
    {.op = "UniqueDataset", .run = unique_kind_run},
    {.op = "ExperimentalUniqueDataset", .run = unique_kind_run},
    {.op = "RebatchDataset", .run = rebatch_kind_run},
    {.op = "ExperimentalRebatchDataset", .run = rebatch_kind_run},
    {.op = "RebatchDatasetV2", .run = resize_kind_run},
    {0},
};
