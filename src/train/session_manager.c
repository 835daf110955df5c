/* session_manager.c -- sessions on which the model is ready. Like TensorFlow's SessionManager, but
 * waits poll more often, log what they wait for, and end at a deadline with a message that names
 * what is missing. */
#include "train/session_manager.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "core/alloc.h"
#include "core/log.h"
#include "core/strbuf.h"
#include "io/checkpoint_state.h"
#include "io/path.h"
#include "train/hook_int.h"
#include "train/saver.h"

double leat_now(void)
{
    struct timespec t;
    clock_gettime(CLOCK_MONOTONIC, &t);
    return (double)t.tv_sec + (double)t.tv_nsec * 1e-9;
}

void leat_nap(double secs)
{
    if (secs <= 0)
        return;
    struct timespec t = {(time_t)secs, (long)((secs - (double)(time_t)secs) * 1e9)};
    nanosleep(&t, NULL);
}

/* ---- One wait ---- */

typedef struct wait {
    const leat_session_maker *m;
    double began, deadline, log_at, nap;
    const char *role; /* "chief", "worker" */
} wait;

static wait wait_begin(const leat_session_maker *m, const char *role)
{
    double now = leat_now();
    return (wait){.m = m,
                  .began = now,
                  .deadline = now + m->max_wait_secs,
                  .log_at = now + 2,
                  .nap = 0.005,
                  .role = role};
}

static int64_t left_ms(const wait *w)
{
    double secs = w->deadline - leat_now();
    return (int64_t)((secs > 0.001 ? secs : 0.001) * 1000) + 1;
}

static leat_run_options run_options(const wait *w)
{
    return (leat_run_options){.timeout_ms = left_ms(w), .cancellation = w->m->stop};
}

static const char *place_of(const wait *w)
{
    const char *target = w->m->config.target;
    return target && *target ? target : "this process";
}

/* Sleeps a little longer each time. Fails at the deadline. What is missing is given by an error, or
 * by the model's ready op. */
static leat_status wait_more(wait *w, leat_status e, const char *missing)
{
    double now = leat_now();
    const char *why = e ? leat_status_message(e) : missing;
    if (now >= w->deadline)
        return leat_error(DEADLINE_EXCEEDED,
                          "Session was not ready after waiting %.0f secs. The %s on %s was waiting "
                          "for this: %s. %s, or set max_wait_secs higher",
                          w->m->max_wait_secs, w->role, place_of(w), why,
                          e ? "Check that the task runs and can be reached"
                            : "The chief initialises the model: check that it runs, with the same "
                              "cluster and variables");
    if (now >= w->log_at) {
        LEAT_LOG(INFO, "Waiting for model to be ready, for %.0f s of at most %.0f s: %s",
                 now - w->began, w->m->max_wait_secs, why);
        w->log_at = now + 10;
    }
    leat_nap(w->nap < w->deadline - now ? w->nap : w->deadline - now);
    w->nap = w->nap < 0.25 ? w->nap * 1.5 : 0.4;
    return NULL;
}

static leat_status open_session(const wait *w, leat_session **out)
{
    leat_session_options o = w->m->config;
    const char *const *tasks = NULL;
    o.open_timeout_ms = left_ms(w);
    o.cancellation = w->m->stop;
    if (!o.device_filters && o.target && o.target[0])
        o.device_filters = tasks = leat_graph_tasks(w->m->g);
    leat_status e = leat_session_open_with(w->m->g, &o, out);
    leat_graph_tasks_free(tasks);
    return e;
}

/* Whether waiting can help after this error. */
static bool passing(leat_status s)
{
    return leat_is_preemption(s) || leat_status_code(s) == LEAT_DEADLINE_EXCEEDED;
}

/* Ends the wait with an error made from e, the last failure; takes e. */
static leat_status stopped(const wait *w, leat_status e, const char *missing)
{
    leat_status s = leat_error(CANCELLED,
                               "Asked to stop, after the %s on %s had waited for %.1f secs for "
                               "this: %s",
                               w->role, place_of(w), leat_now() - w->began,
                               e ? leat_status_message(e) : missing);
    leat_status_free(e);
    return s;
}

/* ---- Whether the model is ready ---- */

static char *names_text(const leat_tensor *t)
{
    int64_t n = leat_tensor_dtype(t) == LEAT_STRING ? leat_tensor_count(t) : 0;
    const leat_string *v = leat_tensor_data(t);
    leat_strbuf b = {0};
    if (n == 0)
        return NULL;
    leat_strbuf_puts(&b, "Variables not initialized: ");
    for (int64_t i = 0; i < n; i++) {
        leat_strbuf_puts(&b, i ? ", " : "");
        leat_strbuf_add(&b, v[i].data, v[i].size);
    }
    return leat_strbuf_take(&b);
}

static leat_status run_op(const wait *w, leat_session *s, leat_out op, leat_feeds feeds)
{
    leat_run_options o = run_options(w);
    return op.node ? leat_session_run_with(s, &o, feeds, LEAT_NO_FETCH, LEAT_TARGET(op)) : NULL;
}

