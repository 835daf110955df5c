/* dataset.c -- the shape functions of datasets and iterators. */
#include "ops/dataset.h"

#include "ops/infer_util.h"

leat_status leat_data_handle_shape(leat_infer *c)
{
    for (int i = 0; i < leat_infer_outputs(c); i++)
        leat_infer_out(c, i, leat_shape());
    return NULL;
}

static leat_status scalars_from(leat_infer *c, int first)
{
    leat_shape unused;
    for (int i = first; i < leat_infer_inputs(c); i++)
        LEAT_TRY(leat_infer_rank(c, i, 0, &unused));
    return leat_data_handle_shape(c);
}

leat_status leat_data_scalars_shape(leat_infer *c)
{
    return scalars_from(c, 0);
}

leat_status leat_data_files_shape(leat_infer *c)
{
    LEAT_REQUIRE(leat_infer_in(c, 0).rank <= 1, INVALID_ARGUMENT,
                 "Shape must be at most rank 1 but is rank %d", leat_infer_in(c, 0).rank);
    return scalars_from(c, 1);
}

leat_status leat_data_padded_shape(leat_infer *c)
{
    leat_shape unused;
    LEAT_TRY(leat_infer_rank(c, 1, 0, &unused));
    return leat_data_handle_shape(c);
}

leat_status leat_data_elements_shape(leat_infer *c)
{
    int n;
    leat_shape unused;
    const leat_shape *shapes = leat_node_shapes(leat_infer_node(c), "output_shapes", &n);
    LEAT_TRY(leat_infer_rank(c, 0, 0, &unused));
    LEAT_REQUIRE(n == leat_infer_outputs(c), INVALID_ARGUMENT,
                 "`output_shapes` must be the same length as `output_types` (%d vs. %d)", n,
                 leat_infer_outputs(c));
    for (int i = 0; i < n; i++)
        leat_infer_out(c, i, shapes[i]);
    return NULL;
}
