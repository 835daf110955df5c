/* fuse_apply_test.c -- updates that take the element-wise ops of their gradient into themselves:
 * all dense training ops, AssignAdd and AssignSub, on references and on handles. Variables are the
 * same bit for bit, errors are those of the ops. */
#include "passes.h"

#include <leat/extend.h>

#include "graph/op_info.h"

static bool starts(const char *s, const char *with)
{
    return strncmp(s, with, strlen(with)) == 0;
}

static bool takes_rows(const leat_op_info *op)
{
    for (int i = 0; i < op->n_in; i++)
        if (strcmp(op->in[i].name, "indices") == 0)
            return true;
    return false;
}

static bool is_update(const leat_op_info *op)
{
    const char *name = op->def->name;
    bool by_name = ((starts(name, "Apply") || starts(name, "ResourceApply")) && !takes_rows(op)) ||
                   starts(name, "AssignAdd") || starts(name, "AssignSub");
    CHECK_INT(op->gradient > 0, by_name); /* the definition says so */
    return by_name;
}

static int fused_in(leat_graph *g, leat_out target)
{
    compiled k;
    COMPILE(&k, g, &((leat_request){.targets = &target, .n_targets = 1}), leat_pass_fuse_cwise,
            leat_pass_fuse_apply, leat_pass_sweep);
    int n = count_op(&k, "_FusedApply") + count_op(&k, "_FusedResourceApply");
    compiled_free(&k);
    return n;
}

static leat_out ramp(leat_graph *g, leat_dtype t, leat_shape s, double from, double step)
{
    leat_tensor *x = NULL;
    CHECK_OK(leat_tensor_new(t, s, &x));
    for (int64_t i = 0; i < x->count; i++)
        if (t == LEAT_DOUBLE)
            ((double *)x->data)[i] = from + step * (double)(i % 97);
        else
            ((float *)x->data)[i] = (float)(from + step * (double)(i % 97));
    leat_out y = leat_const(g, x);
    leat_tensor_unref(x);
    return y;
}

typedef struct update {
    leat_graph *g;
    leat_out vars[4], op, init;
    int n_vars;
    bool counts; /* has a scalar of another type */
} update;

/* An update of variables of shape s; its gradient is a tree that reads the first of them. */
static update build(const leat_op_info *op, leat_dtype t, leat_shape s)
{
    update u = {.g = leat_graph_new()};
    leat_arg args[16] = {{0}};
    int n = 0;
    leat_out tree = {0};
    for (int i = 0; i < op->n_in; i++) {
        const leat_arg_info *in = &op->in[i];
        if (in->is_ref || in->type == LEAT_RESOURCE) {
            leat_out v = leat_variable(u.g, in->name, ramp(u.g, t, s, 0.3 + i, 0.01),
                                       .use_resource = !in->is_ref);
            u.vars[u.n_vars++] = v;
            args[n++] = leat_in(leat_variable_ref(v));
            if (i == 0)
                tree = leat_add(leat_mul(v, leat_scalar(u.g, t, 0.01)),
                                leat_mul(ramp(u.g, t, s, -0.4, 0.02), leat_scalar(u.g, t, 0.5)));
        } else if (strcmp(in->name, "grad") == 0 || strcmp(in->name, "delta") == 0 ||
                   strcmp(in->name, "value") == 0) {
            args[n++] = leat_in(tree);
        } else if (strcmp(in->name, "global_step") == 0) {
            args[n++] = leat_in(leat_scalar(u.g, LEAT_INT64, 3));
            u.counts = true;
        } else {
            bool power = strcmp(in->name, "lr_power") == 0;
            args[n++] = leat_in(leat_scalar(u.g, t, power ? -0.5 : 0.1 + 0.01 * i));
        }
    }
    u.op = leat_op_at(LEAT_AT, u.g, op->def->name, args);
    u.init = leat_global_variables_initializer(u.g);
    return u;
}

/* Its variables after three updates, each with what was fetched before it still at hand. */
static void run(update *u, bool plain, leat_tensor **values)
{
    leat_session *s;
    CHECK_OK(leat_session_open(u->g, &s, .no_optimization = plain, .intra_op_threads = 3));
    CHECK_OK(leat_session_run(s, LEAT_NO_FEED, LEAT_NO_FETCH, LEAT_TARGET(u->init)));
    for (int i = 0; i < 3; i++) {
        leat_tensor *before = NULL, *copy = NULL;
        CHECK_OK(
            leat_session_run(s, LEAT_NO_FEED, LEAT_FETCH({u->vars[0], &before}), LEAT_NO_TARGET));
        CHECK_OK(leat_tensor_clone(NULL, before, &copy));
        if (i == 2) /* the last update is done in place */
            leat_tensor_unref(before);
        CHECK_OK(leat_session_run(s, LEAT_NO_FEED, LEAT_NO_FETCH, LEAT_TARGET(u->op)));
        if (i < 2) {
            CHECK(same_bytes(before, copy));
            leat_tensor_unref(before);
        }
        leat_tensor_unref(copy);
    }
    for (int i = 0; i < u->n_vars; i++)
        CHECK_OK(leat_session_run(s, LEAT_NO_FEED, LEAT_FETCH({u->vars[i], &values[i]}),
                                  LEAT_NO_TARGET));
    leat_session_close(s);
}

