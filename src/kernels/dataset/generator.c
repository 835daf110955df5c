/* generator.c -- Generator, whose elements come from a function that is called until it returns
 * OUT_OF_RANGE; Sampling, which leaves elements out at random. */
#include <stdlib.h>

#include "kernels/dataset/iteration.h"
#include "kernels/dataset/map.h"
#include "kernels/dataset/sources.h"
#include "kernels/dataset/state.h"

enum { INIT, NEXT, FINALIZE };

/* ---- Generator: init() gives a state, next(state) elements, finalize(state) ends ---- */

typedef struct generator {
    leat_iterator base;
    bool begun, over;
    leat_element state;
    enum { CALLED_INIT, CALLED_NEXT, CALLED_FINALIZE } called;
} generator;

static leat_status generator_make(leat_kernel *k, leat_dataset *d)
{
    static const char *const names[] = {"init_func", "next_func", "finalize_func"};
    static const char *const types[] = {"Tinit_func_args", "Tnext_func_args",
                                        "Tfinalize_func_args"};
    const leat_dtype *state;
    int n = 0;
    for (int i = 0, at = 0; i < 3; i++) {
        int captured = leat_data_count(k, types[i]);
        LEAT_TRY(leat_data_fn_get(k, names[i], at, captured, &d->fn[i]));
        at += captured;
    }
    LEAT_TRY(leat_data_fn_check(&d->fn[INIT], names[INIT], NULL, 0, NULL, -1));
    n = leat_callable_results(d->fn[INIT].f, &state);
    LEAT_TRY(leat_data_fn_check(&d->fn[NEXT], names[NEXT], state, n, d->types, d->n));
    return leat_data_fn_check(&d->fn[FINALIZE], names[FINALIZE], state, n, NULL, -1);
}

static leat_next generator_call(generator *x, leat_pull *p, int which)
{
    x->called = which;
    return leat_pull_call(p, &x->base.d->fn[which], which == CALLED_INIT ? NULL : &x->state);
}

static leat_next generator_next(leat_iterator *it, leat_pull *p)
{
    generator *x = (generator *)it;
    if (p->why == LEAT_WHY_START)
        return generator_call(x, p, x->begun ? CALLED_NEXT : CALLED_INIT);
    if (x->called == CALLED_FINALIZE)
        return p->status ? LEAT_NEXT_FAILED : LEAT_NEXT_END;
    if (x->called == CALLED_INIT && !p->status) {
        x->state = leat_element_take(&p->element);
        x->begun = true;
        return generator_call(x, p, CALLED_NEXT);
    }
    if (!p->status)
        return LEAT_NEXT_ELEMENT;
    if (x->called == CALLED_INIT || leat_status_code(p->status) != LEAT_OUT_OF_RANGE)
        return LEAT_NEXT_FAILED;
    leat_status_free(p->status);
    p->status = NULL;
    x->over = true;
    return generator_call(x, p, CALLED_FINALIZE);
}

static void ignore_results(void *arg, leat_status s, leat_tensor **results, int n)
{
    leat_event *done = arg;
    for (int i = 0; i < n; i++)
        leat_tensor_unref(results[i]);
    leat_status_free(s);
    leat_event_set(done);
}

/* A generator that was not gone through to its end is finalised, too. */
static void generator_close(leat_iterator *it)
{
    generator *x = (generator *)it;
    if (x->begun && !x->over) {
        const leat_data_fn *fn = &it->d->fn[FINALIZE];
        leat_element args = leat_element_new(x->state.n + fn->n_captured);
        for (int i = 0; i < args.n; i++)
            args.v[i] =
                leat_tensor_ref(i < x->state.n ? x->state.v[i] : fn->captured[i - x->state.n]);
        leat_event done;
        leat_event_init(&done);
        leat_callable_start(fn->f, args.v, args.n, NULL, ignore_results, &done);
        leat_pool_wait(it->iteration->pool, &done, 0);
        leat_element_clear(&args);
    }
    leat_element_clear(&x->state);
}

static leat_status generator_save(leat_iterator *it, leat_state_writer *w)
{
    LEAT_REQUIRE(it->ended, UNIMPLEMENTED,
                 "The position of %s (GeneratorDataset) cannot be saved: it is known to its "
                 "functions alone",
                 it->d->name);
    return NULL;
}

static const leat_dataset_kind generator_kind = {
    .size = sizeof(leat_dataset),
    .iterator_size = sizeof(generator),
    .own_types = true,
    .make = generator_make,
    .next = generator_next,
    .close = generator_close,
    .save = generator_save,
};
LEAT_DATASET_RUN(generator_kind)

/* ---- Sampling ---- */

typedef struct sampling {
    leat_dataset base;
    float rate;
    int64_t seed, seed2;
} sampling;

typedef struct sampler {
    leat_iterator base;
    int64_t drawn;
} sampler;

static leat_status sampling_make(leat_kernel *k, leat_dataset *d)
{
    sampling *s = (sampling *)d;
    const leat_tensor *rate = leat_kernel_in(k, 1);
    LEAT_REQUIRE(rate->shape.rank == 0, INVALID_ARGUMENT, "rate must be a scalar");
    s->rate = AT(float, rate)[0];
    LEAT_TRY(leat_data_int(k, 2, "seed", &s->seed));
    LEAT_TRY(leat_data_int(k, 3, "seed2", &s->seed2));
    leat_data_random_seeds(&s->seed, &s->seed2);
    return NULL;
}

/* A float from 0 to 1, of the lower 23 of 32 random bits, as TensorFlow makes it. */
static float uniform(uint32_t x)
{
    union {
        uint32_t bits;
        float f;
    } u = {.bits = UINT32_C(127) << 23 | (x & UINT32_C(0x7fffff))};
    return u.f - 1;
}

static leat_next sampling_next(leat_iterator *it, leat_pull *p)
{
    sampler *x = (sampler *)it;
    const sampling *d = (const sampling *)it->d;
    if (p->why == LEAT_WHY_PULLED) {
        if (p->end)
            return LEAT_NEXT_END;
        if (uniform(leat_data_random(d->seed, d->seed2, x->drawn++)) < d->rate)
            return LEAT_NEXT_ELEMENT;
    }
    return leat_pull_from(p, it->input);
}

static leat_status sampling_save(leat_iterator *it, leat_state_writer *w)
{
    leat_state_put_int(w, ((sampler *)it)->drawn);
    return NULL;
}

static leat_status sampling_restore(leat_iterator *it, leat_state_reader *r)
{
    return leat_state_get_within(r, 0, INT64_MAX, &((sampler *)it)->drawn);
}

static const leat_dataset_kind sampling_kind = {
    .size = sizeof(sampling),
    .iterator_size = sizeof(sampler),
    .inputs = 1,
    .make = sampling_make,
    .next = sampling_next,
    .save = sampling_save,
    .restore = sampling_restore,
};
LEAT_DATASET_RUN(sampling_kind)

const leat_kernel_def leat_data_kernels_generator[] = {
    {.op = "GeneratorDataset", .run = generator_kind_run},
    {.op = "SamplingDataset", .run = sampling_kind_run},
    {0},
};
