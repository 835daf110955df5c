/* compare.c -- comparisons, which give bools, and the logic of bools. */
#include "kernels/cpu/row2.h"

#define EXPR_less(T, x, y) ((x) < (y))
#define EXPR_less_equal(T, x, y) ((x) <= (y))
#define EXPR_greater(T, x, y) ((x) > (y))
#define EXPR_greater_equal(T, x, y) ((x) >= (y))
#define EXPR_equal(T, x, y) ((x) == (y))
#define EXPR_not_equal(T, x, y) ((x) != (y))
#define EXPR_and(T, x, y) ((x) & (y))
#define EXPR_or(T, x, y) ((x) | (y))

LEAT_Y_REAL(LEAT_ROW2_BOOL, less)
LEAT_Y_REAL(LEAT_ROW2_BOOL, less_equal)
LEAT_Y_REAL(LEAT_ROW2_BOOL, greater)
LEAT_Y_REAL(LEAT_ROW2_BOOL, greater_equal)
LEAT_Y_REAL(LEAT_ROW2_BOOL, equal)
LEAT_Y_REAL(LEAT_ROW2_BOOL, not_equal)
LEAT_Y_BOOL(LEAT_ROW2_BOOL, equal)
LEAT_Y_BOOL(LEAT_ROW2_BOOL, not_equal)
LEAT_Y_BOOL(LEAT_ROW2_BOOL, and)
LEAT_Y_BOOL(LEAT_ROW2_BOOL, or)

static inline bool string_equal(const leat_string *x, const leat_string *y)
{
    return x->size == y->size && (x->size == 0 || memcmp(x->data, y->data, x->size) == 0);
}

static bool equal_string(const void *a, bool a_one, const void *b, bool b_one, void *z, int64_t n)
{
    const leat_string *x = a, *y = b;
    for (int64_t i = 0; i < n; i++)
        ((bool *)z)[i] = string_equal(x + (a_one ? 0 : i), y + (b_one ? 0 : i));
    return true;
}

static bool not_equal_string(const void *a, bool a_one, const void *b, bool b_one, void *z,
                             int64_t n)
{
    equal_string(a, a_one, b, b_one, z, n);
    for (int64_t i = 0; i < n; i++)
        ((bool *)z)[i] ^= true;
    return true;
}

/* Quantized numbers compare as the integers that they are stored in. */
#define EQUALITY(name)                                                                             \
    LEAT_Y_REAL(LEAT_ROW2_ENTRY, name)                                                             \
    [LEAT_BOOL] = name##__Bool, [LEAT_STRING] = name##_string, [LEAT_QINT8] = name##_int8_t,       \
    [LEAT_QUINT8] = name##_uint8_t, [LEAT_QINT32] = name##_int32_t

LEAT_ROW2_INIT(less, 0.3, NULL, LEAT_Y_REAL(LEAT_ROW2_ENTRY, less))
LEAT_ROW2_INIT(less_equal, 0.3, NULL, LEAT_Y_REAL(LEAT_ROW2_ENTRY, less_equal))
LEAT_ROW2_INIT(greater, 0.3, NULL, LEAT_Y_REAL(LEAT_ROW2_ENTRY, greater))
LEAT_ROW2_INIT(greater_equal, 0.3, NULL, LEAT_Y_REAL(LEAT_ROW2_ENTRY, greater_equal))
LEAT_ROW2_INIT(equal, 0.3, NULL, EQUALITY(equal))
LEAT_ROW2_INIT(not_equal, 0.3, NULL, EQUALITY(not_equal))
LEAT_ROW2_INIT(and, 0.1, NULL, LEAT_Y_BOOL(LEAT_ROW2_ENTRY, and))
LEAT_ROW2_INIT(or, 0.1, NULL, LEAT_Y_BOOL(LEAT_ROW2_ENTRY, or))

/* With incompatible_shape_error false, shapes that do not fit give "not equal" as a scalar. */
static leat_status equality(leat_kernel *k)
{
    const leat_node *n = leat_kernel_node(k);
    if (!leat_node_bool(n, "incompatible_shape_error")) {
        const leat_tensor *a = leat_kernel_in(k, 0), *b = leat_kernel_in(k, 1);
        leat_broadcast c;
        leat_status s = leat_broadcast_init(&c, &a->shape, &b->shape);
        if (s) {
            leat_status_free(s);
            leat_tensor *z;
            LEAT_TRY(leat_kernel_out(k, 0, &(leat_shape){0}, &z));
            AT(bool, z)[0] = strcmp(leat_node_op(n), "NotEqual") == 0;
            return NULL;
        }
    }
    return leat_row2_run(k);
}

