/* end.c -- the end of a product, in place of nodes that the fuse pass removed: a bias and an
 * element-wise op of one operand. */
#include <string.h>

#include "kernels/opencl/gemm.h"
#include "kernels/opencl/walk.h"

leat_status leat_cl_fused_init(const leat_node *n, leat_cl_fused *f)
{
    int count;
    const char *const *ops = leat_node_strings(n, "fused_ops", &count);
    bool same;
    const char *op = count == 2 ? leat_cl_expression(ops[1], 1, &same) : NULL;
    LEAT_REQUIRE(count >= 1 && count <= 2 && strcmp(ops[0], "BiasAdd") == 0 &&
                     leat_node_int(n, "num_args") == 1 && (count == 1 || op),
                 UNIMPLEMENTED, "Fusion is not implemented: [%s%s%s]", count ? ops[0] : "",
                 count > 1 ? "," : "", count > 1 ? ops[1] : "");
    *f = (leat_cl_fused){true, op};
    return NULL;
}

leat_status leat_cl_fused_end(leat_kernel *k, const leat_cl_fused *f, const leat_shape *result,
                              leat_cl_end *out)
{
    *out = (leat_cl_end){0};
    if (!f->bias)
        return NULL;
    const leat_tensor *bias = leat_kernel_in(k, 2);
    LEAT_REQUIRE(bias->shape.rank == 1, INVALID_ARGUMENT, "Biases must be 1D: %s",
                 leat_shape_show(&bias->shape).s);
    LEAT_REQUIRE(bias->count == result->dim[result->rank - 1], INVALID_ARGUMENT,
                 "Must provide as many biases as the last dimension of the input tensor: %s vs. %s",
                 leat_shape_show(&bias->shape).s, leat_shape_show(result).s);
    *out = (leat_cl_end){bias->data, f->op};
    return NULL;
}
