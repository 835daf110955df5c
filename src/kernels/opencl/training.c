/* training.c -- the training ops, and AssignAdd and AssignSub. The rules are the CPU's
 * (cpu/training_rules.inc). As there, the meaning of an input follows from the op's definition:
 * variables are first, the gradient is the input that the definition names, or "grad" with its
 * rows' "indices"; all others are scalars, which stay in the device's memory. */
#include <stdio.h>

#include "kernels/opencl/opencl.h"
#include "runtime/variable_lock.h"

extern const leat_cl_text leat_cl_text_training_types, leat_cl_text_training_rules,
    leat_cl_text_training_run;
static const leat_cl_text *const texts[] = {
    &leat_cl_text_training_types, &leat_cl_text_training_rules, &leat_cl_text_training_run, NULL};

enum { MAX_VARS = 4, MAX_SCALARS = 6 };

typedef struct apply_state {
    int n_vars, n_scalars, grad, indices; /* indices: 0 if there are none */
    int scalar[MAX_SCALARS];
    char options[128];
} apply_state;

/* The rules by the names of the ops, without Apply, SparseApply and Resource in front. */
static const struct {
    const char *op, *rule;
} rules[] = {
    {"GradientDescent", "gradient_descent"},
    {"ProximalGradientDescent", "proximal_gradient_descent"},
    {"Momentum", "momentum"},
    {"KerasMomentum", "keras_momentum"},
    {"Adam", "adam"},
    {"AdamWithAmsgrad", "amsgrad"},
    {"AdaMax", "adamax"},
    {"Adagrad", "adagrad"},
    {"AdagradV2", "adagrad_v2"},
    {"AdagradDA", "adagrad_da"},
    {"ProximalAdagrad", "proximal_adagrad"},
    {"RMSProp", "rms_prop"},
    {"CenteredRMSProp", "centered_rms_prop"},
    {"Adadelta", "adadelta"},
    {"AddSign", "add_sign"},
    {"PowerSign", "power_sign"},
};

static const char *rule_of(const char *op)
{
    const char *at = strstr(op, "Apply");
    if (strncmp(op, "Assign", 6) == 0)
        return op[6] == 'A' ? "assign_add" : "assign_sub";
    for (size_t i = 0; at && i < sizeof rules / sizeof *rules; i++)
        if (strcmp(at + 5, rules[i].op) == 0)
            return rules[i].rule;
    return NULL;
}

static leat_status init(const leat_node *n, void *state)
{
    apply_state *s = state;
    const leat_op_info *op = n->op;
    for (int i = 0; i < op->n_in; i++) {
        const leat_arg_info *arg = &op->in[i];
        if (arg->is_ref || arg->type == LEAT_RESOURCE)
            s->n_vars++;
        else if ((i > 0 && i == op->gradient) || strcmp(arg->name, "grad") == 0)
            s->grad = i;
        else if (strcmp(arg->name, "indices") == 0)
            s->indices = i;
        else if (s->n_scalars < MAX_SCALARS)
            s->scalar[s->n_scalars++] = i;
    }
    const char *rule = rule_of(op->def->name);
    LEAT_REQUIRE(rule && s->grad && s->n_vars >= 1 && s->n_vars <= MAX_VARS, INTERNAL,
                 "'%s' has no rule for GPUs", op->def->name);
    const bool flag = leat_node_bool(n, "use_nesterov") || leat_node_bool(n, "update_slots");
    const bool wide = s->indices && leat_out_dtype(leat_node_input(n, s->indices)) == LEAT_INT64;
    snprintf(s->options, sizeof s->options,
             "-DRULE_NAME=%s -DVARS=%d -DSCALARS=%d -DFLAG=%d -DINDEX=%s", rule, s->n_vars,
             s->n_scalars, flag, wide ? "long" : "int");
    return NULL;
}

static leat_status check_dense(const apply_state *s, const leat_op_info *op, const leat_shape *var,
                               const leat_tensor *grad)
{
    if (strcmp(op->in[s->grad].name, "value") == 0)
        return leat_update_check(var, &grad->shape, op->in[0].is_ref);
    LEAT_REQUIRE(leat_shape_equal(var, &grad->shape), INVALID_ARGUMENT,
                 "var and %s do not have the same shape%s %s", op->in[s->grad].name,
                 leat_shape_show(var).s, leat_shape_show(&grad->shape).s);
    return NULL;
}

