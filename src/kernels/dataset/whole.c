/* whole.c -- ops that go through a dataset while they run: ReduceDataset, DatasetToSingleElement,
 * DatasetToTFRecord; and what is known of a dataset without that: DatasetCardinality. */
#include <leat/io.h>
#include <stdlib.h>

#include "core/alloc.h"
#include "kernels/dataset/iteration.h"

/* ---- A kernel that gives the first element of a dataset ---- */

typedef struct whole {
    leat_kernel *k;
    leat_iteration *in;
    leat_pull pull;
    leat_cancel cancel;
} whole;

static void cancelled(void *arg, leat_status why)
{
    leat_iteration_cancel(((whole *)arg)->in);
}

static void finish(leat_pull *p)
{
    whole *w = p->done_arg;
    leat_kernel *k = w->k;
    leat_status s = p->status;
    p->status = NULL;
    leat_step_off_cancel(k->step, &w->cancel);
    leat_iteration_unref(w->in); /* Waits for the calls of k's step that are under way. */
    if (!s && p->end)
        s = leat_error(INVALID_ARGUMENT, "Dataset was empty.");
    if (!s)
        s = leat_iteration_give(k, &p->element);
    leat_pull_release(p);
    free(w);
    leat_kernel_done(k, s);
}

/* Takes d. */
static void run(leat_kernel *k, leat_dataset *d)
{
    leat_iteration *in;
    leat_status s = leat_iteration_new(leat_kernel_device(k)->inter, k, d, &in);
    leat_dataset_unref(d);
    if (s) {
        leat_kernel_done(k, s);
        return;
    }
    whole *w = leat_new(whole);
    *w = (whole){.k = k, .in = in, .cancel = {.fn = cancelled, .arg = w}};
    w->pull = (leat_pull){.iteration = in, .done = finish, .done_arg = w};
    if (!leat_step_on_cancel(k->step, &w->cancel))
        leat_iteration_cancel(in);
    if (leat_pull_start(&w->pull, in->root))
        finish(&w->pull);
}

/* ---- DatasetToSingleElement ---- */

typedef struct single {
    leat_iterator base;
    leat_element first;
    bool there;
} single;

static leat_next single_next(leat_iterator *it, leat_pull *p)
{
    single *s = (single *)it;
    if (p->why == LEAT_WHY_START)
        return leat_pull_from(p, it->input);
    if (p->end)
        return s->there ? leat_pull_give(p, leat_element_take(&s->first)) : LEAT_NEXT_END;
    if (s->there)
        return leat_pull_fail(p,
                              leat_error(INVALID_ARGUMENT, "Dataset had more than one element."));
    s->first = leat_element_take(&p->element);
    s->there = true;
    return leat_pull_from(p, it->input);
}

static void single_close(leat_iterator *it)
{
    leat_element_clear(&((single *)it)->first);
}

static const leat_dataset_kind single_kind = {
    .size = sizeof(leat_dataset),
    .iterator_size = sizeof(single),
    .inputs = 1,
    .next = single_next,
    .close = single_close,
};

static void single_run(leat_kernel *k)
{
    leat_dataset *d;
    leat_status s = leat_dataset_make(k, &single_kind, &d);
    if (s)
        leat_kernel_done(k, s);
    else
        run(k, d);
}

/* ---- ReduceDataset: the one element is the state after f(state, element) for all elements ---- */

typedef struct reduce {
    leat_dataset base;
    leat_element initial;
} reduce;

typedef struct reduce_iterator {
    leat_iterator base;
    leat_element state, args;
} reduce_iterator;

