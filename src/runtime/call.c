/* call.c -- calls of functions. A call is a step of its own, and is cancelled with its parent, the
 * step of the kernel that made the call. */
#include <stdlib.h>
#include <string.h>

#include "core/alloc.h"
#include "core/block.h"
#include "runtime/callable_int.h"
#include "runtime/session_int.h"

enum { MOST_NESTED = 32 }; /* Nested calls that one thread starts; limits the use of its stack. */

/* A call that has not ended. */
typedef struct call {
    leat_step *step;
    leat_callable *callable;
    leat_step *parent; /* NULL: the call is part of no step. */
    leat_cancel on_parent;
    leat_cancellation *cancellation;
    leat_cancel_watch watch;
    leat_callable_fn done;
    void *arg;
    int n_args, n_results;
    leat_tensor *tensors[]; /* The arguments, each a reference, followed by the results. */
} call;

static __thread int nested; /* Nested calls that this thread is starting. */

static size_t size_of(const leat_callable *f)
{
    return sizeof(call) + (size_t)(f->n_args + f->n_results) * sizeof(leat_tensor *);
}

static void call_free(call *c, size_t size)
{
    if (size <= LEAT_BLOCK_MAX)
        leat_block_free(c, size);
    else
        free(c);
}

/* ---- Cancellation ---- */

static void parent_cancelled(void *arg, leat_status why)
{
    call *c = arg;
    leat_step_fail(c->step, leat_status_copy(why));
}

static void call_cancelled(void *arg)
{
    call *c = arg;
    leat_step_fail(c->step, leat_error(CANCELLED, "The call of function %s was cancelled",
                                       c->callable->f.func->name));
}

/* ---- The end ---- */

static void ended(void *arg)
{
    call *c = arg;
    if (c->parent)
        leat_step_off_cancel(c->parent, &c->on_parent);
    leat_cancellation_unwatch(c->cancellation, &c->watch);
    leat_status s = leat_step_finish(c->step);
    leat_step_free(c->step);
    if (s && !strstr(leat_status_message(s), "{{function_node "))
        s = leat_status_prefix(s, "{{function_node %s}} ", c->callable->f.func->name);
    for (int i = 0; i < c->n_args; i++)
        leat_tensor_unref(c->tensors[i]);
    leat_tensor **results = c->tensors + c->n_args;
    for (int i = 0; s && i < c->n_results; i++)
        leat_tensor_unref(results[i]);
    const size_t size = size_of(c->callable);
    atomic_fetch_sub_explicit(&c->callable->set->under_way, 1, memory_order_relaxed);
    c->done(c->arg, s, s ? NULL : results,
            s ? 0 : c->n_results); /* May free the set of callables. */
    call_free(c, size);
}

/* ---- The start ---- */

static leat_status check_args(const leat_callable *f, leat_tensor *const *args, int n)
{
    const char *name = f->f.func->name;
    LEAT_REQUIRE(n == f->n_args, INVALID_ARGUMENT, "Function %s has %d arguments; it is given %d",
                 name, f->n_args, n);
    for (int i = 0; i < n; i++) {
        LEAT_REQUIRE(args[i], INVALID_ARGUMENT, "Argument %d of function %s is missing", i, name);
        LEAT_REQUIRE(args[i]->dtype == f->arg_types[i], INVALID_ARGUMENT,
                     "Argument %d of function %s is %s; it is given %s", i, name,
                     leat_dtype_name(f->arg_types[i]), leat_dtype_name(args[i]->dtype));
    }
    return NULL;
}

static leat_status check_limits(const leat_callable *f, const leat_step *parent)
{
    LEAT_REQUIRE(!parent || parent->call_depth < LEAT_MOST_CALL_DEPTH, RESOURCE_EXHAUSTED,
                 "Function %s is called at a depth of %d calls inside each other, the most there "
                 "may be: does it call itself without end?",
                 f->f.func->name, LEAT_MOST_CALL_DEPTH);
    LEAT_REQUIRE(atomic_load_explicit(&f->set->under_way, memory_order_relaxed) <
                     LEAT_MOST_CALLS_UNDER_WAY,
                 RESOURCE_EXHAUSTED, "Function %s: %d calls are under way, the most there may be",
                 f->f.func->name, LEAT_MOST_CALLS_UNDER_WAY);
    return NULL;
}

