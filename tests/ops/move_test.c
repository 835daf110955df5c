/* move_test.c -- ops that move elements, against a plain loop over all elements: shapes that are
 * split over threads, turned by tiles or merged into fewer dims, elements of every size. */
#include "test.h"

#include <leat/leat.h>

#include "core/buffer.h"

static leat_graph *graph;

static void begin(void)
{
    graph = leat_graph_new();
}

/* Runs y, and frees the graph. */
static leat_tensor *end(leat_out y)
{
    leat_session *s = NULL;
    leat_tensor *t = NULL;
    CHECK_OK(leat_session_open(graph, &s, .no_optimization = true, .intra_op_threads = 2));
    if (s)
        CHECK_OK(leat_session_run(s, LEAT_NO_FEED, LEAT_FETCH({y, &t}), LEAT_NO_TARGET));
    leat_session_close(s);
    leat_graph_free(graph);
    return t;
}

/* Elements are told apart by their bytes. */
static leat_tensor *numbered(leat_dtype t, leat_shape s)
{
    leat_tensor *x = NULL;
    CHECK_OK(leat_tensor_new(t, s, &x));
    size_t size = leat_dtype_size(t);
    for (int64_t i = 0; i < x->count; i++) {
        char text[24];
        uint64_t v[2] = {(uint64_t)i * 0x9e3779b97f4a7c15u, (uint64_t)i};
        if (t == LEAT_BOOL)
            v[0] &= 1;
        if (t == LEAT_STRING)
            leat_string_set((leat_string *)x->data + i, text,
                            (size_t)snprintf(text, sizeof text, "s%lld", (long long)i));
        else
            memcpy((char *)x->data + (size_t)i * size, v, size);
    }
    return x;
}

static bool same(leat_dtype t, const leat_tensor *a, int64_t i, const leat_tensor *b, int64_t j)
{
    size_t size = leat_dtype_size(t);
    const char *p = (char *)a->data + (size_t)i * size, *q = (char *)b->data + (size_t)j * size;
    if (t != LEAT_STRING)
        return memcmp(p, q, size) == 0;
    const leat_string *s = (const leat_string *)p, *u = (const leat_string *)q;
    return s->size == u->size && memcmp(s->data, u->data, s->size) == 0;
}

/* Element `index` of y is the element of x at sum(index[d] * step[d]) + at, for all of y. */
static void check_from(const leat_tensor *y, const leat_tensor *x, const int64_t *step, int64_t at)
{
    int64_t index[LEAT_MAX_RANK] = {0}, wrong = -1;
    for (int64_t i = 0; y && i < y->count && wrong < 0; i++) {
        int64_t from = at;
        for (int d = 0; d < y->shape.rank; d++)
            from += index[d] * step[d];
        if (!same(y->dtype, y, i, x, from))
            wrong = i;
        for (int d = y->shape.rank - 1; d >= 0 && ++index[d] == y->shape.dim[d]; d--)
            index[d] = 0;
    }
    CHECK_INT(wrong, -1);
    CHECK(y != NULL);
}

static void strides(leat_shape s, int64_t *out)
{
    int64_t n = 1;
    for (int d = s.rank - 1; d >= 0; d--) {
        out[d] = n;
        n *= s.dim[d];
    }
}

static void check_transpose(leat_dtype t, leat_shape s, const int64_t *perm)
{
    int64_t stride[LEAT_MAX_RANK], step[LEAT_MAX_RANK];
    begin();
    leat_tensor *x = numbered(t, s);
    leat_out y = leat_transpose(leat_const(graph, x), leat_int_vector(graph, perm, s.rank));
    leat_tensor *out = end(y);
    strides(s, stride);
    for (int d = 0; d < s.rank; d++) {
        step[d] = stride[perm[d]];
        CHECK_INT(leat_tensor_dim(out, d), s.dim[perm[d]]);
    }
    check_from(out, x, step, 0);
    leat_tensor_unref(out);
    leat_tensor_unref(x);
}

#define TRANSPOSE(t, s, ...) check_transpose(t, s, (const int64_t[]){__VA_ARGS__})

