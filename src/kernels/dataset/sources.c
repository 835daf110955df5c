/* sources.c -- datasets without inputs: tensors, slices of tensors, numbers. */
#include <stdlib.h>
#include <sys/random.h>

#include "core/alloc.h"
#include "kernels/cpu/philox.h"
#include "kernels/dataset/pull.h"
#include "kernels/dataset/sources.h"
#include "kernels/dataset/state.h"

/* ---- TensorDataset, TensorSliceDataset: the inputs, or their rows one after the other ---- */

typedef struct tensors {
    leat_dataset base;
    leat_element all;
    int64_t rows;
} tensors;

typedef struct at {
    leat_iterator base;
    int64_t i;
} at;

static void tensors_release(leat_dataset *d)
{
    leat_element_clear(&((tensors *)d)->all);
}

static void take_inputs(leat_kernel *k, tensors *d)
{
    d->all = leat_element_new(leat_kernel_inputs(k));
    for (int i = 0; i < d->all.n; i++)
        d->all.v[i] = leat_tensor_ref(leat_kernel_in(k, i));
}

/* The elements' types and shapes are those of the tensors, or of their rows. */
static void types_of_tensors(tensors *d, bool rows)
{
    leat_element *e = &d->all;
    leat_dtype *types = leat_new_array(leat_dtype, e->n + 1);
    leat_shape *shapes = leat_new_array(leat_shape, e->n + 1);
    for (int i = 0; i < e->n; i++) {
        const leat_shape *s = &e->v[i]->shape;
        types[i] = e->v[i]->dtype;
        shapes[i] = rows ? leat_shape_make(s->rank - 1, s->dim + 1) : *s;
    }
    leat_dataset_types(&d->base, e->n, types, shapes);
    free(types);
    free(shapes);
}

static leat_status tensor_make(leat_kernel *k, leat_dataset *d)
{
    take_inputs(k, (tensors *)d);
    types_of_tensors((tensors *)d, false);
    return NULL;
}

static int64_t one(const leat_dataset *d)
{
    return 1;
}

static leat_next tensor_next(leat_iterator *it, leat_pull *p)
{
    at *a = (at *)it;
    if (a->i++ > 0)
        return LEAT_NEXT_END;
    return leat_pull_give(p, leat_element_copy(&((tensors *)it->d)->all));
}

static leat_status at_save(leat_iterator *it, leat_state_writer *w)
{
    leat_state_put_int(w, ((at *)it)->i);
    return NULL;
}

static leat_status at_restore(leat_iterator *it, leat_state_reader *r)
{
    return leat_state_get_within(r, 0, INT64_MAX, &((at *)it)->i);
}

static const leat_dataset_kind tensor_kind = {
    .size = sizeof(tensors),
    .iterator_size = sizeof(at),
    .make = tensor_make,
    .release = tensors_release,
    .cardinality = one,
    .next = tensor_next,
    .save = at_save,
    .restore = at_restore,
};
LEAT_DATASET_RUN(tensor_kind)

static leat_status check_slices(tensors *d)
{
    for (int i = 0; i < d->all.n; i++) {
        const leat_shape *s = &d->all.v[i]->shape;
        LEAT_REQUIRE(s->rank > 0, INVALID_ARGUMENT,
                     "All components must be at least 1-dimensional");
        LEAT_REQUIRE(i == 0 || s->dim[0] == d->rows, INVALID_ARGUMENT,
                     "All components must have the same size in the 0th dimension");
        d->rows = s->dim[0];
    }
    types_of_tensors(d, true);
    return NULL;
}

static leat_status slices_make(leat_kernel *k, leat_dataset *d)
{
    take_inputs(k, (tensors *)d);
    return check_slices((tensors *)d);
}

static int64_t slices_cardinality(const leat_dataset *d)
{
    return ((const tensors *)d)->rows;
}

leat_status leat_tensor_row(const leat_tensor *t, int64_t i, leat_tensor **out)
{
    const leat_shape row = leat_shape_make(t->shape.rank - 1, t->shape.dim + 1);
    leat_tensor *view;
    LEAT_TRY(leat_tensor_rows(t, i, i + 1, &view));
    leat_status s = leat_tensor_reshape(view, row, out);
    leat_tensor_unref(view);
    return s;
}

