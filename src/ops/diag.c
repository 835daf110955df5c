/* diag.c -- diagonals: Diag, DiagPart, and MatrixDiag, MatrixDiagPart, MatrixSetDiag,
 * MatrixBandPart, which work on the two inner dims. */
#include <leat/ops.h>

#include "ops/infer_util.h"

static leat_status diag_shape(leat_infer *c)
{
    leat_shape s;
    LEAT_TRY(leat_infer_rank_at_least(c, 0, 1, &s));
    leat_infer_out(c, 0, leat_shape_concat(&s, &s, 0));
    return NULL;
}

static leat_status diag_part_shape(leat_infer *c)
{
    leat_shape s = leat_infer_in(c, 0);
    if (s.rank < 0)
        return NULL;
    LEAT_REQUIRE(s.rank % 2 == 0 && s.rank > 0, INVALID_ARGUMENT,
                 "Input must have even and non-zero rank, input rank is %d", s.rank);
    s.rank /= 2;
    for (int i = 0; i < s.rank; i++)
        LEAT_TRY(leat_dim_merge(s.dim[i], s.dim[i + s.rank], &s.dim[i]));
    leat_infer_out(c, 0, s);
    return NULL;
}

static leat_status matrix_diag_shape(leat_infer *c)
{
    leat_shape s;
    LEAT_TRY(leat_infer_rank_at_least(c, 0, 1, &s));
    if (s.rank < 0 || s.rank == LEAT_MAX_RANK)
        return NULL;
    s.dim[s.rank] = s.dim[s.rank - 1];
    s.rank++;
    leat_infer_out(c, 0, s);
    return NULL;
}

/* The lesser of two dimensions; 0 even if the other is unknown. */
static int64_t shorter(int64_t a, int64_t b)
{
    if (a == 0 || b == 0)
        return 0;
    return a < 0 || b < 0 ? -1 : a < b ? a : b;
}

static leat_status matrix_diag_part_shape(leat_infer *c)
{
    leat_shape s;
    LEAT_TRY(leat_infer_rank_at_least(c, 0, 2, &s));
    if (s.rank < 0)
        return NULL;
    s.rank--;
    s.dim[s.rank - 1] = shorter(s.dim[s.rank - 1], s.dim[s.rank]);
    leat_infer_out(c, 0, s);
    return NULL;
}

static leat_status set_diag_shape(leat_infer *c)
{
    leat_shape in, diag;
    LEAT_TRY(leat_infer_rank_at_least(c, 0, 2, &in));
    LEAT_TRY(leat_infer_rank_at_least(c, 1, 1, &diag));
    if (in.rank >= 0)
        LEAT_TRY(leat_shape_with_rank(&diag, in.rank - 1, &diag));
    else if (diag.rank >= 0 && diag.rank < LEAT_MAX_RANK)
        in = leat_shape_unknown_dims(diag.rank + 1);
    if (in.rank >= 0) {
        int64_t n;
        LEAT_TRY(leat_dim_merge(shorter(in.dim[in.rank - 2], in.dim[in.rank - 1]),
                                diag.dim[diag.rank - 1], &n));
        for (int i = 0; i < in.rank - 2; i++)
            LEAT_TRY(leat_dim_merge(in.dim[i], diag.dim[i], &in.dim[i]));
    }
    leat_infer_out(c, 0, in);
    return NULL;
}

static leat_status diag_grad(leat_grad *g)
{
    return leat_grad_in(g, 0, LEAT_OP1("DiagPart", leat_grad_out(g, 0)));
}

static leat_status diag_part_grad(leat_grad *g)
{
    return leat_grad_in(g, 0, LEAT_OP1("Diag", leat_grad_out(g, 0)));
}

static leat_status matrix_diag_grad(leat_grad *g)
{
    return leat_grad_in(g, 0, LEAT_OP1("MatrixDiagPart", leat_grad_out(g, 0)));
}

static leat_status matrix_diag_part_grad(leat_grad *g)
{
    leat_out x = leat_grad_input(g, 0), dy = leat_grad_out(g, 0);
    leat_shape s = leat_out_shape(x);
    bool square = s.rank >= 2 && s.dim[s.rank - 1] >= 0 && s.dim[s.rank - 1] == s.dim[s.rank - 2];
    return leat_grad_in(g, 0,
                        square ? LEAT_OP1("MatrixDiag", dy)
                               : LEAT_OP2("MatrixSetDiag", leat_zeros_like(x), dy));
}

static leat_status set_diag_grad(leat_grad *g)
{
    leat_out dy = leat_grad_out(g, 0), zeros = leat_zeros_like(leat_grad_input(g, 1));
    LEAT_TRY(leat_grad_in(g, 0, LEAT_OP2("MatrixSetDiag", dy, zeros)));
    return leat_grad_in(g, 1, LEAT_OP1("MatrixDiagPart", dy));
}

static leat_status band_grad(leat_grad *g)
{
    return leat_grad_in(g, 0,
                        LEAT_OP3("MatrixBandPart", leat_grad_out(g, 0), leat_grad_input(g, 1),
                                 leat_grad_input(g, 2)));
}

#define DIAG_TYPES "T: {bfloat16, half, float, double, int32, int64, complex64, complex128}"

const leat_op_def leat_ops_diag[] = {
    {.name = "Diag",
     .inputs = "diagonal: T",
     .outputs = "output: T",
     .attrs = DIAG_TYPES,
     .shape = diag_shape,
     .grad = diag_grad},
    {.name = "DiagPart",
     .inputs = "input: T",
     .outputs = "diagonal: T",
     .attrs = DIAG_TYPES,
     .shape = diag_part_shape,
     .grad = diag_part_grad},
    {.name = "MatrixDiag",
     .inputs = "diagonal: T",
     .outputs = "output: T",
     .attrs = "T: type",
     .shape = matrix_diag_shape,
     .grad = matrix_diag_grad},
    {.name = "MatrixDiagPart",
     .inputs = "input: T",
     .outputs = "diagonal: T",
     .attrs = "T: type",
     .shape = matrix_diag_part_shape,
     .grad = matrix_diag_part_grad},
    {.name = "MatrixSetDiag",
     .inputs = "input: T, diagonal: T",
     .outputs = "output: T",
     .attrs = "T: type",
     .shape = set_diag_shape,
     .grad = set_diag_grad},
    {.name = "MatrixBandPart",
     .inputs = "input: T, num_lower: Tindex, num_upper: Tindex",
     .outputs = "band: T",
     .attrs = "T: type; Tindex: {int32, int64} = DT_INT64",
     .shape = leat_shape_unchanged,
     .grad = band_grad},
    {0},
};
