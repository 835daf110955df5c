/* optimizer.c -- what all optimizers share: computing gradients, making slots and hyperparameters,
 * applying updates variable by variable, incrementing the global step. */
#include "train/optimizer.h"

#include <stdlib.h>
#include <string.h>

#include "core/alloc.h"
#include "core/strbuf.h"

void *leat_optimizer_new(size_t size, const leat_optimizer_ops *ops, const leat_given *given,
                         const char *name, const char *default_name, bool use_locking)
{
    leat_optimizer *opt = leat_object_new(size, LEAT_OBJECT_OPTIMIZER);
    opt->ops = ops;
    opt->name = leat_xstrdup(name && name[0] ? name : default_name);
    opt->use_locking = use_locking;
    opt->at = given->at;
    return opt;
}

void leat_optimizer_default(leat_optimizer *opt, int i, const leat_given *given, const char *name,
                            double value, double fallback)
{
    opt->hyper[i].name = name;
    opt->hyper[i].value = leat_given_or(given, name, value, fallback);
}

void leat_optimizer_require(leat_optimizer *opt, int i, const leat_given *given, const char *name,
                            double value, leat_out tensor)
{
    opt->hyper[i] = (leat_hyper){.name = name, .value = value, .given = tensor};
    if (!tensor.node && !opt->mistake)
        opt->mistake = leat_status_suffix(
            leat_require_given(given, opt->ops->constructor, name, value), " or .%s_tensor", name);
}

/* Whether the optimizer can be used; if not, the mistake is recorded in g, with the line of the
 * optimizer's constructor. */
static bool usable(const leat_optimizer *opt, leat_graph *g, leat_loc at, const char *function)
{
    leat_status s = leat_object_check(opt, LEAT_OBJECT_OPTIMIZER, function);
    if (s) {
        leat_graph_fail(g, at, s);
        return false;
    }
    if (!opt->mistake)
        return true;
    leat_loc outer = g->at_override;
    g->at_override = opt->at;
    leat_graph_fail(g, at, leat_status_copy(opt->mistake));
    leat_at_leave(g, outer);
    return false;
}

void leat_optimizer_free(leat_optimizer *opt)
{
    if (!opt)
        return;
    if (!LEAT_USABLE(OPTIMIZER, opt))
        return;
    if (opt->ops->free)
        opt->ops->free(opt);
    leat_status_free(opt->mistake);
    free(opt->slots);
    free((char *)opt->name);
    leat_object_free(&opt->object);
}

/* ---- Slots and hyperparameters ---- */

static leat_out *find_slot(leat_optimizer *opt, const leat_graph *g, const leat_node *var,
                           const char *slot)
{
    for (int i = 0; i < opt->n_slots; i++)
        if (opt->slots[i].var == var && opt->slots[i].value.node->graph == g &&
            strcmp(opt->slots[i].slot, slot) == 0)
            return &opt->slots[i].value;
    return NULL;
}

static leat_out keep_slot(leat_optimizer *opt, leat_node *var, const char *slot, leat_out value)
{
    leat_grow(opt->slots, opt->n_slots, opt->cap_slots);
    opt->slots[opt->n_slots++] = (struct leat_slot){slot, var, value};
    return value;
}

leat_out leat_optimizer_slot(leat_optimizer *opt, leat_out var, const char *slot)
{
    if (!LEAT_USABLE(OPTIMIZER, opt))
        return (leat_out){0};
    leat_out self = leat_variable_ref(var);
    leat_out *found = self.node ? find_slot(opt, self.node->graph, self.node, slot) : NULL;
    return found ? *found : (leat_out){0};
}

leat_out leat_optimizer_make_slot(leat_optimizer *opt, leat_out var, const char *slot,
                                  const leat_initializer *initializer)
{
    leat_out found = leat_optimizer_slot(opt, var, slot);
    if (found.node)
        return found;
    found = leat_slot_make(var, opt->name, leat_variable_dtype(var), initializer, (leat_out){0});
    return keep_slot(opt, leat_variable_ref(var).node, slot, found);
}