leat_status leat_element_row(const leat_element *e, int64_t i, leat_element *out)
{
    leat_element row = leat_element_new(e->n);
    leat_status s = NULL;
    for (int c = 0; c < e->n && !s; c++)
        s = leat_tensor_row(e->v[c], i, &row.v[c]);
    if (s)
        leat_element_clear(&row);
    else
        *out = row;
    return s;
}

static leat_next slices_next(leat_iterator *it, leat_pull *p)
{
    at *a = (at *)it;
    const tensors *d = (const tensors *)it->d;
    leat_element row;
    if (a->i >= d->rows)
        return LEAT_NEXT_END;
    leat_status s = leat_element_row(&d->all, a->i++, &row);
    return s ? leat_pull_fail(p, s) : leat_pull_give(p, row);
}

static const leat_dataset_kind slices_kind = {
    .size = sizeof(tensors),
    .iterator_size = sizeof(at),
    .make = slices_make,
    .release = tensors_release,
    .cardinality = slices_cardinality,
    .next = slices_next,
    .save = at_save,
    .restore = at_restore,
};
LEAT_DATASET_RUN(slices_kind)

/* For the C interface. */
leat_status leat_dataset_of_tensors(const leat_tensor *const *t, int n, bool rows,
                                    leat_dataset **out)
{
    leat_dataset *d;
    LEAT_TRY(leat_dataset_over(rows ? &slices_kind : &tensor_kind,
                               rows ? "TensorSliceDataset" : "TensorDataset",
                               rows ? "slices" : "tensors", NULL, 0, &d));
    tensors *x = (tensors *)d;
    x->all = leat_element_new(n);
    for (int i = 0; i < n; i++)
        x->all.v[i] = leat_tensor_ref(t[i]);
    leat_status s = NULL;
    if (rows)
        s = check_slices(x);
    else
        types_of_tensors(x, false);
    if (s)
        leat_dataset_unref(d);
    else
        *out = d;
    return s;
}

/* ---- RangeDataset ---- */

typedef struct range {
    leat_dataset base;
    int64_t start, stop, step;
} range;

typedef struct range_iterator {
    leat_iterator base;
    int64_t next;
    bool over; /* the next number would not fit into int64 */
} range_iterator;

static leat_status range_make(leat_kernel *k, leat_dataset *d)
{
    range *r = (range *)d;
    LEAT_TRY(leat_data_int(k, 0, "start", &r->start));
    LEAT_TRY(leat_data_int(k, 1, "stop", &r->stop));
    LEAT_TRY(leat_data_int(k, 2, "step", &r->step));
    LEAT_REQUIRE(r->step != 0, INVALID_ARGUMENT, "step must be a non-zero integer.");
    leat_dataset_types(d, 1, (leat_dtype[]){LEAT_INT64}, (leat_shape[]){leat_shape()});
    return NULL;
}

static int64_t range_cardinality(const leat_dataset *d)
{
    const range *r = (const range *)d;
    const bool up = r->step > 0;
    if (up ? r->start >= r->stop : r->start <= r->stop)
        return 0;
    uint64_t width =
        up ? (uint64_t)r->stop - (uint64_t)r->start : (uint64_t)r->start - (uint64_t)r->stop;
    uint64_t step = up ? (uint64_t)r->step : -(uint64_t)r->step;
    uint64_t n = (width - 1) / step + 1;
    return n > INT64_MAX ? INT64_MAX : (int64_t)n;
}

static leat_status range_open(leat_iterator *it)
{
    ((range_iterator *)it)->next = ((const range *)it->d)->start;
    return NULL;
}

static leat_next range_next(leat_iterator *it, leat_pull *p)
{
    range_iterator *r = (range_iterator *)it;
    const range *d = (const range *)it->d;
    if (r->over || (d->step > 0 ? r->next >= d->stop : r->next <= d->stop))
        return LEAT_NEXT_END;
    leat_element e = leat_element_new(1);
    leat_status s = leat_tensor_copy_of(LEAT_INT64, leat_shape(), &r->next, &e.v[0]);
    if (s) {
        leat_element_clear(&e);
        return leat_pull_fail(p, s);
    }
    r->over = !leat_add_ok(r->next, d->step, &r->next);
    return leat_pull_give(p, e);
}

