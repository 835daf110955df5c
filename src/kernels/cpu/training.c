/* training.c -- the training ops: one kernel for all of them and for all their forms.
 *
 * The meaning of an input follows from the op's definition: variables are first (references or
 * handles), the gradient is the input that the definition names, or "grad" with its rows'
 * "indices"; all others are scalars. The arithmetic of each op is a rule on plain arrays; a sparse
 * form applies it row by row, half and bfloat16 are converted to blocks of floats. Variables are
 * always locked, also without use_locking, so that a reader does not see a partial update.
 *
 * _FusedApply and _FusedResourceApply replace such an op, or AssignAdd or AssignSub, and the
 * element-wise ops that compute its gradient: these compute a block of it at a time, so that the
 * gradient is never written to memory. Their inputs are the op's without the gradient, then the
 * tree's. */
#include "core/element.h"
#include "kernels/cpu/cwise_tree.h"
#include "kernels/cpu/update.h"

#define T float
#define RULE(name) name##_float
#define SQRT sqrtf
#define POW powf
#define EXP expf
#include "kernels/cpu/training_rules.inc"
#undef T
#undef RULE
#undef SQRT
#undef POW
#undef EXP
#define T double
#define RULE(name) name##_double
#define SQRT sqrt
#define POW pow
#define EXP exp
#include "kernels/cpu/training_rules.inc"
#undef T

enum { MAX_VARS = 4, MAX_SCALARS = 6, BLOCK = 256 };

#define RULES(X)                                                                                   \
    X(gradient_descent, 0.15, false)                                                               \
    X(proximal_gradient_descent, 0.5, false)                                                       \
    X(momentum, 0.25, false)                                                                       \
    X(keras_momentum, 0.25, false)                                                                 \
    X(adam, 0.5, false)                                                                            \
    X(amsgrad, 0.6, false)                                                                         \
    X(adamax, 0.5, false)                                                                          \
    X(adagrad, 0.5, false)                                                                         \
    X(adagrad_v2, 0.5, false)                                                                      \
    X(adagrad_da, 0.6, false)                                                                      \
    X(proximal_adagrad, 0.6, true)                                                                 \
    X(rms_prop, 0.5, false)                                                                        \
    X(centered_rms_prop, 0.6, false)                                                               \
    X(adadelta, 0.7, false)                                                                        \
    X(ftrl, 2, true)                                                                               \
    X(ftrl_v2, 2, true)                                                                            \
    X(add_sign, 0.4, false)                                                                        \
    X(power_sign, 3, false)
#define RULE_OF(name, ns, checked)                                                                 \
    {                                                                                              \
        name##_float, name##_double, ns, checked                                                   \
    }
#define DEFINE(name, ns, checked) static const leat_apply_rule name = RULE_OF(name, ns, checked);
RULES(DEFINE)
const leat_apply_rule leat_rule_assign_add = RULE_OF(assign_add, 0.15, false);
const leat_apply_rule leat_rule_assign_sub = RULE_OF(assign_sub, 0.15, false);

typedef struct apply_state {
    const leat_op_info *op; /* with a tree: the op that the node replaces */
    const leat_apply_rule *rule;
    int n_vars, n_scalars, grad, indices; /* indices: 0 if there are none */
    int scalar[MAX_SCALARS];              /* indices of inputs of op */
    bool flag;
    /* Steps is NULL if there is no tree; its arguments follow op's other inputs. */
    leat_cwise_tree tree;
} apply_state;

/* The rule of an op's kernel for dtype t. */
static leat_status rule_of(const leat_node *n, const leat_op_info *op, leat_dtype t,
                           const leat_apply_rule **out)
{
    leat_attr types[] = {{.name = "T", .kind = LEAT_ARG_TYPE, .i = t},
                         {.name = "dtype", .kind = LEAT_ARG_TYPE, .i = t}};
    const leat_node like = {.name = n->name, .op = op, .attrs = types, .n_attrs = 2};
    const leat_kernel_def *def;
    bool via_float;
    LEAT_TRY(leat_kernel_find(&like, "CPU", &def, &via_float));
    LEAT_REQUIRE(def->rule, INVALID_ARGUMENT, "%s does not know how to apply '%s'", leat_node_op(n),
                 op->def->name);
    *out = def->rule;
    return NULL;
}

