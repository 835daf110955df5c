/* Ops that a program registers take part in the passes by what their definitions say; definitions
 * and kernels that do not keep what they say are refused, by name. */
#include "passes.h"

#include <leat/rows.h>

/* ---- Element-wise: Cube(x) = x^3, Between(x, y) = (x + y) / 2 ---- */

static leat_status cube_grad(leat_grad *g)
{
    leat_out x = leat_grad_input(g, 0), three = leat_scalar_like(x, 3);
    return leat_grad_in(g, 0, leat_mul(leat_grad_out(g, 0), leat_mul(three, leat_square(x))));
}

#define EXPR1_cube(T, x) ((x) * (x) * (x))
LEAT_ROW1_SAME(cube, FLOAT, float)
LEAT_ROW1_SAME(cube, DOUBLE, double)
LEAT_ROW1_INIT(cube, 0.3, LEAT_ROW1_ENTRY(cube, FLOAT, float) LEAT_ROW1_ENTRY(cube, DOUBLE, double))
#define EXPR_between(T, x, y) (((x) + (y)) / 2)
LEAT_ROW2_SAME(between, FLOAT, float)
LEAT_ROW2_INIT(between, 0.3, NULL, LEAT_ROW2_ENTRY(between, FLOAT, float))

/* ---- Training: ApplyHalf takes half of the gradient, times lr, from var ---- */

static void half_float(float *const *v, const float *g, int64_t n, const float *h, bool flag)
{
    for (int64_t i = 0; i < n; i++)
        v[0][i] -= h[0] * (flag ? g[i] : g[i] / 2);
}

static void half_double(double *const *v, const double *g, int64_t n, const double *h, bool flag)
{
    for (int64_t i = 0; i < n; i++)
        v[0][i] -= h[0] * (flag ? g[i] : g[i] / 2);
}

static const leat_apply_rule half = {half_float, half_double, 0.2, false};

/* ---- Others: one kernel that passes its input on, and one that always fails ---- */

static leat_status pass_on(leat_kernel *k)
{
    leat_kernel_set(k, 0, leat_tensor_ref((leat_tensor *)leat_kernel_in(k, 0)));
    return NULL;
}

static leat_status fail(leat_kernel *k)
{
    return leat_error(OUT_OF_RANGE, "%s ran", leat_node_op(leat_kernel_node(k)));
}

static leat_status take_shape(leat_infer *c)
{
    leat_shape s;
    LEAT_TRY(leat_infer_value_shape(c, 0, &s));
    leat_infer_out(c, 0, s);
    return NULL;
}

/* Of [a, b, ...] it gives [1, a, b, ...]. */
static leat_status with_one(leat_infer *c, int i, leat_shape *out)
{
    leat_shape s;
    LEAT_TRY(leat_infer_known(c, 0, &s));
    if (s.rank < 0 || s.rank == LEAT_MAX_RANK)
        return NULL;
    *out = leat_shape_unknown_dims(s.rank + 1);
    out->dim[0] = 1;
    for (int d = 0; d < s.rank; d++)
        out->dim[d + 1] = s.dim[d];
    return NULL;
}

