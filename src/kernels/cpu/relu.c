/* relu.c -- Relu and ReluGrad. */
#include "kernels/cpu/row1.h"
#include "kernels/cpu/row2.h"

#define EXPR1_relu(T, x) ((x) < 0 ? 0 : (x))              /* NaN stays */
#define EXPR_relu_grad(T, dy, x) (T)((dy) * (T)((x) > 0)) /* -0 and NaN as TensorFlow has them */
LEAT_Y_REAL(LEAT_ROW1_SAME, relu)
LEAT_Y_FLOAT(LEAT_ROW2_SAME, relu_grad)
LEAT_Y_INTEGER(LEAT_ROW2_SLOW, relu_grad)
LEAT_ROW1_INIT(relu, 0.25, LEAT_Y_REAL(LEAT_ROW1_ENTRY, relu))
LEAT_ROW2_INIT(relu_grad, 0.3, NULL, LEAT_Y_REAL(LEAT_ROW2_ENTRY, relu_grad))

const leat_kernel_def leat_cpu_relu[] = {
    LEAT_ROW1_KERNEL("Relu", LEAT_ROW_REAL, relu),
    LEAT_ROW2_SAME_KERNEL("ReluGrad", LEAT_ROW_REAL, relu_grad),
    {0},
};
