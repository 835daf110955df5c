/* monitored.c -- the session of a training program: runs with hooks around them, which are repeated
 * on a new session when a task is lost. */
#include <leat/monitored.h>

#include <stdlib.h>
#include <string.h>

#include "core/alloc.h"
#include "core/log.h"
#include "graph/given.h"
#include "graph/graph_int.h"
#include "train/monitored_int.h"
#include "train/sync_run.h"

/* ---- Opening ---- */

static void add_hook(leat_monitored *ms, leat_hook *h)
{
    leat_grow(ms->hooks, ms->n_hooks, ms->cap_hooks);
    ms->hooks[ms->n_hooks++] = h;
}

static void add_hooks(leat_monitored *ms, leat_hook *const *list)
{
    for (; list && *list; list++)
        add_hook(ms, *list);
}

static void free_hooks(leat_hook *const *list)
{
    for (; list && *list; list++)
        leat_hook_free(*list);
}

/* The hooks of the chief, which write files. An interval of 0 or below means never. */
static void make_writers(leat_monitored *ms, const leat_monitored_options *o)
{
    const char *dir = o->summary_dir ? o->summary_dir : o->checkpoint_dir;
    const leat_given *given = &o->given;
    int64_t count_steps =
        leat_given_int_or(given, "log_step_count_steps", o->log_step_count_steps, 100);
    if (count_steps > 0)
        add_hook(ms, leat_step_counter_hook(.every_n_steps = count_steps, .output_dir = dir));
    int64_t steps = leat_given_int_or(given, "save_summaries_steps", o->save_summaries_steps,
                                      o->save_summaries_secs > 0 ? -1 : 100);
    if (dir && (o->save_summaries_secs > 0 || steps > 0)) {
        leat_hook *h =
            leat_summary_hook(.save_steps = steps > 0 ? steps : -1,
                              .save_secs = o->save_summaries_secs > 0 ? o->save_summaries_secs : -1,
                              .output_dir = dir);
        leat_summary_hook_use(h, &ms->maker.scaffold);
        add_hook(ms, h);
    }
    double secs = leat_given_or(given, "save_checkpoint_secs", o->save_checkpoint_secs,
                                o->save_checkpoint_steps > 0 ? -1 : 600);
    if (o->checkpoint_dir && (o->save_checkpoint_steps > 0 || secs > 0)) {
        ms->checkpointer =
            leat_checkpoint_hook(.checkpoint_dir = o->checkpoint_dir,
                                 .save_secs = secs > 0 ? secs : -1,
                                 .save_steps =
                                     o->save_checkpoint_steps > 0 ? o->save_checkpoint_steps : -1,
                                 .saver = ms->maker.scaffold.saver);
        add_hook(ms, ms->checkpointer);
    }
}

/* Hooks in TensorFlow's order; but that of synchronous replicas is first, so that rounds have ended
 * when the end functions of the other hooks are called. */
static void make_hooks(leat_monitored *ms, const leat_monitored_options *o)
{
    if (leat_sync_of(ms->g))
        add_hook(ms, leat_sync_hook_new(ms->chief, ms->maker.max_wait_secs, &ms->cancellation));
    if (ms->chief)
        add_hooks(ms, o->chief_only_hooks);
    else
        free_hooks(o->chief_only_hooks);
    if (ms->chief)
        make_writers(ms, o);
    int64_t num_steps = leat_given_int_or(&o->given, "num_steps", o->num_steps, -1);
    int64_t last_step = leat_given_int_or(&o->given, "last_step", o->last_step, -1);
    if (last_step >= 0 || num_steps >= 0)
        add_hook(ms, leat_stop_at_step_hook(.num_steps = num_steps, .last_step = last_step));
    add_hooks(ms, o->hooks);
}

static leat_status begin(leat_monitored *ms)
{
    LEAT_TRY(leat_graph_status(ms->g));
    for (int i = 0; i < ms->n_hooks; i++)
        if (ms->hooks[i]->ops->begin)
            LEAT_TRY(ms->hooks[i]->ops->begin(ms->hooks[i], ms->g));
    /* All variables exist now. */
    if (ms->checkpoint_dir && !ms->maker.scaffold.saver)
        ms->maker.scaffold.saver = ms->saver = leat_saver_new(ms->g);
    if (ms->checkpointer)
        leat_checkpoint_hook_use(ms->checkpointer, ms->saver);
    return leat_scaffold_finish(ms->g, &ms->maker.scaffold);
}

