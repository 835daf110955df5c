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
    .create_slots = create_slots, .dense = dense, .sparse = update};

leat_optimizer *leat_rmsprop_new(const leat_rmsprop_options *o)
{
    rmsprop *opt = leat_optimizer_new(sizeof(*opt), &ops, o->name, "RMSProp", o->use_locking);
    leat_hyper *h = opt->base.hyper;
    opt->centered = o->centered;
    h[0] = (leat_hyper){"learning_rate", o->learning_rate, o->learning_rate_tensor, {0}};
    h[1] = (leat_hyper){"decay", o->decay != 0 ? o->decay : 0.9, {0}, {0}};
    h[2] = (leat_hyper){"momentum", o->momentum, {0}, {0}};
    h[3] = (leat_hyper){"epsilon", o->epsilon != 0 ? o->epsilon : 1e-10, {0}, {0}};
    return &opt->base;
}