static const leat_op_def ops[] = {
    {.name = "Cube",
     .inputs = "x: T",
     .outputs = "y: T",
     .attrs = "T: {float, double}",
     .shape = leat_shape_unchanged,
     .grad = cube_grad,
     .flags = LEAT_OP_CWISE},
    {.name = "Between",
     .inputs = "x: T, y: T",
     .outputs = "z: T",
     .attrs = "T: {float}",
     .shape = leat_shape_broadcast_binary,
     .grad = leat_grad_missing,
     .flags = LEAT_OP_CWISE | LEAT_OP_COMMUTATIVE},
    {.name = "Plus",
     .inputs = "x: T, y: T",
     .outputs = "z: T",
     .attrs = "T: {float}",
     .shape = leat_shape_broadcast_binary,
     .grad = leat_grad_missing,
     .role = LEAT_ROLE_ADD},
    {.name = "ApplyHalf",
     .inputs = "var: Ref(T), lr: T, change: T",
     .outputs = "out: Ref(T)",
     .attrs = "T: {float, double}; use_nesterov: bool = false",
     .shape = leat_shape_unchanged,
     .grad = leat_grad_missing,
     .gradient = "change"},
    {.name = "Marked",
     .inputs = "x: T",
     .outputs = "y: T",
     .attrs = "T: type",
     .shape = leat_shape_unchanged,
     .grad = leat_grad_missing,
     .flags = LEAT_OP_IDENTITY},
    {.name = "Insists",
     .inputs = "x: T",
     .outputs = "y: T",
     .attrs = "T: type",
     .shape = leat_shape_unchanged,
     .grad = leat_grad_missing,
     .flags = LEAT_OP_CHECKS},
    {.name = "Watches",
     .inputs = "x: T",
     .outputs = "y: T",
     .attrs = "T: type",
     .shape = leat_shape_unchanged,
     .grad = leat_grad_missing,
     .flags = LEAT_OP_STATEFUL | LEAT_OP_NO_EFFECTS},
    {.name = "WithOne",
     .inputs = "shape: int32",
     .outputs = "y: int32",
     .shape = leat_shape_any,
     .grad = leat_grad_none,
     .value = with_one},
    {.name = "OfShape",
     .inputs = "shape: int32",
     .outputs = "y: float",
     .shape = take_shape,
     .grad = leat_grad_none},
};

#define FLOATS (LEAT_T(FLOAT) | LEAT_T(DOUBLE))
static const leat_kernel_def kernels[] = {
    LEAT_ROW1_KERNEL("Cube", FLOATS, cube),
    LEAT_ROW2_KERNEL("Between", LEAT_T(FLOAT), between),
    LEAT_APPLY_KERNEL("ApplyHalf", FLOATS, &half),
    {.op = "Marked", .run = pass_on},
    {.op = "Plus", .run = fail},
    {.op = "Insists", .run = fail},
    {.op = "Watches", .run = fail},
};

/* ---- What the passes make of them ---- */

#define CWISE_PASSES leat_pass_simplify, leat_pass_fuse, leat_pass_fuse_cwise, leat_pass_fuse_apply

static void element_wise(void)
{
    leat_graph *g = leat_graph_new();
    leat_out x = leat_placeholder(g, LEAT_FLOAT, leat_shape(-1, 40));
    leat_grad_value dx;
    leat_out y = leat_op(g, "Between", leat_in(LEAT_OP1("Cube", leat_neg(x))),
                         leat_in(leat_scalar(g, LEAT_FLOAT, 0.5)));
    leat_out tree = leat_exp(y), cube = LEAT_OP1("Cube", x);
    CHECK_OK(leat_gradients(&cube, 1, &x, 1, &dx));
    leat_out both[2] = {tree, dx.value};
    compiled k;
    COMPILE(&k, g, &((leat_request){.fetches = &tree, .n_fetches = 1}), CWISE_PASSES,
            leat_pass_sweep);
    CHECK_INT(count_op(&k, "_FusedCwise"), 1);
    CHECK_INT(count_op(&k, "Cube") + count_op(&k, "Between") + count_op(&k, "Exp"), 0);
    compiled_free(&k);
    leat_tensor *in = NULL, *values[2][2] = {{NULL}};
    CHECK_OK(leat_tensor_new(LEAT_FLOAT, leat_shape(50, 40), &in));
    for (int i = 0; i < 2000; i++)
        ((float *)leat_tensor_mutable(in))[i] = (float)(i - 1000) / 700;
    for (int i = 0; i < 2; i++) {
        leat_session *s;
        CHECK_OK(leat_session_open(g, &s, .no_optimization = i == 0));
        CHECK_OK(leat_session_run(s, LEAT_FEED({x, in}),
                                  LEAT_FETCH({both[0], &values[i][0]}, {both[1], &values[i][1]}),
                                  LEAT_NO_TARGET));
        leat_session_close(s);
    }
    const float at = 500.0f / 700; /* of x[1500] */
    CHECK_NEAR(((const float *)leat_tensor_data(values[1][1]))[1500], 3 * at * at, 1e-5);
    for (int i = 0; i < 2; i++) {
        CHECK(same_bytes(values[0][i], values[1][i]));
        leat_tensor_unref(values[0][i]);
        leat_tensor_unref(values[1][i]);
    }
    leat_tensor_unref(in);
    leat_graph_free(g);
}

