/* space.c -- ops that move blocks of the spatial dimensions to the batch or the depth, and back:
 * SpaceToBatchND, BatchToSpaceND, SpaceToBatch, BatchToSpace, SpaceToDepth, DepthToSpace. */
#include "core/element.h"
#include "kernels/cpu/shapes.h"

/* ---- Batch ---- */

typedef struct blocks {
    int n;                        /* number of spatial dimensions */
    int64_t block[LEAT_MAX_RANK]; /* sizes of a block */
    /* Paddings, or sizes of the parts that are cropped. */
    int64_t before[LEAT_MAX_RANK], after[LEAT_MAX_RANK];
    int64_t product;         /* of block */
    leat_shape space, batch; /* shapes of the tensors on both sides */
} blocks;

static leat_status read_blocks(leat_kernel *k, bool to_batch, bool nd, blocks *b)
{
    const leat_tensor *x = leat_kernel_in(k, 0), *pads = leat_kernel_in(k, nd ? 2 : 1);
    const char *what = to_batch ? "paddings" : "crops";
    if (nd) {
        const leat_tensor *block = leat_kernel_in(k, 1);
        LEAT_REQUIRE(block->shape.rank == 1, INVALID_ARGUMENT,
                     "block_shape rank should be 1 instead of %d", block->shape.rank);
        LEAT_REQUIRE(x->shape.rank >= 1 + block->count, INVALID_ARGUMENT,
                     "input rank should be >= %lld instead of %d", 1 + (long long)block->count,
                     x->shape.rank);
        b->n = (int)block->count;
        for (int i = 0; i < b->n; i++)
            b->block[i] = leat_index_at(block, i);
    } else {
        LEAT_REQUIRE(x->shape.rank == 4, INVALID_ARGUMENT, "Input rank should be: 4instead of: %d",
                     x->shape.rank);
        b->n = 2;
        b->block[0] = b->block[1] = leat_node_int(leat_kernel_node(k), "block_size");
    }
    LEAT_REQUIRE(pads->shape.rank == 2 && pads->shape.dim[0] == b->n && pads->shape.dim[1] == 2,
                 INVALID_ARGUMENT, "%s should have shape [%d, 2] instead of %s", what, b->n,
                 leat_shape_show(&pads->shape).s);
    b->product = 1;
    for (int i = 0; i < b->n; i++) {
        LEAT_REQUIRE(b->block[i] > 0 && leat_mul_ok(b->product, b->block[i], &b->product),
                     INVALID_ARGUMENT, "Product of block sizes must be positive, got %lld",
                     (long long)(b->block[i] > 0 ? -1 : b->block[i]));
        b->before[i] = leat_index_at(pads, 2 * i);
        b->after[i] = leat_index_at(pads, 2 * i + 1);
        LEAT_REQUIRE(b->before[i] >= 0 && b->after[i] >= 0, INVALID_ARGUMENT,
                     "%s must be non-negative", to_batch ? "Paddings" : "Crops");
    }
    return NULL;
}

static leat_status batch_shape(blocks *b)
{
    b->batch = b->space;
    LEAT_REQUIRE(leat_mul_ok(b->space.dim[0], b->product, &b->batch.dim[0]), INVALID_ARGUMENT,
                 "Product of block sizes is too large");
    for (int i = 0; i < b->n; i++) {
        int64_t padded;
        LEAT_REQUIRE(leat_add_ok(b->space.dim[i + 1], b->before[i], &padded) &&
                         leat_add_ok(padded, b->after[i], &padded),
                     INVALID_ARGUMENT, "Paddings are too large");
        LEAT_REQUIRE(padded % b->block[i] == 0, INVALID_ARGUMENT,
                     "padded_shape[%d]=%lld is not divisible by block_shape[%d]=%lld", i,
                     (long long)padded, i, (long long)b->block[i]);
        b->batch.dim[i + 1] = padded / b->block[i];
    }
    return NULL;
}

static leat_status space_shape(blocks *b)
{
    b->space = b->batch;
    LEAT_REQUIRE(b->batch.dim[0] % b->product == 0, INVALID_ARGUMENT,
                 "Input batch dimension (%lld) is not divisible by product of block sizes (%lld)",
                 (long long)b->batch.dim[0], (long long)b->product);
    b->space.dim[0] = b->batch.dim[0] / b->product;
    for (int i = 0; i < b->n; i++) {
        int64_t whole, cropped = 0;
        LEAT_REQUIRE(leat_mul_ok(b->batch.dim[i + 1], b->block[i], &whole), INVALID_ARGUMENT,
                     "block_shape[%d] is too large", i);
        LEAT_REQUIRE(leat_sub_ok(whole, b->before[i], &cropped) &&
                         leat_sub_ok(cropped, b->after[i], &cropped),
                     INVALID_ARGUMENT, "crops[%d] are too large: %lld, %lld", i,
                     (long long)b->before[i], (long long)b->after[i]);
        LEAT_REQUIRE(cropped >= 0, INVALID_ARGUMENT, "cropped_shape[%d]=%lld must be non-negative",
                     i, (long long)cropped);
        b->space.dim[i + 1] = cropped;
    }
    return NULL;
}

