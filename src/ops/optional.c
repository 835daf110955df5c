/* optional.c -- a variant that may hold tensors: OptionalFromValue, OptionalNone,
 * OptionalHasValue, OptionalGetValue. */
#include <leat/ops.h>

#include "ops/infer_util.h"

static leat_status get_shape(leat_infer *c)
{
    int n;
    leat_shape unused;
    const leat_shape *shapes = leat_node_shapes(leat_infer_node(c), "output_shapes", &n);
    LEAT_TRY(leat_infer_rank(c, 0, 0, &unused));
    LEAT_REQUIRE(n == leat_infer_outputs(c), INVALID_ARGUMENT,
                 "`output_shapes` must be the same length as `output_types` (%d vs. %d)", n,
                 leat_infer_outputs(c));
    for (int i = 0; i < n; i++)
        leat_infer_out(c, i, shapes[i]);
    return NULL;
}

const leat_op_def leat_ops_optional[] = {
    {.name = "OptionalFromValue",
     .inputs = "components: Toutput_types",
     .outputs = "optional: variant",
     .attrs = "Toutput_types: list(type) >= 1",
     .shape = leat_shape_scalar,
     .grad = leat_grad_missing},
    {.name = "OptionalNone",
     .outputs = "optional: variant",
     .shape = leat_shape_scalar,
     .grad = leat_grad_missing},
    {.name = "OptionalHasValue",
     .inputs = "optional: variant",
     .outputs = "has_value: bool",
     .shape = leat_shape_scalar,
     .grad = leat_grad_missing},
    {.name = "OptionalGetValue",
     .inputs = "optional: variant",
     .outputs = "components: output_types",
     .attrs = "output_types: list(type) >= 1; output_shapes: list(shape) >= 1",
     .shape = get_shape,
     .grad = leat_grad_missing},
    {0},
};
