/* mnist_eval.c -- tests what mnist_towers trains: restores the moving averages of the newest
 * checkpoint and prints the precision over the test set, once or again and again while training
 * goes on. */
#include <leat/leat.h>

#include <stdio.h>
#include <time.h>
#include <unistd.h>

#include "common_flags.h"
#include "common_layers.h"
#include "common_mnist.h"

static const char *log_dir, *data_dir, *eval_dir;
static double interval;
static int64_t most;

static const flag flags[] = {
    {"log_dir", FLAG_STRING, &log_dir, 0, "where mnist_towers writes its checkpoints; required"},
    {"data_dir", FLAG_STRING, &data_dir, 0, "where MNIST's files are"},
    {"eval_dir", FLAG_STRING, &eval_dir, 0, "where to write the precision as a summary"},
    {"eval_interval_secs", FLAG_FLOAT, &interval, 0, "seconds between tests; 0: one test"},
    {"evals", FLAG_INT, &most, 0, "tests of different checkpoints to end after; 0: no end"},
    {0},
};

static leat_status evaluate(trained *t, leat_mnist *data, leat_summary_writer *w)
{
    double precision;
    char now[64];
    const time_t seconds = time(NULL);
    LEAT_TRY(mnist_test_means(t->s, data, t->x, t->y_, &t->accuracy, 1, &precision));
    strftime(now, sizeof(now), "%Y-%m-%d %H:%M:%S", localtime(&seconds));
    printf("%s: precision @ 1 = %.4f (step %lld)\n", now, precision, (long long)t->step);
    fflush(stdout);
    if (!w)
        return NULL;
    LEAT_TRY(leat_summary_write_scalar(w, "Precision @ 1", (float)precision, t->step));
    return leat_summary_flush(w);
}

/* With an interval, what is missing or damaged may be there the next time. */
static leat_status loop(trained *t, leat_mnist *data, leat_summary_writer *w)
{
    int64_t seen = -1;
    for (int64_t done = 0;;) {
        leat_status s = trained_restore(t, log_dir);
        if (!s && t->step != seen) {
            s = evaluate(t, data, w);
            seen = t->step;
            done++;
        }
        if (s && interval > 0) {
            fprintf(stderr, "mnist_eval: %s\n", leat_status_message(s));
            leat_status_free(s);
            s = NULL;
        }
        if (s || interval <= 0 || (most > 0 && done >= most))
            return s;
        usleep((useconds_t)(interval * 1e6));
    }
}

static leat_status run(void)
{
    leat_mnist *data;
    leat_summary_writer *w = NULL;
    trained t = {0};
    LEAT_TRY(leat_mnist_open(data_dir, 1, &data));
    printf("%s\n", leat_mnist_source(data));
    leat_status s = eval_dir ? leat_summary_writer_open(eval_dir, &w) : NULL;
    if (!s)
        s = loop(&t, data, w);
    s = leat_status_first(s, leat_summary_writer_close(w));
    trained_release(&t);
    leat_mnist_close(data);
    return s;
}

int main(int argc, char **argv)
{
    int done = flags_parse(argc, argv, "tests the newest checkpoint of mnist_towers", flags);
    if (done >= 0)
        return done;
    if (!log_dir) {
        fprintf(stderr, "mnist_eval: --log_dir is required (--help lists the flags)\n");
        return 2;
    }
    LEAT_DIE_ON_ERROR(run());
    return 0;
}
