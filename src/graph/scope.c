/* scope.c -- name, device, control and colocation scopes, and how they apply to a new node. */
#include <stdlib.h>
#include <string.h>

#include "core/alloc.h"
#include "graph/device_name.h"
#include "graph/graph_int.h"

typedef struct device_scope {
    char *text; /* the device, if fn is NULL */
    leat_device_fn fn;
    void *arg;
} device_scope;

typedef struct colocate_scope {
    leat_node *with; /* NULL: the colocation is with the result of a mistake */
    /* Number of device scopes outside, which are ignored: colocation overrides them. */
    int n_devices;
    bool only; /* colocation scopes outside are ignored, too */
} colocate_scope;

typedef struct control_scope {
    leat_node **nodes;
    int n;
    int first_id;          /* nodes with this id or above were made inside the scope */
    int serial;            /* counts up from 1 */
    bool clears;           /* control scopes outside are ignored */
    leat_control_ctx *ctx; /* the control context that was open outside of a scope that clears */
} control_scope;

struct leat_scopes {
    const char **names; /* full names, which end with a slash */
    device_scope *devices;
    control_scope *controls;
    colocate_scope *colocate;
    int n_names, cap_names, n_devices, cap_devices, n_controls, cap_controls, n_colocate,
        cap_colocate;
    int last_serial; /* the last serial number of a control scope */
};

struct leat_scopes *leat_scopes_new(void)
{
    return leat_new(struct leat_scopes);
}

void leat_scopes_free(struct leat_scopes *s)
{
    for (int i = 0; i < s->n_devices; i++)
        free(s->devices[i].text);
    for (int i = 0; i < s->n_controls; i++)
        free(s->controls[i].nodes);
    free(s->names);
    free(s->devices);
    free(s->controls);
    free(s->colocate);
    free(s);
}

const char *leat_name_scope(const leat_graph *g)
{
    if (!LEAT_USABLE(GRAPH, g))
        return "";
    return g->scopes->n_names ? g->scopes->names[g->scopes->n_names - 1] : "";
}

/* "a/" enters an existing scope again; NULL or "" returns to the root. */
void leat_name_scope_enter(leat_graph *g, const char *name)
{
    if (!LEAT_USABLE(GRAPH, g))
        return;
    struct leat_scopes *s = g->scopes;
    const char *full = "";
    size_t n = name ? strlen(name) : 0;
    if (n && name[n - 1] == '/')
        full = leat_arena_strdup(&g->arena, name);
    else if (n && leat_name_valid(name))
        full = leat_arena_printf(&g->arena, "%s/", leat_unique_name(g, name));
    else if (n)
        leat_graph_fail(g, (leat_loc){0},
                        leat_error(INVALID_ARGUMENT, "'%s' is not a valid scope name", name));
    leat_grow(s->names, s->n_names, s->cap_names);
    s->names[s->n_names++] = full;
}

void leat_name_scope_leave(leat_graph *g)
{
    if (!LEAT_USABLE(GRAPH, g))
        return;
    if (g->scopes->n_names)
        g->scopes->n_names--;
}

static void push_device(leat_graph *g, device_scope d)
{
    struct leat_scopes *s = g->scopes;
    leat_grow(s->devices, s->n_devices, s->cap_devices);
    s->devices[s->n_devices++] = d;
}

void leat_device_enter(leat_graph *g, const char *device)
{
    if (!LEAT_USABLE(GRAPH, g))
        return;
    leat_device_name parsed;
    leat_status s = leat_device_name_parse(device ? device : "", &parsed);
    if (s)
        leat_graph_fail(g, (leat_loc){0}, s);
    push_device(g, (device_scope){.text = leat_xstrdup(s || !device ? "" : device)});
}

void leat_device_fn_enter(leat_graph *g, leat_device_fn fn, void *arg)
{
    if (!LEAT_USABLE(GRAPH, g))
        return;
    push_device(g, (device_scope){.fn = fn, .arg = arg});
}

