/* moving_average.c -- shadow variables that follow others: shadow -= (1 - decay) * (shadow - x).
 * The update is a subtraction, so that concurrent updates of several workers are not lost. */
#include <stdlib.h>
#include <string.h>

#include "core/alloc.h"
#include "core/strbuf.h"
#include "train/optimizer.h"

struct leat_moving_average {
    leat_object object;
    double decay;
    leat_status mistake; /* the decay is missing, or NULL */
    leat_loc at;         /* where the moving average was made */
    leat_out num_updates;
    bool zero_debias;
    char *name;
    struct average {
        leat_out x; /* the variable's reference or handle, or the tensor */
        leat_out shadow;
        bool debias;
    } * v;
    int n, cap;
};

leat_moving_average *leat_moving_average_make(const leat_moving_average_options *o)
{
    leat_moving_average *ema = leat_new_object(leat_moving_average, MOVING_AVERAGE);
    ema->decay = o->decay;
    ema->mistake = leat_require_given(&o->given, "leat_moving_average_new", "decay", o->decay);
    ema->at = o->given.at;
    ema->num_updates = o->num_updates;
    ema->zero_debias = o->zero_debias;
    ema->name = leat_xstrdup(o->name ? o->name : "ExponentialMovingAverage");
    return ema;
}

void leat_moving_average_free(leat_moving_average *ema)
{
    if (!ema)
        return;
    if (!LEAT_USABLE(MOVING_AVERAGE, ema))
        return;
    leat_status_free(ema->mistake);
    free(ema->name);
    free(ema->v);
    leat_object_free(&ema->object);
}

static leat_out key_of(leat_out x)
{
    leat_out self = leat_variable_ref(x);
    return self.node ? self : x;
}

static struct average *find(leat_moving_average *ema, leat_out x)
{
    leat_out key = key_of(x);
    for (int i = 0; i < ema->n; i++)
        if (ema->v[i].x.node == key.node && ema->v[i].x.index == key.index)
            return &ema->v[i];
    return NULL;
}

leat_out leat_moving_average_of(leat_moving_average *ema, leat_out x)
{
    if (!LEAT_USABLE(MOVING_AVERAGE, ema))
        return (leat_out){0};
    struct average *a = x.node ? find(ema, x) : NULL;
    return a ? a->shadow : (leat_out){0};
}

/* The initial value of a variable's shadow is that of the variable, of a tensor's shadow zero. */
static void make_shadow(leat_moving_average *ema, leat_graph *g, leat_out x)
{
    bool variable = leat_variable_ref(x).node;
    leat_dtype t = variable ? leat_variable_dtype(x) : leat_dtype_base(leat_out_dtype(x));
    if (!leat_types_has(LEAT_TYPES_FLOATING, t)) {
        leat_graph_fail(g, (leat_loc){0},
                        leat_error(INVALID_ARGUMENT,
                                   "The variables must be half, float, or double: %s",
                                   x.node->name));
        return;
    }
    struct average a = {.x = key_of(x), .debias = !variable && ema->zero_debias};
    leat_initializer zeros = leat_zeros_initializer();
    leat_control_clear_enter(g);
    leat_out first = variable ? leat_variable_initialized_value(x) : (leat_out){0};
    a.shadow = leat_slot_make(x, ema->name, t, variable ? NULL : &zeros, first);
    leat_control_leave(g);
    if (variable)
        leat_collect(g, LEAT_MOVING_AVERAGE_VARIABLES, leat_variable_ref(x));
    leat_grow(ema->v, ema->n, ema->cap);
    ema->v[ema->n++] = a;
}

leat_out leat_average_follow(leat_out shadow, leat_out x, leat_out by, const char *name)
{
    leat_out self = leat_variable_ref(shadow);
    leat_out apart = leat_py("Sub", "sub", leat_variable_value(shadow), x);
    leat_out step = leat_py("Mul", "mul", apart, by);
    return LEAT_OP2(leat_variable_is_resource(shadow) ? "AssignSubVariableOp" : "AssignSub", self,
                    step, leat_name(name));
}

static leat_out zero_variable(leat_graph *g, leat_out with, const char *suffix, leat_shape s)
{
    leat_initializer zeros = leat_zeros_initializer();
    leat_variable_spec spec = {
        .name = leat_arena_printf(&g->arena, "%s/%s", leat_variable_name(with), suffix),
        .initializer = &zeros,
        .dtype = leat_variable_dtype(with),
        .shape = s,
        .options = {.not_trainable = true, .use_resource = leat_variable_is_resource(with)}};
    leat_out v = {0};
    leat_with_colocate(g, leat_variable_ref(with))
    {
        leat_with_name(g, NULL) v = leat_variable_make(g, &spec);
    }
    return v;
}

