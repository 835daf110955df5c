/* diag.c -- Diag, DiagPart, MatrixDiag, MatrixDiagPart, MatrixSetDiag, MatrixBandPart. A diagonal
 * is a vector whose stride is a row and one element. */
#include <inttypes.h>

#include "kernels/cpu/move.h"
#include "kernels/cpu/shapes.h"

/* Between `batch` diagonals of n elements and matrices of rows * cols. */
static leat_status move_diagonals(leat_kernel *k, leat_dtype t, int64_t batch, int64_t n,
                                  int64_t rows, int64_t cols, void *matrix, void *diagonal,
                                  bool into_matrix)
{
    leat_move m;
    leat_move_begin(&m);
    if (into_matrix) {
        leat_move_dim(&m, batch, rows * cols, n);
        leat_move_dim(&m, n, cols + 1, 1);
        return leat_move_run(k, &m, t, matrix, diagonal);
    }
    leat_move_dim(&m, batch, n, rows * cols);
    leat_move_dim(&m, n, 1, cols + 1);
    return leat_move_run(k, &m, t, diagonal, matrix);
}

static leat_status diag(leat_kernel *k)
{
    const leat_tensor *x = leat_kernel_in(k, 0);
    leat_shape s;
    leat_tensor *y;
    LEAT_REQUIRE(x->shape.rank > 0, INVALID_ARGUMENT, "Input must be at least rank 1, got 0");
    LEAT_TRY(leat_shape_join(&x->shape, &x->shape, 0, &s));
    LEAT_TRY(leat_kernel_out(k, 0, &s, &y));
    LEAT_TRY(leat_move_zero(k, y));
    return move_diagonals(k, x->dtype, 1, x->count, x->count, x->count, y->data, x->data, true);
}

static leat_status diag_part(leat_kernel *k)
{
    const leat_tensor *x = leat_kernel_in(k, 0);
    leat_shape s = x->shape;
    leat_tensor *y;
    LEAT_REQUIRE(s.rank % 2 == 0 && s.rank > 0, INVALID_ARGUMENT,
                 "The rank of the tensor should be even and positive, got shape %s",
                 leat_shape_show(&s).s);
    s.rank /= 2;
    for (int d = 0; d < s.rank; d++)
        LEAT_REQUIRE(s.dim[d] == s.dim[d + s.rank], INVALID_ARGUMENT,
                     "Invalid shape %s: dimensions %d and %d do not match.",
                     leat_shape_show(&x->shape).s, d, d + s.rank);
    LEAT_TRY(leat_kernel_out(k, 0, &s, &y));
    return move_diagonals(k, x->dtype, 1, y->count, y->count, y->count, x->data, y->data, false);
}

static leat_status matrix_diag(leat_kernel *k)
{
    const leat_tensor *x = leat_kernel_in(k, 0);
    leat_tensor *y;
    LEAT_REQUIRE(x->shape.rank >= 1, INVALID_ARGUMENT,
                 "diagonal must be at least 1-dim, received shape: %s",
                 leat_shape_show(&x->shape).s);
    leat_shape s = x->shape;
    int64_t n = s.dim[s.rank - 1];
    LEAT_TRY(leat_shape_join(&x->shape, &s, s.rank - 1, &s));
    LEAT_TRY(leat_kernel_out(k, 0, &s, &y));
    if (y->count == 0)
        return NULL;
    LEAT_TRY(leat_move_zero(k, y));
    return move_diagonals(k, x->dtype, x->count / n, n, n, n, y->data, x->data, true);
}

static leat_status check_matrix(const leat_shape *s)
{
    LEAT_REQUIRE(s->rank >= 2, INVALID_ARGUMENT, "input must be at least 2-dim, received shape: %s",
                 leat_shape_show(s).s);
    return NULL;
}

static leat_status matrix_diag_part(leat_kernel *k)
{
    const leat_tensor *x = leat_kernel_in(k, 0);
    leat_tensor *y;
    LEAT_TRY(check_matrix(&x->shape));
    leat_shape s = x->shape;
    int64_t rows = s.dim[s.rank - 2], cols = s.dim[s.rank - 1], n = rows < cols ? rows : cols;
    s.dim[--s.rank - 1] = n;
    LEAT_TRY(leat_kernel_out(k, 0, &s, &y));
    if (y->count == 0)
        return NULL;
    return move_diagonals(k, x->dtype, y->count / n, n, rows, cols, x->data, y->data, false);
}

