/* momentum.c -- accum = momentum * accum + gradient; w -= learning_rate * accum; with Nesterov's
 * form if use_nesterov is set. */
#include "train/optimizer.h"

typedef struct momentum {
    leat_optimizer base;
    bool nesterov;
} momentum;

static void create_slots(leat_optimizer *opt, const leat_out *vars, int n)
{
    leat_initializer zeros = leat_zeros_initializer();
    for (int i = 0; i < n; i++)
        leat_optimizer_make_slot(opt, vars[i], "momentum", &zeros);
}

/* A NULL node as indices: the gradient is dense. */
static leat_out update(leat_optimizer *opt, leat_out var, leat_out grad, leat_out indices)
{
    leat_dtype t = leat_variable_dtype(var);
    leat_out in[5] = {leat_variable_ref(leat_optimizer_slot(opt, var, "momentum")),
                      leat_optimizer_hyper(opt, 0, t), grad, indices};
    int n = indices.node ? 4 : 3;
    in[n++] = leat_optimizer_hyper(opt, 1, t);
    return leat_optimizer_update(opt, indices.node ? "SparseApplyMomentum" : "ApplyMomentum", var,
                                 in, n,
                                 leat_attr_bool("use_nesterov", ((momentum *)opt)->nesterov));
}

static leat_out dense(leat_optimizer *opt, leat_out var, leat_out grad)
{
    return update(opt, var, grad, (leat_out){0});
}

static const leat_optimizer_ops ops = {
    .constructor = "leat_momentum", .create_slots = create_slots, .dense = dense, .sparse = update};

leat_optimizer *leat_momentum_new(const leat_momentum_options *o)
{
    momentum *opt =
        leat_optimizer_new(sizeof(*opt), &ops, &o->given, o->name, "Momentum", o->use_locking);
    opt->nesterov = o->use_nesterov;
    leat_optimizer_require(&opt->base, 0, &o->given, "learning_rate", o->learning_rate,
                           o->learning_rate_tensor);
    leat_optimizer_require(&opt->base, 1, &o->given, "momentum", o->momentum, o->momentum_tensor);
    return &opt->base;
}
