/* adagrad.c -- accum += gradient^2; w -= learning_rate * gradient / sqrt(accum). Duchi et al.
 * 2011. */
#include "train/optimizer.h"

typedef struct adagrad {
    leat_optimizer base;
    double first; /* initial value of the accumulators */
} adagrad;

static void create_slots(leat_optimizer *opt, const leat_out *vars, int n)
{
    leat_initializer first = leat_constant_initializer(((adagrad *)opt)->first);
    if (n && !(first.a > 0))
        leat_graph_fail(leat_graph_of(vars[0]), (leat_loc){0},
                        leat_error(INVALID_ARGUMENT,
                                   "initial_accumulator_value must be positive: %g", first.a));
    for (int i = 0; i < n; i++)
        leat_optimizer_make_slot(opt, vars[i], "accumulator", &first);
}

static leat_out update(leat_optimizer *opt, leat_out var, leat_out grad, leat_out indices)
{
    const leat_out in[4] = {leat_variable_ref(leat_optimizer_slot(opt, var, "accumulator")),
                            leat_optimizer_hyper(opt, 0, leat_variable_dtype(var)), grad, indices};
    bool rows = indices.node;
    return leat_optimizer_update(opt, rows ? "SparseApplyAdagrad" : "ApplyAdagrad", var, in,
                                 rows ? 4 : 3, (leat_arg){0});
}

static leat_out dense(leat_optimizer *opt, leat_out var, leat_out grad)
{
    return update(opt, var, grad, (leat_out){0});
}

static const leat_optimizer_ops ops = {
    .constructor = "leat_adagrad", .create_slots = create_slots, .dense = dense, .sparse = update};

leat_optimizer *leat_adagrad_new(const leat_adagrad_options *o)
{
    adagrad *opt =
        leat_optimizer_new(sizeof(*opt), &ops, &o->given, o->name, "Adagrad", o->use_locking);
    opt->first =
        leat_given_or(&o->given, "initial_accumulator_value", o->initial_accumulator_value, 0.1);
    leat_optimizer_require(&opt->base, 0, &o->given, "learning_rate", o->learning_rate,
                           o->learning_rate_tensor);
    return &opt->base;
}
