/* watching_test.c -- event files and traces of training programs: intervals and queues of writers,
 * several writers in one directory, files that cannot be written, traces of chosen steps. */
#include <dirent.h>
#include <leat/leat.h>
#include <pthread.h>
#include <signal.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

#include "core/arena.h"
#include "core/json.h"
#include "proto/event.pb-c.h"
#include "proto/tensor_codec.h"
#include "proto/wire.h"
#include "test.h"

static char dir[100];

static void make_dir(void)
{
    snprintf(dir, sizeof(dir), "/tmp/leat_watching_test_XXXXXX");
    CHECK(mkdtemp(dir) != NULL);
}

/* Calls fn for each file of the directory whose name has `part`; gives their number. */
static int files(const char *part, void (*fn)(const char *path))
{
    char path[400];
    int n = 0;
    DIR *d = opendir(dir);
    for (struct dirent *e; d && (e = readdir(d));)
        if (e->d_name[0] != '.' && strstr(e->d_name, part)) {
            n++;
            snprintf(path, sizeof(path), "%s/%s", dir, e->d_name);
            if (fn)
                fn(path);
        }
    if (d)
        closedir(d);
    return n;
}

static void remove_file(const char *path)
{
    unlink(path);
}

static void remove_dir(void)
{
    files("", remove_file);
    rmdir(dir);
}

static int events, values, kinds[LEAT_EVENT_METADATA + 1];

static void count_file(const char *path)
{
    leat_event_reader *r = NULL;
    const leat_event_record *e;
    leat_status s;
    CHECK_OK(leat_event_reader_open(path, &r));
    while (!(s = leat_event_next(r, &e))) {
        events++;
        kinds[e->kind]++;
        values += e->n_values;
    }
    CHECK_ERROR(s, OUT_OF_RANGE, "");
    leat_event_reader_free(r);
}

/* The number of events in all files, without those of the version. */
static int count_events(void)
{
    memset(kinds, 0, sizeof(kinds));
    events = 0;
    files("tfevents", count_file);
    return events - kinds[LEAT_EVENT_VERSION];
}

/* ---- Writers ---- */

static void intervals(void)
{
    leat_summary_writer *w = NULL;
    make_dir();
    CHECK_OK(leat_summary_writer_open(dir, &w, .flush_secs = 0.05, .filename_suffix = ".x"));
    CHECK(strstr(leat_summary_writer_path(w), ".x"));
    for (int i = 0; i < 2; i++) { /* without a further event */
        CHECK_OK(leat_summary_write_scalar(w, "a", 1, i));
        CHECK_SOON(count_events() == i + 1);
    }
    CHECK_OK(leat_summary_writer_close(w));
    CHECK_OK(leat_summary_writer_open(dir, &w, .flush_secs = 1e6, .max_queue = 2));
    for (int i = 0; i < 4; i++)
        CHECK_OK(leat_summary_write_scalar(w, "a", 1, i));
    CHECK_INT(count_events(), 2 + 3);
    CHECK_OK(leat_summary_writer_reopen(w));
    CHECK_INT(count_events(), 2 + 4);
    CHECK_OK(leat_summary_write_mark(w, LEAT_SESSION_STOP, NULL, 5));
    CHECK_OK(leat_summary_writer_close(w));
    CHECK_INT(count_events(), 2 + 5);
    CHECK_INT(files("tfevents", NULL), 3);
    CHECK_OK(leat_summary_writer_open(dir, &w, .flush_secs = 0));
    CHECK_OK(leat_summary_write_scalar(w, "a", 1, 0));
    CHECK_INT(count_events(), 2 + 6);
    CHECK_OK(leat_summary_writer_close(w));
    remove_dir();
}

static leat_out build_step(leat_graph *g)
{
    leat_out step = leat_global_step(g);
    leat_out w = leat_variable(g, "w", leat_zeros(g, LEAT_FLOAT, leat_shape(2)));
    leat_out loss = leat_reduce_sum(w);
    leat_scalar_summary("loss", loss);
    leat_optimizer *opt = leat_gradient_descent(.learning_rate = 0.5);
    leat_out train = leat_minimize(opt, loss, .global_step = step);
    leat_optimizer_free(opt);
    return train;
}