static leat_status find_inputs(apply_state *st)
{
    for (int i = 0; i < st->op->n_in; i++) {
        const leat_arg_info *arg = &st->op->in[i];
        if (arg->is_ref || arg->type == LEAT_RESOURCE)
            st->n_vars++;
        else if ((i > 0 && i == st->op->gradient) || strcmp(arg->name, "grad") == 0)
            st->grad = i;
        else if (strcmp(arg->name, "indices") == 0)
            st->indices = i;
        else if (st->n_scalars < MAX_SCALARS)
            st->scalar[st->n_scalars++] = i;
    }
    int others = st->op->n_in - 1 - (st->indices > 0) - st->n_vars;
    LEAT_REQUIRE(st->n_vars >= 1 && st->n_vars <= MAX_VARS && st->grad && others == st->n_scalars,
                 INVALID_ARGUMENT,
                 "%s must have a gradient, 1 to %d variables and at most %d scalars",
                 st->op->def->name, MAX_VARS, MAX_SCALARS);
    return NULL;
}

leat_status leat_apply_init(const leat_node *n, void *state)
{
    _Static_assert(sizeof(apply_state) <= LEAT_APPLY_STATE, "rows.h says less");
    apply_state *st = state;
    st->op = n->op;
    LEAT_TRY(rule_of(n, n->op, leat_node_type(n, "T"), &st->rule));
    st->flag = leat_node_bool(n, "use_nesterov") || leat_node_bool(n, "update_slots");
    return find_inputs(st);
}

/* A user's graph may have such a node, too. */
static leat_status fused_init(const leat_node *n, void *state)
{
    apply_state *st = state;
    const char *op = leat_node_string(n, "op");
    st->op = leat_op_find(op);
    LEAT_REQUIRE(st->op && st->op->gradient > 0, INVALID_ARGUMENT,
                 "%s does not know how to apply '%s'", leat_node_op(n), op);
    LEAT_TRY(rule_of(n, st->op, leat_node_type(n, "T"), &st->rule));
    LEAT_TRY(find_inputs(st));
    LEAT_REQUIRE(!st->indices && st->op->in[0].is_ref == (n->n_out > 0) &&
                     st->n_vars == leat_node_int(n, "num_vars") &&
                     st->n_scalars == leat_node_int(n, "num_scalars"),
                 INVALID_ARGUMENT, "%s has not the inputs of %s", leat_node_op(n), op);
    st->flag = leat_node_bool(n, "flag");
    return leat_cwise_init(&st->tree, n);
}

static void fused_release(void *state)
{
    leat_cwise_release(&((apply_state *)state)->tree);
}

/* One run. */
typedef struct apply {
    const apply_state *st;
    leat_dtype dtype;
    char *v[MAX_VARS];    /* of dtype */
    const char *g;        /* the gradient; NULL if there is a tree */
    const leat_entry *in; /* the tree's arguments */
    float hf[MAX_SCALARS];
    double hd[MAX_SCALARS];
} apply;

/* ---- Checks ---- */

static leat_status read_scalar(leat_kernel *k, apply *a, int which)
{
    const int i = a->st->scalar[which];
    const char *name = a->st->op->in[i].name;
    const leat_tensor *t = leat_kernel_in(k, i - (a->st->tree.steps && i > a->st->grad));
    bool l = name[0] == 'l' && (name[1] == '1' || name[1] == '2');
    double x = t->count > 0 ? leat_tensor_at(t, 0) : 0;
    bool scalar = t->shape.rank == 0;
    const char *want = "scalar";
    if (a->st->rule->checked && strcmp(name, "lr") == 0)
        want = "positive scalar", scalar = scalar && x > 0;
    else if (a->st->rule->checked && l)
        want = "non-negative scalar", scalar = scalar && x >= 0;
    else if (a->st->rule->checked && strcmp(name, "lr_power") == 0)
        want = "non-positive scalar", scalar = scalar && x <= 0;
    LEAT_REQUIRE(scalar, INVALID_ARGUMENT, "%s%s is not a %s: %s", name,
                 l ? " regularization strength" : "", want, leat_shape_show(&t->shape).s);
    a->hf[which] = (float)x;
    a->hd[which] = x;
    return NULL;
}

