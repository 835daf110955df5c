/* ragged.c -- ragged tensors as elements of datasets. RaggedTensorToVariant makes a variant that
 * holds a vector of variants: the splits of each level, the outermost first, and the values; of a
 * batch, one such variant for each row. RaggedTensorFromVariant is the reverse: it stacks the
 * ragged tensors of an array of variants. */
#include <stdlib.h>

#include "core/alloc.h"
#include "core/element.h"
#include "kernels/cpu/cpu.h"
#include "kernels/dataset/optional.h"
#include "kernels/dataset/tensor_variant.h"

/* ---- Splits ---- */

static void set_split(leat_tensor *splits, int64_t i, int64_t x)
{
    if (splits->dtype == LEAT_INT64)
        AT(int64_t, splits)[i] = x;
    else
        AT(int32_t, splits)[i] = (int32_t)x;
}

/* A vector that begins with 0, does not descend, and ends with a number of rows that are there. */
static leat_status check_splits(const leat_tensor *splits, int level, int64_t rows)
{
    LEAT_REQUIRE(splits->shape.rank == 1 && splits->count > 0, INVALID_ARGUMENT,
                 "Ragged splits must be a vector with at least one element, but those of level %d "
                 "have shape %s",
                 level, leat_shape_show(&splits->shape).s);
    LEAT_REQUIRE(leat_index_at(splits, 0) == 0, INVALID_ARGUMENT,
                 "Ragged splits must begin with 0, but those of level %d begin with %lld", level,
                 (long long)leat_index_at(splits, 0));
    for (int64_t i = 1; i < splits->count; i++)
        LEAT_REQUIRE(leat_index_at(splits, i) >= leat_index_at(splits, i - 1), INVALID_ARGUMENT,
                     "Ragged splits must not descend, but those of level %d do at %lld", level,
                     (long long)i);
    const int64_t last = leat_index_at(splits, splits->count - 1);
    LEAT_REQUIRE(last <= rows, INVALID_ARGUMENT,
                 "Ragged splits of level %d end with %lld, but there are %lld rows", level,
                 (long long)last, (long long)rows);
    return NULL;
}

/* Checks n levels of splits and the values, which follow them. */
static leat_status check_ragged(leat_tensor *const *v, int n)
{
    LEAT_REQUIRE(v[n]->shape.rank >= 1 || n == 0, INVALID_ARGUMENT,
                 "Ragged values must have rank >= 1, but are a scalar");
    for (int i = 0; i < n; i++)
        LEAT_TRY(check_splits(v[i], i, i + 1 < n ? v[i + 1]->count - 1 : v[n]->shape.dim[0]));
    return NULL;
}

/* ---- To variants ---- */

/* A variant that holds a vector of n variants, each of which holds one of the tensors; takes
 * these. */
static leat_status list_variant(leat_tensor **v, int n, leat_variant *out)
{
    leat_tensor *list = NULL;
    leat_status s = leat_tensor_new(LEAT_VARIANT, leat_shape(n), &list);
    for (int i = 0; i < n; i++) {
        if (s)
            leat_tensor_unref(v[i]);
        else
            AT(leat_variant, list)[i] = leat_tensor_variant(v[i]);
    }
    if (!s)
        *out = leat_tensor_variant(list);
    return s;
}

/* Splits begin to end of a level, as splits of their own. */
static leat_status cut_splits(const leat_tensor *splits, int64_t begin, int64_t end,
                              leat_tensor **out)
{
    LEAT_TRY(leat_tensor_new(splits->dtype, leat_shape(end - begin + 1), out));
    for (int64_t i = begin; i <= end; i++)
        set_split(*out, i - begin, leat_index_at(splits, i) - leat_index_at(splits, begin));
    return NULL;
}

