/* saving_test.c -- monitored sessions and supervisors that save: checkpoints are taken up again,
 * listeners are called, events are written. */
#include <dirent.h>
#include <leat/leat.h>
#include <stdatomic.h>
#include <sys/stat.h>
#include <unistd.h>

#include "test.h"
#include "train/session_manager.h"

static char dir[100];

static void make_dir(void)
{
    snprintf(dir, sizeof(dir), "/tmp/leat_saving_test_XXXXXX");
    CHECK(mkdtemp(dir) != NULL);
}

static int files(const char *part)
{
    int n = 0;
    DIR *d = opendir(dir);
    for (struct dirent *e; d && (e = readdir(d));)
        n += strstr(e->d_name, part) != NULL;
    if (d)
        closedir(d);
    return n;
}

static void remove_dir(void)
{
    char path[600];
    DIR *d = opendir(dir);
    for (struct dirent *e; d && (e = readdir(d));) {
        snprintf(path, sizeof(path), "%s/%s", dir, e->d_name);
        unlink(path);
    }
    if (d)
        closedir(d);
    rmdir(dir);
}

typedef struct model {
    leat_graph *g;
    leat_out step, w, train;
} model;

static model build(void)
{
    model m = {.g = leat_graph_new()};
    m.step = leat_global_step(m.g);
    m.w = leat_variable(m.g, "w", leat_zeros(m.g, LEAT_FLOAT, leat_shape(2)));
    leat_out loss = leat_reduce_sum(m.w);
    leat_scalar_summary("loss", loss);
    leat_optimizer *opt = leat_gradient_descent(.learning_rate = 0.5);
    m.train = leat_minimize(opt, loss, .global_step = m.step);
    leat_optimizer_free(opt);
    return m;
}

static int train(const model *m, leat_monitored *ms)
{
    int runs = 0;
    for (; ms && !leat_monitored_should_stop(ms) && runs < 100; runs++)
        CHECK_OK(leat_monitored_run(ms, LEAT_NO_FEED, LEAT_NO_FETCH, LEAT_TARGET(m->train)));
    return runs;
}

/* A second program goes on where the first one ended. */
static void goes_on(void)
{
    make_dir();
    for (int k = 1; k <= 2; k++) {
        model m = build();
        leat_monitored *ms = NULL;
        leat_tensor *w = NULL;
        CHECK_OK(leat_monitored_open(
            m.g, &ms, .checkpoint_dir = dir, .last_step = 5 * k,
            .hooks = (leat_hook *[]){leat_final_ops_hook(.fetches = LEAT_FETCH({m.w, &w})), NULL}));
        CHECK_INT(train(&m, ms), 5);
        CHECK_OK(leat_monitored_close(ms));
        CHECK_NEAR(leat_tensor_at(w, 0), -2.5 * k, 1e-6);
        leat_tensor_unref(w);
        leat_graph_free(m.g);
    }
    char *latest = leat_latest_checkpoint(dir);
    CHECK(latest && strstr(latest, "model.ckpt-10"));
    free(latest);
    CHECK_INT(files("tfevents"), 2);
    remove_dir();
}

/* ---- Listeners ---- */

typedef struct listener {
    int before, after, ends;
    int64_t last;
} listener;

static leat_status before_save(void *arg, leat_session *s, int64_t step)
{
    ((listener *)arg)->before++;
    return NULL;
}

static leat_status after_save(void *arg, leat_session *s, int64_t step, bool *stop)
{
    listener *l = arg;
    l->after++;
    l->last = step;
    *stop = step >= 4;
    return NULL;
}

static leat_status at_end(void *arg, leat_session *s, int64_t step)
{
    ((listener *)arg)->ends++;
    return NULL;
}

