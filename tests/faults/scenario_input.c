/* scenario_input.c -- Examples in a file of records, read by a reader and parsed; a whole file; a
 * dataset over such a file. */
#include "faults/scenarios.h"

#include <stdlib.h>
#include <string.h>

enum { EXAMPLES = 3 };

static leat_status write_example(leat_record_writer *w, int64_t i)
{
    leat_example *e = leat_example_new();
    void *bytes = NULL;
    size_t size = 0;
    leat_status s = leat_example_add_ints(e, "i", &i, 1);
    THEN(s, leat_example_add_bytes(e, "b", "some bytes", 10));
    THEN(s, leat_example_encode(e, &bytes, &size));
    THEN(s, leat_record_write(w, bytes, size));
    free(bytes);
    leat_example_free(e);
    return s;
}

static leat_status write_file(const char *path)
{
    leat_record_writer *w = NULL;
    leat_status s = leat_record_writer_open(path, LEAT_RECORD_GZIP, &w);
    for (int64_t i = 0; i < EXAMPLES; i++)
        THEN(s, write_example(w, i));
    leat_status closed = leat_record_writer_close(w);
    if (s)
        leat_status_free(closed);
    else
        s = closed;
    return s;
}

/* A sparse feature "b" and a dense one "i". */
static leat_out parse(leat_graph *g, leat_out record)
{
    const leat_dtype string = LEAT_STRING, int64 = LEAT_INT64;
    const leat_shape scalar = leat_shape();
    const char *const b = "b", *const i = "i";
    leat_out zero = leat_scalar(g, LEAT_INT64, 0);
    return leat_op(
        g, "ParseSingleExample", leat_in(record), leat_ins(&zero, 1),
        leat_attr_int("num_sparse", 1), leat_attr_strings("sparse_keys", &b, 1),
        leat_attr_strings("dense_keys", &i, 1), leat_attr_types("sparse_types", &string, 1),
        leat_attr_types("Tdense", &int64, 1), leat_attr_shapes("dense_shapes", &scalar, 1));
}

/* Reads the records of a file, and its end. */
static leat_status read_file(leat_session *s, leat_out dense)
{
    leat_tensor *t = NULL;
    for (int i = 0; i < EXAMPLES; i++) {
        LEAT_TRY(leat_session_run(s, LEAT_NO_FEED, LEAT_FETCH({dense, &t}), LEAT_NO_TARGET));
        EXPECT(leat_tensor_at(t, 0) == i);
        leat_tensor_unref(t);
    }
    leat_status end = leat_session_run(s, LEAT_NO_FEED, LEAT_FETCH({dense, &t}), LEAT_NO_TARGET);
    if (leat_status_code(end) != LEAT_OUT_OF_RANGE)
        return end;
    leat_status_free(end);
    return NULL;
}

leat_status scenario_input(const char *dir)
{
    const char *path = scenario_path(dir, "examples");
    leat_graph *g = leat_graph_new();
    leat_session *s = NULL;
    leat_out q = leat_fifo_queue(g, 2, LEAT_COMPONENTS({LEAT_STRING, leat_shape()}));
    leat_out put = leat_enqueue(q, leat_string_const(g, path)), close = leat_queue_close(q);
    leat_out reader = leat_tf_record_reader(g, leat_attr_string("compression_type", "GZIP"));
    leat_out parsed = parse(g, leat_output(leat_reader_read(reader, q), 1));
    leat_out whole = LEAT_OP1("ReadFile", leat_string_const(g, path));
    leat_status e = leat_graph_status(g);
    THEN(e, write_file(path));
    THEN(e, leat_session_open(g, &s));
    THEN(e, leat_session_run(s, LEAT_NO_FEED, LEAT_NO_FETCH, LEAT_TARGET(put)));
    THEN(e, leat_session_run(s, LEAT_NO_FEED, LEAT_NO_FETCH, LEAT_TARGET(leat_done(whole))));
    THEN(e, leat_session_run(s, LEAT_NO_FEED, LEAT_NO_FETCH, LEAT_TARGET(close)));
    THEN(e, read_file(s, leat_output(parsed, 3)));
    leat_session_close(s);
    leat_graph_free(g);
    return e;
}

/* Goes through a dataset, saves its position on the way, and goes on from there. */
static leat_status read_dataset(leat_data_iterator *it)
{
    void *position = NULL;
    size_t size = 0;
    leat_tensor *t = NULL;
    LEAT_TRY(leat_data_iterator_next(it, &t, 1));
    EXPECT(leat_tensor_count(t) == 2);
    leat_tensor_unref(t);
    LEAT_TRY(leat_data_iterator_save(it, &position, &size));
    leat_status s = leat_data_iterator_next(it, &t, 1);
    if (!s) {
        EXPECT(leat_tensor_count(t) == 1);
        leat_tensor_unref(t);
        s = leat_data_iterator_restore(it, position, size);
    }
    free(position);
    LEAT_TRY(s);
    LEAT_TRY(leat_data_iterator_next(it, &t, 1));
    EXPECT(leat_tensor_count(t) == 1);
    leat_tensor_unref(t);
    s = leat_data_iterator_next(it, &t, 1);
    if (leat_status_code(s) != LEAT_OUT_OF_RANGE)
        return s;
    leat_status_free(s);
    return NULL;
}

leat_status scenario_dataset(const char *dir)
{
    const char *path = scenario_path(dir, "examples");
    leat_dataset *d = NULL;
    leat_data_iterator *it = NULL;
    leat_status e = write_file(path);
    THEN(e, leat_dataset_from_records(&path, 1, "GZIP", &d));
    if (!e && (e = leat_dataset_shuffle(d, 10, 1, &d)))
        d = NULL; /* taken */
    if (!e && (e = leat_dataset_batch(d, 2, false, &d)))
        d = NULL;
    if (!e && (e = leat_dataset_prefetch(d, 1, &d)))
        d = NULL;
    THEN(e, leat_data_iterator_open(d, &it));
    THEN(e, read_dataset(it));
    leat_data_iterator_close(it);
    leat_dataset_free(d);
    return e;
}
