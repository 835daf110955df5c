/* batch.c -- datasets that gather elements of their input: Batch, PaddedBatch; and the reverse,
 * Unbatch. */
#include "kernels/dataset/batch.h"

#include <stdlib.h>

#include "core/alloc.h"
#include "core/element.h"
#include "kernels/dataset/iteration.h"
#include "kernels/dataset/pull.h"
#include "kernels/dataset/sources.h"
#include "kernels/dataset/state.h"

typedef struct batch {
    leat_dataset base;
    int64_t size;
    bool drop_remainder;
    int n_shapes;          /* PaddedBatch: */
    leat_shape *padded;    /* -1: as large as the largest element of the batch */
    leat_tensor **padding; /* scalars */
} batch;

/* Elements are gathered anew by each pull: what a pull that failed has left is dropped. */
typedef struct batch_iterator {
    leat_iterator base;
    leat_elements got;    /* empty while there are elements in `packed` */
    leat_packed **packed; /* elements, n_packed of them, that came packed */
    int64_t n_packed, cap_packed;
    leat_status failed; /* MapAndBatch: the error of the first element of the batch that failed */
    int64_t n_failed;   /* elements of the batch that failed */
} batch_iterator;

static int64_t batch_cardinality(const leat_dataset *d)
{
    const batch *b = (const batch *)d;
    int64_t n = leat_dataset_cardinality(d->in[0]);
    return n < 0 ? n : n / b->size + (n % b->size != 0 && !b->drop_remainder);
}

static leat_status read_size(leat_kernel *k, int i, batch *b)
{
    LEAT_TRY(leat_data_int(k, i, "batch_size", &b->size));
    LEAT_REQUIRE(b->size > 0, INVALID_ARGUMENT, "Batch size must be greater than zero.");
    return NULL;
}

/* The shapes of batches of elements of these shapes. */
static void batch_shapes(leat_dataset *d, const leat_shape *shapes)
{
    const batch *b = (const batch *)d;
    for (int i = 0; i < d->n; i++) {
        leat_shape s = leat_shape_unknown();
        if (shapes[i].rank >= 0 && shapes[i].rank < LEAT_MAX_RANK) {
            s = shapes[i];
            memmove(s.dim + 1, s.dim, (size_t)s.rank * sizeof(*s.dim));
            s.dim[0] = b->drop_remainder ? b->size : -1;
            s.rank++;
        }
        d->shapes[i] = s;
    }
}

static leat_status batch_make(leat_kernel *k, leat_dataset *d)
{
    batch *b = (batch *)d;
    LEAT_TRY(read_size(k, 1, b));
    if (leat_kernel_inputs(k) > 2)
        LEAT_TRY(leat_data_bool(k, 2, "drop_remainder", &b->drop_remainder));
    batch_shapes(d, d->in[0]->shapes);
    return NULL;
}

/* ---- Batches ---- */

/* The shape of n elements of this shape. */
static leat_status batch_shape(int64_t n, const leat_shape *element, leat_shape *out)
{
    LEAT_REQUIRE(element->rank < LEAT_MAX_RANK, INVALID_ARGUMENT,
                 "A batch of tensors of rank %d would have more than %d dimensions", element->rank,
                 LEAT_MAX_RANK);
    out->rank = element->rank + 1;
    memcpy(out->dim + 1, element->dim, (size_t)element->rank * sizeof(*element->dim));
    out->dim[0] = n;
    return NULL;
}

/* A tensor of the batch: n elements of this shape, which the caller writes. */
static leat_status new_batch(int64_t n, leat_dtype t, const leat_shape *element, leat_tensor **out)
{
    leat_shape s;
    LEAT_TRY(batch_shape(n, element, &s));
    return leat_tensor_alloc(NULL, t, &s, out);
}

static char *place(const leat_tensor *t, int64_t element)
{
    return (char *)t->data + (size_t)element * leat_element_size(t->dtype);
}

