/* monitored_test.c -- monitored sessions: hooks in order, stopping, NaN, logging, recovery after a
 * task was lost, deadlines. In one process; tests/cluster has the same with real tasks. */
#include <leat/leat.h>
#include <math.h>

#include "core/strbuf.h"
#include "test.h"
#include "train/hook_int.h"
#include "train/session_manager.h"

static leat_strbuf events;

/* ---- A hook that notes what is called ---- */

typedef struct noting {
    leat_hook base;
    char letter;
    leat_out fetch;         /* if set */
    leat_status fail_begin; /* given */
    int fail_runs;          /* so many runs end with UNAVAILABLE */
} noting;

static leat_status note_begin(leat_hook *h, leat_graph *g)
{
    noting *p = (noting *)h;
    leat_strbuf_printf(&events, "%cb ", p->letter);
    leat_status e = p->fail_begin;
    p->fail_begin = NULL;
    return e;
}

static leat_status note_session(leat_hook *h, leat_session *s, leat_coordinator *c)
{
    leat_strbuf_printf(&events, "%cs ", ((noting *)h)->letter);
    return NULL;
}

static leat_status note_before(leat_hook *h, leat_run_context *c)
{
    noting *p = (noting *)h;
    leat_strbuf_printf(&events, "%c< ", p->letter);
    if (p->fetch.node)
        leat_run_fetch(c, p->fetch);
    return NULL;
}

static leat_status note_after(leat_hook *h, leat_run_context *c)
{
    noting *p = (noting *)h;
    leat_strbuf_printf(&events, "%c> ", p->letter);
    if (p->fetch.node)
        CHECK(leat_run_value(c, p->fetch) != NULL);
    return p->fail_runs-- > 0 ? leat_error(UNAVAILABLE, "the ps is gone") : NULL;
}

static void note_close(leat_hook *h, leat_session *s)
{
    leat_strbuf_printf(&events, "%cc ", ((noting *)h)->letter);
}

static leat_status note_end(leat_hook *h, leat_session *s)
{
    leat_strbuf_printf(&events, "%ce ", ((noting *)h)->letter);
    return NULL;
}

static void note_free(leat_hook *h)
{
    leat_strbuf_printf(&events, "%cf ", ((noting *)h)->letter);
    free(h);
}

static noting *note(char letter)
{
    static const leat_hook_ops ops = {.name = "noting",
                                      .begin = note_begin,
                                      .after_create_session = note_session,
                                      .before_run = note_before,
                                      .after_run = note_after,
                                      .before_close = note_close,
                                      .end = note_end,
                                      .free = note_free};
    noting *p = leat_hook_new(sizeof(*p), &ops);
    p->letter = letter;
    return p;
}

/* ---- A model: w -= 0.1 x; each run counts ---- */

typedef struct model {
    leat_graph *g;
    leat_out step, w, x, loss, train;
} model;

static model build(void)
{
    model m = {.g = leat_graph_new()};
    m.step = leat_global_step(m.g);
    m.x = leat_placeholder_with_default(leat_scalar(m.g, LEAT_FLOAT, 1), leat_shape());
    m.w = leat_variable(m.g, "w", leat_zeros(m.g, LEAT_FLOAT, leat_shape(2)));
    m.loss = leat_mul(leat_reduce_sum(m.w), m.x);
    leat_optimizer *opt = leat_gradient_descent(.learning_rate = 0.1);
    m.train = leat_minimize(opt, m.loss, .global_step = m.step);
    leat_optimizer_free(opt);
    return m;
}

static leat_status run(leat_monitored *ms, const model *m)
{
    return leat_monitored_run(ms, LEAT_NO_FEED, LEAT_NO_FETCH, LEAT_TARGET(m->train));
}

static void check_events(const char *want)
{
    CHECK_STR(leat_strbuf_text(&events), want);
    leat_strbuf_release(&events);
}

static void order(void)
{
    model m = build();
    leat_monitored *ms = NULL;
    noting *a = note('a'), *b = note('b');
    a->fetch = b->fetch = m.loss;
    CHECK_OK(leat_monitored_open(m.g, &ms, .hooks = (leat_hook *[]){&a->base, &b->base, NULL},
                                 .log_step_count_steps = -1, .num_steps = 2));
    int runs = 0;
    while (ms && !leat_monitored_should_stop(ms) && runs < 5) {
        CHECK_OK(run(ms, &m));
        runs++;
    }
    CHECK_INT(runs, 2);
    CHECK_ERROR(run(ms, &m), FAILED_PRECONDITION, "Run called even after should_stop requested.");
    CHECK_OK(leat_monitored_close(ms));
    check_events("ab bb as bs a< b< a> b> a< b< a> b> ae be ac bc af bf ");
    leat_graph_free(m.g);
}

