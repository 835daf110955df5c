/* hooks_step.c -- hooks that depend on the global step: stopping at a step, counting steps per
 * second, waiting for a step. A global step that is fetched in a run may be from before or after
 * the run's update, so the step is read again before a decision. */
#include <inttypes.h>
#include <stdlib.h>

#include "core/alloc.h"
#include "core/log.h"
#include "graph/given.h"
#include "train/hook_int.h"
#include "train/session_manager.h"

static void free_plain(leat_hook *h)
{
    free(h);
}

/* ---- Stop at a step ---- */

typedef struct stop_at_step {
    leat_hook base;
    int64_t num_steps, last_step; /* below 0: not set */
    leat_out step;
} stop_at_step;

static leat_status stop_begin(leat_hook *h, leat_graph *g)
{
    stop_at_step *p = (stop_at_step *)h;
    LEAT_REQUIRE(p->num_steps >= 0 || p->last_step >= 0, INVALID_ARGUMENT,
                 "leat_stop_at_step_hook: one of .num_steps and .last_step must be given.");
    LEAT_REQUIRE(p->num_steps < 0 || p->last_step < 0, INVALID_ARGUMENT,
                 "leat_stop_at_step_hook: only one of .num_steps and .last_step can be given.");
    return leat_hook_step(g, "StopAtStepHook", &p->step);
}

static leat_status stop_session(leat_hook *h, leat_session *s, leat_coordinator *coord)
{
    stop_at_step *p = (stop_at_step *)h;
    int64_t now = 0;
    if (p->last_step >= 0)
        return NULL;
    LEAT_TRY(leat_read_step(s, p->step, &now));
    p->last_step = now + p->num_steps;
    return NULL;
}

static leat_status stop_before(leat_hook *h, leat_run_context *c)
{
    leat_run_fetch(c, ((stop_at_step *)h)->step);
    return NULL;
}

static leat_status stop_after(leat_hook *h, leat_run_context *c)
{
    stop_at_step *p = (stop_at_step *)h;
    int64_t step = (int64_t)leat_tensor_at(leat_run_value(c, p->step), 0);
    if (step + 1 < p->last_step)
        return NULL;
    LEAT_TRY(leat_read_step(leat_run_session(c), p->step, &step));
    if (step >= p->last_step)
        leat_run_request_stop(c);
    return NULL;
}

leat_hook *leat_stop_at_step_hook_new(const leat_stop_at_step_options *o)
{
    static const leat_hook_ops ops = {.name = "StopAtStepHook",
                                      .begin = stop_begin,
                                      .after_create_session = stop_session,
                                      .before_run = stop_before,
                                      .after_run = stop_after,
                                      .free = free_plain};
    stop_at_step *p = leat_hook_new(sizeof(*p), &ops);
    p->num_steps = leat_given_int_or(&o->given, "num_steps", o->num_steps, -1);
    p->last_step = leat_given_int_or(&o->given, "last_step", o->last_step, -1);
    return &p->base;
}

/* ---- Steps per second ---- */

typedef struct step_counter {
    leat_hook base;
    leat_timer timer;
    char *dir;
    leat_summary_writer *writer, *got; /* got: the writer, if it is from the cache */
    leat_out step;
} step_counter;

static leat_status counter_begin(leat_hook *h, leat_graph *g)
{
    step_counter *p = (step_counter *)h;
    LEAT_TRY(leat_hook_step(g, "StepCounterHook", &p->step));
    if (p->writer || !p->dir)
        return NULL;
    p->writer = p->got = leat_writer_get(p->dir);
    return NULL;
}

static leat_status counter_before(leat_hook *h, leat_run_context *c)
{
    leat_run_fetch(c, ((step_counter *)h)->step);
    return NULL;
}

static leat_status counter_after(leat_hook *h, leat_run_context *c)
{
    step_counter *p = (step_counter *)h;
    int64_t step = (int64_t)leat_tensor_at(leat_run_value(c, p->step), 0), steps = 0;
    double secs = 0;
    if (!leat_timer_due(&p->timer, step + 1))
        return NULL;
    LEAT_TRY(leat_read_step(leat_run_session(c), p->step, &step));
    if (!leat_timer_due(&p->timer, step) || !leat_timer_mark(&p->timer, step, &secs, &steps))
        return NULL;
    double rate = (double)steps / (secs > 0 ? secs : 1e-9);
    LEAT_LOG(INFO, "global_step/sec: %g", rate);
    if (p->writer)
        leat_writer_tell(
            p->writer, leat_summary_write_scalar(p->writer, "global_step/sec", (float)rate, step));
    return NULL;
}

static void counter_free(leat_hook *h)
{
    step_counter *p = (step_counter *)h;
    leat_writer_put(p->got);
    free(p->dir);
    free(p);
}

leat_hook *leat_step_counter_hook_new(const leat_step_counter_options *o)
{
    static const leat_hook_ops ops = {.name = "StepCounterHook",
                                      .begin = counter_begin,
                                      .before_run = counter_before,
                                      .after_run = counter_after,
                                      .free = counter_free};
    step_counter *p = leat_hook_new(sizeof(*p), &ops);
    p->timer.every_secs = leat_given_or(&o->given, "every_n_secs", o->every_n_secs, -1);
    p->timer.every_steps = p->timer.every_secs >= 0 ? -1
                                                    : leat_given_int_or(&o->given, "every_n_steps",
                                                                        o->every_n_steps, 100);
    p->dir = o->output_dir ? leat_xstrdup(o->output_dir) : NULL;
    p->writer = o->writer;
    return &p->base;
}

/* ---- Waiting for a step ---- */

typedef struct step_waiter {
    leat_hook base;
    int64_t until;
    bool started;
    leat_out step;
} step_waiter;

static leat_status waiter_begin(leat_hook *h, leat_graph *g)
{
    return leat_hook_step(g, "_GlobalStepWaiterHook", &((step_waiter *)h)->step);
}

static leat_status waiter_before(leat_hook *h, leat_run_context *c)
{
    step_waiter *p = (step_waiter *)h;
    double began = leat_now(), log_at = began, nap = 0.005;
    for (int64_t step = 0; !p->started && p->until > 0;) {
        LEAT_TRY(leat_read_step(leat_run_session(c), p->step, &step));
        double now = leat_now();
        if (step >= p->until)
            break;
        LEAT_REQUIRE(now - began < c->max_wait_secs, DEADLINE_EXCEEDED,
                     "Waited %.0f secs for global step %" PRId64 " before starting training, but "
                     "it is %" PRId64 ". Check that the chief and the workers before this one "
                     "train, or set max_wait_secs higher",
                     now - began, p->until, step);
        LEAT_REQUIRE(!leat_is_cancelled(c->stop_request), CANCELLED,
                     "Asked to stop, after %.1f secs of waiting for global step %" PRId64,
                     now - began, p->until);
        if (now >= log_at) {
            LEAT_LOG(INFO,
                     "Waiting for global step %" PRId64
                     " before starting training. Current step is %" PRId64 ".",
                     p->until, step);
            log_at = now + 10;
        }
        leat_nap(nap);
        nap = nap < 0.4 ? nap * 1.5 : 0.5;
    }
    p->started = true;
    return NULL;
}

leat_hook *leat_global_step_waiter_hook(int64_t wait_until_step)
{
    static const leat_hook_ops ops = {.name = "GlobalStepWaiterHook",
                                      .begin = waiter_begin,
                                      .before_run = waiter_before,
                                      .free = free_plain};
    step_waiter *p = leat_hook_new(sizeof(*p), &ops);
    p->until = wait_until_step;
    return &p->base;
}
