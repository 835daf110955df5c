/* adam.c -- Adam, Kingma and Ba 2015: running means m of the gradient and v of its square, both
 * corrected, by the powers of the betas, for their initial value of zero. */
#include <stdlib.h>
#include <string.h>

#include "core/alloc.h"
#include "train/optimizer.h"

enum { LEARNING_RATE, BETA1, BETA2, EPSILON };

/* The order of the names "name:0", by which TensorFlow sorts: it determines the device of the
 * powers. */
static int compare_names(leat_out a, leat_out b)
{
    const char *x = a.node->name, *y = b.node->name;
    while (*x && *x == *y)
        x++, y++;
    return (*x ? (unsigned char)*x : ':') - (*y ? (unsigned char)*y : ':');
}

static void create_slots(leat_optimizer *opt, const leat_out *vars, int n)
{
    leat_initializer zeros = leat_zeros_initializer();
    leat_out first = vars[0];
    for (int i = 1; i < n; i++)
        if (compare_names(vars[i], first) < 0)
            first = vars[i];
    leat_optimizer_make_own(opt, first, "beta1_power", opt->hyper[BETA1].value);
    leat_optimizer_make_own(opt, first, "beta2_power", opt->hyper[BETA2].value);
    for (int i = 0; i < n; i++) {
        leat_optimizer_make_slot(opt, vars[i], "m", &zeros);
        leat_optimizer_make_slot(opt, vars[i], "v", &zeros);
    }
}

/* The current value of a power; for a resource variable a new read, because its value is not read
 * implicitly. */
static leat_out power(leat_optimizer *opt, leat_out var, const char *name)
{
    leat_out v = leat_optimizer_make_own(opt, var, name, 0);
    if (!leat_variable_is_resource(v))
        return v;
    return LEAT_OP1("ReadVariableOp", leat_variable_ref(v), leat_attr_type("dtype", LEAT_FLOAT));
}

static leat_out dense(leat_optimizer *opt, leat_out var, leat_out grad)
{
    leat_dtype t = leat_variable_dtype(var);
    const leat_out in[] = {
        leat_variable_ref(leat_optimizer_slot(opt, var, "m")),
        leat_variable_ref(leat_optimizer_slot(opt, var, "v")),
        leat_cast(power(opt, var, "beta1_power"), t),
        leat_cast(power(opt, var, "beta2_power"), t),
        leat_optimizer_hyper(opt, LEARNING_RATE, t),
        leat_optimizer_hyper(opt, BETA1, t),
        leat_optimizer_hyper(opt, BETA2, t),
        leat_optimizer_hyper(opt, EPSILON, t),
        grad,
    };
    return leat_optimizer_update(opt, "ApplyAdam", var, in, 9, (leat_arg){0});
}

/* slot = slot * beta, then slot[indices] += rows * (1 - beta). Gives the new value. */
static leat_out decay_and_add(leat_optimizer *opt, leat_out slot, leat_out beta, leat_out indices,
                              leat_out rows)
{
    leat_graph *g = leat_graph_of(slot);
    leat_out ref = leat_variable_ref(slot), y = {0};
    bool resource = leat_variable_is_resource(slot);
    leat_out added = leat_py("Mul", "mul", rows, leat_py_left("Sub", "sub", 1, beta));
    leat_out faded = leat_py("Mul", "mul", leat_variable_value(slot), beta);
    leat_out decayed =
        resource ? LEAT_OP2("AssignVariableOp", ref, faded)
                 : leat_assign(ref, faded, leat_attr_bool("use_locking", opt->use_locking));
    leat_with_control(g, decayed)
    {
        if (!resource) {
            y = leat_scatter_add(ref, indices, added,
                                 leat_attr_bool("use_locking", opt->use_locking));
        } else {
            leat_out scattered = LEAT_OP3("ResourceScatterAdd", ref, indices, added);
            y = LEAT_OP1("ReadVariableOp", ref, leat_attr_type("dtype", leat_out_dtype(rows)),
                         leat_after(scattered));
        }
    }
    return y;
}