/* The row of the spatial tensor that corresponds to row `row` of the batch tensor, counted without
 * the inner dimensions; -1 if it is padding or cropped. */
static int64_t row_in_space(const blocks *b, int64_t row)
{
    int64_t at[LEAT_MAX_RANK] = {0}, flat;
    for (int i = b->n; i >= 0; i--) {
        at[i] = row % b->batch.dim[i];
        row /= b->batch.dim[i];
    }
    int64_t offset = at[0] / b->space.dim[0];
    flat = at[0] % b->space.dim[0];
    int64_t place[LEAT_MAX_RANK];
    for (int i = b->n - 1; i >= 0; i--) {
        place[i] = at[i + 1] * b->block[i] + offset % b->block[i] - b->before[i];
        offset /= b->block[i];
    }
    for (int i = 0; i < b->n; i++) {
        if (place[i] < 0 || place[i] >= b->space.dim[i + 1])
            return -1;
        flat = flat * b->space.dim[i + 1] + place[i];
    }
    return flat;
}

static leat_status move(leat_kernel *k, bool to_batch, bool nd)
{
    const leat_tensor *x = leat_kernel_in(k, 0);
    blocks b;
    LEAT_TRY(read_blocks(k, to_batch, nd, &b));
    b.space = b.batch = x->shape;
    LEAT_TRY(to_batch ? batch_shape(&b) : space_shape(&b));
    leat_tensor *y;
    LEAT_TRY(leat_kernel_out(k, 0, to_batch ? &b.batch : &b.space, &y));
    if (y->count == 0 || (x->count == 0 && !to_batch))
        return NULL;
    int64_t inner = leat_shape_product(&x->shape, b.n + 1, x->shape.rank);
    int64_t rows = leat_shape_product(&b.batch, 0, b.n + 1);
    size_t bytes = (size_t)inner * leat_element_size(x->dtype);
    leat_look look = leat_look_begin(k);
    for (int64_t r = 0; r < rows; r++) {
        if (leat_look_over(&look, 16 + (int64_t)bytes / 8))
            return leat_kernel_check(k);
        int64_t s = row_in_space(&b, r);
        char *to = (char *)y->data + (size_t)(to_batch ? r : s < 0 ? 0 : s) * bytes;
        if (s >= 0)
            memcpy(to, (const char *)x->data + (size_t)(to_batch ? s : r) * bytes, bytes);
        else if (to_batch)
            memset(to, 0, bytes);
    }
    return NULL;
}

static leat_status space_to_batch_nd_run(leat_kernel *k)
{
    return move(k, true, true);
}

static leat_status batch_to_space_nd_run(leat_kernel *k)
{
    return move(k, false, true);
}

static leat_status space_to_batch_run(leat_kernel *k)
{
    return move(k, true, false);
}

static leat_status batch_to_space_run(leat_kernel *k)
{
    return move(k, false, false);
}

/* ---- Depth ---- */

/* Images side by side: `wide` has the blocks in its rows and columns, `deep` in its channels. */
typedef struct depth_args {
    int64_t block;
    int64_t batch, channels; /* of `wide` */
    int64_t rows, columns;   /* of `deep` */
    size_t bytes;            /* of what is moved as one */
    bool first, to_depth;    /* first: the channels come before the rows */
    char *deep, *wide;
} depth_args;

static void move_pixel(const depth_args *a, size_t in_deep, size_t in_wide)
{
    if (a->to_depth)
        memcpy(a->deep + in_deep * a->bytes, a->wide + in_wide * a->bytes, a->bytes);
    else
        memcpy(a->wide + in_wide * a->bytes, a->deep + in_deep * a->bytes, a->bytes);
}

/* Rows of `wide`, counted over all images (channels last), or all channels of all images. Channels
 * last, a pixel with all its channels is moved as one. */
static void move_rows(void *arg, int64_t begin, int64_t end)
{
    const depth_args *a = arg;
    const int64_t height = a->rows * a->block, width = a->columns * a->block;
    const int64_t square = a->block * a->block;
    for (int64_t r = begin; r < end; r++) {
        const int64_t image = r / height, row = r % height;
        const int64_t n = a->first ? image / a->channels : image;
        const int64_t channel = a->first ? image % a->channels : 0;
        for (int64_t c = 0; c < width; c++) {
            const int64_t part = row % a->block * a->block + c % a->block;
            const int64_t cell = row / a->block * a->columns + c / a->block;
            const int64_t at =
                a->first
                    ? ((n * square + part) * a->channels + channel) * a->rows * a->columns + cell
                    : (n * a->rows * a->columns + cell) * square + part;
            move_pixel(a, (size_t)at, (size_t)(r * width + c));
        }
    }
}

