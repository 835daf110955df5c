/* strided_spec.c -- the meaning of StridedSlice's arguments, for example of x[1:, ..., newaxis,
 * ::-1, 3]. First the entries are assigned to the dimensions of the input, an ellipsis to all that
 * are left (if there is none, it is implied at the end); then each is limited to the size of its
 * dimension. */
#include "ops/strided_spec.h"

#include "ops/infer_util.h"

leat_strided_masks leat_strided_masks_of(const leat_node *n)
{
    return (leat_strided_masks){.begin = leat_node_int(n, "begin_mask"),
                                .end = leat_node_int(n, "end_mask"),
                                .ellipsis = leat_node_int(n, "ellipsis_mask"),
                                .new_axis = leat_node_int(n, "new_axis_mask"),
                                .shrink_axis = leat_node_int(n, "shrink_axis_mask")};
}

enum { NEW_AXIS = -1, MOST = 32 };

/* The entries by dimension. */
typedef struct layout {
    int64_t begin[LEAT_MAX_RANK], end[LEAT_MAX_RANK], stride[LEAT_MAX_RANK];
    uint32_t open_begin, open_end, shrink; /* bit d is for dimension d */
    /* The input's dimension that each dimension of the output is, or NEW_AXIS. */
    int out[LEAT_MAX_RANK + MOST];
    int n_out;
} layout;

static leat_status check(const leat_tensor *begin, const leat_tensor *end,
                         const leat_tensor *strides, int64_t ellipsis)
{
    bool wrong = strides->shape.rank != 1 || strides->count >= MOST;
    wrong |= begin && (begin->shape.rank != 1 || begin->count != strides->count);
    wrong |= end && (end->shape.rank != 1 || end->count != strides->count);
    LEAT_REQUIRE(!wrong || !begin || !end, INVALID_ARGUMENT,
                 "Expected begin, end, and strides to be 1D equal size tensors, but got shapes %s, "
                 "%s, and %s instead.",
                 leat_shape_show(&begin->shape).s, leat_shape_show(&end->shape).s,
                 leat_shape_show(&strides->shape).s);
    LEAT_REQUIRE(!wrong, INVALID_ARGUMENT,
                 "Expected begin, end, and strides to be 1D equal size tensors, but got shape %s "
                 "for strides.",
                 leat_shape_show(&strides->shape).s);
    LEAT_REQUIRE(((uint64_t)ellipsis & ((uint64_t)ellipsis - 1)) == 0, INVALID_ARGUMENT,
                 "Multiple ellipses in slice spec not allowed");
    return NULL;
}

static leat_status lay_out(int rank, const leat_tensor *begin, const leat_tensor *end,
                           const leat_tensor *strides, const leat_strided_masks *masks, layout *l)
{
    int n = (int)strides->count, dim = 0, later_axes = 0;
    bool seen = false;
    for (int i = 0; i < n; i++) {
        later_axes += seen && masks->new_axis >> i & 1;
        seen |= masks->ellipsis >> i & 1;
    }
    int64_t ellipsis = seen ? masks->ellipsis : INT64_C(1) << n;
    n += !seen;
    *l = (layout){.n_out = 0};
    for (int i = 0; i < n; i++) {
        if (ellipsis >> i & 1) {
            int to = rank - (n - i) + 1 + later_axes;
            for (to = to < rank ? to : rank; dim < to; dim++) {
                l->stride[dim] = 1;
                l->open_begin |= 1u << dim;
                l->open_end |= 1u << dim;
                l->out[l->n_out++] = dim;
            }
            continue;
        }
        if (masks->new_axis >> i & 1) {
            l->out[l->n_out++] = NEW_AXIS;
            continue;
        }
        LEAT_REQUIRE(dim < rank, INVALID_ARGUMENT,
                     "Index out of range using input dim %d; input has only %d dims", dim, rank);
        l->begin[dim] = begin ? leat_int_at(begin, i) : 0;
        l->end[dim] = end ? leat_int_at(end, i) : 0;
        l->stride[dim] = leat_int_at(strides, i);
        l->open_begin |= (uint32_t)(masks->begin >> i & 1) << dim;
        l->open_end |= (uint32_t)(masks->end >> i & 1) << dim;
        if (masks->shrink_axis >> i & 1)
            l->shrink |= 1u << dim;
        else
            l->out[l->n_out++] = dim;
        dim++;
    }
    return NULL;
}

