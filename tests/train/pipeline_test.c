/* pipeline_test.c -- datasets in graphs that C programs build (leat/pipeline.h): what they give,
 * what is known of their elements, iterators, Examples, mistakes. */
#include "test.h"

#include <leat/leat.h>

/* All elements of d, as text; tensors of an element with commas between them. */
static char *all_of(leat_out d, int n)
{
    static char text[4096];
    leat_graph *g = leat_node_graph(d.node);
    leat_session *s;
    leat_out init, next[4];
    leat_tensor *t[4] = {NULL};
    leat_fetch fetches[4];
    leat_status status;
    text[0] = 0;
    leat_iterator_next(leat_initializable_iterator(d, &init), next, n);
    CHECK_OK(leat_session_open(g, &s));
    CHECK_OK(leat_session_run(s, LEAT_NO_FEED, LEAT_NO_FETCH, LEAT_TARGET(init)));
    for (int i = 0; i < n; i++)
        fetches[i] = (leat_fetch){next[i], &t[i]};
    while (
        !(status = leat_session_run(s, LEAT_NO_FEED, (leat_fetches){fetches, n}, LEAT_NO_TARGET)))
        for (int i = 0; i < n; i++) {
            char *value = leat_tensor_text(t[i], -1);
            size_t used = strlen(text);
            snprintf(text + used, sizeof(text) - used, "%s%s", value, i + 1 < n ? "," : " ");
            free(value);
            leat_tensor_unref(t[i]);
            t[i] = NULL;
        }
    CHECK_ERROR(status, OUT_OF_RANGE, "End of sequence");
    leat_session_close(s);
    return text;
}

/* ---- Bodies ---- */

static void times(leat_graph *body, void *arg, const leat_out *in, leat_out *out)
{
    out[0] = leat_mul(in[0], in[1]);
}

static void odd(leat_graph *body, void *arg, const leat_out *in, leat_out *out)
{
    leat_out two = leat_scalar(body, LEAT_INT64, 2), one = leat_scalar(body, LEAT_INT64, 1);
    out[0] = leat_equal(LEAT_OP2("FloorMod", in[0], two), one);
}

/* Two copies of the element. */
static void copies(leat_graph *body, void *arg, const leat_out *in, leat_out *out)
{
    out[0] = leat_repeat_dataset(leat_tensor_dataset(LEAT_OUTS(in[0])), 2);
}

/* A vector of as many elements. */
static void grow(leat_graph *body, void *arg, const leat_out *in, leat_out *out)
{
    leat_out n = leat_cast(in[0], LEAT_INT32);
    out[0] = leat_range(leat_scalar(body, LEAT_INT32, 0), n, leat_scalar(body, LEAT_INT32, 1));
}

static void elements(void)
{
    leat_graph *g = leat_graph_new();
    leat_out ten = leat_scalar(g, LEAT_INT64, 10), d = leat_range_dataset(g, 0, 6, 1);
    leat_out m = leat_map_dataset(d, times, NULL, 1, .captured = LEAT_OUTS(ten));
    CHECK_STR(all_of(m, 1), "0 10 20 30 40 50 ");
    m = leat_map_dataset(d, times, NULL, 1, .captured = LEAT_OUTS(ten), .parallel_calls = 3);
    CHECK_STR(leat_node_op(m.node), "ParallelMapDataset");
    CHECK_STR(all_of(m, 1), "0 10 20 30 40 50 ");
    CHECK_STR(all_of(leat_filter_dataset(d, odd, NULL), 1), "1 3 5 ");
    CHECK_STR(all_of(leat_flat_map_dataset(leat_take_dataset(d, 3), copies, NULL), 1),
              "0 0 1 1 2 2 ");
    CHECK_STR(all_of(leat_interleave_dataset(leat_take_dataset(d, 4), copies, NULL, 2, 1), 1),
              "0 1 0 1 2 3 2 3 ");
    CHECK_STR(all_of(leat_interleave_dataset(leat_take_dataset(d, 4), copies, NULL, 2, 1,
                                             .parallel_calls = 2),
                     1),
              "0 1 0 1 2 3 2 3 ");
    CHECK_STR(all_of(leat_skip_dataset(leat_shard_dataset(d, 2, 1), 1), 1), "3 5 ");
    CHECK_STR(all_of(leat_zip_dataset(LEAT_OUTS(d, m)), 2), "0,0 1,10 2,20 3,30 4,40 5,50 ");
    CHECK_STR(all_of(leat_concatenate_dataset(leat_take_dataset(d, 2), d), 1), "0 1 0 1 2 3 4 5 ");
    CHECK_STR(all_of(leat_repeat_dataset(leat_cache_dataset(leat_take_dataset(d, 2), ""), 2), 1),
              "0 1 0 1 ");
    CHECK_STR(all_of(leat_prefetch_dataset(leat_batch_dataset(d, 4), -1), 1), "[0 1 2 3] [4 5] ");
    CHECK_STR(all_of(leat_batch_dataset(d, 4, .drop_remainder = true), 1), "[0 1 2 3] ");
    const leat_shape any = leat_shape(-1);
    leat_out grown = leat_map_dataset(leat_take_dataset(d, 4), grow, NULL, 1);
    CHECK_STR(all_of(leat_batch_dataset(grown, 2, .padded_shapes = &any), 1),
              "[[0][0]] [[0 1 0][0 1 2]] ");
    CHECK_OK(leat_graph_status(g));
    leat_graph_free(g);
}

