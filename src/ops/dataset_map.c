/* dataset_map.c -- datasets that call functions of the graph. */
#include "ops/dataset.h"

const leat_op_def leat_ops_dataset_map[] = {
    {.name = "MapDataset",
     .inputs = "input_dataset: variant, other_arguments: Targuments",
     .outputs = "handle: variant",
     .attrs = "f: func; Targuments: list(type) >= 0; " ELEMENTS
              "; use_inter_op_parallelism: bool = true; preserve_cardinality: "
              "bool = false",
     .shape = leat_data_handle_shape,
     .grad = leat_grad_missing},
    {.name = "ExperimentalMapDataset",
     .inputs = "input_dataset: variant, other_arguments: Targuments",
     .outputs = "handle: variant",
     .attrs = "f: func; Targuments: list(type) >= 0; " ELEMENTS
              "; use_inter_op_parallelism: bool = true; preserve_cardinality: "
              "bool = false",
     .shape = leat_data_handle_shape,
     .grad = leat_grad_missing},
    {.name = "ParallelMapDataset",
     .inputs = "input_dataset: variant, other_arguments: Targuments, "
               "num_parallel_calls: int32",
     .outputs = "handle: variant",
     .attrs = "f: func; Targuments: list(type) >= 0; " ELEMENTS
              "; use_inter_op_parallelism: bool = true; sloppy: bool = false; "
              "preserve_cardinality: bool = false",
     .shape = leat_data_handle_shape,
     .grad = leat_grad_missing},
    {.name = "MapAndBatchDataset",
     .inputs = "input_dataset: variant, other_arguments: Targuments, batch_size: "
               "int64, num_parallel_calls: int64, drop_remainder: bool",
     .outputs = "handle: variant",
     .attrs =
         "f: func; Targuments: list(type) >= 0; " ELEMENTS "; preserve_cardinality: bool = false",
     .shape = leat_data_handle_shape,
     .grad = leat_grad_missing},
    {.name = "ExperimentalMapAndBatchDataset",
     .inputs = "input_dataset: variant, other_arguments: Targuments, batch_size: "
               "int64, num_parallel_calls: int64, drop_remainder: bool",
     .outputs = "handle: variant",
     .attrs =
         "f: func; Targuments: list(type) >= 0; " ELEMENTS "; preserve_cardinality: bool = false",
     .shape = leat_data_handle_shape,
     .grad = leat_grad_missing},
    {.name = "FilterDataset",
     .inputs = "input_dataset: variant, other_arguments: Targuments",
     .outputs = "handle: variant",
     .attrs = "predicate: func; Targuments: list(type) >= 0; " ELEMENTS,
     .shape = leat_data_handle_shape,
     .grad = leat_grad_missing},
    {.name = "FilterByLastComponentDataset",
     .inputs = "input_dataset: variant",
     .outputs = "output: variant",
     .attrs = ELEMENTS,
     .shape = leat_data_handle_shape,
     .grad = leat_grad_missing},
    {.name = "FlatMapDataset",
     .inputs = "input_dataset: variant, other_arguments: Targuments",
     .outputs = "handle: variant",
     .attrs = "f: func; Targuments: list(type) >= 0; " ELEMENTS,
     .shape = leat_data_handle_shape,
     .grad = leat_grad_missing},
    {.name = "InterleaveDataset",
     .inputs = "input_dataset: variant, other_arguments: Targuments, "
               "cycle_length: int64, block_length: int64",
     .outputs = "handle: variant",
     .attrs = "f: func; Targuments: list(type) >= 0; " ELEMENTS,
     .shape = leat_data_handle_shape,
     .grad = leat_grad_missing},
    {.name = "ParallelInterleaveDataset",
     .inputs = "input_dataset: variant, other_arguments: Targuments, "
               "cycle_length: int64, block_length: int64, sloppy: bool, "
               "buffer_output_elements: int64, prefetch_input_elements: int64",
     .outputs = "handle: variant",
     .attrs = "f: func; Targuments: list(type) >= 0; " ELEMENTS,
     .shape = leat_data_handle_shape,
     .grad = leat_grad_missing},
    {.name = "ExperimentalParallelInterleaveDataset",
     .inputs = "input_dataset: variant, other_arguments: Targuments, "
               "cycle_length: int64, block_length: int64, sloppy: bool, "
               "buffer_output_elements: int64, prefetch_input_elements: int64",
     .outputs = "handle: variant",
     .attrs = "f: func; Targuments: list(type) >= 0; " ELEMENTS,
     .shape = leat_data_handle_shape,
     .grad = leat_grad_missing},
    {.name = "ParallelInterleaveDatasetV2",
     .inputs = "input_dataset: variant, other_arguments: Targuments, "
               "cycle_length: int64, block_length: int64, num_parallel_calls: "
               "int64",
     .outputs = "handle: variant",
     .attrs = "f: func; Targuments: list(type) >= 0; " ELEMENTS "; sloppy: bool = false",
     .shape = leat_data_handle_shape,
     .grad = leat_grad_missing},
    {.name = "ScanDataset",
     .inputs = "input_dataset: variant, initial_state: Tstate, other_arguments: "
               "Targuments",
     .outputs = "handle: variant",
     .attrs = "f: func; Tstate: list(type) >= 1; Targuments: list(type) >= 0; " ELEMENTS
              "; preserve_cardinality: bool = false",
     .shape = leat_data_handle_shape,
     .grad = leat_grad_missing},
    {.name = "ExperimentalScanDataset",
     .inputs = "input_dataset: variant, initial_state: Tstate, other_arguments: "
               "Targuments",
     .outputs = "handle: variant",
     .attrs = "f: func; Tstate: list(type) >= 1; Targuments: list(type) >= 0; " ELEMENTS
              "; preserve_cardinality: bool = false",
     .shape = leat_data_handle_shape,
     .grad = leat_grad_missing},
    {.name = "TakeWhileDataset",
     .inputs = "input_dataset: variant, other_arguments: Targuments",
     .outputs = "handle: variant",
     .attrs = "predicate: func; Targuments: list(type) >= 0; " ELEMENTS,
     .shape = leat_data_handle_shape,
     .grad = leat_grad_missing},
    {.name = "ExperimentalTakeWhileDataset",
     .inputs = "input_dataset: variant, other_arguments: Targuments",
     .outputs = "handle: variant",
     .attrs = "predicate: func; Targuments: list(type) >= 0; " ELEMENTS,
     .shape = leat_data_handle_shape,
     .grad = leat_grad_missing},
    {.name = "GroupByWindowDataset",
     .inputs = "input_dataset: variant, key_func_other_arguments: "
               "Tkey_func_other_arguments, reduce_func_other_arguments: "
               "Treduce_func_other_arguments, window_size_func_other_arguments: "
               "Twindow_size_func_other_arguments",
     .outputs = "handle: variant",
     .attrs = "key_func: func; reduce_func: func; window_size_func: func; "
              "Tkey_func_other_arguments: list(type) >= 0; "
              "Treduce_func_other_arguments: list(type) >= 0; "
              "Twindow_size_func_other_arguments: list(type) >= 0; " ELEMENTS,
     .shape = leat_data_handle_shape,
     .grad = leat_grad_missing},
    {.name = "ExperimentalGroupByWindowDataset",
     .inputs = "input_dataset: variant, key_func_other_arguments: "
               "Tkey_func_other_arguments, reduce_func_other_arguments: "
               "Treduce_func_other_arguments, window_size_func_other_arguments: "
               "Twindow_size_func_other_arguments",
     .outputs = "handle: variant",
     .attrs = "key_func: func; reduce_func: func; window_size_func: func; "
              "Tkey_func_other_arguments: list(type) >= 0; "
              "Treduce_func_other_arguments: list(type) >= 0; "
              "Twindow_size_func_other_arguments: list(type) >= 0; " ELEMENTS,
     .shape = leat_data_handle_shape,
     .grad = leat_grad_missing},
    {.name = "GroupByReducerDataset",
     .inputs = "input_dataset: variant, key_func_other_arguments: "
               "Tkey_func_other_arguments, init_func_other_arguments: "
               "Tinit_func_other_arguments, reduce_func_other_arguments: "
               "Treduce_func_other_arguments, finalize_func_other_arguments: "
               "Tfinalize_func_other_arguments",
     .outputs = "handle: variant",
     .attrs = "key_func: func; init_func: func; reduce_func: func; "
              "finalize_func: func; Tkey_func_other_arguments: list(type) >= 0; "
              "Tinit_func_other_arguments: list(type) >= 0; "
              "Treduce_func_other_arguments: list(type) >= 0; "
              "Tfinalize_func_other_arguments: list(type) >= 0; " ELEMENTS,
     .shape = leat_data_handle_shape,
     .grad = leat_grad_missing,
     .flags = LEAT_OP_STATEFUL},
    {.name = "ExperimentalGroupByReducerDataset",
     .inputs = "input_dataset: variant, key_func_other_arguments: "
               "Tkey_func_other_arguments, init_func_other_arguments: "
               "Tinit_func_other_arguments, reduce_func_other_arguments: "
               "Treduce_func_other_arguments, finalize_func_other_arguments: "
               "Tfinalize_func_other_arguments",
     .outputs = "handle: variant",
     .attrs = "key_func: func; init_func: func; reduce_func: func; "
              "finalize_func: func; Tkey_func_other_arguments: list(type) >= 0; "
              "Tinit_func_other_arguments: list(type) >= 0; "
              "Treduce_func_other_arguments: list(type) >= 0; "
              "Tfinalize_func_other_arguments: list(type) >= 0; " ELEMENTS,
     .shape = leat_data_handle_shape,
     .grad = leat_grad_missing,
     .flags = LEAT_OP_STATEFUL},
    {0},
};
