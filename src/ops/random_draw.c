/* random_draw.c -- samples of distributions with parameters: RandomGamma, RandomPoisson,
 * RandomPoissonV2, Multinomial, StatelessMultinomial. */
#include <leat/ops.h>

#include "ops/infer_util.h"

/* (shape..., parameter's shape...) */
static leat_status draw_shape(leat_infer *c)
{
    leat_shape s, parameter = leat_infer_in(c, 1);
    LEAT_TRY(leat_infer_value_shape(c, 0, &s));
    leat_infer_out(c, 0, leat_shape_concat(&s, &parameter, 0));
    return NULL;
}

static leat_status multinomial_shape(leat_infer *c)
{
    leat_shape logits, unused;
    int64_t n;
    LEAT_TRY(leat_infer_rank(c, 0, 2, &logits));
    LEAT_TRY(leat_infer_rank(c, 1, 0, &unused));
    bool known = leat_infer_int(c, 1, &n);
    LEAT_REQUIRE(!known || n >= 0, INVALID_ARGUMENT,
                 "Dimension size, given by scalar input 1 must be non-negative but is %lld",
                 (long long)n);
    leat_infer_out(c, 0, leat_shape(logits.dim[0], known ? n : -1));
    return NULL;
}

/* The samples depend on alpha: dL/dalpha is the sum over its samples, which are the leading
 * dimensions. */
static leat_status gamma_grad(leat_grad *g)
{
    leat_out shape = leat_grad_input(g, 0), alpha = leat_grad_input(g, 1);
    leat_out sample = leat_grad_output(g, 0);
    leat_graph *gr = leat_grad_graph(g);
    leat_out zero = leat_scalar(gr, LEAT_INT32, 0), one = leat_scalar(gr, LEAT_INT32, 1);
    leat_out front = leat_size_of(shape);
    leat_out ones = leat_concat(
        ((leat_out[]){leat_fill(leat_expand_dims(front, zero), one), leat_shape_of(alpha)}), 2,
        zero);
    leat_out wide = leat_broadcast_to(leat_reshape(alpha, ones), leat_shape_of(sample));
    leat_out moved = leat_mul(leat_grad_out(g, 0), LEAT_OP2("RandomGammaGrad", wide, sample));
    return leat_grad_in(g, 1, leat_sum(moved, leat_range(zero, front, one)));
}

#define SEEDS "seed: int = 0; seed2: int = 0; "
#define TYPES "{half, float, double, int32, int64}"

const leat_op_def leat_ops_random_draw[] = {
    {.name = "RandomGamma",
     .inputs = "shape: S, alpha: T",
     .outputs = "output: T",
     .attrs = SEEDS "S: {int32, int64}; T: {half, float, double}",
     .shape = draw_shape,
     .grad = gamma_grad,
     .flags = LEAT_OP_STATEFUL},
    {.name = "RandomGammaGrad",
     .inputs = "alpha: T, sample: T",
     .outputs = "output: T",
     .attrs = "T: {float, double}",
     .shape = leat_shape_broadcast_binary,
     .grad = leat_grad_missing},
    {.name = "RandomPoisson",
     .inputs = "shape: S, rate: dtype",
     .outputs = "output: dtype",
     .attrs = SEEDS "S: {int32, int64}; dtype: {half, float, double}",
     .shape = draw_shape,
     .grad = leat_grad_missing,
     .flags = LEAT_OP_STATEFUL},
    {.name = "RandomPoissonV2",
     .inputs = "shape: S, rate: R",
     .outputs = "output: dtype",
     .attrs = SEEDS "S: {int32, int64}; R: " TYPES " = DT_DOUBLE; dtype: " TYPES " = DT_INT64",
     .shape = draw_shape,
     .grad = leat_grad_missing,
     .flags = LEAT_OP_STATEFUL},
    {.name = "Multinomial",
     .inputs = "logits: T, num_samples: int32",
     .outputs = "output: output_dtype",
     .attrs = SEEDS "T: realnumbertype; output_dtype: {int32, int64} = DT_INT64",
     .shape = multinomial_shape,
     .grad = leat_grad_none,
     .flags = LEAT_OP_STATEFUL},
    {.name = "StatelessMultinomial",
     .inputs = "logits: T, num_samples: int32, seed: Tseed",
     .outputs = "output: output_dtype",
     .attrs = "T: realnumbertype; Tseed: {int32, int64} = DT_INT64; "
              "output_dtype: {int32, int64} = DT_INT64",
     .shape = multinomial_shape,
     .grad = leat_grad_none},
    {0},
};