static void listeners(void)
{
    make_dir();
    model m = build();
    listener l = {0};
    leat_monitored *ms = NULL;
    leat_checkpoint_listener all = {&l, before_save, after_save, at_end};
    CHECK_OK(leat_monitored_open(
        m.g, &ms, .log_step_count_steps = -1,
        .hooks = (leat_hook *[]){leat_checkpoint_hook(.checkpoint_dir = dir, .save_steps = 2,
                                                      .listeners = &all, .n_listeners = 1),
                                 NULL}));
    CHECK_INT(train(&m, ms), 4);
    CHECK_OK(leat_monitored_close(ms));
    CHECK_INT(l.before, 3); /* steps 0, 2 and 4 */
    CHECK_INT(l.after, 3);
    CHECK_INT(l.ends, 1);
    CHECK_INT(l.last, 4);
    CHECK_INT(files(".index"), 3);
    leat_graph_free(m.g);
    remove_dir();
}

/* ---- After a task went away: what was saved is there again ---- */

typedef struct failing {
    leat_hook base;
    int at;
    int runs, sessions;
} failing;

static leat_status count_session(leat_hook *h, leat_session *s, leat_coordinator *c)
{
    ((failing *)h)->sessions++;
    return NULL;
}

static leat_status fail_once(leat_hook *h, leat_run_context *c)
{
    failing *f = (failing *)h;
    return ++f->runs == f->at ? leat_error(ABORTED, "the ps was started again") : NULL;
}

static void recovers(void)
{
    static const leat_hook_ops ops = {.after_create_session = count_session,
                                      .after_run = fail_once};
    make_dir();
    model m = build();
    failing f = {.base = {&ops}, .at = 6};
    leat_monitored *ms = NULL;
    CHECK_OK(leat_monitored_open(m.g, &ms, .checkpoint_dir = dir, .save_checkpoint_steps = 2,
                                 .last_step = 8, .hooks = (leat_hook *[]){&f.base, NULL}));
    train(&m, ms);
    leat_tensor *w = NULL;
    CHECK_OK(leat_session_run(leat_monitored_session(ms), LEAT_NO_FEED, LEAT_FETCH({m.w, &w}),
                              LEAT_NO_TARGET));
    CHECK_NEAR(leat_tensor_at(w, 0), -4, 1e-6); /* 8 steps, whatever was lost between */
    leat_tensor_unref(w);
    CHECK_OK(leat_monitored_close(ms));
    CHECK_INT(f.sessions, 2);
    leat_graph_free(m.g);
    remove_dir();
}

/* ---- Supervisors ---- */

static leat_status tick(void *arg)
{
    atomic_fetch_add((atomic_int *)arg, 1);
    return NULL;
}

static void supervisor(void)
{
    make_dir();
    for (int k = 0; k < 2; k++) {
        model m = build();
        leat_supervisor *sv = NULL;
        leat_session *s = NULL;
        int64_t step = -1;
        atomic_int ticks = 0;
        CHECK_OK(leat_supervisor_open(m.g, &sv, .logdir = dir, .save_model_secs = 0.05,
                                      .save_summaries_secs = 0.05));
        CHECK_OK(leat_supervisor_session(sv, "", &s));
        CHECK_OK(leat_supervisor_step(sv, &step));
        CHECK_INT(step > 0, k); /* the second goes on where a checkpoint was */
        CHECK_OK(leat_supervisor_loop(sv, 10, tick, &ticks));
        double end = leat_now() + 60;
        while (!leat_supervisor_should_stop(sv) && leat_now() < end &&
               (atomic_load(&ticks) <= 2 || files(".index") < 2)) {
            CHECK_OK(leat_session_run(s, LEAT_NO_FEED, LEAT_NO_FETCH, LEAT_TARGET(m.train)));
            usleep(1000);
        }
        CHECK(!leat_supervisor_wait_for_stop(sv, 1));
        leat_supervisor_request_stop(sv, NULL);
        CHECK(leat_supervisor_wait_for_stop(sv, 1000));
        CHECK_OK(leat_supervisor_close(sv));
        CHECK(atomic_load(&ticks) > 2);
        CHECK(files(".index") >= 2);
        leat_graph_free(m.g);
    }
    CHECK_INT(files("tfevents"), 2);
    remove_dir();
}

