/* tensor_list_many.c -- lists from tensors and tensors from lists: TensorListFromTensor, Stack,
 * Gather, Scatter, Concat, Split, ConcatLists, PushBackBatch. */
#include <stdlib.h>

#include "core/alloc.h"
#include "core/element.h"
#include "kernels/cpu/tensor_list.h"

static leat_shape without_first(const leat_shape *s)
{
    leat_shape r = {.rank = s->rank < 0 ? -1 : s->rank - 1};
    for (int d = 0; d < r.rank; d++)
        r.dim[d] = s->dim[d + 1];
    return r;
}

static leat_status with_first(int64_t n, const leat_shape *s, leat_shape *out)
{
    LEAT_REQUIRE(s->rank < LEAT_MAX_RANK, INVALID_ARGUMENT, "A tensor has at most %d dimensions",
                 LEAT_MAX_RANK);
    *out = (leat_shape){.rank = s->rank + 1, .dim = {n}};
    memcpy(out->dim + 1, s->dim, sizeof(*s->dim) * (size_t)s->rank);
    return NULL;
}

/* ---- Tensors from lists ---- */

/* Copies t, or zeros, to n elements of y from *at on. */
static leat_status put(leat_tensor *y, int64_t *at, const leat_tensor *t, int64_t n)
{
    char *to = (char *)y->data + (size_t)*at * leat_element_size(y->dtype);
    *at += n;
    if (t)
        return leat_elements_copy(y->dtype, to, t->data, n);
    if (leat_dtype_managed(y->dtype))
        leat_elements_release(y->dtype, to, n);
    else
        memset(to, 0, (size_t)n * leat_element_size(y->dtype));
    return NULL;
}

static leat_status stack_run(leat_kernel *k)
{
    const leat_list *l = NULL;
    leat_shape s, shape;
    leat_tensor *y;
    int64_t want = leat_node_int(leat_kernel_node(k), "num_elements"), at = 0;
    LEAT_TRY(leat_list_input(k, 0, &l));
    LEAT_REQUIRE(want == -1 || want == l->n, INVALID_ARGUMENT,
                 "Operation expected a list with %lld elements but got a list with %lld elements.",
                 (long long)want, (long long)l->n);
    LEAT_TRY(leat_list_element(k, l, 1, &s));
    LEAT_REQUIRE(
        leat_shape_known(&s) || l->n > 0, INVALID_ARGUMENT,
        "Tried to stack elements of an empty list with non-fully-defined element_shape: %s",
        leat_shape_show(&s).s);
    LEAT_TRY(leat_list_known(l, &s));
    LEAT_REQUIRE(leat_shape_known(&s), INVALID_ARGUMENT,
                 "Tried to stack list which only contains uninitialized tensors and has a "
                 "non-fully-defined element_shape: %s",
                 leat_shape_show(&s).s);
    LEAT_TRY(with_first(l->n, &s, &shape));
    LEAT_TRY(leat_kernel_out(k, 0, &shape, &y));
    for (int64_t i = 0; i < l->n; i++)
        LEAT_TRY(put(y, &at, l->v[i], y->count / l->n));
    return NULL;
}

static leat_status gather_run(leat_kernel *k)
{
    const leat_list *l = NULL;
    const leat_tensor *indices = leat_kernel_in(k, 1);
    leat_shape s, shape;
    leat_tensor *y;
    int64_t at = 0;
    LEAT_TRY(leat_list_input(k, 0, &l));
    LEAT_TRY(leat_list_element(k, l, 2, &s));
    LEAT_REQUIRE(indices->count > 0 || leat_shape_known(&s), INVALID_ARGUMENT,
                 "Tried to gather 0-elements from a list with non-fully-defined shape: %s",
                 leat_shape_show(&s).s);
    for (int64_t i = 0; i < indices->count; i++) {
        int32_t index = AT(int32_t, indices)[i];
        LEAT_REQUIRE(index >= 0 && index < l->n, INVALID_ARGUMENT,
                     "Index %d out o range; list only has %lld elements.", index, (long long)l->n);
        if (l->v[index])
            LEAT_TRY(leat_list_merge(&s, &l->v[index]->shape));
    }
    LEAT_REQUIRE(leat_shape_known(&s), INVALID_ARGUMENT,
                 "Tried to gather uninitialized tensors from a list with non-fully-defined "
                 "element_shape: %s",
                 leat_shape_show(&s).s);
    LEAT_TRY(with_first(indices->count, &s, &shape));
    LEAT_TRY(leat_kernel_out(k, 0, &shape, &y));
    for (int64_t i = 0; i < indices->count; i++)
        LEAT_TRY(put(y, &at, l->v[AT(int32_t, indices)[i]], y->count / indices->count));
    return NULL;
}

