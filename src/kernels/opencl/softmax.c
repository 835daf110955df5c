/* softmax.c -- Softmax, LogSoftmax, and the cross entropies with their gradients. */
#include <string.h>

#include "kernels/opencl/walk.h"

extern const leat_cl_text leat_cl_text_softmax;
static const leat_cl_text *const texts[] = {&leat_cl_text_softmax, NULL};

static leat_status softmax(leat_kernel *k)
{
    const leat_tensor *x = leat_kernel_in(k, 0);
    const leat_shape *s = &x->shape;
    leat_tensor *y;
    LEAT_REQUIRE(s->rank >= 1, INVALID_ARGUMENT, "logits must have >= 1 dimension, got %s",
                 leat_shape_show(s).s);
    LEAT_TRY(leat_kernel_out(k, 0, s, &y));
    if (!x->count)
        return NULL;
    const int64_t n = s->dim[s->rank - 1];
    leat_cl_launch l = leat_cl_begin(leat_cl_of(k), texts, "", "softmax");
    leat_cl_tensor(&l, x);
    leat_cl_tensor(&l, y);
    leat_cl_int(&l, x->count / n);
    leat_cl_int(&l, n);
    leat_cl_int(&l, leat_node_op(leat_kernel_node(k))[0] == 'L');
    return leat_cl_each(&l, x->count / n, 3 * (double)n);
}

static leat_status outputs(leat_kernel *k, int64_t batch, int64_t classes, leat_tensor **loss,
                           leat_tensor **back)
{
    const leat_shape rows = leat_shape(batch), all = leat_shape(batch, classes);
    LEAT_TRY(leat_kernel_out(k, 0, &rows, loss));
    return leat_kernel_out(k, 1, &all, back);
}

static leat_status xent(leat_kernel *k)
{
    const leat_tensor *x = leat_kernel_in(k, 0), *labels = leat_kernel_in(k, 1);
    const leat_shape *a = &x->shape, *b = &labels->shape;
    leat_tensor *loss, *back;
    leat_shape s;
    leat_status bad = leat_shape_broadcast(a, b, &s);
    leat_status_free(bad);
    LEAT_REQUIRE(!bad, INVALID_ARGUMENT,
                 "logits and labels must be broadcastable: logits_size=%s labels_size=%s",
                 leat_shape_show(a).s, leat_shape_show(b).s);
    LEAT_REQUIRE(s.rank == 2, INVALID_ARGUMENT,
                 "logits and labels must be either 2-dimensional, or broadcasted to be "
                 "2-dimensional");
    LEAT_TRY(outputs(k, s.dim[0], s.dim[1], &loss, &back));
    if (!loss->count)
        return NULL;
    if (!back->count)
        return leat_cl_fill(leat_cl_of(k), loss->data, loss->count, sizeof(float), NULL);
    leat_cl_launch l = leat_cl_begin(leat_cl_of(k), texts, "", "xent");
    leat_cl_tensor(&l, x);
    leat_cl_tensor(&l, labels);
    leat_cl_tensor(&l, loss);
    leat_cl_tensor(&l, back);
    leat_cl_int(&l, s.dim[0]);
    leat_cl_int(&l, s.dim[1]);
    for (int i = 0; i < 2; i++) {
        const leat_shape *t = i ? b : a;
        const int64_t last = t->rank > 0 ? t->dim[t->rank - 1] : 1;
        leat_cl_int(&l, t->rank == 2 && t->dim[0] != 1 ? last : 0);
        leat_cl_int(&l, last != 1);
    }
    return leat_cl_each(&l, s.dim[0], 4 * (double)s.dim[1]);
}

static leat_status sparse_xent(leat_kernel *k)
{
    const leat_tensor *logits = leat_kernel_in(k, 0), *labels = leat_kernel_in(k, 1);
    const leat_shape *x = &logits->shape, *y = &labels->shape;
    leat_tensor *loss, *back;
    LEAT_REQUIRE(x->rank == 2, INVALID_ARGUMENT, "logits must be 2-D, but got shape %s",
                 leat_shape_show(x).s);
    LEAT_REQUIRE(y->rank == 1, INVALID_ARGUMENT, "labels must be 1-D, but got shape %s",
                 leat_shape_show(y).s);
    LEAT_REQUIRE(x->dim[0] == y->dim[0], INVALID_ARGUMENT,
                 "logits and labels must have the same first dimension, got logits shape %s and "
                 "labels shape %s",
                 leat_shape_show(x).s, leat_shape_show(y).s);
    LEAT_REQUIRE(x->dim[1] > 0, INVALID_ARGUMENT,
                 "Must have at least one class, but got logits shape %s", leat_shape_show(x).s);
    LEAT_TRY(outputs(k, x->dim[0], x->dim[1], &loss, &back));
    if (!loss->count)
        return NULL;
    leat_cl_launch l = leat_cl_begin(leat_cl_of(k), texts, "",
                                     labels->dtype == LEAT_INT32 ? "sparse_int" : "sparse_long");
    leat_cl_tensor(&l, logits);
    leat_cl_tensor(&l, labels);
    leat_cl_tensor(&l, loss);
    leat_cl_tensor(&l, back);
    leat_cl_int(&l, x->dim[0]);
    leat_cl_int(&l, x->dim[1]);
    return leat_cl_each(&l, x->dim[0], 4 * (double)x->dim[1]);
}

#define ROW(name, fn)                                                                              \
    {                                                                                              \
        .op = name, .where = {{"T", LEAT_T(FLOAT)}}, .run = fn                                     \
    }

const leat_kernel_def leat_opencl_softmax[] = {
    ROW("Softmax", softmax),
    ROW("LogSoftmax", softmax),
    ROW("SoftmaxCrossEntropyWithLogits", xent),
    ROW("SparseSoftmaxCrossEntropyWithLogits", sparse_xent),
    {0},
};
