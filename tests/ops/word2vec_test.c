/* word2vec_test.c -- Skipgram: its pairs are TensorFlow's (make_embedding.py has written them), go
 * on from run to run, and texts and attributes that are none are errors. NegTrain: its bounds. */
#include "io/files.h"
#include "train/values.h"

#include <leat/io.h>

enum { WORDS = 961, BATCH = 700 };

static int word(int j)
{
    return (int)sqrt(j * 7919 % 961);
}

/* The text of make_embedding.py. */
static const char *text_file(void)
{
    static char text[8 * WORDS];
    const char *path = here("words.txt");
    size_t n = 0;
    for (int j = 0; j < WORDS; j++)
        n += (size_t)snprintf(text + n, sizeof(text) - n, "w%d%s", word(j), j % 9 ? " " : "\n");
    CHECK_OK(leat_file_write(path, text, n));
    return path;
}

static leat_out skipgram(leat_graph *g, const char *path, int batch, int window, double subsample)
{
    return LEAT_OP0(g, "Skipgram", leat_attr_string("filename", path),
                    leat_attr_int("batch_size", batch), leat_attr_int("window_size", window),
                    leat_attr_int("min_count", 30), leat_attr_float("subsample", subsample));
}

static void check_words(leat_session *s, leat_out y, const char *name)
{
    char line[64];
    leat_tensor *word = NULL, *numbers, *got[2] = {0};
    CHECK_OK(leat_session_run(s, LEAT_NO_FEED, LEAT_FETCH({y, &word}, {leat_output(y, 1), &got[1]}),
                              LEAT_NO_TARGET));
    if (!word)
        return;
    const leat_string *text = leat_tensor_data(word);
    CHECK_STR(text[0].data, "UNK");
    CHECK_OK(leat_tensor_new(LEAT_FLOAT, leat_shape(leat_tensor_count(word) - 1), &numbers));
    for (int64_t i = 1; i < leat_tensor_count(word); i++)
        ((float *)leat_tensor_mutable(numbers))[i - 1] = (float)atoi(text[i].data + 1);
    got[0] = numbers;
    snprintf(line, sizeof(line), "skipgram_%s.words", name);
    check_sequence("embedding.txt", line, got, 2, 0);
    leat_tensor_unref(word);
}

static void check_pairs(const char *name, int window, double subsample)
{
    leat_graph *g = leat_graph_new();
    leat_session *s;
    leat_out y = skipgram(g, text_file(), BATCH, window, subsample);
    CHECK_OK(leat_session_open(g, &s));
    for (int i = 0; i < 6; i++) {
        char line[64];
        leat_tensor *got[5] = {0};
        CHECK_OK(
            leat_session_run(s, LEAT_NO_FEED,
                             LEAT_FETCH({leat_output(y, 2), &got[0]}, {leat_output(y, 3), &got[1]},
                                        {leat_output(y, 4), &got[2]}, {leat_output(y, 5), &got[3]},
                                        {leat_output(y, 6), &got[4]}),
                             LEAT_NO_TARGET));
        snprintf(line, sizeof(line), "skipgram_%s %d", name, i);
        check_sequence("embedding.txt", line, got, 5, 0);
    }
    check_words(s, y, name);
    leat_session_close(s);
    leat_graph_free(g);
}

static void pairs(void)
{
    check_pairs("all", 3, 0);
    check_pairs("few", 5, 0.01);
}

static void refuse(leat_out y, leat_code code, const char *words)
{
    leat_session *s;
    leat_tensor *t = NULL;
    CHECK_OK(leat_session_open(leat_node_graph(y.node), &s));
    leat_status e =
        leat_session_run(s, LEAT_NO_FEED, LEAT_FETCH({leat_output(y, 5), &t}), LEAT_NO_TARGET);
    CHECK_INT(leat_status_code(e), code);
    CHECK(strstr(leat_status_message(e), words) != NULL);
    leat_status_free(e);
    leat_session_close(s);
    leat_graph_free(leat_node_graph(y.node));
}

static void refused(void)
{
    CHECK_OK(leat_file_write(here("empty.txt"), "", 0));
    CHECK_OK(leat_file_write(here("short.txt"), "one two three", 13));
    refuse(skipgram(leat_graph_new(), "/no/text", 2, 5, 0), LEAT_NOT_FOUND,
           "/no/text; No such file or directory");
    refuse(skipgram(leat_graph_new(), here("empty.txt"), 2, 5, 0), LEAT_INVALID_ARGUMENT,
           "contains too little data: 0 words");
    refuse(skipgram(leat_graph_new(), here("short.txt"), 2, 1, 0), LEAT_INVALID_ARGUMENT,
           "short.txt contains too little data: 3 words");
    refuse(skipgram(leat_graph_new(), text_file(), 2, 0, 0), LEAT_INVALID_ARGUMENT,
           "window_size must be from 1 to 134217727, got 0");
    refuse(skipgram(leat_graph_new(), text_file(), -1, 2, 0), LEAT_INVALID_ARGUMENT,
           "batch_size must be from 0 to 134217727, got -1");
}

