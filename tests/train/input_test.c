/* input_test.c -- producers, readers and batches in programs: epochs, order, threads, padding, what
 * is kept, and mistakes. */
#include <leat/leat.h>

#include "io/files.h"
#include "test.h"

typedef struct fixture {
    leat_graph *g;
    leat_session *s;
    leat_coordinator *c;
} fixture;

static void start(fixture *f)
{
    CHECK_OK(leat_graph_status(f->g));
    CHECK_OK(leat_session_open(f->g, &f->s));
    CHECK_OK(leat_session_run(f->s, LEAT_NO_FEED, LEAT_NO_FETCH,
                              LEAT_TARGET(leat_local_variables_initializer(f->g))));
    f->c = leat_coordinator_new();
    CHECK_OK(leat_start_queue_runners(f->g, f->s, f->c));
}

static void end(fixture *f)
{
    leat_coordinator_request_stop(f->c, NULL);
    CHECK_OK(leat_coordinator_join(f->c));
    leat_coordinator_free(f->c);
    leat_session_close(f->s);
    leat_graph_free(f->g);
}

static leat_status fetch(fixture *f, leat_out x, leat_tensor **out)
{
    leat_run_options o = {.timeout_ms = 60000};
    return leat_session_run_with(f->s, &o, LEAT_NO_FEED, LEAT_FETCH({x, out}), LEAT_NO_TARGET);
}

static void expect(fixture *f, leat_out x, const char *want)
{
    leat_tensor *t = NULL;
    CHECK_OK(fetch(f, x, &t));
    char *text = t ? leat_tensor_text(t, -1) : NULL;
    CHECK_STR(text, want);
    free(text);
    leat_tensor_unref(t);
}

static void expect_end(fixture *f, leat_out x)
{
    leat_tensor *t = NULL;
    CHECK_ERROR(fetch(f, x, &t), OUT_OF_RANGE, "is closed and has insufficient elements");
}

static leat_out strings(leat_graph *g, int n, const char *const *v)
{
    leat_tensor *t = NULL;
    CHECK_OK(leat_tensor_new(LEAT_STRING, leat_shape(n), &t));
    for (int i = 0; i < n; i++)
        leat_string_set((leat_string *)leat_tensor_data(t) + i, v[i], strlen(v[i]));
    leat_out x = leat_const(g, t);
    leat_tensor_unref(t);
    return x;
}

static leat_out numbers(leat_graph *g, leat_shape shape)
{
    leat_tensor *t = NULL;
    CHECK_OK(leat_tensor_new(LEAT_FLOAT, shape, &t));
    for (int64_t i = 0; i < leat_tensor_count(t); i++)
        leat_tensor_set_at(t, i, (double)i);
    leat_out x = leat_const(g, t);
    leat_tensor_unref(t);
    return x;
}

/* ---- Producers ---- */

static void epochs(void)
{
    fixture f = {.g = leat_graph_new()};
    leat_out q = leat_string_input_producer(strings(f.g, 2, (const char *[]){"a", "b"}),
                                            .num_epochs = 2, .shuffle = false);
    leat_out x = leat_dequeue(q);
    start(&f);
    expect(&f, x, "a");
    expect(&f, x, "b");
    expect(&f, x, "a");
    expect(&f, x, "b");
    expect_end(&f, x);
    end(&f);
}

/* Each epoch has each number once, in an order of its own. */
static void shuffled(void)
{
    fixture f = {.g = leat_graph_new()};
    leat_out x = leat_dequeue(
        leat_range_input_producer(leat_scalar(f.g, LEAT_INT32, 20), .num_epochs = 3, .seed = 7));
    int order[3][20], moved = 0;
    start(&f);
    for (int e = 0; e < 3; e++) {
        int seen[20] = {0};
        for (int i = 0; i < 20; i++) {
            leat_tensor *t = NULL;
            CHECK_OK(fetch(&f, x, &t));
            order[e][i] = t ? (int)leat_tensor_at(t, 0) : 0;
            seen[order[e][i]]++;
            moved += order[e][i] != i;
            leat_tensor_unref(t);
        }
        for (int i = 0; i < 20; i++)
            CHECK_INT(seen[i], 1);
    }
    CHECK(moved > 20);
    CHECK(memcmp(order[0], order[1], sizeof(order[0])) != 0);
    expect_end(&f, x);
    end(&f);
}