/* The value after an update: that of the reference, or a read of the handle after the update. */
static leat_out updated(leat_out v, leat_out update)
{
    if (!leat_variable_is_resource(v))
        return update;
    return LEAT_OP1("ReadVariableOp", leat_variable_ref(v), leat_after(update),
                    leat_attr_type("dtype", leat_variable_dtype(v)));
}

/* An average with the initial value zero is too small by the factor 1 - decay^updates, as in
 * Adam. */
static leat_out follow_debiased(leat_graph *g, leat_out shadow, leat_out x, leat_out by)
{
    leat_out biased = zero_variable(g, shadow, "biased", leat_variable_shape(shadow));
    leat_out count = zero_variable(g, shadow, "local_step", leat_shape());
    leat_dtype t = leat_variable_dtype(shadow);
    leat_out sum = updated(biased, leat_average_follow(biased, x, by, "AssignSub"));
    leat_out n =
        updated(count, leat_variable_assign_add(count, leat_py_number(g, t, 1, "AssignAdd/value")));
    leat_out fade = leat_pow(leat_py_left("Sub", "sub", 1, by), n);
    leat_out factor = leat_py_left("Sub", "sub", 1, fade);
    return leat_variable_assign(shadow, leat_py("RealDiv", "truediv", sum, factor));
}

static leat_out update(leat_graph *g, const struct average *a, leat_out x, leat_out decay)
{
    leat_out y = {0};
    leat_with_name(g, "AssignMovingAvg")
    {
        leat_out by =
            leat_cast(leat_py_left("Sub", "sub", 1, decay), leat_variable_dtype(a->shadow));
        y = a->debias ? follow_debiased(g, a->shadow, x, by)
                      : leat_average_follow(a->shadow, x, by, leat_name_scope(g));
    }
    return y;
}

/* min(decay, (1 + n) / (10 + n)), which lets the average change faster at the beginning. */
static leat_out decay_of(leat_moving_average *ema, leat_graph *g)
{
    leat_out decay = leat_py_number(g, LEAT_FLOAT, ema->decay, "decay");
    if (!ema->num_updates.node)
        return decay;
    leat_out n = ema->num_updates;
    if (leat_dtype_base(leat_out_dtype(n)) != LEAT_FLOAT)
        n = LEAT_OP1("Cast", n, leat_attr_type("DstT", LEAT_FLOAT), leat_name("num_updates"));
    leat_out above = leat_py_left("AddV2", "add", 1, n),
             below = leat_py_left("AddV2", "add", 10, n);
    return leat_minimum(decay, leat_py("RealDiv", "truediv", above, below));
}

leat_out leat_moving_average_apply_at(leat_loc at, leat_moving_average *ema, const leat_out *xs,
                                      int n)
{
    leat_graph *g = n > 0 && xs[0].node ? leat_graph_of(xs[0]) : NULL;
    if (!g || g->status)
        return (leat_out){g ? g->poison : NULL, -1};
    leat_status bad = leat_object_check(ema, LEAT_OBJECT_MOVING_AVERAGE, __func__);
    if (bad)
        return leat_done(leat_graph_fail(g, at, bad));
    if (ema->mistake)
        return leat_done(
            leat_graph_fail(g, ema->at.file ? ema->at : at, leat_status_copy(ema->mistake)));
    leat_loc outer = leat_at_enter(g, at);
    leat_out *updates = leat_new_array(leat_out, n + 1), done = {g->poison, -1};
    for (int i = 0; i < n && !g->status; i++)
        if (!find(ema, xs[i]))
            make_shadow(ema, g, xs[i]);
    leat_with_name(g, ema->name)
    {
        const char *scope = leat_name_scope(g);
        leat_out decay = decay_of(ema, g);
        for (int i = 0; i < n && !g->status; i++) {
            leat_out x = leat_variable_value(xs[i]);
            updates[i] = update(g, find(ema, xs[i]), x.node ? x : xs[i], decay);
        }
        if (!g->status)
            done = leat_group_at(LEAT_AT, g, updates, n, scope);
    }
    free(updates);
    leat_at_leave(g, outer);
    return leat_done(done);
}
