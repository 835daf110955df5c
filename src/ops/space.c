/* space.c -- ops that move blocks of the spatial dimensions to the batch or the depth, and back:
 * SpaceToBatchND, BatchToSpaceND, SpaceToBatch, BatchToSpace, SpaceToDepth, DepthToSpace. */
#include <leat/ops.h>

#include "ops/infer_util.h"

/* d / by, which must have no remainder; -1 stays -1. */
static leat_status divide(int64_t d, int64_t by, int64_t *out)
{
    LEAT_REQUIRE(d < 0 || d % by == 0, INVALID_ARGUMENT,
                 "Dimension size must be evenly divisible by %lld but is %lld", (long long)by,
                 (long long)d);
    *out = d < 0 ? -1 : d / by;
    return NULL;
}

/* n spatial dimensions; block and pads are NULL if they are not known. */
static leat_status batch_shape(leat_infer *c, int n, const int64_t *block, const leat_tensor *pads,
                               bool to_batch)
{
    leat_shape s;
    LEAT_TRY(leat_infer_rank_at_least(c, 0, n + 1, &s));
    if (s.rank < 0 && leat_node_has(leat_infer_node(c), "block_size"))
        s = leat_shape_unknown_dims(4);
    if (s.rank < 0)
        return NULL;
    for (int i = 0; i < n; i++) {
        LEAT_REQUIRE(!block || block[i] >= 1, INVALID_ARGUMENT, "block_shape must be positive");
        if (!block)
            s.dim[0] = -1;
        else if (to_batch)
            LEAT_TRY(leat_dim_mul(s.dim[0], block[i], &s.dim[0]));
        else
            LEAT_TRY(divide(s.dim[0], block[i], &s.dim[0]));
        int64_t before = pads ? leat_int_at(pads, 2 * i) : 0;
        int64_t after = pads ? leat_int_at(pads, 2 * i + 1) : 0, *d = &s.dim[i + 1];
        LEAT_REQUIRE(before >= 0 && after >= 0, INVALID_ARGUMENT, "%s cannot be negative",
                     to_batch ? "paddings" : "crops");
        if (!block || !pads) {
            *d = -1;
        } else if (to_batch) {
            LEAT_TRY(leat_dim_add(*d, before, d));
            LEAT_TRY(leat_dim_add(*d, after, d));
            LEAT_TRY(divide(*d, block[i], d));
        } else {
            LEAT_TRY(leat_dim_mul(*d, block[i], d));
            LEAT_TRY(leat_dim_sub(*d, before, d));
            LEAT_TRY(leat_dim_sub(*d, after, d));
        }
    }
    leat_infer_out(c, 0, s);
    return NULL;
}

static leat_status nd_shape(leat_infer *c, bool to_batch)
{
    leat_shape block = leat_infer_in(c, 1), pads = leat_infer_in(c, 2);
    LEAT_REQUIRE(block.rank < 0 || block.rank == 1, INVALID_ARGUMENT,
                 "block_shape must have rank 1.");
    if (block.rank < 0 || block.dim[0] < 0) { /* TensorFlow refuses such a node */
        leat_infer_out(c, 0, leat_shape_unknown());
        return NULL;
    }
    LEAT_REQUIRE(block.dim[0] < LEAT_MAX_RANK, INVALID_ARGUMENT, "block_shape is too long");
    leat_shape want = leat_shape(block.dim[0], 2);
    LEAT_TRY(leat_shape_merge(&pads, &want, &want));
    const leat_tensor *t = leat_infer_value(c, 1);
    int64_t sizes[LEAT_MAX_RANK];
    for (int i = 0; t && i < block.dim[0]; i++)
        sizes[i] = leat_int_at(t, i);
    return batch_shape(c, (int)block.dim[0], t ? sizes : NULL, leat_infer_value(c, 2), to_batch);
}

static leat_status to_batch_nd_shape(leat_infer *c)
{
    return nd_shape(c, true);
}

static leat_status to_space_nd_shape(leat_infer *c)
{
    return nd_shape(c, false);
}

static leat_status plain_shape(leat_infer *c, bool to_batch)
{
    leat_shape s, pads = leat_infer_in(c, 1), want = leat_shape(2, 2);
    LEAT_TRY(leat_infer_rank(c, 0, 4, &s));
    LEAT_TRY(leat_shape_merge(&pads, &want, &want));
    int64_t b = leat_node_int(leat_infer_node(c), "block_size");
    return batch_shape(c, 2, (int64_t[]){b, b}, leat_infer_value(c, 1), to_batch);
}

