/* sparse_move.c -- ops that reorder, reshape, concatenate, split and slice sparse tensors:
 * SparseReorder, SparseReshape, SparseConcat, SparseSplit, SparseSlice, SparseFillEmptyRows and the
 * gradient of the last. */
#include <stdlib.h>

#include "core/alloc.h"
#include "core/element.h"
#include "kernels/cpu/shapes.h"
#include "kernels/cpu/sparse.h"
#include "kernels/cpu/update.h"

static leat_status copy_value(leat_tensor *y, int64_t to, const leat_tensor *x, int64_t from)
{
    size_t size = leat_element_size(y->dtype);
    return leat_elements_copy(y->dtype, (char *)y->data + (size_t)to * size,
                              (const char *)x->data + (size_t)from * size, 1);
}

static leat_status matrix_out(leat_kernel *k, int i, int64_t rows, int64_t columns,
                              leat_tensor **out)
{
    return leat_kernel_out(k, i, &(leat_shape){.rank = 2, .dim = {rows, columns}}, out);
}

static leat_status vector_out(leat_kernel *k, int i, int64_t n, leat_tensor **out)
{
    return leat_kernel_out(k, i, &(leat_shape){.rank = 1, .dim = {n}}, out);
}

static leat_status shape_out(leat_kernel *k, int i, const leat_shape *s)
{
    leat_tensor *y;
    LEAT_TRY(vector_out(k, i, s->rank, &y));
    memcpy(y->data, s->dim, sizeof(*s->dim) * (size_t)s->rank);
    return NULL;
}

/* ---- SparseReorder, SparseConcat ---- */

typedef struct entry { /* a value and its index */
    const int64_t *place;
    const leat_tensor *values;
    int64_t i;   /* position in values */
    int64_t add; /* added to dimension `dim` of the index */
    int dim, rank;
} entry;

static int64_t place_at(const entry *e, int d)
{
    return e->place[d] + (d == e->dim ? e->add : 0);
}

static int compare(const void *pa, const void *pb)
{
    const entry *a = pa, *b = pb;
    for (int d = 0; d < a->rank; d++) {
        int64_t x = place_at(a, d), y = place_at(b, d);
        if (x != y)
            return x < y ? -1 : 1;
    }
    return (a->i > b->i) - (a->i < b->i);
}

static leat_status give(leat_kernel *k, entry *e, int64_t n, int rank)
{
    leat_tensor *indices, *values;
    LEAT_TRY(matrix_out(k, 0, n, rank, &indices));
    LEAT_TRY(vector_out(k, 1, n, &values));
    if (n)
        qsort(e, (size_t)n, sizeof(*e), compare);
    for (int64_t i = 0; i < n; i++) {
        for (int d = 0; d < rank; d++)
            AT(int64_t, indices)[i * rank + d] = place_at(&e[i], d);
        LEAT_TRY(copy_value(values, i, e[i].values, e[i].i));
    }
    return NULL;
}

static void add_entries(entry *e, const leat_sparse *s, int dim, int64_t add)
{
    for (int64_t i = 0; i < s->n; i++)
        e[i] = (entry){leat_sparse_at(s, i), s->values, i, add, dim, s->rank};
}

static leat_status reorder_run(leat_kernel *k)
{
    leat_sparse s;
    LEAT_TRY(leat_sparse_input(k, 0, &s));
    entry *e;
    LEAT_TRY(leat_try_array(s.n, &e));
    add_entries(e, &s, -1, 0);
    leat_status bad = give(k, e, s.n, s.rank);
    free(e);
    return bad;
}

/* Tensor i of n: its indices, values and shape are n inputs apart. */
static leat_status sparse_of(leat_kernel *k, int i, int n, leat_sparse *out)
{
    const leat_tensor *indices = leat_kernel_in(k, i), *values = leat_kernel_in(k, n + i),
                      *shape = leat_kernel_in(k, 2 * n + i);
    LEAT_REQUIRE(indices->shape.rank == 2, INVALID_ARGUMENT,
                 "Input indices should be a matrix but received shape %s at position %d",
                 leat_shape_show(&indices->shape).s, i);
    LEAT_REQUIRE(values->shape.rank == 1, INVALID_ARGUMENT,
                 "Input values should be a vector but received shape %s at position %d",
                 leat_shape_show(&values->shape).s, i);
    LEAT_REQUIRE(shape->shape.rank == 1, INVALID_ARGUMENT,
                 "Input shapes should be a vector but received shape %s at position %d",
                 leat_shape_show(&shape->shape).s, i);
    LEAT_REQUIRE(indices->shape.dim[0] == values->count && indices->shape.dim[1] == shape->count,
                 INVALID_ARGUMENT,
                 "Indices, values and shape of the sparse tensor at position %d do not fit", i);
    *out = (leat_sparse){.indices = indices, .values = values, .n = values->count};
    LEAT_TRY(leat_shape_from_tensor(shape, &out->shape));
    out->rank = out->shape.rank;
    return NULL;
}