/* Dimension 0 of every item, and the merged shape of the other dimensions. */
static leat_status concat_shape(const leat_list *l, leat_shape *rest, int64_t *first)
{
    bool same = *first == -1;
    int64_t seen = *first;
    for (int64_t i = 0; i < l->n; i++) {
        if (!l->v[i])
            continue;
        const leat_shape *s = &l->v[i]->shape;
        LEAT_REQUIRE(s->rank >= 1, INVALID_ARGUMENT,
                     "Concat saw a scalar shape at index %lld but requires at least vectors.",
                     (long long)i);
        leat_shape r = without_first(s);
        LEAT_TRY(leat_list_merge(rest, &r));
        LEAT_REQUIRE(*first == -1 || *first == s->dim[0], INVALID_ARGUMENT,
                     "First entry of element_shape input does not match the first dim of list "
                     "element at index: %lld Expected: %lld Actual: %lld",
                     (long long)i, (long long)*first, (long long)s->dim[0]);
        if (same && seen == -1)
            seen = s->dim[0];
        else if (same && seen != s->dim[0])
            same = false;
    }
    if (*first == -1 && same)
        *first = seen;
    LEAT_REQUIRE(leat_shape_known(rest), INVALID_ARGUMENT,
                 "Trying to concat list with only uninitialized tensors but "
                 "element_shape_except_first_dim_ is not fully defined: %s",
                 leat_shape_show(rest).s);
    return NULL;
}

/* The length of a missing item. */
static leat_status missing_length(leat_kernel *k, int64_t i, int64_t first, int64_t *out)
{
    bool told = leat_kernel_inputs(k) > 2 && i < leat_kernel_in(k, 2)->count;
    if (!told && first != -1) {
        *out = first;
        return NULL;
    }
    LEAT_REQUIRE(leat_kernel_inputs(k) > 2, INVALID_ARGUMENT,
                 "Concating lists with uninitialized tensors is not supported in this version of "
                 "TensorListConcat. Consider updating your GraphDef to run the newer version.");
    LEAT_REQUIRE(told, INVALID_ARGUMENT,
                 "List contains uninitialized tensor at index %lld but leading_dims has only %lld "
                 "elements.",
                 (long long)i, (long long)leat_kernel_in(k, 2)->count);
    *out = AT(int64_t, leat_kernel_in(k, 2))[i];
    LEAT_REQUIRE(*out >= 0, INVALID_ARGUMENT, "Invalid value in leading_dims: %lld",
                 (long long)*out);
    return NULL;
}

static leat_status concat_run(leat_kernel *k)
{
    const leat_list *l = NULL;
    leat_shape s, rest, shape;
    leat_tensor *y, *lengths;
    int64_t first = -1, total = 0, at = 0;
    LEAT_TRY(leat_list_input(k, 0, &l));
    if (leat_kernel_inputs(k) > 1)
        LEAT_TRY(leat_list_element(k, l, 1, &s));
    else
        s = leat_node_shape(leat_kernel_node(k), "element_shape");
    LEAT_REQUIRE(s.rank != 0, INVALID_ARGUMENT,
                 "Concat requires elements to be at least vectors, found scalars instead.");
    if (s.rank > 0 && leat_kernel_inputs(k) > 1)
        first = s.dim[0];
    rest = without_first(&s);
    LEAT_REQUIRE(l->n > 0 || leat_shape_known(&rest), INVALID_ARGUMENT,
                 "All except the first dimension must be fully defined when concating an empty "
                 "tensor list. element_shape: %s",
                 leat_shape_show(&rest).s);
    LEAT_TRY(concat_shape(l, &rest, &first));
    LEAT_TRY(leat_kernel_out(k, 1, &(leat_shape){.rank = 1, .dim = {l->n}}, &lengths));
    for (int64_t i = 0; i < l->n; i++) {
        int64_t n = 0;
        if (l->v[i])
            n = l->v[i]->shape.dim[0];
        else
            LEAT_TRY(missing_length(k, i, first, &n));
        AT(int64_t, lengths)[i] = n;
        LEAT_REQUIRE(leat_add_ok(total, n, &total), INVALID_ARGUMENT, "Too many elements");
    }
    LEAT_TRY(with_first(total, &rest, &shape));
    LEAT_TRY(leat_kernel_out(k, 0, &shape, &y));
    int64_t row = leat_shape_count(&rest);
    for (int64_t i = 0; i < l->n; i++)
        LEAT_TRY(put(y, &at, l->v[i], AT(int64_t, lengths)[i] * row));
    return NULL;
}