static leat_status reduce_make(leat_kernel *k, leat_dataset *d)
{
    reduce *r = (reduce *)d;
    const leat_dataset *in = d->in[0];
    const int n = leat_data_count(k, "Tstate");
    r->initial = leat_element_new(n);
    leat_dtype *types = leat_new_array(leat_dtype, n + in->n + 1);
    for (int i = 0; i < n; i++) {
        r->initial.v[i] = leat_tensor_ref(leat_kernel_in(k, 1 + i));
        types[i] = r->initial.v[i]->dtype;
    }
    for (int i = 0; i < in->n; i++)
        types[n + i] = in->types[i];
    leat_status s = leat_data_fn_get(k, "f", 1 + n, leat_data_count(k, "Targuments"), &d->fn[0]);
    if (!s)
        s = leat_data_fn_check(&d->fn[0], "f", types, n + in->n, types, n);
    free(types);
    return s;
}

static void reduce_release(leat_dataset *d)
{
    leat_element_clear(&((reduce *)d)->initial);
}

static leat_status reduce_open(leat_iterator *it)
{
    ((reduce_iterator *)it)->state = leat_element_copy(&((const reduce *)it->d)->initial);
    return NULL;
}

static leat_next reduce_next(leat_iterator *it, leat_pull *p)
{
    reduce_iterator *r = (reduce_iterator *)it;
    if (p->why == LEAT_WHY_CALLED) {
        leat_element_clear(&r->args);
        if (leat_status_code(p->status) == LEAT_OUT_OF_RANGE) {
            /* As in TensorFlow, the function may end the iteration early. */
            leat_status_free(p->status);
            p->status = NULL;
            return leat_pull_give(p, leat_element_take(&r->state));
        }
        if (p->status)
            return LEAT_NEXT_FAILED;
        leat_element_clear(&r->state);
        r->state = leat_element_take(&p->element);
    } else if (p->why == LEAT_WHY_PULLED) {
        if (p->end)
            return leat_pull_give(p, leat_element_take(&r->state));
        r->args = leat_element_new(r->state.n + p->element.n);
        for (int i = 0; i < r->args.n; i++)
            r->args.v[i] =
                leat_tensor_ref(i < r->state.n ? r->state.v[i] : p->element.v[i - r->state.n]);
        return leat_pull_call(p, &it->d->fn[0], &r->args);
    }
    return leat_pull_from(p, it->input);
}

static void reduce_close(leat_iterator *it)
{
    leat_element_clear(&((reduce_iterator *)it)->state);
    leat_element_clear(&((reduce_iterator *)it)->args);
}

static const leat_dataset_kind reduce_kind = {
    .size = sizeof(reduce),
    .iterator_size = sizeof(reduce_iterator),
    .inputs = 1,
    .make = reduce_make,
    .release = reduce_release,
    .open = reduce_open,
    .next = reduce_next,
    .close = reduce_close,
};

static void reduce_run(leat_kernel *k)
{
    leat_dataset *d;
    leat_status s = leat_dataset_make(k, &reduce_kind, &d);
    if (s)
        leat_kernel_done(k, s);
    else
        run(k, d);
}

/* ---- DatasetToTFRecord ---- */

typedef struct to_record {
    leat_dataset base;
    char *path, *compression;
} to_record;

typedef struct to_record_iterator {
    leat_iterator base;
    leat_record_writer *writer;
    leat_element element; /* to be written */
    bool over;            /* the input has ended */
} to_record_iterator;

static leat_status to_record_make(leat_kernel *k, leat_dataset *base)
{
    to_record *d = (to_record *)base;
    LEAT_REQUIRE(base->n == 1 && base->types[0] == LEAT_STRING, INVALID_ARGUMENT,
                 "Only datasets whose elements are one string can be written as records");
    LEAT_TRY(leat_data_string(k, 1, "filename", &d->path));
    LEAT_TRY(leat_data_string(k, 2, "compression_type", &d->compression));
    LEAT_REQUIRE(!*d->compression || strcmp(d->compression, "GZIP") == 0 ||
                     strcmp(d->compression, "ZLIB") == 0,
                 INVALID_ARGUMENT, "Unsupported compression_type: \"%s\"", d->compression);
    return NULL;
}

static void to_record_release(leat_dataset *base)
{
    free(((to_record *)base)->path);
    free(((to_record *)base)->compression);
}