/* Makes x row i of t. */
static leat_status put_row(leat_tensor *t, int64_t i, leat_tensor *x)
{
    char *to = place(t, i * x->count);
    if (x->dtype != LEAT_STRING || !leat_tensor_sole(x))
        return leat_elements_copy(x->dtype, to, x->data, x->count);
    memcpy(to, x->data, (size_t)x->count * sizeof(leat_string));
    memset(x->data, 0, (size_t)x->count * sizeof(leat_string));
    return NULL;
}

/* Whether no string of component c is long; *bytes is the room that all of them need. */
static bool short_strings(const leat_elements *l, int c, size_t *bytes)
{
    *bytes = 0;
    for (int64_t i = 0; i < l->n; i++) {
        const leat_tensor *x = l->v[i].v[c];
        for (int64_t j = 0; j < x->count; j++) {
            const size_t size = AT(leat_string, x)[j].size;
            if (size > LEAT_SHORT_STRING)
                return false;
            *bytes += leat_strings_room(size);
        }
    }
    return true;
}

/* A batch of short strings is one block of memory. */
static leat_status batch_strings(const leat_elements *l, int c, size_t bytes, leat_tensor **out)
{
    leat_shape s;
    char *at = NULL;
    LEAT_TRY(batch_shape(l->n, &l->v[0].v[c]->shape, &s));
    LEAT_TRY(leat_strings_new(&s, bytes, out, &at));
    leat_string *to = (*out)->data;
    for (int64_t i = 0; i < l->n; i++) {
        const leat_tensor *x = l->v[i].v[c];
        for (int64_t j = 0; j < x->count; j++)
            at = leat_strings_put(to++, at, AT(leat_string, x)[j].data, AT(leat_string, x)[j].size);
    }
    return NULL;
}

static leat_status batch_component(const leat_elements *l, int c, leat_tensor **out)
{
    const leat_tensor *first = l->v[0].v[c];
    leat_tensor *t;
    size_t bytes;
    for (int64_t i = 1; i < l->n; i++) {
        LEAT_REQUIRE(leat_shape_equal(&first->shape, &l->v[i].v[c]->shape), INVALID_ARGUMENT,
                     "Cannot batch tensors with different shapes in component %d. First element "
                     "had shape %s and element %lld had shape %s.",
                     c, leat_shape_show(&first->shape).s, (long long)i,
                     leat_shape_show(&l->v[i].v[c]->shape).s);
        LEAT_REQUIRE(first->dtype == l->v[i].v[c]->dtype, INVALID_ARGUMENT,
                     "Cannot batch tensors with different types in component %d: %s and %s", c,
                     leat_dtype_name(first->dtype), leat_dtype_name(l->v[i].v[c]->dtype));
    }
    if (first->dtype == LEAT_STRING && short_strings(l, c, &bytes))
        return batch_strings(l, c, bytes, out);
    LEAT_TRY(new_batch(l->n, first->dtype, &first->shape, &t));
    leat_status s = NULL;
    for (int64_t i = 0; i < l->n && !s; i++)
        s = put_row(t, i, l->v[i].v[c]);
    if (s)
        leat_tensor_unref(t);
    else
        *out = t;
    return s;
}

static leat_status same_counts(const leat_elements *l)
{
    for (int64_t i = 1; i < l->n; i++)
        LEAT_REQUIRE(l->v[i].n == l->v[0].n, INVALID_ARGUMENT,
                     "Cannot batch elements of %d and %d components", l->v[0].n, l->v[i].n);
    return NULL;
}

leat_status leat_batch_elements(leat_elements *l, leat_element *out)
{
    LEAT_TRY(same_counts(l));
    leat_element e = leat_element_new(l->v[0].n);
    leat_status s = NULL;
    for (int c = 0; c < e.n && !s; c++)
        s = batch_component(l, c, &e.v[c]);
    if (s)
        leat_element_clear(&e);
    else
        *out = e;
    return s;
}

/* Drops what was gathered. */
static void empty(batch_iterator *g, leat_spares *spares)
{
    leat_elements_empty(&g->got);
    for (int64_t i = 0; i < g->n_packed; i++)
        leat_packed_spare(g->packed[i], spares);
    g->n_packed = 0;
    leat_status_free(g->failed);
    g->failed = NULL;
    g->n_failed = 0;
}

