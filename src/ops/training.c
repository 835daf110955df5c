/* training.c -- ops that apply a gradient to a variable and its slots, in four forms each: on
 * references (ApplyAdam) or handles (ResourceApplyAdam), with a dense gradient or with one of rows
 * at indices (SparseApply...). */
#include <leat/extend.h>
#include <string.h>

#include "graph/graph_int.h"

static leat_shape variable_shape(leat_infer *c, const leat_arg_info *arg, int i)
{
    leat_dtype t;
    leat_shape s;
    if (arg->type != LEAT_RESOURCE)
        return leat_infer_in(c, i);
    leat_infer_in_handle(c, i, &t, &s);
    return s;
}

/* Rows: as many as indices, each of the shape of the variable's rows. */
static leat_status merge_rows(leat_infer *c, int i, leat_shape *s)
{
    leat_shape grad, indices;
    LEAT_TRY(leat_infer_rank_at_least(c, i, 1, &grad));
    LEAT_TRY(leat_infer_rank(c, i + 1, 1, &indices));
    int64_t rows;
    if (grad.rank < 0)
        return NULL;
    LEAT_TRY(leat_dim_merge(indices.dim[0], grad.dim[0], &rows));
    grad.dim[0] = -1;
    return leat_shape_merge(s, &grad, s);
}

/* Variable, slots and gradient have one shape; all other inputs are scalars. */
static leat_status apply_shape(leat_infer *c)
{
    const leat_op_info *op = leat_infer_node(c)->op;
    leat_shape s = leat_shape_unknown(), unused;
    for (int i = 0; i < op->n_in; i++) {
        const leat_arg_info *arg = &op->in[i];
        if (arg->is_ref || arg->type == LEAT_RESOURCE) {
            leat_shape var = variable_shape(c, arg, i);
            LEAT_TRY(leat_shape_merge(&s, &var, &s));
        } else if (strcmp(arg->name, "grad") == 0 || strcmp(arg->name, "delta") == 0) {
            leat_shape grad = leat_infer_in(c, i);
            if (i + 1 < op->n_in && strcmp(op->in[i + 1].name, "indices") == 0)
                LEAT_TRY(merge_rows(c, i, &s));
            else
                LEAT_TRY(leat_shape_merge(&s, &grad, &s));
        } else if (strcmp(arg->name, "indices") != 0) {
            LEAT_TRY(leat_infer_rank(c, i, 0, &unused));
        }
    }
    leat_infer_out(c, 0, s);
    return NULL;
}

/* Lists of variables, for a form with references and one with handles. */
#define REF(name) name ": Ref(T), "
#define HANDLE(name) name ": resource, "
#define VAR(K) K("var")
#define VAR_ACCUM(K) K("var") K("accum")
#define VAR_M(K) K("var") K("m")
#define VAR_M_V(K) K("var") K("m") K("v")
#define VAR_M_V_VHAT(K) K("var") K("m") K("v") K("vhat")
#define VAR_ACCUM_UPDATE(K) K("var") K("accum") K("accum_update")
#define VAR_ACCUM_LINEAR(K) K("var") K("accum") K("linear")
#define VAR_DA(K) K("var") K("gradient_accumulator") K("gradient_squared_accumulator")
#define VAR_MS_MOM(K) K("var") K("ms") K("mom")
#define VAR_MG_MS_MOM(K) K("var") K("mg") K("ms") K("mom")

/* before and after: scalars around the gradient; more: further attributes of the op. */
#define DENSE(op, vars, before, grad_name, after, more)                                            \
    {                                                                                              \
        .name = "Apply" op, .inputs = vars(REF) before grad_name ": T" after,                      \
        .outputs = "out: Ref(T)", .attrs = "T: numbertype; use_locking: bool = false" more,        \
        .shape = apply_shape, .grad = leat_grad_missing, .gradient = grad_name                     \
    }
#define DENSE_RESOURCE(op, vars, before, grad_name, after, more)                                   \
    {                                                                                              \
        .name = "ResourceApply" op, .inputs = vars(HANDLE) before grad_name ": T" after,           \
        .attrs = "T: numbertype; use_locking: bool = false" more, .shape = apply_shape,            \
        .grad = leat_grad_missing, .flags = LEAT_OP_STATEFUL, .gradient = grad_name                \
    }
#define SPARSE(op, vars, before, after, more)                                                      \
    {                                                                                              \
        .name = "SparseApply" op, .inputs = vars(REF) before "grad: T, indices: Tindices" after,   \
        .outputs = "out: Ref(T)",                                                                  \
        .attrs = "T: numbertype; Tindices: {int32, int64}; use_locking: bool = false" more,        \
        .shape = apply_shape, .grad = leat_grad_missing                                            \
    }
