/* remap_test.c -- GenerateVocabRemapping and LoadAndRemapMatrix: words and rows in a new order,
 * partitions, rows that are new; files and numbers that do not fit. TensorFlow's own tests of both
 * ops have the same values. */
#include "test.h"

#include <dirent.h>
#include <leat/leat.h>
#include <unistd.h>

static char dir[100];
static leat_graph *g;
static leat_session *s;

static const char *in_dir(const char *name)
{
    static char path[4][400];
    static int turn;
    turn = (turn + 1) % 4;
    snprintf(path[turn], sizeof(path[turn]), "%s/%s", dir, name);
    return path[turn];
}

static void write_text(const char *name, const char *text)
{
    FILE *f = fopen(in_dir(name), "w");
    CHECK(f && fputs(text, f) >= 0);
    if (f)
        fclose(f);
}

/* A checkpoint with m (4, 3), from 0 on by rows, whole and in slices; n, integers; v, a vector. */
static void begin(void)
{
    snprintf(dir, sizeof(dir), "/tmp/leat_remap_test_XXXXXX");
    CHECK(mkdtemp(dir) != NULL);
    write_text("old", "knitting\neminem\nMJ\n");
    write_text("new", "MJ\nMJ2\neminem\nknitting\n");
    g = leat_graph_new();
    float numbers[12];
    leat_tensor *t = NULL;
    for (int i = 0; i < 12; i++)
        numbers[i] = (float)i;
    CHECK_OK(leat_tensor_copy_of(LEAT_FLOAT, leat_shape(4, 3), numbers, &t));
    leat_out m = leat_variable(g, "m", leat_const(g, t));
    leat_tensor_unref(t);
    CHECK_OK(leat_tensor_copy_of(LEAT_FLOAT, leat_shape(2, 3), numbers, &t));
    leat_out upper = leat_variable(g, "p/part_0", leat_const(g, t));
    leat_tensor_unref(t);
    CHECK_OK(leat_tensor_copy_of(LEAT_FLOAT, leat_shape(2, 3), numbers + 6, &t));
    leat_out lower = leat_variable(g, "p/part_1", leat_const(g, t));
    leat_tensor_unref(t);
    leat_out n = leat_variable(g, "n", leat_zeros(g, LEAT_INT32, leat_shape(2, 2)));
    leat_out v = leat_variable(g, "v", leat_zeros(g, LEAT_FLOAT, leat_shape(2)));
    const leat_saver_var vars[] = {
        {m}, {n}, {v}, {upper, "p", "4 3 0,2:-"}, {lower, "p", "4 3 2,2:-"}};
    leat_saver *saver = leat_saver_new(g, .vars = vars, .n_vars = 5);
    CHECK_OK(leat_session_open(g, &s));
    CHECK_OK(leat_session_run(s, LEAT_NO_FEED, LEAT_NO_FETCH,
                              LEAT_TARGET(leat_global_variables_initializer(g))));
    CHECK_OK(leat_saver_save(saver, s, in_dir("model"), -1, NULL));
    leat_saver_free(saver);
}

static void end(void)
{
    leat_session_close(s);
    leat_graph_free(g);
    DIR *d = opendir(dir);
    for (struct dirent *e; d && (e = readdir(d));)
        unlink(in_dir(e->d_name));
    if (d)
        closedir(d);
    rmdir(dir);
}

static leat_out words(const char *fresh, const char *old, int offset, int n, int old_size)
{
    return leat_op(g, "GenerateVocabRemapping", leat_in(leat_string_const(g, fresh)),
                   leat_in(leat_string_const(g, old)), leat_attr_int("new_vocab_offset", offset),
                   leat_attr_int("num_new_vocab", n), leat_attr_int("old_vocab_size", old_size));
}

static leat_out numbers(const int64_t *v, int n)
{
    leat_tensor *t = NULL;
    CHECK_OK(leat_tensor_copy_of(LEAT_INT64, leat_shape(n), v, &t));
    leat_out x = leat_const(g, t);
    leat_tensor_unref(t);
    return x;
}
#define NUMBERS(...)                                                                               \
    numbers((const int64_t[]){__VA_ARGS__}, sizeof((int64_t[]){__VA_ARGS__}) / sizeof(int64_t))

static leat_out matrix(const char *name, leat_out rows, leat_out cols, int n_rows, int n_cols,
                       int n_values, int most)
{
    leat_out values =
        leat_fill(leat_shape_const(g, leat_shape(n_values)), leat_scalar(g, LEAT_FLOAT, 42));
    return leat_op(g, "LoadAndRemapMatrix", leat_in(leat_string_const(g, in_dir("model"))),
                   leat_in(leat_string_const(g, name)), leat_in(rows), leat_in(cols),
                   leat_in(values), leat_attr_int("num_rows", n_rows),
                   leat_attr_int("num_cols", n_cols), leat_attr_int("max_rows_in_memory", most));
}