/* Unpacks what came packed. */
static leat_status unpack(batch_iterator *g)
{
    for (int64_t i = 0; i < g->n_packed; i++) {
        leat_element e;
        LEAT_TRY(leat_element_unpack(g->packed[i], &e));
        leat_elements_add(&g->got, &e);
    }
    for (int64_t i = 0; i < g->n_packed; i++)
        leat_packed_free(g->packed[i]);
    g->n_packed = 0;
    return NULL;
}

/* Adds the element that the pull has. */
static leat_status add(batch_iterator *g, leat_pull *p)
{
    if (p->packed && g->got.n == 0) {
        leat_grow(g->packed, g->n_packed, g->cap_packed);
        g->packed[g->n_packed++] = leat_pull_take_packed(p);
        return NULL;
    }
    LEAT_TRY(unpack(g));
    leat_packed *x = leat_pull_take_packed(p);
    leat_status s = x ? leat_element_unpack(x, &p->element) : NULL;
    leat_packed_free(x);
    if (!s)
        leat_elements_add(&g->got, &p->element);
    return s;
}

/* Takes the pull's error, if it is the first one of the batch. */
static void add_failed(batch_iterator *g, leat_pull *p)
{
    if (g->failed)
        leat_status_free(p->status);
    else
        g->failed = p->status;
    p->status = NULL;
    g->n_failed++;
}

/* Pulls until there are enough elements. True: *out is what to return; false: the batch is
 * complete. */
static bool gather(leat_iterator *it, leat_pull *p, bool packs, leat_next *out)
{
    batch_iterator *g = (batch_iterator *)it;
    const batch *b = (const batch *)it->d;
    leat_status s = NULL;
    if (p->why == LEAT_WHY_START)
        empty(g, &p->spares);
    else if (p->status && leat_iteration_closed(it->iteration))
        s = p->status;
    else if (p->status)
        add_failed(g, p);
    else if (!p->end)
        s = add(g, p);
    if (s) {
        *out = leat_pull_fail(p, s);
        return true;
    }
    const bool over = p->why == LEAT_WHY_PULLED && p->end;
    const int64_t n = g->got.n + g->n_packed + g->n_failed;
    if (!over && n < b->size) {
        *out = packs ? leat_pull_packed(p, it->input) : leat_pull_from(p, it->input);
        return true;
    }
    if (g->failed) {
        s = g->failed;
        g->failed = NULL;
        empty(g, &p->spares);
        *out = leat_pull_fail(p, s);
        return true;
    }
    if (n == 0 || (b->drop_remainder && n < b->size)) {
        empty(g, &p->spares);
        *out = LEAT_NEXT_END;
        return true;
    }
    return false;
}

static leat_next finish(leat_iterator *it, leat_pull *p,
                        leat_status (*join)(leat_iterator *it, leat_spares *spares,
                                            leat_element *out))
{
    leat_element e = {0};
    leat_status s = join(it, &p->spares, &e);
    empty((batch_iterator *)it, &p->spares);
    return s ? leat_pull_fail(p, s) : leat_pull_give(p, e);
}

static leat_status plain(leat_iterator *it, leat_spares *spares, leat_element *out)
{
    batch_iterator *g = (batch_iterator *)it;
    const bool packed = g->n_packed > 0;
    if (packed)
        LEAT_TRY(leat_packed_batch(g->packed, &g->n_packed, spares, out));
    if (packed && !g->n_packed)
        return NULL;
    LEAT_TRY(unpack(g));
    return leat_batch_elements(&g->got, out);
}

static leat_next batch_next(leat_iterator *it, leat_pull *p)
{
    leat_next n;
    return gather(it, p, true, &n) ? n : finish(it, p, plain);
}

static void batch_close(leat_iterator *it)
{
    batch_iterator *g = (batch_iterator *)it;
    leat_elements_clear(&g->got);
    for (int64_t i = 0; i < g->n_packed; i++)
        leat_packed_free(g->packed[i]);
    free(g->packed);
    leat_status_free(g->failed);
}