static leat_status check_rows(const leat_shape *var, const leat_tensor *grad,
                              const leat_tensor *indices)
{
    LEAT_REQUIRE(var->rank >= 1, INVALID_ARGUMENT, "var must be at least 1 dimensional");
    LEAT_REQUIRE(indices->shape.rank == 1, INVALID_ARGUMENT, "indices must be one-dimensional");
    LEAT_REQUIRE(grad->shape.rank == var->rank, INVALID_ARGUMENT,
                 "var and grad must have the same rank, got shapes %s and %s",
                 leat_shape_show(var).s, leat_shape_show(&grad->shape).s);
    for (int d = 1; d < var->rank; d++)
        LEAT_REQUIRE(var->dim[d] == grad->shape.dim[d], INVALID_ARGUMENT,
                     "var and grad must match in dimension %d", d);
    LEAT_REQUIRE(grad->shape.dim[0] == indices->count, INVALID_ARGUMENT,
                 "grad must be the same size as indices in the first dimension.");
    return NULL;
}

/* The variables are locked: work is enqueued in the order of the updates. */
static leat_status apply(leat_kernel *k, const apply_state *s, const leat_locked *v)
{
    const leat_op_info *op = k->bound->node->op;
    const leat_tensor *grad = leat_kernel_in(k, s->grad);
    const leat_tensor *indices = s->indices ? leat_kernel_in(k, s->indices) : NULL;
    const leat_shape *var = &v->value[0]->shape;
    for (int i = 1; i < v->n; i++)
        LEAT_REQUIRE(leat_shape_equal(var, &v->value[i]->shape), INVALID_ARGUMENT,
                     "var and %s do not have the same shape%s %s", op->in[i].name,
                     leat_shape_show(var).s, leat_shape_show(&v->value[i]->shape).s);
    LEAT_TRY(indices ? check_rows(var, grad, indices) : check_dense(s, op, var, grad));
    for (int i = 0; i < s->n_scalars; i++) {
        const leat_tensor *h = leat_kernel_in(k, s->scalar[i]);
        LEAT_REQUIRE(h->shape.rank == 0, INVALID_ARGUMENT, "%s is not a scalar: %s",
                     op->in[s->scalar[i]].name, leat_shape_show(&h->shape).s);
    }
    if (!grad->count)
        return NULL;
    leat_cl_launch l =
        leat_cl_begin(leat_cl_of(k), texts, s->options, indices ? "sparse" : "dense");
    for (int i = 0; i < v->n; i++)
        leat_cl_tensor(&l, v->value[i]);
    for (int i = 0; i < s->n_scalars; i++)
        leat_cl_tensor(&l, leat_kernel_in(k, s->scalar[i]));
    leat_cl_tensor(&l, grad);
    if (!indices) {
        leat_cl_int(&l, grad->count);
        return leat_cl_each(&l, grad->count, 1);
    }
    const int64_t row = grad->count / indices->count;
    leat_cl_tensor(&l, indices);
    leat_cl_int(&l, indices->count);
    leat_cl_int(&l, var->dim[0]);
    leat_cl_int(&l, row);
    return leat_cl_each(&l, row, (double)indices->count);
}

static leat_status run(leat_kernel *k)
{
    const apply_state *s = leat_kernel_state(k);
    leat_locked l;
    LEAT_TRY(leat_kernel_lock(k, s->n_vars, LEAT_FLOAT, k->n_in, &l));
    leat_status status = apply(k, s, &l);
    leat_kernel_unlock(&l);
    if (!status && k->n_out)
        leat_kernel_forward(k, 0, 0);
    return status;
}

#define ROW(name, attr)                                                                            \
    {                                                                                              \
        .op = name, .where = {{attr, LEAT_T(FLOAT)}}, .run = run, .init = init,                    \
        .state_size = sizeof(apply_state)                                                          \
    }
#define DENSE(name) ROW("Apply" name, "T"), ROW("ResourceApply" name, "T")
#define SPARSE(name) ROW("SparseApply" name, "T"), ROW("ResourceSparseApply" name, "T")

const leat_kernel_def leat_opencl_training[] = {
    DENSE("GradientDescent"),
    DENSE("ProximalGradientDescent"),
    SPARSE("ProximalGradientDescent"),
    DENSE("Momentum"),
    SPARSE("Momentum"),
    ROW("ResourceApplyKerasMomentum", "T"),
    ROW("ResourceSparseApplyKerasMomentum", "T"),
    DENSE("Adam"),
    ROW("ResourceApplyAdamWithAmsgrad", "T"),
    DENSE("AdaMax"),
    DENSE("Adagrad"),
    SPARSE("Adagrad"),
    DENSE("AdagradV2"),
    SPARSE("AdagradV2"),
    DENSE("ProximalAdagrad"),
    SPARSE("ProximalAdagrad"),
    DENSE("RMSProp"),
    SPARSE("RMSProp"),
    DENSE("CenteredRMSProp"),
    SPARSE("CenteredRMSProp"),
    DENSE("Adadelta"),
    SPARSE("Adadelta"),
    DENSE("AddSign"),
    DENSE("PowerSign"),
    ROW("AssignAdd", "T"),
    ROW("AssignSub", "T"),
    ROW("AssignAddVariableOp", "dtype"),
    ROW("AssignSubVariableOp", "dtype"),
    {0},
};