static void release(leat_monitored *ms)
{
    for (int i = 0; i < ms->n_hooks; i++)
        leat_hook_free(ms->hooks[i]);
    leat_run_context_release(&ms->run);
    leat_saver_free(ms->saver);
    free(ms->checkpoint_dir);
    leat_cancellation_free(ms->cancellation);
    free(ms->hooks);
    free(ms->target);
    leat_object_free(&ms->object);
}

leat_status leat_monitored_open_with(leat_graph *g, const leat_monitored_options *o,
                                     leat_monitored **ms_out)
{
    leat_status bad = leat_object_check(g, LEAT_OBJECT_GRAPH, __func__);
    if (bad) {
        free_hooks(o->hooks);
        free_hooks(o->chief_only_hooks);
        return bad;
    }
    leat_monitored *ms = leat_new_object(leat_monitored, MONITORED);
    ms->g = g;
    ms->target = leat_xstrdup(o->master ? o->master : "");
    ms->chief = o->is_chief || !ms->target[0];
    ms->stop_grace_secs = leat_given_or(&o->given, "stop_grace_secs", o->stop_grace_secs, 120);
    ms->maker.g = g;
    if (o->config)
        ms->maker.config = *o->config;
    ms->maker.config.target = ms->target;
    if (o->scaffold)
        ms->maker.scaffold = *o->scaffold;
    ms->maker.max_wait_secs = leat_given_or(&o->given, "max_wait_secs", o->max_wait_secs, 7200);
    ms->maker.stop = o->stop;
    ms->maker.discard_live = o->discard_live;
    ms->run.max_wait_secs = ms->maker.max_wait_secs;
    ms->run.stop_request = o->stop;
    ms->cancellation = leat_cancellation_new();
    if (o->checkpoint_dir && ms->chief) {
        ms->checkpoint_dir = leat_xstrdup(o->checkpoint_dir);
        ms->maker.checkpoint_dir = ms->checkpoint_dir;
    }
    make_hooks(ms, o);
    leat_loc outer = leat_at_enter(g, o->given.at);
    leat_status e = begin(ms);
    leat_at_leave(g, outer);
    if (!e)
        e = leat_monitored_create(ms);
    if (e) {
        release(ms);
        return e;
    }
    *ms_out = ms;
    return NULL;
}

/* ---- Running ---- */

static leat_status call_before(leat_monitored *ms, leat_feeds feeds, leat_fetches fetches)
{
    leat_run_context *c = &ms->run;
    for (int i = 0; i < feeds.n; i++) {
        leat_grow(c->feeds, c->n_feeds, c->cap_feeds);
        c->feeds[c->n_feeds++] = feeds.v[i];
        c->n_user_feeds = c->n_feeds;
    }
    for (int i = 0; i < fetches.n; i++) {
        leat_grow(c->fetches, c->n_fetches, c->cap_fetches);
        c->fetches[c->n_fetches++] = fetches.v[i];
        c->n_user_fetches = c->n_fetches;
    }
    for (int i = 0; i < ms->n_hooks; i++)
        if (ms->hooks[i]->ops->before_run)
            LEAT_TRY(ms->hooks[i]->ops->before_run(ms->hooks[i], c));
    if (c->n_fetches > c->cap_values) {
        c->values = leat_xrealloc(c->values, sizeof(*c->values) * (size_t)c->n_fetches);
        memset(c->values + c->cap_values, 0,
               sizeof(*c->values) * (size_t)(c->n_fetches - c->cap_values));
        c->cap_values = c->n_fetches;
    }
    for (int i = c->n_user_fetches; i < c->n_fetches; i++)
        c->fetches[i].value = &c->values[i];
    return NULL;
}

