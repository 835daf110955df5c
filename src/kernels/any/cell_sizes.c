/* cell_sizes.c -- see cell_sizes.h. */
#include "kernels/cpu/cell_sizes.h"

static const char *name_of(leat_kernel *k, int i)
{
    return leat_kernel_node(k)->op->in[i].name;
}

static leat_status check_rank(leat_kernel *k, int i, int rank)
{
    const leat_shape *s = &leat_kernel_in(k, i)->shape;
    LEAT_REQUIRE(s->rank == rank, INVALID_ARGUMENT, "%s must be %dD, but has shape %s",
                 name_of(k, i), rank, leat_shape_show(s).s);
    return NULL;
}

leat_status leat_cell_check(leat_kernel *k, int first, int n, const leat_cell_dims *dims,
                            const leat_cell_sizes *s)
{
    const struct {
        const char *name;
        int64_t size;
    } sizes[] = {
        [LEAT_OF_TIME] = {"timelen", s->time},
        [LEAT_OF_BATCH] = {"batch_size", s->batch},
        [LEAT_OF_INPUTS] = {"input_size", s->inputs},
        [LEAT_OF_UNITS] = {"cell_size", s->units},
        [LEAT_OF_TWICE_UNITS] = {"cell_size * 2", 2 * s->units},
        [LEAT_OF_GATES] = {"cell_size * 4", 4 * s->units},
        [LEAT_OF_INPUTS_AND_UNITS] = {"input_size + cell_size", s->inputs + s->units},
    };
    for (int i = 0; i < n; i++) {
        const int rank = dims[i][0] == LEAT_NO_DIM   ? 0
                         : dims[i][1] == LEAT_NO_DIM ? 1
                         : dims[i][2] == LEAT_NO_DIM ? 2
                                                     : 3;
        LEAT_TRY(check_rank(k, first + i, rank));
        for (int d = 0; d < rank; d++) {
            const int64_t is = leat_kernel_in(k, first + i)->shape.dim[d];
            LEAT_REQUIRE(dims[i][d] == LEAT_OF_ANY_SIZE || is == sizes[dims[i][d]].size,
                         INVALID_ARGUMENT, "%s.dim_size(%d) != %s: %lld vs. %lld",
                         name_of(k, first + i), d, sizes[dims[i][d]].name, (long long)is,
                         (long long)sizes[dims[i][d]].size);
        }
    }
    return NULL;
}

leat_status leat_cell_sizes_of(leat_kernel *k, int x, int x_rank, int state, leat_cell_sizes *out)
{
    LEAT_TRY(check_rank(k, x, x_rank));
    LEAT_TRY(check_rank(k, state, 2));
    const int64_t *d = leat_kernel_in(k, x)->shape.dim;
    out->time = x_rank == 3 ? d[0] : 1;
    out->batch = d[x_rank - 2];
    out->inputs = d[x_rank - 1];
    out->units = leat_kernel_in(k, state)->shape.dim[1];
    int64_t unused;
    LEAT_REQUIRE(leat_mul_ok(out->units, 4, &unused) &&
                     leat_add_ok(out->inputs, out->units, &unused),
                 INVALID_ARGUMENT, "%s has too many columns: %s", name_of(k, state),
                 leat_shape_show(&leat_kernel_in(k, state)->shape).s);
    return NULL;
}
