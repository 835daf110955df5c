/* softmax.c -- Softmax and LogSoftmax over the last dimension; the cross entropy of softmax with
 * labels that are distributions or classes, together with its gradient. */
#include <stdlib.h>

#include "kernels/cpu/arith.h"
#include "kernels/cpu/vmath.h"

enum { SCRATCH = 1024 }; /* elements of scratch memory that a task has on its stack */

/* Logits and labels, broadcast to (batch, classes): the strides of their rows and classes; 0 where
 * an element is broadcast. */
typedef struct xent_args {
    const leat_tensor *logits, *labels;
    const leat_tensor *scale; /* factor of each row's gradient; NULL: none */
    leat_tensor *loss, *back;
    int64_t batch, classes;
    int64_t logits_row, logits_step, labels_row, labels_step;
    bool sparse; /* labels are classes */
} xent_args;

#define T float
#define FN(name) name##_float
#define EXP leat_expf
#define LOG logf
#include "kernels/cpu/softmax.inc"
#undef T
#undef FN
#undef EXP
#undef LOG
#define T double
#define FN(name) name##_double
#define EXP exp
#define LOG log
#include "kernels/cpu/softmax.inc"
#undef T

/* ---- Softmax, LogSoftmax ---- */

typedef struct softmax_args {
    const leat_tensor *x;
    leat_tensor *y;
    int64_t n; /* classes */
    bool log;
} softmax_args;

static void softmax_part(void *arg, int64_t begin, int64_t end)
{
    softmax_args *a = arg;
    int64_t some = a->n > 4096 ? 1 : 4096 / a->n; /* rows that stay in the cache */
    for (int64_t r = begin; r < end; r += some) {
        int64_t rows = end - r < some ? end - r : some, at = r * a->n;
        if (a->x->dtype == LEAT_FLOAT)
            (a->log ? log_softmax_rows_float
                    : softmax_rows_float)(AT(float, a->x) + at, AT(float, a->y) + at, rows, a->n);
        else
            (a->log ? log_softmax_rows_double : softmax_rows_double)(
                AT(double, a->x) + at, AT(double, a->y) + at, rows, a->n);
    }
}

static leat_status softmax_of(leat_kernel *k, bool log)
{
    softmax_args a = {.x = leat_kernel_in(k, 0), .log = log};
    const leat_shape *s = &a.x->shape;
    LEAT_REQUIRE(s->rank >= 1, INVALID_ARGUMENT, "logits must have >= 1 dimension, got %s",
                 leat_shape_show(s).s);
    LEAT_TRY(leat_kernel_out_over(k, 0, 0, s, &a.y));
    if (a.x->count == 0)
        return NULL;
    a.n = s->dim[s->rank - 1];
    leat_kernel_for(k, a.x->count / a.n, 4 + (double)a.n, softmax_part, &a);
    return NULL;
}

static leat_status softmax(leat_kernel *k)
{
    return softmax_of(k, false);
}

static leat_status log_softmax(leat_kernel *k)
{
    return softmax_of(k, true);
}

/* ---- Cross entropy ---- */

static void xent_part(void *arg, int64_t begin, int64_t end)
{
    xent_args *a = arg;
    if (a->logits->dtype == LEAT_FLOAT)
        xent_rows_float(a, begin, end);
    else
        xent_rows_double(a, begin, end);
}

/* One row of logits and labels, many scales: broadcast against each other, as Mul does. */
static bool scales_repeat(const xent_args *a)
{
    return a->scale && a->batch == 1 && a->scale->count != 1;
}

static leat_status xent_outputs(leat_kernel *k, xent_args *a)
{
    if (leat_kernel_inputs(k) == 3) {
        a->scale = leat_kernel_in(k, 2);
        LEAT_REQUIRE(a->scale->count == a->batch || a->scale->count == 1 || a->batch == 1,
                     INVALID_ARGUMENT, "Incompatible shapes: [%lld,1] vs. [%lld,%lld]",
                     (long long)a->scale->count, (long long)a->batch, (long long)a->classes);
    }
    leat_shape batch = {.rank = 1, .dim = {a->batch}};
    leat_shape both = {.rank = 2, .dim = {a->batch, a->classes}};
    LEAT_TRY(leat_kernel_out(k, 0, &batch, &a->loss));
    if (scales_repeat(a))
        return leat_kernel_temp(k, a->logits->dtype, &both, &a->back);
    return a->logits_step == 1 && a->logits_row == a->classes
               ? leat_kernel_out_over(k, 1, 0, &both, &a->back)
               : leat_kernel_out(k, 1, &both, &a->back);
}

static leat_status xent_compute(leat_kernel *k, xent_args *a)
{
    const leat_tensor *scale = a->scale;
    bool repeat = scales_repeat(a);
    if (repeat)
        a->scale = NULL;
    if (a->classes == 0)
        memset(a->loss->data, 0, (size_t)a->batch * leat_dtype_size(a->loss->dtype));
    else
        leat_kernel_for(k, a->batch, 10 + 2 * (double)a->classes, xent_part, a);
    if (!repeat)
        return NULL;
    leat_shape all = {.rank = 2, .dim = {scale->count, a->classes}};
    leat_tensor *y;
    LEAT_TRY(leat_kernel_out(k, 1, &all, &y));
    for (int64_t i = 0; i < scale->count; i++)
        for (int64_t c = 0; c < a->classes; c++)
            if (y->dtype == LEAT_FLOAT)
                AT(float, y)[i * a->classes + c] = AT(float, a->back)[c] * AT(float, scale)[i];
            else
                AT(double, y)[i * a->classes + c] = AT(double, a->back)[c] * AT(double, scale)[i];
    return NULL;
}