static const leat_dataset_kind batch_kind = {
    .size = sizeof(batch),
    .iterator_size = sizeof(batch_iterator),
    .inputs = 1,
    .make = batch_make,
    .cardinality = batch_cardinality,
    .next = batch_next,
    .close = batch_close,
};
LEAT_DATASET_RUN(batch_kind)

static const leat_dataset_kind failing_kind = {
    .size = sizeof(batch),
    .iterator_size = sizeof(batch_iterator),
    .inputs = 1,
    .catches = true,
    .cardinality = batch_cardinality,
    .next = batch_next,
    .close = batch_close,
};

static leat_status batched(const leat_dataset_kind *kind, leat_dataset *in, const char *op,
                           const char *name, int64_t size, bool drop_remainder, leat_dataset **out)
{
    leat_dataset *d;
    LEAT_REQUIRE(size > 0, INVALID_ARGUMENT, "Batch size must be greater than zero.");
    LEAT_TRY(leat_dataset_over(kind, op, name, &in, 1, &d));
    ((batch *)d)->size = size;
    ((batch *)d)->drop_remainder = drop_remainder;
    batch_shapes(d, in->shapes);
    *out = d;
    return NULL;
}

leat_status leat_dataset_batched(leat_dataset *in, const char *op, const char *name, int64_t size,
                                 bool drop_remainder, leat_dataset **out)
{
    return batched(&batch_kind, in, op, name, size, drop_remainder, out);
}

leat_status leat_dataset_batched_failing(leat_dataset *in, const char *op, const char *name,
                                         int64_t size, bool drop_remainder, leat_dataset **out)
{
    return batched(&failing_kind, in, op, name, size, drop_remainder, out);
}

/* ---- PaddedBatch ---- */

static void padded_release(leat_dataset *d)
{
    batch *b = (batch *)d;
    for (int i = 0; i < b->n_shapes; i++)
        leat_tensor_unref(b->padding[i]);
    free(b->padding);
    free(b->padded);
}

static leat_status read_padded_shape(const leat_tensor *t, leat_shape *out)
{
    LEAT_REQUIRE(t->shape.rank == 1, INVALID_ARGUMENT, "All padded shapes must be vectors");
    LEAT_REQUIRE(t->count < LEAT_MAX_RANK, INVALID_ARGUMENT,
                 "A padded shape of %lld dimensions has too many: there may be %d",
                 (long long)t->count, LEAT_MAX_RANK - 1);
    out->rank = (int)t->count;
    for (int i = 0; i < out->rank; i++) {
        out->dim[i] = AT(int64_t, t)[i];
        LEAT_REQUIRE(out->dim[i] >= -1, INVALID_ARGUMENT, "Dimension %lld must be >= -1",
                     (long long)out->dim[i]);
    }
    return NULL;
}

static leat_status padded_make(leat_kernel *k, leat_dataset *d)
{
    batch *b = (batch *)d;
    const leat_dataset *in = d->in[0];
    const leat_node *node = leat_kernel_node(k);
    const int n = (int)leat_node_int(node, "N"), n_values = leat_data_count(k, "Toutput_types");
    LEAT_TRY(read_size(k, 1, b));
    if (leat_kernel_inputs(k) > 2 + n + n_values)
        LEAT_TRY(leat_data_bool(k, 2 + n + n_values, "drop_remainder", &b->drop_remainder));
    LEAT_REQUIRE(n == in->n, INVALID_ARGUMENT,
                 "Number of padded shapes (%d) must match the number of components in the input "
                 "dataset's elements (%d)",
                 n, in->n);
    LEAT_REQUIRE(n_values == in->n, INVALID_ARGUMENT,
                 "Number of padding values (%d) must match the number of components in the input "
                 "dataset's elements (%d)",
                 n_values, in->n);
    b->n_shapes = n;
    b->padded = leat_new_array(leat_shape, n + 1);
    b->padding = leat_new_array(leat_tensor *, n + 1);
    for (int i = 0; i < n; i++) {
        const leat_tensor *value = leat_kernel_in(k, 2 + n + i);
        LEAT_TRY(read_padded_shape(leat_kernel_in(k, 2 + i), &b->padded[i]));
        LEAT_REQUIRE(value->shape.rank == 0, INVALID_ARGUMENT,
                     "All padding values must be scalars");
        LEAT_REQUIRE(value->dtype == in->types[i], INVALID_ARGUMENT,
                     "Mismatched type between padding value %d and input dataset's component %d: "
                     "%s vs. %s",
                     i, i, leat_dtype_name(value->dtype), leat_dtype_name(in->types[i]));
        b->padding[i] = leat_tensor_ref(value);
    }
    batch_shapes(d, b->padded);
    return NULL;
}