static leat_status to_batch_shape(leat_infer *c)
{
    return plain_shape(c, true);
}

static leat_status to_space_shape(leat_infer *c)
{
    return plain_shape(c, false);
}

static leat_status depth_shape(leat_infer *c, bool to_depth)
{
    const leat_node *n = leat_infer_node(c);
    const char *format = leat_node_string(n, "data_format");
    bool vect = strcmp(format, "NCHW_VECT_C") == 0, first = strcmp(format, "NHWC") != 0;
    int64_t b = leat_node_int(n, "block_size"), square;
    leat_shape s;
    LEAT_TRY(leat_infer_rank(c, 0, vect ? 5 : 4, &s));
    LEAT_TRY(leat_dim_mul(b, b, &square));
    int h = first ? 2 : 1, ch = first ? 1 : 3;
    for (int d = h; d < h + 2; d++)
        LEAT_TRY((to_depth ? divide : leat_dim_mul)(s.dim[d], b, &s.dim[d]));
    LEAT_TRY((to_depth ? leat_dim_mul : divide)(s.dim[ch], square, &s.dim[ch]));
    leat_infer_out(c, 0, s);
    return NULL;
}

static leat_status to_depth_shape(leat_infer *c)
{
    return depth_shape(c, true);
}

static leat_status from_depth_shape(leat_infer *c)
{
    return depth_shape(c, false);
}

/* The gradient of each of these ops is its inverse. */
static leat_status undo(leat_grad *g, const char *op)
{
    const leat_node *n = leat_grad_node(g);
    leat_out dy = leat_grad_out(g, 0);
    if (leat_node_has(n, "data_format"))
        return leat_grad_in(
            g, 0,
            LEAT_OP1(op, dy, leat_attr_int("block_size", leat_node_int(n, "block_size")),
                     leat_attr_string("data_format", leat_node_string(n, "data_format"))));
    if (leat_node_has(n, "block_size"))
        return leat_grad_in(g, 0,
                            LEAT_OP2(op, dy, leat_grad_input(g, 1),
                                     leat_attr_int("block_size", leat_node_int(n, "block_size"))));
    return leat_grad_in(g, 0, LEAT_OP3(op, dy, leat_grad_input(g, 1), leat_grad_input(g, 2)));
}

#define UNDO(name, op)                                                                             \
    static leat_status name(leat_grad *g)                                                          \
    {                                                                                              \
        return undo(g, op);                                                                        \
    }
UNDO(to_batch_nd_grad, "BatchToSpaceND")
UNDO(to_space_nd_grad, "SpaceToBatchND")
UNDO(to_batch_grad, "BatchToSpace")
UNDO(to_space_grad, "SpaceToBatch")
UNDO(to_depth_grad, "DepthToSpace")
UNDO(from_depth_grad, "SpaceToDepth")

#define BATCH(name_, inputs_, attrs_, shape_, grad_)                                               \
    {                                                                                              \
        .name = name_, .inputs = inputs_, .outputs = "output: T", .attrs = "T: type; " attrs_,     \
        .shape = shape_, .grad = grad_                                                             \
    }
#define DEPTH(name_, shape_, grad_)                                                                \
    BATCH(name_, "input: T",                                                                       \
          "block_size: int >= 2; data_format: {'NHWC', 'NCHW', 'NCHW_VECT_C'} = 'NHWC'", shape_,   \
          grad_)

const leat_op_def leat_ops_space[] = {
    BATCH("SpaceToBatchND", "input: T, block_shape: Tblock_shape, paddings: Tpaddings",
          "Tblock_shape: {int32, int64} = DT_INT32; Tpaddings: {int32, int64} = DT_INT32",
          to_batch_nd_shape, to_batch_nd_grad),
    BATCH("BatchToSpaceND", "input: T, block_shape: Tblock_shape, crops: Tcrops",
          "Tblock_shape: {int32, int64} = DT_INT32; Tcrops: {int32, int64} = DT_INT32",
          to_space_nd_shape, to_space_nd_grad),
    BATCH("SpaceToBatch", "input: T, paddings: Tpaddings",
          "Tpaddings: {int32, int64} = DT_INT32; block_size: int >= 2", to_batch_shape,
          to_batch_grad),
    BATCH("BatchToSpace", "input: T, crops: Tidx",
          "block_size: int >= 2; Tidx: {int32, int64} = DT_INT32", to_space_shape, to_space_grad),
    DEPTH("SpaceToDepth", to_depth_shape, to_depth_grad),
    DEPTH("DepthToSpace", from_depth_shape, from_depth_grad),
    {0},
};
