/* hook.c -- parts that hooks share: the context of a run, timers, the global step. */
#include <inttypes.h>
#include <stdlib.h>

#include "core/alloc.h"
#include "core/log.h"
#include "train/hook_int.h"
#include "train/session_manager.h"
#include "train/train_int.h"

void *leat_hook_new(size_t size, const leat_hook_ops *ops)
{
    leat_hook *h = leat_xcalloc(1, size);
    h->ops = ops;
    return h;
}

void leat_hook_free(leat_hook *h)
{
    if (h && h->ops->free)
        h->ops->free(h);
}

/* ---- The context of a run ---- */

static bool same(leat_out a, leat_out b)
{
    return a.node == b.node && a.index == b.index;
}

void leat_run_fetch(leat_run_context *c, leat_out x)
{
    for (int i = 0; i < c->n_fetches; i++)
        if (same(c->fetches[i].x, x))
            return;
    leat_grow(c->fetches, c->n_fetches, c->cap_fetches);
    c->fetches[c->n_fetches++] = (leat_fetch){.x = x};
}

const leat_tensor *leat_run_value(const leat_run_context *c, leat_out x)
{
    for (int i = 0; i < c->n_fetches; i++)
        if (same(c->fetches[i].x, x))
            return c->fetches[i].value ? *c->fetches[i].value : NULL;
    return NULL;
}

leat_status leat_run_feed(leat_run_context *c, leat_out x, const leat_tensor *value)
{
    for (int i = 0; i < c->n_feeds; i++)
        if (same(c->feeds[i].x, x))
            return leat_error(FAILED_PRECONDITION, "%s Conflict(s): %s",
                              i < c->n_user_feeds
                                  ? "Same tensor is fed by a SessionRunHook and user."
                                  : "Same tensor is fed by two hooks.",
                              x.node->name);
    leat_grow(c->feeds, c->n_feeds, c->cap_feeds);
    c->feeds[c->n_feeds++] = (leat_feed){x, leat_tensor_ref(value)};
    return NULL;
}

leat_session *leat_run_session(const leat_run_context *c)
{
    return c->session;
}

void leat_run_trace(leat_run_context *c)
{
    c->traced = true;
}

const leat_metadata *leat_run_metadata(const leat_run_context *c)
{
    return c->metadata;
}

void leat_run_request_stop(leat_run_context *c)
{
    c->stop = true;
}

void leat_run_context_clear(leat_run_context *c)
{
    for (int i = c->n_user_feeds; i < c->n_feeds; i++)
        leat_tensor_unref((leat_tensor *)c->feeds[i].value);
    for (int i = c->n_user_fetches; i < c->n_fetches && c->values; i++) {
        leat_tensor_unref(c->values[i]);
        c->values[i] = NULL;
    }
    c->n_feeds = c->n_user_feeds = c->n_fetches = c->n_user_fetches = 0;
    leat_metadata_free(c->metadata);
    c->metadata = NULL;
    c->traced = false;
}

void leat_run_context_release(leat_run_context *c)
{
    leat_run_context_clear(c);
    free(c->feeds);
    free(c->fetches);
    free(c->values);
}

/* ---- Timers ---- */

leat_status leat_timer_check(const leat_timer *t, const char *hook)
{
    LEAT_REQUIRE(t->every_secs >= 0 || t->every_steps >= 0, INVALID_ARGUMENT,
                 "%s: one of .save_secs and .save_steps must be given.", hook);
    LEAT_REQUIRE(t->every_secs < 0 || t->every_steps < 0, INVALID_ARGUMENT,
                 "%s: only one of .save_secs and .save_steps can be given.", hook);
    return NULL;
}

bool leat_timer_due(const leat_timer *t, int64_t step)
{
    if (!t->began)
        return true;
    if (step == t->last_step)
        return false;
    return (t->every_secs >= 0 && leat_now() >= t->last_time + t->every_secs) ||
           (t->every_steps >= 0 && step >= t->last_step + t->every_steps);
}

bool leat_timer_mark(leat_timer *t, int64_t step, double *secs_out, int64_t *steps_out)
{
    double now = leat_now();
    bool again = t->began;
    if (again) {
        *secs_out = now - t->last_time;
        *steps_out = step - t->last_step;
    }
    t->began = true;
    t->last_time = now;
    t->last_step = step;
    return again;
}

/* ---- The global step ---- */

leat_status leat_hook_step(leat_graph *g, const char *hook, leat_out *step_out)
{
    int n;
    leat_out *v = leat_collection(g, LEAT_GLOBAL_STEP, NULL, &n);
    bool there = n > 0 || leat_graph_find(g, "global_step");
    free(v);
    LEAT_REQUIRE(there, INVALID_ARGUMENT, "Global step should be created to use %s.", hook);
    *step_out = leat_global_step(g);
    return leat_graph_status(g);
}

leat_status leat_read_step(leat_session *s, leat_out step, int64_t *value_out)
{
    leat_tensor *t = NULL;
    LEAT_TRY(leat_session_run(s, LEAT_NO_FEED, LEAT_FETCH({step, &t}), LEAT_NO_TARGET));
    *value_out = (int64_t)leat_tensor_at(t, 0);
    leat_tensor_unref(t);
    return NULL;
}

/* ---- Tasks that are about to end ---- */

void leat_log_ending(const char *task, const char *path, int64_t step)
{
    if (task)
        LEAT_LOG(WARNING, "%s is about to end: the model is saved first, as %s-%" PRId64, task,
                 path, step);
}
