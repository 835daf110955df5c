/* summary_writer.c -- summary writers: event files behind resource handles. SummaryWriter gives the
 * handle, CreateSummaryFileWriter opens the file, the Write... ops add events to it. */
#include <leat/extend.h>

#define WRITER(op, in, how)                                                                        \
    {                                                                                              \
        .name = op, .inputs = "writer: resource" in, .attrs = how, .shape = leat_shape_none,       \
        .grad = leat_grad_none, .flags = LEAT_OP_STATEFUL                                          \
    }

const leat_op_def leat_ops_summary_writer[] = {
    {.name = "SummaryWriter",
     .outputs = "writer: resource",
     .attrs = "shared_name: string = ''; container: string = ''",
     .shape = leat_shape_scalar,
     .grad = leat_grad_none,
     .flags = LEAT_OP_STATEFUL},
    WRITER("CreateSummaryFileWriter",
           ", logdir: string, max_queue: int32, flush_millis: int32, filename_suffix: string",
           NULL),
    WRITER("CreateSummaryDbWriter",
           ", db_uri: string, experiment_name: string, run_name: string, user_name: string", NULL),
    WRITER("FlushSummaryWriter", "", NULL),
    WRITER("CloseSummaryWriter", "", NULL),
    WRITER("WriteSummary", ", step: int64, tensor: T, tag: string, summary_metadata: string",
           "T: type"),
    WRITER("WriteRawProtoSummary", ", step: int64, tensor: string", NULL),
    WRITER("ImportEvent", ", event: string", NULL),
    WRITER("WriteScalarSummary", ", step: int64, tag: string, value: T", "T: realnumbertype"),
    WRITER("WriteHistogramSummary", ", step: int64, tag: string, values: T",
           "T: realnumbertype = DT_FLOAT"),
    WRITER("WriteImageSummary", ", step: int64, tag: string, tensor: T, bad_color: uint8",
           "max_images: int >= 1 = 3; T: {uint8, float, half} = DT_FLOAT"),
    WRITER("WriteAudioSummary", ", step: int64, tag: string, tensor: float, sample_rate: float",
           "max_outputs: int >= 1 = 3"),
    WRITER("WriteGraphSummary", ", step: int64, tensor: string", NULL),
    {0},
};
