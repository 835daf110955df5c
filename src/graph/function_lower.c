/* function_lower.c -- If, Case and While, whose branches, condition and body are functions, become
 * Switches, Merges and a loop around calls; the calls are inlined after that. As with calls, the
 * node itself stays, as an IdentityN of the results. */
#include <stdlib.h>
#include <string.h>

#include <leat/ops.h>
#include "core/alloc.h"
#include "core/buffer.h"
#include "graph/function.h"

typedef struct lowering {
    leat_graph *g;
    leat_node *n; /* the If, Case or While */
    bool branch;  /* see leat_function_lower */
    leat_status bad;
} lowering;

static leat_out add_with(lowering *l, const char *op, const char *name, const leat_out *in,
                         int n_in, const leat_attr *attrs, int n_attrs, leat_node *control)
{
    leat_node_spec spec = {.op = op,
                           .name =
                               leat_arena_printf(&l->g->arena, "%s/_lowered.%s", l->n->name, name),
                           .device = l->n->device,
                           .in = in,
                           .n_in = n_in,
                           .controls = &control,
                           .n_controls = control != NULL,
                           .attrs = attrs,
                           .n_attrs = n_attrs,
                           .at = l->n->at,
                           .exact_name = true};
    leat_node *made = NULL;
    if (!l->bad)
        l->bad = leat_graph_add(l->g, &spec, &made);
    return (leat_out){made ? made : l->g->poison, 0};
}

static leat_out add(lowering *l, const char *op, const char *name, const leat_out *in, int n_in)
{
    return add_with(l, op, name, in, n_in, NULL, 0, NULL);
}

static const char *numbered(lowering *l, const char *name, int i)
{
    return leat_arena_printf(&l->g->arena, "%s_%d", name, i);
}

/* A call of f with results of these dtypes. */
static leat_node *call_func(lowering *l, const leat_func *f, const char *name, const leat_out *in,
                            int n_in, const leat_dtype *types, int n_out, leat_node *control)
{
    leat_attr attrs[2] = {{.name = "Tout", .kind = LEAT_ARG_TYPES, .n = n_out, .types = types},
                          {.name = "f", .kind = LEAT_ARG_FUNC, .func = f}};
    return add_with(l, "StatefulPartitionedCall", name, in, n_in, attrs, 2, control).node;
}

/* The same for the function in attribute `attr`. */
static leat_node *call(lowering *l, const char *attr, const leat_out *in, int n_in,
                       const leat_dtype *types, int n_out, leat_node *control)
{
    return call_func(l, leat_node_attr(l->n, attr)->func, attr, in, n_in, types, n_out, control);
}

/* A bool as it is; a number is true if it is not 0. */
static leat_out truth(lowering *l, leat_out x)
{
    leat_dtype t = leat_dtype_base(leat_out_dtype(x));
    if (t == LEAT_BOOL || l->bad)
        return x;
    if (t == LEAT_STRING || t == LEAT_RESOURCE || t == LEAT_VARIANT) {
        l->bad = leat_error(UNIMPLEMENTED, "A condition of dtype %s", leat_dtype_name(t));
        return x;
    }
    leat_out in[2] = {x, add(l, "ZerosLike", "zero", &x, 1)};
    return add(l, "NotEqual", "pred", in, 2);
}

/* n becomes an IdentityN of these, or a NoOp behind `last`. */
static void become_identity(lowering *l, const leat_out *results, leat_node *last)
{
    leat_node *n = l->n;
    leat_arena *a = &l->g->arena;
    for (int i = 0; i < n->n_attrs; i++)
        leat_attr_release(&n->attrs[i]);
    n->n_attrs = n->n_controls = 0;
    n->op = leat_op_find(n->n_out ? "IdentityN" : "NoOp");
    n->in = leat_arena_memdup(a, results, sizeof(*results) * (size_t)n->n_out);
    n->n_in = n->n_out;
    if (last)
        leat_node_add_control(n, last);
    leat_attr types = {.name = "T", .kind = LEAT_ARG_TYPES, .n = n->n_out, .types = n->out_types};
    if (n->n_out)
        leat_node_set_attr(n, &types);
}