/* The shape to which the elements' component c is padded. */
static leat_status padded_shape(const batch *b, const leat_elements *l, int c, leat_shape *out)
{
    const leat_shape *want = &b->padded[c];
    *out = *want;
    for (int64_t i = 0; i < l->n; i++) {
        const leat_shape *s = &l->v[i].v[c]->shape;
        LEAT_REQUIRE(s->rank == want->rank, INVALID_ARGUMENT,
                     "All elements in a batch must have the same rank as the padded shape for "
                     "component%d: expected rank %d but got element with rank %d",
                     c, want->rank, s->rank);
        LEAT_REQUIRE(l->v[i].v[c]->dtype == b->padding[c]->dtype, INVALID_ARGUMENT,
                     "Component %d of an element is %s, not %s", c,
                     leat_dtype_name(l->v[i].v[c]->dtype), leat_dtype_name(b->padding[c]->dtype));
        for (int j = 0; j < s->rank; j++) {
            LEAT_REQUIRE(want->dim[j] < 0 || s->dim[j] <= want->dim[j], DATA_LOSS,
                         "Attempted to pad to a smaller size than the input element.");
            if (want->dim[j] < 0 && s->dim[j] > out->dim[j])
                out->dim[j] = s->dim[j];
        }
    }
    return NULL;
}

/* Copies x into the n elements at `to`, which have shape s and are at least as large. */
static leat_status copy_into(const leat_tensor *x, char *to, const leat_shape *s)
{
    const size_t size = leat_element_size(x->dtype);
    if (s->rank == 0)
        return leat_elements_copy(x->dtype, to, x->data, 1);
    const int64_t row = x->shape.dim[s->rank - 1];
    int64_t index[LEAT_MAX_RANK] = {0};
    for (int64_t done = 0; done < x->count; done += row) {
        int64_t at = 0;
        for (int j = 0; j < s->rank; j++)
            at = at * s->dim[j] + index[j];
        LEAT_TRY(leat_elements_copy(x->dtype, to + (size_t)at * size,
                                    (const char *)x->data + (size_t)done * size, row));
        for (int j = s->rank - 2; j >= 0 && ++index[j] == x->shape.dim[j]; j--)
            index[j] = 0;
    }
    return NULL;
}

static leat_status fill_with(leat_tensor *t, const leat_tensor *value)
{
    const size_t size = leat_element_size(t->dtype);
    for (int64_t i = 0; i < t->count; i++)
        LEAT_TRY(leat_elements_copy(t->dtype, (char *)t->data + (size_t)i * size, value->data, 1));
    return NULL;
}

static leat_status pad_component(const batch *b, const leat_elements *l, int c, leat_tensor **out)
{
    leat_shape s;
    leat_tensor *t;
    LEAT_TRY(padded_shape(b, l, c, &s));
    LEAT_TRY(new_batch(l->n, b->padding[c]->dtype, &s, &t));
    const int64_t each = l->n ? t->count / l->n : 0;
    leat_status bad = fill_with(t, b->padding[c]);
    for (int64_t i = 0; i < l->n && !bad; i++)
        bad = copy_into(l->v[i].v[c], place(t, i * each), &s);
    if (bad)
        leat_tensor_unref(t);
    else
        *out = t;
    return bad;
}