static void graphs(void)
{
    leat_summary_writer *w = NULL;
    leat_graph *g = leat_graph_new();
    build_step(g);
    make_dir();
    CHECK_OK(leat_summary_writer_open(dir, &w));
    CHECK_OK(leat_summary_write_graph(w, g, 0));
    CHECK_OK(leat_summary_write_meta_graph(w, g, NULL, 0));
    CHECK_OK(leat_summary_writer_close(w));
    CHECK_INT(count_events(), 2);
    CHECK_INT(kinds[LEAT_EVENT_GRAPH], 1);
    CHECK_INT(kinds[LEAT_EVENT_META_GRAPH], 1);
    leat_graph_free(g);
    remove_dir();
}

/* Tasks that write to one directory at the same time have a file each, and nothing is lost. */
static void several_tasks(void)
{
    enum { TASKS = 4, EVENTS = 500 };
    make_dir();
    for (int i = 0; i < TASKS; i++)
        if (fork() == 0) {
            leat_summary_writer *w = NULL;
            leat_status s = leat_summary_writer_open(dir, &w);
            for (int k = 0; k < EVENTS && !s; k++)
                s = leat_summary_write_scalar(w, "a", 1, k);
            s = leat_status_first(s, leat_summary_writer_close(w));
            _exit(s != NULL);
        }
    for (int i = 0; i < TASKS; i++) {
        int status = 0;
        CHECK(wait(&status) > 0 && status == 0);
    }
    CHECK_INT(files("tfevents", NULL), TASKS);
    CHECK_INT(count_events(), TASKS * EVENTS);
    remove_dir();
}

/* TensorFlow 2 writes all kinds as tensors, and names the plugin that shows them. */
static void tensors(void)
{
    static const double rows[] = {-1, 0, 3, 0, 2, 1};
    static const struct {
        const char *plugin;
        leat_dtype dtype;
        leat_summary_kind kind;
    } cases[] = {{"scalars", LEAT_FLOAT, LEAT_SUMMARY_SCALAR},
                 {"histograms", LEAT_DOUBLE, LEAT_SUMMARY_HISTOGRAM},
                 {"histograms", LEAT_FLOAT, LEAT_SUMMARY_TENSOR},
                 {"images", LEAT_STRING, LEAT_SUMMARY_IMAGE},
                 {"other", LEAT_FLOAT, LEAT_SUMMARY_TENSOR}};
    leat_summary_writer *w = NULL;
    leat_event_reader *r = NULL;
    const leat_event_record *e = NULL;
    make_dir();
    CHECK_OK(leat_summary_writer_open(dir, &w));
    for (size_t i = 0; i < sizeof(cases) / sizeof(*cases); i++) {
        leat_tensor *t = NULL;
        if (cases[i].dtype == LEAT_DOUBLE) {
            CHECK_OK(leat_tensor_copy_of(LEAT_DOUBLE, leat_shape(2, 3), rows, &t));
        } else {
            const bool text = cases[i].dtype == LEAT_STRING;
            CHECK_OK(leat_tensor_new(cases[i].dtype, text ? leat_shape(3) : leat_shape(), &t));
            if (text) {
                CHECK(leat_string_set((leat_string *)leat_tensor_mutable(t) + 0, "32", 2));
                CHECK(leat_string_set((leat_string *)leat_tensor_mutable(t) + 1, "16", 2));
            } else {
                *(float *)leat_tensor_mutable(t) = 2.5f;
            }
        }
        Leat__SummaryMetadata__PluginData plugin = LEAT__SUMMARY_METADATA__PLUGIN_DATA__INIT;
        Leat__SummaryMetadata metadata = LEAT__SUMMARY_METADATA__INIT;
        Leat__Summary__Value v = LEAT__SUMMARY__VALUE__INIT, *values[] = {&v};
        Leat__Summary m = LEAT__SUMMARY__INIT;
        plugin.plugin_name = (char *)cases[i].plugin;
        metadata.plugin_data = &plugin;
        v.metadata = &metadata;
        v.value_case = LEAT__SUMMARY__VALUE__VALUE_TENSOR;
        CHECK_OK(leat_tensor_to_proto(t, LEAT_TENSOR_CONTENT, &v.tensor));
        m.n_value = 1;
        m.value = values;
        void *bytes;
        size_t n;
        CHECK_OK(leat_proto_bytes(&m, &bytes, &n));
        CHECK_OK(leat_summary_write_bytes(w, bytes, n, 1));
        free(bytes);
        leat_proto_free(v.tensor);
        leat_tensor_unref(t);
    }
    CHECK_OK(leat_summary_flush(w));
    CHECK_OK(leat_event_reader_open(leat_summary_writer_path(w), &r));
    CHECK_OK(leat_event_next(r, &e));
    for (size_t i = 0; i < sizeof(cases) / sizeof(*cases); i++) {
        CHECK_OK(leat_event_next(r, &e));
        CHECK_INT(e->values[0].kind, cases[i].kind);
        CHECK_STR(e->values[0].plugin, cases[i].plugin);
        if (i == 0)
            CHECK(e->values[0].scalar == 2.5f);
        if (i == 1) {
            CHECK(e->values[0].min == -1 && e->values[0].max == 2 && e->values[0].num == 4);
            CHECK(e->values[0].limits[0] == 0 && e->values[0].counts[1] == 1);
        }
        if (i == 3)
            CHECK(e->values[0].width == 32 && e->values[0].height == 16);
    }
    leat_event_reader_free(r);
    CHECK_OK(leat_summary_writer_close(w));
    remove_dir();
}