/* ---- Lists from tensors ---- */

/* Rows [from, to) of x, with shape s, in memory of their own. */
static leat_status part(const leat_tensor *x, int64_t from, const leat_shape *s, leat_tensor **out)
{
    int64_t row = x->shape.dim[0] ? x->count / x->shape.dim[0] : 0;
    LEAT_TRY(leat_tensor_new(x->dtype, *s, out));
    leat_status bad = leat_elements_copy(
        x->dtype, (*out)->data,
        (const char *)x->data + (size_t)(from * row) * leat_element_size(x->dtype), (*out)->count);
    if (bad)
        leat_tensor_unref(*out);
    return bad;
}

static leat_status rows_input(leat_kernel *k, int i, const leat_shape *element,
                              const leat_tensor **out, leat_shape *row)
{
    const leat_tensor *x = leat_kernel_in(k, i);
    LEAT_REQUIRE(x->shape.rank >= 1, INVALID_ARGUMENT,
                 "Tensor must be at least a vector, but saw shape: %s",
                 leat_shape_show(&x->shape).s);
    *row = without_first(&x->shape);
    LEAT_REQUIRE(leat_shape_compatible(element, row), INVALID_ARGUMENT,
                 "Specified a list with shape %s from a tensor with shape %s",
                 leat_shape_show(element).s, leat_shape_show(row).s);
    *out = x;
    return NULL;
}

/* Gives l if there was no error. */
static leat_status finish(leat_kernel *k, leat_list *l, leat_status s)
{
    if (s) {
        leat_list_free(l);
        return s;
    }
    return leat_list_give(k, 0, l);
}

static leat_status from_tensor_run(leat_kernel *k)
{
    leat_shape element, row;
    const leat_tensor *x = NULL;
    LEAT_TRY(leat_list_shape(k, 1, &element));
    LEAT_TRY(rows_input(k, 0, &element, &x, &row));
    leat_list *l = leat_list_new(x->dtype, &element);
    leat_status s = leat_list_resize(l, x->shape.dim[0]);
    for (int64_t i = 0; i < l->n && !s; i++)
        s = part(x, i, &row, &l->v[i]);
    return finish(k, l, s);
}

/* Sets item indices[i] to row i of x; the list grows if it may. */
static leat_status scatter(leat_list *l, const leat_tensor *x, const leat_tensor *indices,
                           const leat_shape *row, bool grows)
{
    for (int64_t i = 0; i < indices->count; i++) {
        int64_t at = AT(int32_t, indices)[i];
        LEAT_REQUIRE(at >= 0, INVALID_ARGUMENT,
                     "Indices in TensorListScatter must all be non-negative.");
        LEAT_REQUIRE(grows || at < l->n, INVALID_ARGUMENT,
                     "TensorListScatter: Trying to scatter at index %lld in list with size %lld",
                     (long long)at, (long long)l->n);
        if (at >= l->n)
            LEAT_TRY(leat_list_resize(l, at + 1));
        leat_tensor *t;
        LEAT_TRY(part(x, i, row, &t));
        leat_tensor_unref(l->v[at]);
        l->v[at] = t;
    }
    return NULL;
}

static leat_status scatter_run(leat_kernel *k)
{
    const leat_tensor *indices = leat_kernel_in(k, 1), *x = NULL;
    leat_shape element, row;
    int64_t n = -1;
    LEAT_TRY(leat_list_shape(k, 2, &element));
    if (leat_kernel_inputs(k) > 3)
        n = AT(int32_t, leat_kernel_in(k, 3))[0];
    LEAT_REQUIRE(n >= -1, INVALID_ARGUMENT,
                 "TensorListScatter expects num_elements >= -1, found: %lld", (long long)n);
    LEAT_TRY(rows_input(k, 0, &element, &x, &row));
    LEAT_REQUIRE(indices->count == x->shape.dim[0], INVALID_ARGUMENT,
                 "Invalid number of rows in input tensor. Expected: %lld Actual: %lld",
                 (long long)indices->count, (long long)x->shape.dim[0]);
    leat_list *l = leat_list_new(x->dtype, &element);
    leat_status s = leat_list_resize(l, n > 0 ? n : 0);
    if (!s)
        s = scatter(l, x, indices, &row, n == -1);
    return finish(k, l, s);
}

