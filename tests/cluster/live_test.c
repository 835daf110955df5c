/* live_test.c -- a chief that finds a model on a server that kept running: it is kept, unless it is
 * told to discard it, or not all of it is there. */
#include "test.h"

#include <leat/leat.h>

static leat_server *server;
static char warnings[4096];

static void keep_warnings(void *arg, leat_log_level level, const char *file, int line,
                          const char *message)
{
    size_t n = strlen(warnings);
    snprintf(warnings + n, sizeof(warnings) - n, "%s\n", message);
}

static void begin(void)
{
    warnings[0] = 0;
    leat_log_set_sink(keep_warnings, NULL, LEAT_LOG_WARNING);
    CHECK_OK(leat_server_start_local(&server));
}

static void end(void)
{
    leat_server_free(server);
    leat_log_set_sink(NULL, NULL, LEAT_LOG_WARNING);
}

typedef struct model {
    leat_graph *g;
    leat_out step, more;
} model;

static model make_model(bool larger)
{
    model m = {.g = leat_graph_new()};
    m.step = leat_global_step(m.g);
    m.more = leat_assign_add(leat_variable_ref(m.step), leat_scalar(m.g, LEAT_INT64, 1));
    if (larger)
        leat_variable(m.g, "another", leat_scalar(m.g, LEAT_FLOAT, 1));
    return m;
}

static int64_t step_of(leat_session *s, const model *m)
{
    leat_tensor *v = NULL;
    CHECK_OK(leat_session_run(s, LEAT_NO_FEED, LEAT_FETCH({m->step, &v}), LEAT_NO_TARGET));
    int64_t step = v ? (int64_t)leat_tensor_at(v, 0) : -1;
    leat_tensor_unref(v);
    return step;
}

/* Opens a chief's session, and gives the step that it begins with; then does some steps. */
static int64_t train(int steps, bool larger, bool discard, const leat_scaffold *scaffold)
{
    leat_monitored *ms = NULL;
    model m = make_model(larger);
    CHECK_OK(leat_monitored_open(m.g, &ms, .master = leat_server_target(server), .is_chief = true,
                                 .discard_live = discard, .scaffold = scaffold));
    int64_t first = step_of(leat_monitored_session(ms), &m);
    for (int i = 0; i < steps; i++)
        CHECK_OK(leat_monitored_run(ms, LEAT_NO_FEED, LEAT_NO_FETCH, LEAT_TARGET(m.more)));
    CHECK_OK(leat_monitored_close(ms));
    leat_graph_free(m.g);
    return first;
}

static void monitored(void)
{
    begin();
    CHECK_INT(train(3, false, false, NULL), 0);
    CHECK_STR(warnings, "");
    CHECK_INT(train(4, false, false, NULL), 3);
    CHECK_STR(warnings, "The model is there already, at step 3, on tasks that kept running: it is "
                        "kept, not initialised. To initialise it anew, start those tasks again, or "
                        "set discard_live\n");
    warnings[0] = 0;
    CHECK_INT(train(5, false, true, NULL), 0);
    CHECK_STR(warnings, "");
    CHECK_INT(train(1, true, false, NULL), 0); /* "another" has no value */
    CHECK_STR(warnings, "1 of 2 variables have values, on tasks that kept running, the others have "
                        "none, and there is no checkpoint: all are initialised. Variables not "
                        "initialized: another\n");
    CHECK_INT(train(1, true, false, NULL), 1);
    end();
}

static int64_t supervise(int steps, bool discard)
{
    leat_supervisor *sv = NULL;
    leat_session *s = NULL;
    model m = make_model(false);
    CHECK_OK(leat_supervisor_open(m.g, &sv, .is_chief = true, .discard_live = discard));
    CHECK_OK(leat_supervisor_session(sv, leat_server_target(server), &s));
    int64_t first = step_of(s, &m);
    for (int i = 0; i < steps; i++)
        CHECK_OK(leat_session_run(s, LEAT_NO_FEED, LEAT_NO_FETCH, LEAT_TARGET(m.more)));
    /* A second session of the same program keeps its own model. */
    CHECK_OK(leat_supervisor_session(sv, leat_server_target(server), &s));
    CHECK_INT(step_of(s, &m), first + steps);
    CHECK_OK(leat_supervisor_close(sv));
    leat_graph_free(m.g);
    return first;
}

static void supervisor(void)
{
    begin();
    CHECK_INT(supervise(3, false), 0);
    CHECK_STR(warnings, "");
    CHECK_INT(supervise(2, false), 3);
    CHECK(strstr(warnings, "The model is there already, at step 3"));
    CHECK_INT(supervise(2, true), 0);
    end();
}

static leat_status count(void *n, leat_session *s)
{
    ++*(int *)n;
    return NULL;
}

/* At step 0 a chief may have been lost before its init_fn; without variables nothing can be kept.
 * A session in this process begins with an empty model. */
static void init_fn(void)
{
    int n = 0;
    const leat_scaffold f = {.init_fn = count, .init_arg = &n};
    begin();
    CHECK_INT(train(0, false, false, &f), 0);
    CHECK_INT(train(1, false, false, &f), 0);
    CHECK_INT(n, 2);
    CHECK_INT(train(0, false, false, &f), 1);
    CHECK_INT(n, 2);
    const char *const targets[] = {leat_server_target(server), ""};
    for (int i = 0; i < 2; i++) {
        leat_monitored *ms = NULL;
        leat_graph *g = leat_graph_new();
        leat_scalar(g, LEAT_FLOAT, 1);
        CHECK_OK(leat_monitored_open(g, &ms, .master = targets[i], .is_chief = true, .scaffold = &f,
                                     .log_step_count_steps = 0));
        CHECK_INT(n, 3 + i);
        CHECK_OK(leat_monitored_close(ms));
        leat_graph_free(g);
    }
    end();
}

int main(int argc, char **argv)
{
    return RUN(argc, argv, {"monitored", monitored}, {"supervisor", supervisor},
               {"init_fn", init_fn});
}
