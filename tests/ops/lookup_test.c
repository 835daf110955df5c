/* lookup_test.c -- lookup tables: filling, lookups, export and import; errors. */
#include "test.h"

#include <leat/leat.h>

static leat_graph *g;
static leat_session *s;

static leat_out words(const char *a, const char *b)
{
    leat_tensor *t = NULL;
    CHECK_OK(leat_tensor_new(LEAT_STRING, leat_shape(2), &t));
    leat_string *v = leat_tensor_mutable(t);
    leat_string_set(&v[0], a, strlen(a));
    leat_string_set(&v[1], b, strlen(b));
    leat_out x = leat_const(g, t);
    leat_tensor_unref(t);
    return x;
}

static void begin(void)
{
    g = leat_graph_new();
    CHECK_OK(leat_session_open(g, &s));
}

static void end(void)
{
    leat_session_close(s);
    leat_graph_free(g);
}

static leat_status run(leat_out x)
{
    return leat_session_run(s, LEAT_NO_FEED, LEAT_NO_FETCH, LEAT_TARGET(leat_done(x)));
}

static void check_value(leat_out x, const char *want)
{
    leat_tensor *t = NULL;
    CHECK_OK(leat_session_run(s, LEAT_NO_FEED, LEAT_FETCH({x, &t}), LEAT_NO_TARGET));
    char *text = t ? leat_tensor_text(t, -1) : NULL;
    CHECK_STR(text, want);
    free(text);
    leat_tensor_unref(t);
}

static leat_out table(const char *op, leat_dtype key, leat_dtype value)
{
    return leat_op(g, op, leat_attr_type("key_dtype", key), leat_attr_type("value_dtype", value),
                   leat_attr_string("shared_name", op));
}

static leat_out find(leat_out t, leat_out keys, double otherwise)
{
    return leat_op(g, "LookupTableFindV2", leat_in(t), leat_in(keys),
                   leat_in(leat_scalar(g, LEAT_FLOAT, otherwise)));
}

static leat_out floats(double a, double b)
{
    leat_tensor *t = NULL;
    CHECK_OK(leat_tensor_copy_of(LEAT_FLOAT, leat_shape(2), (float[]){(float)a, (float)b}, &t));
    leat_out x = leat_const(g, t);
    leat_tensor_unref(t);
    return x;
}

static void changing(void)
{
    begin();
    leat_out t = table("MutableHashTableV2", LEAT_STRING, LEAT_FLOAT);
    check_value(leat_op(g, "LookupTableSizeV2", leat_in(t)), "0");
    CHECK_OK(run(leat_op(g, "LookupTableInsertV2", leat_in(t), leat_in(words("a", "")),
                         leat_in(floats(1, 2)))));
    check_value(find(t, words("", "c"), -1), "[2 -1]");
    CHECK_OK(run(leat_op(g, "LookupTableInsertV2", leat_in(t), leat_in(words("c", "a")),
                         leat_in(floats(3, 4)))));
    check_value(find(t, words("a", "c"), -1), "[4 3]");
    check_value(leat_op(g, "LookupTableSizeV2", leat_in(t)), "3");
    CHECK_OK(run(leat_op(g, "LookupTableRemoveV2", leat_in(t), leat_in(words("a", "none")))));
    check_value(find(t, words("a", "c"), -1), "[-1 3]");
    CHECK_OK(run(leat_op(g, "LookupTableImportV2", leat_in(t), leat_in(words("x", "x")),
                         leat_in(floats(5, 6)))));
    leat_out out =
        leat_op(g, "LookupTableExportV2", leat_in(t), leat_attr_type("Tkeys", LEAT_STRING),
                leat_attr_type("Tvalues", LEAT_FLOAT));
    check_value(out, "[x]");
    check_value(leat_output(out, 1), "[6]");
    CHECK_ERROR(run(leat_op(g, "LookupTableInsertV2", leat_in(t), leat_in(words("a", "b")),
                            leat_in(leat_scalar(g, LEAT_FLOAT, 1)))),
                INVALID_ARGUMENT, "Expected shape [2] for value, got []");
    CHECK_ERROR(run(leat_op(g, "LookupTableInsertV2", leat_in(t), leat_in(floats(1, 2)),
                            leat_in(floats(1, 2)))),
                INVALID_ARGUMENT, "Signature mismatch");
    end();
}

