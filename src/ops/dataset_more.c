/* dataset_more.c -- datasets of CSV files and of parsed Examples, what only some programs use, and
 * ragged tensors as elements, which may have no splits, as in TensorFlow 2. */
#include "ops/dataset.h"
#include "ops/infer_util.h"

/* The two names of an op. */
#define BOTH(op, ...)                                                                              \
    {.name = op, .grad = leat_grad_missing, __VA_ARGS__},                                          \
    {                                                                                              \
        .name = "Experimental" op, .grad = leat_grad_missing, __VA_ARGS__                          \
    }
#define HANDLE .outputs = "handle: variant", .shape = leat_data_handle_shape
#define CSV_TYPES "output_types: list({float, double, int32, int64, string}) >= 1; "
#define EXAMPLE_TYPES "list({float, int64, string})"

static leat_status csv_shape(leat_infer *c)
{
    leat_shape unused;
    LEAT_REQUIRE(leat_infer_in(c, 0).rank <= 1, INVALID_ARGUMENT,
                 "Shape must be at most rank 1 but is rank %d", leat_infer_in(c, 0).rank);
    for (int i = 1; i < 7; i++)
        LEAT_TRY(leat_infer_rank(c, i, 0, &unused));
    LEAT_TRY(leat_infer_rank(c, 7, 1, &unused));
    return leat_data_handle_shape(c);
}

/* Splits are vectors, values have rows. */
static leat_status ragged_in(leat_infer *c)
{
    leat_shape s;
    const int n = leat_infer_inputs(c) - 1;
    for (int i = 0; i < n; i++)
        LEAT_TRY(leat_infer_rank(c, i, 1, &s));
    s = leat_infer_in(c, n);
    LEAT_REQUIRE(s.rank != 0 || n == 0, INVALID_ARGUMENT,
                 "Shape must be at least rank 1 but is rank 0");
    return NULL;
}

static leat_status to_variant_shape(leat_infer *c)
{
    LEAT_TRY(ragged_in(c));
    leat_infer_out(c, 0, leat_shape());
    if (leat_node_bool(leat_infer_node(c), "batched_input")) {
        const leat_shape s = leat_infer_in(c, 0);
        const int64_t n = s.rank > 0 ? s.dim[0] : -1;
        const bool rows = leat_infer_inputs(c) == 1; /* there are no splits */
        leat_infer_out(c, 0, leat_shape(rows ? n : n > 0 ? n - 1 : -1));
    }
    return NULL;
}

static leat_status from_variant_shape(leat_infer *c)
{
    const leat_node *n = leat_infer_node(c);
    const int64_t in = leat_node_int(n, "input_ragged_rank");
    const int64_t out = leat_node_int(n, "output_ragged_rank");
    leat_shape unused;
    if (in >= 0) {
        LEAT_REQUIRE(out >= in && out - in <= LEAT_MAX_RANK, INVALID_ARGUMENT,
                     "output_ragged_rank %lld and input_ragged_rank %lld do not fit",
                     (long long)out, (long long)in);
        LEAT_TRY(leat_infer_rank(c, 0, (int)(out - in), &unused));
    }
    for (int i = 0; i < leat_infer_outputs(c); i++)
        leat_infer_out(c, i, i < out ? leat_shape(-1) : leat_shape_unknown());
    return NULL;
}

