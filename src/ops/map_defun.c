/* map_defun.c -- MapDefun: calls a function for each row of its arguments. */
#include "ops/infer_util.h"

/* Outputs are rows of the shapes in output_shapes, as many as the arguments have. */
static leat_status map_defun_shape(leat_infer *c)
{
    int n, n_args;
    const leat_shape *shapes = leat_node_shapes(leat_infer_node(c), "output_shapes", &n);
    leat_node_types(leat_infer_node(c), "Targuments", &n_args);
    int64_t rows = -1;
    for (int i = 0; i < n_args; i++) {
        const leat_shape s = leat_infer_in(c, i);
        LEAT_REQUIRE(s.rank != 0, INVALID_ARGUMENT,
                     "Arguments must have rank at least 1. Input %d has rank of 0.", i);
        if (s.rank < 0 || s.dim[0] < 0)
            continue;
        LEAT_REQUIRE(rows < 0 || rows == s.dim[0], INVALID_ARGUMENT,
                     "Arguments must have the same dimension 0.");
        rows = s.dim[0];
    }
    for (int i = 0; i < leat_infer_outputs(c); i++) {
        leat_shape s = i < n ? shapes[i] : leat_shape_unknown();
        if (s.rank >= 0 && s.rank < LEAT_MAX_RANK) {
            memmove(s.dim + 1, s.dim, sizeof(*s.dim) * (size_t)s.rank++);
            s.dim[0] = rows;
        } else {
            s = leat_shape_unknown();
        }
        leat_infer_out(c, i, s);
    }
    return NULL;
}

const leat_op_def leat_ops_map_defun[] = {
    {.name = "MapDefun",
     .inputs = "arguments: Targuments, captured_inputs: Tcaptured",
     .outputs = "output: output_types",
     .attrs = "Targuments: list(type) >= 1; Tcaptured: list(type) >= 0 = []; "
              "output_types: list(type) >= 1; output_shapes: list(shape) >= 1; f: func; "
              "max_intra_op_parallelism: int = 1",
     .shape = map_defun_shape,
     .grad = leat_grad_missing},
    {0},
};