void leat_device_leave(leat_graph *g)
{
    if (!LEAT_USABLE(GRAPH, g))
        return;
    if (g->scopes->n_devices)
        free(g->scopes->devices[--g->scopes->n_devices].text);
}

static void push_control(leat_graph *g, control_scope c)
{
    struct leat_scopes *s = g->scopes;
    c.first_id = g->n_nodes;
    c.serial = ++s->last_serial;
    leat_grow(s->controls, s->n_controls, s->cap_controls);
    s->controls[s->n_controls++] = c;
}

void leat_control_enter(leat_graph *g, const leat_out *x, int n)
{
    if (!LEAT_USABLE(GRAPH, g))
        return;
    control_scope c = {.nodes = leat_new_array(leat_node *, n + 1)};
    for (int i = 0; i < n; i++)
        if (leat_out_ok(x[i]))
            c.nodes[c.n++] = x[i].node;
    push_control(g, c);
}

/* Open conds and loops are left, too, because they also make a node depend on others. */
void leat_control_clear_enter(leat_graph *g)
{
    if (!LEAT_USABLE(GRAPH, g))
        return;
    push_control(g, (control_scope){.clears = true, .ctx = g->control_ctx});
    g->control_ctx = NULL;
}

void leat_control_leave(leat_graph *g)
{
    if (!LEAT_USABLE(GRAPH, g))
        return;
    if (!g->scopes->n_controls)
        return;
    control_scope *c = &g->scopes->controls[--g->scopes->n_controls];
    if (c->clears)
        g->control_ctx = c->ctx;
    free(c->nodes);
}

static void push_colocate(leat_graph *g, leat_out with, bool only)
{
    struct leat_scopes *s = g->scopes;
    leat_grow(s->colocate, s->n_colocate, s->cap_colocate);
    s->colocate[s->n_colocate++] =
        (colocate_scope){leat_out_ok(with) ? with.node : NULL, s->n_devices, only};
}

void leat_colocate_enter(leat_graph *g, leat_out with)
{
    if (!LEAT_USABLE(GRAPH, g))
        return;
    push_colocate(g, with, false);
}

void leat_colocate_only_enter(leat_graph *g, leat_out with)
{
    push_colocate(g, with, true);
}

void leat_colocate_leave(leat_graph *g)
{
    if (!LEAT_USABLE(GRAPH, g))
        return;
    if (g->scopes->n_colocate)
        g->scopes->n_colocate--;
}

/* The node was made inside the scope and not in a clearing scope inside it, so it depends on the
 * scope's control inputs already. */
static bool waited(const leat_node *n, const control_scope *scope)
{
    return n && n->id >= scope->first_id && n->control_base <= scope->serial;
}

/* A control dependency is not needed if an input of the node has it, or is the input itself. */
static void apply_control(const struct leat_scopes *s, leat_node *n)
{
    int c = s->n_controls - 1;
    leat_control_adder adder = leat_control_adder_of(n);
    for (int i = 0; i < n->n_in; i++)
        if (n->in[i].node)
            n->in[i].node->mark = adder.mark;
    for (; c >= 0 && !s->controls[c].clears; c--) {
        const control_scope *scope = &s->controls[c];
        bool implied = false;
        for (int i = 0; i < n->n_in; i++)
            implied |= waited(n->in[i].node, scope);
        for (int i = 0; !implied && i < scope->n; i++)
            leat_control_adder_add(&adder, scope->nodes[i]);
    }
    n->control_base = c >= 0 ? s->controls[c].serial : 0;
}