static void wait_as_node_does(lowering *l, leat_node *n)
{
    for (int k = 0; k < l->n->n_controls && !l->bad; k++)
        leat_node_add_control(n, l->n->controls[k]);
}

/* The inputs, which wait for what the node waits for; from the first one that may be a reference
 * on, references stay such. */
static leat_out *take_inputs(lowering *l, int first_ref)
{
    leat_node *n = l->n;
    leat_out *in = leat_arena_memdup(&l->g->arena, n->in, sizeof(*n->in) * (size_t)n->n_in);
    for (int i = 0; i < n->n_in; i++) {
        if (i >= first_ref && leat_dtype_is_ref(leat_out_dtype(n->in[i])))
            continue;
        in[i] = add(l, "Identity", numbered(l, "input", i), &n->in[i], 1);
        wait_as_node_does(l, in[i].node);
    }
    return in;
}

/* An input goes into one of two branches. A reference is read there: of the variable of a branch
 * that is not taken, nobody asks for a value. */
static leat_out switch_input(lowering *l, leat_out x, leat_out pred, const char *name)
{
    const leat_out both[2] = {x, pred};
    if (!leat_dtype_is_ref(leat_out_dtype(x)))
        return add(l, "Switch", name, both, 2);
    leat_out y = add(l, "RefSwitch", name, both, 2);
    wait_as_node_does(l, y.node);
    return y;
}

static void lower_if(lowering *l)
{
    leat_node *n = l->n;
    leat_out *in = take_inputs(l, 1), pred = truth(l, in[0]);
    int n_in = n->n_in - 1;
    leat_out *room = leat_arena_array(&l->g->arena, leat_out, 2 * n_in + n->n_out + 1);
    leat_out *no = room, *yes = room + n_in, *results = yes + n_in;
    const leat_out twice[2] = {pred, pred};
    leat_out pivot = add(l, "Switch", "pivot", twice, 2);
    leat_out pivot_f = pivot, pivot_t = {pivot.node, 1};
    pivot_f = add(l, "Identity", "pivot_f", &pivot_f, 1);
    pivot_t = add(l, "Identity", "pivot_t", &pivot_t, 1);
    for (int i = 0; i < n_in; i++) {
        no[i] = switch_input(l, in[i + 1], pred, numbered(l, "switch", i));
        yes[i] = (leat_out){no[i].node, 1};
    }
    leat_node *f = call(l, "else_branch", no, n_in, n->out_types, n->n_out, pivot_f.node);
    leat_node *t = call(l, "then_branch", yes, n_in, n->out_types, n->n_out, pivot_t.node);
    for (int i = 0; i < n->n_out; i++) {
        const leat_out both[2] = {{f, i}, {t, i}};
        results[i] = add(l, "Merge", numbered(l, "merge", i), both, 2);
    }
    leat_out done[2] = {add_with(l, "Identity", "done_f", &pivot_f, 1, NULL, 0, f),
                        add_with(l, "Identity", "done_t", &pivot_t, 1, NULL, 0, t)};
    leat_out last = add(l, "Merge", "done", done, 2);
    if (!l->bad)
        become_identity(l, results, last.node);
}

/* Is index the number of this branch? */
static leat_out is_branch(lowering *l, leat_out index, int branch)
{
    leat_tensor *t = NULL;
    if (!l->bad)
        l->bad = leat_tensor_copy_of(LEAT_INT32, leat_shape(), &(int32_t){branch}, &t);
    const leat_attr attrs[2] = {{.name = "value", .kind = LEAT_ARG_TENSOR, .tensor = t},
                                {.name = "dtype", .kind = LEAT_ARG_TYPE, .i = LEAT_INT32}};
    const leat_out both[2] = {
        index, add_with(l, "Const", numbered(l, "branch", branch), NULL, 0, attrs, 2, NULL)};
    leat_tensor_unref(t);
    return add(l, "Equal", numbered(l, "is_branch", branch), both, 2);
}