/* The shape of the output; h and ch are the dimensions of rows and channels. */
static leat_status depth_shape(leat_shape s, int h, int ch, int64_t block, bool to_depth,
                               leat_shape *out)
{
    int64_t square;
    LEAT_REQUIRE(block >= 2 && leat_mul_ok(block, block, &square), INVALID_ARGUMENT,
                 "block_size is too large");
    *out = s;
    if (to_depth) {
        LEAT_REQUIRE(s.dim[h] % block == 0 && s.dim[h + 1] % block == 0, INVALID_ARGUMENT,
                     "Image width %lld and height %lld should be divisible by block_size: %lld",
                     (long long)s.dim[h + 1], (long long)s.dim[h], (long long)block);
        out->dim[h] /= block;
        out->dim[h + 1] /= block;
        LEAT_REQUIRE(leat_mul_ok(s.dim[ch], square, &out->dim[ch]), INVALID_ARGUMENT,
                     "%lld channels times %lld are too many", (long long)s.dim[ch],
                     (long long)square);
        return NULL;
    }
    LEAT_REQUIRE(s.dim[ch] % square == 0, INVALID_ARGUMENT,
                 "Input depth dimension %lld should be divisible by: %lld", (long long)s.dim[ch],
                 (long long)square);
    out->dim[ch] /= square;
    for (int i = h; i < h + 2; i++)
        LEAT_REQUIRE(leat_mul_ok(s.dim[i], block, &out->dim[i]), INVALID_ARGUMENT,
                     "dimension %d times block_size is too large: %lld * %lld", i,
                     (long long)s.dim[i], (long long)block);
    return NULL;
}

/* Of images (batch, height, width, channels), (batch, channels, height, width) or, for qint8,
 * (batch, channels / 4, height, width, 4), where four channels are moved as one. */
static leat_status depth(leat_kernel *k, bool to_depth)
{
    const leat_node *n = leat_kernel_node(k);
    const leat_tensor *x = leat_kernel_in(k, 0);
    const char *format = leat_node_string(n, "data_format");
    const bool vect = !strcmp(format, "NCHW_VECT_C"), first = strcmp(format, "NHWC") != 0;
    const int h = first ? 2 : 1, ch = first ? 1 : 3;
    const int64_t block = leat_node_int(n, "block_size");
    LEAT_REQUIRE(x->shape.rank == (vect ? 5 : 4), INVALID_ARGUMENT,
                 "Input rank should be: %d instead of: %d", vect ? 5 : 4, x->shape.rank);
    LEAT_REQUIRE(!vect || (x->shape.dim[4] == 4 && leat_element_size(x->dtype) == 1),
                 INVALID_ARGUMENT,
                 "NCHW_VECT_C wants four channels of 8 bits in the last dimension, got %s %s",
                 leat_dtype_name(x->dtype), leat_shape_show(&x->shape).s);
    leat_shape s;
    leat_tensor *y;
    LEAT_TRY(depth_shape(x->shape, h, ch, block, to_depth, &s));
    LEAT_TRY(leat_kernel_out(k, 0, &s, &y));
    if (y->count == 0)
        return NULL;
    const leat_shape *wide = to_depth ? &x->shape : &s, *deep = to_depth ? &s : &x->shape;
    depth_args a = {.block = block,
                    .batch = s.dim[0],
                    .channels = wide->dim[ch],
                    .rows = deep->dim[h],
                    .columns = deep->dim[h + 1],
                    .bytes = leat_element_size(x->dtype) * (size_t)(vect    ? 4
                                                                    : first ? 1
                                                                            : wide->dim[ch]),
                    .first = first,
                    .to_depth = to_depth,
                    .deep = to_depth ? y->data : x->data,
                    .wide = to_depth ? x->data : y->data};
    const int64_t rows = a.batch * (first ? a.channels : 1) * wide->dim[h];
    leat_kernel_for(k, rows, 4 * (double)wide->dim[h + 1], move_rows, &a);
    return NULL;
}

static leat_status space_to_depth_run(leat_kernel *k)
{
    return depth(k, true);
}

static leat_status depth_to_space_run(leat_kernel *k)
{
    return depth(k, false);
}

#define PLAIN (~(LEAT_T(STRING) | LEAT_T(RESOURCE) | LEAT_T(VARIANT)))
#define SPACE(name, fn)                                                                            \
    {                                                                                              \
        .op = name, .where = {{"T", PLAIN}}, .run = fn                                             \
    }

const leat_kernel_def leat_cpu_space[] = {
    SPACE("SpaceToBatchND", space_to_batch_nd_run),
    SPACE("BatchToSpaceND", batch_to_space_nd_run),
    SPACE("SpaceToBatch", space_to_batch_run),
    SPACE("BatchToSpace", batch_to_space_run),
    SPACE("SpaceToDepth", space_to_depth_run),
    SPACE("DepthToSpace", depth_to_space_run),
    {0},
};