static void slices(void)
{
    fixture f = {.g = leat_graph_new()};
    leat_out row[2];
    leat_slice_input_producer(
        LEAT_OUTS(numbers(f.g, leat_shape(2, 2)), strings(f.g, 2, (const char *[]){"x", "y"})), row,
        .num_epochs = 1, .shuffle = false);
    leat_out both[2];
    leat_batch(LEAT_OUTS(row[0], row[1]), 2, both);
    start(&f);
    leat_tensor *a = NULL, *b = NULL;
    CHECK_OK(leat_session_run(f.s, LEAT_NO_FEED, LEAT_FETCH({both[0], &a}, {both[1], &b}),
                              LEAT_NO_TARGET));
    char *text = a ? leat_tensor_text(a, -1) : NULL, *text2 = b ? leat_tensor_text(b, -1) : NULL;
    CHECK_STR(text, "[[0 1][2 3]]");
    CHECK_STR(text2, "[x y]");
    free(text);
    free(text2);
    leat_tensor_unref(a);
    leat_tensor_unref(b);
    expect_end(&f, both[0]);
    end(&f);
}

static void empty_names(void)
{
    fixture f = {.g = leat_graph_new()};
    leat_out x = leat_dequeue(leat_string_input_producer(strings(f.g, 0, NULL)));
    start(&f);
    leat_tensor *t = NULL;
    CHECK_ERROR(fetch(&f, x, &t), OUT_OF_RANGE, "is closed");
    CHECK_ERROR(leat_coordinator_join(f.c), INVALID_ARGUMENT,
                "string_input_producer requires a non-null input tensor");
    leat_coordinator_free(f.c);
    leat_session_close(f.s);
    leat_graph_free(f.g);
}

/* ---- Batches ---- */

static leat_out counter(leat_graph *g, int n)
{
    return leat_dequeue(leat_range_input_producer(leat_scalar(g, LEAT_INT32, n), .num_epochs = 1,
                                                  .shuffle = false));
}

static void batches(void)
{
    fixture f = {.g = leat_graph_new()};
    leat_out x = counter(f.g, 5), y[1], z[1];
    leat_batch(LEAT_OUTS(x), 2, y, .allow_smaller_final_batch = true);
    leat_batch(LEAT_OUTS(numbers(f.g, leat_shape(3))), 4, z, .enqueue_many = true);
    start(&f);
    expect(&f, y[0], "[0 1]");
    expect(&f, y[0], "[2 3]");
    expect(&f, y[0], "[4]");
    expect_end(&f, y[0]);
    expect(&f, z[0], "[0 1 2 0]"); /* without end */
    end(&f);
}

static void padded(void)
{
    fixture f = {.g = leat_graph_new()};
    leat_out n = counter(f.g, 3), zero = leat_scalar(f.g, LEAT_INT32, 0), y[1];
    leat_out x = leat_range(zero, n, leat_scalar(f.g, LEAT_INT32, 1));
    leat_batch(LEAT_OUTS(x), 3, y, .dynamic_pad = true);
    start(&f);
    expect(&f, y[0], "[[0 0][0 0][0 1]]");
    end(&f);
}

/* Only what keep_input says is enqueued: by a scalar for an example, by a vector for rows. */
static void kept(void)
{
    fixture f = {.g = leat_graph_new()};
    leat_out x = counter(f.g, 6), y[1], z[1];
    leat_out two = leat_scalar(f.g, LEAT_INT32, 2), zero = leat_scalar(f.g, LEAT_INT32, 0);
    leat_batch(LEAT_OUTS(x), 3, y, .keep_input = leat_equal(LEAT_OP2("FloorMod", x, two), zero));
    leat_out rows = numbers(f.g, leat_shape(4));
    leat_batch(LEAT_OUTS(rows), 4, z, .enqueue_many = true,
               .keep_input = leat_greater(rows, leat_scalar(f.g, LEAT_FLOAT, 1)));
    start(&f);
    expect(&f, y[0], "[0 2 4]");
    expect_end(&f, y[0]);
    expect(&f, z[0], "[2 3 2 3]");
    end(&f);
}

/* Several threads and several sources: each example comes once. */
static void joined(void)
{
    fixture f = {.g = leat_graph_new()};
    leat_out a = counter(f.g, 30), b = counter(f.g, 30), y[1], z[1], w = counter(f.g, 40);
    const leat_outs lists[] = {LEAT_OUTS(a), LEAT_OUTS(b)};
    leat_shuffle_batch_join(lists, 2, 20, 50, 10, y, .seed = 3);
    leat_shuffle_batch(LEAT_OUTS(w), 20, 50, 10, z, .num_threads = 3);
    int seen[40] = {0}, seen2[40] = {0};
    start(&f);
    for (int i = 0; i < 5; i++) {
        leat_tensor *t = NULL;
        CHECK_OK(fetch(&f, i < 3 ? y[0] : z[0], &t));
        for (int64_t j = 0; t && j < leat_tensor_count(t); j++)
            (i < 3 ? seen : seen2)[(int)leat_tensor_at(t, j)]++;
        leat_tensor_unref(t);
    }
    for (int i = 0; i < 40; i++) {
        CHECK_INT(seen[i], i < 30 ? 2 : 0);
        CHECK_INT(seen2[i], 1);
    }
    expect_end(&f, y[0]);
    expect_end(&f, z[0]);
    end(&f);
}