typedef struct near_args {
    const leat_tensor *a, *b;
    bool *z;
    double tolerance;
} near_args;

/* A tolerance that an integer type cannot hold becomes the nearest int64, then wraps. */
static int64_t whole(double x)
{
    return x != x ? 0 : x >= 0x1p63 ? INT64_MAX : x <= -0x1p63 ? INT64_MIN : (int64_t)x;
}

#define NEAR(name, dtype, T)                                                                       \
    static void near_##T(const near_args *r, int64_t begin, int64_t end)                           \
    {                                                                                              \
        const T *a = AT(T, r->a), *b = AT(T, r->b);                                                \
        const T tolerance = (T)0.5 != 0 ? (T)r->tolerance : (T)whole(r->tolerance);                \
        for (int64_t i = begin; i < end; i++) {                                                    \
            const T d = (T)((LEAT_WIDE(T))a[i] - (LEAT_WIDE(T))b[i]);                              \
            r->z[i] = (d < 0 ? (T)(0 - (LEAT_WIDE(T))d) : d) < tolerance;                          \
        }                                                                                          \
    }
LEAT_Y_REAL(NEAR, near)

#define NEAR_CASE(name, dtype, T)                                                                  \
    case LEAT_##dtype:                                                                             \
        near_##T(arg, begin, end);                                                                 \
        break;

static void near_part(void *arg, int64_t begin, int64_t end)
{
    switch (((near_args *)arg)->a->dtype) {
        LEAT_Y_REAL(NEAR_CASE, near)
    default:
        break;
    }
}

static leat_status approximate_equal(leat_kernel *k)
{
    near_args r = {.a = leat_kernel_in(k, 0), .b = leat_kernel_in(k, 1)};
    LEAT_REQUIRE(leat_shape_equal(&r.a->shape, &r.b->shape), INVALID_ARGUMENT,
                 "x and y must be of the same shape. x shape: %s. y shape: %s",
                 leat_shape_show(&r.a->shape).s, leat_shape_show(&r.b->shape).s);
    r.tolerance = leat_node_float(leat_kernel_node(k), "tolerance");
    leat_tensor *z;
    LEAT_TRY(leat_kernel_out(k, 0, &r.a->shape, &z));
    r.z = z->data;
    leat_kernel_for(k, r.a->count, 0.5, near_part, &r);
    return NULL;
}

static void not_part(void *arg, int64_t begin, int64_t end)
{
    const bool *x = ((const bool **)arg)[0];
    bool *y = ((bool **)arg)[1];
    LEAT_SIMD
    for (int64_t i = begin; i < end; i++)
        y[i] = !x[i];
}

static leat_status logical_not(leat_kernel *k)
{
    const leat_tensor *x = leat_kernel_in(k, 0);
    leat_tensor *y;
    LEAT_TRY(leat_kernel_out_over(k, 0, 0, &x->shape, &y));
    leat_kernel_for(k, x->count, 0.1, not_part, (void *[]){x->data, y->data});
    return NULL;
}

#define EQUALITY_TYPES                                                                             \
    (LEAT_ROW_REAL | LEAT_T(BOOL) | LEAT_T(STRING) | LEAT_T(QINT8) | LEAT_T(QUINT8) |              \
     LEAT_T(QINT32))
#define EQUALITY_KERNEL(op_, name)                                                                 \
    {                                                                                              \
        .op = op_, .where = {{"T", EQUALITY_TYPES}}, .run = equality,                              \
        .state_size = sizeof(leat_row2), .init = init_##name, .flags = LEAT_KERNEL_VIA_FLOAT       \
    }

const leat_kernel_def leat_cpu_compare[] = {
    LEAT_ROW2_KERNEL("Less", LEAT_ROW_REAL, less),
    LEAT_ROW2_KERNEL("LessEqual", LEAT_ROW_REAL, less_equal),
    LEAT_ROW2_KERNEL("Greater", LEAT_ROW_REAL, greater),
    LEAT_ROW2_KERNEL("GreaterEqual", LEAT_ROW_REAL, greater_equal),
    EQUALITY_KERNEL("Equal", equal),
    EQUALITY_KERNEL("NotEqual", not_equal),
    {.op = "ApproximateEqual",
     .where = {{"T", LEAT_ROW_REAL}},
     .run = approximate_equal,
     .flags = LEAT_KERNEL_VIA_FLOAT},
    {.op = "LogicalNot", .run = logical_not},
    {.op = "LogicalAnd", .run = leat_row2_run, .state_size = sizeof(leat_row2), .init = init_and},
    {.op = "LogicalOr", .run = leat_row2_run, .state_size = sizeof(leat_row2), .init = init_or},
    {0},
};