leat_status leat_session_ready(leat_session *s, leat_out op, const leat_run_options *o,
                               char **why_not_out)
{
    *why_not_out = NULL;
    if (!op.node)
        return NULL;
    leat_tensor *names = NULL;
    leat_status e =
        leat_session_run_with(s, o, LEAT_NO_FEED, LEAT_FETCH({op, &names}), LEAT_NO_TARGET);
    if (!e) {
        *why_not_out = names_text(names);
        leat_tensor_unref(names);
        return NULL;
    }
    if (leat_status_code(e) != LEAT_FAILED_PRECONDITION ||
        !strstr(leat_status_message(e), "uninitialized"))
        return e;
    *why_not_out = leat_xstrdup(leat_status_message(e));
    leat_status_free(e);
    return NULL;
}

static leat_status ready(const wait *w, leat_session *s, leat_out op, char **why_not)
{
    leat_run_options o = run_options(w);
    return leat_session_ready(s, op, &o, why_not);
}

/* Runs the local initialisation if the model is ready for it. */
static leat_status local_init(const wait *w, leat_session *s, char **why_not)
{
    const leat_scaffold *f = &w->m->scaffold;
    *why_not = NULL;
    if (!f->local_init_op.node)
        return NULL;
    LEAT_TRY(ready(w, s, f->ready_for_local_init_op, why_not));
    if (*why_not)
        return NULL;
    LEAT_LOG(INFO, "Running local_init_op.");
    LEAT_TRY(run_op(w, s, f->local_init_op, LEAT_NO_FEED));
    LEAT_LOG(INFO, "Done running local_init_op.");
    return NULL;
}

/* ---- The chief ---- */

static void log_kept(const leat_session_maker *m, int64_t step, int64_t saved)
{
    char at[40] = "";
    if (step >= 0)
        snprintf(at, sizeof(at), ", at step %" PRId64, step);
    if (saved >= 0)
        LEAT_LOG(INFO,
                 "The model is there already%s, on tasks that kept running: it is kept, not "
                 "restored from step %" PRId64,
                 at, saved);
    else if (m->again)
        LEAT_LOG(INFO, "The model is there already%s, on tasks that kept running: it is kept", at);
    else
        LEAT_LOG(WARNING,
                 "The model is there already%s, on tasks that kept running: it is kept, not "
                 "initialised. To initialise it anew, start those tasks again, or set discard_live",
                 at);
}

/* The number of variables that may be on tasks that kept running; 0: none, or they do not count. */
static int may_be_live(const leat_session_maker *m)
{
    int n;
    if (!m->config.target || !m->config.target[0] || (m->discard_live && !m->again) ||
        !m->scaffold.ready_for_local_init_op.node)
        return 0;
    free(leat_global_variables(m->g, &n));
    return n;
}

/* missing: from leat_session_ready. Some of n variables have values, which are lost now. */
static void log_partly_there(const char *missing, int n)
{
    int without = 1;
    for (const char *p = missing; (p = strstr(p, ", ")) != NULL; p += 2)
        without++;
    if (without < n)
        LEAT_LOG(
            WARNING,
            "%d of %d variables have values, on tasks that kept running, the others have none, "
            "and there is no checkpoint: all are initialised. %s",
            n - without, n, missing);
}

/* Whether all variables have values already, on tasks that kept running, of a step that is not
 * before the checkpoint's: a chief that is started again need not undo the workers' steps. */
static leat_status is_live(const wait *w, leat_session *s, const char *checkpoint, bool *live)
{
    int64_t step = -1, saved = leat_checkpoint_step(checkpoint);
    leat_out counter;
    char *missing = NULL;
    *live = false;
    int n = may_be_live(w->m);
    if (!n)
        return NULL;
    LEAT_TRY(ready(w, s, w->m->scaffold.ready_for_local_init_op, &missing));
    if (missing) {
        if (!checkpoint)
            log_partly_there(missing, n);
        free(missing);
        return NULL;
    }
    leat_status e = leat_hook_step(w->m->g, "SessionManager", &counter);
    if (!e)
        LEAT_TRY(leat_read_step(s, counter, &step));
    /* At step 0 a chief may have been lost between init_op and init_fn. */
    *live = e || (step >= saved && !(step == 0 && w->m->scaffold.init_fn));
    leat_status_free(e);
    if (*live)
        log_kept(w->m, step, saved);
    return NULL;
}

/* The files of a checkpoint are broken or missing, as opposed to a checkpoint of another model. */
static bool is_damage(leat_status e)
{
    return leat_status_code(e) == LEAT_DATA_LOSS ||
           (leat_status_code(e) == LEAT_NOT_FOUND &&
            strstr(leat_status_message(e), "No such file"));
}