/* ---- Files that cannot be written ---- */

static int warnings;
static char warning[1000];

static void keep_warning(void *arg, leat_log_level level, const char *file, int line,
                         const char *message)
{
    warnings++;
    snprintf(warning, sizeof(warning), "%s", message);
}

static void train_for(int steps, const char *summary_dir, leat_hook *hook)
{
    leat_graph *g = leat_graph_new();
    leat_out train = build_step(g);
    leat_monitored *ms = NULL;
    int runs = 0;
    warnings = 0;
    leat_log_set_sink(keep_warning, NULL, LEAT_LOG_WARNING);
    CHECK_OK(leat_monitored_open(g, &ms, .summary_dir = summary_dir, .save_summaries_steps = 1,
                                 .log_step_count_steps = 1, .last_step = steps,
                                 .hooks = (leat_hook *[]){hook, NULL}));
    for (; ms && !leat_monitored_should_stop(ms); runs++)
        CHECK_OK(leat_monitored_run(ms, LEAT_NO_FEED, LEAT_NO_FETCH, LEAT_TARGET(train)));
    CHECK_OK(leat_monitored_close(ms));
    CHECK_INT(runs, steps);
    leat_log_set_sink(NULL, NULL, LEAT_LOG_WARNING);
    leat_graph_free(g);
}

static void unwritable_directory(void)
{
    train_for(5, "/dev/null/events", NULL);
    CHECK_INT(warnings, 1);
    CHECK(strstr(warning, "Events are not written to /dev/null/events, and training goes on"));
    leat_summary_writer *w = NULL;
    CHECK_ERROR(leat_summary_writer_open("/dev/null/events", &w), FAILED_PRECONDITION, "/dev/null");
}

static void unwritable_traces(void)
{
    train_for(5, NULL, leat_profiler_hook(.save_steps = 1, .output_dir = "/dev/null/traces"));
    CHECK_INT(warnings, 2); /* the event file's, the trace's */
}

/* The limit of a file's size is a disk that becomes full. The limit holds for this process, so the
 * test is in another. */
static void full_disk(void)
{
    make_dir();
    fflush(stdout);
    pid_t child = fork();
    if (child == 0) {
        struct rlimit limit = {2000, RLIM_INFINITY};
        signal(SIGXFSZ, SIG_IGN);
        if (setrlimit(RLIMIT_FSIZE, &limit) != 0)
            _exit(2);
        train_for(100, dir, NULL);
        _exit(test_failures || warnings != 1 || !strstr(warning, "File too large"));
    }
    int status = -1;
    CHECK(waitpid(child, &status, 0) == child);
    CHECK_INT(status, 0);
    CHECK(count_events() > 5); /* whole events, up to the limit */
    remove_dir();
}

/* What could not be written is written when there is room again. */
static void room_again(void)
{
    make_dir();
    fflush(stdout);
    pid_t child = fork();
    if (child == 0) {
        struct rlimit limit = {1000, RLIM_INFINITY}, none = {RLIM_INFINITY, RLIM_INFINITY};
        leat_summary_writer *w = NULL;
        signal(SIGXFSZ, SIG_IGN);
        leat_status_free(leat_summary_writer_open(dir, &w, .flush_secs = 0.02));
        setrlimit(RLIMIT_FSIZE, &limit);
        for (int i = 0; i < 100; i++)
            leat_status_free(leat_summary_write_scalar(w, "a", 1, i));
        CHECK_ERROR(leat_summary_flush(w), OUT_OF_RANGE, "File too large");
        setrlimit(RLIMIT_FSIZE, &none);
        CHECK_OK(leat_summary_writer_close(w));
        _exit(test_failures != 0);
    }
    int status = -1;
    CHECK(waitpid(child, &status, 0) == child);
    CHECK_INT(status, 0);
    CHECK_INT(count_events(), 100);
    remove_dir();
}

