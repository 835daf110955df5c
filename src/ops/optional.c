/* optional.c -- a variant that may hold tensors: OptionalFromValue, OptionalNone,
 * OptionalHasValue, OptionalGetValue. */
#include <leat/ops.h>

#include "ops/dataset.h"

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
     .shape = leat_data_elements_shape,
     .grad = leat_grad_missing},
    {0},
};