/* Applies the device scopes from `first` on. */
static leat_status apply_device(leat_graph *g, leat_node *n, int first)
{
    char text[160];
    for (int i = g->scopes->n_devices - 1; i >= first; i--) {
        const device_scope *d = &g->scopes->devices[i];
        leat_device_name own, outer;
        if (d->fn) {
            const char *answer = d->fn(d->arg, n);
            if (answer) {
                LEAT_TRY(leat_device_name_parse(answer, &own));
                n->device = leat_graph_device(g, answer);
            }
            continue;
        }
        LEAT_TRY(leat_device_name_parse(n->device, &own));
        LEAT_TRY(leat_device_name_parse(d->text, &outer));
        own = leat_device_name_merge(&own, &outer);
        n->device = leat_graph_device(g, leat_device_name_text(&own, text, sizeof(text)));
    }
    return NULL;
}

/* ---- Colocation: "loc:@name" in the attribute _class, and the other node's device ---- */

typedef struct name_list {
    const char **v; /* sorted */
    int n, cap;
} name_list;

/* The colocation group of a node: the node itself, or those that it is colocated with. */
static void add_groups(leat_graph *g, leat_node *with, name_list *groups)
{
    const leat_attr *theirs = leat_node_attr(with, "_class");
    int n = theirs ? theirs->n : 1;
    for (int i = 0; i < n; i++) {
        const char *name =
            theirs ? theirs->strings[i] : leat_arena_printf(&g->arena, "loc:@%s", with->name);
        int at = 0, order = 1;
        while (at < groups->n && (order = strcmp(groups->v[at], name)) < 0)
            at++;
        if (at < groups->n && order == 0)
            continue;
        leat_grow(groups->v, groups->n, groups->cap);
        memmove(groups->v + at + 1, groups->v + at, sizeof(*groups->v) * (size_t)(groups->n - at));
        groups->v[at] = name;
        groups->n++;
    }
}

static void colocate(leat_graph *g, leat_node *with, name_list *groups, const char **device)
{
    add_groups(g, with, groups);
    if (with->device[0])
        *device = with->device;
}

/* The variable that input a of n is a reference to, if the op takes a reference there. */
static leat_node *ref_input(const leat_node *n, int a)
{
    return a < n->n_in && n->op->in[a].is_ref ? n->in[a].node : NULL;
}

/* n is colocated with the nodes of the open scopes and with the variables that it has references
 * to. The outermost that has a device determines n's device. */
static void apply_colocation(leat_graph *g, leat_node *n)
{
    const struct leat_scopes *s = g->scopes;
    name_list groups = {0};
    for (int a = n->op->n_in - 1; a >= 0; a--)
        if (ref_input(n, a))
            colocate(g, ref_input(n, a), &groups, &n->device);
    for (int i = s->n_colocate - 1; i >= 0; i--) {
        if (s->colocate[i].with)
            colocate(g, s->colocate[i].with, &groups, &n->device);
        if (s->colocate[i].only)
            break;
    }
    if (groups.n) {
        leat_attr a = {.name = "_class", .kind = LEAT_ARG_STRINGS, .n = groups.n};
        int *sizes = leat_new_array(int, groups.n);
        for (int i = 0; i < groups.n; i++)
            sizes[i] = (int)strlen(groups.v[i]);
        a.strings = groups.v;
        a.sizes = sizes;
        leat_node_set_attr(n, &a);
        free(sizes);
    }
    free(groups.v);
}

leat_status leat_scopes_apply(leat_graph *g, leat_node *n)
{
    const struct leat_scopes *s = g->scopes;
    int first = s->n_colocate ? s->colocate[s->n_colocate - 1].n_devices : 0;
    for (int a = 0; a < n->op->n_in; a++)
        if (ref_input(n, a)) /* treated like a scope inside all other scopes */
            first = s->n_devices;
    LEAT_TRY(apply_device(g, n, first));
    apply_control(s, n);
    apply_colocation(g, n);
    return NULL;
}

void leat_graph_set_seed(leat_graph *g, int64_t seed)
{
    if (!LEAT_USABLE(GRAPH, g))
        return;
    g->seed = seed;
    g->has_seed = true;
}
