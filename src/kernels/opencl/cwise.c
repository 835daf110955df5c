/* cwise.c -- element-wise ops of one and two operands; what they compute is in expressions.cl. */
#include <stdio.h>
#include <string.h>

#include "kernels/opencl/walk.h"

extern const leat_cl_text leat_cl_text_expressions, leat_cl_text_cwise;
static const leat_cl_text *const texts[] = {&leat_cl_text_expressions, &leat_cl_text_cwise, NULL};

typedef struct cwise_state {
    char function[40];
} cwise_state;

/* The name of a dtype in OpenCL C. */
static const char *type_name(leat_dtype t)
{
    return t == LEAT_FLOAT ? "float" : t == LEAT_INT64 ? "long" : t == LEAT_INT32 ? "int" : "uchar";
}

static leat_status init_as(const leat_node *n, const char *op, void *state)
{
    cwise_state *s = state;
    snprintf(s->function, sizeof s->function, "%s_%s", op,
             type_name(leat_dtype_base(leat_out_dtype(leat_node_input(n, 0)))));
    return NULL;
}

static leat_status init(const leat_node *n, void *state)
{
    return init_as(n, leat_node_op(n), state);
}

leat_status leat_cl_cwise(leat_opencl *d, const char *function, const leat_cl_walk *w,
                          const void *x, const void *y, const void *z, int64_t n)
{
    leat_cl_launch l = leat_cl_begin(d, texts, y ? "" : "-DONE_OPERAND", function);
    leat_cl_at(&l, x);
    if (y)
        leat_cl_at(&l, y);
    leat_cl_at(&l, z);
    if (y)
        leat_cl_bytes(&l, w, sizeof *w);
    leat_cl_int(&l, n);
    return leat_cl_each(&l, n, 1);
}

static leat_status unary(leat_kernel *k)
{
    const leat_tensor *x = leat_kernel_in(k, 0);
    const void *from = x->data; /* x may become the output */
    leat_tensor *z;
    LEAT_TRY(leat_kernel_out_over(k, 0, 0, &x->shape, &z));
    if (!z->count)
        return NULL;
    return leat_cl_cwise(leat_cl_of(k), ((cwise_state *)leat_kernel_state(k))->function, NULL, from,
                         NULL, z->data, z->count);
}

/* The output may use the memory of an operand that has the result's shape. */
static leat_status out_over(leat_kernel *k, const leat_shape *shape, leat_tensor **out)
{
    const int64_t n = leat_shape_count(shape);
    return leat_kernel_out_over(k, 0, leat_kernel_in(k, 0)->count == n ? 0 : 1, shape, out);
}

static leat_status combine(leat_kernel *k, const leat_cl_walk *w, const leat_shape *shape)
{
    const void *x = leat_kernel_in(k, 0)->data, *y = leat_kernel_in(k, 1)->data;
    leat_tensor *z;
    LEAT_TRY(out_over(k, shape, &z));
    if (!z->count)
        return NULL;
    return leat_cl_cwise(leat_cl_of(k), ((cwise_state *)leat_kernel_state(k))->function, w, x, y,
                         z->data, z->count);
}

static leat_status binary(leat_kernel *k)
{
    leat_cl_walk w;
    leat_shape shape;
    LEAT_TRY(
        leat_cl_broadcast(&leat_kernel_in(k, 0)->shape, &leat_kernel_in(k, 1)->shape, &w, &shape));
    return combine(k, &w, &shape);
}

/* Equal and NotEqual: shapes that do not fit give one bool if the node says so. */
static leat_status equality(leat_kernel *k)
{
    leat_cl_walk w;
    leat_shape shape;
    const leat_node *n = leat_kernel_node(k);
    leat_status s =
        leat_cl_broadcast(&leat_kernel_in(k, 0)->shape, &leat_kernel_in(k, 1)->shape, &w, &shape);
    if (!s)
        return combine(k, &w, &shape);
    if (!leat_node_has(n, "incompatible_shape_error") ||
        leat_node_bool(n, "incompatible_shape_error"))
        return s;
    leat_status_free(s);
    leat_tensor *z;
    const uint8_t differ = leat_node_op(n)[0] == 'N';
    LEAT_TRY(leat_kernel_out(k, 0, &(leat_shape){0}, &z));
    return leat_cl_fill(leat_cl_of(k), z->data, 1, 1, &differ);
}