leat_out leat_optimizer_make_own(leat_optimizer *opt, leat_out with, const char *name, double value)
{
    leat_graph *g = leat_graph_of(with);
    leat_out *found = find_slot(opt, g, NULL, name), made = {0};
    if (found)
        return *found;
    leat_variable_spec spec = {.name = name, .scalar = value, .dtype = LEAT_FLOAT};
    spec.options.not_trainable = true;
    spec.options.use_resource = leat_variable_is_resource(with);
    leat_with_colocate(g, with) made = leat_variable_make(g, &spec);
    return keep_slot(opt, NULL, name, made);
}

static void prepare(leat_optimizer *opt, leat_graph *g)
{
    for (int i = 0; i < LEAT_MAX_HYPERS && opt->hyper[i].name; i++) {
        leat_hyper *h = &opt->hyper[i];
        h->made = h->given.node ? h->given : leat_py_number(g, LEAT_FLOAT, h->value, h->name);
    }
}

leat_out leat_optimizer_hyper(leat_optimizer *opt, int i, leat_dtype t)
{
    return leat_cast(opt->hyper[i].made, t);
}

leat_out leat_optimizer_update(leat_optimizer *opt, const char *op, leat_out var,
                               const leat_out *in, int n, leat_arg extra)
{
    leat_graph *g = leat_graph_of(var);
    leat_arg args[16] = {leat_in(var)};
    int k = 1;
    for (int i = 0; i < n; i++)
        args[k++] = leat_in(in[i]);
    args[k++] = leat_attr_bool("use_locking", opt->use_locking);
    if (extra.kind)
        args[k++] = extra;
    if (leat_variable_is_resource(var))
        op = leat_arena_printf(&g->arena, "Resource%s", op);
    return leat_op_at(LEAT_AT, g, op, args);
}

/* ---- Computing ---- */

static leat_status check_dtype(leat_out x, leat_dtype t)
{
    LEAT_REQUIRE(leat_types_has(LEAT_TYPES_FLOATING, t), INVALID_ARGUMENT,
                 "Invalid type %s for %s, expected: half, bfloat16, float, double.",
                 leat_dtype_name(t), x.node->name);
    return NULL;
}

/* Copies of the values that are ready only when all values are. */
static void gate_graph(leat_graph *g, leat_var_grad *v, int n)
{
    leat_out *all = leat_new_array(leat_out, n + 1);
    for (int i = 0; i < n; i++)
        all[i] = v[i].grad.value;
    leat_with_name(g, "tuple")
    {
        leat_out gate = leat_group_at(LEAT_AT, g, all, n, NULL);
        for (int i = 0; i < n; i++)
            if (all[i].node)
                leat_with_colocate(g, all[i]) v[i].grad.value =
                    leat_identity(all[i], leat_after(gate), leat_name("control_dependency"));
    }
    free(all);
}

static leat_status find_vars(leat_graph *g, const leat_minimize_options *o, leat_out **vars_out,
                             int *n_out)
{
    int n = o->n_vars;
    leat_out *vars = o->vars ? leat_new_array(leat_out, n + 1) : leat_trainable_variables(g, &n);
    *vars_out = vars; /* freed by the caller, also on failure */
    for (int i = 0; i < n; i++) {
        leat_out v = o->vars ? o->vars[i] : vars[i];
        vars[i] = leat_variable_ref(v);
        LEAT_REQUIRE(vars[i].node, INVALID_ARGUMENT, "Trying to optimize %s, which is no variable",
                     v.node ? v.node->name : "nothing");
        LEAT_TRY(check_dtype(vars[i], leat_variable_dtype(v)));
    }
    LEAT_REQUIRE(n > 0, INVALID_ARGUMENT, "No variables to optimize.");
    *n_out = n;
    return NULL;
}

