/* saver_test.c -- savers: what they write, keep and restore; a full disk; a kill at any instant. */
#include <leat/leat.h>

#include "io/files.h"

#include <signal.h>
#include <stdatomic.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <time.h>

typedef struct model {
    leat_graph *g;
    leat_out w, b, add, init;
    leat_saver *saver;
    leat_session *s;
} model;

/* w has n elements, b is behind a handle; add counts both up. */
static model begin(int64_t n, const leat_saver_options *o, int cpus)
{
    model m = {.g = leat_graph_new()};
    leat_with_device(m.g, cpus > 1 ? "/cpu:1" : "") m.w =
        leat_variable(m.g, "w", leat_zeros(m.g, LEAT_FLOAT, leat_shape(n)));
    m.b = leat_variable(m.g, "b", leat_zeros(m.g, LEAT_FLOAT, leat_shape(2)), .use_resource = true);
    leat_out one = leat_scalar(m.g, LEAT_FLOAT, 1);
    m.add =
        leat_group(m.g, leat_variable_assign_add(m.w, leat_add(leat_zeros_like(m.w), one)),
                   leat_done(leat_variable_assign_add(m.b, leat_add(leat_zeros_like(m.b), one))));
    m.init = leat_global_variables_initializer(m.g);
    m.saver = leat_saver_new_at(LEAT_AT, m.g, o);
    CHECK_OK(leat_session_open(m.g, &m.s, .cpu_devices = cpus));
    CHECK_OK(leat_session_run(m.s, LEAT_NO_FEED, LEAT_NO_FETCH, LEAT_TARGET(m.init)));
    return m;
}

static void end(model *m)
{
    leat_saver_free(m->saver);
    leat_session_close(m->s);
    leat_graph_free(m->g);
}

static void step(model *m)
{
    CHECK_OK(leat_session_run(m->s, LEAT_NO_FEED, LEAT_NO_FETCH, LEAT_TARGET(m->add)));
}

/* All elements of both variables; NAN if they differ. */
static double value(model *m)
{
    leat_tensor *w = NULL, *b = NULL;
    CHECK_OK(
        leat_session_run(m->s, LEAT_NO_FEED, LEAT_FETCH({m->w, &w}, {m->b, &b}), LEAT_NO_TARGET));
    double v = w ? leat_tensor_at(w, 0) : NAN;
    for (int64_t i = 0; w && i < leat_tensor_count(w); i += 1 + leat_tensor_count(w) / 1000)
        v = leat_tensor_at(w, i) == v ? v : NAN;
    v = b && leat_tensor_at(b, 1) == v ? v : NAN;
    leat_tensor_unref(w);
    leat_tensor_unref(b);
    return v;
}

static void clean(const char *dir)
{
    char command[600];
    snprintf(command, sizeof(command), "rm -rf '%s'", here(dir));
    CHECK_INT(system(command), 0);
}

static void check_file(const char *path, const char *want)
{
    char *text = NULL;
    size_t n;
    CHECK_OK(leat_file_read(path, &text, &n));
    CHECK_STR(text, want);
    free(text);
}