/* Operands of one shape. */
static leat_status same(leat_kernel *k)
{
    const leat_shape *a = &leat_kernel_in(k, 0)->shape, *b = &leat_kernel_in(k, 1)->shape;
    const leat_node *n = leat_kernel_node(k);
    LEAT_REQUIRE(
        leat_shape_equal(a, b), INVALID_ARGUMENT,
        "Inputs to operation %s of type %s must have the same size and shape.  Input 0: %s "
        "!= input 1: %s",
        leat_node_name(n), leat_node_op(n), leat_shape_show(a).s, leat_shape_show(b).s);
    const leat_cl_walk w = {1, {1}, {1}, {1}};
    return combine(k, &w, a);
}

/* The bias lies along dimension 1 (NCHW) or the last one. */
static leat_status bias_add(leat_kernel *k)
{
    const leat_node *n = leat_kernel_node(k);
    const leat_tensor *x = leat_kernel_in(k, 0), *bias = leat_kernel_in(k, 1);
    const leat_shape *s = &x->shape;
    LEAT_REQUIRE(s->rank >= 2, INVALID_ARGUMENT, "Input tensor must be at least 2D: %s",
                 leat_shape_show(s).s);
    const bool first =
        leat_node_has(n, "data_format") && strcmp(leat_node_string(n, "data_format"), "NCHW") == 0;
    const int channel = first ? 1 : s->rank - 1;
    LEAT_REQUIRE(bias->shape.rank == 1, INVALID_ARGUMENT, "Biases must be 1D: %s",
                 leat_shape_show(&bias->shape).s);
    LEAT_REQUIRE(bias->count == s->dim[channel], INVALID_ARGUMENT,
                 "Must provide as many biases as the last dimension of the input tensor: %s vs. %s",
                 leat_shape_show(&bias->shape).s, leat_shape_show(s).s);
    leat_cl_walk w;
    leat_shape shape, as = {.rank = s->rank - channel};
    as.dim[0] = bias->count;
    for (int d = 1; d < as.rank; d++)
        as.dim[d] = 1;
    LEAT_TRY(leat_cl_broadcast(s, &as, &w, &shape));
    return combine(k, &w, &shape);
}

static leat_status init_bias(const leat_node *n, void *state)
{
    return init_as(n, "Add", state);
}

leat_status leat_cl_add(leat_opencl *d, const void *x, const void *y, void *z, int64_t n)
{
    const leat_cl_walk w = {1, {1}, {1}, {1}};
    return leat_cl_cwise(d, "Add_float", &w, x, y, z, n);
}

leat_status leat_cl_add_to(leat_device *device, void *to, const void *from, int64_t n)
{
    return leat_cl_add(device->state, to, from, to, n);
}

#define ROW(name, attr, types, run_, init_, ...)                                                   \
    {                                                                                              \
        .op = name, .where = {{attr, types}}, .run = run_, .init = init_,                          \
        .state_size = sizeof(cwise_state), __VA_ARGS__                                             \
    }
/* These can be steps of trees (leat_cl_expression). */
#define STEP(name, types, run_) ROW(name, "T", types, run_, init, .flags = LEAT_KERNEL_ROWS)
#define FLOAT LEAT_T(FLOAT)
#define NUMBER (LEAT_T(FLOAT) | LEAT_T(INT64))
#define ONE(name, types) STEP(name, types, unary)
#define TWO(name, types) STEP(name, types, binary)
#define SAME(name) STEP(name, FLOAT, same)
#define LOGICAL(name, run_, init_)                                                                 \
    {                                                                                              \
        .op = name, .run = run_, .init = init_, .state_size = sizeof(cwise_state)                  \
    }

