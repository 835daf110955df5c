/* exactly_once_test.c -- a training program is killed (SIGKILL) at random moments and started again
 * until it has gone through its input: each sample of each epoch is counted exactly once in the
 * last checkpoint, by a variable that is a histogram of the samples' numbers. LEAT_KILLS=1000 kills
 * more often, LEAT_SEED repeats the moments. */
#include <dirent.h>
#include <leat/leat.h>
#include <signal.h>
#include <sys/wait.h>
#include <time.h>

#include "kernels/dataset_graph.h"

enum { FILES = 6, LINES = 50, SAMPLES = FILES * LINES, EPOCHS = 4, BATCH = 7 };

static char dir[100];
static unsigned seed;

static void make_dir(void)
{
    snprintf(dir, sizeof(dir), "/tmp/leat_exactly_once_XXXXXX");
    CHECK(mkdtemp(dir) != NULL);
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

/* ---- The program ---- */

static void same_late(leat_graph *g, void *arg, const leat_out *in, leat_out *out)
{
    out[0] = leat_sub(leat_add(in[0], number(g, 5)), number(g, 5));
}

/* Batches of numbers from a dataset that shuffles, maps in parallel and works ahead. *init begins
 * it. */
static leat_out by_dataset(leat_graph *g, leat_out *init)
{
    leat_function_define(g, "SameLate", same_late, NULL, 1, LEAT_INT64);
    leat_out d = range(g, SAMPLES);
    d = DATASET("ShuffleDataset", leat_in(d), leat_in(number(g, 40)), leat_in(number(g, 0)),
                leat_in(number(g, 0)));
    d = counted(g, "RepeatDataset", d, EPOCHS);
    d = parallel_map(g, d, "SameLate", 3);
    d = counted(g, "BatchDataset", d, BATCH);
    d = counted(g, "PrefetchDataset", d, 3);
    leat_out it = leat_op(g, "IteratorV2", leat_attr_string("shared_name", ""),
                          leat_attr_string("container", ""), ELEMENTS);
    *init = leat_op(g, "MakeIterator", leat_in(d), leat_in(it));
    return leat_op(g, "IteratorGetNext", leat_in(it), ELEMENTS);
}

static leat_out file_names(leat_graph *g)
{
    leat_tensor *t = NULL;
    CHECK_OK(leat_tensor_new(LEAT_STRING, leat_shape(FILES), &t));
    for (int i = 0; i < FILES; i++) {
        char path[200];
        snprintf(path, sizeof(path), "%s/lines%d", dir, i);
        leat_string_set((leat_string *)leat_tensor_data(t) + i, path, strlen(path));
    }
    leat_out x = leat_const(g, t);
    leat_tensor_unref(t);
    return x;
}

/* The same numbers from the lines of files: names go through a queue to a reader, which two threads
 * use, lines to a queue that shuffles, and batches to a third queue. */
static leat_out by_queues(leat_graph *g, leat_out *init)
{
    leat_out names = leat_string_input_producer(file_names(g), .num_epochs = EPOCHS);
    leat_out reader = leat_text_line_reader(g);
    leat_out line = leat_output(leat_reader_read(reader, names), 1);
    leat_out x = LEAT_OP1("StringToNumber", line, leat_attr_type("out_type", LEAT_INT64));
    leat_out drawn, batch;
    leat_shuffle_batch(LEAT_OUTS(x), 5, 40, 20, &drawn, .num_threads = 2,
                       .allow_smaller_final_batch = true);
    leat_batch(LEAT_OUTS(drawn), BATCH, &batch, .enqueue_many = true, .capacity = 9,
               .allow_smaller_final_batch = true);
    *init = leat_no_op(g);
    return batch;
}

/* Trains until the input ends; gives the exit code. */
static int program(leat_out (*input)(leat_graph *g, leat_out *init))
{
    leat_graph *g = leat_graph_new();
    leat_monitored *ms = NULL;
    leat_out init, step = leat_global_step(g);
    leat_out hist = leat_variable(g, "hist", leat_zeros(g, LEAT_INT64, leat_shape(SAMPLES)));
    leat_out ids = input(g, &init);
    leat_out ones = leat_op(g, "OnesLike", leat_in(ids));
    leat_out add =
        leat_op(g, "ScatterAdd", leat_in(leat_variable_ref(hist)), leat_in(ids), leat_in(ones));
    leat_out one = number(g, 1), both[2] = {add};
    both[1] = leat_op(g, "AssignAdd", leat_in(leat_variable_ref(step)), leat_in(one));
    leat_out train = leat_group_at(LEAT_AT, g, both, 2, NULL);
    const leat_out local[2] = {init, leat_local_variables_initializer(g)};
    leat_scaffold f = {.local_init_op = leat_group_at(LEAT_AT, g, local, 2, NULL)};
    leat_save_input(g);
    leat_status s =
        leat_monitored_open(g, &ms, .checkpoint_dir = dir, .save_checkpoint_steps = 3,
                            .save_summaries_steps = 0, .log_step_count_steps = 0, .scaffold = &f);
    while (!s)
        s = leat_monitored_run(ms, LEAT_NO_FEED, LEAT_NO_FETCH, LEAT_TARGET(train));
    bool good = leat_status_code(s) == LEAT_OUT_OF_RANGE;
    if (!good)
        fprintf(stderr, "%s\n", leat_status_message(s));
    leat_status_free(s);
    s = leat_monitored_close(ms);
    if (s)
        fprintf(stderr, "%s\n", leat_status_message(s));
    return good && !s ? 0 : 1;
}

/* ---- Killing ---- */

static int wait_or_kill(pid_t pid, int ms)
{
    int code = 0;
    usleep((useconds_t)ms * 1000);
    kill(pid, SIGKILL);
    waitpid(pid, &code, 0);
    return code;
}

/* Starts the program and, if ms is not below 0, kills it after that time. True if it has ended by
 * itself. */
static bool run_once(leat_out (*input)(leat_graph *g, leat_out *init), int ms)
{
    int code = 0;
    fflush(stdout);
    pid_t pid = fork();
    if (pid == 0)
        _exit(program(input));
    if (ms >= 0)
        code = wait_or_kill(pid, ms);
    else
        waitpid(pid, &code, 0);
    if (WIFSIGNALED(code))
        return false;
    CHECK_INT(WEXITSTATUS(code), 0);
    return true;
}

static void check_histogram(void)
{
    char *path = leat_latest_checkpoint(dir);
    leat_checkpoint *c = NULL;
    leat_tensor *t = NULL;
    CHECK(path != NULL);
    if (!path)
        return;
    CHECK_OK(leat_checkpoint_open(path, &c));
    CHECK_OK(leat_checkpoint_read(c, "hist", &t));
    int wrong = 0;
    for (int64_t i = 0; t && i < SAMPLES; i++)
        if (leat_tensor_at(t, i) != EPOCHS && wrong++ < 5)
            printf("sample %d was counted %g times\n", (int)i, leat_tensor_at(t, i));
    CHECK_INT(wrong, 0);
    leat_tensor_unref(t);
    leat_checkpoint_free(c);
    free(path);
}

static void write_lines(void)
{
    for (int i = 0; i < FILES; i++) {
        char path[200];
        snprintf(path, sizeof(path), "%s/lines%d", dir, i);
        FILE *f = fopen(path, "w");
        for (int k = 0; f && k < LINES; k++)
            fprintf(f, "%d\n", i * LINES + k);
        CHECK(f && fclose(f) == 0);
    }
}

static void kill_often(leat_out (*input)(leat_graph *g, leat_out *init))
{
    const char *text = getenv("LEAT_KILLS"), *from = getenv("LEAT_SEED");
    const int wanted = text ? atoi(text) : 50;
    int kills = 0, runs = 0;
    setenv("TF_CPP_MIN_LOG_LEVEL", "2", 0);
    seed = from ? (unsigned)atoi(from) : (unsigned)time(NULL);
    printf("seed %u\n", seed);
    do {
        make_dir();
        write_lines();
        for (bool ended = false; !ended && !test_failures;) {
            ended = run_once(input, kills < wanted ? rand_r(&seed) % 120 : -1);
            kills += !ended;
        }
        check_histogram();
        remove_dir();
        runs++;
    } while (kills < wanted && !test_failures);
    printf("%d kills in %d trainings\n", kills, runs);
}

static void dataset(void)
{
    kill_often(by_dataset);
}

static void queues(void)
{
    kill_often(by_queues);
}

int main(int argc, char **argv)
{
    return RUN(argc, argv, {"dataset", dataset}, {"queues", queues});
}