/* A hook that adds a summary when training begins; and the graph has one node that merges them. */
static leat_status add_summary(leat_hook *h, leat_graph *g)
{
    leat_scalar_summary("late", leat_scalar(g, LEAT_FLOAT, 3));
    return NULL;
}

static void late_summaries(void)
{
    static const leat_hook_ops ops = {.name = "late", .begin = add_summary};
    static leat_hook late = {&ops};
    make_dir();
    leat_graph *g = leat_graph_new();
    leat_out train = build_step(g);
    leat_monitored *ms = NULL;
    CHECK_OK(leat_monitored_open(g, &ms, .summary_dir = dir, .last_step = 1,
                                 .hooks = (leat_hook *[]){&late, NULL}));
    CHECK_OK(leat_monitored_run(ms, LEAT_NO_FEED, LEAT_NO_FETCH, LEAT_TARGET(train)));
    CHECK_OK(leat_monitored_close(ms));
    CHECK(leat_graph_find(g, "Merge/MergeSummary") && !leat_graph_find(g, "Merge_1/MergeSummary"));
    leat_graph_free(g);
    values = 0;
    count_events();
    CHECK_INT(values, 2);
    remove_dir();
}

/* ---- Traces ---- */

static int traced_events;

/* A trace is JSON whose events are named devices, then nodes with times. */
static void read_trace(const char *path)
{
    leat_arena a = {0};
    const leat_json *v = NULL, *list;
    static char text[1 << 20];
    FILE *f = fopen(path, "r");
    const size_t n = f ? fread(text, 1, sizeof(text) - 1, f) : 0;
    text[n] = 0;
    if (f)
        fclose(f);
    CHECK_OK(leat_json_read(&a, text, &v));
    list = leat_json_get(v, "traceEvents");
    CHECK(list && list->kind == LEAT_JSON_LIST);
    for (const leat_json *e = list ? list->first : NULL; e; e = e->next) {
        const leat_json *phase = leat_json_get(e, "ph");
        if (!phase || strcmp(phase->text, "X") != 0)
            continue;
        traced_events++;
        CHECK(atof(leat_json_get(e, "ts")->text) >= 0 && atof(leat_json_get(e, "dur")->text) >= 0);
        CHECK(leat_json_get(leat_json_get(e, "args"), "name") != NULL);
    }
    leat_arena_release(&a);
}

static void chosen_steps(void)
{
    make_dir();
    train_for(
        9, NULL,
        leat_profiler_hook(.steps = (const int64_t[]){7, 3}, .n_steps = 2, .output_dir = dir));
    CHECK_INT(files("timeline-3.json", read_trace) + files("timeline-7.json", read_trace), 2);
    CHECK_INT(files("timeline", NULL), 2);
    CHECK(traced_events > 4);
    CHECK_INT(count_events(), 2);
    CHECK_INT(kinds[LEAT_EVENT_METADATA], 2);
    remove_dir();
    make_dir();
    train_for(9, NULL, leat_profiler_hook(.save_steps = 4, .output_dir = dir));
    CHECK_INT(files("timeline-4.json", NULL) + files("timeline-8.json", NULL), 2);
    CHECK_INT(files("timeline", NULL), 2);
    remove_dir();
}

static void bad_profiler(void)
{
    leat_graph *g = leat_graph_new();
    leat_monitored *ms = NULL;
    build_step(g);
    CHECK_ERROR(leat_monitored_open(
                    g, &ms, .hooks = (leat_hook *[]){leat_profiler_hook(.output_dir = "x"), NULL}),
                INVALID_ARGUMENT, "exactly one of .save_secs, .save_steps and .steps");
    CHECK_ERROR(leat_monitored_open(
                    g, &ms, .hooks = (leat_hook *[]){leat_profiler_hook(.save_steps = 1), NULL}),
                INVALID_ARGUMENT, "leat_profiler_hook needs an .output_dir");
    leat_graph_free(g);
}

int main(int argc, char **argv)
{
    return RUN(argc, argv, {"intervals", intervals}, {"graphs", graphs}, {"tensors", tensors},
               {"several_tasks", several_tasks}, {"unwritable_directory", unwritable_directory},
               {"unwritable_traces", unwritable_traces}, {"full_disk", full_disk},
               {"room_again", room_again}, {"late_summaries", late_summaries},
               {"chosen_steps", chosen_steps}, {"bad_profiler", bad_profiler});
}
