/* fused_end.c -- see fused_end.h. */
#include "kernels/cpu/fused_end.h"

leat_status leat_fused_end_init(const leat_node *n, leat_fused_end *end)
{
    int count;
    const char *const *ops = leat_node_strings(n, "fused_ops", &count);
    *end = (leat_fused_end){.bias = true};
    bool ok = count >= 1 && count <= 2 && strcmp(ops[0], "BiasAdd") == 0 &&
              leat_node_int(n, "num_args") == 1;
    const char *act = ok && count == 2 ? ops[1] : "";
    if (strcmp(act, "Relu") == 0) {
        end->act = LEAT_GEMM_RELU;
    } else if (strcmp(act, "Relu6") == 0) {
        end->act = LEAT_GEMM_RELU6;
    } else if (act[0]) {
        leat_rows r = {0};
        leat_status bad = leat_rows_find(n, act, &r);
        leat_status_free(bad);
        end->row = r.one.fn;
        ok = !bad && end->row;
    }
    LEAT_REQUIRE(ok, UNIMPLEMENTED, "Fusion is not implemented: [%s%s%s]", count ? ops[0] : "",
                 count > 1 ? "," : "", count > 1 ? ops[1] : "");
    return NULL;
}

static void apply_row(void *arg, int64_t row, int64_t col, void *c, int64_t n)
{
    ((const leat_fused_end *)arg)->row(c, c, n);
}

leat_status leat_fused_end_use(leat_kernel *k, const leat_fused_end *end, const leat_shape *result,
                               leat_gemm_epilogue *e)
{
    if (!end->bias)
        return NULL;
    const leat_tensor *bias = leat_kernel_in(k, 2);
    LEAT_REQUIRE(bias->shape.rank == 1, INVALID_ARGUMENT, "Biases must be 1D: %s",
                 leat_shape_show(&bias->shape).s);
    LEAT_REQUIRE(bias->count == result->dim[result->rank - 1], INVALID_ARGUMENT,
                 "Must provide as many biases as the last dimension of the input tensor: %s vs. %s",
                 leat_shape_show(&bias->shape).s, leat_shape_show(result).s);
    e->bias = bias->data;
    e->act = end->act;
    e->row_fn = end->row ? apply_row : NULL;
    e->arg = (void *)end;
    return NULL;
}