/* The program saves while the service does, too. */
static void saves_now(void)
{
    make_dir();
    model m = build();
    leat_supervisor *sv = NULL;
    leat_session *s = NULL;
    char *path = NULL;
    CHECK_OK(leat_supervisor_open(m.g, &sv, .logdir = dir, .save_model_secs = 0.001));
    CHECK_ERROR(leat_supervisor_save(sv, &path), FAILED_PRECONDITION, "requires a session");
    CHECK_OK(leat_supervisor_session(sv, "", &s));
    for (int i = 0; i < 20; i++) {
        int64_t step = -1;
        CHECK_OK(leat_session_run(s, LEAT_NO_FEED, LEAT_NO_FETCH, LEAT_TARGET(m.train)));
        CHECK_OK(leat_supervisor_step(sv, &step));
        CHECK_OK(leat_supervisor_save(sv, &path));
        const char *number = path ? strrchr(path, '-') : NULL;
        CHECK(number && atoll(number + 1) == step);
        free(path);
        path = NULL;
    }
    char *newest = leat_latest_checkpoint(dir);
    CHECK(newest && strstr(newest, "model.ckpt-"));
    free(newest);
    CHECK_OK(leat_supervisor_close(sv));
    leat_graph_free(m.g);
    m = build();
    CHECK_OK(leat_supervisor_open(m.g, &sv, .save_model_secs = 0));
    CHECK_OK(leat_supervisor_session(sv, "", &s));
    CHECK_ERROR(leat_supervisor_save(sv, &path), FAILED_PRECONDITION, "and a logdir");
    CHECK_OK(leat_supervisor_close(sv));
    leat_graph_free(m.g);
    remove_dir();
}

/* ---- Damage ---- */

static char warnings[2000];

static void keep_warning(void *arg, leat_log_level level, const char *file, int line,
                         const char *message)
{
    size_t n = strlen(warnings);
    snprintf(warnings + n, sizeof(warnings) - n, "%s\n", message);
}

/* Trains from the newest checkpoint on to step `last`; gives the number of runs that this took. */
static leat_status go_on(int64_t last, int *runs_out)
{
    model m = build();
    leat_monitored *ms = NULL;
    warnings[0] = 0;
    leat_log_set_sink(keep_warning, NULL, LEAT_LOG_WARNING);
    leat_status s = leat_monitored_open(m.g, &ms, .checkpoint_dir = dir, .last_step = last,
                                        .save_checkpoint_steps = 5);
    leat_log_set_sink(NULL, NULL, LEAT_LOG_INFO);
    if (!s) {
        *runs_out = train(&m, ms);
        s = leat_monitored_close(ms);
    }
    leat_graph_free(m.g);
    return s;
}

static void overwrite(const char *name, long at, const char *bytes)
{
    char path[200];
    snprintf(path, sizeof(path), "%s/%s", dir, name);
    FILE *f = fopen(path, at < 0 ? "w" : "r+");
    CHECK(f != NULL);
    if (!f)
        return;
    if (at >= 0)
        fseek(f, at, SEEK_SET);
    fputs(bytes, f);
    fclose(f);
}