static leat_status padded(leat_iterator *it, leat_spares *spares, leat_element *out)
{
    const batch *b = (const batch *)it->d;
    const leat_elements *l = &((batch_iterator *)it)->got;
    LEAT_TRY(same_counts(l));
    LEAT_REQUIRE(l->v[0].n == b->n_shapes, INVALID_ARGUMENT,
                 "An element has %d components; there are %d padded shapes", l->v[0].n,
                 b->n_shapes);
    leat_element e = leat_element_new(b->n_shapes);
    leat_status s = NULL;
    for (int c = 0; c < e.n && !s; c++)
        s = pad_component(b, l, c, &e.v[c]);
    if (s)
        leat_element_clear(&e);
    else
        *out = e;
    return s;
}

static leat_next padded_next(leat_iterator *it, leat_pull *p)
{
    leat_next n;
    return gather(it, p, false, &n) ? n : finish(it, p, padded);
}

static const leat_dataset_kind padded_kind = {
    .size = sizeof(batch),
    .iterator_size = sizeof(batch_iterator),
    .inputs = 1,
    .make = padded_make,
    .release = padded_release,
    .cardinality = batch_cardinality,
    .next = padded_next,
    .close = batch_close,
};
LEAT_DATASET_RUN(padded_kind)

static leat_status set_padding(leat_dataset *d, const leat_shape *shapes,
                               const leat_tensor *const *values)
{
    batch *b = (batch *)d;
    b->padded = leat_new_array(leat_shape, d->n + 1);
    b->padding = leat_new_array(leat_tensor *, d->n + 1);
    b->n_shapes = d->n;
    for (int i = 0; i < d->n; i++) {
        b->padded[i] = shapes ? shapes[i] : d->in[0]->shapes[i];
        LEAT_REQUIRE(b->padded[i].rank >= 0 && b->padded[i].rank < LEAT_MAX_RANK, INVALID_ARGUMENT,
                     "The padded shape of tensor %d is not known: give shapes", i);
        if (!values || !values[i]) {
            LEAT_TRY(leat_tensor_new(d->types[i], leat_shape(), &b->padding[i]));
            continue;
        }
        LEAT_REQUIRE(values[i]->shape.rank == 0, INVALID_ARGUMENT,
                     "All padding values must be scalars");
        LEAT_REQUIRE(values[i]->dtype == d->types[i], INVALID_ARGUMENT,
                     "Mismatched type between padding value %d and input dataset's component %d: "
                     "%s vs. %s",
                     i, i, leat_dtype_name(values[i]->dtype), leat_dtype_name(d->types[i]));
        b->padding[i] = leat_tensor_ref(values[i]);
    }
    batch_shapes(d, b->padded);
    return NULL;
}

leat_status leat_dataset_padded(leat_dataset *in, int64_t size, const leat_shape *shapes,
                                const leat_tensor *const *values, bool drop_remainder,
                                leat_dataset **out)
{
    leat_dataset *d;
    LEAT_REQUIRE(size > 0, INVALID_ARGUMENT, "Batch size must be greater than zero.");
    LEAT_TRY(leat_dataset_over(&padded_kind, "PaddedBatchDatasetV2", "padded_batch", &in, 1, &d));
    ((batch *)d)->size = size;
    ((batch *)d)->drop_remainder = drop_remainder;
    leat_status s = set_padding(d, shapes, values);
    if (s)
        leat_dataset_unref(d);
    else
        *out = d;
    return s;
}

/* ---- Unbatch ---- */

typedef struct unbatch_iterator {
    leat_iterator base;
    leat_element whole; /* the element whose rows are given */
    int64_t row, rows;
} unbatch_iterator;

static leat_status row_shapes(leat_dataset *d)
{
    for (int i = 0; i < d->n; i++) {
        leat_shape *s = &d->shapes[i];
        LEAT_REQUIRE(s->rank != 0, INVALID_ARGUMENT,
                     "Cannot unbatch an input with scalar components.");
        if (s->rank > 0)
            *s = leat_shape_make(s->rank - 1, s->dim + 1);
    }
    return NULL;
}