static leat_status check_shapes(const apply *a, const leat_locked *l, const leat_tensor *grad)
{
    const leat_shape *var = &l->value[0]->shape;
    const leat_op_info *op = a->st->op;
    for (int i = 1; i < l->n; i++)
        LEAT_REQUIRE(leat_shape_equal(var, &l->value[i]->shape), INVALID_ARGUMENT,
                     "var and %s do not have the same shape%s %s", op->in[i].name,
                     leat_shape_show(var).s, leat_shape_show(&l->value[i]->shape).s);
    if (!grad || a->st->indices)
        return NULL;
    if (strcmp(op->in[a->st->grad].name, "value") == 0)
        return leat_update_check(var, &grad->shape, op->in[0].is_ref);
    LEAT_REQUIRE(leat_shape_equal(var, &grad->shape), INVALID_ARGUMENT,
                 "var and %s do not have the same shape%s %s", op->in[a->st->grad].name,
                 leat_shape_show(var).s, leat_shape_show(&grad->shape).s);
    return NULL;
}

static leat_status check_rows(const leat_tensor *var, const leat_tensor *grad,
                              const leat_tensor *indices)
{
    LEAT_REQUIRE(var->shape.rank >= 1, INVALID_ARGUMENT, "var must be at least 1 dimensional");
    LEAT_REQUIRE(indices->shape.rank == 1, INVALID_ARGUMENT, "indices must be one-dimensional");
    LEAT_REQUIRE(grad->shape.rank == var->shape.rank, INVALID_ARGUMENT,
                 "var and grad must have the same rank, got shapes %s and %s",
                 leat_shape_show(&var->shape).s, leat_shape_show(&grad->shape).s);
    for (int d = 1; d < var->shape.rank; d++)
        LEAT_REQUIRE(var->shape.dim[d] == grad->shape.dim[d], INVALID_ARGUMENT,
                     "var and grad must match in dimension %d", d);
    LEAT_REQUIRE(grad->shape.dim[0] == indices->count, INVALID_ARGUMENT,
                 "grad must be the same size as indices in the first dimension.");
    for (int64_t i = 0; i < indices->count; i++) {
        int64_t row = leat_index_at(indices, i);
        LEAT_REQUIRE((uint64_t)row < (uint64_t)var->shape.dim[0], INVALID_ARGUMENT,
                     "Index %lld at offset %lld in indices is out of range", (long long)row,
                     (long long)i);
    }
    return NULL;
}

/* ---- Arithmetic ---- */

static void widen(leat_dtype t, const void *from, float *to, int64_t n)
{
    for (int64_t i = 0; i < n; i++)
        to[i] = t == LEAT_HALF ? leat_half_to_float(((const leat_half *)from)[i])
                               : leat_bfloat16_to_float(((const leat_bfloat16 *)from)[i]);
}

static void narrow(leat_dtype t, const float *from, void *to, int64_t n)
{
    for (int64_t i = 0; i < n; i++) {
        if (t == LEAT_HALF)
            ((leat_half *)to)[i] = leat_half_from_float(from[i]);
        else
            ((leat_bfloat16 *)to)[i] = leat_bfloat16_from_float(from[i]);
    }
}