static void keeps(void)
{
    clean("saver");
    char path[600], want[2000];
    snprintf(path, sizeof(path), "%s", here("saver/model.ckpt"));
    model m = begin(3, &(leat_saver_options){.max_to_keep = 2}, 1);
    for (int i = 1; i <= 4; i++) {
        step(&m);
        char *saved = NULL;
        CHECK_OK(leat_saver_save(m.saver, m.s, path, i, &saved));
        snprintf(want, sizeof(want), "%s-%d", path, i);
        CHECK_STR(saved, want);
        free(saved);
    }
    int n;
    leat_saver_checkpoints(m.saver, &n);
    CHECK_INT(n, 2);
    snprintf(want, sizeof(want),
             "model_checkpoint_path: \"%s-4\"\nall_model_checkpoint_paths: \"%s-3\"\n"
             "all_model_checkpoint_paths: \"%s-4\"\n",
             path, path, path);
    check_file(here("saver/checkpoint"), want);
    CHECK(!leat_checkpoint_exists(here("saver/model.ckpt-2")));
    CHECK(access(here("saver/model.ckpt-2.meta"), F_OK) != 0);
    CHECK(access(here("saver/model.ckpt-4.meta"), F_OK) == 0);
    char *newest = leat_latest_checkpoint(here("saver"));
    CHECK(newest && strstr(newest, "saver/model.ckpt-4"));
    CHECK_OK(leat_saver_restore(m.saver, m.s, here("saver/model.ckpt-3")));
    CHECK_NEAR(value(&m), 3, 0);
    CHECK_OK(leat_saver_restore(m.saver, m.s, newest));
    CHECK_NEAR(value(&m), 4, 0);
    free(newest);
    end(&m);
    /* a program that begins anew knows the old ones */
    m = begin(3, &(leat_saver_options){.max_to_keep = 2}, 1);
    CHECK_OK(leat_saver_recover(m.saver, here("saver")));
    CHECK_OK(leat_saver_save(m.saver, m.s, path, 9, NULL));
    CHECK(!leat_checkpoint_exists(here("saver/model.ckpt-3")));
    CHECK(leat_checkpoint_exists(here("saver/model.ckpt-4")));
    end(&m);
}

static void relative(void)
{
    clean("saver_rel");
    char *was = getcwd(NULL, 0);
    CHECK_OK(leat_dir_make(here("saver_rel/in")));
    CHECK_INT(chdir(here("saver_rel")), 0);
    model m = begin(3, &(leat_saver_options){0}, 1);
    CHECK_OK(leat_saver_save(m.saver, m.s, "in/model", 1, NULL));
    check_file("in/checkpoint",
               "model_checkpoint_path: \"model-1\"\nall_model_checkpoint_paths: \"model-1\"\n");
    char *newest = leat_latest_checkpoint("in");
    CHECK_STR(newest, "in/model-1");
    free(newest);
    CHECK_OK(leat_saver_save(m.saver, m.s, "model", -1, NULL, .no_meta_graph = true));
    CHECK(access("model.index", F_OK) == 0 && access("model.meta", F_OK) != 0);
    newest = leat_latest_checkpoint(".");
    CHECK_STR(newest, "./model");
    free(newest);
    CHECK(leat_latest_checkpoint("none") == NULL);
    CHECK_INT(chdir(was), 0);
    free(was);
    end(&m);
}

static void sharded(void)
{
    clean("saver_shards");
    model m = begin(3, &(leat_saver_options){.sharded = true}, 2);
    step(&m);
    CHECK_OK(leat_saver_save(m.saver, m.s, here("saver_shards/m"), 7, NULL));
    CHECK(access(here("saver_shards/m-7.data-00000-of-00002"), F_OK) == 0);
    CHECK(access(here("saver_shards/m-7.data-00001-of-00002"), F_OK) == 0);
    char **names;
    size_t n;
    CHECK_OK(leat_dir_list(here("saver_shards"), &names, &n));
    CHECK_INT(n, 5); /* checkpoint, two shards, index, meta: nothing temporary */
    for (size_t i = 0; i < n; i++)
        free(names[i]);
    free(names);
    step(&m);
    CHECK_OK(leat_saver_restore(m.saver, m.s, here("saver_shards/m-7")));
    CHECK_NEAR(value(&m), 1, 0);
    leat_checkpoint *c;
    leat_tensor *t = NULL;
    CHECK_OK(leat_checkpoint_open(here("saver_shards/m-7"), &c));
    CHECK_INT(leat_checkpoint_count(c), 2);
    CHECK_STR(leat_checkpoint_at(c, 1)->name, "w");
    CHECK_OK(leat_checkpoint_read(c, "w", &t));
    CHECK_NEAR(leat_tensor_at(t, 2), 1, 0);
    leat_tensor_unref(t);
    CHECK_ERROR(leat_checkpoint_read(c, "x", &t), NOT_FOUND, "Key x not found in checkpoint");
    leat_checkpoint_free(c);
    end(&m);
}