/* The newest checkpoint that can be read: paths are newest first. *used is its index. */
static leat_status restore(const leat_session_maker *m, leat_session *s, char *const *paths,
                           size_t n, size_t *used)
{
    leat_status e = NULL;
    for (size_t i = 0; i < n; i++) {
        LEAT_LOG(INFO, "Restoring parameters from %s", paths[i]);
        e = leat_saver_restore_variables(m->scaffold.saver, s, paths[i]);
        if (!e) {
            *used = i;
            leat_saver_go_on(m->scaffold.saver, paths, n);
            return NULL;
        }
        if (!is_damage(e) || i + 1 == n)
            break;
        LEAT_LOG(WARNING, "Checkpoint %s is damaged (%s): the one before is used, %s", paths[i],
                 leat_status_message(e), paths[i + 1]);
        leat_status_free(e);
    }
    return e;
}

/* *input becomes the checkpoint from which the position of the input is to be restored, to be freed
 * with free(), or NULL. */
static leat_status initialize(const wait *w, leat_session *s, char **input)
{
    const leat_session_maker *m = w->m;
    const leat_scaffold *f = &m->scaffold;
    bool live = false;
    char **paths = NULL;
    size_t n = 0, used = 0;
    *input = NULL;
    if (f->saver && m->checkpoint_dir)
        leat_checkpoints_find(m->checkpoint_dir, &paths, &n);
    leat_status e = is_live(w, s, n ? paths[0] : NULL, &live);
    bool restores = n && !live;
    if (!e && restores)
        e = restore(m, s, paths, n, &used);
    /* A program that is started again on a model that lives goes on with the input, too. */
    if (!e && n && (restores || !m->again))
        *input = leat_xstrdup(paths[used]);
    leat_paths_free(paths, n);
    if (e || live || restores)
        return e;
    LEAT_REQUIRE(f->init_op.node || f->init_fn || f->local_init_op.node, FAILED_PRECONDITION,
                 "Model is not initialized and no init_op or init_fn or local_init_op was given");
    LEAT_TRY(run_op(w, s, f->init_op, f->init_feeds));
    return f->init_fn ? f->init_fn(f->init_arg, s) : NULL;
}

static const char *name_of(leat_out x)
{
    return x.node ? leat_node_name(x.node) : "none";
}

static leat_status prepare(const wait *w, leat_session *s)
{
    const leat_scaffold *f = &w->m->scaffold;
    char *why = NULL, *input;
    LEAT_TRY(initialize(w, s, &input));
    leat_status e = local_init(w, s, &why);
    if (!e && !why && input)
        e = leat_saver_restore_input(f->saver, s, input);
    free(input);
    if (!e && why)
        e = leat_error(FAILED_PRECONDITION,
                       "Init operations did not make model ready for local_init.  Init op: %s, "
                       "error: %s",
                       name_of(f->init_op), why);
    free(why);
    LEAT_TRY(e);
    LEAT_TRY(ready(w, s, f->ready_op, &why));
    if (why)
        e = leat_error(FAILED_PRECONDITION,
                       "Init operations did not make model ready.  Init op: %s, local_init_op: %s, "
                       "error: %s",
                       name_of(f->init_op), name_of(f->local_init_op), why);
    free(why);
    return e;
}

leat_status leat_session_prepare(const leat_session_maker *m, leat_session **session_out)
{
    wait w = wait_begin(m, "chief");
    for (;;) {
        leat_session *s = NULL;
        leat_status e = open_session(&w, &s);
        if (!e)
            e = prepare(&w, s);
        if (!e) {
            *session_out = s;
            return NULL;
        }
        if (s)
            leat_session_close(s);
        if (leat_is_cancelled(m->stop))
            return stopped(&w, e, NULL);
        if (!passing(e))
            return e;
        leat_status more = wait_more(&w, e, NULL);
        leat_status_free(e);
        LEAT_TRY(more);
    }
}

/* ---- Workers that are not the chief ---- */

/* Gives the session if the model is ready; else *why says what is missing. */
static leat_status try_ready(wait *w, leat_session *s, char **why)
{
    LEAT_TRY(local_init(w, s, why));
    return *why ? NULL : ready(w, s, w->m->scaffold.ready_op, why);
}

leat_status leat_session_wait(const leat_session_maker *m, leat_session **session_out)
{
    wait w = wait_begin(m, "worker");
    leat_session *s = NULL;
    for (;;) {
        char *why = NULL;
        leat_status e = s ? NULL : open_session(&w, &s);
        if (!e)
            e = try_ready(&w, s, &why);
        if (!e && !why) {
            *session_out = s;
            return NULL;
        }
        bool stop = leat_is_cancelled(m->stop);
        if (s && (e || stop)) { /* the tasks that it was opened on may have been lost */
            leat_session_close(s);
            s = NULL;
        }
        if (stop) {
            e = stopped(&w, e, why);
            free(why);
            return e;
        }
        if (e && !passing(e)) {
            free(why);
            return e;
        }
        leat_status more = wait_more(&w, e, why);
        leat_status_free(e);
        free(why);
        if (more && s)
            leat_session_close(s);
        LEAT_TRY(more);
    }
}