static void gives(leat_out x, const char *want)
{
    leat_tensor *t = NULL;
    CHECK_OK(leat_session_run(s, LEAT_NO_FEED, LEAT_FETCH({x, &t}), LEAT_NO_TARGET));
    char *text = t ? leat_tensor_text(t, -1) : NULL;
    CHECK_STR(text, want);
    free(text);
    leat_tensor_unref(t);
}

static leat_status run(leat_out x)
{
    leat_tensor *t = NULL;
    leat_status e = leat_session_run(s, LEAT_NO_FEED, LEAT_FETCH({x, &t}), LEAT_NO_TARGET);
    leat_tensor_unref(t);
    return e;
}

static void vocabularies(void)
{
    begin();
    leat_out all = words(in_dir("new"), in_dir("old"), 0, 4, -1);
    gives(all, "[2 -1 1 0]");
    gives((leat_out){all.node, 1}, "3");
    gives(words(in_dir("new"), in_dir("old"), 1, 2, -1), "[-1 1]");
    gives(words(in_dir("new"), in_dir("old"), 0, 4, 2), "[-1 -1 1 0]"); /* the first two old ones */
    gives(words(in_dir("new"), in_dir("old"), 4, 0, -1), "[]");
    CHECK_ERROR(run(words(in_dir("new"), in_dir("old"), 2, 3, -1)), INVALID_ARGUMENT,
                "lookup table size must be larger than last new vocab entry's line");
    CHECK_ERROR(run(words(in_dir("new"), in_dir("old"), 0, 1, 5)), INVALID_ARGUMENT,
                "expected 5 but got 3");
    CHECK_ERROR(run(words(in_dir("no"), in_dir("old"), 0, 1, -1)), NOT_FOUND, "/no");
    CHECK_ERROR(run(words("", in_dir("old"), 0, 1, -1)), INVALID_ARGUMENT, "cannot be empty");
    write_text("twice", "a\nb\na\n");
    CHECK_ERROR(run(words(in_dir("new"), in_dir("twice"), 0, 1, -1)), FAILED_PRECONDITION,
                "Key a has 0 and trying to add value 2");
    end();
}

static void matrices(void)
{
    begin();
    leat_out none = numbers((const int64_t[]){0}, 0);
    for (int most = -1; most < 3; most++)
        for (int k = 0; k < 2; k++) {
            const char *name = k ? "p" : "m"; /* whole, and in slices */
            gives(matrix(name, NUMBERS(2, 0), none, 2, 3, 0, most), "[[6 7 8][0 1 2]]");
            gives(matrix(name, NUMBERS(-1, 3, -1), NUMBERS(1, -1), 3, 2, 5, most),
                  "[[42 42][10 42][42 42]]");
        }
    gives(matrix("m", NUMBERS(-1, -1), none, 2, 3, 6, -1), "[[42 42 42][42 42 42]]");
    end();
}

static void misfits(void)
{
    begin();
    leat_out none = numbers((const int64_t[]){0}, 0);
    CHECK_ERROR(run(matrix("m", NUMBERS(0, 0), none, 2, 3, 0, -1)), UNIMPLEMENTED,
                "Old ID 0 is mapped to both new ID 0 and 1");
    CHECK_ERROR(run(matrix("m", NUMBERS(0), none, 2, 3, 0, -1)), INVALID_ARGUMENT,
                "Size of row_remapping is 1 instead of being equal to num_rows=2");
    CHECK_ERROR(run(matrix("m", NUMBERS(0, 1), NUMBERS(0), 2, 3, 0, -1)), INVALID_ARGUMENT,
                "Provided col_remapping, but its size is 1");
    CHECK_ERROR(run(matrix("m", NUMBERS(0, 1), none, 2, 2, 0, -1)), INVALID_ARGUMENT,
                "the size of its 2nd dimension is 3 instead of being equal to num_cols=2");
    CHECK_ERROR(run(matrix("m", NUMBERS(0, 4), none, 2, 3, 0, -1)), INTERNAL, "out of bounds");
    CHECK_ERROR(run(matrix("n", NUMBERS(0, 1), none, 2, 2, 0, -1)), INVALID_ARGUMENT,
                "has invalid type int32 instead of expected type float");
    CHECK_ERROR(run(matrix("v", NUMBERS(0, 1), none, 2, 2, 0, -1)), INVALID_ARGUMENT,
                "of invalid rank 1");
    CHECK_ERROR(run(matrix("x", NUMBERS(0, 1), none, 2, 2, 0, -1)), NOT_FOUND,
                "Key x not found in checkpoint");
    CHECK_ERROR(run(matrix("m", NUMBERS(0, -1), none, 2, 3, 2, -1)), INVALID_ARGUMENT,
                "initializing_values contained 2 elements, but more missing values remain.");
    CHECK_ERROR(run(matrix("m", NUMBERS(0, -1), none, 2, 3, 4, -1)), INVALID_ARGUMENT,
                "contained 4 elements, but only 3 elements were used");
    end();
}

int main(int argc, char **argv)
{
    return RUN(argc, argv, {"vocabularies", vocabularies}, {"matrices", matrices},
               {"misfits", misfits});
}