static leat_status matrix_set_diag(leat_kernel *k)
{
    const leat_tensor *x = leat_kernel_in(k, 0), *d = leat_kernel_in(k, 1);
    leat_tensor *y;
    LEAT_TRY(check_matrix(&x->shape));
    leat_shape want = x->shape;
    int64_t rows = want.dim[want.rank - 2], cols = want.dim[want.rank - 1];
    int64_t n = rows < cols ? rows : cols;
    want.dim[--want.rank - 1] = n;
    LEAT_REQUIRE(d->shape.rank >= 1, INVALID_ARGUMENT,
                 "diagonal must be at least 1-dim, received shape: %s",
                 leat_shape_show(&d->shape).s);
    LEAT_REQUIRE(leat_shape_equal(&d->shape, &want), INVALID_ARGUMENT,
                 "Either first dimensions of diagonal don't match input.shape[:-2], or "
                 "diagonal.shape[:-1] is not equal to the longests diagonal in range "
                 "[lower_diag_index:upper_diag_index].\nInput shape: %s\nDiagonal shape: %s\n"
                 "Expected diagonal shape: %s",
                 leat_shape_show(&x->shape).s, leat_shape_show(&d->shape).s,
                 leat_shape_show(&want).s);
    LEAT_TRY(leat_kernel_out_over(k, 0, 0, &x->shape, &y));
    if (y->count == 0)
        return NULL;
    if (y->data != x->data)
        LEAT_TRY(leat_move_flat(k, x->dtype, y->data, x->data, x->count));
    return move_diagonals(k, x->dtype, d->count / n, n, rows, cols, y->data, d->data, true);
}

/* ---- MatrixBandPart: sets elements outside the band to zero ---- */

typedef struct band_args {
    const leat_tensor *x;
    leat_tensor *y;
    int64_t rows, cols, lower, upper; /* lower and upper below 0: no limit */
} band_args;

static void band_part(void *arg, int64_t begin, int64_t end)
{
    const band_args *b = arg;
    size_t size = leat_element_size(b->x->dtype);
    for (int64_t r = begin; r < end; r++) {
        int64_t row = r % b->rows, from = b->lower < 0 || row < b->lower ? 0 : row - b->lower;
        int64_t to = b->upper < 0 || b->upper >= b->cols - row ? b->cols : row + b->upper + 1;
        from = from < b->cols ? from : b->cols;
        to = to < from ? from : to;
        char *y = leat_element(b->y, r * b->cols);
        memset(y, 0, (size_t)from * size);
        if (b->y->data != b->x->data)
            memcpy(y + (size_t)from * size, leat_element(b->x, r * b->cols + from),
                   (size_t)(to - from) * size);
        memset(y + (size_t)to * size, 0, (size_t)(b->cols - to) * size);
    }
}

static leat_status matrix_band_part(leat_kernel *k)
{
    band_args b = {.x = leat_kernel_in(k, 0)};
    const leat_tensor *lower = leat_kernel_in(k, 1), *upper = leat_kernel_in(k, 2);
    const leat_shape *s = &b.x->shape;
    LEAT_TRY(check_matrix(s));
    b.rows = s->dim[s->rank - 2];
    b.cols = s->dim[s->rank - 1];
    LEAT_REQUIRE(lower->shape.rank == 0, INVALID_ARGUMENT, "num_lower must be scalar, got shape %s",
                 leat_shape_show(&lower->shape).s);
    b.lower = leat_index_at(lower, 0);
    LEAT_REQUIRE(b.lower <= b.rows, INVALID_ARGUMENT,
                 "num_lower must be negative or less or equal to number of rows (%" PRId64
                 ") got: %" PRId64,
                 b.rows, b.lower);
    LEAT_REQUIRE(upper->shape.rank == 0, INVALID_ARGUMENT, "num_upper must be scalar, got shape %s",
                 leat_shape_show(&upper->shape).s);
    b.upper = leat_index_at(upper, 0);
    LEAT_REQUIRE(b.upper <= b.cols, INVALID_ARGUMENT,
                 "num_upper must be negative or less or equal to number of columns (%" PRId64
                 ") got: %" PRId64,
                 b.cols, b.upper);
    if (b.x->count == 0 ||
        ((b.lower < 0 || b.lower == b.rows) && (b.upper < 0 || b.upper == b.cols))) {
        leat_kernel_forward(k, 0, 0);
        return NULL;
    }
    LEAT_TRY(leat_kernel_out_over(k, 0, 0, s, &b.y));
    leat_kernel_for(k, b.x->count / b.cols, 5 + 0.4 * (double)b.cols, band_part, &b);
    return NULL;
}

#define NOT_MANAGED (LEAT_TYPES_ANY & ~(LEAT_T(STRING) | LEAT_T(RESOURCE) | LEAT_T(VARIANT)))

const leat_kernel_def leat_cpu_diag[] = {
    {.op = "Diag", .run = diag},
    {.op = "DiagPart", .run = diag_part},
    {.op = "MatrixDiag", .run = matrix_diag},
    {.op = "MatrixDiagPart", .run = matrix_diag_part},
    {.op = "MatrixSetDiag", .run = matrix_set_diag},
    {.op = "MatrixBandPart", .where = {{"T", NOT_MANAGED}}, .run = matrix_band_part},
    {0},
};
