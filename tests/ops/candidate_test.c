/* candidate_test.c -- candidate samplers: attributes and classes with which TensorFlow's process
 * ends or does not end, weights from a file, and what a learned sampler learns. Values are in the
 * vectors. */
#include "test.h"

#include <leat/leat.h>
#include <stdlib.h>
#include <unistd.h>

#define FIXED "FixedUnigramCandidateSampler"
#define LEARNED "LearnedUnigramCandidateSampler"

typedef struct sampler {
    const char *op, *file;
    int64_t range, sampled, true_class, reserved, shards;
    bool unique;
    const double *weights;
    int n_weights;
} sampler;

static leat_out make(leat_graph *g, const sampler *p)
{
    leat_out t =
        leat_reshape(leat_scalar(g, LEAT_INT64, (double)p->true_class), leat_ints(g, 1, 1));
    const leat_arg seeds[] = {leat_attr_int("seed", 3), leat_attr_int("seed2", 4)};
    if (strcmp(p->op, FIXED) != 0)
        return LEAT_OP1(p->op, t, leat_attr_int("num_true", 1),
                        leat_attr_int("num_sampled", p->sampled),
                        leat_attr_bool("unique", p->unique), leat_attr_int("range_max", p->range),
                        seeds[0], seeds[1]);
    return LEAT_OP1(p->op, t, leat_attr_int("num_true", 1),
                    leat_attr_int("num_sampled", p->sampled), leat_attr_bool("unique", p->unique),
                    leat_attr_int("range_max", p->range),
                    leat_attr_string("vocab_file", p->file ? p->file : ""),
                    leat_attr_floats("unigrams", p->weights, p->n_weights),
                    leat_attr_int("num_reserved_ids", p->reserved),
                    leat_attr_int("num_shards", p->shards ? p->shards : 1), seeds[0], seeds[1]);
}

/* Fails with the code NOT_FOUND if the file is not there, else INVALID_ARGUMENT. */
static void refused(const char *words, sampler p)
{
    leat_graph *g = leat_graph_new();
    leat_session *s;
    leat_tensor *out = NULL;
    leat_out y = make(g, &p);
    CHECK_OK(leat_graph_status(g));
    CHECK_OK(leat_session_open(g, &s));
    leat_status got = leat_session_run(s, LEAT_NO_FEED, LEAT_FETCH({y, &out}), LEAT_NO_TARGET);
    if (p.file && access(p.file, R_OK) != 0)
        CHECK_ERROR(got, NOT_FOUND, words);
    else
        CHECK_ERROR(got, INVALID_ARGUMENT, words);
    leat_session_close(s);
    leat_graph_free(g);
}

#define WEIGHTS(...)                                                                               \
    .weights = (const double[]){__VA_ARGS__},                                                      \
    .n_weights = (int)(sizeof((double[]){__VA_ARGS__}) / sizeof(double))

static void bad(void)
{
    refused("true class 9 is not in [0, 9)",
            (sampler){.op = LEARNED, .range = 9, .sampled = 2, .true_class = 9});
    refused("true class -1 is not in [0, 9)",
            (sampler){.op = LEARNED, .range = 9, .sampled = 2, .true_class = -1});
    refused("range_max must be from 1 to 2147483646 for a learned distribution",
            (sampler){.op = LEARNED, .range = INT64_C(1) << 40, .sampled = 2});
    refused("range_max must be from 1 to 2147483647, got",
            (sampler){.op = FIXED, .range = INT64_C(1) << 40, .sampled = 2, WEIGHTS(1)});
    refused("range_max is 3, but there are weights for 2 classes",
            (sampler){.op = FIXED, .range = 3, .sampled = 2, WEIGHTS(1, 2)});
    refused("range_max is 1, but there are weights for more classes",
            (sampler){.op = FIXED, .range = 1, .sampled = 1, WEIGHTS(1, 2)});
    refused("the sum of the weights is 0; it must be positive",
            (sampler){.op = FIXED, .range = 2, .sampled = 1, WEIGHTS(0, 0)});
    refused("the weight of class 1 is -2",
            (sampler){.op = FIXED, .range = 2, .sampled = 1, WEIGHTS(1, -2)});
    refused("only 2 classes have a weight above 0", /* TensorFlow draws without end */
            (sampler){.op = FIXED, .range = 4, .sampled = 3, .unique = true, WEIGHTS(1, 0, 1, 0)});
    refused("num_reserved_ids is -1",
            (sampler){.op = FIXED, .range = 1, .sampled = 1, .reserved = -1, WEIGHTS(1)});
    refused(
        "num_reserved_ids is 4611686018427387904",
        (sampler){.op = FIXED, .range = 1, .sampled = 1, .reserved = INT64_C(1) << 62, WEIGHTS(1)});
    refused("/nowhere/words",
            (sampler){.op = FIXED, .range = 1, .sampled = 1, .file = "/nowhere/words"});
}