static leat_var_grad *compute(leat_out loss, int *n_out, const leat_minimize_options *o)
{
    leat_graph *g = leat_graph_of(loss);
    leat_out *vars = NULL;
    int n = 0;
    leat_status s = check_dtype(loss, leat_dtype_base(leat_out_dtype(loss)));
    if (!s)
        s = find_vars(g, o, &vars, &n);
    leat_grad_value *grads = leat_new_array(leat_grad_value, n + 1);
    if (!s)
        s = leat_gradients(&loss, 1, vars, n, grads,
                           .grad_ys = o->grad_loss.node ? &o->grad_loss : NULL,
                           .gate = o->gate == LEAT_GATE_OP, .colocate = o->colocate);
    if (s)
        leat_graph_fail(g, (leat_loc){0}, s);
    leat_var_grad *v = leat_new_array(leat_var_grad, n + 1);
    for (int i = 0; i < n; i++)
        v[i] = (leat_var_grad){vars[i], grads[i]};
    if (o->gate == LEAT_GATE_GRAPH && !g->status)
        gate_graph(g, v, n);
    free(vars);
    free(grads);
    *n_out = n;
    return v;
}

leat_var_grad *leat_compute_gradients_at(leat_loc at, leat_optimizer *opt, leat_out loss,
                                         int *n_out, const leat_minimize_options *o)
{
    *n_out = 0;
    if (!loss.node || !leat_out_ok(loss) || loss.node->graph->status)
        return leat_new_array(leat_var_grad, 1);
    leat_graph *g = loss.node->graph;
    if (!usable(opt, g, at, __func__))
        return leat_new_array(leat_var_grad, 1);
    leat_loc outer = leat_at_enter(g, at);
    leat_var_grad *v =
        opt->ops->compute ? opt->ops->compute(opt, loss, n_out, o) : compute(loss, n_out, o);
    leat_at_leave(g, outer);
    return v;
}

/* ---- Applying ---- */

/* x[0], of a vector. */
static leat_out first_of(leat_out x)
{
    leat_graph *g = leat_graph_of(x);
    leat_out y = {0};
    leat_with_name(g, "strided_slice")
    {
        leat_out begin = leat_int_vector_named(LEAT_AT, g, LEAT_INT32, (int64_t[]){0}, 1, "stack");
        leat_out end = leat_int_vector_named(LEAT_AT, g, LEAT_INT32, (int64_t[]){1}, 1, "stack_1");
        leat_out step = leat_int_vector_named(LEAT_AT, g, LEAT_INT32, (int64_t[]){1}, 1, "stack_2");
        y = leat_strided_slice(x, begin, end, step, leat_attr_int("shrink_axis_mask", 1),
                               leat_name(leat_name_scope(g)));
    }
    return y;
}

static leat_out update(leat_optimizer *opt, leat_out var, const leat_grad_value *grad)
{
    leat_out rows = grad->value, indices = grad->indices;
    if (!indices.node)
        return opt->ops->dense(opt, var, grad->value);
    if (!opt->ops->takes_repeated) {
        indices = LEAT_OP1("Unique", grad->indices);
        rows = leat_unsorted_segment_sum(grad->value, leat_output(indices, 1),
                                         first_of(leat_shape_of(indices)));
    }
    return opt->ops->sparse(opt, var, rows, indices);
}

static leat_out finish(leat_optimizer *opt, leat_graph *g, leat_out *updates, int n,
                       const char *name)
{
    return opt->ops->finish ? opt->ops->finish(opt, g, updates, n, name)
                            : leat_group_at(LEAT_AT, g, updates, n, name);
}

static leat_out count_step(leat_graph *g, leat_out done, leat_out step, const char *name)
{
    leat_variable_nodes n;
    if (!leat_variable_find(step, &n))
        return leat_graph_fail(
            g, (leat_loc){0},
            leat_error(INVALID_ARGUMENT, "global_step is no variable: %s", step.node->name));
    leat_out self = {n.self, 0}, y = {0};
    leat_dtype t = leat_variable_dtype(step);
    leat_with_control(g, done) leat_with_colocate(g, self)
    {
        leat_out one = leat_py_number(g, t, 1, n.resource ? "Const" : "value");
        y = LEAT_OP2(n.resource ? "AssignAddVariableOp" : "AssignAdd", self, one, leat_name(name));
    }
    return y;
}

