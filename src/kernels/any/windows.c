/* windows.c -- the attributes and inputs by which pooling ops say which windows they have. */
#include "kernels/cpu/windows.h"

#include <inttypes.h>
#include <string.h>

/* The n values v of `name`, each of which must fit into 32 bits. */
static leat_status check_list(const char *name, int64_t count, int n, const int64_t *v)
{
    LEAT_REQUIRE(count == n, INVALID_ARGUMENT, "Sliding window %s field must specify %d dimensions",
                 name, n);
    for (int i = 0; i < n; i++)
        LEAT_REQUIRE(v[i] <= INT32_MAX && v[i] >= INT32_MIN, INVALID_ARGUMENT,
                     "Attr %s has value %" PRId64 " out of range for an int32", name, v[i]);
    return NULL;
}

static leat_status read_attr(const leat_node *node, const char *name, int n, int64_t out[5])
{
    int count;
    const int64_t *v = leat_node_ints(node, name, &count);
    LEAT_TRY(check_list(name, count, n, v));
    memcpy(out, v, (size_t)n * sizeof(*v));
    return NULL;
}

/* The values of an attribute, or of input `in` where the op has no such attribute. */
static leat_status read_list(leat_kernel *k, const char *name, int in, int n, int64_t out[5])
{
    const leat_node *node = leat_kernel_node(k);
    if (leat_node_has(node, name))
        return read_attr(node, name, n, out);
    const leat_tensor *t = leat_kernel_in(k, in);
    for (int i = 0; i < n && i < t->count; i++)
        out[i] = AT(int32_t, t)[i];
    return check_list(name, t->count, n, out);
}

static leat_status check_batch(const int64_t *size, const int64_t *stride)
{
    LEAT_REQUIRE(size[0] == 1 && stride[0] == 1, UNIMPLEMENTED,
                 "Pooling is not yet supported on the batch dimension.");
    return NULL;
}

leat_status leat_windows_init(const leat_node *n, void *state)
{
    const int rank = strstr(leat_node_op(n), "3D") ? 5 : 4;
    int64_t size[5], stride[5];
    LEAT_TRY(read_attr(n, "ksize", rank, size));
    LEAT_TRY(read_attr(n, "strides", rank, stride));
    return check_batch(size, stride);
}

static leat_status place(leat_windows *w, int d, bool same)
{
    const int64_t in = w->in[d], size = w->size[d], stride = w->stride[d];
    LEAT_REQUIRE(stride > 0, INVALID_ARGUMENT, "Stride must be > 0, but got %" PRId64, stride);
    LEAT_REQUIRE(size > 0, INVALID_ARGUMENT, "Sliding window must be > 0, but got %" PRId64, size);
    LEAT_REQUIRE(in < INT64_MAX / 4, INVALID_ARGUMENT, "The image is too large: %" PRId64, in);
    w->out[d] = (same ? in + stride - 1 : in - size + stride) / stride;
    const int64_t need = (w->out[d] - 1) * stride + size - in;
    w->before[d] = same && need > 0 ? need / 2 : 0;
    LEAT_REQUIRE(w->out[d] >= 0, INVALID_ARGUMENT,
                 "Computed output size would be negative: %" PRId64 " [input_size: %" PRId64
                 ", effective_filter_size: %" PRId64 ", stride: %" PRId64 "]",
                 w->out[d], in, size, stride);
    LEAT_REQUIRE(same || in >= size, INVALID_ARGUMENT,
                 "Negative dimension size caused by subtracting %" PRId64 " from %" PRId64, size,
                 in);
    return NULL;
}

/* Windows over the channels become windows over the columns of one row: of each pixel, or, where
 * channels come first, of each image, with the pixels as channels. */
