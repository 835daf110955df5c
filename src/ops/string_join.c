/* string_join.c -- ops that split, join and format strings: StringSplit, StringSplitV2, ReduceJoin,
 * UnsortedSegmentJoin, StringFormat. */
#include "ops/infer_util.h"

static leat_status split_shape(leat_infer *c)
{
    leat_shape unused;
    LEAT_TRY(leat_infer_rank(c, 0, 1, &unused));
    LEAT_TRY(leat_infer_rank(c, 1, 0, &unused));
    leat_infer_out(c, 0, leat_shape(-1, 2));
    leat_infer_out(c, 1, leat_shape(-1));
    leat_infer_out(c, 2, leat_shape(2));
    return NULL;
}

static leat_status format_shape(leat_infer *c)
{
    const leat_node *n = leat_infer_node(c);
    const char *at = leat_node_string(n, "template"), *hole = leat_node_string(n, "placeholder");
    int holes = 0;
    for (; *hole && (at = strstr(at, hole)); at += strlen(hole))
        holes++;
    LEAT_REQUIRE(holes == leat_infer_inputs(c), INVALID_ARGUMENT,
                 "num placeholders in template and num inputs must match: %d vs. %d", holes,
                 leat_infer_inputs(c));
    leat_infer_out(c, 0, leat_shape());
    return NULL;
}

#define SPLIT "indices: int64, values: string, shape: int64"

const leat_op_def leat_ops_string_join[] = {
    {.name = "StringSplit",
     .inputs = "input: string, delimiter: string",
     .outputs = SPLIT,
     .attrs = "skip_empty: bool = true",
     .shape = split_shape,
     .grad = leat_grad_none},
    {.name = "StringSplitV2",
     .inputs = "input: string, sep: string",
     .outputs = SPLIT,
     .attrs = "maxsplit: int = -1",
     .shape = split_shape,
     .grad = leat_grad_missing},
    {.name = "ReduceJoin",
     .inputs = "inputs: string, reduction_indices: int32",
     .outputs = "output: string",
     .attrs = "keep_dims: bool = false; separator: string = ''",
     .shape = leat_shape_reduction,
     .grad = leat_grad_none},
    {.name = "UnsortedSegmentJoin",
     .inputs = "inputs: string, segment_ids: Tindices, num_segments: Tnumsegments",
     .outputs = "output: string",
     .attrs = "separator: string = ''; Tindices: {int32, int64}; "
              "Tnumsegments: {int32, int64} = DT_INT32",
     .shape = leat_shape_unsorted_segment,
     .grad = leat_grad_missing},
    {.name = "StringFormat",
     .inputs = "inputs: T",
     .outputs = "output: string",
     .attrs = "T: list(type) >= 0; template: string = '%s'; placeholder: string = '%s'; "
              "summarize: int = 3",
     .shape = format_shape,
     .grad = leat_grad_missing},
    {0},
};