static void run_small(const apply *a, char *const *v, const char *g, int64_t n)
{
    float block[MAX_VARS + 1][BLOCK], *vars[MAX_VARS];
    for (int64_t at = 0; at < n; at += BLOCK) {
        int64_t m = n - at < BLOCK ? n - at : BLOCK;
        for (int i = 0; i < a->st->n_vars; i++)
            widen(a->dtype, v[i] + 2 * at, vars[i] = block[i], m);
        widen(a->dtype, g + 2 * at, block[MAX_VARS], m);
        a->st->rule->run_float(vars, block[MAX_VARS], m, a->hf, a->st->flag);
        for (int i = 0; i < a->st->n_vars; i++)
            narrow(a->dtype, block[i], v[i] + 2 * at, m);
    }
}

/* Updates n elements of the variables from `to` on; g is the gradient's elements. */
static void run_part(const apply *a, int64_t to, const char *g, int64_t n)
{
    size_t size = leat_element_size(a->dtype);
    char *v[MAX_VARS] = {0};
    for (int i = 0; i < a->st->n_vars; i++)
        v[i] = a->v[i] + (size_t)to * size;
    if (a->dtype == LEAT_FLOAT) {
        float *const vars[] = {(void *)v[0], (void *)v[1], (void *)v[2], (void *)v[3]};
        a->st->rule->run_float(vars, (const void *)g, n, a->hf, a->st->flag);
    } else if (a->dtype == LEAT_DOUBLE) {
        double *const vars[] = {(void *)v[0], (void *)v[1], (void *)v[2], (void *)v[3]};
        a->st->rule->run_double(vars, (const void *)g, n, a->hd, a->st->flag);
    } else {
        run_small(a, v, g, n);
    }
}

static void dense_part(void *arg, int64_t begin, int64_t end)
{
    const apply *a = arg;
    run_part(a, begin, a->g + (size_t)begin * leat_element_size(a->dtype), end - begin);
}

static void tree_part(void *arg, int64_t begin, int64_t end)
{
    const apply *a = arg;
    _Alignas(64) char g[LEAT_CWISE_BLOCK * sizeof(double)];
    for (int64_t at = begin; at < end; at += LEAT_CWISE_BLOCK) {
        int64_t n = end - at < LEAT_CWISE_BLOCK ? end - at : LEAT_CWISE_BLOCK;
        leat_cwise_block(&a->st->tree, a->in, at, n, g);
        run_part(a, at, g, n);
    }
}

static leat_status sparse_rows(leat_kernel *k, apply *a, const leat_tensor *var,
                               const leat_tensor *grad)
{
    const leat_tensor *indices = leat_kernel_in(k, a->st->indices);
    LEAT_TRY(check_rows(var, grad, indices));
    int64_t row = indices->count > 0 ? grad->count / indices->count : 0;
    size_t bytes = (size_t)row * leat_element_size(a->dtype);
    for (int64_t i = 0; i < indices->count && row > 0; i++) /* in order: a row may occur twice */
        run_part(a, leat_index_at(indices, i) * row, a->g + (size_t)i * bytes, row);
    return NULL;
}

/* The variables are locked. grad is NULL for a tree, whose shapes were checked. */
static leat_status apply_locked(leat_kernel *k, apply *a, const leat_locked *l,
                                const leat_tensor *grad)
{
    const apply_state *st = a->st;
    LEAT_TRY(check_shapes(a, l, grad));
    for (int i = 0; i < st->n_scalars; i++)
        LEAT_TRY(read_scalar(k, a, i));
    for (int i = 0; i < l->n; i++)
        a->v[i] = l->value[i]->data;
    int64_t n = l->value[0]->count;
    if (!grad) {
        leat_kernel_for(k, n, st->tree.unit_ns + st->rule->unit_ns, tree_part, a);
        return NULL;
    }
    a->g = grad->data;
    if (st->indices)
        return sparse_rows(k, a, l->value[0], grad);
    leat_kernel_for(k, n, st->rule->unit_ns, dense_part, a);
    return NULL;
}