static leat_status turn_depth(leat_windows *w, bool first, int64_t size, int64_t stride)
{
    const int64_t depth = w->x.dim[first ? 1 : 3];
    LEAT_REQUIRE(w->size[1] == 1 && w->size[2] == 1, UNIMPLEMENTED,
                 "MaxPooling supports exactly one of pooling across depth or pooling across "
                 "width/height.");
    LEAT_REQUIRE(size > 0, INVALID_ARGUMENT, "depth_window must not be 0");
    LEAT_REQUIRE(depth % size == 0, UNIMPLEMENTED,
                 "Depthwise max pooling requires the depth window to evenly divide the input "
                 "depth");
    LEAT_REQUIRE(stride == size, UNIMPLEMENTED,
                 "Depthwise max pooling requires the depth window to equal the depth stride");
    const int64_t pixels = w->in[1] * w->in[2];
    w->y.dim[first ? 1 : 3] = depth / size;
    w->images = first ? w->x.dim[0] : w->x.dim[0] * pixels;
    w->channels = first ? pixels : 1;
    w->in[1] = w->out[1] = w->stride[1] = 1;
    w->in[2] = depth;
    w->out[2] = depth / size;
    w->size[2] = w->stride[2] = size;
    w->before[1] = w->before[2] = 0;
    return NULL;
}

leat_status leat_windows_read(leat_kernel *k, const leat_shape *x, int dims, bool over_depth,
                              leat_windows *w)
{
    const leat_node *n = leat_kernel_node(k);
    const char *format =
        leat_node_has(n, "data_format") ? leat_node_string(n, "data_format") : "NHWC";
    const bool first = strncmp(format, "NC", 2) == 0, vect = !strcmp(format, "NCHW_VECT_C");
    const bool same = strcmp(leat_node_string(n, "padding"), "SAME") == 0;
    const int inputs = leat_kernel_inputs(k), ch = first ? 1 : dims + 1;
    int64_t size[5], stride[5];
    *w =
        (leat_windows){.k = k, .x = *x, .y = *x, .in = {1}, .out = {1}, .size = {1}, .stride = {1}};
    LEAT_TRY(read_list(k, "ksize", inputs - 2, dims + 2, size));
    LEAT_TRY(read_list(k, "strides", inputs - 1, dims + 2, stride));
    LEAT_TRY(check_batch(size, stride));
    LEAT_REQUIRE(x->rank == dims + 2 + vect && (!vect || x->dim[4] == 4), INVALID_ARGUMENT,
                 "tensor_in must be %d-dimensional: %s", dims + 2 + vect, leat_shape_show(x).s);
    for (int i = 0; i < dims; i++) {
        const int d = 3 - dims + i, from = i + (first ? 2 : 1);
        w->in[d] = x->dim[from];
        w->size[d] = size[from];
        w->stride[d] = stride[from];
    }
    LEAT_REQUIRE(stride[ch] > 0, INVALID_ARGUMENT, "Stride must be > 0, but got %" PRId64,
                 stride[ch]);
    if (size[ch] != 1 || stride[ch] != 1) {
        LEAT_REQUIRE(dims == 2, UNIMPLEMENTED,
                     "Pooling3d only supports pooling across plane/width/height.");
        LEAT_REQUIRE(over_depth && !vect, UNIMPLEMENTED,
                     size[ch] == 1 ? "Pooling is not yet supported on the depth dimension."
                                   : "Non-spatial pooling is not yet supported.");
    }
    if (size[ch] != 1)
        return turn_depth(w, first, size[ch], stride[ch]);
    for (int i = 0; i < dims; i++) {
        const int d = 3 - dims + i;
        LEAT_TRY(place(w, d, same));
        w->y.dim[i + (first ? 2 : 1)] = w->out[d];
    }
    w->images = first ? x->dim[0] * x->dim[1] : x->dim[0];
    w->channels = vect ? 4 : first ? 1 : x->dim[ch];
    return NULL;
}

leat_status leat_windows_expect(const char *name, const leat_shape *got, const leat_shape *want)
{
    LEAT_REQUIRE(leat_shape_equal(got, want), INVALID_ARGUMENT,
                 "Expected %s shape to be %s, but got %s", name, leat_shape_show(want).s,
                 leat_shape_show(got).s);
    return NULL;
}
