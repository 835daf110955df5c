/* pull.c -- how an element is got: the iterators of a pull are called one after the other, in a
 * loop, until the first one has its element. */
#include "kernels/dataset/pull.h"

#include <stdlib.h>

#include "core/alloc.h"
#include "kernels/dataset/iteration.h"
#include "kernels/dataset/program.h"

static __thread bool may_block; /* This thread was made for jobs that may block. */

bool leat_pull_may_block(void)
{
    return may_block;
}

/* ---- Errors ---- */

leat_status leat_data_error(const leat_iterator *it, leat_status s)
{
    if (strstr(leat_status_message(s), "[[dataset "))
        return s;
    if (leat_status_code(s) == LEAT_OUT_OF_RANGE) {
        leat_status t = leat_error(INTERNAL,
                                   "Iterator \"%s\" returned OutOfRange without setting "
                                   "`*end_of_sequence`. This indicates that an error may have "
                                   "occurred. Original message: %s",
                                   it->d->name, leat_status_message(s));
        leat_status_free(s);
        s = t;
    }
    return leat_status_suffix(s, "\n\t [[dataset %s (%s), element %lld]]", it->d->name, it->d->op,
                              (long long)it->count);
}

/* ---- Calls ---- */

void leat_data_call_start(leat_iteration *in, const leat_data_fn *fn, const leat_element *element,
                          leat_callable_fn done, void *arg)
{
    enum { FEW = 16 };
    if (fn->program) {
        leat_element result = {0};
        leat_status s = leat_program_call(fn->program, element, &result);
        done(arg, s, result.v, result.n);
        free(result.v);
        return;
    }
    leat_callable *f;
    leat_status s = leat_iteration_function(in, fn->f, &f);
    if (s) {
        done(arg, s, NULL, 0);
        return;
    }
    int n_element = element ? element->n : 0, n = n_element + fn->n_captured;
    leat_tensor *few[FEW] = {NULL}, **args = n <= FEW ? few : leat_new_array(leat_tensor *, n);
    for (int i = 0; i < n; i++)
        args[i] = i < n_element ? element->v[i] : fn->captured[i - n_element];
    leat_callable_start(f, args, n,
                        &(leat_callable_options){.kernel = in->kernel, .cancellation = in->closing},
                        done, arg);
    if (args != few)
        free(args);
}

static leat_element element_of(leat_tensor **results, int n)
{
    leat_element e = leat_element_new(n);
    for (int i = 0; i < n; i++)
        e.v[i] = results[i];
    return e;
}

typedef struct waited {
    leat_event done;
    leat_status status;
    leat_element element;
} waited;

static void wake(void *arg, leat_status s, leat_tensor **results, int n)
{
    waited *w = arg;
    w->status = s;
    w->element = element_of(results, n);
    leat_event_set(&w->done);
}

leat_status leat_data_call(leat_iteration *in, const leat_data_fn *fn, const leat_element *arg,
                           leat_element *result)
{
    waited w = {0};
    leat_event_init(&w.done);
    leat_data_call_start(in, fn, arg, wake, &w);
    leat_event_wait(&w.done, 0);
    *result = w.element;
    return w.status;
}

static bool run(leat_pull *p);

static void called(void *arg, leat_status s, leat_tensor **results, int n)
{
    leat_pull *p = arg;
    p->status = s;
    leat_pull_drop(p);
    p->element = element_of(results, n);
    p->why = LEAT_WHY_CALLED;
    if (atomic_fetch_add(&p->turns, 1) == 1)
        leat_pull_resume(p);
}

/* Two threads come to the end of a call: the one that started it, and the one in which the call has
 * ended. The second of them continues the pull. True if that is this thread. */
static bool call(leat_pull *p)
{
    atomic_store(&p->turns, 0);
    leat_data_call_start(p->iteration, p->fn, p->arg, called, p);
    return atomic_fetch_add(&p->turns, 1) == 1;
}

/* ---- Pulls ---- */

static void resume_blocking(void *arg)
{
    may_block = true;
    leat_pull_resume(arg);
    may_block = false;
}

/* The iterator `at` has given its element, its end or an error: the one above it continues. True if
 * there is none. After an error, those that do not catch errors end with it. */
static bool ascend(leat_pull *p, leat_next result)
{
    do {
        leat_iterator *it = p->at;
        if (result == LEAT_NEXT_FAILED)
            p->status = leat_data_error(it, p->status);
        else if (result == LEAT_NEXT_ELEMENT)
            it->count++;
        else
            it->ended = true;
        p->at = it->above;
        it->above = NULL;
    } while (p->at && result == LEAT_NEXT_FAILED && !p->at->d->kind->catches);
    p->end = result == LEAT_NEXT_END;
    if (result != LEAT_NEXT_ELEMENT)
        leat_pull_drop(p);
    p->why = LEAT_WHY_PULLED;
    return !p->at;
}

static leat_next next(leat_pull *p)
{
    leat_iterator *it = p->at;
    if (p->why == LEAT_WHY_START) {
        if (it->ended)
            return LEAT_NEXT_END;
        if (leat_iteration_closed(p->iteration))
            return leat_pull_fail(p, leat_error(CANCELLED, "The iterator was closed"));
    }
    return it->d->kind->next(it, p);
}

/* Continues a pull. True: it has ended. False: it goes on elsewhere. */
static bool run(leat_pull *p)
{
    for (;;) {
        leat_next n = next(p);
        switch (n) {
        case LEAT_NEXT_ELEMENT:
        case LEAT_NEXT_END:
        case LEAT_NEXT_FAILED:
            if (ascend(p, n))
                return true;
            break;
        case LEAT_NEXT_PULL:
            if (!p->from) {
                leat_status s = leat_error(DATA_LOSS,
                                           "The position that was restored is damaged: "
                                           "%s has no input",
                                           p->at->d->name);
                if (ascend(p, leat_pull_fail(p, s)))
                    return true;
                break;
            }
            p->from->above = p->at;
            p->from->packs = p->packs;
            p->at = p->from;
            p->why = LEAT_WHY_START;
            break;
        case LEAT_NEXT_CALL:
            if (!call(p))
                return false;
            break;
        case LEAT_NEXT_WAIT:
            return false;
        case LEAT_NEXT_BLOCK:
            p->why = LEAT_WHY_AGAIN;
            /* Without a thread for this, a worker of the pool, or the caller, has to block. */
            if (!may_block &&
                leat_pool_submit_blocking(p->iteration->pool, resume_blocking, p) == 0)
                return false;
        }
    }
}

bool leat_pull_start(leat_pull *p, leat_iterator *it)
{
    p->at = it;
    p->why = LEAT_WHY_START;
    p->status = NULL;
    p->end = false;
    it->packs = false;
    leat_pull_drop(p);
    return run(p);
}

void leat_pull_release(leat_pull *p)
{
    leat_pull_drop(p);
    leat_spares_release(&p->spares);
    leat_status_free(p->status);
    p->status = NULL;
}

void leat_pull_resume(leat_pull *p)
{
    if (run(p))
        p->done(p);
}

static void resume_job(void *arg)
{
    leat_pull_resume(arg);
}

void leat_pull_resume_later(leat_pull *p)
{
    leat_pool_submit(p->iteration->pool, resume_job, p);
}