static leat_status check_concat(const leat_shape *all, const leat_shape *s, int dim, int i)
{
    LEAT_REQUIRE(s->rank == all->rank, INVALID_ARGUMENT,
                 "Ranks of all input tensors must match: expected %d but got %d at position %d",
                 all->rank, s->rank, i);
    for (int d = 0; d < all->rank; d++)
        LEAT_REQUIRE(d == dim || s->dim[d] == all->dim[d], INVALID_ARGUMENT,
                     "Input shapes must match: expected %lld for dimension %d but got %lld at "
                     "position %d",
                     (long long)all->dim[d], d, (long long)s->dim[d], i);
    return NULL;
}

static leat_status concat(leat_kernel *k, entry **e, int64_t *n_out, leat_shape *all)
{
    int n = leat_kernel_inputs(k) / 3;
    int64_t asked = leat_node_int(leat_kernel_node(k), "concat_dim"), total = 0, add = 0;
    for (int i = 0; i < n; i++)
        total += leat_kernel_in(k, n + i)->count;
    LEAT_TRY(leat_try_array(total, e));
    for (int i = 0; i < n; i++) {
        leat_sparse s;
        LEAT_TRY(sparse_of(k, i, n, &s));
        if (i == 0)
            *all = s.shape;
        LEAT_REQUIRE(asked >= -all->rank && asked < all->rank, INVALID_ARGUMENT,
                     "Concat dimension must be in range [%d, %d), got %lld", -all->rank, all->rank,
                     (long long)asked);
        int dim = (int)(asked < 0 ? asked + all->rank : asked);
        LEAT_TRY(check_concat(all, &s.shape, dim, i));
        add_entries(*e + *n_out, &s, dim, add);
        *n_out += s.n;
        LEAT_REQUIRE(leat_add_ok(add, s.shape.dim[dim], &add), INVALID_ARGUMENT,
                     "Concatenated sparse tensors are too large");
        if (i == n - 1)
            all->dim[dim] = add;
    }
    return NULL;
}

static leat_status concat_run(leat_kernel *k)
{
    entry *e = NULL;
    int64_t n = 0;
    leat_shape all = {0};
    leat_status s = concat(k, &e, &n, &all);
    if (!s)
        s = give(k, e, n, all.rank);
    if (!s)
        s = shape_out(k, 2, &all);
    free(e);
    return s;
}

/* ---- SparseReshape ---- */

static leat_status target_shape(const leat_tensor *t, const leat_shape *from, leat_shape *out)
{
    int missing = -1;
    int64_t product = 1, size = leat_shape_count(from);
    LEAT_REQUIRE(t->count <= LEAT_MAX_RANK, INVALID_ARGUMENT, "Target shape has too many dims");
    *out = (leat_shape){.rank = (int)t->count};
    for (int d = 0; d < out->rank; d++) {
        int64_t v = out->dim[d] = AT(int64_t, t)[d];
        LEAT_REQUIRE(v >= -1, INVALID_ARGUMENT, "size %d must be non-negative, not %lld", d,
                     (long long)v);
        LEAT_REQUIRE(v >= 0 || missing < 0, INVALID_ARGUMENT,
                     "only one output dimension may be -1, not both %d and %d", missing, d);
        if (v < 0)
            missing = d;
        else
            LEAT_REQUIRE(leat_mul_ok(product, v, &product), INVALID_ARGUMENT,
                         "Target shape has too many elements");
    }
    if (missing >= 0) {
        LEAT_REQUIRE(product > 0, INVALID_ARGUMENT,
                     "reshape cannot infer the missing input size for an empty tensor unless all "
                     "specified input sizes are non-zero");
        LEAT_REQUIRE(size % product == 0, INVALID_ARGUMENT,
                     "Input to reshape is a SparseTensor with %lld dense values, but the requested "
                     "shape requires a multiple of %lld. input_shape=%s output_shape=%s",
                     (long long)size, (long long)product, leat_shape_show(from).s,
                     leat_ints_show(t, ",").s);
        out->dim[missing] = size / product;
        product = size;
    }
    LEAT_REQUIRE(product == size, INVALID_ARGUMENT,
                 "Input to reshape is a tensor with %lld dense values, but the requested shape has "
                 "%lld. input_shape=%s output_shape=%s",
                 (long long)size, (long long)product, leat_shape_show(from).s,
                 leat_shape_show(out).s);
    return NULL;
}

