/* function_inline.c -- calls become bodies. The call node itself stays, as an IdentityN of the
 * results that waits for all side effects of the body, so that whoever uses, fetches or waits for
 * it need not know. */
#include <stdlib.h>
#include <string.h>

#include <leat/ops.h>
#include "core/alloc.h"
#include "graph/control_ctx.h"
#include "graph/function.h"

typedef struct splice {
    leat_graph *g;
    leat_node *call;
    const leat_body *b;
    leat_node **made;   /* by id in the body */
    leat_out *args;     /* what is passed */
    leat_node *trigger; /* what nodes without inputs wait for; NULL: not made */
    bool branch;        /* a branch or a loop's body: see leat_function_inline */
} splice;

static leat_status add(splice *s, const char *op, const char *name, const leat_out *in, int n_in,
                       leat_node *const *controls, int n_controls, leat_node **out)
{
    leat_node_spec spec = {.op = op,
                           .name = leat_arena_printf(&s->g->arena, "%s/%s", s->call->name, name),
                           .device = s->call->device,
                           .in = in,
                           .n_in = n_in,
                           .controls = controls,
                           .n_controls = n_controls,
                           .at = s->call->at,
                           .exact_name = true};
    return leat_graph_add(s->g, &spec, out);
}

/* Arguments wait for what the call waits for. */
static leat_status pass_args(splice *s)
{
    leat_node *c = s->call;
    for (int i = 0; i < c->n_in; i++) {
        leat_dtype want = leat_node_type(s->b->args[i], "T");
        leat_dtype t = leat_dtype_base(leat_out_dtype(c->in[i]));
        LEAT_REQUIRE(want == t, INVALID_ARGUMENT, "Argument %d is %s, the function wants %s", i,
                     leat_dtype_name(t), leat_dtype_name(want));
        s->args[i] = c->in[i];
        if (!c->n_controls && !leat_dtype_is_ref(leat_out_dtype(c->in[i])))
            continue;
        leat_node *id;
        const char *name = leat_arena_printf(&s->g->arena, "_arg_%d", i);
        LEAT_TRY(add(s, "Identity", name, &c->in[i], 1, c->controls, c->n_controls, &id));
        s->args[i] = (leat_out){id, 0};
    }
    return NULL;
}

/* A body's node without inputs runs when the call may: when all that is passed is there. Within
 * conds and loops this is also what makes it dead, or run in every iteration. In a branch it waits
 * for the condition alone, so that it does not need arguments that nobody else needs. */
static leat_status make_trigger(splice *s)
{
    leat_node *c = s->call;
    int n = 0, n_in = s->branch && c->n_controls ? 0 : c->n_in;
    if (s->trigger || n_in + c->n_controls == 0)
        return NULL;
    leat_node **all = leat_new_array(leat_node *, n_in + c->n_controls);
    for (int i = 0; i < n_in; i++)
        all[n++] = s->args[i].node;
    for (int i = 0; i < c->n_controls; i++)
        all[n++] = c->controls[i];
    leat_status bad = add(s, "NoOp", "_begin", NULL, 0, all, n, &s->trigger);
    free(all);
    return bad;
}

static leat_out mapped(const splice *s, leat_out x)
{
    if (leat_node_role(x.node) == LEAT_ROLE_ARG)
        return s->args[leat_node_int(x.node, "index")];
    return (leat_out){s->made[x.node->id], x.index};
}

/* Names that an attribute holds are those of the body. */
static leat_attr own_names(splice *s, const leat_node *n, const leat_attr *a)
{
    leat_attr v = *a;
    leat_arena *arena = &s->g->arena;
    if (strcmp(a->name, "_class") == 0 && a->kind == LEAT_ARG_STRINGS) {
        const char **strings = leat_arena_array(arena, const char *, a->n);
        int *sizes = leat_arena_array(arena, int, a->n);
        for (int i = 0; i < a->n; i++) {
            bool loc = strncmp(a->strings[i], "loc:@", 5) == 0;
            strings[i] =
                loc ? leat_arena_printf(arena, "loc:@%s/%s", s->call->name, a->strings[i] + 5)
                    : a->strings[i];
            sizes[i] = loc ? (int)strlen(strings[i]) : a->sizes[i];
        }
        v.strings = strings;
        v.sizes = sizes;
    } else if (strcmp(a->name, "frame_name") == 0 && leat_is_enter(n)) {
        v.s = leat_arena_printf(arena, "%s/%s", s->call->name, a->s);
        v.n = (int)strlen(v.s);
    }
    return v;
}

