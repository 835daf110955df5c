/* training.c -- the training ops: one kernel for all of them and for all their forms.
 *
 * What an input is follows from the op's definition: variables come first (references or handles),
 * "grad" or "delta" is the gradient, "indices" its rows, all else are scalars. The arithmetic of
 * each op is a rule on plain arrays; a sparse form applies it row by row, half and bfloat16 go
 * through it in blocks of floats. Variables are always locked, use_locking or not: who reads must
 * not see half an update. */
#include "core/element.h"
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

typedef struct rule {
    const char *op; /* without Apply, SparseApply ... */
    void (*run_float)(float *const *v, const float *g, int64_t n, const float *h, bool flag);
    void (*run_double)(double *const *v, const double *g, int64_t n, const double *h, bool flag);
    double ns;    /* of one float */
    bool checked; /* lr above 0, l1 and l2 not below, lr_power not above */
} rule;

#define ROW(op, name, ns, checked)                                                                 \
    {                                                                                              \
        op, name##_float, name##_double, ns, checked                                               \
    }
static const rule rules[] = {
    ROW("GradientDescent", gradient_descent, 0.15, false),
    ROW("ProximalGradientDescent", proximal_gradient_descent, 0.5, false),
    ROW("Momentum", momentum, 0.25, false),
    ROW("KerasMomentum", keras_momentum, 0.25, false),
    ROW("Adam", adam, 0.5, false),
    ROW("AdamWithAmsgrad", amsgrad, 0.6, false),
    ROW("AdaMax", adamax, 0.5, false),
    ROW("Adagrad", adagrad, 0.5, false),
    ROW("AdagradV2", adagrad_v2, 0.5, false),
    ROW("AdagradDA", adagrad_da, 0.6, false),
    ROW("ProximalAdagrad", proximal_adagrad, 0.6, true),
    ROW("RMSProp", rms_prop, 0.5, false),
    ROW("CenteredRMSProp", centered_rms_prop, 0.6, false),
    ROW("Adadelta", adadelta, 0.7, false),
    ROW("Ftrl", ftrl, 2, true),
    ROW("FtrlV2", ftrl_v2, 2, true),
    ROW("AddSign", add_sign, 0.4, false),
    ROW("PowerSign", power_sign, 3, false),
};

typedef struct apply_state {
    const rule *rule;
    int n_vars, n_scalars, grad, indices; /* indices: 0 for none */
    int scalar[MAX_SCALARS];              /* inputs */
    bool flag;
} apply_state;

static leat_status apply_init(const leat_node *n, void *state)
{
    apply_state *st = state;
    const char *name = strstr(leat_node_op(n), "Apply") + strlen("Apply");
    for (size_t i = 0; i < sizeof(rules) / sizeof(*rules); i++)
        if (strcmp(rules[i].op, name) == 0)
            st->rule = &rules[i];
    for (int i = 0; i < n->op->n_in; i++) {
        const leat_arg_info *arg = &n->op->in[i];
        if (arg->is_ref || arg->type == LEAT_RESOURCE)
            st->n_vars++;
        else if (strcmp(arg->name, "grad") == 0 || strcmp(arg->name, "delta") == 0)
            st->grad = i;
        else if (strcmp(arg->name, "indices") == 0)
            st->indices = i;
        else
            st->scalar[st->n_scalars++] = i;
    }
    st->flag = leat_node_bool(n, "use_nesterov") || leat_node_bool(n, "update_slots");
    return NULL;
}

/* One run. */
typedef struct apply {
    const apply_state *st;
    const leat_op_info *op;
    leat_dtype dtype;
    char *v[MAX_VARS]; /* of dtype */
    const char *g;
    float hf[MAX_SCALARS];
    double hd[MAX_SCALARS];
} apply;

/* ---- Checks ---- */

