/* ctc_decode.c -- CTCGreedyDecoder, the likeliest class at each time; and what it shares with the
 * other kernels of connectionist temporal classification. */
#include "kernels/cpu/ctc.h"

#include <inttypes.h>
#include <stdlib.h>

#include "core/alloc.h"

leat_status leat_ctc_inputs(leat_kernel *k, int lengths, leat_code misfit, leat_ctc *out)
{
    const leat_tensor *x = leat_kernel_in(k, 0), *n = leat_kernel_in(k, lengths);
    LEAT_REQUIRE(x->shape.rank == 3, INVALID_ARGUMENT, "inputs is not a 3-Tensor: %s",
                 leat_shape_show(&x->shape).s);
    LEAT_REQUIRE(n->shape.rank == 1, INVALID_ARGUMENT, "sequence_length is not a vector: %s",
                 leat_shape_show(&n->shape).s);
    const int64_t *dim = x->shape.dim;
    LEAT_REQUIRE(dim[0] != 0, INVALID_ARGUMENT,
                 "max_time is 0. Max time or first dimension of input cannot be 0.");
    LEAT_REQUIRE(dim[2] > 0 && dim[2] < INT32_MAX, INVALID_ARGUMENT,
                 "inputs has %" PRId64 " classes: there must be at least one, the blank, and "
                 "num_classes cannot exceed max int",
                 dim[2]);
    if (dim[1] != n->count)
        return leat_status_new(misfit, __FILE__, __LINE__,
                               "len(sequence_length) != batch_size.  len(sequence_length):  "
                               "%" PRId64 " batch_size: %" PRId64,
                               n->count, dim[1]);
    for (int64_t b = 0; b < n->count; b++) {
        const int32_t length = AT(int32_t, n)[b];
        LEAT_REQUIRE(length >= 0, INVALID_ARGUMENT,
                     "sequence_length(%" PRId64 ") is %d; it must not be negative", b, length);
        if (length > dim[0])
            return leat_status_new(misfit, __FILE__, __LINE__,
                                   "sequence_length(%" PRId64 ") <= %" PRId64
                                   " does not hold: it is %d",
                                   b, dim[0], length);
    }
    *out = (leat_ctc){.x = x,
                      .length = AT(int32_t, n),
                      .time = dim[0],
                      .batch = dim[1],
                      .classes = dim[2],
                      .blank = dim[2] - 1};
    return NULL;
}

static leat_status store_path(leat_kernel *k, int64_t batch, int64_t paths, int64_t p,
                              const leat_ctc_decoded *all)
{
    int64_t n = 0, longest = 0, at = 0;
    leat_tensor *indices, *values, *shape;
    for (int64_t b = 0; b < batch; b++) {
        const int64_t more = all[b * paths + p].n;
        n += more;
        longest = more > longest ? more : longest;
    }
    leat_shape s = leat_shape(n, 2);
    LEAT_TRY(leat_kernel_out(k, (int)p, &s, &indices));
    s = leat_shape(n);
    LEAT_TRY(leat_kernel_out(k, (int)(paths + p), &s, &values));
    s = leat_shape(2);
    LEAT_TRY(leat_kernel_out(k, (int)(2 * paths + p), &s, &shape));
    for (int64_t b = 0; b < batch; b++) {
        const leat_ctc_decoded *d = &all[b * paths + p];
        for (int64_t i = 0; i < d->n; i++, at++) {
            AT(int64_t, indices)[2 * at] = b;
            AT(int64_t, indices)[2 * at + 1] = i;
            AT(int64_t, values)[at] = d->label[i];
        }
    }
    AT(int64_t, shape)[0] = batch;
    AT(int64_t, shape)[1] = longest;
    return NULL;
}

leat_status leat_ctc_store(leat_kernel *k, int64_t batch, int64_t paths,
                           const leat_ctc_decoded *all)
{
    for (int64_t p = 0; p < paths; p++)
        LEAT_TRY(store_path(k, batch, paths, p, all));
    return NULL;
}

/* ---- CTCGreedyDecoder ---- */

typedef struct greedy_args {
    leat_kernel *k;
    leat_ctc in;
    bool merge; /* equal classes that follow each other count once */
    leat_tensor *score;
    leat_ctc_decoded *decoded;
} greedy_args;

#define GREEDY(dtype, T)                                                                           \
    static void greedy_##T(greedy_args *a, int64_t b, leat_look *look)                             \
    {                                                                                              \
        const leat_ctc *in = &a->in;                                                               \
        leat_ctc_decoded *d = &a->decoded[b];                                                      \
        T score = 0;                                                                               \
        int64_t before = -1;                                                                       \
        for (int64_t t = 0; t < in->length[b]; t++) {                                              \
            const T *x = AT(T, in->x) + (t * in->batch + b) * in->classes;                         \
            int64_t best = 0;                                                                      \
            for (int64_t c = 1; c < in->classes; c++)                                              \
                best = x[c] > x[best] ? c : best;                                                  \
            score -= x[best];                                                                      \
            if (best != in->blank && !(a->merge && best == before))                                \
                d->label[d->n++] = (int32_t)best;                                                  \
            before = best;                                                                         \
            if (leat_look_over(look, in->classes))                                                 \
                return;                                                                            \
        }                                                                                          \
        AT(T, a->score)[b] = score;                                                                \
    }
LEAT_X_FLOAT(GREEDY)

static void greedy_part(void *arg, int64_t begin, int64_t end)
{
    greedy_args *a = arg;
    leat_look look = leat_look_begin(a->k);
    for (int64_t b = begin; b < end; b++) {
        if (a->in.x->dtype == LEAT_FLOAT)
            greedy_float(a, b, &look);
        else
            greedy_double(a, b, &look);
    }
}

static leat_status greedy_run(leat_kernel *k)
{
    greedy_args a = {.k = k, .merge = leat_node_bool(leat_kernel_node(k), "merge_repeated")};
    LEAT_TRY(leat_ctc_inputs(k, 1, LEAT_FAILED_PRECONDITION, &a.in));
    const leat_ctc *in = &a.in;
    const leat_shape scores = leat_shape(in->batch, 1), most = leat_shape(in->batch, in->time);
    leat_tensor *labels;
    LEAT_TRY(leat_kernel_out(k, 3, &scores, &a.score));
    LEAT_TRY(leat_kernel_temp(k, LEAT_INT32, &most, &labels));
    LEAT_TRY(leat_try_array(in->batch, &a.decoded));
    for (int64_t b = 0; b < in->batch; b++)
        a.decoded[b].label = AT(int32_t, labels) + b * in->time;
    leat_kernel_for(k, in->batch, 20 + (double)in->time * (double)in->classes, greedy_part, &a);
    leat_status s = leat_ctc_store(k, in->batch, 1, a.decoded);
    free(a.decoded);
    return s;
}

const leat_kernel_def leat_cpu_ctc_decode[] = {
    {.op = "CTCGreedyDecoder", .run = greedy_run},
    {0},
};