static void once(void)
{
    begin();
    leat_out t = table("HashTableV2", LEAT_STRING, LEAT_FLOAT);
    CHECK_ERROR(run(find(t, words("a", "b"), 0)), FAILED_PRECONDITION, "Table not initialized.");
    CHECK_OK(run(leat_op(g, "InitializeTableV2", leat_in(t), leat_in(words("a", "b")),
                         leat_in(floats(1, 2)))));
    check_value(find(t, words("b", "c"), -1), "[2 -1]");
    CHECK_ERROR(run(leat_op(g, "LookupTableInsertV2", leat_in(t), leat_in(words("a", "b")),
                            leat_in(floats(1, 2)))),
                UNIMPLEMENTED, "Insert not supported");
    end();
}

static leat_out on(const char *op, leat_out t, leat_out keys, leat_out values)
{
    return leat_op(g, op, leat_in(t), leat_in(keys), leat_in(values));
}

static leat_out dense(leat_out empty, leat_out deleted, int buckets)
{
    return leat_op(g, "MutableDenseHashTableV2", leat_in(empty), leat_in(deleted),
                   leat_attr_type("value_dtype", LEAT_FLOAT),
                   leat_attr_int("initial_num_buckets", buckets));
}

/* It grows from 4 buckets; deleted keys are used again; what is exported can be imported. */
static void dense_scalars(void)
{
    begin();
    leat_out empty = leat_scalar(g, LEAT_INT64, 0), deleted = leat_scalar(g, LEAT_INT64, -1);
    leat_out t = dense(empty, deleted, 4), again = dense(empty, deleted, 4);
    CHECK_OK(leat_graph_status(g));
    leat_out two = leat_int_vector_at(LEAT_AT, g, LEAT_INT64, ((int64_t[]){7, 11}), 2);
    leat_out more = leat_int_vector_at(LEAT_AT, g, LEAT_INT64, ((int64_t[]){15, 8}), 2);
    CHECK_OK(run(on("LookupTableInsertV2", t, two, floats(1, 2))));
    CHECK_OK(run(on("LookupTableInsertV2", t, more, floats(3, 4))));
    check_value(find(t, two, -1), "[1 2]");
    check_value(find(t, more, -1), "[3 4]");
    check_value(leat_op(g, "LookupTableSizeV2", leat_in(t)), "4");
    CHECK_OK(run(leat_op(g, "LookupTableRemoveV2", leat_in(t), leat_in(two))));
    check_value(find(t, two, -1), "[-1 -1]");
    check_value(leat_op(g, "LookupTableSizeV2", leat_in(t)), "2");
    leat_out out =
        leat_op(g, "LookupTableExportV2", leat_in(t), leat_attr_type("Tkeys", LEAT_INT64),
                leat_attr_type("Tvalues", LEAT_FLOAT));
    check_value(out, "[[15][8][0][-1][0][0][0][-1]]");
    CHECK_OK(run(on("LookupTableImportV2", again, out, leat_output(out, 1))));
    check_value(find(again, more, -1), "[3 4]");
    CHECK_ERROR(run(find(t, leat_ints(g, 1), -1)), INVALID_ARGUMENT, "Signature mismatch");
    leat_out wrong = leat_int_vector_at(LEAT_AT, g, LEAT_INT64, ((int64_t[]){0}), 1);
    CHECK_ERROR(run(find(t, wrong, -1)), INVALID_ARGUMENT, "Using the empty_key as a table key");
    CHECK_ERROR(run(dense(empty, empty, 4)), INVALID_ARGUMENT, "keys cannot be equal");
    CHECK_ERROR(run(dense(empty, deleted, 6)), INVALID_ARGUMENT, "a power of 2, got: 6");
    CHECK_ERROR(run(on("LookupTableImportV2", t, two, two)), INVALID_ARGUMENT, "");
    end();
}

