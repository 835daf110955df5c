/* scenario_data.c -- datasets of the program (a generator, parallel calls, Examples, padded
 * batches) and of a graph (records by a one-shot iterator); the words of PTB. */
#include "faults/scenarios.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { EXAMPLES = 4 };

/* ---- Of the program ---- */

static leat_status begin(void *arg, void **state)
{
    return (*state = calloc(1, sizeof(int64_t))) ? NULL
                                                 : leat_error(RESOURCE_EXHAUSTED, "Out of memory");
}

/* Examples with 0, 1, 2 ... values. */
static leat_status next(void *state, leat_tensor **out, int n)
{
    int64_t *i = state, values[EXAMPLES] = {1, 2, 3, 4};
    void *bytes = NULL;
    size_t size = 0;
    if (*i == EXAMPLES)
        return leat_error(OUT_OF_RANGE, "no more");
    leat_example *e = leat_example_new();
    leat_status s = leat_example_add_ints(e, "v", values, *i);
    THEN(s, leat_example_encode(e, &bytes, &size));
    if (!s && !(out[0] = leat_scalar_string(bytes, size)))
        s = leat_error(RESOURCE_EXHAUSTED, "Out of memory");
    free(bytes);
    leat_example_free(e);
    ++*i;
    return s;
}

static leat_status same(void *arg, leat_tensor *const *in, int n_in, leat_tensor **out, int n_out)
{
    out[0] = leat_tensor_ref(in[0]);
    return NULL;
}

static leat_status program_dataset(void)
{
    static const leat_dtype string = LEAT_STRING, int64 = LEAT_INT64;
    const leat_generator g = {.begin = begin, .next = next, .end = free};
    const leat_feature_spec v = {"v", LEAT_INT64, leat_shape(-1), NULL};
    const leat_shape any = leat_shape(-1);
    leat_dataset *d = NULL;
    leat_data_iterator *it = NULL;
    leat_tensor *t;
    LEAT_TRY(leat_dataset_from_generator(&g, &string, 1, &d));
    LEAT_TRY(leat_dataset_parse(d, &v, 1, &d));
    LEAT_TRY(leat_dataset_parallel_map(d, 2, same, NULL, &int64, 1, &d));
    LEAT_TRY(leat_dataset_padded_batch(d, 2, &any, NULL, false, &d));
    leat_status s = leat_data_iterator_open(d, &it);
    leat_dataset_free(d);
    for (int i = 0; i < EXAMPLES / 2 && !s; i++) {
        THEN(s, leat_data_iterator_next(it, &t, 1));
        if (!s) {
            EXPECT(leat_tensor_dim(t, 0) == 2 && leat_tensor_dim(t, 1) == 2 * i + 1);
            leat_tensor_unref(t);
        }
    }
    leat_data_iterator_close(it);
    return s;
}

/* ---- Of a graph ---- */

static void parse(leat_graph *body, void *arg, const leat_out *in, leat_out *out)
{
    const leat_feature_spec f = {"i", LEAT_INT64, leat_shape(), NULL};
    leat_parse_single_example(in[0], &f, 1, out);
}

static void input(leat_graph *body, void *arg, const leat_out *in, leat_out *out)
{
    leat_out d = leat_record_dataset(leat_string_const(body, arg), "");
    out[0] = leat_batch_dataset(leat_map_dataset(d, parse, NULL, 1), EXAMPLES);
}

static leat_status write_records(const char *path)
{
    leat_record_writer *w = NULL;
    leat_status s = leat_record_writer_open(path, LEAT_RECORD_PLAIN, &w);
    for (int64_t i = 0; i < EXAMPLES && !s; i++) {
        void *bytes = NULL;
        size_t size = 0;
        leat_example *e = leat_example_new();
        s = leat_example_add_ints(e, "i", &i, 1);
        THEN(s, leat_example_encode(e, &bytes, &size));
        THEN(s, leat_record_write(w, bytes, size));
        free(bytes);
        leat_example_free(e);
    }
    return leat_status_first(s, leat_record_writer_close(w));
}

static leat_status graph_dataset(const char *path)
{
    leat_graph *g = leat_graph_new();
    leat_session *session = NULL;
    leat_out x;
    leat_tensor *t = NULL;
    leat_iterator_next(leat_one_shot_iterator(g, input, (void *)path), &x, 1);
    leat_status s = leat_graph_status(g);
    THEN(s, leat_session_open(g, &session));
    THEN(s, leat_session_run(session, LEAT_NO_FEED, LEAT_FETCH({x, &t}), LEAT_NO_TARGET));
    if (!s)
        EXPECT(leat_tensor_count(t) == EXAMPLES && leat_tensor_at(t, 3) == 3);
    leat_tensor_unref(t);
    leat_session_close(session);
    leat_graph_free(g);
    return s;
}

/* ---- PTB ---- */

static leat_status words(const char *dir)
{
    static const char *const names[] = {"ptb.train.txt", "ptb.valid.txt", "ptb.test.txt"};
    leat_ptb *p = NULL;
    for (int i = 0; i < 3; i++) {
        FILE *f = fopen(scenario_path(dir, names[i]), "w");
        if (!f)
            return leat_error(UNAVAILABLE, "%s; %s", names[i], strerror(errno));
        const bool written = fputs(" one two two \n", f) >= 0;
        if (fclose(f) != 0 || !written)
            return leat_error(UNAVAILABLE, "%s; %s", names[i], strerror(errno));
    }
    LEAT_TRY(leat_ptb_open(dir, &p));
    EXPECT(leat_ptb_vocabulary(p) == 3 && leat_ptb_id(p, "two") == 0);
    leat_ptb_close(p);
    return NULL;
}

leat_status scenario_data(const char *dir)
{
    const char *path = scenario_path(dir, "records");
    leat_status s = program_dataset();
    THEN(s, write_records(path));
    THEN(s, graph_dataset(path));
    THEN(s, words(dir));
    return s;
}