static void transpose(void)
{
    static const leat_dtype sizes[] = {LEAT_BOOL,      LEAT_HALF,       LEAT_FLOAT, LEAT_INT64,
                                       LEAT_COMPLEX64, LEAT_COMPLEX128, LEAT_STRING};
    for (size_t i = 0; i < sizeof sizes / sizeof *sizes; i++) {
        TRANSPOSE(sizes[i], leat_shape(3, 2), 1, 0);
        TRANSPOSE(sizes[i], leat_shape(8, 8), 1, 0);
        TRANSPOSE(sizes[i], leat_shape(37, 61), 1, 0);
        TRANSPOSE(sizes[i], leat_shape(5, 9, 17), 2, 1, 0);
        TRANSPOSE(sizes[i], leat_shape(5, 9, 17), 1, 0, 2);
        TRANSPOSE(sizes[i], leat_shape(5, 9, 17), 0, 2, 1);
        TRANSPOSE(sizes[i], leat_shape(2, 7, 1, 6, 3), 3, 1, 4, 2, 0);
    }
    TRANSPOSE(LEAT_FLOAT, leat_shape(300, 1100), 1, 0);
    TRANSPOSE(LEAT_FLOAT, leat_shape(1100, 300), 1, 0);
    TRANSPOSE(LEAT_DOUBLE, leat_shape(513, 1025), 1, 0);
    TRANSPOSE(LEAT_UINT8, leat_shape(16, 40000), 1, 0);
    TRANSPOSE(LEAT_FLOAT, leat_shape(8, 28, 28, 33), 0, 3, 1, 2); /* NHWC to NCHW and back */
    TRANSPOSE(LEAT_FLOAT, leat_shape(8, 33, 28, 28), 0, 2, 3, 1);
    TRANSPOSE(LEAT_FLOAT, leat_shape(8, 3, 64, 64), 0, 2, 3, 1);
}

static void slice(void)
{
    static const leat_dtype sizes[] = {LEAT_UINT8, LEAT_FLOAT, LEAT_COMPLEX128, LEAT_STRING};
    for (size_t i = 0; i < sizeof sizes / sizeof *sizes; i++) {
        int64_t stride[3];
        leat_shape s = leat_shape(40, 50, 60);
        begin();
        leat_tensor *x = numbered(sizes[i], s);
        leat_out y = leat_slice(leat_const(graph, x), leat_ints(graph, 3, 5, 7),
                                leat_ints(graph, 30, 40, -1));
        leat_tensor *out = end(y);
        strides(s, stride);
        CHECK_INT(out ? out->count : -1, 30 * 40 * 53);
        check_from(out, x, stride, 3 * stride[0] + 5 * stride[1] + 7);
        leat_tensor_unref(out);

        begin(); /* x[35:2:-2, ::3, 59::-1] */
        y = leat_strided_slice(leat_const(graph, x), leat_ints(graph, 35, 0, 59),
                               leat_ints(graph, 2, 0, 0), leat_ints(graph, -2, 3, -1),
                               leat_attr_int("begin_mask", 2), leat_attr_int("end_mask", 6));
        out = end(y);
        CHECK_INT(out ? out->count : -1, 17 * 17 * 60);
        check_from(out, x, (int64_t[]){-2 * stride[0], 3 * stride[1], -1}, 35 * stride[0] + 59);
        leat_tensor_unref(out);
        leat_tensor_unref(x);
    }
}

static void repeat(void)
{
    begin();
    leat_tensor *x = numbered(LEAT_INT16, leat_shape(1, 300, 1, 7));
    leat_tensor *out =
        end(leat_broadcast_to(leat_const(graph, x), leat_ints(graph, 5, 4, 300, 20, 7)));
    check_from(out, x, (int64_t[]){0, 0, 7, 0, 1}, 0);
    leat_tensor_unref(out);
    leat_tensor_unref(x);

    begin();
    x = numbered(LEAT_STRING, leat_shape(3, 2));
    out = end(leat_tile(leat_const(graph, x), leat_ints(graph, 2, 3)));
    for (int64_t i = 0; out && i < out->count; i++)
        CHECK(same(LEAT_STRING, out, i, x, i / 6 % 3 * 2 + i % 2));
    leat_tensor_unref(out);
    leat_tensor_unref(x);

    begin();
    out = end(leat_fill(leat_ints(graph, 1000, 333), leat_scalar(graph, LEAT_DOUBLE, 2.5)));
    for (int64_t i = 0; out && i < out->count; i += 997)
        CHECK_NEAR(leat_tensor_at(out, i), 2.5, 0);
    leat_tensor_unref(out);
}

