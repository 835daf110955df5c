/* schedule.c -- learning rates as functions of the step. All are computed in float, from a step
 * of any integer type. */
#include <math.h>

#include "train/optimizer.h"

typedef struct schedule {
    leat_graph *g;
    leat_out rate, step; /* both float */
    const leat_decay_options *o;
} schedule;

static leat_out number(const schedule *s, double v, const char *name)
{
    return leat_py_number(s->g, LEAT_FLOAT, v, name);
}

/* step / decay_steps, rounded down if staircase is set. */
static leat_out periods(const schedule *s)
{
    leat_out steps = number(s, s->o->decay_steps, "decay_steps");
    leat_out p = leat_py("RealDiv", "truediv", s->step, steps);
    return s->o->staircase ? leat_floor(p) : p;
}

static leat_out exponential(const schedule *s)
{
    leat_out power = leat_pow(number(s, s->o->decay_rate, "decay_rate"), periods(s));
    return leat_mul(s->rate, power, leat_name(leat_name_scope(s->g)));
}

static leat_out natural_exp(const schedule *s)
{
    leat_out x = leat_mul(number(s, -s->o->decay_rate, "Neg"), periods(s));
    return leat_mul(s->rate, leat_exp(x), leat_name(leat_name_scope(s->g)));
}

static leat_out inverse_time(const schedule *s)
{
    leat_out x = leat_mul(number(s, s->o->decay_rate, "decay_rate"), periods(s));
    return leat_div(s->rate, leat_add(number(s, 1, "Const"), x), leat_name(leat_name_scope(s->g)));
}

static leat_out polynomial(const schedule *s)
{
    const leat_decay_options *o = s->o;
    double last = leat_given_or(&o->given, "end_learning_rate", o->end_learning_rate, 0.0001);
    leat_out end = number(s, last, "end_learning_rate");
    leat_out power = number(s, leat_given_or(&o->given, "power", o->power, 1), "power");
    leat_out steps = number(s, o->decay_steps, "decay_steps"), step = s->step;
    if (o->cycle) { /* the least multiple of decay_steps that is not below the step and not 0 */
        leat_out zero = leat_py_right("Equal", "Equal", step, 0);
        leat_out times = leat_ceil(leat_py("RealDiv", "truediv", step, steps));
        steps = leat_mul(steps, leat_select(zero, number(s, 1, "one"), times));
    } else {
        step = leat_minimum(step, steps);
    }
    leat_out left = leat_py_left("Sub", "sub", 1, leat_div(step, steps));
    leat_out range = leat_py("Sub", "sub", s->rate, end);
    return leat_add(leat_mul(range, leat_pow(left, power)), end, leat_name(leat_name_scope(s->g)));
}

typedef struct formula {
    const char *constructor, *name;
    leat_out (*build)(const schedule *s);
    bool no_decay_rate; /* the formula does not use decay_rate */
} formula;

static leat_status check(const formula *f, const leat_decay_options *o)
{
    LEAT_TRY(leat_require_given(&o->given, f->constructor, "learning_rate", o->learning_rate));
    LEAT_TRY(leat_require_given(&o->given, f->constructor, "decay_steps", o->decay_steps));
    if (!f->no_decay_rate)
        LEAT_TRY(leat_require_given(&o->given, f->constructor, "decay_rate", o->decay_rate));
    LEAT_REQUIRE(o->decay_steps > 0, INVALID_ARGUMENT, "%s: decay_steps must be positive, got %g",
                 f->constructor, o->decay_steps);
    return NULL;
}

static leat_out build(leat_loc at, leat_out step, const leat_decay_options *o, formula f)
{
    if (!step.node || !leat_out_ok(step))
        return step;
    schedule s = {.g = leat_graph_of(step), .o = o};
    leat_loc outer = leat_at_enter(s.g, at);
    leat_out y = {0};
    leat_graph_fail(s.g, at, check(&f, o));
    leat_with_name(s.g, o->name ? o->name : f.name)
    {
        s.rate = number(&s, o->learning_rate, "learning_rate");
        s.step = leat_cast(step, LEAT_FLOAT);
        y = f.build(&s);
    }
    leat_at_leave(s.g, outer);
    return y;
}

leat_out leat_exponential_decay_at(leat_loc at, leat_out step, const leat_decay_options *o)
{
    return build(at, step, o,
                 (formula){"leat_exponential_decay", "ExponentialDecay", exponential, false});
}

leat_out leat_natural_exp_decay_at(leat_loc at, leat_out step, const leat_decay_options *o)
{
    return build(at, step, o,
                 (formula){"leat_natural_exp_decay", "NaturalExpDecay", natural_exp, false});
}

leat_out leat_inverse_time_decay_at(leat_loc at, leat_out step, const leat_decay_options *o)
{
    return build(at, step, o,
                 (formula){"leat_inverse_time_decay", "InverseTimeDecay", inverse_time, false});
}

leat_out leat_polynomial_decay_at(leat_loc at, leat_out step, const leat_decay_options *o)
{
    return build(at, step, o,
                 (formula){"leat_polynomial_decay", "PolynomialDecay", polynomial, true});
}

leat_out leat_piecewise_constant_at(leat_loc at, leat_out step, const double *boundaries,
                                    const double *values, int n)
{
    if (!step.node || !leat_out_ok(step))
        return step;
    leat_graph *g = leat_graph_of(step);
    leat_loc outer = leat_at_enter(g, at);
    leat_out y = {0};
    leat_with_name(g, "PiecewiseConstant")
    {
        y = leat_py_number(g, LEAT_FLOAT, values[n], "value");
        for (int i = n - 1; i >= 0; i--)
            y = leat_select(leat_py_right("LessEqual", "LessEqual", step, boundaries[i]),
                            leat_py_number(g, LEAT_FLOAT, values[i], "value"), y);
    }
    leat_at_leave(g, outer);
    return y;
}