static void mistakes(void)
{
    model m = begin(3, &(leat_saver_options){0}, 1);
    CHECK_ERROR(leat_saver_restore(m.saver, m.s, here("none")), INVALID_ARGUMENT,
                "The passed save_path is not a valid checkpoint: ");
    CHECK_ERROR(leat_saver_save(m.saver, m.s, here("checkpoint"), -1, NULL), INVALID_ARGUMENT,
                "'latest_filename' collides with 'save_path'");
    CHECK_ERROR(leat_saver_save(m.saver, m.s, "/proc/none/x", 1, NULL), NOT_FOUND, "/proc/none");
    leat_saver_free(m.saver);
    m.saver =
        leat_saver_new(m.g, .vars = (leat_saver_var[]){{.var = m.w, .name = "other"}}, .n_vars = 1);
    CHECK_ERROR(leat_saver_restore(m.saver, m.s, here("saver/model.ckpt-9")), NOT_FOUND,
                "Key other not found in checkpoint");
    end(&m);
    leat_graph *g = leat_graph_new();
    leat_saver_free(leat_saver_new(g, .allow_empty = true));
    CHECK_OK(leat_graph_status(g));
    leat_saver_free(leat_saver_new(g));
    CHECK_ERROR(leat_graph_status(g), INVALID_ARGUMENT, "No variables to save");
    leat_graph_free(g);
}

/* A file system of 1 MB, where that may be mounted. */
static void full_disk(void)
{
    char dir[600], command[1400];
    snprintf(dir, sizeof(dir), "%s", here("full"));
    snprintf(command, sizeof(command),
             "mkdir -p '%s' && mount -t tmpfs -o size=1m none '%s' 2>/dev/null", dir, dir);
    if (system(command) != 0)
        SKIP("no right to mount a small file system");
    model m = begin(100000, &(leat_saver_options){.max_to_keep = 1}, 1);
    char path[700];
    snprintf(path, sizeof(path), "%s/model", dir);
    CHECK_OK(leat_saver_save(m.saver, m.s, path, 1, NULL));
    CHECK_OK(leat_saver_save(m.saver, m.s, path, 2, NULL));
    snprintf(path, sizeof(path), "%s/filler", dir);
    char *bytes = calloc(1, 500000);
    CHECK_OK(leat_file_write(path, bytes, 500000));
    free(bytes);
    snprintf(path, sizeof(path), "%s/model", dir);
    leat_status s = leat_saver_save(m.saver, m.s, path, 3, NULL);
    CHECK_INT(leat_status_code(s), LEAT_RESOURCE_EXHAUSTED);
    CHECK(strstr(leat_status_message(s), "model-3.data-00000-of-00001"));
    CHECK(strstr(leat_status_message(s), "No space left on device"));
    leat_status_free(s);
    char *newest = leat_latest_checkpoint(dir);
    CHECK(newest && strstr(newest, "model-2"));
    if (newest)
        CHECK_OK(leat_saver_restore(m.saver, m.s, newest));
    free(newest);
    end(&m);
    snprintf(command, sizeof(command), "umount '%s'", dir);
    CHECK_INT(system(command), 0);
}

/* A child saves again and again, now under one name, now with steps, and is killed. */
static void child(atomic_int *saved, int64_t first_step, bool steps, bool shards)
{
    model m = begin(200000, &(leat_saver_options){.sharded = shards, .max_to_keep = 3}, 2);
    CHECK_OK(leat_saver_recover(m.saver, here("killed")));
    char *newest = leat_latest_checkpoint(here("killed"));
    if (newest)
        CHECK_OK(leat_saver_restore(m.saver, m.s, newest));
    free(newest);
    for (int64_t i = first_step;; i++) {
        step(&m);
        CHECK_OK(leat_saver_save(m.saver, m.s, here("killed/model"), steps ? i : -1, NULL,
                                 .no_meta_graph = i % 2));
        if (test_failures)
            _exit(1);
        atomic_store(saved, (int)i + 1);
    }
}

