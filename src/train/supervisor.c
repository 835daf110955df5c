/* supervisor.c -- a session, and threads that save the model, write summaries and count steps while
 * the program runs it. Like TensorFlow's Supervisor, but it polls more often whether the model is
 * ready, and synchronous replicas start with the session. */
#include <leat/monitored.h>

#include <inttypes.h>
#include <pthread.h>
#include <stdlib.h>

#include "core/alloc.h"
#include "core/log.h"
#include "core/strbuf.h"
#include "graph/given.h"
#include "graph/graph_int.h"
#include "runtime/session_int.h"
#include "train/hook_int.h"
#include "train/session_manager.h"
#include "train/sync_run.h"

struct leat_supervisor {
    leat_object object;
    leat_graph *g;
    leat_session_maker maker;
    leat_supervisor_options o;
    bool chief;
    char *logdir, *path, *target;
    leat_saver *saver; /* made by leat_supervisor_open, or NULL */
    leat_summary_writer *writer;
    leat_out step; /* a NULL node: none */
    leat_out tokens;
    leat_session *session;
    leat_coordinator *coord;
    leat_sync_run *sync;
    int64_t counted; /* the global step at the last count */
    double counted_at;
    double save_at; /* when the next checkpoint is due */
    /* Held while a checkpoint is saved, by the service or by the program: guards the saver. */
    pthread_mutex_t saving;
};

/* ---- Opening ---- */

static void copy_options(leat_supervisor *sv, const leat_supervisor_options *o)
{
    sv->o = *o;
    sv->chief = o->is_chief;
    sv->maker.g = sv->g;
    if (o->config)
        sv->maker.config = *o->config;
    if (o->scaffold)
        sv->maker.scaffold = *o->scaffold;
    const leat_given *given = &o->given;
    sv->maker.max_wait_secs = leat_given_or(given, "max_wait_secs", o->max_wait_secs, 7200);
    sv->maker.stop = o->stop;
    sv->maker.discard_live = o->discard_live;
    sv->o.stop_grace_secs = leat_given_or(given, "stop_grace_secs", o->stop_grace_secs, 120);
    sv->o.save_model_secs = leat_given_or(given, "save_model_secs", o->save_model_secs, 600);
    sv->o.save_summaries_secs =
        leat_given_or(given, "save_summaries_secs", o->save_summaries_secs, 120);
    if (o->logdir) {
        leat_strbuf path = {0};
        leat_strbuf_printf(&path, "%s/%s", o->logdir,
                           o->checkpoint_basename ? o->checkpoint_basename : "model.ckpt");
        sv->path = leat_strbuf_take(&path);
        sv->logdir = leat_xstrdup(o->logdir);
        sv->maker.checkpoint_dir = sv->logdir;
    }
}

static leat_status build(leat_supervisor *sv)
{
    leat_sync *y = leat_sync_of(sv->g);
    LEAT_TRY(leat_graph_status(sv->g));
    leat_status_free(leat_hook_step(sv->g, "Supervisor", &sv->step));
    if (y)
        sv->tokens = leat_sync_tokens(y, y->aggregate);
    if (sv->logdir && !sv->maker.scaffold.saver)
        sv->maker.scaffold.saver = sv->saver = leat_saver_new(sv->g, .allow_empty = true);
    return leat_scaffold_finish(sv->g, &sv->maker.scaffold);
}

leat_status leat_supervisor_open_with(leat_graph *g, const leat_supervisor_options *o,
                                      leat_supervisor **sv_out)
{
    LEAT_CHECK(GRAPH, g);
    leat_supervisor *sv = leat_new_object(leat_supervisor, SUPERVISOR);
    sv->g = g;
    pthread_mutex_init(&sv->saving, NULL);
    copy_options(sv, o);
    sv->coord = leat_coordinator_new();
    leat_loc outer = leat_at_enter(g, o->given.at);
    leat_status e = build(sv);
    leat_at_leave(g, outer);
    if (e) {
        leat_status_free(leat_supervisor_close(sv));
        return e;
    }
    *sv_out = sv;
    return NULL;
}

/* ---- Services: each is called at an interval, in a thread of its own ---- */

/* Called every SAVE_POLL_MS or more often: saves when a checkpoint is due, and when a task is about
 * to end. */
enum { SAVE_POLL_MS = 100 };