static leat_status range_save(leat_iterator *it, leat_state_writer *w)
{
    leat_state_put_int(w, ((range_iterator *)it)->next);
    leat_state_put_int(w, ((range_iterator *)it)->over);
    return NULL;
}

static leat_status range_restore(leat_iterator *it, leat_state_reader *r)
{
    LEAT_TRY(leat_state_get_int(r, &((range_iterator *)it)->next));
    return leat_state_get_bool(r, &((range_iterator *)it)->over);
}

static const leat_dataset_kind range_kind = {
    .size = sizeof(range),
    .iterator_size = sizeof(range_iterator),
    .make = range_make,
    .cardinality = range_cardinality,
    .open = range_open,
    .next = range_next,
    .save = range_save,
    .restore = range_restore,
};
LEAT_DATASET_RUN(range_kind)

leat_status leat_dataset_of_range(int64_t start, int64_t stop, int64_t step, leat_dataset **out)
{
    leat_dataset *d;
    LEAT_REQUIRE(step != 0, INVALID_ARGUMENT, "step must be a non-zero integer.");
    LEAT_TRY(leat_dataset_over(&range_kind, "RangeDataset", "range", NULL, 0, &d));
    range *r = (range *)d;
    r->start = start;
    r->stop = stop;
    r->step = step;
    leat_dataset_types(d, 1, (leat_dtype[]){LEAT_INT64}, (leat_shape[]){leat_shape()});
    *out = d;
    return NULL;
}

/* ---- RandomDataset: 32 random bits in an int64, for ever ---- */

typedef struct numbers {
    leat_dataset base;
    int64_t seed, seed2;
} numbers;

void leat_data_random_seeds(int64_t *seed, int64_t *seed2)
{
    uint32_t x[2] = {0};
    if (*seed || *seed2)
        return;
    if (getrandom(x, sizeof(x), 0) != sizeof(x))
        x[0] = (uint32_t)leat_now_ns();
    *seed = x[0];
    *seed2 = x[1];
}

static leat_status random_make(leat_kernel *k, leat_dataset *d)
{
    numbers *r = (numbers *)d;
    LEAT_TRY(leat_data_int(k, 0, "seed", &r->seed));
    LEAT_TRY(leat_data_int(k, 1, "seed2", &r->seed2));
    leat_data_random_seeds(&r->seed, &r->seed2);
    leat_dataset_types(d, 1, (leat_dtype[]){LEAT_INT64}, (leat_shape[]){leat_shape()});
    return NULL;
}

void leat_data_random_four(int64_t seed, int64_t seed2, int64_t i, uint32_t four[4])
{
    leat_philox g = leat_philox_of((uint64_t)seed, (uint64_t)seed2);
    leat_philox_skip(&g, (uint64_t)i);
    leat_philox_next(&g, four);
}

uint32_t leat_data_random(int64_t seed, int64_t seed2, int64_t i)
{
    uint32_t four[4];
    leat_data_random_four(seed, seed2, i / 4, four);
    return four[i % 4];
}

static leat_next random_next(leat_iterator *it, leat_pull *p)
{
    at *a = (at *)it;
    const numbers *d = (const numbers *)it->d;
    int64_t x = leat_data_random(d->seed, d->seed2, a->i++);
    leat_element e = leat_element_new(1);
    leat_status s = leat_tensor_copy_of(LEAT_INT64, leat_shape(), &x, &e.v[0]);
    if (!s)
        return leat_pull_give(p, e);
    leat_element_clear(&e);
    return leat_pull_fail(p, s);
}

static int64_t for_ever(const leat_dataset *d)
{
    return LEAT_CARDINALITY_INFINITE;
}

static const leat_dataset_kind random_kind = {
    .size = sizeof(numbers),
    .iterator_size = sizeof(at),
    .make = random_make,
    .cardinality = for_ever,
    .next = random_next,
    .save = at_save,
    .restore = at_restore,
};
LEAT_DATASET_RUN(random_kind)

const leat_kernel_def leat_data_kernels_sources[] = {
    {.op = "TensorDataset", .run = tensor_kind_run},
    {.op = "TensorSliceDataset", .run = slices_kind_run},
    {.op = "RangeDataset", .run = range_kind_run},
    {.op = "RandomDataset", .run = random_kind_run},
    {.op = "ExperimentalRandomDataset", .run = random_kind_run},
    {0},
};
