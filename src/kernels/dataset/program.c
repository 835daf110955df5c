/* program.c -- functions of the program as functions of datasets, and Generator, whose elements
 * come from such functions. */
#include "kernels/dataset/program.h"

#include <stdlib.h>

#include "core/alloc.h"
#include "kernels/dataset/map.h"
#include "kernels/dataset/pull.h"
#include "kernels/dataset/state.h"

leat_program_fn *leat_program_new(const leat_program_fn *fn)
{
    leat_program_fn *p = leat_new(leat_program_fn);
    *p = *fn;
    p->types = leat_new_array(leat_dtype, fn->n + 1);
    for (int i = 0; i < fn->n; i++)
        p->types[i] = fn->types[i];
    return p;
}

void leat_program_free(leat_program_fn *fn)
{
    if (!fn)
        return;
    if (fn->release)
        fn->release(fn->arg);
    free(fn->types);
    free(fn);
}

/* ---- Calls ---- */

static leat_status check_results(const leat_dtype *types, const leat_element *e)
{
    for (int i = 0; i < e->n; i++) {
        LEAT_REQUIRE(e->v[i], INVALID_ARGUMENT, "The function has not written tensor %d of %d", i,
                     e->n);
        LEAT_REQUIRE(e->v[i]->dtype == types[i], INVALID_ARGUMENT,
                     "Tensor %d of the function is %s, not %s", i, leat_dtype_name(e->v[i]->dtype),
                     leat_dtype_name(types[i]));
    }
    return NULL;
}

static leat_status call_map(const leat_program_fn *fn, const leat_element *in, leat_element *out)
{
    leat_element e = leat_element_new(fn->n);
    leat_status s = fn->map(fn->arg, in->v, in->n, e.v, e.n);
    if (!s)
        s = check_results(fn->types, &e);
    if (s)
        leat_element_clear(&e);
    else
        *out = e;
    return s;
}

static leat_status call_test(const leat_program_fn *fn, const leat_element *in, leat_element *out)
{
    bool yes = false;
    LEAT_TRY(fn->test(fn->arg, in->v, in->n, &yes));
    leat_element e = leat_element_new(1);
    leat_status s = leat_tensor_copy_of(LEAT_BOOL, leat_shape(), &yes, &e.v[0]);
    if (s)
        leat_element_clear(&e);
    else
        *out = e;
    return s;
}

static leat_status check_elements(const leat_program_fn *fn, const leat_dataset *d)
{
    LEAT_REQUIRE(d->n == fn->n, INVALID_ARGUMENT,
                 "The function has given a dataset whose elements have %d tensors, not %d", d->n,
                 fn->n);
    for (int i = 0; i < d->n; i++)
        LEAT_REQUIRE(d->types[i] == fn->types[i], INVALID_ARGUMENT,
                     "The function has given a dataset whose tensor %d is %s, not %s", i,
                     leat_dtype_name(d->types[i]), leat_dtype_name(fn->types[i]));
    return NULL;
}

static leat_status call_of(const leat_program_fn *fn, const leat_element *in, leat_element *out)
{
    leat_dataset *d = NULL;
    LEAT_TRY(fn->of(fn->arg, in->v, in->n, &d));
    LEAT_REQUIRE(d, INVALID_ARGUMENT, "The function has given no dataset");
    LEAT_CHECK(DATASET, d);
    leat_status s = check_elements(fn, d);
    if (s) {
        leat_dataset_unref(d);
        return s;
    }
    leat_element e = leat_element_new(1);
    s = leat_dataset_tensor(d, &e.v[0]);
    if (s)
        leat_element_clear(&e);
    else
        *out = e;
    return s;
}

leat_status leat_program_call(const leat_program_fn *fn, const leat_element *in, leat_element *out)
{
    return fn->map    ? call_map(fn, in, out)
           : fn->test ? call_test(fn, in, out)
                      : call_of(fn, in, out);
}

leat_status leat_program_over(const leat_dataset_kind *kind, const char *op, const char *name,
                              leat_dataset *in, leat_program_fn *fn, leat_dataset **out)
{
    leat_dataset *d;
    leat_status s = leat_dataset_over(kind, op, name, &in, 1, &d);
    if (s) {
        leat_program_free(fn);
        return s;
    }
    d->fn[0].program = fn;
    if (!fn->test)
        leat_dataset_types(d, fn->n, fn->types, NULL);
    *out = d;
    return NULL;
}

/* ---- Generator ---- */

typedef struct generated {
    leat_dataset base;
    leat_generator g;
} generated;

typedef struct generating {
    leat_iterator base;
    void *state;
    bool begun;
} generating;

static leat_status begin(generating *x)
{
    const leat_generator *g = &((const generated *)x->base.d)->g;
    if (!x->begun && g->begin)
        LEAT_TRY(g->begin(g->arg, &x->state));
    else if (!x->begun)
        x->state = g->arg;
    x->begun = true;
    return NULL;
}

static leat_status generate(generating *x, leat_element *out)
{
    const leat_dataset *d = x->base.d;
    LEAT_TRY(begin(x));
    leat_element e = leat_element_new(d->n);
    leat_status s = ((const generated *)d)->g.next(x->state, e.v, e.n);
    if (!s)
        s = check_results(d->types, &e);
    if (s)
        leat_element_clear(&e);
    else
        *out = e;
    return s;
}

static leat_next generator_next(leat_iterator *it, leat_pull *p)
{
    leat_element e = {0};
    if (p->why == LEAT_WHY_START)
        return LEAT_NEXT_BLOCK; /* the program may wait in its function */
    p->status = generate((generating *)it, &e);
    return p->status ? leat_map_failed(p, false) : leat_pull_give(p, e);
}

static void generator_close(leat_iterator *it)
{
    generating *x = (generating *)it;
    const leat_generator *g = &((const generated *)it->d)->g;
    if (x->begun && g->end)
        g->end(x->state);
}

static leat_status generator_save(leat_iterator *it, leat_state_writer *w)
{
    leat_state_put_int(w, it->count);
    return NULL;
}

/* The elements before the position are generated once more, and dropped. */
static leat_status generator_restore(leat_iterator *it, leat_state_reader *r)
{
    int64_t given;
    LEAT_TRY(leat_state_get_within(r, 0, INT64_MAX, &given));
    for (int64_t i = 0; i < given && !it->ended; i++) {
        leat_element e = {0};
        leat_status s = generate((generating *)it, &e);
        leat_element_clear(&e);
        if (leat_status_code(s) == LEAT_OUT_OF_RANGE) {
            leat_status_free(s);
            return leat_error(DATA_LOSS,
                              "The generator has given %lld elements; the position that is to be "
                              "restored is after element %lld",
                              (long long)i, (long long)given);
        }
        LEAT_TRY(s);
    }
    return NULL;
}

static const leat_dataset_kind generated_kind = {
    .size = sizeof(generated),
    .iterator_size = sizeof(generating),
    .next = generator_next,
    .close = generator_close,
    .save = generator_save,
    .restore = generator_restore,
};

leat_status leat_dataset_generated(const leat_generator *g, const leat_dtype *types, int n,
                                   leat_dataset **out)
{
    leat_dataset *d;
    LEAT_TRY(leat_dataset_over(&generated_kind, "GeneratorDataset", "generator", NULL, 0, &d));
    ((generated *)d)->g = *g;
    leat_dataset_types(d, n, types, NULL);
    *out = d;
    return NULL;
}