static leat_status save_now(leat_supervisor *sv, const char *ending, char **path_out)
{
    int64_t step = -1;
    if (sv->step.node)
        LEAT_TRY(leat_read_step(sv->session, sv->step, &step));
    leat_log_ending(ending, sv->path, step);
    LEAT_LOG(INFO, "Saving checkpoint to path %s", sv->path);
    pthread_mutex_lock(&sv->saving);
    leat_status e =
        leat_saver_save(sv->maker.scaffold.saver, sv->session, sv->path, step, path_out);
    pthread_mutex_unlock(&sv->saving);
    if (!e && sv->writer)
        leat_writer_tell(sv->writer, leat_summary_write_mark(sv->writer, LEAT_SESSION_CHECKPOINT,
                                                             sv->path, step < 0 ? 0 : step));
    return e;
}

static leat_status save_model(void *arg)
{
    leat_supervisor *sv = arg;
    const char *ending = leat_session_ending(sv->session);
    double now = leat_now();
    if (!ending && now < sv->save_at)
        return NULL;
    sv->save_at = now + sv->o.save_model_secs;
    LEAT_TRY(save_now(sv, ending, NULL));
    if (ending)
        leat_session_let_go(sv->session);
    return NULL;
}

static leat_status save_summaries(void *arg)
{
    leat_supervisor *sv = arg;
    leat_tensor *t = NULL;
    LEAT_TRY(leat_session_run(sv->session, LEAT_NO_FEED,
                              LEAT_FETCH({sv->maker.scaffold.summary_op, &t}), LEAT_NO_TARGET));
    leat_status e = leat_supervisor_summary(sv, t, -1);
    leat_tensor_unref(t);
    return e;
}

static leat_status count_steps(void *arg)
{
    leat_supervisor *sv = arg;
    int64_t step = 0;
    double now = leat_now();
    LEAT_TRY(leat_read_step(sv->session, sv->step, &step));
    double rate = (double)(step - sv->counted) / (now > sv->counted_at ? now - sv->counted_at : 1);
    bool first = sv->counted_at == 0;
    sv->counted = step;
    sv->counted_at = now;
    if (first)
        return NULL;
    LEAT_LOG(INFO, "%s/sec: %g", leat_variable_name(sv->step), rate);
    leat_writer_tell(sv->writer,
                     leat_summary_write_scalar(sv->writer, "global_step/sec", (float)rate, step));
    return NULL;
}

static leat_status start_services(leat_supervisor *sv)
{
    int64_t summaries_ms = (int64_t)(sv->o.save_summaries_secs * 1000);
    LEAT_TRY(leat_start_queue_runners(sv->g, sv->session, sv->coord));
    if (!sv->chief || !sv->logdir)
        return NULL;
    if (!sv->writer)
        sv->writer = leat_writer_get(sv->logdir);
    leat_writer_tell(sv->writer, leat_summary_write_graph(sv->writer, sv->g, 0));
    leat_writer_tell(sv->writer,
                     leat_summary_write_meta_graph(sv->writer, sv->g, sv->maker.scaffold.saver, 0));
    leat_writer_tell(sv->writer, leat_summary_write_mark(sv->writer, LEAT_SESSION_START, NULL, 0));
    if (sv->o.save_summaries_secs > 0 && sv->maker.scaffold.summary_op.node)
        LEAT_TRY(leat_coordinator_loop(sv->coord, "summaries", summaries_ms, save_summaries, sv));
    if (sv->o.save_summaries_secs > 0 && sv->step.node)
        LEAT_TRY(leat_coordinator_loop(sv->coord, "step counter", summaries_ms, count_steps, sv));
    if (sv->o.save_model_secs <= 0)
        return NULL;
    int64_t ms = (int64_t)(sv->o.save_model_secs * 1000);
    leat_session_hold(sv->session);
    sv->save_at = 0;
    return leat_coordinator_loop(sv->coord, "checkpoints", ms < SAVE_POLL_MS ? ms : SAVE_POLL_MS,
                                 save_model, sv);
}

/* ---- The session ---- */

/* Ends the threads that use the session, and closes it. */
static leat_status drop(leat_supervisor *sv)
{
    leat_sync_stop(sv->sync);
    sv->sync = NULL;
    leat_coordinator_request_stop(sv->coord, NULL);
    leat_status e =
        leat_coordinator_join(sv->coord, .grace_ms = (int64_t)(sv->o.stop_grace_secs * 1000),
                              .ignore_live_threads = true);
    if (sv->session)
        leat_session_close(sv->session);
    sv->session = NULL;
    return e;
}