static void every_op(void)
{
    const leat_shape shapes[] = {leat_shape(), leat_shape(3, 5), leat_shape(300, 401)};
    const leat_dtype types[] = {LEAT_FLOAT, LEAT_DOUBLE};
    int ops = 0;
    for (int i = 0; i < leat_op_count(); i++) {
        const leat_op_info *op = leat_op_at_index(i);
        ops += is_update(op);
        for (int s = 0; s < 3 && is_update(op); s++)
            for (int t = 0; t < 2; t++) {
                update u = build(op, types[t], shapes[s]);
                leat_tensor *values[2][4] = {{NULL}};
                CHECK_INT(fused_in(u.g, u.op), !u.counts);
                run(&u, true, values[0]);
                run(&u, false, values[1]);
                for (int v = 0; v < u.n_vars; v++) {
                    CHECK(same_bytes(values[0][v], values[1][v]));
                    leat_tensor_unref(values[0][v]);
                    leat_tensor_unref(values[1][v]);
                }
                leat_graph_free(u.g);
            }
    }
    CHECK(ops >= 30);
}

static void not_these(void)
{
    leat_graph *g = leat_graph_new();
    leat_out v = leat_variable(g, "v", ramp(g, LEAT_FLOAT, leat_shape(4), 0, 1)),
             x = leat_placeholder(g, LEAT_FLOAT, leat_shape(4)), ref = leat_variable_ref(v),
             wide = leat_exp(x);
    leat_out plain = leat_op(g, "AssignAdd", leat_in(ref), leat_in(x));
    CHECK_INT(fused_in(g, plain), 0); /* nothing to take in */
    leat_out other = leat_group(g, leat_op(g, "AssignAdd", leat_in(ref), leat_in(wide)),
                                leat_op(g, "AssignSub", leat_in(ref), leat_in(wide)));
    CHECK_INT(fused_in(g, other), 0); /* the value is used twice */
    leat_out one = leat_op(g, "AssignAdd", leat_in(ref), leat_in(leat_neg(x)));
    CHECK_INT(fused_in(g, one), 1); /* a single op is taken */
    static const leat_op_def mine = {.name = "ApplyMine",
                                     .inputs = "var: Ref(T), grad: T",
                                     .outputs = "out: Ref(T)",
                                     .attrs = "T: {float}",
                                     .shape = leat_shape_unchanged,
                                     .grad = leat_grad_missing};
    CHECK_OK(leat_register_op(&mine));
    leat_out theirs = leat_op(g, "ApplyMine", leat_in(ref), leat_in(leat_neg(leat_exp(x))));
    CHECK_INT(fused_in(g, theirs), 0); /* it does not say that it applies a gradient */
    leat_graph_free(g);
}

/* A moving average of what an update has just written: the order stays. */
static void in_order(void)
{
    leat_tensor *values[2] = {NULL, NULL};
    leat_graph *g = leat_graph_new();
    leat_shape shape = leat_shape(20, 30);
    leat_out v = leat_variable(g, "v", ramp(g, LEAT_FLOAT, shape, 0, 1)),
             mean = leat_variable(g, "mean", ramp(g, LEAT_FLOAT, shape, 5, 0));
    leat_out step = leat_op(g, "AssignSub", leat_in(leat_variable_ref(v)),
                            leat_in(leat_mul(v, leat_scalar(g, LEAT_FLOAT, 0.25))));
    leat_out follow = {0};
    leat_with_control(g, step)
    {
        leat_out now = leat_op(g, "Identity", leat_in(leat_variable_ref(v)));
        follow = leat_op(g, "AssignSub", leat_in(leat_variable_ref(mean)),
                         leat_in(leat_mul(leat_sub(mean, now), leat_scalar(g, LEAT_FLOAT, 0.1))));
    }
    leat_out init = leat_global_variables_initializer(g);
    CHECK_INT(fused_in(g, follow), 2);
    for (int i = 0; i < 2; i++) {
        leat_session *s;
        CHECK_OK(leat_session_open(g, &s, .no_optimization = i == 0));
        CHECK_OK(leat_session_run(s, LEAT_NO_FEED, LEAT_NO_FETCH, LEAT_TARGET(init)));
        for (int k = 0; k < 5; k++)
            CHECK_OK(leat_session_run(s, LEAT_NO_FEED, LEAT_NO_FETCH, LEAT_TARGET(follow)));
        CHECK_OK(leat_session_run(s, LEAT_NO_FEED, LEAT_FETCH({mean, &values[i]}), LEAT_NO_TARGET));
        leat_session_close(s);
    }
    CHECK(same_bytes(values[0], values[1]));
    leat_tensor_unref(values[0]);
    leat_tensor_unref(values[1]);
    leat_graph_free(g);
}