static void last_step(void)
{
    model m = build();
    leat_monitored *ms = NULL;
    leat_tensor *w = NULL, *step = NULL;
    CHECK_OK(leat_monitored_open(
        m.g, &ms, .last_step = 7,
        .hooks = (leat_hook *[]){
            leat_final_ops_hook(.fetches = LEAT_FETCH({m.w, &w}, {m.step, &step})), NULL}));
    while (ms && !leat_monitored_should_stop(ms))
        CHECK_OK(run(ms, &m));
    CHECK_OK(leat_monitored_close(ms));
    CHECK(w && step);
    CHECK_NEAR(leat_tensor_at(w, 0), -0.7, 1e-6);
    CHECK_INT(leat_tensor_at(step, 0), 7);
    leat_tensor_unref(w);
    leat_tensor_unref(step);
    leat_graph_free(m.g);
}

static leat_status feed(void *arg, leat_run_context *c)
{
    leat_tensor *t = leat_scalar_float(NAN);
    leat_status e = leat_run_feed(c, *(leat_out *)arg, t);
    leat_tensor_unref(t);
    return e;
}

static void nan_loss(void)
{
    for (int stop_only = 0; stop_only < 2; stop_only++) {
        model m = build();
        leat_monitored *ms = NULL;
        CHECK_OK(leat_monitored_open(
            m.g, &ms,
            .hooks = (leat_hook *[]){leat_nan_hook(.loss = m.loss, .stop_only = stop_only),
                                     leat_feed_fn_hook(feed, &m.x), &note('a')->base, NULL}));
        if (stop_only)
            CHECK_OK(run(ms, &m));
        else
            CHECK_ERROR(run(ms, &m), INVALID_ARGUMENT, "NaN loss during training.");
        CHECK(leat_monitored_should_stop(ms));
        CHECK_OK(leat_monitored_close(ms));
        /* After an error `end` of the hooks is not called. */
        check_events(stop_only ? "ab as a< a> ae ac af " : "ab as a< ac af ");
        leat_graph_free(m.g);
    }
}

static void fed_twice(void)
{
    model m = build();
    leat_monitored *ms = NULL;
    leat_tensor *t = leat_scalar_float(1);
    CHECK_OK(leat_monitored_open(m.g, &ms,
                                 .hooks = (leat_hook *[]){leat_feed_fn_hook(feed, &m.x), NULL}));
    CHECK_ERROR(leat_monitored_run(ms, LEAT_FEED({m.x, t}), LEAT_NO_FETCH, LEAT_TARGET(m.train)),
                FAILED_PRECONDITION, "Same tensor is fed by a SessionRunHook and user.");
    CHECK_OK(leat_monitored_close(ms));
    leat_tensor_unref(t);
    leat_graph_free(m.g);
}

/* After UNAVAILABLE there is a new session, for which hooks are called, and the run is repeated. */
static void recovers(void)
{
    model m = build();
    leat_monitored *ms = NULL;
    noting *a = note('a');
    a->fail_runs = 2;
    CHECK_OK(leat_monitored_open(m.g, &ms, .hooks = (leat_hook *[]){&a->base, NULL}));
    CHECK_OK(run(ms, &m));
    CHECK_OK(leat_monitored_close(ms));
    check_events("ab as a< a> ac as a< a> ac as a< a> ae ac af ");
    leat_graph_free(m.g);
}

static void begin_fails(void)
{
    model m = build();
    leat_monitored *ms = NULL;
    noting *a = note('a'), *b = note('b');
    a->fail_begin = leat_error(INVALID_ARGUMENT, "not today");
    CHECK_ERROR(leat_monitored_open(m.g, &ms, .hooks = (leat_hook *[]){&a->base, &b->base, NULL}),
                INVALID_ARGUMENT, "not today");
    check_events("ab af bf ");
    leat_graph *g = leat_graph_new();
    CHECK_ERROR(leat_monitored_open(g, &ms, .num_steps = 3), INVALID_ARGUMENT,
                "Global step should be created to use");
    leat_graph_free(g);
    leat_graph_free(m.g);
}

/* ---- Logging ---- */

static leat_strbuf logged;
static void sink(void *arg, leat_log_level level, const char *file, int line, const char *message)
{
    leat_strbuf_printf(&logged, "%s\n", message);
}

