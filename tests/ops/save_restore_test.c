/* save_restore_test.c -- the ops of checkpoints, in a session: V2, V1, shards, mistakes. */
#include "io/files.h"

#include <leat/leat.h>

static leat_graph *g;

static leat_out words(int n, const char *const *v)
{
    leat_tensor *t = NULL;
    CHECK_OK(leat_tensor_new(LEAT_STRING, n < 0 ? leat_shape() : leat_shape(n), &t));
    for (int i = 0; i < (n < 0 ? 1 : n); i++)
        leat_string_set((leat_string *)leat_tensor_mutable(t) + i, v[i], strlen(v[i]));
    leat_out x =
        leat_op(g, "Const", leat_attr_tensor("value", t), leat_attr_type("dtype", LEAT_STRING));
    leat_tensor_unref(t);
    return x;
}
#define WORDS(...)                                                                                 \
    words((int)(sizeof((const char *[]){__VA_ARGS__}) / sizeof(char *)),                           \
          (const char *[]){__VA_ARGS__})
static leat_out word(const char *s)
{
    return words(-1, &s);
}

static leat_out floats(int n, const float *v)
{
    leat_tensor *t = NULL;
    CHECK_OK(leat_tensor_copy_of(LEAT_FLOAT, leat_shape(n), v, &t));
    leat_out x =
        leat_op(g, "Const", leat_attr_tensor("value", t), leat_attr_type("dtype", LEAT_FLOAT));
    leat_tensor_unref(t);
    return x;
}

/* Runs and frees the graph. */
static leat_status run(leat_out target, leat_out fetch, leat_tensor **value)
{
    leat_session *s = NULL;
    leat_status status = leat_graph_status(g);
    if (!status)
        status = leat_session_open(g, &s);
    if (!status && target.node)
        status = leat_session_run(s, LEAT_NO_FEED, LEAT_NO_FETCH, LEAT_TARGET(target));
    if (!status && fetch.node)
        status = leat_session_run(s, LEAT_NO_FEED, LEAT_FETCH({fetch, value}), LEAT_NO_TARGET);
    leat_session_close(s);
    leat_graph_free(g);
    return status;
}

static leat_out save(const char *op, const char *path, leat_out names, leat_out specs,
                     const leat_out *x, int n)
{
    if (specs.node)
        return leat_done(
            leat_op(g, op, leat_in(word(path)), leat_in(names), leat_in(specs), leat_ins(x, n)));
    return leat_done(leat_op(g, op, leat_in(word(path)), leat_in(names), leat_ins(x, n)));
}

static leat_out restore(const char *path, leat_out names, leat_out specs, const leat_dtype *t,
                        int n)
{
    return leat_op(g, "RestoreV2", leat_in(word(path)), leat_in(names), leat_in(specs),
                   leat_attr_types("dtypes", t, n));
}

static void check_text(leat_tensor *t, const char *want)
{
    char *text = t ? leat_tensor_text(t, -1) : NULL;
    CHECK_STR(text, want);
    free(text);
    leat_tensor_unref(t);
}

static void v2(void)
{
    leat_tensor *t = NULL;
    g = leat_graph_new();
    const char *path = here("ops/v2");
    leat_out x[] = {floats(3, (float[]){1, 2, 3}), WORDS("a", "b")};
    leat_out saved = save("SaveV2", path, WORDS("x", "s"), WORDS("", ""), x, 2);
    leat_out y =
        restore(path, WORDS("s", "x"), WORDS("", ""), (leat_dtype[]){LEAT_STRING, LEAT_FLOAT}, 2);
    CHECK_OK(run(saved, leat_output(y, 1), &t));
    check_text(t, "[1 2 3]");
    g = leat_graph_new();
    y = restore(path, WORDS("x"), WORDS("3 1,2"), (leat_dtype[]){LEAT_FLOAT}, 1);
    leat_shape s = leat_out_shape(y);
    CHECK(s.rank == 1 && s.dim[0] == 2);
    CHECK_OK(run((leat_out){0}, y, &t));
    check_text(t, "[2 3]");
}

static void mistakes(void)
{
    leat_tensor *t = NULL;
    const char *path = here("ops/v2");
    g = leat_graph_new();
    leat_out y =
        restore(path, WORDS("x", "s"), WORDS("", ""), (leat_dtype[]){LEAT_INT32, LEAT_FLOAT}, 2);
    CHECK_ERROR(run((leat_out){0}, y, &t), INVALID_ARGUMENT,
                "tensor_name = x; expected dtype int32 does not equal original dtype float\n"
                "tensor_name = s; expected dtype float does not equal original dtype string");
    g = leat_graph_new();
    y = restore(path, WORDS("z"), WORDS(""), (leat_dtype[]){LEAT_FLOAT}, 1);
    CHECK_ERROR(run((leat_out){0}, y, &t), NOT_FOUND, "Key z not found in checkpoint");
    g = leat_graph_new();
    y = restore(path, WORDS("x"), WORDS("4 1,2"), (leat_dtype[]){LEAT_FLOAT}, 1);
    CHECK_ERROR(run((leat_out){0}, y, &t), INVALID_ARGUMENT,
                "shape in shape_and_slice spec [4] does not match the shape stored in checkpoint: "
                "[3]");
    g = leat_graph_new();
    y = restore("/no/such", WORDS("x"), WORDS(""), (leat_dtype[]){LEAT_FLOAT}, 1);
    CHECK_ERROR(run((leat_out){0}, y, &t), NOT_FOUND,
                "Failed to find any matching files for /no/such");
    g = leat_graph_new();
    leat_out x = floats(3, (float[]){1, 2, 3});
    y = save("SaveV2", path, WORDS("x"), WORDS("4 1,2"), &x, 1);
    CHECK_ERROR(run(y, (leat_out){0}, &t), INVALID_ARGUMENT,
                "Slice in shape_and_slice specification does not match the shape of the tensor");
    g = leat_graph_new();
    x = floats(1, (float[]){1});
    y = save("SaveV2", "/dev/full/x", WORDS("x"), WORDS(""), &x, 1);
    CHECK_ERROR(run(y, (leat_out){0}, &t), FAILED_PRECONDITION, "Not a directory");
}

