/* join.c -- datasets that join several: Zip, Concatenate, DirectedInterleave. */
#include "kernels/dataset/join.h"

#include <stdlib.h>

#include "core/alloc.h"
#include "core/strbuf.h"
#include "kernels/dataset/pull.h"
#include "kernels/dataset/state.h"

/* ---- Iterators of all inputs ---- */

typedef struct many {
    leat_iterator base;
    leat_iterator **in;
    int i;               /* the one that is pulled */
    leat_element *parts; /* Zip: what the inputs have given for this element */
    bool *over;          /* DirectedInterleave: which inputs have ended */
} many;

static leat_status many_open(leat_iterator *it)
{
    many *m = (many *)it;
    const int n = it->d->n_in;
    m->in = leat_new_array(leat_iterator *, n + 1);
    m->parts = leat_new_array(leat_element, n + 1);
    m->over = leat_new_array(bool, n + 1);
    for (int i = 0; i < n; i++)
        LEAT_TRY(leat_iterator_new(it->iteration, it->d->in[i], it, i, &m->in[i]));
    return NULL;
}

static void drop_parts(many *m)
{
    for (int i = 0; i < m->base.d->n_in && m->parts; i++)
        leat_element_clear(&m->parts[i]);
}

static void many_close(leat_iterator *it)
{
    many *m = (many *)it;
    drop_parts(m);
    for (int i = 0; i < it->d->n_in && m->in; i++)
        leat_iterator_free(m->in[i]);
    free(m->in);
    free(m->parts);
    free(m->over);
}

static leat_status many_save(leat_iterator *it, leat_state_writer *w)
{
    many *m = (many *)it;
    for (int i = 0; i < it->d->n_in; i++) {
        leat_state_put_int(w, m->over[i]);
        LEAT_TRY(leat_state_put_iterator(w, m->in[i]));
    }
    return NULL;
}

static leat_status many_restore(leat_iterator *it, leat_state_reader *r)
{
    many *m = (many *)it;
    for (int i = 0; i < it->d->n_in; i++) {
        LEAT_TRY(leat_state_get_bool(r, &m->over[i]));
        LEAT_TRY(leat_state_get_iterator(r, it->iteration, it->d->in[i], it, i, &m->in[i]));
        LEAT_REQUIRE(m->in[i], DATA_LOSS, "The position of the iterator lacks input %d of %s", i,
                     it->d->name);
    }
    return NULL;
}

/* ---- Zip ---- */

static void zip_types(leat_dataset *d)
{
    int n = 0;
    for (int i = 0; i < d->n_in; i++)
        n += d->in[i]->n;
    leat_dtype *types = leat_new_array(leat_dtype, n + 1);
    leat_shape *shapes = leat_new_array(leat_shape, n + 1);
    for (int i = 0, at = 0; i < d->n_in; at += d->in[i++]->n)
        for (int c = 0; c < d->in[i]->n; c++) {
            types[at + c] = d->in[i]->types[c];
            shapes[at + c] = d->in[i]->shapes[c];
        }
    leat_dataset_types(d, n, types, shapes);
    free(types);
    free(shapes);
}

static leat_status zip_make(leat_kernel *k, leat_dataset *d)
{
    zip_types(d);
    return NULL;
}

static int64_t zip_cardinality(const leat_dataset *d)
{
    int64_t least = LEAT_CARDINALITY_INFINITE;
    for (int i = 0; i < d->n_in; i++) {
        int64_t n = leat_dataset_cardinality(d->in[i]);
        if (n == LEAT_CARDINALITY_UNKNOWN)
            return LEAT_CARDINALITY_UNKNOWN;
        if (n != LEAT_CARDINALITY_INFINITE && (least == LEAT_CARDINALITY_INFINITE || n < least))
            least = n;
    }
    return least;
}

static leat_element joined(many *m)
{
    int n = 0, at = 0;
    for (int i = 0; i < m->base.d->n_in; i++)
        n += m->parts[i].n;
    leat_element e = leat_element_new(n);
    for (int i = 0; i < m->base.d->n_in; i++) {
        for (int c = 0; c < m->parts[i].n; c++)
            e.v[at++] = m->parts[i].v[c];
        free(m->parts[i].v);
        m->parts[i] = (leat_element){0};
    }
    return e;
}

