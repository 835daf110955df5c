/* gradient_descent.c -- w -= learning_rate * gradient. */
#include "train/optimizer.h"

static leat_out dense(leat_optimizer *opt, leat_out var, leat_out grad)
{
    const leat_out in[] = {leat_optimizer_hyper(opt, 0, leat_variable_dtype(var)), grad};
    return leat_optimizer_update(opt, "ApplyGradientDescent", var, in, 2, (leat_arg){0});
}

static leat_out sparse(leat_optimizer *opt, leat_out var, leat_out rows, leat_out indices)
{
    leat_out rate = leat_optimizer_hyper(opt, 0, leat_variable_dtype(var));
    if (leat_variable_is_resource(var))
        return LEAT_OP3("ResourceScatterAdd", var, indices,
                        leat_py("Mul", "mul", leat_neg(rows), rate));
    return leat_scatter_sub(var, indices, leat_py("Mul", "mul", rows, rate),
                            leat_attr_bool("use_locking", opt->use_locking));
}

static const leat_optimizer_ops ops = {.constructor = "leat_gradient_descent",
                                       .dense = dense,
                                       .sparse = sparse,
                                       .takes_repeated = true};

leat_optimizer *leat_gradient_descent_new(const leat_gradient_descent_options *o)
{
    leat_optimizer *opt = leat_optimizer_new(sizeof(*opt), &ops, &o->given, o->name,
                                             "GradientDescent", o->use_locking);
    leat_optimizer_require(opt, 0, &o->given, "learning_rate", o->learning_rate,
                           o->learning_rate_tensor);
    return opt;
}