static void v1(void)
{
    leat_tensor *t = NULL;
    g = leat_graph_new();
    const char *path = here("ops/v1");
    leat_out x[] = {floats(3, (float[]){1, 2, 3}), WORDS("a", "b")};
    leat_out saved = save("Save", path, WORDS("x", "s"), (leat_out){0}, x, 2);
    leat_out y = leat_op(g, "Restore", leat_in(word(path)), leat_in(word("s")),
                         leat_attr_type("dt", LEAT_STRING));
    CHECK_OK(run(saved, y, &t));
    check_text(t, "[a b]");
    g = leat_graph_new(); /* V2's op reads it, too */
    y = restore(path, WORDS("x"), WORDS("3 0,2"), (leat_dtype[]){LEAT_FLOAT}, 1);
    CHECK_OK(run((leat_out){0}, y, &t));
    check_text(t, "[1 2]");
    g = leat_graph_new();
    y = leat_op(g, "RestoreSlice", leat_in(word(theirs("v1"))), leat_in(word("part")),
                leat_in(word("10 4 1,2:1,2")), leat_attr_type("dt", LEAT_FLOAT));
    CHECK_OK(run((leat_out){0}, y, &t));
    check_text(t, "[[5 6][9 10]]");
    g = leat_graph_new();
    y = leat_op(g, "Restore", leat_in(word(theirs("v1"))), leat_in(word("none")),
                leat_attr_type("dt", LEAT_FLOAT));
    CHECK_ERROR(run((leat_out){0}, y, &t), NOT_FOUND, "Tensor name \"none\" not found");
}

/* The same tensors as in tests/io/make_files.py: the same bytes. */
static void v1_bytes(void)
{
    leat_tensor *t = NULL;
    float v[20];
    for (int i = 0; i < 20; i++)
        v[i] = (float)i;
    g = leat_graph_new();
    leat_out part = leat_reshape_to(floats(20, v), leat_shape(5, 4));
    leat_out ints = leat_cast(floats(3, (float[]){-1, 0, 1}), LEAT_INT32);
    leat_out half = leat_cast(floats(2, (float[]){0, 1}), LEAT_HALF);
    leat_out x[] = {part, ints, WORDS("x", ""), half};
    leat_out saved = save("SaveSlices", here("v1"), WORDS("part", "ints", "s", "half"),
                          WORDS("10 4 0,5:-", "", "", ""), x, 4);
    CHECK_OK(run(saved, (leat_out){0}, &t));
    same_file(here("v1"), theirs("v1"));
}

static void sharded(void)
{
    leat_tensor *t = NULL;
    g = leat_graph_new();
    char base[600];
    snprintf(base, sizeof(base), "%s", here("ops/temp/part"));
    leat_out two = leat_scalar(g, LEAT_INT32, 2), prefixes[2], saved[2];
    for (int i = 0; i < 2; i++) {
        prefixes[i] = leat_op(g, "ShardedFilename", leat_in(word(base)),
                              leat_in(leat_scalar(g, LEAT_INT32, i)), leat_in(two));
        leat_out x = floats(1, (float[]){(float)i});
        saved[i] =
            leat_done(leat_op(g, "SaveV2", leat_in(prefixes[i]), leat_in(WORDS(i ? "b" : "a")),
                              leat_in(WORDS("")), leat_ins(&x, 1)));
    }
    leat_out all =
        leat_op(g, "Pack", leat_ins(prefixes, 2), leat_after(saved[0]), leat_after(saved[1]));
    leat_out merged = leat_done(
        leat_op(g, "MergeV2Checkpoints", leat_in(all), leat_in(word(here("ops/merged")))));
    leat_out y = restore(here("ops/merged"), WORDS("b"), WORDS(""), (leat_dtype[]){LEAT_FLOAT}, 1);
    CHECK_OK(run(merged, y, &t));
    check_text(t, "[1]");
    CHECK(access(here("ops/temp"), F_OK) != 0);
    CHECK(access(here("ops/merged.data-00001-of-00002"), F_OK) == 0);
}

int main(int argc, char **argv)
{
    return RUN(argc, argv, {"v2", v2}, {"mistakes", mistakes}, {"v1", v1}, {"v1_bytes", v1_bytes},
               {"sharded", sharded});
}
