/* guard.c -- initial values that depend on other variables. All initialisers run in one step, in no
 * particular order, so a variable on which another's initial value depends may have no value yet.
 * In copies of the nodes between, its initialized value, which is a cond of its value and its
 * initial value, is used instead. */
#include <stdlib.h>
#include <string.h>

#include "core/alloc.h"
#include "train/train_int.h"

leat_out leat_is_variable_initialized_at(leat_loc at, leat_out v)
{
    leat_variable_nodes n;
    if (!leat_variable_find(v, &n))
        return v;
    leat_out self = {n.self, 0};
    return leat_op_of(at, n.resource ? "VarIsInitializedOp" : "IsVariableInitialized", &self, 1,
                      LEAT_ARGS());
}

/* The branch of a cond that reads the variable's value. */
static leat_out read_branch(leat_graph *g, const leat_variable_nodes *n, leat_out pred)
{
    leat_out self = {n->self, 0}, branch;
    if (!n->resource) {
        leat_colocate_only_enter(g, self);
        branch = LEAT_OP2("RefSwitch", self, pred, leat_name("read/Switch"));
        leat_colocate_leave(g);
        return leat_identity(leat_output(branch, 1), leat_name("read"));
    }
    leat_colocate_only_enter(g, self);
    branch = LEAT_OP2("Switch", self, pred, leat_name("Read/ReadVariableOp/Switch"));
    leat_colocate_leave(g);
    leat_out value = LEAT_OP1("ReadVariableOp", leat_output(branch, 1),
                              leat_attr_type("dtype", leat_node_type(n->self, "dtype")),
                              leat_name("Read/ReadVariableOp"));
    return leat_identity(value);
}

leat_out leat_variable_initialized_value_at(leat_loc at, leat_out v)
{
    leat_variable_nodes n;
    if (!leat_variable_find(v, &n) || !n.init)
        return v;
    leat_graph *g = n.self->graph;
    leat_out initial = n.init->in[1], merged = {0}, branch = {0};
    leat_loc outer = leat_at_enter(g, at);
    leat_control_clear_enter(g);
    leat_out is = leat_is_variable_initialized(v);
    leat_with_name(g, "cond")
    {
        leat_out both = LEAT_OP2("Switch", is, is);
        leat_identity(leat_output(both, 1), leat_name("switch_t"));
        leat_identity(both, leat_name("switch_f"));
        leat_out pred = leat_identity(is, leat_name("pred_id"));
        leat_out value = read_branch(g, &n, pred);
        leat_colocate_only_enter(g, initial);
        branch = LEAT_OP2("Switch", initial, pred, leat_name("Switch_1"));
        leat_colocate_leave(g);
        const leat_out merge[2] = {branch, value};
        merged = LEAT_OPN("Merge", merge, 2);
    }
    leat_control_leave(g);
    leat_at_leave(g, outer);
    return merged;
}

/* ---- The nodes between a variable and the initial value that depends on it ---- */

typedef struct guard {
    leat_graph *g;
    const char *name;  /* name of the variable that is being made */
    leat_map seen;     /* the nodes that the initial value depends on, by address */
    leat_node **above; /* the same, in a list */
    int n_above, cap_above;
    leat_map instead; /* address of a node -> the copy that replaces it */
} guard;

/* Nodes that work whether variables are initialised or not. The read of a handle is one, unless it
 * reads the variable itself, which is to be replaced. */
static bool is_safe(const leat_node *n)
{
    const leat_role role = leat_node_role(n);
    return role == LEAT_ROLE_IS_INITIALIZED || role == LEAT_ROLE_IF ||
           (role == LEAT_ROLE_READ && leat_node_role(n->in[0].node) != LEAT_ROLE_HANDLE);
}

/* Whether the node gives a variable's value: its reference, or the read of its handle. */
static bool is_source(leat_node *n, leat_variable_nodes *v)
{
    return n->n_out && leat_variable_find((leat_out){n, 0}, v) && v->init &&
           (v->resource ? leat_node_role(n) == LEAT_ROLE_READ : v->self == n);
}

static void add(guard *u, leat_node *n)
{
    if (!n || leat_map_put_n(&u->seen, &n, sizeof(n), n))
        return;
    leat_grow(u->above, u->n_above, u->cap_above);
    u->above[u->n_above++] = n;
}

static int by_id(const void *a, const void *b)
{
    return (*(leat_node *const *)a)->id - (*(leat_node *const *)b)->id;
}

/* Lists the nodes, inputs first. Returns false if the value depends on itself, through a loop. */
static bool mark(guard *u, leat_node *from)
{
    bool loops = false;
    add(u, from);
    for (int at = 0; at < u->n_above; at++) {
        const leat_node *n = u->above[at];
        loops |= leat_is_next_iteration(n);
        for (int i = 0; i < n->n_in && !is_safe(n); i++)
            add(u, n->in[i].node);
    }
    qsort(u->above, (size_t)u->n_above, sizeof(*u->above), by_id);
    return !loops;
}

static leat_out replaced(const guard *u, leat_out x)
{
    leat_node *n = x.node ? leat_map_get_n(&u->instead, &x.node, sizeof(x.node)) : NULL;
    return n ? (leat_out){n, x.index} : x;
}

static void use_instead(guard *u, leat_node *n, leat_node *copy)
{
    leat_map_put_n(&u->instead, &n, sizeof(n), copy);
}

static leat_status copy_node(guard *u, leat_node *n)
{
    leat_graph *g = u->g;
    leat_out *in = leat_new_array(leat_out, n->n_in + 1);
    for (int i = 0; i < n->n_in; i++)
        in[i] = replaced(u, n->in[i]);
    leat_node_spec spec = {
        .op = leat_is_switch(n) ? "Switch" : n->op->def->name,
        .name = leat_arena_printf(&g->arena, "%s_%s", n->name, u->name),
        .in = in,
        .n_in = n->n_in,
        .attrs = n->attrs,
        .n_attrs = n->n_attrs,
        .at = n->at,
    };
    leat_node *copy;
    leat_name_scope_enter(g, NULL);
    leat_status s = leat_graph_add(g, &spec, &copy);
    leat_name_scope_leave(g);
    if (!s)
        use_instead(u, n, copy);
    free(in);
    return s;
}

static leat_status replace(guard *u, leat_node *n)
{
    leat_variable_nodes v;
    if (is_safe(n))
        return NULL;
    if (is_source(n, &v)) {
        leat_out x = leat_variable_initialized_value(((leat_out){v.self, 0}));
        if (leat_out_ok(x))
            use_instead(u, n, x.node);
        return NULL;
    }
    bool changed = false;
    for (int i = 0; i < n->n_in; i++)
        changed |= replaced(u, n->in[i]).node != n->in[i].node;
    return changed ? copy_node(u, n) : NULL;
}

leat_out leat_guard_initial_value(leat_graph *g, const char *name, leat_out x)
{
    if (!leat_out_ok(x) || g->status)
        return x;
    guard u = {.g = g, .name = name};
    leat_status s = NULL;
    if (mark(&u, x.node))
        for (int i = 0; i < u.n_above && !s && !g->status; i++)
            s = replace(&u, u.above[i]);
    if (s)
        x = leat_graph_fail(g, (leat_loc){0}, s);
    else
        x = replaced(&u, x);
    leat_map_release(&u.seen);
    leat_map_release(&u.instead);
    free(u.above);
    return x;
}