/* For each branch whether it is taken: the last whenever no other is. */
static void choose(lowering *l, leat_out index, leat_out *taken, int n)
{
    leat_out other = {0};
    for (int b = 0; b < n - 1; b++) {
        taken[b] = is_branch(l, index, b);
        const leat_out both[2] = {other, taken[b]};
        other = b ? add(l, "LogicalOr", numbered(l, "below", b), both, 2) : taken[b];
    }
    if (n > 1)
        taken[n - 1] = add(l, "LogicalNot", "is_last", &other, 1);
    else
        taken[0] = add(l, "Equal", "always", (const leat_out[2]){index, index}, 2);
}

static void lower_case(lowering *l)
{
    leat_node *n = l->n;
    const leat_attr *branches = leat_node_attr(n, "branches");
    int n_in = n->n_in - 1, n_out = n->n_out, count = branches->n;
    leat_arena *a = &l->g->arena;
    leat_out *in = take_inputs(l, 1), *taken = leat_arena_array(a, leat_out, count);
    leat_out *args = leat_arena_array(a, leat_out, n_in + 1);
    leat_out *results = leat_arena_array(a, leat_out, n_out + 1);
    leat_out *all = leat_arena_array(a, leat_out, (n_out + 1) * count);
    choose(l, in[0], taken, count);
    for (int b = 0; b < count && !l->bad; b++) {
        const leat_out twice[2] = {taken[b], taken[b]};
        leat_out pivot = add(l, "Switch", numbered(l, "pivot", b), twice, 2);
        pivot = add(l, "Identity", numbered(l, "pivot_t", b), &(leat_out){pivot.node, 1}, 1);
        for (int i = 0; i < n_in; i++) {
            args[i] =
                switch_input(l, in[i + 1], taken[b], numbered(l, numbered(l, "switch", b), i));
            args[i].index = 1;
        }
        leat_node *f = call_func(l, &branches->funcs[b], numbered(l, "call", b), args, n_in,
                                 n->out_types, n_out, pivot.node);
        for (int i = 0; i < n_out; i++)
            all[i * count + b] = (leat_out){f, i};
        all[n_out * count + b] =
            add_with(l, "Identity", numbered(l, "done", b), &pivot, 1, NULL, 0, f);
    }
    for (int i = 0; i <= n_out; i++)
        results[i] = add(l, "Merge", numbered(l, "merge", i), all + i * count, count);
    if (!l->bad)
        become_identity(l, results, results[n_out].node);
}

static leat_out enter(lowering *l, leat_out x, int i)
{
    const char *frame = leat_arena_printf(&l->g->arena, "%s/frame", l->n->name);
    const leat_attr attrs[2] = {
        {.name = "frame_name", .kind = LEAT_ARG_STRING, .s = frame, .n = (int)strlen(frame)},
        {.name = "parallel_iterations",
         .kind = LEAT_ARG_INT,
         .i = leat_node_int(l->n, "parallel_iterations")}};
    return add_with(l, "Enter", numbered(l, "enter", i), &x, 1, attrs, 2, NULL);
}

/* In TensorFlow's words. */
static leat_status check_while(const leat_node *n)
{
    const leat_function *cond = leat_function_find(n->graph, leat_node_attr(n, "cond")->func->name);
    const leat_function *body = leat_function_find(n->graph, leat_node_attr(n, "body")->func->name);
    size_t n_cond = cond ? cond->def->signature->n_output_arg : 1;
    size_t n_body =
        body && body->info->n_in == n->n_in ? body->def->signature->n_output_arg : (size_t)n->n_in;
    LEAT_REQUIRE(n_cond == 1, INVALID_ARGUMENT,
                 "Expected a single scalar return value from WhileOp cond, got %zu tensors.",
                 n_cond);
    LEAT_REQUIRE(n_body == (size_t)n->n_in, INVALID_ARGUMENT,
                 "While loop body returned %zu arguments. Expected: %d", n_body, n->n_in);
    return NULL;
}