/* From files to batches, as in the tutorial of CIFAR-10. */
static void files_to_batches(void)
{
    fixture f = {.g = leat_graph_new()};
    CHECK_OK(leat_file_write(here("one.bin"), "abcdefgh", 8));
    CHECK_OK(leat_file_write(here("two.bin"), "ijklmnop", 8));
    leat_out names = strings(f.g, 2, (const char *[]){here("one.bin"), here("two.bin")});
    leat_out files = leat_string_input_producer(names, .num_epochs = 1, .shuffle = false);
    leat_out reader = leat_fixed_length_reader(f.g, 4);
    leat_out record = leat_output(leat_reader_read(reader, files), 1);
    leat_out bytes = LEAT_OP1("DecodeRaw", record, leat_attr_type("out_type", LEAT_UINT8));
    leat_out y[2];
    const leat_shape shapes[] = {leat_shape(4), leat_shape()};
    leat_batch(LEAT_OUTS(bytes, record), 4, y, .shapes = shapes);
    start(&f);
    leat_tensor *a = NULL, *b = NULL;
    CHECK_OK(
        leat_session_run(f.s, LEAT_NO_FEED, LEAT_FETCH({y[0], &a}, {y[1], &b}), LEAT_NO_TARGET));
    char *text = a ? leat_tensor_text(a, -1) : NULL, *text2 = b ? leat_tensor_text(b, -1) : NULL;
    CHECK_STR(text, "[[97 98 99 100][101 102 103 104][105 106 107 108][109 110 111 112]]");
    CHECK_STR(text2, "[abcd efgh ijkl mnop]");
    free(text);
    free(text2);
    leat_tensor_unref(a);
    leat_tensor_unref(b);
    expect_end(&f, y[0]);
    end(&f);
}

static void mistake(leat_graph *g, const char *words)
{
    CHECK_ERROR(leat_graph_status(g), INVALID_ARGUMENT, words);
    CHECK_ERROR(leat_graph_status(g), INVALID_ARGUMENT, "input_test.c:");
    leat_graph_free(g);
}

static void mistakes(void)
{
    leat_out y[2];
    leat_graph *g = leat_graph_new();
    leat_input_producer(numbers(g, leat_shape(2)), .num_epochs = 0);
    mistake(g, "num_epochs must be > 0 not 0.");
    g = leat_graph_new();
    leat_input_producer(leat_scalar(g, LEAT_FLOAT, 1));
    mistake(g, "A producer needs a tensor of rows");
    g = leat_graph_new();
    leat_input_producer(leat_placeholder(g, LEAT_FLOAT, leat_shape(2, -1)));
    mistake(g, "must be known, but its shape is [2,?]");
    g = leat_graph_new();
    leat_shuffle_batch(LEAT_OUTS(numbers(g, leat_shape(2))), 2, 5, 5, y);
    mistake(g, "capacity 5 must be bigger than min_after_dequeue 5.");
    g = leat_graph_new();
    leat_batch(LEAT_OUTS(leat_placeholder(g, LEAT_FLOAT, leat_shape_unknown())), 2, y);
    mistake(g, "Cannot infer Tensor's rank: Placeholder");
    g = leat_graph_new();
    leat_batch(LEAT_OUTS(leat_scalar(g, LEAT_FLOAT, 1)), 2, y, .enqueue_many = true);
    mistake(g, "With enqueue_many, tensors have a row for each example");
    g = leat_graph_new();
    leat_batch(LEAT_OUTS(leat_scalar(g, LEAT_FLOAT, 1)), 2, y, .num_threads = 0);
    mistake(g, "num_threads must be > 0 not 0");
    g = leat_graph_new();
    leat_out keep = leat_placeholder(g, LEAT_BOOL, leat_shape(2));
    leat_batch(LEAT_OUTS(leat_scalar(g, LEAT_FLOAT, 1)), 2, y, .keep_input = keep);
    mistake(g, "`keep_input` cannot be a vector when `enqueue_many=False`.");
    g = leat_graph_new();
    leat_out one = leat_scalar(g, LEAT_FLOAT, 1), two = leat_scalar(g, LEAT_INT32, 1);
    const leat_outs lists[] = {LEAT_OUTS(one), LEAT_OUTS(two)};
    leat_batch_join(lists, 2, 2, y);
    mistake(g, "Expected types to be consistent: float vs. int32.");
}

int main(int argc, char **argv)
{
    return RUN(argc, argv, {"epochs", epochs}, {"shuffled", shuffled}, {"slices", slices},
               {"empty_names", empty_names}, {"batches", batches}, {"padded", padded},
               {"kept", kept}, {"joined", joined}, {"files_to_batches", files_to_batches},
               {"mistakes", mistakes});
}