/* Row `row` of a ragged tensor with n levels, which has one level less. */
static leat_status row_variant(leat_tensor *const *v, int n, int64_t row, leat_variant *out)
{
    leat_tensor **parts = leat_new_array(leat_tensor *, n + 1);
    int64_t begin = leat_index_at(v[0], row), end = leat_index_at(v[0], row + 1);
    leat_status s = NULL;
    int made = 0;
    for (int i = 1; i < n && !s; i++) {
        s = cut_splits(v[i], begin, end, &parts[i - 1]);
        begin = leat_index_at(v[i], begin);
        end = leat_index_at(v[i], end);
        made += !s;
    }
    if (!s) {
        s = leat_tensor_rows(v[n], begin, end, &parts[n - 1]);
        made += !s;
    }
    if (!s)
        s = list_variant(parts, n, out);
    else
        while (made > 0)
            leat_tensor_unref(parts[--made]);
    free(parts);
    return s;
}

/* Row `row` of values without splits. */
static leat_status value_variant(const leat_tensor *values, int64_t row, leat_variant *out)
{
    leat_tensor *one, *x;
    LEAT_TRY(leat_tensor_rows(values, row, row + 1, &one));
    leat_status s =
        leat_tensor_reshape(one, leat_shape_make(one->shape.rank - 1, one->shape.dim + 1), &x);
    leat_tensor_unref(one);
    return s ? s : list_variant(&x, 1, out);
}

static leat_status batch_variants(leat_kernel *k, leat_tensor *const *v, int n)
{
    leat_tensor *y;
    LEAT_REQUIRE(n || v[0]->shape.rank > 0, INVALID_ARGUMENT,
                 "A scalar has no rows that could be elements");
    const leat_shape rows = leat_shape(n ? v[0]->count - 1 : v[0]->shape.dim[0]);
    LEAT_TRY(leat_kernel_out(k, 0, &rows, &y));
    for (int64_t i = 0; i < y->count; i++)
        LEAT_TRY(n ? row_variant(v, n, i, &AT(leat_variant, y)[i])
                   : value_variant(v[0], i, &AT(leat_variant, y)[i]));
    return NULL;
}

static leat_status whole_variant(leat_kernel *k, leat_tensor *const *v, int n)
{
    leat_variant all;
    leat_tensor **parts = leat_new_array(leat_tensor *, n + 1);
    for (int i = 0; i <= n; i++)
        parts[i] = leat_tensor_ref(v[i]);
    leat_status s = list_variant(parts, n + 1, &all);
    free(parts);
    return s ? s : leat_variant_give(k, 0, all);
}

static leat_status to_variant_run(leat_kernel *k)
{
    const int n = leat_kernel_inputs(k) - 1;
    leat_tensor **v = leat_new_array(leat_tensor *, n + 1);
    for (int i = 0; i <= n; i++)
        v[i] = (leat_tensor *)leat_kernel_in(k, i);
    leat_status s = check_ragged(v, n);
    if (!s)
        s = leat_node_bool(leat_kernel_node(k), "batched_input") ? batch_variants(k, v, n)
                                                                 : whole_variant(k, v, n);
    free(v);
    return s;
}

/* ---- From variants ---- */

typedef struct stack {
    leat_kernel *k;
    const leat_tensor *x; /* the array of variants */
    int levels;           /* of splits, of each ragged tensor */
    leat_tensor ***parts; /* of each: splits and values, borrowed; splits are NULL if it has none */
    leat_dtype splits, values;
} stack;

/* The tensors of element i. */
static leat_status take_apart(const stack *s, int64_t i, leat_tensor **parts)
{
    const leat_tensor *list = leat_tensor_variant_get(&AT(leat_variant, s->x)[i]);
    const int n = s->levels;
    LEAT_REQUIRE(list, INVALID_ARGUMENT,
                 "Input Variant element at index %lld doesn't hold a Tensor", (long long)i);
    LEAT_REQUIRE(list->shape.rank == 1 && list->dtype == LEAT_VARIANT, INVALID_ARGUMENT,
                 "Encoded input Variant must have rank 1, but found rank: %d", list->shape.rank);
    LEAT_REQUIRE(list->count == n + 1 || list->count == 1, INVALID_ARGUMENT,
                 "Encoded input Variant must hold either input_ragged_rank + 1 Tensors or an empty "
                 "Tensor (zero splits Tensors, 1 values Tensor), input_ragged_rank: %d, found %lld",
                 n, (long long)list->count);
    for (int j = 0; j < list->count; j++) {
        leat_tensor *t = leat_tensor_variant_get(&AT(leat_variant, list)[j]);
        const bool last = j == list->count - 1;
        LEAT_REQUIRE(t, INVALID_ARGUMENT,
                     "Encoded scalar element at index %lld doesn't have a %s Tensor at %d",
                     (long long)i, last ? "values" : "splits", j);
        LEAT_REQUIRE(t->dtype == (last ? s->values : s->splits), INVALID_ARGUMENT,
                     "Expected %s Tensor dtype: %s, found: %s", last ? "values" : "splits",
                     leat_dtype_name(last ? s->values : s->splits), leat_dtype_name(t->dtype));
        parts[last ? n : j] = t;
    }
    return check_ragged(list->count == 1 ? parts + n : parts, list->count == 1 ? 0 : n);
}

