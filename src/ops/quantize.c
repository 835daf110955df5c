/* quantize.c -- QuantizeV2, floats of a range as integers, and Dequantize, the way back. */
#include <leat/ops.h>

#include "ops/infer_util.h"

static leat_status dequantize_shape(leat_infer *c)
{
    leat_shape unused;
    LEAT_TRY(leat_infer_rank(c, 1, 0, &unused));
    LEAT_TRY(leat_infer_rank(c, 2, 0, &unused));
    leat_infer_out(c, 0, leat_infer_in(c, 0));
    return NULL;
}

/* The outputs 1 and 2 are the ends of the range that was used. */
static leat_status quantize_shape(leat_infer *c)
{
    LEAT_TRY(dequantize_shape(c));
    leat_infer_out(c, 1, leat_shape());
    leat_infer_out(c, 2, leat_shape());
    return NULL;
}

#define ATTRS                                                                                      \
    "T: {qint8, quint8, qint32, qint16, quint16}; "                                                \
    "mode: {'MIN_COMBINED', 'MIN_FIRST', 'SCALED'} = 'MIN_COMBINED'"

const leat_op_def leat_ops_quantize[] = {
    {.name = "QuantizeV2",
     .inputs = "input: float, min_range: float, max_range: float",
     .outputs = "output: T, output_min: float, output_max: float",
     .attrs = ATTRS "; round_mode: {'HALF_AWAY_FROM_ZERO', 'HALF_TO_EVEN'} = 'HALF_AWAY_FROM_ZERO'",
     .shape = quantize_shape,
     .grad = leat_grad_missing},
    {.name = "Dequantize",
     .inputs = "input: T, min_range: float, max_range: float",
     .outputs = "output: float",
     .attrs = ATTRS,
     .shape = dequantize_shape,
     .grad = leat_grad_missing},
    {0},
};
