/* guard.c -- ops whose output is their input, and that check something about it or mark it:
 * StopGradient, PreventGradient, CheckNumerics, EnsureShape, Snapshot, GuaranteeConst; and
 * DeepCopy, which copies it. */
#include <stdlib.h>

#include <leat/ops.h>
#include "core/strbuf.h"
#include "ops/infer_util.h"

static leat_status pass_shape(leat_infer *c)
{
    leat_infer_out(c, 0, leat_infer_in(c, 0));
    leat_infer_pass_handle(c, 0, 0);
    return NULL;
}

static leat_status ensure_shape(leat_infer *c)
{
    leat_shape in = leat_infer_in(c, 0), want = leat_node_shape(leat_infer_node(c), "shape");
    LEAT_REQUIRE(in.rank < 0 || want.rank < 0 || in.rank == want.rank, INVALID_ARGUMENT,
                 "Shape must be rank %d but is rank %d", want.rank, in.rank);
    LEAT_TRY(leat_shape_merge(&want, &in, &in));
    leat_infer_out(c, 0, in);
    return NULL;
}

static leat_status pass_grad(leat_grad *g)
{
    return leat_grad_in_value(g, 0, leat_grad_out_value(g, 0));
}

static leat_status prevent_grad(leat_grad *g)
{
    return leat_error(INVALID_ARGUMENT, "Gradient explicitly disabled. Reason: %s",
                      leat_node_string(leat_grad_node(g), "message"));
}

static leat_status check_grad(leat_grad *g)
{
    leat_strbuf message = {0};
    leat_strbuf_printf(&message,
                       "Not a number (NaN) or infinity (Inf) values detected in gradient. %s",
                       leat_node_string(leat_grad_node(g), "message"));
    leat_out dx = leat_check_numerics(leat_grad_out(g, 0), leat_strbuf_text(&message));
    leat_strbuf_release(&message);
    return leat_grad_in(g, 0, dx);
}

const leat_op_def leat_ops_guard[] = {
    {.name = "StopGradient",
     .inputs = "input: T",
     .outputs = "output: T",
     .attrs = "T: type",
     .shape = pass_shape,
     .grad = leat_grad_none,
     .flags = LEAT_OP_IDENTITY},
    {.name = "PreventGradient",
     .inputs = "input: T",
     .outputs = "output: T",
     .attrs = "T: type; message: string = ''",
     .shape = pass_shape,
     .grad = prevent_grad,
     .flags = LEAT_OP_IDENTITY},
    {.name = "CheckNumerics",
     .inputs = "tensor: T",
     .outputs = "output: T",
     .attrs = "T: {bfloat16, half, float, double}; message: string",
     .shape = leat_shape_unchanged,
     .grad = check_grad,
     .flags = LEAT_OP_STATEFUL | LEAT_OP_CHECKS},
    {.name = "EnsureShape",
     .inputs = "input: T",
     .outputs = "output: T",
     .attrs = "shape: shape; T: type",
     .shape = ensure_shape,
     .grad = pass_grad,
     .flags = LEAT_OP_CHECKS},
    {.name = "Snapshot",
     .inputs = "input: T",
     .outputs = "output: T",
     .attrs = "T: type",
     .shape = pass_shape,
     .grad = leat_grad_missing,
     .flags = LEAT_OP_IDENTITY},
    {.name = "DeepCopy",
     .inputs = "x: T",
     .outputs = "y: T",
     .attrs = "T: type",
     .shape = leat_shape_unchanged,
     .grad = leat_grad_missing,
     .flags = LEAT_OP_STATEFUL},
    {.name = "GuaranteeConst",
     .inputs = "input: T",
     .outputs = "output: T",
     .attrs = "T: type",
     .shape = pass_shape,
     .grad = leat_grad_missing,
     .flags = LEAT_OP_STATEFUL},
    {0},
};
