/* decode.c -- tensors from text and bytes: DecodeCSV, DecodeCompressed, DecodeJSONExample,
 * ParseTensor, and SerializeTensor, its reverse. (DecodeRaw is in string_hash.c.) */
#include "ops/infer_util.h"

static leat_status csv_shape(leat_infer *c)
{
    for (int i = 1; i < leat_infer_inputs(c); i++) {
        const leat_shape s = leat_infer_in(c, i);
        LEAT_REQUIRE(s.rank <= 1, INVALID_ARGUMENT, "Shape must be at most rank 1 but is rank %d",
                     s.rank);
        LEAT_REQUIRE(s.rank < 1 || s.dim[0] <= 1, INVALID_ARGUMENT,
                     "Shape of a default must be a length-0 or length-1 vector, or a scalar.");
    }
    for (int i = 0; i < leat_infer_outputs(c); i++)
        leat_infer_out(c, i, leat_infer_in(c, 0));
    return NULL;
}

const leat_op_def leat_ops_decode[] = {
    {.name = "DecodeCSV",
     .inputs = "records: string, record_defaults: OUT_TYPE",
     .outputs = "output: OUT_TYPE",
     .attrs = "OUT_TYPE: list({float, double, int32, int64, string}) >= 1; "
              "field_delim: string = ','; use_quote_delim: bool = true; na_value: string = ''; "
              "select_cols: list(int) = []",
     .shape = csv_shape,
     .grad = leat_grad_none},
    {.name = "DecodeCompressed",
     .inputs = "bytes: string",
     .outputs = "output: string",
     .attrs = "compression_type: string = ''",
     .shape = leat_shape_unchanged,
     .grad = leat_grad_none},
    {.name = "DecodeJSONExample",
     .inputs = "json_examples: string",
     .outputs = "binary_examples: string",
     .shape = leat_shape_unchanged,
     .grad = leat_grad_none},
    {.name = "ParseTensor",
     .inputs = "serialized: string",
     .outputs = "output: out_type",
     .attrs = "out_type: type",
     .shape = leat_shape_any,
     .grad = leat_grad_none},
    {.name = "SerializeTensor",
     .inputs = "tensor: T",
     .outputs = "serialized: string",
     .attrs = "T: type",
     .shape = leat_shape_scalar,
     .grad = leat_grad_none},
    {0},
};