/* A value that goes round with the others, and into the next turn when all of this one has been
 * done: what it leaves by comes after all side effects of the loop. */
static leat_out count_turns(lowering *l, leat_out any, leat_out more, leat_node *cond,
                            leat_node *body)
{
    leat_out e = enter(l, any, l->n->n_in);
    const leat_out both[2] = {e, e};
    leat_out merge = add(l, "Merge", "turn", both, 2);
    const leat_out in[2] = {merge, more};
    leat_out go = add_with(l, "Switch", "turn_switch", in, 2, NULL, 0, cond);
    leat_out next = {go.node, 1};
    next = add_with(l, "Identity", "turn_done", &next, 1, NULL, 0, body);
    next = add(l, "NextIteration", "turn_next", &next, 1);
    if (!l->bad)
        l->bad = leat_node_set_input(merge.node, 1, next);
    return add(l, "Exit", "turn_exit", &go, 1);
}

static void lower_while(lowering *l)
{
    leat_node *n = l->n;
    int k = n->n_in;
    if (k == 0) {
        l->bad = leat_error(INVALID_ARGUMENT, "A While without loop variables");
        return;
    }
    l->bad = check_while(n);
    if (l->bad)
        return;
    leat_out *in = take_inputs(l, k), *room = leat_arena_array(&l->g->arena, leat_out, 3 * k + 1);
    leat_out *merges = room, *now = room + k, *exits = room + 2 * k;
    for (int i = 0; i < k; i++) {
        leat_out e = enter(l, in[i], i);
        const leat_out both[2] = {e, e};
        merges[i] = add(l, "Merge", numbered(l, "merge", i), both, 2);
    }
    leat_node *c = call(l, "cond", merges, k, (leat_dtype[]){LEAT_BOOL}, 1, merges[0].node);
    leat_out more = add(l, "LoopCond", "more", &(leat_out){c, 0}, 1);
    for (int i = 0; i < k; i++) {
        const leat_out both[2] = {merges[i], more};
        exits[i] = add(l, "Switch", numbered(l, "switch", i), both, 2);
        now[i] = add(l, "Identity", numbered(l, "now", i), &(leat_out){exits[i].node, 1}, 1);
        exits[i] = add(l, "Exit", numbered(l, "exit", i), &exits[i], 1);
    }
    leat_node *body = call(l, "body", now, k, n->out_types, k, now[0].node);
    for (int i = 0; i < k; i++) {
        leat_out next = add(l, "NextIteration", numbered(l, "next", i), &(leat_out){body, i}, 1);
        if (!l->bad)
            l->bad = leat_node_set_input(merges[i].node, 1, next);
    }
    leat_node *done = l->branch ? count_turns(l, in[0], more, c, body).node : NULL;
    if (!l->bad)
        become_identity(l, exits, done);
}

bool leat_function_is_flow(const leat_node *n)
{
    const leat_role role = leat_node_role(n);
    return role == LEAT_ROLE_IF || role == LEAT_ROLE_CASE || role == LEAT_ROLE_WHILE;
}

leat_status leat_function_lower(leat_graph *g, leat_node *n, bool branch)
{
    lowering l = {.g = g, .n = n, .branch = branch};
    if (leat_node_role(n) == LEAT_ROLE_IF)
        lower_if(&l);
    else if (leat_node_role(n) == LEAT_ROLE_CASE)
        lower_case(&l);
    else
        lower_while(&l);
    return l.bad ? leat_status_suffix(l.bad, " (in '%s')", n->name) : NULL;
}