/* The samples of `runs` runs; count has how often each class came. */
static void draw(const sampler *p, int runs, int *count)
{
    leat_graph *g = leat_graph_new();
    leat_session *s;
    leat_out y = make(g, p);
    CHECK_OK(leat_session_open(g, &s));
    for (int r = 0; r < runs; r++) {
        leat_tensor *out = NULL;
        CHECK_OK(leat_session_run(s, LEAT_NO_FEED, LEAT_FETCH({y, &out}), LEAT_NO_TARGET));
        for (int64_t i = 0; out && i < p->sampled; i++)
            count[((const int64_t *)leat_tensor_data(out))[i]]++;
        leat_tensor_unref(out);
    }
    leat_session_close(s);
    leat_graph_free(g);
}

static void from_file(void)
{
    char path[] = "/tmp/leat-words-XXXXXX";
    const int fd = mkstemp(path);
    const char text[] = "the,3\nwheel,0\nof the, 1\n";
    CHECK(write(fd, text, sizeof(text) - 1) == (ssize_t)sizeof(text) - 1);
    int count[3] = {0};
    draw(&(sampler){.op = FIXED, .range = 3, .sampled = 1000, .file = path}, 1, count);
    CHECK(count[0] > 700 && count[0] < 800 && count[1] == 0);
    CHECK(write(fd, "bad,x\n", 6) == 6);
    refused("Wrong vocabulary format at line: bad,x",
            (sampler){.op = FIXED, .range = 4, .sampled = 1, .file = path});
    close(fd);
    unlink(path);
}

/* A class that was true a thousand times, of four: nearly all samples, at the end. The sampler
 * belongs to the session: it has learned from runs that fetched other outputs, too. */
static void learns(void)
{
    int count[4] = {0};
    const sampler p = {.op = LEARNED, .range = 4, .sampled = 100, .true_class = 2};
    leat_graph *g = leat_graph_new();
    leat_session *s;
    leat_out y = make(g, &p);
    leat_tensor *out = NULL;
    CHECK_OK(leat_session_open(g, &s));
    for (int i = 0; i < 1000; i++)
        CHECK_OK(leat_session_run(s, LEAT_NO_FEED, LEAT_NO_FETCH, LEAT_TARGET(y)));
    CHECK_OK(leat_session_run(s, LEAT_NO_FEED, LEAT_FETCH({y, &out}), LEAT_NO_TARGET));
    for (int64_t i = 0; i < p.sampled; i++)
        count[((const int64_t *)leat_tensor_data(out))[i]]++;
    CHECK(count[2] > 95 && count[0] + count[1] + count[2] + count[3] == 100);
    leat_tensor_unref(out);
    leat_session_close(s);
    leat_graph_free(g);
}

/* A session that is cancelled does not wait for distinct classes that never come. */
static void ends(void)
{
    leat_graph *g = leat_graph_new();
    leat_session *s;
    const double weights[] = {1e30, 1e-8};
    leat_out y = make(g, &(sampler){.op = FIXED,
                                    .range = 2,
                                    .sampled = 2,
                                    .unique = true,
                                    .weights = weights,
                                    .n_weights = 2});
    CHECK_OK(leat_session_open(g, &s));
    const leat_run_options o = {.timeout_ms = 200};
    CHECK_ERROR(leat_session_run_with(s, &o, LEAT_NO_FEED, LEAT_NO_FETCH, LEAT_TARGET(y)),
                DEADLINE_EXCEEDED, "");
    leat_session_close(s);
    leat_graph_free(g);
}

int main(int argc, char **argv)
{
    return RUN(argc, argv, {"bad", bad}, {"from_file", from_file}, {"learns", learns},
               {"ends", ends});
}
