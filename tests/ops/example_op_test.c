/* example_op_test.c -- ParseExampleV2, which TensorFlow 1.15 lacks; batches without messages; and
 * how long an Example of MNIST's size takes. All else is in tests/vectors/input.vec. */
#include <time.h>

#include "ops/queue_fixture.h"

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

static const leat_dtype int64[] = {LEAT_INT64}, int32[] = {LEAT_INT32};

/* Sparse b, ragged a. */
static leat_out parse_v2(leat_graph *g, leat_out x, const leat_dtype *splits)
{
    return leat_op(g, "ParseExampleV2", leat_in(x), leat_in(strings(g, 0, NULL)),
                   leat_in(strings(g, 1, (const char *[]){"b"})), leat_in(strings(g, 0, NULL)),
                   leat_in(strings(g, 1, (const char *[]){"a"})),
                   leat_attr_types("Tdense", NULL, 0), leat_attr_int("num_sparse", 1),
                   leat_attr_types("sparse_types", int64, 1),
                   leat_attr_types("ragged_value_types", int64, 1),
                   leat_attr_types("ragged_split_types", splits, 1),
                   leat_attr_shapes("dense_shapes", NULL, 0));
}

static leat_tensor *example(const int64_t *a, int n_a, const int64_t *b, int n_b)
{
    leat_example *e = leat_example_new();
    void *bytes = NULL;
    size_t size = 0;
    CHECK_OK(leat_example_add_ints(e, "a", a, n_a));
    CHECK_OK(leat_example_add_ints(e, "b", b, n_b));
    CHECK_OK(leat_example_encode(e, &bytes, &size));
    leat_tensor *t = leat_scalar_string(bytes, size);
    free(bytes);
    leat_example_free(e);
    return t;
}

static void check_outputs(fixture *f, leat_out x, const char *const *want)
{
    for (int i = 0; i < 5; i++)
        check_values(f->s, leat_output(x, i), want[i]);
}

static void ragged(void)
{
    fixture f = begin();
    leat_tensor *t = example((int64_t[]){1, 2}, 2, (int64_t[]){5}, 1);
    leat_tensor *u = example(NULL, 0, (int64_t[]){7, 8}, 2);
    leat_out both[] = {leat_const(f.g, t), leat_const(f.g, u)};
    leat_out batch = parse_v2(f.g, leat_pack(both, 2, 0), int32),
             one = parse_v2(f.g, both[0], int64);
    leat_out none = parse_v2(f.g, strings(f.g, 0, NULL), int64);
    open_session(&f);
    check_outputs(&f, batch,
                  (const char *[]){"[[0 0][1 0][1 1]]", "[5 7 8]", "[2 2]", "[1 2]", "[0 2 2]"});
    check_outputs(&f, one, (const char *[]){"[[0]]", "[5]", "[1]", "[1 2]", "[]"});
    check_outputs(&f, none, (const char *[]){"[]", "[]", "[0 0]", "[]", "[0]"});
    leat_tensor_unref(t);
    leat_tensor_unref(u);
    end(&f);
}

static leat_out parse_mnist(leat_graph *g, leat_out x)
{
    leat_tensor *zero = NULL, *no_label = NULL;
    CHECK_OK(leat_tensor_new(LEAT_STRING, leat_shape(0), &zero));
    CHECK_OK(leat_tensor_new(LEAT_INT64, leat_shape(0), &no_label));
    leat_out defaults[] = {leat_const(g, zero), leat_const(g, no_label)};
    leat_out keys[] = {leat_string_const(g, "image_raw"), leat_string_const(g, "label")};
    leat_tensor_unref(zero);
    leat_tensor_unref(no_label);
    const leat_dtype types[] = {LEAT_STRING, LEAT_INT64};
    const leat_shape shapes[] = {leat_shape(), leat_shape()};
    return leat_op(g, "ParseExample", leat_in(x), leat_in(strings(g, 0, NULL)), leat_ins(NULL, 0),
                   leat_ins(keys, 2), leat_ins(defaults, 2), leat_attr_int("Nsparse", 0),
                   leat_attr_int("Ndense", 2), leat_attr_types("sparse_types", NULL, 0),
                   leat_attr_types("Tdense", types, 2),
                   leat_attr_shapes("dense_shapes", shapes, 2));
}

static double now_ns(void)
{
    struct timespec t;
    clock_gettime(CLOCK_MONOTONIC, &t);
    return (double)t.tv_sec * 1e9 + (double)t.tv_nsec;
}

enum { MESSAGES = 1000, PIXELS = 784 };