static leat_status reshape_run(leat_kernel *k)
{
    const leat_tensor *indices = leat_kernel_in(k, 0), *old = leat_kernel_in(k, 1),
                      *new = leat_kernel_in(k, 2);
    leat_shape from, to;
    leat_tensor *y;
    LEAT_REQUIRE(indices->shape.rank == 2, INVALID_ARGUMENT,
                 "Input indices should be a matrix but received shape %s",
                 leat_shape_show(&indices->shape).s);
    LEAT_REQUIRE(old->shape.rank == 1, INVALID_ARGUMENT,
                 "Input shape should be a vector but received shape %s",
                 leat_shape_show(&old->shape).s);
    LEAT_REQUIRE(new->shape.rank == 1, INVALID_ARGUMENT,
                 "Target shape should be a vector but received shape %s",
                 leat_shape_show(&new->shape).s);
    LEAT_REQUIRE(indices->shape.dim[1] == old->count, INVALID_ARGUMENT,
                 "Input indices have %lld columns for a shape of %lld dimensions",
                 (long long)indices->shape.dim[1], (long long)old->count);
    LEAT_TRY(leat_shape_from_tensor(old, &from));
    LEAT_TRY(target_shape(new, &from, &to));
    int64_t n = indices->shape.dim[0];
    LEAT_TRY(matrix_out(k, 0, n, to.rank, &y));
    for (int64_t i = 0; i < n; i++) {
        const int64_t *place = AT(int64_t, indices) + i * from.rank;
        uint64_t flat = 0; /* wraps for indices that are out of bounds */
        for (int d = 0; d < from.rank; d++)
            flat = flat * (uint64_t)from.dim[d] + (uint64_t)place[d];
        int64_t left = (int64_t)flat, *at = AT(int64_t, y) + i * to.rank;
        for (int d = to.rank - 1; d >= 0; d--) {
            at[d] = to.dim[d] ? left % to.dim[d] : 0;
            left = to.dim[d] ? left / to.dim[d] : 0;
        }
    }
    return shape_out(k, 1, &to);
}

/* ---- SparseSlice, SparseSplit ---- */

/* Writes the part in [start, start + size) to outputs at[0], at[1], at[2]. */
static leat_status slice(leat_kernel *k, const leat_sparse *s, const int64_t *start,
                         const leat_shape *size, const int at[3])
{
    leat_tensor *indices, *values;
    int64_t n = 0;
    for (int fill = 0; fill < 2; fill++) {
        if (fill) {
            LEAT_TRY(matrix_out(k, at[0], n, s->rank, &indices));
            LEAT_TRY(vector_out(k, at[1], n, &values));
            n = 0;
        }
        for (int64_t i = 0; i < s->n; i++) {
            const int64_t *place = leat_sparse_at(s, i);
            bool in = true;
            for (int d = 0; d < s->rank; d++)
                in = in && place[d] >= start[d] && place[d] - start[d] < size->dim[d];
            for (int d = 0; fill && in && d < s->rank; d++)
                AT(int64_t, indices)[n * s->rank + d] = place[d] - start[d];
            if (fill && in)
                LEAT_TRY(copy_value(values, n, s->values, i));
            n += in;
        }
    }
    return shape_out(k, at[2], size);
}