static leat_status unbatch_make(leat_kernel *k, leat_dataset *d)
{
    return row_shapes(d);
}

static leat_status take_whole(unbatch_iterator *u, leat_element *e)
{
    leat_element_clear(&u->whole);
    u->row = u->rows = 0;
    for (int i = 0; i < e->n; i++) {
        const leat_shape *s = &e->v[i]->shape;
        LEAT_REQUIRE(s->rank > 0, INVALID_ARGUMENT,
                     "Input element must have a non-scalar value in each component.");
        LEAT_REQUIRE(s->dim[0] == e->v[0]->shape.dim[0], INVALID_ARGUMENT,
                     "Input element must have the same batch size in each component. Component 0 "
                     "had size %lld but component %d had size, %lld.",
                     (long long)e->v[0]->shape.dim[0], i, (long long)s->dim[0]);
    }
    u->rows = e->n ? e->v[0]->shape.dim[0] : 0;
    u->whole = leat_element_take(e);
    return NULL;
}

static leat_next unbatch_next(leat_iterator *it, leat_pull *p)
{
    unbatch_iterator *u = (unbatch_iterator *)it;
    if (p->why == LEAT_WHY_PULLED) {
        if (p->end)
            return LEAT_NEXT_END;
        leat_status s = take_whole(u, &p->element);
        if (s)
            return leat_pull_fail(p, s);
    }
    if (u->row >= u->rows)
        return leat_pull_from(p, it->input);
    leat_element e;
    leat_status s = leat_element_row(&u->whole, u->row++, &e);
    return s ? leat_pull_fail(p, s) : leat_pull_give(p, e);
}

static void unbatch_close(leat_iterator *it)
{
    leat_element_clear(&((unbatch_iterator *)it)->whole);
}

static leat_status unbatch_save(leat_iterator *it, leat_state_writer *w)
{
    unbatch_iterator *u = (unbatch_iterator *)it;
    leat_state_put_int(w, u->row < u->rows);
    if (u->row >= u->rows)
        return NULL;
    leat_state_put_int(w, u->row);
    return leat_state_put_element(w, &u->whole);
}

static leat_status unbatch_restore(leat_iterator *it, leat_state_reader *r)
{
    unbatch_iterator *u = (unbatch_iterator *)it;
    bool inside;
    int64_t row;
    leat_element e = {0};
    LEAT_TRY(leat_state_get_bool(r, &inside));
    if (!inside)
        return NULL;
    LEAT_TRY(leat_state_get_within(r, 0, INT64_MAX, &row));
    LEAT_TRY(leat_state_get_element_of(r, it->d->n, it->d->types, &e));
    leat_status s = take_whole(u, &e);
    leat_element_clear(&e);
    u->row = row;
    return s;
}

static const leat_dataset_kind unbatch_kind = {
    .size = sizeof(leat_dataset),
    .iterator_size = sizeof(unbatch_iterator),
    .inputs = 1,
    .make = unbatch_make,
    .next = unbatch_next,
    .close = unbatch_close,
    .save = unbatch_save,
    .restore = unbatch_restore,
};
LEAT_DATASET_RUN(unbatch_kind)

leat_status leat_dataset_unbatched(leat_dataset *in, leat_dataset **out)
{
    leat_dataset *d;
    LEAT_TRY(leat_dataset_over(&unbatch_kind, "UnbatchDataset", "unbatch", &in, 1, &d));
    leat_status s = row_shapes(d);
    if (s)
        leat_dataset_unref(d);
    else
        *out = d;
    return s;
}

const leat_kernel_def leat_data_kernels_batch[] = {
    {.op = "BatchDataset", .run = batch_kind_run},
    {.op = "BatchDatasetV2", .run = batch_kind_run},
    {.op = "PaddedBatchDataset", .run = padded_kind_run},
    {.op = "PaddedBatchDatasetV2", .run = padded_kind_run},
    {.op = "UnbatchDataset", .run = unbatch_kind_run},
    {.op = "ExperimentalUnbatchDataset", .run = unbatch_kind_run},
    {0},
};