/* A variable that has got another shape than was declared: the op's own words. */
static void refused(void)
{
    static const struct {
        const char *op, *words;
    } cases[] = {
        {"AssignSub", "Parameters and update must be the same size"},
        {"ApplyGradientDescent", "var and delta do not have the same shape[2] [4]"},
    };
    for (int i = 0; i < 2; i++) {
        leat_graph *g = leat_graph_new();
        leat_out v = leat_variable(g, "v", ramp(g, LEAT_FLOAT, leat_shape(4), 0, 1)),
                 ref = leat_variable_ref(v), x = leat_placeholder(g, LEAT_FLOAT, leat_shape(4)),
                 y = leat_neg(leat_exp(x)), two = ramp(g, LEAT_FLOAT, leat_shape(2), 0, 1);
        leat_out shrink = leat_op(g, "Assign", leat_in(ref), leat_in(two),
                                  leat_attr_bool("validate_shape", false));
        leat_out update = i == 0 ? leat_op(g, cases[i].op, leat_in(ref), leat_in(y))
                                 : leat_op(g, cases[i].op, leat_in(ref),
                                           leat_in(leat_scalar(g, LEAT_FLOAT, 0.1)), leat_in(y));
        leat_tensor *fed = floats(leat_shape(4), (const float[]){1, 2, 3, 4});
        leat_session *s;
        CHECK_OK(leat_session_open(g, &s));
        CHECK_ERROR(leat_session_run(s, LEAT_FEED({x, fed}), LEAT_NO_FETCH, LEAT_TARGET(update)),
                    FAILED_PRECONDITION, "uninitialized value v");
        CHECK_OK(leat_session_run(s, LEAT_NO_FEED, LEAT_NO_FETCH, LEAT_TARGET(shrink)));
        CHECK_ERROR(leat_session_run(s, LEAT_FEED({x, fed}), LEAT_NO_FETCH, LEAT_TARGET(update)),
                    INVALID_ARGUMENT, cases[i].words);
        leat_session_close(s);
        leat_tensor_unref(fed);
        leat_graph_free(g);
    }
}

/* A graph from outside may have any such node: what does not fit is refused, by name. */
static void from_outside(void)
{
    static const struct {
        const char *fused, *op, *words;
    } cases[] = {
        {"_FusedApply", "MatMul", "_FusedApply does not know how to apply 'MatMul'"},
        {"_FusedApply", "ApplyNothing", "does not know how to apply 'ApplyNothing'"},
        {"_FusedApply", "ApplyMomentum", "_FusedApply has not the inputs of ApplyMomentum"},
        {"_FusedApply", "SparseApplyAdagrad", "does not know how to apply 'SparseApplyAdagrad'"},
        {"_FusedApply", "AssignAddVariableOp", "has not the inputs of AssignAddVariableOp"},
        {"_FusedResourceApply", "AssignAdd", "has not the inputs of AssignAdd"},
        {"_FusedApply", "AssignAdd", NULL},
    };
    const char *const steps[] = {"Neg"};
    const int64_t operands[] = {0, -1};
    for (size_t i = 0; i < sizeof(cases) / sizeof(*cases); i++) {
        leat_graph *g = leat_graph_new();
        leat_out v = leat_variable(g, "v", ramp(g, LEAT_FLOAT, leat_shape(4), 1, 1),
                                   .use_resource = cases[i].fused[6] == 'R'),
                 ref = leat_variable_ref(v), x = ramp(g, LEAT_FLOAT, leat_shape(4), 0, 1);
        leat_out node =
            leat_op(g, cases[i].fused, leat_ins(&ref, 1), leat_ins(NULL, 0), leat_ins(&x, 1),
                    leat_attr_string("op", cases[i].op), leat_attr_strings("ops", steps, 1),
                    leat_attr_ints("operands", operands, 2));
        leat_session *s;
        CHECK_OK(leat_graph_status(g));
        CHECK_OK(leat_session_open(g, &s));
        CHECK_OK(leat_session_run(s, LEAT_NO_FEED, LEAT_NO_FETCH,
                                  LEAT_TARGET(leat_global_variables_initializer(g))));
        if (cases[i].words)
            CHECK_ERROR(leat_session_run(s, LEAT_NO_FEED, LEAT_NO_FETCH, LEAT_TARGET(node)),
                        INVALID_ARGUMENT, cases[i].words);
        else
            CHECK_OK(leat_session_run(s, LEAT_NO_FEED, LEAT_NO_FETCH, LEAT_TARGET(node)));
        leat_session_close(s);
        leat_graph_free(g);
    }
}

int main(int argc, char **argv)
{
    return RUN(argc, argv, {"every_op", every_op}, {"not_these", not_these}, {"in_order", in_order},
               {"refused", refused}, {"from_outside", from_outside});
}