static leat_status slice_run(leat_kernel *k)
{
    const leat_tensor *start = leat_kernel_in(k, 3), *size = leat_kernel_in(k, 4);
    leat_sparse s;
    LEAT_TRY(leat_sparse_input(k, 0, &s));
    LEAT_TRY(leat_sparse_check(&s, false));
    LEAT_REQUIRE(start->shape.rank == 1, INVALID_ARGUMENT,
                 "Input start should be a vector but received shape %s",
                 leat_shape_show(&start->shape).s);
    LEAT_REQUIRE(size->shape.rank == 1, INVALID_ARGUMENT,
                 "Input size should be a vector but received shape %s",
                 leat_shape_show(&size->shape).s);
    LEAT_REQUIRE(start->count == s.rank, INVALID_ARGUMENT,
                 "Expected start to be a vector of length %d but got length %lld", s.rank,
                 (long long)start->count);
    LEAT_REQUIRE(size->count == s.rank, INVALID_ARGUMENT,
                 "Expected size to be a vector of length %d but got length %lld", s.rank,
                 (long long)size->count);
    leat_shape out = {.rank = s.rank};
    for (int d = 0; d < s.rank; d++) {
        int64_t from = AT(int64_t, start)[d], n = AT(int64_t, size)[d];
        LEAT_REQUIRE(from >= 0 && n >= 0, INVALID_ARGUMENT, "start and size must not be negative");
        int64_t left = s.shape.dim[d] - from;
        out.dim[d] = from >= s.shape.dim[d] ? 0 : n < left ? n : left;
    }
    return slice(k, &s, AT(int64_t, start), &out, (const int[3]){0, 1, 2});
}

static leat_status split_run(leat_kernel *k)
{
    const leat_tensor *axis = leat_kernel_in(k, 0);
    int64_t n = leat_node_int(leat_kernel_node(k), "num_split");
    leat_sparse s;
    LEAT_TRY(leat_sparse_input(k, 1, &s));
    LEAT_TRY(leat_sparse_check(&s, false));
    LEAT_REQUIRE(axis->count == 1, INVALID_ARGUMENT, "split_dim must be a scalar");
    int64_t dim = AT(int64_t, axis)[0];
    LEAT_REQUIRE(dim >= 0 && dim < s.rank, INVALID_ARGUMENT,
                 "Input split_dim should be between 0 and rank (%d), got %lld", s.rank,
                 (long long)dim);
    LEAT_REQUIRE(n >= 1 && n <= s.shape.dim[dim], INVALID_ARGUMENT,
                 "Input num_split should be between 1 and the splitting dimension size (%lld), got "
                 "%lld",
                 (long long)s.shape.dim[dim], (long long)n);
    int64_t start[LEAT_MAX_RANK] = {0}, each = s.shape.dim[dim] / n, more = s.shape.dim[dim] % n;
    for (int i = 0; i < n; i++) {
        leat_shape size = s.shape;
        size.dim[dim] = each + (i < more);
        const int at[3] = {i, (int)n + i, 2 * (int)n + i};
        LEAT_TRY(slice(k, &s, start, &size, at));
        start[dim] += size.dim[dim];
    }
    return NULL;
}

/* ---- SparseFillEmptyRows ---- */

static leat_status fill_rows(leat_kernel *k, const leat_sparse *s, const leat_tensor *fill,
                             int64_t *counts, int64_t rows)
{
    leat_tensor *indices, *values, *empty, *map;
    int64_t n = s->n;
    LEAT_TRY(vector_out(k, 2, rows, &empty));
    LEAT_TRY(vector_out(k, 3, s->n, &map));
    for (int64_t r = 0; r < rows; r++) {
        AT(bool, empty)[r] = counts[r] == 0;
        n += counts[r] == 0;
    }
    LEAT_TRY(matrix_out(k, 0, n, s->rank, &indices));
    LEAT_TRY(vector_out(k, 1, n, &values));
    memset(indices->data, 0, (size_t)indices->count * sizeof(int64_t));
    int64_t at = 0; /* converts counts to the start of each row */
    for (int64_t r = 0; r < rows; r++) {
        int64_t here = counts[r] ? counts[r] : 1;
        if (!counts[r]) {
            AT(int64_t, indices)[at * s->rank] = r;
            LEAT_TRY(copy_value(values, at, fill, 0));
        }
        counts[r] = at;
        at += here;
    }
    for (int64_t i = 0; i < s->n; i++) {
        const int64_t *place = leat_sparse_at(s, i);
        int64_t to = counts[place[0]]++;
        memcpy(AT(int64_t, indices) + to * s->rank, place, sizeof(*place) * (size_t)s->rank);
        LEAT_TRY(copy_value(values, to, s->values, i));
        AT(int64_t, map)[i] = to;
    }
    return NULL;
}