/* The order of a shuffle is that of the seeds, and TensorFlow 1.15's for the same seeds. */
static void shuffled(void)
{
    leat_graph *g = leat_graph_new();
    leat_graph_set_seed(g, 5);
    leat_out d = leat_shuffle_dataset(leat_range_dataset(g, 0, 10, 1), 4, .seed = 7);
    char first[256];
    snprintf(first, sizeof(first), "%s", all_of(d, 1));
    CHECK_STR(all_of(d, 1), first);
    CHECK_STR(first, "3 1 4 5 7 8 9 2 0 6 "); /* by TensorFlow */
    leat_out rows = leat_slice_dataset(LEAT_OUTS(
        leat_op(g, "Range", leat_in(leat_scalar(g, LEAT_INT32, 0)),
                leat_in(leat_scalar(g, LEAT_INT32, 3)), leat_in(leat_scalar(g, LEAT_INT32, 1)))));
    CHECK_STR(all_of(rows, 1), "0 1 2 ");
    leat_graph_free(g);
}

/* ---- Records, with functions inside the function of a one-shot iterator ---- */

static char path[64];

static void write_records(void)
{
    leat_record_writer *w;
    snprintf(path, sizeof(path), "/tmp/leat_pipeline_%d.tfrecord", (int)getpid());
    CHECK_OK(leat_record_writer_open(path, LEAT_RECORD_GZIP, &w));
    for (int64_t i = 0; i < 5; i++) {
        const unsigned char pixels[4] = {(unsigned char)i, 1, 2, 3};
        leat_example *e = leat_example_new();
        void *bytes;
        size_t n;
        CHECK_OK(leat_example_add_bytes(e, "image", pixels, 4));
        if (i != 3)
            CHECK_OK(leat_example_add_ints(e, "label", &i, 1));
        CHECK_OK(leat_example_encode(e, &bytes, &n));
        CHECK_OK(leat_record_write(w, bytes, n));
        free(bytes);
        leat_example_free(e);
    }
    CHECK_OK(leat_record_writer_close(w));
}

static void parse(leat_graph *body, void *arg, const leat_out *in, leat_out *out)
{
    leat_tensor *none = leat_scalar_int64(-1);
    const leat_feature_spec features[] = {{"image", LEAT_STRING, leat_shape(), NULL},
                                          {"label", LEAT_INT64, leat_shape(), none}};
    leat_out x[2];
    leat_parse_single_example(in[0], features, 2, x);
    leat_tensor_unref(none);
    leat_out pixels = leat_decode_raw(x[0], LEAT_UINT8);
    out[0] = leat_cast(leat_reshape_to(pixels, leat_shape(2, 2)), LEAT_FLOAT);
    out[1] = x[1];
}

static void input(leat_graph *body, void *arg, const leat_out *in, leat_out *out)
{
    leat_out d = leat_record_dataset(leat_string_const(body, arg), "GZIP");
    out[0] = leat_batch_dataset(leat_map_dataset(d, parse, NULL, 2), 2, .drop_remainder = true);
}