/* A text of which no word is ever kept: the step ends at its deadline, and the next one, too. */
static void endless(void)
{
    leat_graph *g = leat_graph_new();
    leat_session *s;
    leat_tensor *t = NULL;
    leat_out y = skipgram(g, text_file(), 5, 2, 1e-30);
    CHECK_OK(leat_session_open(g, &s, .timeout_ms = 100));
    for (int i = 0; i < 2; i++)
        CHECK_ERROR(
            leat_session_run(s, LEAT_NO_FEED, LEAT_FETCH({leat_output(y, 5), &t}), LEAT_NO_TARGET),
            DEADLINE_EXCEEDED, "");
    leat_session_close(s);
    leat_graph_free(g);
}

/* Bytes that are no text: words are what is between spaces, with all their bytes. */
static void binary(void)
{
    char bytes[512];
    for (size_t i = 0; i < sizeof(bytes); i++)
        bytes[i] = (char)(i * i * 7 + i);
    CHECK_OK(leat_file_write(here("binary"), bytes, sizeof(bytes)));
    leat_graph *g = leat_graph_new();
    leat_session *s;
    leat_tensor *t = NULL, *n = NULL;
    leat_out y = LEAT_OP0(g, "Skipgram", leat_attr_string("filename", here("binary")),
                          leat_attr_int("batch_size", 10), leat_attr_int("window_size", 1),
                          leat_attr_int("min_count", 1), leat_attr_float("subsample", 0));
    CHECK_OK(leat_session_open(g, &s));
    CHECK_OK(leat_session_run(s, LEAT_NO_FEED,
                              LEAT_FETCH({leat_output(y, 5), &t}, {leat_output(y, 2), &n}),
                              LEAT_NO_TARGET));
    CHECK(n && leat_tensor_at(n, 0) >= 10);
    leat_tensor_unref(t);
    leat_tensor_unref(n);
    leat_session_close(s);
    leat_graph_free(g);
}

/* Must be the last one: the process keeps its roots. */
static void roots(void)
{
    const char *path = text_file();
    CHECK_OK(leat_file_write(here("roots/in/words"), "a", 1));
    CHECK_OK(leat_file_roots_set(here("roots/in"), NULL));
    refuse(skipgram(leat_graph_new(), path, 2, 5, 0), LEAT_PERMISSION_DENIED, "words.txt");
}

/* ---- NegTrain ---- */

static void neg_train(int32_t example, int32_t label, const int64_t *counts, int64_t samples,
                      const char *words)
{
    leat_graph *g = leat_graph_new();
    leat_session *s;
    leat_out w[2], ids[2];
    for (int i = 0; i < 2; i++) {
        w[i] = leat_variable(g, i ? "out" : "in", leat_zeros(g, LEAT_FLOAT, leat_shape(3, 2)));
        ids[i] = leat_ints(g, i ? label : example);
    }
    leat_out train = leat_op(
        g, "NegTrain", leat_in(leat_variable_ref(w[0])), leat_in(leat_variable_ref(w[1])),
        leat_in(ids[0]), leat_in(ids[1]), leat_in(leat_scalar(g, LEAT_FLOAT, 0.1)),
        leat_attr_ints("vocab_count", counts, 3), leat_attr_int("num_negative_samples", samples));
    train.index = -1;
    CHECK_OK(leat_session_open(g, &s));
    CHECK_OK(leat_session_run(s, LEAT_NO_FEED, LEAT_NO_FETCH,
                              LEAT_TARGET(leat_global_variables_initializer(g))));
    leat_status e = leat_session_run(s, LEAT_NO_FEED, LEAT_NO_FETCH, LEAT_TARGET(train));
    if (words)
        CHECK_ERROR(e, INVALID_ARGUMENT, words);
    else
        CHECK_OK(e);
    leat_session_close(s);
    leat_graph_free(g);
}

static void bounds(void)
{
    static const int64_t counts[] = {1, 2, 3}, none[] = {0, 0, 0}, negative[] = {1, -2, 3};
    neg_train(0, 2, counts, 3, NULL);
    neg_train(3, 0, counts, 3, "examples[0] = 3 is not in [0, 3)");
    neg_train(0, -1, counts, 3, "labels[0] = -1 is not in [0, 3)");
    neg_train(0, 0, none, 3, "the sum of all counts is 0");
    neg_train(0, 0, negative, 3, "vocab_count[1] is -2; it must not be negative");
    neg_train(0, 0, counts, -1, "num_negative_samples must be from 0 to 2147483647, got -1");
}

int main(int argc, char **argv)
{
    return RUN(argc, argv, {"pairs", pairs}, {"refused", refused}, {"endless", endless},
               {"binary", binary}, {"bounds", bounds}, {"roots", roots});
}