/* Keys of two words each. */
static void dense_vectors(void)
{
    begin();
    leat_out t = dense(words("", ""), words("-", ""), 8);
    leat_out keys = leat_reshape_to(words("a", "b"), leat_shape(1, 2));
    leat_out others = leat_reshape_to(words("b", "a"), leat_shape(1, 2));
    leat_out one = leat_reshape_to(leat_scalar(g, LEAT_FLOAT, 5), leat_shape(1));
    CHECK_OK(run(on("LookupTableInsertV2", t, keys, one)));
    check_value(find(t, keys, -1), "[5]");
    check_value(find(t, others, -1), "[-1]");
    leat_out out =
        leat_op(g, "LookupTableExportV2", leat_in(t), leat_attr_type("Tkeys", LEAT_STRING),
                leat_attr_type("Tvalues", LEAT_FLOAT));
    check_value(leat_output(out, 1), "[[0][0][0][0][0][5][0][0]]"); /* TensorFlow's bucket */
    CHECK_ERROR(run(on("LookupTableInsertV2", t, leat_reshape_to(words("a", "b"), leat_shape(2, 1)),
                       floats(1, 2))),
                INVALID_ARGUMENT, "must end with the table's key shape [2]");
    end();
}

static leat_out from_file(const char *text, leat_dtype value, int key_index, int value_index)
{
    char path[600];
    snprintf(path, sizeof(path), "%s/lookup_test.txt", LEAT_BINARY_DIR);
    FILE *f = fopen(path, "w");
    CHECK(f && fputs(text, f) >= 0);
    fclose(f);
    leat_tensor *name = leat_scalar_string(path, strlen(path));
    leat_out t = table("HashTableV2", LEAT_STRING, value);
    leat_out file = leat_const(g, name);
    leat_tensor_unref(name);
    return leat_op(g, "InitializeTableFromTextFileV2", leat_in(t), leat_in(file),
                   leat_attr_int("key_index", key_index),
                   leat_attr_int("value_index", value_index));
}

static void files(void)
{
    static const struct {
        const char *text;
        int key, value;
        leat_code code;
        const char *words;
    } rows[] = {
        {"1.5\ta\n-2\tb", 1, 0, LEAT_OK, ""},
        {"1.5\ta\r\n-2\tb\r\n", 1, 0, LEAT_OK, ""},
        {"1\ta\n2", 1, 0, LEAT_INVALID_ARGUMENT, "line 1 (2) : expected 1 got 1"},
        {"x\ta\n", 1, 0, LEAT_INVALID_ARGUMENT, "Field x in line 0 is not a valid float."},
        {"1\ta\n\n", 1, 0, LEAT_INVALID_ARGUMENT, "empty line found"},
        {"1\ta\n", 1, -1, LEAT_INVALID_ARGUMENT, "requires table value dtype of int64"},
    };
    for (size_t i = 0; i < sizeof(rows) / sizeof(*rows); i++) {
        begin();
        leat_out fill = from_file(rows[i].text, LEAT_FLOAT, rows[i].key, rows[i].value);
        leat_status status = run(fill);
        CHECK_INT(leat_status_code(status), rows[i].code);
        CHECK(strstr(leat_status_message(status), rows[i].words));
        if (!status)
            check_value(find(leat_node_input(fill.node, 0), words("b", "c"), 7), "[-2 7]");
        leat_status_free(status);
        end();
    }
}

int main(int argc, char **argv)
{
    return RUN(argc, argv, {"changing", changing}, {"once", once}, {"dense_scalars", dense_scalars},
               {"dense_vectors", dense_vectors}, {"files", files});
}