/* Whatever the list of checkpoints looks like, training goes on from the newest one. */
static void damaged_state(void)
{
    static const char *const states[] = {"", "model_checkpoint_path: \"model.ck", "\377\376garbage",
                                         "all_model_checkpoint_paths: \"x\"\n"};
    int runs = 0;
    make_dir();
    CHECK_OK(go_on(10, &runs));
    for (int i = 0; i < 4; i++) {
        overwrite("checkpoint", -1, states[i]);
        CHECK_OK(go_on(20 + 10 * i, &runs));
        CHECK_INT(runs, 10);
        CHECK(strstr(warnings, "The list of checkpoints in "));
        CHECK(strstr(warnings, "the newest that lies there is used, "));
    }
    /* The newest one is gone: the one before it. */
    char path[200];
    snprintf(path, sizeof(path), "%s/model.ckpt-50.index", dir);
    CHECK_INT(unlink(path), 0);
    CHECK_OK(go_on(50, &runs));
    CHECK_INT(runs, 5);
    CHECK(strstr(warnings, "model.ckpt-50, which is not there: the one before is used, "));
    /* Without the file training begins anew, as in TensorFlow, with a word. */
    snprintf(path, sizeof(path), "%s/checkpoint", dir);
    CHECK_INT(unlink(path), 0);
    CHECK_OK(go_on(5, &runs));
    CHECK_INT(runs, 5);
    CHECK(strstr(warnings, "has no file \"checkpoint\": its checkpoints, the newest of them "));
    remove_dir();
}

static void damaged_newest(void)
{
    static const struct {
        const char *name;
        long at;
    } damages[] = {{"model.ckpt-10.data-00000-of-00001", 3}, {"model.ckpt-10.index", 20}};
    for (int i = 0; i < 2; i++) {
        int runs = 0;
        make_dir();
        CHECK_OK(go_on(10, &runs));
        overwrite(damages[i].name, damages[i].at, "\377\252");
        CHECK_OK(go_on(10, &runs));
        CHECK_INT(runs, 5);
        CHECK(strstr(warnings, "model.ckpt-10 is damaged ("));
        CHECK(strstr(warnings, damages[i].name));
        CHECK(strstr(warnings, "the one before is used, "));
        /* It was written again; damaged all together, they are an error that names the file. */
        CHECK_OK(go_on(15, &runs));
        CHECK_INT(runs, 5);
        for (int step = 0; step <= 15; step += 5) {
            char name[60];
            snprintf(name, sizeof(name), "model.ckpt-%d.index", step);
            overwrite(name, 20, "\377\252");
        }
        CHECK_ERROR(go_on(20, &runs), DATA_LOSS, "model.ckpt-");
        remove_dir();
    }
}

/* ---- What a killed writer leaves ---- */

static void swept(void)
{
    static const char *const left[] = {
        "model.ckpt-2.data-00000-of-00001.tempstate77",
        "model.ckpt-2.index.tempstate78",
        "model.ckpt-3.data-00000-of-00001",
        "model.ckpt-3.meta",
        "checkpoint.tempstate79",
    };
    static const char *const others[] = {"model.ckpt-900.index.tempstate1", "model.ckpt-old.meta",
                                         "other.ckpt-2.index.tempstate2", "notes.tempstate3"};
    int runs;
    char path[200];
    make_dir();
    for (int i = 0; i < 5; i++)
        overwrite(left[i], -1, "x");
    for (int i = 0; i < 4; i++)
        overwrite(others[i], -1, "x");
    snprintf(path, sizeof(path), "%s/model.ckpt-4_temp_0a1b", dir);
    CHECK_INT(mkdir(path, 0777), 0);
    overwrite("model.ckpt-4_temp_0a1b/part-00000-of-00001.index", -1, "x");
    CHECK_OK(go_on(5, &runs));
    for (int i = 0; i < 5; i++)
        CHECK_INT(files(left[i]), 0);
    CHECK_INT(files("_temp_"), 0);
    for (int i = 0; i < 4; i++)
        CHECK_INT(files(others[i]), 1);
    remove_dir();
}

int main(int argc, char **argv)
{
    return RUN(argc, argv, {"goes_on", goes_on}, {"listeners", listeners}, {"recovers", recovers},
               {"supervisor", supervisor}, {"saves_now", saves_now},
               {"damaged_state", damaged_state}, {"damaged_newest", damaged_newest},
               {"swept", swept});
}