static leat_tensor *mnist_messages(void)
{
    unsigned char pixels[PIXELS];
    for (int i = 0; i < PIXELS; i++)
        pixels[i] = (unsigned char)i;
    leat_example *e = leat_example_new();
    void *bytes = NULL;
    size_t size = 0;
    CHECK_OK(leat_example_add_bytes(e, "image_raw", pixels, PIXELS));
    CHECK_OK(leat_example_add_ints(e, "label", (int64_t[]){7}, 1));
    CHECK_OK(leat_example_encode(e, &bytes, &size));
    leat_tensor *t = NULL;
    CHECK_OK(leat_tensor_new(LEAT_STRING, leat_shape(MESSAGES), &t));
    for (int i = 0; i < MESSAGES; i++)
        leat_string_set((leat_string *)leat_tensor_data(t) + i, bytes, size);
    free(bytes);
    leat_example_free(e);
    return t;
}

/* Prints how long a message takes, and how long copying it as a string does; LEAT_TIMES=1 repeats
 * that long enough to be of use. */
static void mnist_size(void)
{
    fixture f = begin();
    leat_out x = leat_placeholder(f.g, LEAT_STRING, leat_shape(-1)), y = parse_mnist(f.g, x);
    open_session(&f);
    leat_tensor *t = mnist_messages();
    const int rounds = getenv("LEAT_TIMES") ? 200 : 1;
    double best = 1e30, copy = 1e30;
    for (int i = 0; i < rounds; i++) {
        leat_tensor *labels = NULL;
        double begin_ns = now_ns();
        CHECK_OK(leat_session_run(f.s, LEAT_FEED({x, t}), LEAT_FETCH({leat_output(y, 1), &labels}),
                                  LEAT_NO_TARGET));
        best = fmin(best, now_ns() - begin_ns);
        CHECK(labels && leat_tensor_count(labels) == MESSAGES && leat_tensor_at(labels, 999) == 7);
        leat_tensor_unref(labels);
        leat_tensor *copied = NULL;
        CHECK_OK(leat_tensor_new(LEAT_STRING, leat_shape(MESSAGES), &copied));
        const leat_string *from = leat_tensor_data(t);
        begin_ns = now_ns();
        for (int j = 0; j < MESSAGES; j++)
            leat_string_set((leat_string *)leat_tensor_data(copied) + j, from[j].data,
                            from[j].size);
        copy = fmin(copy, now_ns() - begin_ns);
        leat_tensor_unref(copied);
    }
    if (rounds > 1)
        printf("an Example of 784 bytes: %.0f ns; copying the string: %.0f ns\n", best / MESSAGES,
               copy / MESSAGES);
    leat_tensor_unref(t);
    end(&f);
}

static void refused(void)
{
    fixture f = begin();
    leat_out two = leat_placeholder(f.g, LEAT_STRING, leat_shape_unknown());
    leat_out x = leat_op(f.g, "ParseExampleV2", leat_in(two), leat_in(strings(f.g, 0, NULL)),
                         leat_in(strings(f.g, 2, (const char *[]){"b", "b"})),
                         leat_in(strings(f.g, 0, NULL)), leat_in(strings(f.g, 0, NULL)),
                         leat_attr_types("Tdense", NULL, 0), leat_attr_int("num_sparse", 2),
                         leat_attr_types("sparse_types", (leat_dtype[]){LEAT_INT64, LEAT_INT64}, 2),
                         leat_attr_types("ragged_value_types", NULL, 0),
                         leat_attr_types("ragged_split_types", NULL, 0),
                         leat_attr_shapes("dense_shapes", NULL, 0));
    leat_tensor *t = NULL, *m = leat_scalar_string("", 0), *y = NULL;
    CHECK_OK(leat_tensor_new(LEAT_STRING, leat_shape(1, 1), &t));
    open_session(&f);
    CHECK_ERROR(leat_session_run(f.s, LEAT_FEED({two, t}), LEAT_FETCH({x, &y}), LEAT_NO_TARGET),
                INVALID_ARGUMENT, "Expected serialized to be a scalar or vector, got shape: [1,1]");
    CHECK_ERROR(leat_session_run(f.s, LEAT_FEED({two, m}), LEAT_FETCH({x, &y}), LEAT_NO_TARGET),
                INVALID_ARGUMENT, "The feature key 'b' is given twice");
    leat_tensor_unref(t);
    leat_tensor_unref(m);
    end(&f);
}

int main(int argc, char **argv)
{
    return RUN(argc, argv, {"ragged", ragged}, {"mnist_size", mnist_size}, {"refused", refused});
}
