/* rmsprop.c -- the gradient divided by a running mean of its size, with momentum; centered: by the
 * running variance. Tieleman and Hinton 2012. */
#include "train/optimizer.h"

typedef struct rmsprop {
    leat_optimizer base;
    bool centered;
} rmsprop;

static void create_slots(leat_optimizer *opt, const leat_out *vars, int n)
{
    leat_initializer zeros = leat_zeros_initializer(), ones = leat_ones_initializer();
    for (int i = 0; i < n; i++) {
        leat_optimizer_make_slot(opt, vars[i], "rms", &ones);
        if (((rmsprop *)opt)->centered)
            leat_optimizer_make_slot(opt, vars[i], "mg", &zeros);
        leat_optimizer_make_slot(opt, vars[i], "momentum", &zeros);
    }
}

static leat_out update(leat_optimizer *opt, leat_out var, leat_out grad, leat_out indices)
{
    static const char *const names[2][2] = {{"ApplyRMSProp", "SparseApplyRMSProp"},
                                            {"ApplyCenteredRMSProp", "SparseApplyCenteredRMSProp"}};
    bool centered = ((rmsprop *)opt)->centered, rows = indices.node;
    leat_out in[9];
    int n = 0;
    if (centered)
        in[n++] = leat_variable_ref(leat_optimizer_slot(opt, var, "mg"));
    in[n++] = leat_variable_ref(leat_optimizer_slot(opt, var, "rms"));
    in[n++] = leat_variable_ref(leat_optimizer_slot(opt, var, "momentum"));
    for (int i = 0; i < 4; i++)
        in[n++] = leat_optimizer_hyper(opt, i, leat_variable_dtype(var));
    in[n++] = grad;
    if (rows)
        in[n++] = indices;
    return leat_optimizer_update(opt, names[centered][rows], var, in, n, (leat_arg){0});
}

static leat_out dense(leat_optimizer *opt, leat_out var, leat_out grad)
{
    return update(opt, var, grad, (leat_out){0});
}

static const leat_optimizer_ops ops = {
    .constructor = "leat_rmsprop", .create_slots = create_slots, .dense = dense, .sparse = update};

leat_optimizer *leat_rmsprop_new(const leat_rmsprop_options *o)
{
    rmsprop *opt =
        leat_optimizer_new(sizeof(*opt), &ops, &o->given, o->name, "RMSProp", o->use_locking);
    opt->centered = o->centered;
    leat_optimizer_require(&opt->base, 0, &o->given, "learning_rate", o->learning_rate,
                           o->learning_rate_tensor);
    leat_optimizer_default(&opt->base, 1, &o->given, "decay", o->decay, 0.9);
    leat_optimizer_default(&opt->base, 2, &o->given, "momentum", o->momentum, 0);
    leat_optimizer_default(&opt->base, 3, &o->given, "epsilon", o->epsilon, 1e-10);
    return &opt->base;
}