static leat_status open_writer(to_record_iterator *x)
{
    const to_record *d = (const to_record *)x->base.d;
    return leat_record_writer_open(d->path,
                                   strcmp(d->compression, "GZIP") == 0   ? LEAT_RECORD_GZIP
                                   : strcmp(d->compression, "ZLIB") == 0 ? LEAT_RECORD_ZLIB
                                                                         : LEAT_RECORD_PLAIN,
                                   &x->writer);
}

/* Writes the element; at the end, closes the file. */
static leat_status write_element(to_record_iterator *x)
{
    if (!x->writer)
        LEAT_TRY(open_writer(x));
    if (x->over) {
        leat_record_writer *w = x->writer;
        x->writer = NULL;
        return leat_record_writer_close(w);
    }
    const leat_tensor *t = x->element.v[0];
    LEAT_REQUIRE(t->count == 1, INVALID_ARGUMENT, "A record must be a scalar, but has shape %s",
                 leat_shape_show(&t->shape).s);
    leat_status s =
        leat_record_write(x->writer, AT(leat_string, t)->data, AT(leat_string, t)->size);
    leat_element_clear(&x->element);
    return s;
}

/* Gives an element without tensors when all is written. */
static leat_next to_record_next(leat_iterator *it, leat_pull *p)
{
    to_record_iterator *x = (to_record_iterator *)it;
    if (p->why == LEAT_WHY_START)
        return leat_pull_from(p, it->input);
    if (p->why == LEAT_WHY_PULLED) {
        x->over = p->end;
        x->element = leat_element_take(&p->element);
        return LEAT_NEXT_BLOCK;
    }
    leat_status s = write_element(x);
    if (s)
        return leat_pull_fail(p, s);
    return x->over ? leat_pull_give(p, leat_element_new(0)) : leat_pull_from(p, it->input);
}

static void to_record_close(leat_iterator *it)
{
    to_record_iterator *x = (to_record_iterator *)it;
    leat_element_clear(&x->element);
    if (x->writer)
        leat_status_free(leat_record_writer_close(x->writer));
}

static const leat_dataset_kind to_record_kind = {
    .size = sizeof(to_record),
    .iterator_size = sizeof(to_record_iterator),
    .inputs = 1,
    .make = to_record_make,
    .release = to_record_release,
    .next = to_record_next,
    .close = to_record_close,
};

static void to_record_run(leat_kernel *k)
{
    leat_dataset *d;
    leat_status s = leat_dataset_make(k, &to_record_kind, &d);
    if (s)
        leat_kernel_done(k, s);
    else
        run(k, d);
}

/* ---- DatasetCardinality ---- */

static leat_status cardinality_run(leat_kernel *k)
{
    leat_dataset *d;
    leat_tensor *y;
    LEAT_TRY(leat_dataset_in(leat_kernel_in(k, 0), &d));
    LEAT_TRY(leat_kernel_out(k, 0, &(leat_shape){0}, &y));
    AT(int64_t, y)[0] = leat_dataset_cardinality(d);
    return NULL;
}

static leat_status unchanged_run(leat_kernel *k)
{
    leat_kernel_forward(k, 0, 0);
    return NULL;
}

const leat_kernel_def leat_data_kernels_whole[] = {
    {.op = "DatasetToSingleElement", .run_async = single_run, .flags = LEAT_KERNEL_EXPENSIVE},
    {.op = "ReduceDataset", .run_async = reduce_run, .flags = LEAT_KERNEL_EXPENSIVE},
    {.op = "DatasetToTFRecord", .run_async = to_record_run, .flags = LEAT_KERNEL_EXPENSIVE},
    {.op = "ExperimentalDatasetToTFRecord",
     .run_async = to_record_run,
     .flags = LEAT_KERNEL_EXPENSIVE},
    {.op = "DatasetCardinality", .run = cardinality_run},
    {.op = "ExperimentalDatasetCardinality", .run = cardinality_run},
    {.op = "WrapDatasetVariant", .run = unchanged_run},
    {.op = "UnwrapDatasetVariant", .run = unchanged_run},
    {0},
};