const leat_kernel_def leat_opencl_cwise[] = {
    ONE("Abs", FLOAT),
    ONE("Neg", NUMBER),
    ONE("Inv", FLOAT),
    ONE("Reciprocal", FLOAT),
    ONE("Square", NUMBER),
    ONE("Sqrt", FLOAT),
    ONE("Rsqrt", FLOAT),
    ONE("Round", FLOAT),
    ONE("Exp", FLOAT),
    ONE("Expm1", FLOAT),
    ONE("Log", FLOAT),
    ONE("Log1p", FLOAT),
    ONE("Sinh", FLOAT),
    ONE("Cosh", FLOAT),
    ONE("Tanh", FLOAT),
    ONE("Asinh", FLOAT),
    ONE("Acosh", FLOAT),
    ONE("Atanh", FLOAT),
    ONE("Erf", FLOAT),
    ONE("Erfc", FLOAT),
    ONE("Sigmoid", FLOAT),
    ONE("Sin", FLOAT),
    ONE("Cos", FLOAT),
    ONE("Tan", FLOAT),
    ONE("Asin", FLOAT),
    ONE("Acos", FLOAT),
    ONE("Atan", FLOAT),
    ONE("IsNan", FLOAT),
    ONE("IsInf", FLOAT),
    ONE("IsFinite", FLOAT),
    ONE("Sign", NUMBER),
    ONE("Floor", FLOAT),
    ONE("Ceil", FLOAT),
    ONE("Rint", FLOAT),
    ONE("Relu", FLOAT),
    ONE("Relu6", FLOAT),
    ONE("Elu", FLOAT),
    ONE("Selu", FLOAT),
    ONE("Softplus", FLOAT),
    ONE("Softsign", FLOAT),
    LOGICAL("LogicalNot", unary, init),
    TWO("Add", NUMBER),
    TWO("AddV2", NUMBER),
    TWO("Sub", NUMBER),
    TWO("Mul", NUMBER),
    TWO("MulNoNan", FLOAT),
    TWO("Div", FLOAT),
    TWO("RealDiv", FLOAT),
    TWO("DivNoNan", FLOAT),
    TWO("FloorDiv", FLOAT),
    TWO("FloorMod", FLOAT),
    TWO("Mod", FLOAT),
    TWO("TruncateMod", FLOAT),
    TWO("SquaredDifference", NUMBER),
    TWO("Maximum", NUMBER),
    TWO("Minimum", NUMBER),
    TWO("Xdivy", FLOAT),
    TWO("Xlogy", FLOAT),
    TWO("Pow", FLOAT),
    TWO("Atan2", FLOAT),
    TWO("Less", NUMBER),
    TWO("LessEqual", NUMBER),
    TWO("Greater", NUMBER),
    TWO("GreaterEqual", NUMBER),
    ROW("Equal", "T", NUMBER | LEAT_T(BOOL), equality, init),
    ROW("NotEqual", "T", NUMBER | LEAT_T(BOOL), equality, init),
    LOGICAL("LogicalAnd", binary, init),
    LOGICAL("LogicalOr", binary, init),
    SAME("InvGrad"),
    SAME("ReciprocalGrad"),
    SAME("SqrtGrad"),
    SAME("RsqrtGrad"),
    SAME("TanhGrad"),
    SAME("SigmoidGrad"),
    SAME("ReluGrad"),
    SAME("Relu6Grad"),
    SAME("EluGrad"),
    SAME("SeluGrad"),
    SAME("SoftplusGrad"),
    SAME("SoftsignGrad"),
    ROW("BiasAdd", "T", FLOAT, bias_add, init_bias),
    ROW("BiasAddV1", "T", FLOAT, bias_add, init_bias),
    {0},
};

const char *leat_cl_expression(const char *op, int operands, bool *same_out)
{
    for (const leat_kernel_def *d = leat_opencl_cwise; d->op; d++) {
        const bool two = d->run == binary || d->run == same;
        if ((two || d->run == unary) && operands == 1 + two && d->where[0].attr &&
            leat_types_has(d->where[0].types, LEAT_FLOAT) && strcmp(d->op, op) == 0) {
            *same_out = d->run == same;
            return d->op;
        }
    }
    return NULL;
}