static leat_status add_node(splice *s, const leat_node *n)
{
    leat_out *in = leat_new_array(leat_out, n->n_in + 1);
    leat_attr *attrs = leat_new_array(leat_attr, n->n_attrs + 1);
    leat_node_spec spec = {.op = n->op->def->name,
                           .name = leat_arena_printf(&s->g->arena, "%s/%s", s->call->name, n->name),
                           .device = n->device[0] ? n->device : s->call->device,
                           .in = in,
                           .n_in = n->n_in,
                           .attrs = attrs,
                           .n_attrs = n->n_attrs,
                           .at = s->call->at,
                           .exact_name = true};
    for (int i = 0; i < n->n_in; i++) {
        in[i] = mapped(s, n->in[i]);
        if (!in[i].node) /* a back edge: set when all are there */
            in[i].index = 0;
        spec.loose |= !in[i].node;
    }
    for (int i = 0; i < n->n_attrs; i++)
        attrs[i] = own_names(s, n, &n->attrs[i]);
    leat_status bad = leat_graph_add(s->g, &spec, &s->made[n->id]);
    if (!bad && leat_function_is_call(n))
        memcpy(s->made[n->id]->out_shapes, n->out_shapes,
               sizeof(*n->out_shapes) * (size_t)n->n_out);
    free(in);
    free(attrs);
    return bad;
}

static leat_status add_body(splice *s)
{
    const leat_graph *body = s->b->g;
    for (int i = 0; i < body->n_nodes; i++)
        if (leat_node_role(body->nodes[i]) != LEAT_ROLE_ARG)
            LEAT_TRY(add_node(s, body->nodes[i]));
    for (int i = 0; i < body->n_nodes; i++) {
        const leat_node *n = body->nodes[i];
        leat_node *m = s->made[i];
        if (!m)
            continue;
        for (int k = 0; k < n->n_in; k++)
            if (!m->in[k].node)
                LEAT_TRY(leat_node_set_input(m, k, mapped(s, n->in[k])));
        leat_control_adder controls = leat_control_adder_of(m);
        for (int k = 0; k < n->n_controls; k++)
            leat_control_adder_add(&controls, mapped(s, (leat_out){n->controls[k], -1}).node);
        if (n->n_in || n->n_controls)
            continue;
        LEAT_TRY(make_trigger(s));
        if (s->trigger)
            leat_node_add_control(m, s->trigger);
    }
    return NULL;
}

/* Where the body's nodes are, by id: how many loops deep, and whether below a Switch. */
static void find_places(const leat_graph *body, int *loops, bool *maybe)
{
    for (int i = 0; i < body->n_nodes; i++) { /* inputs come first, but for back edges */
        const leat_node *n = body->nodes[i];
        bool known = false;
        for (int k = 0; k < n->n_in + n->n_controls; k++) {
            const leat_node *from = k < n->n_in ? n->in[k].node : n->controls[k - n->n_in];
            if (!from || from->id >= i)
                continue;
            loops[i] = known ? loops[i] : loops[from->id];
            known = true;
            maybe[i] |= maybe[from->id] || leat_is_switch(from);
        }
        loops[i] += leat_is_enter(n) - leat_is_exit(n);
        if (leat_is_merge(n))
            maybe[i] = false;
    }
}

/* Side effects in conditions may not be had, and those in loops are had when the loop is left: a
 * node that runs whether what it waits for was dead or not. NULL if there are no such effects. */
static leat_status wait_inside(splice *s, const int *loops, const bool *maybe, leat_node **out)
{
    const leat_graph *body = s->b->g;
    leat_node **waits = leat_new_array(leat_node *, s->b->n_to_run + body->n_nodes + 1);
    int n = 0;
    bool in_loops = false;
    for (int i = 0; i < s->b->n_to_run; i++) {
        const int id = s->b->to_run[i]->id;
        in_loops |= loops[id] > 0;
        if (loops[id] <= 0 && maybe[id])
            waits[n++] = s->made[id];
    }
    for (int i = 0; in_loops && i < body->n_nodes; i++)
        if (leat_is_exit(body->nodes[i]) && loops[i] == 0)
            waits[n++] = s->made[i];
    leat_status bad = n ? add(s, "ControlTrigger", "_effects", NULL, 0, waits, n, out) : NULL;
    free(waits);
    return bad;
}