/* Rows of component i: of its first level, or of its values. */
static int64_t rows_of(const stack *s, int64_t i)
{
    leat_tensor *const *parts = s->parts[i];
    return s->levels && parts[0] ? parts[0]->count - 1 : parts[s->levels]->shape.dim[0];
}

/* The splits of the array's dimension d, all but the last of which divide rows evenly. */
static leat_status dimension_splits(const stack *s, int d)
{
    const leat_shape *x = &s->x->shape;
    leat_tensor *y;
    int64_t n = d == x->rank - 1 ? s->x->count : x->dim[d], at = 0;
    const leat_shape shape = leat_shape(n + 1);
    LEAT_TRY(leat_kernel_out(s->k, d, &shape, &y));
    for (int64_t i = 0; i <= n; i++) {
        LEAT_REQUIRE(s->splits == LEAT_INT64 || at <= INT32_MAX, INVALID_ARGUMENT,
                     "There are too many rows for splits of int32");
        set_split(y, i, at);
        if (i < n)
            at += d == x->rank - 1 ? rows_of(s, i) : x->dim[d + 1];
    }
    return NULL;
}

/* The splits of level l of all components, one after the other. */
static leat_status level_splits(const stack *s, int l)
{
    int64_t n = 1, at = 0, last = 0;
    leat_tensor *y;
    for (int64_t i = 0; i < s->x->count; i++)
        n += s->parts[i][l] ? s->parts[i][l]->count - 1 : 0;
    const leat_shape shape = leat_shape(n);
    LEAT_TRY(leat_kernel_out(s->k, s->x->shape.rank + l, &shape, &y));
    set_split(y, at++, 0);
    for (int64_t i = 0; i < s->x->count; i++) {
        const leat_tensor *t = s->parts[i][l];
        for (int64_t j = 1; t && j < t->count; j++) {
            const int64_t split = last + leat_index_at(t, j);
            LEAT_REQUIRE(s->splits == LEAT_INT64 || split <= INT32_MAX, INVALID_ARGUMENT,
                         "There are too many rows for splits of int32");
            set_split(y, at++, split);
        }
        if (t)
            last += leat_index_at(t, t->count - 1);
    }
    return NULL;
}

static leat_status stack_values(const stack *s, int output)
{
    leat_shape shape = s->parts[0][s->levels]->shape;
    leat_tensor *y;
    for (int64_t i = 1; i < s->x->count; i++) {
        const leat_shape *other = &s->parts[i][s->levels]->shape;
        bool same = other->rank == shape.rank;
        LEAT_REQUIRE(same, INVALID_ARGUMENT,
                     "Rank of values must match for all components; values shape at index 0: %s, "
                     "values shape at index %lld: %s",
                     leat_shape_show(&s->parts[0][s->levels]->shape).s, (long long)i,
                     leat_shape_show(other).s);
        for (int d = 1; d < shape.rank; d++)
            same &= other->dim[d] == shape.dim[d];
        LEAT_REQUIRE(same, INVALID_ARGUMENT,
                     "All flat_values must have compatible shapes.  Shape at index 0: %s.  Shape "
                     "at index %lld: %s.",
                     leat_shape_show(&s->parts[0][s->levels]->shape).s, (long long)i,
                     leat_shape_show(other).s);
        LEAT_REQUIRE(leat_add_ok(shape.dim[0], other->dim[0], &shape.dim[0]), INVALID_ARGUMENT,
                     "There are too many values");
    }
    LEAT_TRY(leat_kernel_out(s->k, output, &shape, &y));
    char *to = y->data;
    for (int64_t i = 0; i < s->x->count; i++) {
        const leat_tensor *t = s->parts[i][s->levels];
        LEAT_TRY(leat_elements_copy(y->dtype, to, t->data, t->count));
        to += leat_element_size(y->dtype) * (size_t)t->count;
    }
    return NULL;
}