static leat_status scatter_into_run(leat_kernel *k)
{
    const leat_tensor *indices = leat_kernel_in(k, 2), *x = NULL;
    const leat_list *l = NULL;
    leat_list *own = NULL;
    leat_shape row;
    LEAT_TRY(leat_list_input(k, 0, &l));
    LEAT_TRY(rows_input(k, 1, &l->element, &x, &row));
    LEAT_REQUIRE(indices->shape.rank == 1, INVALID_ARGUMENT,
                 "Expected indices to be a vector, but received shape: %s",
                 leat_shape_show(&indices->shape).s);
    LEAT_REQUIRE(indices->count == x->shape.dim[0], INVALID_ARGUMENT,
                 "Expected len(indices) == tensor.shape[0], but saw: %lld vs. %lld",
                 (long long)indices->count, (long long)x->shape.dim[0]);
    LEAT_TRY(leat_list_take(k, 0, &own));
    return finish(k, own, scatter(own, x, indices, &row, true));
}

static leat_status split(const leat_tensor *x, const leat_tensor *lengths, leat_list *l)
{
    int64_t from = 0, have = x->shape.dim[0];
    for (int64_t i = 0; i < lengths->count; i++) {
        int64_t n = AT(int64_t, lengths)[i];
        LEAT_REQUIRE(n >= 0, INVALID_ARGUMENT, "Invalid value in lengths: %lld", (long long)n);
        LEAT_REQUIRE(n <= have - from, INVALID_ARGUMENT,
                     "Attempting to slice [%lld, %lld] from tensor with length %lld",
                     (long long)from, (long long)(from + n), (long long)have);
        leat_shape s = x->shape;
        s.dim[0] = n;
        leat_tensor *t;
        LEAT_TRY(part(x, from, &s, &t));
        leat_list_push(l, t);
        from += n;
    }
    LEAT_REQUIRE(from == have, INVALID_ARGUMENT,
                 "Unused values in tensor. Length of tensor: %lld Values used: %lld",
                 (long long)have, (long long)from);
    return NULL;
}

static leat_status split_run(leat_kernel *k)
{
    const leat_tensor *x = leat_kernel_in(k, 0), *lengths = leat_kernel_in(k, 2);
    leat_shape element, rest, row;
    LEAT_TRY(leat_list_shape(k, 1, &element));
    LEAT_REQUIRE(element.rank != 0, INVALID_ARGUMENT,
                 "TensorListSplit requires element_shape to be at least of rank 1, but saw: %s",
                 leat_shape_show(&element).s);
    LEAT_REQUIRE(x->shape.rank >= 1, INVALID_ARGUMENT,
                 "Tensor must be at least a vector, but saw shape: %s",
                 leat_shape_show(&x->shape).s);
    rest = without_first(&element);
    row = without_first(&x->shape);
    LEAT_REQUIRE(leat_shape_compatible(&rest, &row), INVALID_ARGUMENT,
                 "tensor shape %s is not compatible with element_shape %s",
                 leat_shape_show(&x->shape).s, leat_shape_show(&element).s);
    LEAT_REQUIRE(lengths->shape.rank == 1, INVALID_ARGUMENT,
                 "Expected lengths to be a vector, received shape: %s",
                 leat_shape_show(&lengths->shape).s);
    leat_list *l = leat_list_new(x->dtype, &element);
    return finish(k, l, split(x, lengths, l));
}

/* ---- Lists from lists ---- */

static const leat_list *list_at(const leat_tensor *t, int64_t i)
{
    const leat_variant *v = AT(leat_variant, t) + i;
    return v->type == &leat_list_type ? v->object : NULL;
}

static void copy_items(leat_list *to, const leat_list *from)
{
    for (int64_t i = 0; i < from->n; i++)
        leat_list_push(to, leat_tensor_ref(from->v[i]));
}

static void set_list(leat_tensor *y, int64_t i, leat_list *l)
{
    leat_variant *v = AT(leat_variant, y) + i;
    leat_variant_drop(*v);
    *v = (leat_variant){&leat_list_type, l};
}

