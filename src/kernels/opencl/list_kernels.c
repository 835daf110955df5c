/* list_kernels.c -- all kernels of GPUs: those of this folder's files, a line each in list.inc, and
 * two groups of the CPU's.
 *
 * 1. Those for int32, in which graphs compute shapes, sizes and positions, run on the host's
 *    memory: TensorFlow's GPUs have them there as well.
 * 2. Those that only move elements do so by the functions of kernels/cpu/move.h, which has the
 *    device move them. */
#include <stdlib.h>
#include <string.h>

#include "core/alloc.h"
#include "kernels/levels.h"
#include "kernels/opencl/opencl.h"

#define X(file) extern const leat_kernel_def leat_opencl_##file[];
#include "kernels/opencl/list.inc"
#undef X

static const leat_kernel_def *const of_files[] = {
#define X(file) leat_opencl_##file,
#include "kernels/opencl/list.inc"
#undef X
};
enum { FILES = sizeof of_files / sizeof *of_files };

/* Ops that the host runs where this type attribute is int32. */
static const struct {
    const char *op, *attr;
} on_host[] = {
    {"Add", "T"},
    {"AddV2", "T"},
    {"Sub", "T"},
    {"Mul", "T"},
    {"Div", "T"},
    {"FloorDiv", "T"},
    {"FloorMod", "T"},
    {"Mod", "T"},
    {"TruncateDiv", "T"},
    {"TruncateMod", "T"},
    {"Maximum", "T"},
    {"Minimum", "T"},
    {"Neg", "T"},
    {"Abs", "T"},
    {"Sign", "T"},
    {"Square", "T"},
    {"Less", "T"},
    {"LessEqual", "T"},
    {"Greater", "T"},
    {"GreaterEqual", "T"},
    {"Equal", "T"},
    {"NotEqual", "T"},
    {"Sum", "T"},
    {"Prod", "T"},
    {"Max", "T"},
    {"Min", "T"},
    {"Pack", "T"},
    {"Unpack", "T"},
    {"ConcatV2", "T"},
    {"Concat", "T"},
    {"Slice", "T"},
    {"StridedSlice", "T"},
    {"Split", "T"},
    {"Fill", "T"},
    {"Tile", "T"},
    {"Range", "Tidx"},
    {"OnesLike", "T"},
    {"ZerosLike", "T"},
    {"Transpose", "T"},
    {"ReverseV2", "T"},
    {"GatherV2", "Tparams"},
    {"Gather", "Tparams"},
    {"ConcatOffset", NULL},
    {"BroadcastGradientArgs", "T"},
    {"BroadcastArgs", "T"},
    {"InvertPermutation", "T"},
    {"Pad", "T"},
    {"PadV2", "T"},
    {"SplitV", "T"},
    {"BroadcastTo", "T"},
    {"ListDiff", "T"},
    {"TensorArrayV3", "dtype"},
    {"TensorArrayWriteV3", "T"},
    {"TensorArrayReadV3", "dtype"},
    {"TensorArrayGatherV3", "dtype"},
    {"TensorArrayScatterV3", "T"},
    {"TensorArrayConcatV3", "dtype"},
    {"TensorArraySplitV3", "T"},
    {"StackV2", "elem_type"},
    {"StackPushV2", "T"},
    {"StackPopV2", "elem_type"},
};
enum { ON_HOST = sizeof on_host / sizeof *on_host };

static const char any_type[] = ""; /* the op has no type attribute */

/* Ops that only move elements, their type attribute if it is not T, and their inputs and outputs
 * that the host reads and writes. */