static void one_shot(void)
{
    leat_graph *g = leat_graph_new();
    leat_session *s;
    leat_out x[2];
    leat_tensor *sum = NULL, *labels = NULL;
    write_records();
    leat_iterator_next(leat_one_shot_iterator(g, input, path), x, 2);
    leat_shape images = leat_out_shape(x[0]), want = leat_shape(2, 2, 2);
    CHECK(leat_shape_equal(&images, &want)); /* known while the graph is built */
    leat_out y = leat_reduce_sum(x[0]);
    CHECK_OK(leat_session_open(g, &s));
    static const char *const rows[] = {"[0 1]", "[2 -1]"};
    static const double sums[] = {13, 17};
    for (int i = 0; i < 2; i++) {
        CHECK_OK(leat_session_run(s, LEAT_NO_FEED, LEAT_FETCH({y, &sum}, {x[1], &labels}),
                                  LEAT_NO_TARGET));
        char *text = leat_tensor_text(labels, -1);
        CHECK_STR(text, rows[i]);
        free(text);
        CHECK_NEAR(leat_tensor_at(sum, 0), sums[i], 0);
        leat_tensor_unref(sum);
        leat_tensor_unref(labels);
        sum = labels = NULL;
    }
    CHECK_ERROR(leat_session_run(s, LEAT_NO_FEED, LEAT_FETCH({y, &sum}), LEAT_NO_TARGET),
                OUT_OF_RANGE, "End of sequence");
    leat_session_close(s);
    leat_graph_free(g);
    unlink(path);
}

static void lines(void)
{
    leat_graph *g = leat_graph_new();
    snprintf(path, sizeof(path), "/tmp/leat_pipeline_%d.txt", (int)getpid());
    FILE *f = fopen(path, "wb");
    fputs("ab\ncd\n", f);
    fclose(f);
    leat_out name = leat_string_const(g, path);
    CHECK_STR(all_of(leat_line_dataset(name, ""), 1), "ab cd ");
    CHECK_STR(all_of(leat_fixed_length_dataset(name, 1, 2, 1), 1), "b\\n cd ");
    leat_graph_free(g);
    unlink(path);
}

/* TensorFlow 2.x gives -1 as the size of a buffer that the program did not choose. */
static void buffer_sizes(void)
{
    write_records();
    for (int64_t size = -2; size < 2; size++) {
        leat_graph *g = leat_graph_new();
        leat_tensor *t = leat_scalar_int64(size);
        leat_session *s;
        leat_out init, x;
        leat_out d = leat_op(g, "TFRecordDataset", leat_in(leat_string_const(g, path)),
                             leat_in(leat_string_const(g, "GZIP")), leat_in(leat_const(g, t)));
        leat_iterator_next(leat_initializable_iterator(d, &init), &x, 1);
        CHECK_OK(leat_session_open(g, &s));
        leat_status status = leat_session_run(s, LEAT_NO_FEED, LEAT_NO_FETCH, LEAT_TARGET(init));
        if (size < -1)
            CHECK_ERROR(status, INVALID_ARGUMENT, "`buffer_size` must be >= 0 (0 == no buffering)");
        else
            CHECK_OK(status);
        leat_session_close(s);
        leat_tensor_unref(t);
        leat_graph_free(g);
    }
    unlink(path);
}

/* ---- Mistakes: the first one is kept in the graph, with the line of the program ---- */

static void foreign(leat_graph *body, void *arg, const leat_out *in, leat_out *out)
{
    out[0] = *(leat_out *)arg;
}

static void mistakes(void)
{
    leat_graph *g = leat_graph_new();
    leat_out x[3], d = leat_range_dataset(g, 0, 3, 1), init;
    leat_iterator_next(leat_initializable_iterator(d, &init), x, 3);
    CHECK_ERROR(leat_graph_status(g), INVALID_ARGUMENT, "have 1 tensors, not 3");
    CHECK_ERROR(leat_graph_status(g), INVALID_ARGUMENT, "pipeline_test.c:");
    leat_out after = leat_batch_dataset(leat_map_dataset(d, odd, NULL, 1), 2);
    leat_iterator_next(leat_initializable_iterator(after, &init), x, 1); /* accepted */
    leat_graph_free(g);
    g = leat_graph_new();
    leat_out outside = leat_scalar(g, LEAT_INT64, 1);
    leat_map_dataset(leat_range_dataset(g, 0, 3, 1), foreign, &outside, 1);
    CHECK_ERROR(leat_graph_status(g), INVALID_ARGUMENT,
                "is not of the body: pass it as an argument");
    leat_graph_free(g);
}

int main(int argc, char **argv)
{
    return RUN(argc, argv, {"elements", elements}, {"shuffled", shuffled}, {"one_shot", one_shot},
               {"lines", lines}, {"buffer_sizes", buffer_sizes}, {"mistakes", mistakes});
}
