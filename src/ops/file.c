/* file.c -- ReadFile and WriteFile, whole files; MatchingFiles, the files that match patterns. */
#include "ops/infer_util.h"

static leat_status scalars_shape(leat_infer *c)
{
    for (int i = 0; i < leat_infer_inputs(c); i++) {
        leat_shape s;
        LEAT_TRY(leat_infer_rank(c, i, 0, &s));
    }
    return leat_shape_scalar(c);
}

static leat_status matching_shape(leat_infer *c)
{
    const leat_shape s = leat_infer_in(c, 0);
    LEAT_REQUIRE(s.rank <= 1, INVALID_ARGUMENT, "Shape must be at most rank 1 but is rank %d",
                 s.rank);
    leat_infer_out(c, 0, leat_shape(-1));
    return NULL;
}

const leat_op_def leat_ops_file[] = {
    {.name = "ReadFile",
     .inputs = "filename: string",
     .outputs = "contents: string",
     .shape = scalars_shape,
     .grad = leat_grad_none},
    {.name = "WriteFile",
     .inputs = "filename: string, contents: string",
     .shape = scalars_shape,
     .grad = leat_grad_none,
     .flags = LEAT_OP_STATEFUL},
    {.name = "MatchingFiles",
     .inputs = "pattern: string",
     .outputs = "filenames: string",
     .shape = matching_shape,
     .grad = leat_grad_none},
    {0},
};