static leat_status concat_lists_run(leat_kernel *k)
{
    const leat_tensor *ta = leat_kernel_in(k, 0), *tb = leat_kernel_in(k, 1);
    leat_dtype t = leat_node_type(leat_kernel_node(k), "element_dtype");
    leat_tensor *y;
    LEAT_REQUIRE(leat_shape_equal(&ta->shape, &tb->shape), INVALID_ARGUMENT,
                 "Incompatible input TensorList tensor shapes: %s vs. %s",
                 leat_shape_show(&ta->shape).s, leat_shape_show(&tb->shape).s);
    LEAT_TRY(leat_kernel_out(k, 0, &ta->shape, &y));
    for (int64_t i = 0; i < ta->count; i++) {
        const leat_list *a = list_at(ta, i), *b = list_at(tb, i);
        LEAT_REQUIRE(a && b, INVALID_ARGUMENT, "input_%c is not a TensorList at index %lld.",
                     a ? 'b' : 'a', (long long)i);
        LEAT_REQUIRE(a->dtype == t && b->dtype == t, INVALID_ARGUMENT,
                     "input_%c[%lld].dtype != element_dtype.  Saw: %s vs. %s",
                     a->dtype == t ? 'b' : 'a', (long long)i,
                     leat_dtype_name(a->dtype == t ? b->dtype : a->dtype), leat_dtype_name(t));
        LEAT_REQUIRE(leat_shape_equal(&a->element, &b->element), INVALID_ARGUMENT,
                     "input_a and input_b TensorList element shapes are not identical at index "
                     "%lld.  Saw %s vs. %s",
                     (long long)i, leat_shape_show(&a->element).s, leat_shape_show(&b->element).s);
        leat_list *l = leat_list_new(t, &a->element);
        copy_items(l, a);
        copy_items(l, b);
        set_list(y, i, l);
    }
    return NULL;
}

static leat_status push_batch_run(leat_kernel *k)
{
    const leat_tensor *lists = leat_kernel_in(k, 0), *x = leat_kernel_in(k, 1);
    leat_tensor *y;
    LEAT_REQUIRE(x->shape.rank >= 1, INVALID_ARGUMENT,
                 "Expected tensor to be at least a vector, but saw shape: %s",
                 leat_shape_show(&x->shape).s);
    LEAT_REQUIRE(lists->shape.rank == 1, INVALID_ARGUMENT,
                 "Expected input_handles to be a vector, but saw shape: %s",
                 leat_shape_show(&lists->shape).s);
    LEAT_REQUIRE(lists->count == x->shape.dim[0], INVALID_ARGUMENT,
                 "Expected tensor.shape[0] == input_handles.size, but saw %lld vs. %lld",
                 (long long)x->shape.dim[0], (long long)lists->count);
    leat_shape row = without_first(&x->shape);
    LEAT_TRY(leat_kernel_out(k, 0, &lists->shape, &y));
    for (int64_t i = 0; i < lists->count; i++) {
        const leat_list *a = list_at(lists, i);
        LEAT_REQUIRE(a, INVALID_ARGUMENT, "Input handle at index %lld is not a list.",
                     (long long)i);
        LEAT_REQUIRE(leat_shape_compatible(&a->element, &row), INVALID_ARGUMENT,
                     "Tried to append a tensor with incompatible shape to a list at index %lld. Op "
                     "element shape: %s list shape: %s",
                     (long long)i, leat_shape_show(&row).s, leat_shape_show(&a->element).s);
        LEAT_REQUIRE(a->dtype == x->dtype, INVALID_ARGUMENT,
                     "Invalid data type at index %lld; op elements %s but list elements %s",
                     (long long)i, leat_dtype_name(x->dtype), leat_dtype_name(a->dtype));
        leat_tensor *t;
        LEAT_TRY(part(x, i, &row, &t));
        leat_list *l = leat_list_new(a->dtype, &a->element);
        l->max = a->max;
        copy_items(l, a);
        leat_list_push(l, t);
        set_list(y, i, l);
    }
    return NULL;
}

const leat_kernel_def leat_cpu_tensor_list_many[] = {
    {.op = "TensorListStack", .run = stack_run},
    {.op = "TensorListGather", .run = gather_run},
    {.op = "TensorListConcat", .run = concat_run},
    {.op = "TensorListConcatV2", .run = concat_run},
    {.op = "TensorListFromTensor", .run = from_tensor_run},
    {.op = "TensorListScatter", .run = scatter_run},
    {.op = "TensorListScatterV2", .run = scatter_run},
    {.op = "TensorListScatterIntoExistingList", .run = scatter_into_run},
    {.op = "TensorListSplit", .run = split_run},
    {.op = "TensorListConcatLists", .run = concat_lists_run},
    {.op = "TensorListPushBackBatch", .run = push_batch_run},
    {0},
};