static leat_status read_scalar(leat_kernel *k, apply *a, int which)
{
    const char *name = a->op->in[a->st->scalar[which]].name;
    const leat_tensor *t = leat_kernel_in(k, a->st->scalar[which]);
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
    for (int i = 1; i < l->n; i++)
        LEAT_REQUIRE(leat_shape_equal(var, &l->value[i]->shape), INVALID_ARGUMENT,
                     "var and %s do not have the same shape%s %s", a->op->in[i].name,
                     leat_shape_show(var).s, leat_shape_show(&l->value[i]->shape).s);
    LEAT_REQUIRE(a->st->indices || leat_shape_equal(var, &grad->shape), INVALID_ARGUMENT,
                 "var and %s do not have the same shape%s %s", a->op->in[a->st->grad].name,
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

/* n elements of the variables from `to` on, n of the gradient from `from` on. */
static void run_part(const apply *a, int64_t to, int64_t from, int64_t n)
{
    size_t size = leat_element_size(a->dtype);
    char *v[MAX_VARS] = {0};
    for (int i = 0; i < a->st->n_vars; i++)
        v[i] = a->v[i] + (size_t)to * size;
    const char *g = a->g + (size_t)from * size;
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
    run_part(arg, begin, begin, end - begin);
}

/* With the variables locked. */
static leat_status apply_locked(leat_kernel *k, apply *a, const leat_locked *l)
{
    const leat_tensor *grad = leat_kernel_in(k, a->st->grad);
    LEAT_TRY(check_shapes(a, l, grad));
    for (int i = 0; i < a->st->n_scalars; i++)
        LEAT_TRY(read_scalar(k, a, i));
    for (int i = 0; i < l->n; i++)
        a->v[i] = l->value[i]->data;
    a->g = grad->data;
    if (!a->st->indices) {
        leat_kernel_for(k, grad->count, a->st->rule->ns, dense_part, a);
        return NULL;
    }
    const leat_tensor *indices = leat_kernel_in(k, a->st->indices);
    LEAT_TRY(check_rows(l->value[0], grad, indices));
    int64_t row = indices->count > 0 ? grad->count / indices->count : 0;
    for (int64_t i = 0; i < indices->count && row > 0; i++) /* in turn: rows may come twice */
        run_part(a, leat_index_at(indices, i) * row, i * row, row);
    return NULL;
}

static leat_status apply_run(leat_kernel *k)
{
    apply a = {.st = leat_kernel_state(k), .op = leat_kernel_node(k)->op};
    a.dtype = leat_kernel_in(k, a.st->grad)->dtype;
    leat_locked l;
    LEAT_TRY(leat_kernel_lock(k, a.st->n_vars, a.dtype, &l));
    leat_status s = apply_locked(k, &a, &l);
    leat_kernel_unlock(&l);
    if (!s && a.op->in[0].is_ref)
        leat_kernel_forward(k, 0, 0);
    return s;
}

#define KERNEL(name)                                                                               \
    {                                                                                              \
        .op = name, .where = {{"T", LEAT_TYPES_FLOATING}}, .run = apply_run, .init = apply_init,   \
        .state_size = sizeof(apply_state)                                                          \
    }
#define DENSE(name) KERNEL("Apply" name), KERNEL("ResourceApply" name)
#define SPARSE(name) KERNEL("SparseApply" name), KERNEL("ResourceSparseApply" name)

const leat_kernel_def leat_cpu_training[] = {
    DENSE("GradientDescent"),
    DENSE("ProximalGradientDescent"),
    SPARSE("ProximalGradientDescent"),
    DENSE("Momentum"),
    SPARSE("Momentum"),
    KERNEL("ResourceApplyKerasMomentum"),
    KERNEL("ResourceSparseApplyKerasMomentum"),
    DENSE("Adam"),
    KERNEL("ResourceApplyAdamWithAmsgrad"),
    DENSE("AdaMax"),
    DENSE("Adagrad"),
    SPARSE("Adagrad"),
    DENSE("AdagradV2"),
    SPARSE("AdagradV2"),
    DENSE("AdagradDA"),
    SPARSE("AdagradDA"),
    DENSE("ProximalAdagrad"),
    SPARSE("ProximalAdagrad"),
    DENSE("RMSProp"),
    SPARSE("RMSProp"),
    DENSE("CenteredRMSProp"),
    SPARSE("CenteredRMSProp"),
    DENSE("Adadelta"),
    SPARSE("Adadelta"),
    DENSE("Ftrl"),
    SPARSE("Ftrl"),
    DENSE("FtrlV2"),
    SPARSE("FtrlV2"),
    DENSE("AddSign"),
    DENSE("PowerSign"),
    {0},
};