static int64_t within(int64_t x, int64_t dim, int64_t low, int64_t high)
{
    x += x < 0 ? dim : 0;
    return x < low ? low : x > high ? high : x;
}

/* The number of elements of begin, begin + stride, ... before end. */
static int64_t steps(int64_t begin, int64_t end, int64_t stride)
{
    int64_t length = end - begin;
    if (length == 0 || (length < 0) != (stride < 0))
        return 0;
    return length / stride + (length % stride != 0);
}

/* Dimension d of the input, of the given size. */
static leat_status resolve_dim(const layout *l, int d, int64_t dim, bool known,
                               leat_strided_spec *out)
{
    int64_t stride = l->stride[d];
    bool shrink = l->shrink >> d & 1, open_begin = l->open_begin >> d & 1,
         open_end = l->open_end >> d & 1;
    LEAT_REQUIRE(stride != 0, INVALID_ARGUMENT, "strides[%d] must be non-zero", d);
    out->stride[d] = stride;
    out->begin[d] = 0;
    out->size[d] = shrink ? 1 : -1;
    if (dim < 0)
        return NULL;
    LEAT_REQUIRE(!shrink || stride > 0, INVALID_ARGUMENT,
                 "only stride 1 allowed on non-range indexing.");
    if (!known) {
        if (!shrink && open_begin && open_end)
            out->size[d] = stride > 0 ? steps(0, dim, stride) : steps(dim, 0, stride);
        return NULL;
    }
    if (shrink) {
        int64_t at = l->begin[d] < 0 ? l->begin[d] + dim : l->begin[d];
        LEAT_REQUIRE(at >= 0 && at < dim, INVALID_ARGUMENT,
                     "slice index %" PRId64 " of dimension %d out of bounds.", at, d);
        out->begin[d] = at;
        return NULL;
    }
    int64_t low = stride > 0 ? 0 : -1, high = stride > 0 ? dim : dim - 1;
    int64_t first = stride > 0 ? low : high, last = stride > 0 ? high : low;
    int64_t begin = open_begin ? first : within(l->begin[d], dim, low, high);
    int64_t end = open_end ? last : within(l->end[d], dim, low, high);
    out->begin[d] = begin;
    out->size[d] = steps(begin, end, stride);
    return NULL;
}

leat_status leat_strided_resolve(const leat_shape *in, const leat_tensor *begin,
                                 const leat_tensor *end, const leat_tensor *strides,
                                 const leat_strided_masks *masks, leat_strided_spec *out)
{
    layout l;
    LEAT_TRY(check(begin, end, strides, masks->ellipsis));
    LEAT_TRY(lay_out(in->rank, begin, end, strides, masks, &l));
    out->rank = in->rank;
    out->whole = begin && end;
    for (int d = 0; d < in->rank; d++) {
        LEAT_TRY(resolve_dim(&l, d, in->dim[d], begin && end, out));
        out->whole &= out->stride[d] == 1 && out->begin[d] == 0 && out->size[d] == in->dim[d];
    }
    LEAT_REQUIRE(l.n_out <= LEAT_MAX_RANK, INVALID_ARGUMENT, "Too many dimensions");
    out->out.rank = l.n_out;
    for (int i = 0; i < l.n_out; i++)
        out->out.dim[i] = l.out[i] == NEW_AXIS ? 1 : out->size[l.out[i]];
    return NULL;
}