static void killed(void)
{
    clean("killed");
    atomic_int *saved = mmap(NULL, 4096, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
    unsigned seed = 12345;
    int rounds = 24;
    for (int round = 0; round < rounds && !test_failures; round++) {
        int before = atomic_load(saved);
        bool shards = round % 4 >= 2, steps = round % 2;
        pid_t pid = fork();
        if (pid == 0)
            child(saved, before, steps, shards);
        while (atomic_load(saved) == before && waitpid(pid, NULL, WNOHANG) == 0)
            nanosleep(&(struct timespec){0, 1000000}, NULL);
        seed = seed * 1664525 + 1013904223;
        nanosleep(&(struct timespec){0, (long)(seed >> 8) % 40000000}, NULL);
        kill(pid, SIGKILL);
        int status;
        if (waitpid(pid, &status, 0) == pid)
            CHECK(WIFSIGNALED(status));
        model m = begin(200000, &(leat_saver_options){0}, 2);
        char *newest = leat_latest_checkpoint(here("killed"));
        CHECK(newest != NULL);
        if (newest)
            CHECK_OK(leat_saver_restore(m.saver, m.s, newest));
        /* the last that was finished, or the one that was being written */
        double v = value(&m), last = atomic_load(saved);
        CHECK(v == last || v == last + 1);
        if (v == last + 1)
            atomic_store(saved, (int)v);
        free(newest);
        end(&m);
    }
    munmap(saved, 4096);
}

static void summaries(void)
{
    clean("summaries");
    leat_graph *g = leat_graph_new();
    leat_out x = leat_variable(g, "x", leat_full(g, LEAT_FLOAT, leat_shape(), 2.5));
    leat_scalar_summary("loss", x);
    leat_histogram_summary("h", x);
    leat_out all = leat_merge_all_summaries(g);
    leat_session *s;
    leat_tensor *t = NULL;
    CHECK_OK(leat_session_open(g, &s));
    CHECK_OK(leat_session_run(s, LEAT_NO_FEED, LEAT_NO_FETCH,
                              LEAT_TARGET(leat_global_variables_initializer(g))));
    CHECK_OK(leat_session_run(s, LEAT_NO_FEED, LEAT_FETCH({all, &t}), LEAT_NO_TARGET));
    leat_summary_writer *w;
    CHECK_OK(leat_summary_writer_open(here("summaries"), &w));
    CHECK_OK(leat_summary_write_mark(w, LEAT_SESSION_START, NULL, 0));
    CHECK_OK(leat_summary_write_graph(w, g, 0));
    CHECK_OK(leat_summary_write(w, t, 7));
    CHECK_OK(leat_summary_write_scalar(w, "rate", 0.5f, 8));
    CHECK_ERROR(leat_summary_write_bytes(w, "x", 1, 8), DATA_LOSS, "Summary");
    CHECK_OK(leat_summary_flush(w));
    leat_event_reader *r;
    const leat_event_record *e = NULL;
    CHECK_OK(leat_event_reader_open(leat_summary_writer_path(w), &r));
    CHECK_OK(leat_event_next(r, &e));
    CHECK_STR(e->text, "brain.Event:2");
    CHECK_OK(leat_event_next(r, &e));
    CHECK_STR(e->text, "START");
    CHECK_OK(leat_event_next(r, &e));
    CHECK(e->kind == LEAT_EVENT_GRAPH && e->size > 100);
    CHECK_OK(leat_event_next(r, &e));
    CHECK_INT(e->step, 7);
    CHECK_INT(e->n_values, 2);
    CHECK_STR(e->values[0].tag, "loss");
    CHECK_NEAR(e->values[0].scalar, 2.5, 0);
    CHECK_NEAR(e->values[1].max, 2.5, 0);
    CHECK_OK(leat_event_next(r, &e));
    CHECK_NEAR(e->values[0].scalar, 0.5, 0);
    CHECK_ERROR(leat_event_next(r, &e), OUT_OF_RANGE, "eof");
    leat_event_reader_free(r);
    CHECK_OK(leat_summary_writer_close(w));
    leat_tensor_unref(t);
    leat_session_close(s);
    leat_graph_free(g);
}

int main(int argc, char **argv)
{
    return RUN(argc, argv, {"killed", killed}, {"keeps", keeps}, {"relative", relative},
               {"sharded", sharded}, {"mistakes", mistakes}, {"full_disk", full_disk},
               {"summaries", summaries});
}