static leat_next zip_next(leat_iterator *it, leat_pull *p)
{
    many *m = (many *)it;
    if (p->why == LEAT_WHY_START) {
        drop_parts(m);
        m->i = 0;
    } else if (p->end) {
        return LEAT_NEXT_END;
    } else {
        m->parts[m->i++] = leat_element_take(&p->element);
    }
    if (m->i < it->d->n_in)
        return leat_pull_from(p, m->in[m->i]);
    return leat_pull_give(p, joined(m));
}

static const leat_dataset_kind zip_kind = {
    .size = sizeof(leat_dataset),
    .iterator_size = sizeof(many),
    .inputs = -1,
    .no_input = true,
    .make = zip_make,
    .cardinality = zip_cardinality,
    .open = many_open,
    .next = zip_next,
    .close = many_close,
    .save = many_save,
    .restore = many_restore,
};
LEAT_DATASET_RUN(zip_kind)

leat_status leat_dataset_zipped(leat_dataset *const *in, int n, leat_dataset **out)
{
    LEAT_TRY(leat_dataset_over(&zip_kind, "ZipDataset", "zip", in, n, out));
    zip_types(*out);
    return NULL;
}

/* ---- Concatenate ---- */

static void list_types(leat_strbuf *b, const leat_dataset *d)
{
    for (int i = 0; i < d->n; i++)
        leat_strbuf_printf(b, "%s%s", i ? ", " : "", leat_dtype_name(d->types[i]));
}

static leat_status same_types(const leat_dataset *a, const leat_dataset *b, const char *what)
{
    bool same = a->n == b->n;
    for (int i = 0; same && i < a->n; i++)
        same = a->types[i] == b->types[i];
    if (same)
        return NULL;
    leat_strbuf x = {0}, y = {0};
    list_types(&x, a);
    list_types(&y, b);
    leat_status s = leat_error(INVALID_ARGUMENT, what, leat_strbuf_text(&x), leat_strbuf_text(&y));
    leat_strbuf_release(&x);
    leat_strbuf_release(&y);
    return s;
}

static leat_shape common_shape(const leat_shape *a, const leat_shape *b)
{
    if (a->rank != b->rank || a->rank < 0)
        return leat_shape_unknown();
    leat_shape s = *a;
    for (int i = 0; i < s.rank; i++)
        if (s.dim[i] != b->dim[i])
            s.dim[i] = -1;
    return s;
}

static leat_status check_both(leat_dataset *d)
{
    LEAT_TRY(same_types(
        d->in[0], d->in[1],
        "input dataset and dataset to concatenate have different output_types %s and %s"));
    for (int i = 0; i < d->n; i++)
        d->shapes[i] = common_shape(&d->in[0]->shapes[i], &d->in[1]->shapes[i]);
    return NULL;
}

static leat_status concatenate_make(leat_kernel *k, leat_dataset *d)
{
    return check_both(d);
}

static int64_t concatenate_cardinality(const leat_dataset *d)
{
    int64_t a = leat_dataset_cardinality(d->in[0]), b = leat_dataset_cardinality(d->in[1]), n;
    if (a == LEAT_CARDINALITY_INFINITE || b == LEAT_CARDINALITY_INFINITE)
        return LEAT_CARDINALITY_INFINITE;
    if (a == LEAT_CARDINALITY_UNKNOWN || b == LEAT_CARDINALITY_UNKNOWN)
        return LEAT_CARDINALITY_UNKNOWN;
    return leat_add_ok(a, b, &n) ? n : INT64_MAX;
}

static leat_next concatenate_next(leat_iterator *it, leat_pull *p)
{
    if (p->why == LEAT_WHY_PULLED) {
        if (!p->end)
            return LEAT_NEXT_ELEMENT;
        if (it->which == 1)
            return LEAT_NEXT_END;
        leat_status s = leat_iterator_reopen(it, 1);
        if (s)
            return leat_pull_fail(p, s);
    }
    return leat_pull_from(p, it->input);
}

static const leat_dataset_kind concatenate_kind = {
    .size = sizeof(leat_dataset),
    .iterator_size = sizeof(leat_iterator),
    .inputs = 2,
    .make = concatenate_make,
    .cardinality = concatenate_cardinality,
    .next = concatenate_next,
};
LEAT_DATASET_RUN(concatenate_kind)