/* The end of a product may be any element-wise op of one operand. */
static void after_product(void)
{
    leat_graph *g = leat_graph_new();
    leat_out x = leat_placeholder(g, LEAT_FLOAT, leat_shape(3, 4)),
             w = leat_full(g, LEAT_FLOAT, leat_shape(4, 2), 0.5),
             b = leat_full(g, LEAT_FLOAT, leat_shape(2), 0.25);
    leat_out y = LEAT_OP1("Cube", leat_bias_add(leat_matmul(x, w), b));
    compiled k;
    COMPILE(&k, g, &((leat_request){.fetches = &y, .n_fetches = 1}), CWISE_PASSES, leat_pass_sweep);
    CHECK_INT(count_op(&k, "_FusedMatMul"), 1);
    CHECK_INT(count_op(&k, "Cube"), 0);
    compiled_free(&k);
    leat_tensor *in = NULL, *values[2] = {NULL};
    CHECK_OK(leat_tensor_new(LEAT_FLOAT, leat_shape(3, 4), &in));
    for (int i = 0; i < 12; i++)
        ((float *)leat_tensor_mutable(in))[i] = (float)i / 4;
    for (int i = 0; i < 2; i++) {
        leat_session *s;
        CHECK_OK(leat_session_open(g, &s, .no_optimization = i == 0));
        CHECK_OK(
            leat_session_run(s, LEAT_FEED({x, in}), LEAT_FETCH({y, &values[i]}), LEAT_NO_TARGET));
        leat_session_close(s);
    }
    CHECK(same_bytes(values[0], values[1]));
    leat_tensor_unref(values[0]);
    leat_tensor_unref(values[1]);
    leat_tensor_unref(in);
    leat_graph_free(g);
}

static void update(void)
{
    for (int nesterov = 0; nesterov < 2; nesterov++) {
        leat_graph *g = leat_graph_new();
        leat_out v = leat_variable(g, "v", leat_full(g, LEAT_FLOAT, leat_shape(300), 2)),
                 change = leat_mul(LEAT_OP1("Cube", v), leat_scalar(g, LEAT_FLOAT, 0.5));
        leat_out step = leat_op(g, "ApplyHalf", leat_in(leat_variable_ref(v)),
                                leat_in(leat_scalar(g, LEAT_FLOAT, 0.1)), leat_in(change),
                                leat_attr_bool("use_nesterov", nesterov));
        leat_out init = leat_global_variables_initializer(g);
        compiled k;
        COMPILE(&k, g, &((leat_request){.targets = &step, .n_targets = 1}), CWISE_PASSES,
                leat_pass_sweep);
        CHECK_INT(count_op(&k, "_FusedApply"), 1);
        CHECK_INT(count_op(&k, "ApplyHalf") + count_op(&k, "_FusedCwise"), 0);
        compiled_free(&k);
        leat_tensor *values[2] = {NULL};
        for (int i = 0; i < 2; i++) {
            leat_session *s;
            CHECK_OK(leat_session_open(g, &s, .no_optimization = i == 0));
            CHECK_OK(leat_session_run(s, LEAT_NO_FEED, LEAT_NO_FETCH, LEAT_TARGET(init)));
            CHECK_OK(leat_session_run(s, LEAT_NO_FEED, LEAT_NO_FETCH, LEAT_TARGET(step)));
            CHECK_OK(
                leat_session_run(s, LEAT_NO_FEED, LEAT_FETCH({v, &values[i]}), LEAT_NO_TARGET));
            leat_session_close(s);
        }
        /* 2 - 0.1 * 4, or half of that */
        CHECK_NEAR(((const float *)leat_tensor_data(values[1]))[299], nesterov ? 1.6 : 1.8, 1e-6);
        CHECK(same_bytes(values[0], values[1]));
        leat_tensor_unref(values[0]);
        leat_tensor_unref(values[1]);
        leat_graph_free(g);
    }
}

