/* dataset_two.c -- datasets that only TensorFlow 2 has, and that its clients use in graphs where
 * those of 1.15 use others. */
#include "ops/dataset.h"

#define ROW(op, ...)                                                                               \
    {                                                                                              \
        .name = op, .outputs = "handle: variant", .shape = leat_data_handle_shape,                 \
        .grad = leat_grad_missing, __VA_ARGS__                                                     \
    }
#define METADATA "; metadata: string = ''"
#define ORDER "deterministic: string = 'default'; "
#define FUNCTION "f: func; Targuments: list(type) >= 0; "
#define EXAMPLE_TYPES "list({float, int64, string})"

const leat_op_def leat_ops_dataset_two[] = {
    ROW("ParallelMapDatasetV2",
        .inputs = "input_dataset: variant, other_arguments: Targuments, num_parallel_calls: int64",
        .attrs = FUNCTION ELEMENTS "; use_inter_op_parallelism: bool = true; " ORDER
                                   "preserve_cardinality: bool = false; "
                                   "use_unbounded_threadpool: bool = false" METADATA),
    ROW("ParallelBatchDataset",
        .inputs = "input_dataset: variant, batch_size: int64, num_parallel_calls: int64, "
                  "drop_remainder: bool",
        .attrs = "parallel_copy: bool = false; " ORDER ELEMENTS METADATA),
    ROW("ParallelInterleaveDatasetV3",
        .inputs = "input_dataset: variant, other_arguments: Targuments, cycle_length: int64, "
                  "block_length: int64, num_parallel_calls: int64",
        .attrs = FUNCTION ORDER ELEMENTS METADATA),
    ROW("ParallelInterleaveDatasetV4",
        .inputs = "input_dataset: variant, other_arguments: Targuments, cycle_length: int64, "
                  "block_length: int64, buffer_output_elements: int64, "
                  "prefetch_input_elements: int64, num_parallel_calls: int64",
        .attrs = FUNCTION ORDER ELEMENTS METADATA),
    ROW("LegacyParallelInterleaveDatasetV2",
        .inputs = "input_dataset: variant, other_arguments: Targuments, cycle_length: int64, "
                  "block_length: int64, buffer_output_elements: int64, "
                  "prefetch_input_elements: int64",
        .attrs = FUNCTION ORDER ELEMENTS METADATA),
    ROW("RewriteDataset", .inputs = "input_dataset: variant, rewrite_name: string",
        .attrs = ELEMENTS),
    ROW("OptionsDataset", .inputs = "input_dataset: variant",
        .attrs = "serialized_options: string; " ELEMENTS METADATA),
    ROW("FinalizeDataset", .inputs = "input_dataset: variant",
        .attrs = "has_captured_ref: bool = false; " ELEMENTS),
    ROW("OptimizeDatasetV2",
        .inputs = "input_dataset: variant, optimizations_enabled: string, "
                  "optimizations_disabled: string, optimizations_default: string",
        .attrs = ELEMENTS "; optimization_configs: list(string) = []"),
    ROW("AssertCardinalityDataset", .inputs = "input_dataset: variant, cardinality: int64",
        .attrs = ELEMENTS),
    ROW("RebatchDatasetV2",
        .inputs = "input_dataset: variant, batch_sizes: int64, drop_remainder: bool",
        .attrs = ELEMENTS),
    ROW("CSVDatasetV2",
        .inputs = "filenames: string, compression_type: string, buffer_size: int64, header: bool, "
                  "field_delim: string, use_quote_delim: bool, na_value: string, select_cols: "
                  "int64, record_defaults: output_types, exclude_cols: int64",
        .attrs = "output_types: list({float, double, int32, int64, string}) >= 1; "
                 "output_shapes: list(shape) >= 1",
        .flags = LEAT_OP_STATEFUL),
    ROW("ParseExampleDatasetV2",
        .inputs = "input_dataset: variant, num_parallel_calls: int64, dense_defaults: Tdense",
        .attrs = "sparse_keys: list(string) >= 0; dense_keys: list(string) >= 0; "
                 "sparse_types: " EXAMPLE_TYPES " >= 0; Tdense: " EXAMPLE_TYPES " >= 0; "
                 "dense_shapes: list(shape) >= 0; " ELEMENTS "; " ORDER
                 "ragged_keys: list(string) >= 0 = []; "
                 "ragged_value_types: " EXAMPLE_TYPES " >= 0 = []; "
                 "ragged_split_types: list({int32, int64}) >= 0 = []"),
    {0},
};