const leat_op_def leat_ops_dataset_more[] = {
    BOTH("CSVDataset",
         .inputs = "filenames: string, compression_type: string, buffer_size: int64, header: bool, "
                   "field_delim: string, use_quote_delim: bool, na_value: string, select_cols: "
                   "int64, record_defaults: output_types",
         .outputs = "handle: variant", .attrs = CSV_TYPES "output_shapes: list(shape) >= 1",
         .shape = csv_shape, .flags = LEAT_OP_STATEFUL),
    BOTH("ParseExampleDataset",
         .inputs = "input_dataset: variant, num_parallel_calls: int64, dense_defaults: Tdense",
         .attrs = "sparse_keys: list(string) >= 0; dense_keys: list(string) >= 0; "
                  "sparse_types: " EXAMPLE_TYPES " >= 0; Tdense: " EXAMPLE_TYPES " >= 0; "
                  "dense_shapes: list(shape) >= 0; " ELEMENTS "; sloppy: bool = false",
         HANDLE),
    BOTH("AutoShardDataset", .inputs = "input_dataset: variant, num_workers: int64, index: int64",
         .attrs = ELEMENTS, HANDLE),
    BOTH("UniqueDataset", .inputs = "input_dataset: variant", .attrs = ELEMENTS, HANDLE),
    BOTH("RebatchDataset", .inputs = "input_dataset: variant, num_replicas: int64",
         .attrs = ELEMENTS "; use_fallback: bool = true", HANDLE),
    {.name = "ChooseFastestBranchDataset",
     .inputs = "input_dataset: variant, ratio_numerator: int64, ratio_denominator: int64, "
               "other_arguments: Targuments",
     .attrs = "Targuments: list(type) >= 0; num_elements_per_branch: int >= 1; "
              "branches: list(func) >= 1; other_arguments_lengths: list(int) >= 1; " ELEMENTS,
     .grad = leat_grad_missing,
     HANDLE},
    BOTH("ChooseFastestDataset", .inputs = "input_datasets: N * variant",
         .attrs = "N: int >= 2; num_experiments: int; " ELEMENTS, HANDLE),
    BOTH("SetStatsAggregatorDataset",
         .inputs = "input_dataset: variant, stats_aggregator: resource, tag: string, "
                   "counter_prefix: string",
         .attrs = ELEMENTS, HANDLE, .flags = LEAT_OP_STATEFUL),
    BOTH("ThreadPoolHandle", .outputs = "handle: resource",
         .attrs = "num_threads: int; max_intra_op_parallelism: int = 1; display_name: string; "
                  "container: string = ''; shared_name: string = ''",
         .shape = leat_shape_scalar, .flags = LEAT_OP_STATEFUL),
    BOTH("ThreadPoolDataset", .inputs = "input_dataset: variant, thread_pool: resource",
         .attrs = ELEMENTS, HANDLE, .flags = LEAT_OP_STATEFUL),
    BOTH("StatsAggregatorHandle", .outputs = "handle: resource",
         .attrs = "container: string = ''; shared_name: string = ''", .shape = leat_shape_scalar,
         .flags = LEAT_OP_STATEFUL),
    {.name = "StatsAggregatorHandleV2",
     .outputs = "handle: resource",
     .attrs = "container: string = ''; shared_name: string = ''",
     .shape = leat_shape_scalar,
     .grad = leat_grad_missing,
     .flags = LEAT_OP_STATEFUL},
    BOTH("StatsAggregatorSummary", .inputs = "iterator: resource", .outputs = "summary: string",
         .shape = leat_shape_scalar, .flags = LEAT_OP_STATEFUL),
    {.name = "StatsAggregatorSetSummaryWriter",
     .inputs = "stats_aggregator: resource, summary: resource",
     .shape = leat_shape_none,
     .grad = leat_grad_missing,
     .flags = LEAT_OP_STATEFUL},
    BOTH("DatasetToTFRecord",
         .inputs = "input_dataset: variant, filename: string, compression_type: string",
         .shape = leat_shape_none, .flags = LEAT_OP_STATEFUL),
    {.name = "RaggedTensorToVariant",
     .inputs = "rt_nested_splits: RAGGED_RANK * Tsplits, rt_dense_values: Tvalues",
     .outputs = "encoded_ragged: variant",
     .attrs = "RAGGED_RANK: int >= 0; Tvalues: type; Tsplits: {int32, int64}; "
              "batched_input: bool",
     .shape = to_variant_shape,
     .grad = leat_grad_missing},
    {.name = "RaggedTensorFromVariant",
     .inputs = "encoded_ragged: variant",
     .outputs = "output_nested_splits: output_ragged_rank * Tsplits, output_dense_values: Tvalues",
     .attrs = "input_ragged_rank: int >= -1; output_ragged_rank: int >= 0; Tvalues: type; "
              "Tsplits: {int32, int64}",
     .shape = from_variant_shape,
     .grad = leat_grad_missing},
    {0},
};