/* Marked is an identity and Plus of -0 changes nothing: neither runs. */
static void left_out(void)
{
    leat_graph *g = leat_graph_new();
    leat_out x = leat_placeholder(g, LEAT_FLOAT, leat_shape(3));
    leat_out y = leat_op(g, "Plus", leat_in(leat_scalar(g, LEAT_FLOAT, -0.0)),
                         leat_in(LEAT_OP1("Marked", x)));
    leat_out z = leat_sqrt(y);
    compiled k;
    COMPILE(&k, g, &((leat_request){.fetches = &z, .n_fetches = 1}), leat_pass_simplify,
            leat_pass_sweep);
    CHECK_INT(count_op(&k, "Marked") + count_op(&k, "Plus") + count_op(&k, "Identity"), 0);
    compiled_free(&k);
    leat_graph_free(g);
}

/* Insists runs though nobody uses its value; Watches is stateful, but its running is not missed. */
static void checks_and_effects(void)
{
    leat_graph *g = leat_graph_new();
    leat_out x = leat_placeholder(g, LEAT_FLOAT, leat_shape(2)), y = {0};
    leat_out insists = LEAT_OP1("Insists", x), watches = LEAT_OP1("Watches", x);
    leat_with_control(g, insists) y = leat_neg(x);
    compiled k;
    COMPILE(&k, g, &((leat_request){.fetches = &y, .n_fetches = 1}), leat_pass_sweep);
    CHECK_INT(count_op(&k, "Insists"), 1);
    compiled_free(&k);
    CHECK(!leat_node_has_effects(watches.node));
    CHECK(!leat_node_is_pure(watches.node));
    leat_graph_free(g);
}

static void known_values(void)
{
    leat_graph *g = leat_graph_new();
    leat_out x = leat_placeholder(g, LEAT_FLOAT, leat_shape(-1, 7));
    leat_out y = LEAT_OP1("OfShape", LEAT_OP1("WithOne", LEAT_OP1("Marked", leat_shape_of(x))));
    CHECK_OK(leat_graph_status(g));
    leat_shape s = leat_out_shape(y);
    CHECK_STR(leat_shape_show(&s).s, "[1,?,7]");
    leat_graph_free(g);
}

/* ---- What is refused ---- */

