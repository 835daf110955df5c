/* cifar10_eval.c -- tests what cifar10_towers trains: restores the moving averages of the newest
 * checkpoint and prints the precision over the test set, once or again and again while training
 * goes on. */
#include <leat/leat.h>

#include <stdio.h>
#include <stdlib.h>
#include <time.h>
#include <unistd.h>

#include "common_cifar10.h"
#include "common_flags.h"

enum { BATCH = 100 };

static const char *checkpoint_dir, *data_dir, *eval_dir;
static double interval;
static int64_t num_examples = 10000;

static const flag flags[] = {
    {"checkpoint_dir", FLAG_STRING, &checkpoint_dir, 0,
     "the --train_dir of cifar10_towers; required"},
    {"data_dir", FLAG_STRING, &data_dir, 0, "where CIFAR-10's files are"},
    {"eval_dir", FLAG_STRING, &eval_dir, 0, "where to write the precision as a summary"},
    {"num_examples", FLAG_INT, &num_examples, 1, "of the test set"},
    {"eval_interval_secs", FLAG_FLOAT, &interval, 0, "seconds between tests; 0: one test"},
    {0},
};

typedef struct net {
    leat_graph *g;
    leat_session *s;
    leat_saver *saver;
    leat_out images, labels; /* placeholders: uint8 (batch, 32, 32, 3), int32 (batch) */
    leat_out hits;           /* how many of the batch are right */
} net;

static leat_status build(net *t)
{
    leat_saver_var restored[CIFAR10_MOST_VARS];
    char names[CIFAR10_MOST_VARS][128];
    leat_graph *g = t->g = leat_graph_new();
    int n;
    t->images = leat_placeholder(g, LEAT_UINT8, leat_shape(-1, 32, 32, 3));
    t->labels = leat_placeholder(g, LEAT_INT32, leat_shape(-1));
    leat_out right =
        leat_in_top_k(cifar10_logits(g, "/cpu:0", cifar10_middle(t->images)), t->labels, 1);
    t->hits = leat_reduce_sum(leat_cast(right, LEAT_INT32));
    leat_out *vars = leat_trainable_variables(g, &n);
    for (int i = 0; i < n && i < CIFAR10_MOST_VARS; i++) {
        snprintf(names[i], sizeof(names[i]), "%s/ExponentialMovingAverage",
                 leat_node_name(vars[i].node));
        restored[i] = (leat_saver_var){.var = vars[i], .name = names[i]};
    }
    free(vars);
    LEAT_TRY(leat_graph_status(g));
    t->saver = leat_saver_new(g, .vars = restored, .n_vars = n);
    return leat_session_open(g, &t->s);
}

static leat_status count_hits(const net *t, const leat_cifar10 *data, int64_t begin, int64_t end,
                              int64_t *hits)
{
    leat_tensor *images, *labels, *n = NULL;
    LEAT_TRY(leat_cifar10_rows(data, LEAT_CIFAR10_TEST, begin, end, &images, &labels));
    leat_status s = leat_session_run(t->s, LEAT_FEED({t->images, images}, {t->labels, labels}),
                                     LEAT_FETCH({t->hits, &n}), LEAT_NO_TARGET);
    if (!s)
        *hits += (int64_t)leat_tensor_at(n, 0);
    leat_tensor_unref(n);
    leat_tensor_unref(images);
    leat_tensor_unref(labels);
    return s;
}

static leat_status step_of(const char *path, int64_t *step)
{
    leat_checkpoint *c;
    leat_tensor *t = NULL;
    LEAT_TRY(leat_checkpoint_open(path, &c));
    leat_status s = leat_checkpoint_read(c, "global_step", &t);
    if (!s)
        *step = (int64_t)leat_tensor_at(t, 0);
    leat_tensor_unref(t);
    leat_checkpoint_free(c);
    return s;
}

/* Tests the checkpoint unless it is the one of step *seen. */
static leat_status evaluate(const net *t, const leat_cifar10 *data, leat_summary_writer *w,
                            int64_t *seen)
{
    char now[64];
    const int64_t there = leat_cifar10_count(data, LEAT_CIFAR10_TEST);
    const int64_t all = num_examples < there ? num_examples : there;
    int64_t hits = 0;
    char *path = leat_latest_checkpoint(checkpoint_dir);
    if (!path)
        return leat_error(NOT_FOUND, "%s: no checkpoint", checkpoint_dir);
    int64_t step = 0;
    leat_status s = step_of(path, &step);
    if (!s && step != *seen)
        s = leat_saver_restore(t->saver, t->s, path);
    free(path);
    if (s || step == *seen)
        return s;
    for (int64_t i = 0; i < all; i += BATCH)
        LEAT_TRY(count_hits(t, data, i, i + BATCH < all ? i + BATCH : all, &hits));
    const double precision = (double)hits / (double)all;
    const time_t seconds = time(NULL);
    strftime(now, sizeof(now), "%Y-%m-%d %H:%M:%S", localtime(&seconds));
    printf("%s: precision @ 1 = %.3f (step %lld)\n", now, precision, (long long)step);
    *seen = step;
    if (!w)
        return NULL;
    LEAT_TRY(leat_summary_write_scalar(w, "Precision @ 1", (float)precision, step));
    return leat_summary_flush(w);
}

/* With an interval, what is missing or damaged may be there the next time. */
static leat_status loop(const net *t, const leat_cifar10 *data, leat_summary_writer *w)
{
    for (int64_t seen = -1;;) {
        leat_status s = evaluate(t, data, w, &seen);
        if (interval <= 0)
            return s;
        if (s)
            fprintf(stderr, "cifar10_eval: %s\n", leat_status_message(s));
        leat_status_free(s);
        usleep((useconds_t)(interval * 1e6));
    }
}

static leat_status run(void)
{
    leat_cifar10 *data;
    leat_summary_writer *w = NULL;
    net t = {0};
    LEAT_TRY(leat_cifar10_open(data_dir, &data));
    printf("%s\n", leat_cifar10_source(data));
    leat_status s = eval_dir ? leat_summary_writer_open(eval_dir, &w) : NULL;
    if (!s)
        s = build(&t);
    if (!s)
        s = loop(&t, data, w);
    s = leat_status_first(s, leat_summary_writer_close(w));
    leat_saver_free(t.saver);
    if (t.s)
        leat_session_close(t.s);
    leat_graph_free(t.g);
    leat_cifar10_close(data);
    return s;
}

int main(int argc, char **argv)
{
    setvbuf(stdout, NULL, _IOLBF, 0);
    int done = flags_parse(argc, argv, "tests the newest checkpoint of cifar10_towers", flags);
    if (done >= 0)
        return done;
    if (!checkpoint_dir) {
        fprintf(stderr, "cifar10_eval: --checkpoint_dir is required (--help lists the flags)\n");
        return 2;
    }
    LEAT_DIE_ON_ERROR(run());
    return 0;
}