leat_status leat_apply_run(leat_kernel *k)
{
    apply a = {.st = leat_kernel_state(k)};
    const leat_tensor *grad = leat_kernel_in(k, a.st->grad);
    a.dtype = grad->dtype;
    leat_locked l;
    LEAT_TRY(leat_kernel_lock(k, a.st->n_vars, a.dtype, k->n_in, &l));
    leat_status s = apply_locked(k, &a, &l, grad);
    leat_kernel_unlock(&l);
    if (!s && a.st->op->in[0].is_ref)
        leat_kernel_forward(k, 0, 0);
    return s;
}

/* An argument may be a variable's own value: each element is read before it is written. */
static leat_status fused_run(leat_kernel *k)
{
    apply a = {.st = leat_kernel_state(k)};
    const int first = a.st->n_vars + a.st->n_scalars;
    a.in = k->in + first;
    a.dtype = a.in[0].tensor->dtype;
    leat_locked l;
    LEAT_TRY(leat_kernel_lock(k, a.st->n_vars, a.dtype, first, &l));
    leat_tensor *grad = NULL;
    leat_status s = NULL;
    if (!leat_cwise_fits(&a.st->tree, a.in, &l.value[0]->shape))
        s = leat_cwise_whole(k, &a.st->tree, a.in, &grad);
    if (!s)
        s = apply_locked(k, &a, &l, grad);
    leat_tensor_unref(grad);
    leat_kernel_unlock(&l);
    if (!s && a.st->op->in[0].is_ref)
        leat_kernel_forward(k, 0, 0);
    return s;
}

#define KERNEL(name, rule_) LEAT_APPLY_KERNEL(name, LEAT_TYPES_FLOATING, &rule_)
#define FUSED(name)                                                                                \
    {                                                                                              \
        .op = name, .where = {{"T", LEAT_T(FLOAT) | LEAT_T(DOUBLE)}}, .run = fused_run,            \
        .init = fused_init, .release = fused_release, .state_size = sizeof(apply_state)            \
    }
#define DENSE(name, rule) KERNEL("Apply" name, rule), KERNEL("ResourceApply" name, rule)
#define SPARSE(name, rule)                                                                         \
    KERNEL("SparseApply" name, rule), KERNEL("ResourceSparseApply" name, rule)

const leat_kernel_def leat_cpu_training[] = {
    DENSE("GradientDescent", gradient_descent),
    DENSE("ProximalGradientDescent", proximal_gradient_descent),
    SPARSE("ProximalGradientDescent", proximal_gradient_descent),
    DENSE("Momentum", momentum),
    SPARSE("Momentum", momentum),
    KERNEL("ResourceApplyKerasMomentum", keras_momentum),
    KERNEL("ResourceSparseApplyKerasMomentum", keras_momentum),
    DENSE("Adam", adam),
    KERNEL("ResourceApplyAdamWithAmsgrad", amsgrad),
    DENSE("AdaMax", adamax),
    DENSE("Adagrad", adagrad),
    SPARSE("Adagrad", adagrad),
    DENSE("AdagradV2", adagrad_v2),
    SPARSE("AdagradV2", adagrad_v2),
    DENSE("AdagradDA", adagrad_da),
    SPARSE("AdagradDA", adagrad_da),
    DENSE("ProximalAdagrad", proximal_adagrad),
    SPARSE("ProximalAdagrad", proximal_adagrad),
    DENSE("RMSProp", rms_prop),
    SPARSE("RMSProp", rms_prop),
    DENSE("CenteredRMSProp", centered_rms_prop),
    SPARSE("CenteredRMSProp", centered_rms_prop),
    DENSE("Adadelta", adadelta),
    SPARSE("Adadelta", adadelta),
    DENSE("Ftrl", ftrl),
    SPARSE("Ftrl", ftrl),
    DENSE("FtrlV2", ftrl_v2),
    SPARSE("FtrlV2", ftrl_v2),
    DENSE("AddSign", add_sign),
    DENSE("PowerSign", power_sign),
    FUSED("_FusedApply"),
    FUSED("_FusedResourceApply"),
    {0},
};