/* Parts put together along an axis and cut apart again are as they were. */
static void join(void)
{
    static const leat_dtype sizes[] = {LEAT_UINT8, LEAT_FLOAT, LEAT_STRING};
    for (size_t i = 0; i < sizeof sizes / sizeof *sizes; i++)
        for (int axis = 0; axis < 3; axis++) {
            int64_t stride[3];
            leat_shape s = leat_shape(30, 40, 50), big = s;
            big.dim[axis] *= 2;
            strides(big, stride);
            begin();
            leat_tensor *x = numbered(sizes[i], s);
            leat_out c = leat_const(graph, x), at = leat_scalar(graph, LEAT_INT32, axis);
            leat_out both = leat_concat(((leat_out[]){c, c}), 2, at);
            leat_out half = leat_output(leat_split(at, both, 2), 1);
            leat_tensor *out = end(leat_concat(((leat_out[]){half, both}), 2, at));
            int64_t wrong = 0;
            for (int64_t e = 0; out && e < out->count; e++) {
                int64_t index[3], from = 0, rest = e;
                for (int d = 2; d >= 0; d--) {
                    int64_t n = d == axis ? 3 * s.dim[d] : s.dim[d];
                    index[d] = rest % n % s.dim[d];
                    rest /= n;
                }
                from = (index[0] * s.dim[1] + index[1]) * s.dim[2] + index[2];
                wrong += !same(sizes[i], out, e, x, from);
            }
            CHECK_INT(wrong, 0);
            CHECK_INT(out ? out->count : -1, 3 * x->count);
            leat_tensor_unref(out);
            leat_tensor_unref(x);
        }
}

static void gather(void)
{
    leat_dtype types[] = {LEAT_INT8, LEAT_FLOAT, LEAT_STRING};
    for (int i = 0; i < 3; i++) {
        begin();
        leat_tensor *x = numbered(types[i], leat_shape(6, 500, 9)), *index;
        CHECK_OK(leat_tensor_new(LEAT_INT64, leat_shape(3000), &index));
        for (int64_t e = 0; e < index->count; e++)
            ((int64_t *)index->data)[e] = e * 7919 % 500;
        leat_out y = leat_gather(leat_const(graph, x), leat_const(graph, index),
                                 leat_scalar(graph, LEAT_INT32, 1));
        leat_tensor *out = end(y);
        int64_t wrong = 0;
        for (int64_t e = 0; out && e < out->count; e++) {
            int64_t row = e / 9 / 3000 * 500 + e / 9 % 3000 * 7919 % 500;
            wrong += !same(types[i], out, e, x, row * 9 + e % 9);
        }
        CHECK_INT(wrong, 0);
        CHECK_INT(out ? out->count : -1, 6 * 3000 * 9);
        leat_tensor_unref(out);
        leat_tensor_unref(index);
        leat_tensor_unref(x);
    }
}

/* dx of GatherV2 along axis 2 with one batch dim, which TensorFlow 1.15 has wrong. */
static void batch_gather_gradient(void)
{
    begin();
    leat_tensor *x = NULL, *dy = NULL, *index = NULL;
    int32_t at[4] = {0, 3, 2, 2};
    CHECK_OK(leat_tensor_new(LEAT_FLOAT, leat_shape(2, 3, 4), &x));
    CHECK_OK(leat_tensor_new(LEAT_FLOAT, leat_shape(2, 3, 2), &dy));
    CHECK_OK(leat_tensor_copy_of(LEAT_INT32, leat_shape(2, 2), at, &index));
    float want[24] = {0};
    for (int i = 0; i < 12; i++) {
        ((float *)dy->data)[i] = (float)(i + 1);
        want[i / 2 * 4 + at[i / 6 * 2 + i % 2]] += (float)(i + 1);
    }
    leat_out params = leat_const(graph, x), g = leat_const(graph, dy);
    leat_out y = leat_gather(params, leat_const(graph, index), leat_scalar(graph, LEAT_INT32, 2),
                             leat_attr_int("batch_dims", 1));
    leat_grad_value dx;
    CHECK_OK(leat_gradients(&y, 1, &params, 1, &dx, .grad_ys = &g));
    leat_tensor *out = end(dx.value);
    for (int i = 0; out && i < 24; i++)
        CHECK_NEAR(leat_tensor_at(out, i), want[i], 0);
    leat_tensor_unref(out);
    leat_tensor_unref(x);
    leat_tensor_unref(dy);
    leat_tensor_unref(index);
}

int main(int argc, char **argv)
{
    return RUN(argc, argv, {"transpose", transpose}, {"slice", slice}, {"repeat", repeat},
               {"join", join}, {"gather", gather},
               {"batch_gather_gradient", batch_gather_gradient});
}