static leat_status run_with_hooks(leat_monitored *ms, leat_feeds feeds, leat_fetches fetches,
                                  leat_targets targets)
{
    leat_run_context *c = &ms->run;
    leat_run_options o = {.cancellation = ms->cancellation};
    LEAT_TRY(call_before(ms, feeds, fetches));
    if (c->traced)
        o.metadata_out = &c->metadata;
    LEAT_TRY(leat_session_run_with(ms->session, &o, (leat_feeds){c->feeds, c->n_feeds},
                                   (leat_fetches){c->fetches, c->n_fetches}, targets));
    for (int i = 0; i < ms->n_hooks; i++)
        if (ms->hooks[i]->ops->after_run)
            LEAT_TRY(ms->hooks[i]->ops->after_run(ms->hooks[i], c));
    ms->stop |= c->stop;
    return NULL;
}

/* If the error is a consequence of an error in one of the session's threads, gives that one. */
static leat_status root_cause(leat_monitored *ms, leat_status e)
{
    if (!e || leat_is_preemption(e))
        return e;
    leat_status cause = leat_coordinator_status(ms->coord);
    if (!cause || (!leat_is_preemption(cause) && leat_status_code(e) != LEAT_CANCELLED)) {
        leat_status_free(cause);
        return e;
    }
    leat_status_free(e);
    return cause;
}

/* After UNAVAILABLE or ABORTED: closes the session; the next run, or this one's repetition, makes
 * another. */
static void give_up(leat_monitored *ms, leat_status e)
{
    LEAT_LOG(INFO,
             "A task went away, or was replaced. The session is closed, and a new one made: %s",
             leat_status_message(e));
    leat_status_free(leat_monitored_drop(ms));
    leat_cancellation_free(ms->cancellation);
    ms->cancellation = leat_cancellation_new();
}

/* Whether training should end because of a hook or thread; options.stop is checked before a run
 * instead. */
static bool has_stopped(leat_monitored *ms)
{
    if (ms->stop)
        return true;
    if (!ms->session || !leat_coordinator_should_stop(ms->coord))
        return false;
    leat_status e = leat_coordinator_status(ms->coord);
    bool preempted = leat_is_preemption(e);
    if (preempted)
        give_up(ms, e); /* the next run makes another session */
    leat_status_free(e);
    return !preempted;
}

leat_status leat_monitored_run(leat_monitored *ms, leat_feeds feeds, leat_fetches fetches,
                               leat_targets targets)
{
    LEAT_CHECK(MONITORED, ms);
    double failing = 0;
    LEAT_REQUIRE(!has_stopped(ms), FAILED_PRECONDITION,
                 "Run called even after should_stop requested.");
    for (;;) {
        leat_status e = ms->session ? NULL : leat_monitored_create(ms);
        if (!e)
            e = root_cause(ms, run_with_hooks(ms, feeds, fetches, targets));
        leat_run_context_clear(&ms->run);
        double now = leat_now();
        if (!e || !leat_is_preemption(e) || leat_is_cancelled(ms->maker.stop) ||
            (failing > 0 && now - failing > ms->maker.max_wait_secs)) {
            ms->failed |= e && leat_status_code(e) != LEAT_OUT_OF_RANGE;
            ms->stop |= e != NULL;
            return e;
        }
        failing = failing > 0 ? failing : now;
        give_up(ms, e);
        leat_status_free(e);
    }
}

bool leat_monitored_should_stop(leat_monitored *ms)
{
    if (!LEAT_USABLE(MONITORED, ms))
        return false;
    return leat_is_cancelled(ms->maker.stop) || has_stopped(ms);
}

leat_session *leat_monitored_session(leat_monitored *ms)
{
    if (!LEAT_USABLE(MONITORED, ms))
        return NULL;
    return ms->session;
}

leat_coordinator *leat_monitored_coordinator(leat_monitored *ms)
{
    if (!LEAT_USABLE(MONITORED, ms))
        return NULL;
    return ms->coord;
}

leat_status leat_monitored_close(leat_monitored *ms)
{
    leat_status e = NULL;
    if (!ms)
        return NULL;
    LEAT_CHECK(MONITORED, ms);
    for (int i = 0; i < ms->n_hooks && ms->session && !ms->failed && !e; i++)
        if (ms->hooks[i]->ops->end)
            e = ms->hooks[i]->ops->end(ms->hooks[i], ms->session);
    leat_status joined = leat_monitored_drop(ms);
    if (ms->failed) { /* a run has already returned the error */
        leat_status_free(joined);
        joined = NULL;
    }
    release(ms);
    return leat_status_first(e, joined);
}
