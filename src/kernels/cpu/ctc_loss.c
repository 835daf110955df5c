/* ctc_loss.c -- CTCLoss: minus the logarithm of the probability that a sequence of logits gives the
 * labels, summed over all ways to align them (Graves, 2012, chapter 7), and its gradient. */
#include <inttypes.h>
#include <stdlib.h>

#include "core/alloc.h"
#include "kernels/cpu/ctc.h"
#include "kernels/cpu/sparse.h"
#include "kernels/cpu/vmath.h"
#include <leat/rows.h>

enum { PAD = 2 };

/* One sequence of the batch. */
typedef struct ctc_item {
    int64_t b, time;
    int32_t *label; /* without repetitions, if they are to be merged beforehand; no blanks */
    int64_t n;
    bool skip; /* its loss and gradient are 0 */
    leat_status failed;
} ctc_item;

typedef struct ctc_args {
    leat_kernel *k;
    leat_ctc in;
    bool collapse, merge, ignore_longer;
    leat_tensor *loss, *gradient;
    ctc_item *items;
} ctc_args;

#define T float
#define FN(name) name##_float
#define EXP leat_expf
#define LOG leat_logf
#include "kernels/cpu/ctc_loss.inc"
#undef T
#undef FN
#undef EXP
#undef LOG
#define T double
#define FN(name) name##_double
#define EXP exp
#define LOG log
#include "kernels/cpu/ctc_loss.inc"
#undef T

/* ---- Labels ---- */

/* The labels of sequence b, in[0] to in[n - 1], are written to s->label. */
static leat_status read_labels(const ctc_args *a, const int32_t *in, int64_t n, ctc_item *s)
{
    const int64_t b = s->b;
    bool ended = false;
    LEAT_REQUIRE(n > 0, INVALID_ARGUMENT, "Labels length is zero in batch %" PRId64, b);
    for (int64_t i = 0; i < n; i++) {
        if (i > 0 && a->collapse && in[i] == in[i - 1])
            continue;
        LEAT_REQUIRE(in[i] >= 0, INVALID_ARGUMENT,
                     "All labels must be nonnegative integers, batch: %" PRId64 " label %" PRId64
                     " is %d",
                     b, i, in[i]);
        if (in[i] >= a->in.blank) {
            ended = true;
            continue;
        }
        LEAT_REQUIRE(!ended, INVALID_ARGUMENT,
                     "Saw a non-null label (index >= num_classes - 1) following a null label, "
                     "batch: %" PRId64 " num_classes: %" PRId64 ": label %" PRId64
                     " is %d, and one "
                     "before it is %" PRId64 " or more, which is no class",
                     b, a->in.classes, i, in[i], a->in.blank);
        s->label[s->n++] = in[i];
    }
    LEAT_REQUIRE(a->ignore_longer || n <= s->time, INVALID_ARGUMENT,
                 "Not enough time for target transition sequence (required: %" PRId64
                 ", available: %" PRId64 ") in batch %" PRId64
                 ". You can turn this error into a warning by using the flag "
                 "ignore_longer_outputs_than_inputs",
                 n, s->time, b);
    s->skip = s->time == 0 || n > s->time;
    return NULL;
}

/* Inputs 1 and 2 are the indices and values of a sparse tensor (batch, labels). */
static leat_status labels_input(leat_kernel *k, const ctc_args *a, leat_sparse *out)
{
    leat_sparse s = {.indices = leat_kernel_in(k, 1), .values = leat_kernel_in(k, 2), .rank = 2};
    const leat_shape *indices = &s.indices->shape;
    LEAT_REQUIRE(indices->rank == 2 && indices->dim[1] == 2, INVALID_ARGUMENT,
                 "labels_indices is not a matrix of two columns, the sequence and the place of a "
                 "label in it: %s",
                 leat_shape_show(indices).s);
    LEAT_REQUIRE(s.values->shape.rank == 1, INVALID_ARGUMENT, "labels_values is not a vector: %s",
                 leat_shape_show(&s.values->shape).s);
    LEAT_REQUIRE(indices->dim[0] == s.values->count, INVALID_ARGUMENT,
                 "labels_indices and labels_values must contain the same number of rows, but saw "
                 "shapes: %s vs. %s",
                 leat_shape_show(indices).s, leat_shape_show(&s.values->shape).s);
    s.n = s.values->count;
    int64_t longest = 0;
    for (int64_t i = 0; i < s.n; i++) {
        const int64_t at = leat_sparse_at(&s, i)[1];
        longest = at < INT64_MAX && at >= longest ? at + 1 : longest;
    }
    s.shape = leat_shape(a->in.batch, longest);
    leat_status bad = leat_sparse_check(&s, true);
    *out = s;
    return leat_status_prefix(bad, "label SparseTensor is not valid: ");
}