/* The call is over when the results are there and the side effects had. */
static leat_status become_identity(splice *s)
{
    leat_node *c = s->call;
    leat_arena *a = &s->g->arena;
    leat_node **waits =
        leat_arena_array(a, leat_node *, s->b->n_to_run + c->n_in + c->n_controls + 2);
    int n = 0, *loops = leat_new_array(int, s->b->g->n_nodes + 1);
    bool *maybe = leat_new_array(bool, s->b->g->n_nodes + 1);
    find_places(s->b->g, loops, maybe);
    for (int i = 0; i < s->b->n_to_run; i++)
        if (loops[s->b->to_run[i]->id] <= 0 && !maybe[s->b->to_run[i]->id])
            waits[n++] = mapped(s, (leat_out){s->b->to_run[i], -1}).node;
    leat_status bad = wait_inside(s, loops, maybe, &waits[n]);
    n += waits[n] != NULL;
    free(loops);
    free(maybe);
    LEAT_TRY(bad);
    for (int i = 0; c->n_out == 0 && i < c->n_in; i++)
        waits[n++] = s->args[i].node;
    for (int i = 0; c->n_out == 0 && i < c->n_controls; i++)
        waits[n++] = c->controls[i];
    for (int i = 0; i < c->n_attrs; i++)
        leat_attr_release(&c->attrs[i]);
    c->n_attrs = c->n_controls = 0;
    c->op = leat_op_find(c->n_out ? "IdentityN" : "NoOp");
    c->in = leat_arena_array(a, leat_out, c->n_out);
    c->n_in = c->n_out;
    for (int i = 0; i < c->n_out; i++) {
        c->in[i] = mapped(s, s->b->results[i]);
        c->out_shapes[i] = leat_out_shape(c->in[i]);
    }
    leat_control_adder controls = leat_control_adder_of(c);
    for (int i = 0; i < n; i++)
        leat_control_adder_add(&controls, waits[i]);
    leat_attr types = {.name = "T", .kind = LEAT_ARG_TYPES, .n = c->n_out, .types = c->out_types};
    if (c->n_out)
        leat_node_set_attr(c, &types);
    return NULL;
}

static leat_status check(const splice *s)
{
    const leat_node *c = s->call;
    LEAT_REQUIRE(c->n_out == s->b->n_results || !leat_node_is(c, "SymbolicGradient"),
                 INVALID_ARGUMENT,
                 "SymGrad expects to return %d tensor(s), but get %d tensor(s) instead.", c->n_out,
                 s->b->n_results);
    LEAT_REQUIRE(c->n_in == s->b->n_args && c->n_out == s->b->n_results, INVALID_ARGUMENT,
                 "The function has %d arguments and %d results; the call has %d and %d",
                 s->b->n_args, s->b->n_results, c->n_in, c->n_out);
    for (int i = 0; i < c->n_out; i++) {
        leat_dtype t = leat_dtype_base(leat_out_dtype(s->b->results[i]));
        LEAT_REQUIRE(t == c->out_types[i], INVALID_ARGUMENT, "Result %d is %s; the call wants %s",
                     i, leat_dtype_name(t), leat_dtype_name(c->out_types[i]));
    }
    return NULL;
}

static leat_status run(splice *s)
{
    LEAT_TRY(check(s));
    LEAT_TRY(pass_args(s));
    LEAT_TRY(add_body(s));
    return become_identity(s);
}

leat_status leat_function_inline(leat_graph *g, leat_node *call, bool branch)
{
    leat_func f = leat_called_function(call);
    leat_body b;
    leat_status bad = leat_node_is(call, "SymbolicGradient")
                          ? leat_function_instantiate_grad(g, call, &f, &b)
                          : leat_function_instantiate(g, call, &f, &b);
    if (!bad) {
        splice s = {.g = g, .call = call, .b = &b, .branch = branch};
        s.made = leat_new_array(leat_node *, b.g->n_nodes + 1);
        s.args = leat_new_array(leat_out, call->n_in + 1);
        bad = run(&s);
        free(s.made);
        free(s.args);
        leat_body_free(&b);
    }
    return bad ? leat_status_suffix(bad, " (call '%s')", call->name) : NULL;
}