static leat_status fill_empty_run(leat_kernel *k)
{
    const leat_tensor *fill = leat_kernel_in(k, 3);
    leat_sparse s;
    LEAT_TRY(leat_sparse_input(k, 0, &s));
    LEAT_REQUIRE(fill->shape.rank == 0, INVALID_ARGUMENT, "default_value must be a scalar, saw: %s",
                 leat_shape_show(&fill->shape).s);
    LEAT_REQUIRE(s.rank >= 1, INVALID_ARGUMENT, "Dense shape cannot be empty.");
    int64_t rows = s.shape.dim[0];
    LEAT_REQUIRE(rows > 0 || s.n == 0, INVALID_ARGUMENT,
                 "Received SparseTensor with dense_shape[0] = 0 but indices.shape[0] = %lld",
                 (long long)s.n);
    LEAT_REQUIRE(rows < INT32_MAX, INVALID_ARGUMENT, "dense_shape[0] is too large");
    int64_t *counts;
    LEAT_TRY(leat_try_array(rows, &counts));
    leat_status bad = NULL;
    for (int64_t i = 0; i < s.n && !bad; i++) {
        int64_t row = leat_sparse_at(&s, i)[0];
        if (row < 0 || row >= rows)
            bad = leat_error(INVALID_ARGUMENT, "indices(%lld, 0) is invalid: %lld >= %lld",
                             (long long)i, (long long)row, (long long)rows);
        else
            counts[row]++;
    }
    if (!bad)
        bad = fill_rows(k, &s, fill, counts, rows);
    free(counts);
    return bad;
}

static leat_status fill_empty_grad_run(leat_kernel *k)
{
    const leat_tensor *map = leat_kernel_in(k, 0), *dy = leat_kernel_in(k, 1);
    leat_tensor *dx, *rest, *seen;
    LEAT_REQUIRE(map->shape.rank == 1, INVALID_ARGUMENT,
                 "reverse_index_map must be a vector, saw: %s", leat_shape_show(&map->shape).s);
    LEAT_REQUIRE(dy->shape.rank == 1, INVALID_ARGUMENT, "grad_values must be a vector, saw: %s",
                 leat_shape_show(&dy->shape).s);
    LEAT_TRY(vector_out(k, 0, map->count, &dx));
    LEAT_TRY(leat_kernel_out(k, 1, &(leat_shape){0}, &rest));
    LEAT_TRY(leat_kernel_temp(k, LEAT_BOOL, &dy->shape, &seen));
    memset(seen->data, 0, (size_t)seen->count);
    for (int64_t i = 0; i < map->count; i++) {
        int64_t at = AT(int64_t, map)[i];
        LEAT_REQUIRE(at >= 0 && at < dy->count, INVALID_ARGUMENT,
                     "Elements in reverse index must be in [0, %lld) but got %lld",
                     (long long)dy->count, (long long)at);
        LEAT_TRY(copy_value(dx, i, dy, at));
        AT(bool, seen)[at] = true;
    }
    leat_update_fn add = leat_update_of(dy->dtype, LEAT_UPDATE_ADD);
    LEAT_REQUIRE(add, UNIMPLEMENTED, "SparseFillEmptyRowsGrad of %s", leat_dtype_name(dy->dtype));
    size_t size = leat_element_size(dy->dtype);
    memset(rest->data, 0, size);
    for (int64_t i = 0; i < dy->count; i++)
        if (!AT(bool, seen)[i])
            add(rest->data, (const char *)dy->data + (size_t)i * size, 1, 1);
    return NULL;
}

const leat_kernel_def leat_cpu_sparse_move[] = {
    {.op = "SparseReorder", .run = reorder_run},
    {.op = "SparseConcat", .run = concat_run},
    {.op = "SparseReshape", .run = reshape_run},
    {.op = "SparseSlice", .run = slice_run},
    {.op = "SparseSplit", .run = split_run},
    {.op = "SparseFillEmptyRows", .run = fill_empty_run},
    {.op = "SparseFillEmptyRowsGrad", .run = fill_empty_grad_run},
    {0},
};