static void logging(void)
{
    model m = build();
    leat_monitored *ms = NULL;
    const leat_out x[] = {m.loss, m.step};
    const char *const tags[] = {"loss", "step"};
    leat_log_set_sink(sink, NULL, LEAT_LOG_INFO);
    CHECK_OK(leat_monitored_open(
        m.g, &ms, .last_step = 5, .log_step_count_steps = 2,
        .hooks = (leat_hook *[]){leat_logging_hook(.tensors = x, .tags = tags, .n = 2,
                                                   .every_n_iter = 2, .at_end = true),
                                 NULL}));
    while (ms && !leat_monitored_should_stop(ms))
        CHECK_OK(run(ms, &m));
    CHECK_OK(leat_monitored_close(ms));
    leat_log_set_sink(NULL, NULL, LEAT_LOG_INFO);
    const char *text = leat_strbuf_text(&logged);
    CHECK(strstr(text, "loss = 0, step = "));
    CHECK(strstr(text, " sec)\n"));
    CHECK(strstr(text, "loss = -1, step = 5")); /* at the end */
    CHECK(strstr(text, "global_step/sec: "));
    leat_strbuf_release(&logged);
    leat_graph_free(m.g);
}

/* ---- Waiting ---- */

static void waits(void)
{
    model m = build();
    leat_session_maker k = {.g = m.g, .max_wait_secs = 0.3, .config = {.target = ""}};
    leat_session *s = NULL;
    CHECK_OK(leat_scaffold_finish(m.g, &k.scaffold));
    double began = leat_now();
    CHECK_ERROR(leat_session_wait(&k, &s), DEADLINE_EXCEEDED,
                "Variables not initialized: global_step, w");
    CHECK(leat_now() - began < 5);
    CHECK_ERROR(leat_session_wait(&k, &s), DEADLINE_EXCEEDED, "check that it runs");
    k.scaffold.init_op = leat_done(leat_no_op(m.g));
    CHECK_ERROR(leat_session_prepare(&k, &s), FAILED_PRECONDITION,
                "Init operations did not make model ready for local_init.  Init op: NoOp");
    leat_graph_free(m.g);
}

static void waits_for_step(void)
{
    model m = build();
    leat_monitored *ms = NULL;
    CHECK_OK(leat_monitored_open(m.g, &ms, .max_wait_secs = 0.2,
                                 .hooks = (leat_hook *[]){leat_global_step_waiter_hook(3), NULL}));
    CHECK_ERROR(run(ms, &m), DEADLINE_EXCEEDED, "for global step 3");
    CHECK_OK(leat_monitored_close(ms));
    leat_graph_free(m.g);
}

/* A stop from outside ends the waits of hooks; one run may follow, then the session stops. */
static void asked_to_stop(void)
{
    model m = build();
    leat_monitored *ms = NULL;
    leat_cancellation *stop = leat_cancellation_new();
    CHECK_OK(leat_monitored_open(m.g, &ms, .stop = stop));
    CHECK(!leat_monitored_should_stop(ms));
    leat_cancel_runs(stop);
    CHECK_OK(run(ms, &m)); /* begun before the stop was noticed */
    CHECK(leat_monitored_should_stop(ms));
    CHECK_OK(leat_monitored_close(ms));
    leat_cancellation_free(stop);
    stop = leat_cancellation_new();
    CHECK_OK(leat_monitored_open(m.g, &ms, .stop = stop,
                                 .hooks = (leat_hook *[]){leat_global_step_waiter_hook(3), NULL}));
    leat_cancel_runs(stop);
    CHECK_ERROR(run(ms, &m), CANCELLED, "of waiting for global step 3");
    CHECK_OK(leat_monitored_close(ms));
    leat_cancellation_free(stop);
    leat_graph_free(m.g);
}

/* The chief of one replica finds out by itself that rounds are needed. */
static void synchronous(void)
{
    leat_graph *g = leat_graph_new();
    leat_out step = leat_global_step(g);
    leat_out w = leat_variable(g, "w", leat_zeros(g, LEAT_FLOAT, leat_shape(2)));
    leat_optimizer *opt = leat_sync_replicas(leat_adam(.learning_rate = 0.01),
                                             .replicas_to_aggregate = 1, .replica = 0);
    leat_out train = leat_minimize(opt, leat_reduce_sum(w), .global_step = step);
    leat_optimizer_free(opt);
    leat_monitored *ms = NULL;
    CHECK_OK(leat_monitored_open(g, &ms, .last_step = 20));
    int runs = 0;
    for (; ms && !leat_monitored_should_stop(ms) && runs < 200; runs++)
        CHECK_OK(leat_monitored_run(ms, LEAT_NO_FEED, LEAT_NO_FETCH, LEAT_TARGET(train)));
    CHECK(runs >= 19 && runs < 30);
    CHECK_OK(leat_monitored_close(ms));
    leat_graph_free(g);
}

int main(int argc, char **argv)
{
    return RUN(argc, argv, {"order", order}, {"last_step", last_step}, {"nan_loss", nan_loss},
               {"fed_twice", fed_twice}, {"recovers", recovers}, {"begin_fails", begin_fails},
               {"logging", logging}, {"waits", waits}, {"waits_for_step", waits_for_step},
               {"asked_to_stop", asked_to_stop}, {"synchronous", synchronous});
}