static leat_status prepare(leat_kernel *k, ctc_args *a)
{
    leat_sparse labels = {0};
    leat_tensor *kept;
    LEAT_TRY(labels_input(k, a, &labels));
    const leat_shape s = leat_shape(labels.n);
    LEAT_TRY(leat_kernel_temp(k, LEAT_INT32, &s, &kept));
    LEAT_TRY(leat_try_array(a->in.batch, &a->items));
    for (int64_t b = 0, i = 0; b < a->in.batch; b++) {
        const int64_t begin = i;
        while (i < labels.n && leat_sparse_at(&labels, i)[0] == b)
            i++;
        a->items[b] =
            (ctc_item){.b = b, .time = a->in.length[b], .label = AT(int32_t, kept) + begin};
        LEAT_TRY(read_labels(a, AT(int32_t, labels.values) + begin, i - begin, &a->items[b]));
    }
    return NULL;
}

/* ---- The batch ---- */

/* The number of elements that a sequence needs as its memory; -1 if there are too many. */
static int64_t work_size(int64_t time, int64_t labels)
{
    const int64_t row = 2 * labels + 1 + PAD;
    int64_t n;
    return leat_mul_ok(time + 6, row, &n) && leat_add_ok(n, time, &n) ? n : -1;
}

static leat_status one(const ctc_args *a, const ctc_item *s, leat_look *look)
{
    const bool wide = a->loss->dtype == LEAT_DOUBLE;
    const int64_t n = work_size(s->time, s->n);
    char *memory;
    LEAT_REQUIRE(n >= 0, RESOURCE_EXHAUSTED,
                 "sequence %" PRId64 " of %" PRId64 " times has too many labels: %" PRId64, s->b,
                 s->time, s->n);
    LEAT_TRY(leat_try_calloc(n, wide ? sizeof(double) : sizeof(float), (void **)&memory));
    if (wide)
        AT(double, a->loss)[s->b] = sequence_double(a, s, memory, look);
    else
        AT(float, a->loss)[s->b] = (float)sequence_float(a, s, memory, look);
    free(memory);
    return NULL;
}

static void part(void *arg, int64_t begin, int64_t end)
{
    ctc_args *a = arg;
    leat_look look = leat_look_begin(a->k);
    for (int64_t b = begin; b < end; b++)
        a->items[b].failed = a->items[b].skip ? NULL : one(a, &a->items[b], &look);
}

static leat_status compute(leat_kernel *k, ctc_args *a)
{
    LEAT_REQUIRE(a->in.batch != 0, INVALID_ARGUMENT, "batch_size must not be 0");
    LEAT_TRY(prepare(k, a));
    const leat_shape losses = leat_shape(a->in.batch);
    LEAT_TRY(leat_kernel_out(k, 0, &losses, &a->loss));
    LEAT_TRY(leat_kernel_out(k, 1, &a->in.x->shape, &a->gradient));
    memset(a->loss->data, 0, leat_tensor_bytes(a->loss));
    memset(a->gradient->data, 0, leat_tensor_bytes(a->gradient));
    const double labels = (double)leat_kernel_in(k, 2)->count / (double)a->in.batch;
    leat_kernel_for(k, a->in.batch, (double)a->in.time * (4 * (double)a->in.classes + 20 * labels),
                    part, a);
    leat_status failed = NULL;
    for (int64_t b = 0; b < a->in.batch; b++)
        failed = leat_status_first(failed, a->items[b].failed);
    return failed;
}

static leat_status ctc_loss_run(leat_kernel *k)
{
    const leat_node *n = leat_kernel_node(k);
    ctc_args a = {.k = k,
                  .collapse = leat_node_bool(n, "preprocess_collapse_repeated"),
                  .merge = leat_node_bool(n, "ctc_merge_repeated"),
                  .ignore_longer = leat_node_bool(n, "ignore_longer_outputs_than_inputs")};
    LEAT_TRY(leat_ctc_inputs(k, 3, LEAT_INVALID_ARGUMENT, &a.in));
    leat_status s = compute(k, &a);
    free(a.items);
    return s;
}

const leat_kernel_def leat_cpu_ctc_loss[] = {
    {.op = "CTCLoss", .run = ctc_loss_run},
    {0},
};