leat_status leat_dataset_concatenated(leat_dataset *const in[2], leat_dataset **out)
{
    leat_dataset *d;
    LEAT_TRY(leat_dataset_over(&concatenate_kind, "ConcatenateDataset", "concatenate", in, 2, &d));
    leat_status s = check_both(d);
    if (s)
        leat_dataset_unref(d);
    else
        *out = d;
    return s;
}

/* ---- DirectedInterleave: elements of input 0 say which of the others gives the next one ---- */

typedef struct directed {
    leat_dataset base;
    bool stops; /* the data end when a chosen input has ended; else other inputs go on */
} directed;

static leat_status directed_make(leat_kernel *k, leat_dataset *d)
{
    const leat_node *n = leat_kernel_node(k);
    const char *stop = "_stop_on_empty_dataset"; /* an attribute of TensorFlow 2 */
    ((directed *)d)->stops = leat_node_has(n, stop) && leat_node_bool(n, stop);
    const leat_dataset *selector = d->in[0];
    LEAT_REQUIRE(selector->n == 1 && selector->types[0] == LEAT_INT64 &&
                     leat_shape_compatible(&selector->shapes[0], &(leat_shape){0}),
                 INVALID_ARGUMENT,
                 "The selector input must be a dataset of scalar int64 elements.");
    LEAT_REQUIRE(d->n_in > 1, INVALID_ARGUMENT, "There are no datasets to choose elements from");
    leat_dataset_types(d, d->in[1]->n, d->in[1]->types, d->in[1]->shapes);
    for (int i = 2; i < d->n_in; i++) {
        LEAT_TRY(same_types(d->in[1], d->in[i],
                            "All inputs must have the same output_dtypes. First input has types "
                            "%s, and another input has types %s"));
        for (int c = 0; c < d->n; c++)
            d->shapes[c] = common_shape(&d->shapes[c], &d->in[i]->shapes[c]);
    }
    return NULL;
}

static bool all_over(const many *m)
{
    for (int i = 1; i < m->base.d->n_in; i++)
        if (!m->over[i])
            return false;
    return true;
}

static leat_next choose(many *m, leat_pull *p)
{
    leat_element *e = &p->element;
    if (e->n != 1 || e->v[0]->dtype != LEAT_INT64 || e->v[0]->count != 1)
        return leat_pull_fail(
            p, leat_error(INVALID_ARGUMENT,
                          "The selector input must be a dataset of scalar int64 elements."));
    int64_t which = AT(int64_t, e->v[0])[0];
    if (which < 0 || which >= m->base.d->n_in - 1)
        return leat_pull_fail(p, leat_error(INVALID_ARGUMENT,
                                            "Selector index out of range: %lld >= %d",
                                            (long long)which, m->base.d->n_in - 1));
    m->i = 1 + (int)which;
    return leat_pull_from(p, m->over[m->i] ? m->in[0] : m->in[m->i]);
}

static leat_next directed_next(leat_iterator *it, leat_pull *p)
{
    many *m = (many *)it;
    if (p->why == LEAT_WHY_START) {
        m->i = 0;
        return leat_pull_from(p, m->in[0]);
    }
    if (m->i == 0 || m->over[m->i]) { /* the selector was pulled */
        m->i = 0;
        return p->end ? LEAT_NEXT_END : choose(m, p);
    }
    if (!p->end)
        return LEAT_NEXT_ELEMENT;
    m->over[m->i] = true;
    if (((const directed *)it->d)->stops || all_over(m))
        return LEAT_NEXT_END;
    m->i = 0;
    return leat_pull_from(p, m->in[0]);
}

static const leat_dataset_kind directed_kind = {
    .size = sizeof(directed),
    .iterator_size = sizeof(many),
    .inputs = -1,
    .no_input = true,
    .make = directed_make,
    .open = many_open,
    .next = directed_next,
    .close = many_close,
    .save = many_save,
    .restore = many_restore,
};
LEAT_DATASET_RUN(directed_kind)

const leat_kernel_def leat_data_kernels_join[] = {
    {.op = "ZipDataset", .run = zip_kind_run},
    {.op = "ConcatenateDataset", .run = concatenate_kind_run},
    {.op = "DirectedInterleaveDataset", .run = directed_kind_run},
    {.op = "ExperimentalDirectedInterleaveDataset", .run = directed_kind_run},
    {0},
};