static leat_status stack_all(const stack *s)
{
    const int rank = s->x->shape.rank;
    if (rank == 0) {
        for (int i = 0; i <= s->levels; i++)
            if (s->parts[0][i])
                leat_kernel_set(s->k, i, leat_tensor_ref(s->parts[0][i]));
        LEAT_REQUIRE(!s->levels || s->parts[0][0], INVALID_ARGUMENT,
                     "The ragged tensor has no splits; %d are wanted", s->levels);
        return NULL;
    }
    LEAT_REQUIRE(s->x->count > 0, INVALID_ARGUMENT,
                 "There is no ragged tensor in an array of shape %s, from which the shape of the "
                 "values could be seen",
                 leat_shape_show(&s->x->shape).s);
    for (int64_t i = 0; i < s->x->count; i++)
        LEAT_REQUIRE(s->parts[i][s->levels]->shape.rank > 0, INVALID_ARGUMENT,
                     "Ragged values must have rank >= 1, but are scalars");
    for (int d = 0; d < rank; d++)
        LEAT_TRY(dimension_splits(s, d));
    for (int l = 0; l < s->levels; l++)
        LEAT_TRY(level_splits(s, l));
    return stack_values(s, rank + s->levels);
}

static leat_status from_variant_run(leat_kernel *k)
{
    const leat_node *node = leat_kernel_node(k);
    stack s = {.k = k, .x = leat_kernel_in(k, 0)};
    const int64_t output = leat_node_int(node, "output_ragged_rank");
    int64_t input = leat_node_int(node, "input_ragged_rank");
    s.splits = leat_node_type(node, "Tsplits");
    s.values = leat_node_type(node, "Tvalues");
    if (input == -1)
        input = output - s.x->shape.rank;
    LEAT_REQUIRE(input >= 0, INVALID_ARGUMENT,
                 "Inferred input_ragged_rank (output_ragged_rank - encoded_variant.dims()) must be "
                 ">= 0, found output_ragged_rank: %lld, encoded_variant.dims(): %d",
                 (long long)output, s.x->shape.rank);
    LEAT_REQUIRE(output == s.x->shape.rank + input, INVALID_ARGUMENT,
                 "output_ragged_rank must be equal to input_ragged_rank + encoded_ragged.dims(); "
                 "output_ragged_rank: %lld, input_ragged_rank: %lld, encoded_variant.dims(): %d.",
                 (long long)output, (long long)input, s.x->shape.rank);
    s.levels = (int)input;
    leat_tensor **all;
    int64_t cells;
    LEAT_REQUIRE(leat_mul_ok(s.x->count, input + 1, &cells), INVALID_ARGUMENT,
                 "There are too many ragged tensors");
    LEAT_TRY(leat_try_array(cells + 1, &all));
    leat_status bad = leat_try_array(s.x->count + 1, &s.parts);
    for (int64_t i = 0; i < s.x->count && !bad; i++) {
        s.parts[i] = all + i * (input + 1);
        bad = take_apart(&s, i, s.parts[i]);
    }
    if (!bad)
        bad = stack_all(&s);
    free(s.parts);
    free(all);
    return bad;
}

const leat_kernel_def leat_data_kernels_ragged[] = {
    {.op = "RaggedTensorToVariant", .run = to_variant_run},
    {.op = "RaggedTensorFromVariant", .run = from_variant_run},
    {0},
};