static leat_status start(leat_supervisor *sv)
{
    LEAT_TRY(sv->chief ? leat_session_prepare(&sv->maker, &sv->session)
                       : leat_session_wait(&sv->maker, &sv->session));
    sv->maker.again = true;
    if (leat_sync_of(sv->g))
        LEAT_TRY(leat_sync_start(
            leat_sync_of(sv->g), sv->session, sv->coord,
            &(leat_sync_start_options){
                .chief = sv->chief, .tokens = sv->tokens, .max_wait_secs = sv->maker.max_wait_secs},
            &sv->sync));
    return sv->o.no_services ? NULL : start_services(sv);
}

leat_status leat_supervisor_session(leat_supervisor *sv, const char *master,
                                    leat_session **session_out)
{
    LEAT_CHECK(SUPERVISOR, sv);
    if (sv->session) {
        leat_status_free(drop(sv));
        leat_coordinator_clear_stop(sv->coord);
    }
    free(sv->target);
    sv->target = leat_xstrdup(master ? master : "");
    sv->maker.config.target = sv->target;
    sv->chief = sv->o.is_chief || !sv->target[0];
    sv->counted_at = 0;
    leat_status e = start(sv);
    if (e) {
        leat_status_free(drop(sv));
        leat_coordinator_clear_stop(sv->coord);
        return e;
    }
    *session_out = sv->session;
    return NULL;
}

/* ---- While the session runs ---- */

bool leat_supervisor_should_stop(leat_supervisor *sv)
{
    if (!LEAT_USABLE(SUPERVISOR, sv))
        return false;
    return leat_coordinator_should_stop(sv->coord);
}

void leat_supervisor_request_stop(leat_supervisor *sv, leat_status s)
{
    if (!LEAT_USABLE(SUPERVISOR, sv))
        return;
    leat_coordinator_request_stop(sv->coord, s);
}

bool leat_supervisor_wait_for_stop(leat_supervisor *sv, int64_t timeout_ms)
{
    if (!LEAT_USABLE(SUPERVISOR, sv))
        return false;
    return leat_coordinator_wait_for_stop(sv->coord, timeout_ms);
}

leat_status leat_supervisor_loop(leat_supervisor *sv, int64_t interval_ms, leat_thread_fn fn,
                                 void *arg)
{
    LEAT_CHECK(SUPERVISOR, sv);
    return leat_coordinator_loop(sv->coord, "loop", interval_ms, fn, arg);
}

leat_coordinator *leat_supervisor_coordinator(leat_supervisor *sv)
{
    if (!LEAT_USABLE(SUPERVISOR, sv))
        return NULL;
    return sv->coord;
}

leat_status leat_supervisor_step(leat_supervisor *sv, int64_t *step_out)
{
    LEAT_CHECK(SUPERVISOR, sv);
    LEAT_REQUIRE(sv->session && sv->step.node, FAILED_PRECONDITION,
                 "There is no session yet, or the graph has no global step");
    return leat_read_step(sv->session, sv->step, step_out);
}

leat_status leat_supervisor_summary(leat_supervisor *sv, const leat_tensor *summary, int64_t step)
{
    LEAT_CHECK(SUPERVISOR, sv);
    LEAT_REQUIRE(sv->writer, FAILED_PRECONDITION,
                 "Writing a summary requires a summary writer: the chief has one, with a logdir.");
    if (step < 0 && sv->step.node)
        LEAT_TRY(leat_supervisor_step(sv, &step));
    leat_writer_tell(sv->writer, leat_summary_write(sv->writer, summary, step < 0 ? 0 : step));
    return NULL;
}

leat_status leat_supervisor_save(leat_supervisor *sv, char **path_out)
{
    LEAT_CHECK(SUPERVISOR, sv);
    LEAT_REQUIRE(sv->chief && sv->path && sv->session, FAILED_PRECONDITION,
                 "Saving a checkpoint requires a session and a logdir, and is done by the chief.");
    return save_now(sv, NULL, path_out);
}

leat_status leat_supervisor_close(leat_supervisor *sv)
{
    if (!sv)
        return NULL;
    LEAT_CHECK(SUPERVISOR, sv);
    if (sv->sync)
        leat_sync_finish(sv->sync);
    leat_status e = drop(sv);
    if (sv->writer)
        leat_writer_tell(sv->writer,
                         leat_summary_write_mark(sv->writer, LEAT_SESSION_STOP, NULL, 0));
    leat_writer_put(sv->writer);
    leat_saver_free(sv->saver);
    leat_coordinator_free(sv->coord);
    pthread_mutex_destroy(&sv->saving);
    free(sv->logdir);
    free(sv->path);
    free(sv->target);
    leat_object_free(&sv->object);
    return e;
}