static call *call_new(leat_callable *f, leat_plan *plan, leat_tensor *const *args,
                      const leat_callable_options *o)
{
    const size_t size = size_of(f);
    call *c = size <= LEAT_BLOCK_MAX ? leat_block_xalloc(size) : leat_xmalloc(size);
    memset(c, 0, size);
    c->callable = f;
    c->n_args = f->n_args;
    c->n_results = f->n_results;
    for (int i = 0; i < f->n_args; i++)
        c->tensors[i] = leat_tensor_ref(args[i]);
    c->parent = o->kernel ? o->kernel->step : NULL;
    c->cancellation = o->cancellation;
    const leat_step *p = c->parent;
    c->step = leat_step_new(plan, &(leat_step_options){.id = p ? p->id : 0,
                                                       .feeds = c->tensors,
                                                       .fetches = c->tensors + f->n_args,
                                                       .trace = p ? p->trace : NULL,
                                                       .deadline_ns = p ? p->deadline_ns : 0,
                                                       .call_depth = p ? p->call_depth + 1 : 0,
                                                       .ended = ended,
                                                       .arg = c});
    return c;
}

static void start(void *arg)
{
    call *c = arg;
    nested++;
    leat_step_start(c->step);
    nested--;
}

/* Makes the call be cancelled with its parent and by its cancellation. A call that is cancelled
 * already is started nevertheless; its nodes do not run, and its end calls done. */
static void link(call *c)
{
    c->on_parent = (leat_cancel){.fn = parent_cancelled, .arg = c};
    if (c->parent && !leat_step_on_cancel(c->parent, &c->on_parent))
        leat_step_fail(c->step, leat_error(CANCELLED, "The step was cancelled"));
    c->watch = (leat_cancel_watch){.fn = call_cancelled, .arg = c};
    leat_cancellation_watch(c->cancellation, &c->watch);
}

void leat_callable_start(leat_callable *f, leat_tensor *const *args, int n,
                         const leat_callable_options *options, leat_callable_fn done, void *arg)
{
    const leat_callable_options o = options ? *options : (leat_callable_options){0};
    leat_plan *plan = NULL;
    leat_status s = check_args(f, args, n);
    if (!s)
        s = check_limits(f, o.kernel ? o.kernel->step : NULL);
    if (!s)
        s = leat_callable_plan(f, args, o.kernel ? o.kernel->step : NULL, &plan);
    if (!s && leat_plan_closed(plan))
        s = leat_error(
            CANCELLED,
            "Function %s cannot be called any more: it has nodes on other tasks, and its "
            "session is closed",
            f->f.func->name);
    if (s) {
        done(arg, s, NULL, 0);
        return;
    }
    call *c = call_new(f, plan, args, &o);
    c->done = done;
    c->arg = arg;
    atomic_fetch_add_explicit(&f->set->under_way, 1, memory_order_relaxed);
    link(c);
    if (nested < MOST_NESTED)
        start(c);
    else
        leat_pool_submit(f->set->devices[0]->inter, start, c);
}

/* ---- Waiting for the end ---- */

typedef struct waited {
    leat_event done;
    leat_status status;
    leat_tensor **results;
} waited;

static void wake(void *arg, leat_status s, leat_tensor **results, int n)
{
    waited *w = arg;
    w->status = s;
    for (int i = 0; i < n; i++)
        w->results[i] = results[i];
    leat_event_set(&w->done);
}

leat_status leat_callable_run(leat_callable *f, leat_tensor *const *args, int n,
                              const leat_callable_options *options, leat_tensor **results)
{
    waited w = {.results = results};
    leat_event_init(&w.done);
    leat_callable_start(f, args, n, options, wake, &w);
    leat_event_wait(&w.done, 0);
    return w.status;
}
