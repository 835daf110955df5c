/* reader.c -- readers: they dequeue names of files from a queue and give the records of these files
 * one by one. The first versions of the ops take a reference to a string vector [container, name],
 * the V2 ones a resource handle; they are the same otherwise. */
#include "ops/infer_util.h"

static leat_status pair_shape(leat_infer *c)
{
    leat_infer_out(c, 0, leat_shape(2));
    return NULL;
}

static leat_status handles(leat_infer *c, int n, int rank)
{
    for (int i = 0; i < n; i++) {
        leat_shape s;
        LEAT_TRY(leat_infer_rank(c, i, rank, &s));
        LEAT_REQUIRE(!rank || s.dim[0] < 0 || s.dim[0] == 2, INVALID_ARGUMENT,
                     "Dimension must be 2 but is %" PRId64, s.dim[0]);
    }
    return NULL;
}

/* All inputs are handles [container, name]; outputs are scalars. */
static leat_status of_pairs_shape(leat_infer *c)
{
    LEAT_TRY(handles(c, leat_infer_inputs(c), 1));
    return leat_shape_scalar(c);
}

/* The same for V2: all inputs are scalars. */
static leat_status of_scalars_shape(leat_infer *c)
{
    LEAT_TRY(handles(c, leat_infer_inputs(c), 0));
    return leat_shape_scalar(c);
}

static leat_status up_to(leat_infer *c, int rank)
{
    leat_shape s;
    LEAT_TRY(leat_infer_rank(c, 0, rank, &s));
    LEAT_TRY(leat_infer_rank(c, 1, rank, &s));
    LEAT_TRY(leat_infer_rank(c, 2, 0, &s));
    leat_infer_out(c, 0, leat_shape(-1));
    leat_infer_out(c, 1, leat_shape(-1));
    return NULL;
}

static leat_status up_to_pairs_shape(leat_infer *c)
{
    return up_to(c, 1);
}

static leat_status up_to_scalars_shape(leat_infer *c)
{
    return up_to(c, 0);
}

static leat_status restore_pair_shape(leat_infer *c)
{
    leat_shape s;
    LEAT_TRY(handles(c, 1, 1));
    return leat_infer_rank(c, 1, 0, &s);
}

#define SHARED "container: string = ''; shared_name: string = ''"
#define FIXED                                                                                      \
    "header_bytes: int = 0; record_bytes: int; footer_bytes: int = 0; hop_bytes: int = 0; " SHARED
#define LINES "skip_header_lines: int = 0; " SHARED
#define RECORDS SHARED "; compression_type: string = ''"

/* Both forms of an op that makes a reader. */
#define READER(op, how, how2)                                                                      \
    {.name = op,                                                                                   \
     .outputs = "reader_handle: Ref(string)",                                                      \
     .attrs = how,                                                                                 \
     .shape = pair_shape,                                                                          \
     .grad = leat_grad_none,                                                                       \
     .flags = LEAT_OP_STATEFUL},                                                                   \
    {                                                                                              \
        .name = op "V2", .outputs = "reader_handle: resource", .attrs = how2,                      \
        .shape = leat_shape_scalar, .grad = leat_grad_none, .flags = LEAT_OP_STATEFUL,             \
        .save_position = "_ReaderState", .restore_position = "_ReaderSetState"                     \
    }

/* Both forms of an op that uses a reader. */
#define ON_READER(op, in, in2, out, shape1, shape2)                                                \
    {.name = op,                                                                                   \
     .inputs = "reader_handle: Ref(string)" in,                                                    \
     .outputs = out,                                                                               \
     .shape = shape1,                                                                              \
     .grad = leat_grad_none},                                                                      \
    {                                                                                              \
        .name = op "V2", .inputs = "reader_handle: resource" in2, .outputs = out, .shape = shape2, \
        .grad = leat_grad_none, .flags = LEAT_OP_STATEFUL                                          \
    }

const leat_op_def leat_ops_reader[] = {
    READER("WholeFileReader", SHARED, SHARED),
    READER("TextLineReader", LINES, LINES),
    READER("FixedLengthRecordReader", FIXED, FIXED "; encoding: string = ''"),
    READER("TFRecordReader", RECORDS, RECORDS),
    READER("IdentityReader", SHARED, SHARED),
    ON_READER("ReaderRead", ", queue_handle: Ref(string)", ", queue_handle: resource",
              "key: string, value: string", of_pairs_shape, of_scalars_shape),
    ON_READER("ReaderReadUpTo", ", queue_handle: Ref(string), num_records: int64",
              ", queue_handle: resource, num_records: int64", "keys: string, values: string",
              up_to_pairs_shape, up_to_scalars_shape),
    ON_READER("ReaderNumRecordsProduced", "", "", "records_produced: int64", of_pairs_shape,
              of_scalars_shape),
    ON_READER("ReaderNumWorkUnitsCompleted", "", "", "units_completed: int64", of_pairs_shape,
              of_scalars_shape),
    ON_READER("ReaderSerializeState", "", "", "state: string", of_pairs_shape, of_scalars_shape),
    ON_READER("ReaderRestoreState", ", state: string", ", state: string", "", restore_pair_shape,
              of_scalars_shape),
    ON_READER("ReaderReset", "", "", "", of_pairs_shape, of_scalars_shape),
    {.name = "RecordInput",
     .outputs = "records: string",
     .attrs = "file_pattern: string; file_random_seed: int = 301; "
              "file_shuffle_shift_ratio: float = 0; file_buffer_size: int = 10000; "
              "file_parallelism: int = 16; batch_size: int = 32; compression_type: string = ''",
     .shape = leat_shape_any,
     .grad = leat_grad_none,
     .flags = LEAT_OP_STATEFUL},
    {0},
};