#define SPARSE_RESOURCE(op, vars, before, after, more)                                             \
    {                                                                                              \
        .name = "ResourceSparseApply" op,                                                          \
        .inputs = vars(HANDLE) before "grad: T, indices: Tindices" after,                          \
        .attrs = "T: numbertype; Tindices: {int32, int64}; use_locking: bool = false" more,        \
        .shape = apply_shape, .grad = leat_grad_missing, .flags = LEAT_OP_STATEFUL                 \
    }
#define DENSE_FORMS(op, vars, before, grad_name, after, more)                                      \
    DENSE(op, vars, before, grad_name, after, more),                                               \
        DENSE_RESOURCE(op, vars, before, grad_name, after, more)
#define SPARSE_FORMS(op, vars, before, after, more)                                                \
    SPARSE(op, vars, before, after, more), SPARSE_RESOURCE(op, vars, before, after, more)
#define ALL_FORMS(op, vars, before, after, more)                                                   \
    DENSE_FORMS(op, vars, before, "grad", after, more), SPARSE_FORMS(op, vars, before, after, more)

#define NESTEROV "; use_nesterov: bool = false"
#define UPDATE_SLOTS "; update_slots: bool = true"
#define ADAM_SCALARS "beta1_power: T, beta2_power: T, lr: T, beta1: T, beta2: T, epsilon: T, "
#define RMS_SCALARS "lr: T, rho: T, momentum: T, epsilon: T, "

const leat_op_def leat_ops_training[] = {
    DENSE_FORMS("GradientDescent", VAR, "alpha: T, ", "delta", "", ""),
    DENSE_FORMS("ProximalGradientDescent", VAR, "alpha: T, l1: T, l2: T, ", "delta", "", ""),
    SPARSE_FORMS("ProximalGradientDescent", VAR, "alpha: T, l1: T, l2: T, ", "", ""),
    ALL_FORMS("Momentum", VAR_ACCUM, "lr: T, ", ", momentum: T", NESTEROV),
    DENSE_RESOURCE("KerasMomentum", VAR_ACCUM, "lr: T, ", "grad", ", momentum: T", NESTEROV),
    SPARSE_RESOURCE("KerasMomentum", VAR_ACCUM, "lr: T, ", ", momentum: T", NESTEROV),
    DENSE_FORMS("Adam", VAR_M_V, ADAM_SCALARS, "grad", "", NESTEROV),
    DENSE_RESOURCE("AdamWithAmsgrad", VAR_M_V_VHAT, ADAM_SCALARS, "grad", "", ""),
    DENSE_FORMS("AdaMax", VAR_M_V, "beta1_power: T, lr: T, beta1: T, beta2: T, epsilon: T, ",
                "grad", "", ""),
    ALL_FORMS("Adagrad", VAR_ACCUM, "lr: T, ", "", UPDATE_SLOTS),
    ALL_FORMS("AdagradV2", VAR_ACCUM, "lr: T, epsilon: T, ", "", UPDATE_SLOTS),
    ALL_FORMS("AdagradDA", VAR_DA, "", ", lr: T, l1: T, l2: T, global_step: int64", ""),
    ALL_FORMS("ProximalAdagrad", VAR_ACCUM, "lr: T, l1: T, l2: T, ", "", ""),
    ALL_FORMS("RMSProp", VAR_MS_MOM, RMS_SCALARS, "", ""),
    ALL_FORMS("CenteredRMSProp", VAR_MG_MS_MOM, RMS_SCALARS, "", ""),
    ALL_FORMS("Adadelta", VAR_ACCUM_UPDATE, "lr: T, rho: T, epsilon: T, ", "", ""),
    ALL_FORMS("Ftrl", VAR_ACCUM_LINEAR, "", ", lr: T, l1: T, l2: T, lr_power: T", ""),
    ALL_FORMS("FtrlV2", VAR_ACCUM_LINEAR, "", ", lr: T, l1: T, l2: T, l2_shrinkage: T, lr_power: T",
              ""),
    DENSE_FORMS("AddSign", VAR_M, "lr: T, alpha: T, sign_decay: T, beta: T, ", "grad", "", ""),
    DENSE_FORMS("PowerSign", VAR_M, "lr: T, logbase: T, sign_decay: T, beta: T, ", "grad", "", ""),
    {0},
};