static void refused(void)
{
#define OP(n, in, out, at, ...)                                                                    \
    {                                                                                              \
        .name = n, .inputs = in, .outputs = out, .attrs = at, .shape = leat_shape_any,             \
        .grad = leat_grad_none, __VA_ARGS__                                                        \
    }
    static const struct {
        leat_op_def def;
        const char *words;
    } cases[] = {
        {OP("A", "x: T, y: T, z: T", "w: T", "T: type", .flags = LEAT_OP_CWISE),
         "Op A is LEAT_OP_CWISE: it must take one or two inputs of type T"},
        {OP("A", "x: T", "w: bool", "T: type", .flags = LEAT_OP_CWISE), "Op A is LEAT_OP_CWISE"},
        {OP("A", "x: T", "w: T", "T: type; a: int", .flags = LEAT_OP_CWISE),
         "have no attribute but T, and no state"},
        {OP("B", "x: T, y: T", "z: T", "T: type", .flags = LEAT_OP_IDENTITY),
         "Op B is LEAT_OP_IDENTITY: it must have one input and one output of the same type"},
        {OP("B", "x: T", "z: T", "T: type", .flags = LEAT_OP_IDENTITY | LEAT_OP_STATEFUL),
         "neither state nor checks"},
        {OP("C", "x: int32", "z: bool", NULL, .flags = LEAT_OP_INVOLUTION),
         "Op C is LEAT_OP_INVOLUTION"},
        {OP("C", "x: int32", "z: bool", NULL, .flags = LEAT_OP_RESHAPES),
         "Op C is LEAT_OP_RESHAPES: its output must have the type of input 0"},
        {OP("C", NULL, NULL, NULL, .flags = LEAT_OP_PLACEHOLDER), "Op C is LEAT_OP_PLACEHOLDER"},
        {OP("C", NULL, "r: Ref(T)", "T: type", .flags = LEAT_OP_NO_EFFECTS),
         "Op C is LEAT_OP_NO_EFFECTS and gives a reference: it must have got one"},
        {OP("D", "x: T", "y: T", "T: type", .role = LEAT_ROLE_SWITCH),
         "Op D has a role for 2 inputs and 2 outputs, and it has 1 and 1"},
        {OP("D", NULL, "y: T", "T: type", .role = LEAT_ROLE_CONST),
         "Op D has a role that needs the attribute 'value'"},
        {OP("D", "x: T, y: T", "z: T", "T: type", .role = LEAT_ROLE_ADD),
         "its shape function must be leat_shape_broadcast_binary"},
        {OP("D", NULL, NULL, NULL, .role = (leat_role)999), "Op D has no role that there is: 999"},
        {OP("D", NULL, "y: T", "T: type; index: int", .role = LEAT_ROLE_ARG),
         "Op D has a role that belongs to ops of the runtime"},
        {OP("E", "x: T", "y: T", "T: type", .fused = "_FusedMatMul"),
         "Op E names a fused op: its role must be a product or a cross entropy"},
        {OP("E", "x: T, y: T", "z: T", "T: type", .role = LEAT_ROLE_PRODUCT, .fused = "_Nothing"),
         "Op E names the fused op _Nothing, which is not registered"},
        {OP("F", "x: N * T", "z: T", "T: type; N: int", .pairwise = "MatMul"),
         "Op F is done in pairs by MatMul, which is not an element-wise op of two operands"},
        {OP("F", "x: T", "z: T", "T: type", .pairwise = "AddV2"),
         "Op F is done in pairs by AddV2: it must have one list of inputs and one output"},
        {OP("G", "var: Ref(T), grad: T", NULL, "T: type", .gradient = "delta"),
         "Op G applies the gradient 'delta': it must have a variable first and an input of this "
         "name"},
        {OP("G", "grad: T, var: Ref(T)", NULL, "T: type", .gradient = "grad"),
         "its variables come first, then single values; 'var' does not fit"},
        {OP("H", NULL, "handle: resource", NULL, .save_position = "_QueueState"),
         "Op H has a position: it must name both the op that saves and the op that restores it"},
        {OP("H", NULL, "handle: Ref(string)", NULL, .save_position = "_QueueState",
            .restore_position = "_QueueSetState"),
         "Op H has a position: it must have no input, and one output, a resource"},
        {OP("H", NULL, "handle: resource", NULL, .save_position = "_Nothing",
            .restore_position = "_QueueSetState"),
         "The position of op H is saved by _Nothing, which is not an op from a resource to a value "
         "of one type"},
        {OP("H", NULL, "handle: resource", NULL, .save_position = "SerializeIterator",
            .restore_position = "_QueueSetState"),
         "The position of op H is restored by _QueueSetState, which does not take a resource and "
         "what SerializeIterator gives"},
    };
    for (size_t i = 0; i < sizeof(cases) / sizeof(*cases); i++)
        CHECK_ERROR(leat_register_op(&cases[i].def), INVALID_ARGUMENT, cases[i].words);
    const leat_kernel_def plain[] = {
        {.op = "Cube", .where = {{"T", LEAT_T(FLOAT)}}, .run = pass_on},
        {.op = "ApplyHalf", .where = {{"T", LEAT_T(FLOAT)}}, .run = pass_on},
    };
    CHECK_ERROR(leat_register_kernels("CPU", &plain[0], 1), INVALID_ARGUMENT,
                "Op Cube is LEAT_OP_CWISE: its kernel for CPU must be LEAT_KERNEL_ROWS");
    CHECK_ERROR(leat_register_kernels("CPU", &plain[1], 1), INVALID_ARGUMENT,
                "Op ApplyHalf applies a gradient: its kernel for CPU must have a rule");
    CHECK_OK(leat_op_registry_check());
    CHECK_OK(leat_kernel_registry_check());
}

int main(int argc, char **argv)
{
    for (size_t i = 0; i < sizeof(ops) / sizeof(*ops); i++)
        LEAT_DIE_ON_ERROR(leat_register_op(&ops[i]));
    LEAT_DIE_ON_ERROR(
        leat_register_kernels("CPU", kernels, (int)(sizeof(kernels) / sizeof(*kernels))));
    return RUN(argc, argv, {"element_wise", element_wise}, {"after_product", after_product},
               {"update", update}, {"left_out", left_out},
               {"checks_and_effects", checks_and_effects}, {"known_values", known_values},
               {"refused", refused});
}