static const struct {
    const char *op, *host, *attr;
} moving[] = {
    {"Transpose", "perm"},
    {"Slice", "begin, size"},
    {"StridedSlice", "begin, end, strides"},
    {"StridedSliceGrad", "shape, begin, end, strides"},
    {"Split", "split_dim"},
    {"SplitV", "size_splits, split_dim"},
    {"Unpack", NULL},
    {"Concat", "concat_dim"},
    {"ConcatV2", "axis"},
    {"Pack", NULL},
    {"Pad", "paddings"},
    {"PadV2", "paddings"},
    {"MirrorPad", "paddings"},
    {"Tile", "multiples"},
    {"BroadcastTo", "shape"},
    {"ReverseV2", "axis"},
    {"Fill", "dims"},
    {"TensorArrayV3", "size, flow", "dtype"},
    {"TensorArrayGradV3", "flow_in, flow_out", any_type},
    {"TensorArrayGradWithShape", "flow_in, shape_to_prepend, flow_out", any_type},
    {"TensorArrayWriteV3", "index, flow_in, flow_out"},
    {"TensorArrayReadV3", "index, flow_in", "dtype"},
    {"TensorArrayGatherV3", "indices, flow_in", "dtype"},
    {"TensorArrayScatterV3", "indices, flow_in, flow_out"},
    {"TensorArrayConcatV3", "flow_in, lengths", "dtype"},
    {"TensorArraySplitV3", "lengths, flow_in, flow_out"},
    {"TensorArraySizeV3", "flow_in, size", any_type},
    {"TensorArrayCloseV3", NULL, any_type},
    {"StackV2", "max_size", "elem_type"},
    {"StackPushV2", NULL},
    {"StackPopV2", NULL, "elem_type"},
    {"StackCloseV2", NULL, any_type},
};
enum { MOVING = sizeof moving / sizeof *moving };
#define MOVED_TYPES (LEAT_T(FLOAT) | LEAT_T(INT64) | LEAT_T(BOOL))

static leat_kernel_def copies[2 * ON_HOST + MOVING + 1]; /* of the CPU's kernels */
static const leat_kernel_def *lists[FILES + 2];
static pthread_once_t once = PTHREAD_ONCE_INIT;

/* Narrows a kernel of the CPU to int32; false if it is not for int32. */
static bool narrow(leat_kernel_def *d, const char *attr)
{
    d->flags =
        (d->flags & ~(unsigned)(LEAT_KERNEL_VIA_FLOAT | LEAT_KERNEL_ROWS)) | LEAT_KERNEL_ON_HOST;
    for (int i = 0; attr && i < 2; i++) {
        if (d->where[i].attr && strcmp(d->where[i].attr, attr) != 0)
            continue;
        if (d->where[i].attr && !leat_types_has(d->where[i].types, LEAT_INT32))
            return false;
        d->where[i].attr = attr;
        d->where[i].types = LEAT_T(INT32);
        return true;
    }
    return attr == NULL;
}

/* Adds those kernels to n copies that GPUs have of kernel d; gives their number then. */
static int add_copies(const leat_kernel_def *d, int n)
{
    for (int j = 0; j < ON_HOST && n < 2 * ON_HOST + MOVING; j++) {
        copies[n] = *d;
        if (strcmp(d->op, on_host[j].op) == 0 && narrow(&copies[n], on_host[j].attr))
            n++;
    }
    for (int j = 0; j < MOVING && n < 2 * ON_HOST + MOVING; j++)
        if (strcmp(d->op, moving[j].op) == 0) {
            copies[n] = *d;
            if (moving[j].attr != any_type) {
                copies[n].where[0].attr = moving[j].attr ? moving[j].attr : "T";
                copies[n].where[0].types = MOVED_TYPES;
            }
            copies[n++].host = moving[j].host;
        }
    return n;
}

static void make(void)
{
    const leat_kernel_def *const *cpu = leat_cpu_kernel_lists();
    int n = 0;
    for (int i = 0; cpu[i]; i++)
        for (const leat_kernel_def *d = cpu[i]; d->op; d++)
            n = add_copies(d, n);
    copies[n] = (leat_kernel_def){0};
    for (int i = 0; i < FILES; i++)
        lists[i] = of_files[i];
    lists[FILES] = copies;
}

const leat_kernel_def *const *leat_cl_kernel_lists(void)
{
    pthread_once(&once, make);
    return lists;
}