/* All of m and v decay, so all of the variable changes; only the gradient's rows are added to
 * them. */
static leat_out sparse(leat_optimizer *opt, leat_out var, leat_out rows, leat_out indices)
{
    leat_dtype t = leat_variable_dtype(var);
    leat_out power1 = leat_cast(power(opt, var, "beta1_power"), t);
    leat_out power2 = leat_cast(power(opt, var, "beta2_power"), t);
    leat_out rate = leat_optimizer_hyper(opt, LEARNING_RATE, t);
    leat_out root = leat_sqrt(leat_py_left("Sub", "sub", 1, power2));
    rate = leat_py("RealDiv", "truediv", leat_py("Mul", "mul", rate, root),
                   leat_py_left("Sub", "sub", 1, power1));
    leat_out m = decay_and_add(opt, leat_optimizer_slot(opt, var, "m"),
                               leat_optimizer_hyper(opt, BETA1, t), indices, rows);
    leat_out v =
        decay_and_add(opt, leat_optimizer_slot(opt, var, "v"), leat_optimizer_hyper(opt, BETA2, t),
                      indices, leat_py("Mul", "mul", rows, rows));
    leat_out size = leat_py("AddV2", "add", leat_sqrt(v), leat_optimizer_hyper(opt, EPSILON, t));
    leat_out step = leat_py("RealDiv", "truediv", leat_py("Mul", "mul", rate, m), size);
    leat_out moved =
        leat_variable_is_resource(var)
            ? LEAT_OP2("AssignSubVariableOp", var, step)
            : leat_assign_sub(var, step, leat_attr_bool("use_locking", opt->use_locking));
    return leat_group(leat_graph_of(var), moved, m, v);
}

static leat_out fade_power(leat_optimizer *opt, leat_out var, const char *name, int beta)
{
    leat_out x = leat_py("Mul", "mul", power(opt, var, name), opt->hyper[beta].made);
    leat_out ref = leat_variable_ref(leat_optimizer_make_own(opt, var, name, 0));
    if (leat_variable_is_resource(ref))
        return LEAT_OP2("AssignVariableOp", ref, x);
    return leat_assign(ref, x, leat_attr_bool("use_locking", opt->use_locking));
}

/* The powers are updated after all variables. */
static leat_out finish(leat_optimizer *opt, leat_graph *g, leat_out *updates, int n,
                       const char *name)
{
    if (g->status || n == 0)
        return (leat_out){g->poison, 0};
    leat_out *all = leat_new_array(leat_out, n + 2);
    memcpy(all, updates, sizeof(*all) * (size_t)n);
    leat_out with = leat_variable_ref(leat_optimizer_make_own(opt, updates[0], "beta1_power", 0));
    leat_control_enter(g, updates, n);
    leat_with_colocate(g, with)
    {
        all[n] = fade_power(opt, with, "beta1_power", BETA1);
        all[n + 1] = fade_power(opt, with, "beta2_power", BETA2);
    }
    leat_control_leave(g);
    leat_out done = leat_group_at(LEAT_AT, g, all, n + 2, name);
    free(all);
    return done;
}

static const leat_optimizer_ops ops = {.constructor = "leat_adam",
                                       .create_slots = create_slots,
                                       .dense = dense,
                                       .sparse = sparse,
                                       .finish = finish};

leat_optimizer *leat_adam_new(const leat_adam_options *o)
{
    leat_optimizer *opt =
        leat_optimizer_new(sizeof(*opt), &ops, &o->given, o->name, "Adam", o->use_locking);
    leat_optimizer_default(opt, LEARNING_RATE, &o->given, "learning_rate", o->learning_rate, 0.001);
    opt->hyper[LEARNING_RATE].given = o->learning_rate_tensor;
    leat_optimizer_default(opt, BETA1, &o->given, "beta1", o->beta1, 0.9);
    leat_optimizer_default(opt, BETA2, &o->given, "beta2", o->beta2, 0.999);
    leat_optimizer_default(opt, EPSILON, &o->given, "epsilon", o->epsilon, 1e-8);
    return opt;
}