static leat_status check_grads(const leat_var_grad *grads, int n)
{
    leat_strbuf names = {0};
    LEAT_REQUIRE(n > 0, INVALID_ARGUMENT, "No variables provided.");
    for (int i = 0; i < n; i++) {
        LEAT_REQUIRE(grads[i].var.node, INVALID_ARGUMENT, "A gradient's variable is missing");
        if (grads[i].grad.value.node)
            return NULL;
        leat_strbuf_printf(&names, "%s%s", i ? ", " : "", grads[i].var.node->name);
    }
    leat_status s = leat_error(INVALID_ARGUMENT, "No gradients provided for any variable: [%s].",
                               leat_strbuf_text(&names));
    leat_strbuf_release(&names);
    return s;
}

static leat_out apply(leat_optimizer *opt, leat_graph *g, const leat_var_grad *grads, int n,
                      const leat_minimize_options *o)
{
    leat_out *vars = leat_new_array(leat_out, n + 1), *updates = leat_new_array(leat_out, n + 1);
    leat_out done = {0};
    int k = 0;
    for (int i = 0; i < n; i++)
        if (grads[i].grad.value.node)
            vars[k++] = leat_variable_ref(grads[i].var);
    leat_control_clear_enter(g);
    if (opt->ops->create_slots)
        opt->ops->create_slots(opt, vars, k);
    leat_control_leave(g);
    leat_with_name(g, o->name ? o->name : opt->name)
    {
        const char *scope = leat_name_scope(g);
        prepare(opt, g);
        k = 0;
        for (int i = 0; i < n && !g->status; i++) {
            if (!grads[i].grad.value.node)
                continue;
            leat_name_scope_enter(g, leat_arena_printf(&g->arena, "update_%s", vars[k].node->name));
            leat_with_colocate(g, vars[k]) updates[k] = update(opt, vars[k], &grads[i].grad);
            leat_name_scope_leave(g);
            k++;
        }
        done = finish(opt, g, updates, k, o->global_step.node ? "update" : scope);
        if (o->global_step.node)
            done = count_step(g, done, o->global_step, scope);
    }
    leat_collect(g, "train_op", done);
    free(vars);
    free(updates);
    return leat_done(done);
}

static leat_status check_vars(const leat_var_grad *grads, int n)
{
    for (int i = 0; i < n; i++)
        LEAT_REQUIRE(leat_variable_ref(grads[i].var).node, INVALID_ARGUMENT,
                     "Trying to update a Tensor %s", grads[i].var.node->name);
    return NULL;
}

leat_out leat_apply_gradients_at(leat_loc at, leat_optimizer *opt, const leat_var_grad *grads,
                                 int n, const leat_minimize_options *o)
{
    leat_graph *g = NULL;
    for (int i = 0; i < n && !g; i++)
        g = grads[i].var.node ? grads[i].var.node->graph : NULL;
    if (!g || g->status || !usable(opt, g, at, __func__))
        return (leat_out){g ? g->poison : NULL, -1};
    leat_loc outer = leat_at_enter(g, at);
    leat_status s = check_grads(grads, n);
    if (!s)
        s = check_vars(grads, n);
    leat_out done = s                 ? leat_done(leat_graph_fail(g, at, s))
                    : opt->ops->apply ? opt->ops->apply(opt, grads, n, o)
                                      : apply(opt, g, grads, n, o);
    leat_at_leave(g, outer);
    return done;
}

leat_out leat_minimize_at(leat_loc at, leat_optimizer *opt, leat_out loss,
                          const leat_minimize_options *o)
{
    int n;
    leat_var_grad *grads = leat_compute_gradients_at(at, opt, loss, &n, o);
    leat_out done = n ? leat_apply_gradients_at(at, opt, grads, n, o) : leat_done(loss);
    if (n == 0 && loss.node)
        done = (leat_out){loss.node->graph->poison, -1};
    free(grads);
    return done;
}