/* The strides of t's rows and classes when it is broadcast to (batch, classes). */
static void xent_steps(const leat_tensor *t, int64_t *row, int64_t *step)
{
    const leat_shape *s = &t->shape;
    int64_t classes = s->rank >= 1 ? s->dim[s->rank - 1] : 1;
    *row = s->rank == 2 && s->dim[0] != 1 ? classes : 0;
    *step = classes != 1;
}

static leat_status xent(leat_kernel *k)
{
    xent_args a = {.logits = leat_kernel_in(k, 0), .labels = leat_kernel_in(k, 1)};
    const leat_shape *x = &a.logits->shape, *y = &a.labels->shape;
    leat_shape s;
    leat_status bad = leat_shape_broadcast(x, y, &s);
    leat_status_free(bad);
    LEAT_REQUIRE(!bad, INVALID_ARGUMENT,
                 "logits and labels must be broadcastable: logits_size=%s labels_size=%s",
                 leat_shape_show(x).s, leat_shape_show(y).s);
    LEAT_REQUIRE(s.rank == 2, INVALID_ARGUMENT,
                 "logits and labels must be either 2-dimensional, or broadcasted to be "
                 "2-dimensional");
    a.batch = s.dim[0];
    a.classes = s.dim[1];
    xent_steps(a.logits, &a.logits_row, &a.logits_step);
    xent_steps(a.labels, &a.labels_row, &a.labels_step);
    LEAT_TRY(xent_outputs(k, &a));
    return xent_compute(k, &a);
}

static leat_status check_labels(const leat_tensor *labels, int64_t classes)
{
    int64_t least = 0, most = 0;
    for (int64_t i = 0; i < labels->count; i++) {
        int64_t label = leat_index_at(labels, i);
        least = label < least ? label : least;
        most = label > most ? label : most;
    }
    if (labels->count == 0 || (least >= 0 && most < classes))
        return NULL;
    char *all = leat_tensor_text(labels, labels->count); /* in brackets */
    leat_status s = leat_error(INVALID_ARGUMENT,
                               "Received a label value of %lld which is outside the valid range "
                               "of [0, %lld).  Label values: %.*s",
                               (long long)(least < 0 ? least : most), (long long)classes,
                               (int)strlen(all) - 2, all + 1);
    free(all);
    return s;
}

static leat_status sparse_xent(leat_kernel *k)
{
    xent_args a = {.logits = leat_kernel_in(k, 0), .labels = leat_kernel_in(k, 1)};
    const leat_shape *x = &a.logits->shape, *y = &a.labels->shape;
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
    a.batch = x->dim[0];
    a.classes = a.logits_row = x->dim[1];
    a.logits_step = 1;
    a.sparse = true;
    LEAT_TRY(check_labels(a.labels, a.classes));
    LEAT_TRY(xent_outputs(k, &a));
    return xent_compute(k, &a);
}

/* The number of losses, from the shapes of logits and labels. If these do not fit, the cross
 * entropy reports it. */
static leat_status xent_rows(leat_kernel *k)
{
    int64_t rows = 1;
    for (int i = 0; i < 2; i++) {
        const leat_shape *s = &leat_kernel_in(k, i)->shape;
        rows = s->rank == 2 && s->dim[0] != 1 ? s->dim[0] : rows;
    }
    leat_shape shape = {.rank = !leat_node_bool(leat_kernel_node(k), "scalar"), .dim = {1}};
    leat_tensor *y;
    LEAT_TRY(leat_kernel_out(k, 0, &shape, &y));
    if (y->dtype == LEAT_INT64) {
        AT(int64_t, y)[0] = rows;
        return NULL;
    }
    LEAT_REQUIRE(rows < INT32_MAX, INVALID_ARGUMENT,
                 "Shape output type is 32-bit  but dim 0 is %lld", (long long)rows);
    AT(int32_t, y)[0] = (int32_t)rows;
    return NULL;
}

#define FLOAT (LEAT_T(FLOAT) | LEAT_T(DOUBLE))
#define KERNEL(name, fn)                                                                           \
    {                                                                                              \
        .op = name, .where = {{"T", FLOAT}}, .run = fn, .flags = LEAT_KERNEL_VIA_FLOAT             \
    }

const leat_kernel_def leat_cpu_softmax[] = {
    KERNEL("Softmax", softmax),
    KERNEL("LogSoftmax", log_softmax),
    KERNEL("SoftmaxCrossEntropyWithLogits", xent),
    KERNEL("SparseSoftmaxCrossEntropyWithLogits", sparse_xent),
    KERNEL("_ScaledSoftmaxCrossEntropyWithLogits", xent),
    KERNEL("_ScaledSparseSoftmaxCrossEntropyWithLogits", sparse_xent),
    {.op = "_CrossEntropyRows", .run = xent_rows},
    {0},
};
