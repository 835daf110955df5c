/* scope.c -- name, device, control and colocation scopes, and what they do to a new node. */
#include <stdlib.h>
#include <string.h>

#include "core/alloc.h"
#include "graph/device_name.h"
#include "graph/graph_int.h"

typedef struct device_scope {
    char *text; /* or */
    leat_device_fn fn;
    void *arg;
} device_scope;

typedef struct control_scope {
    leat_node **nodes;
    int n;
    int first_id; /* nodes from here on were made inside */
    bool clears;  /* those outside do not count */
} control_scope;

struct leat_scopes {
    const char **names; /* full, with the slash at the end */
    device_scope *devices;
    control_scope *controls;
    leat_node **colocate;
    int n_names, cap_names, n_devices, cap_devices, n_controls, cap_controls, n_colocate,
        cap_colocate;
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
    return g->scopes->n_names ? g->scopes->names[g->scopes->n_names - 1] : "";
}

/* "a/" enters an existing scope again; NULL or "" goes back to the root. */
void leat_name_scope_enter(leat_graph *g, const char *name)
{
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
    leat_device_name parsed;
    leat_status s = leat_device_name_parse(device ? device : "", &parsed);
    if (s)
        leat_graph_fail(g, (leat_loc){0}, s);
    push_device(g, (device_scope){.text = leat_xstrdup(s || !device ? "" : device)});
}

void leat_device_fn_enter(leat_graph *g, leat_device_fn fn, void *arg)
{
    push_device(g, (device_scope){.fn = fn, .arg = arg});
}

void leat_device_leave(leat_graph *g)
{
    if (g->scopes->n_devices)
        free(g->scopes->devices[--g->scopes->n_devices].text);
}

static void push_control(leat_graph *g, control_scope c)
{
    struct leat_scopes *s = g->scopes;
    c.first_id = g->n_nodes;
    leat_grow(s->controls, s->n_controls, s->cap_controls);
    s->controls[s->n_controls++] = c;
}

void leat_control_enter(leat_graph *g, const leat_out *x, int n)
{
    control_scope c = {.nodes = leat_new_array(leat_node *, n + 1)};
    for (int i = 0; i < n; i++)
        if (leat_out_ok(x[i]))
            c.nodes[c.n++] = x[i].node;
    push_control(g, c);
}

void leat_control_clear_enter(leat_graph *g)
{
    push_control(g, (control_scope){.clears = true});
}

void leat_control_leave(leat_graph *g)
{
    if (g->scopes->n_controls)
        free(g->scopes->controls[--g->scopes->n_controls].nodes);
}

void leat_colocate_enter(leat_graph *g, leat_out with)
{
    struct leat_scopes *s = g->scopes;
    leat_grow(s->colocate, s->n_colocate, s->cap_colocate);
    s->colocate[s->n_colocate++] = leat_out_ok(with) ? with.node : NULL;
}

void leat_colocate_leave(leat_graph *g)
{
    if (g->scopes->n_colocate)
        g->scopes->n_colocate--;
}

/* A dependency is implied if an input was made inside the scope: it waited already. */
static void apply_control(const struct leat_scopes *s, leat_node *n)
{
    for (int c = s->n_controls - 1; c >= 0 && !s->controls[c].clears; c--) {
        const control_scope *scope = &s->controls[c];
        bool implied = false;
        for (int i = 0; i < n->n_in; i++)
            implied |= n->in[i].node && n->in[i].node->id >= scope->first_id;
        for (int i = 0; !implied && i < scope->n; i++)
            leat_node_add_control(n, scope->nodes[i]);
    }
}

static leat_status apply_device(leat_graph *g, leat_node *n)
{
    char text[160];
    for (int i = g->scopes->n_devices - 1; i >= 0; i--) {
        const device_scope *d = &g->scopes->devices[i];
        leat_device_name own, outer;
        if (d->fn) {
            const char *answer = d->fn(d->arg, n);
            if (answer) {
                LEAT_TRY(leat_device_name_parse(answer, &own));
                n->device = leat_arena_strdup(&g->arena, answer);
            }
            continue;
        }
        LEAT_TRY(leat_device_name_parse(n->device, &own));
        LEAT_TRY(leat_device_name_parse(d->text, &outer));
        own = leat_device_name_merge(&own, &outer);
        n->device = leat_arena_strdup(&g->arena, leat_device_name_text(&own, text, sizeof(text)));
    }
    return NULL;
}

/* A node colocated with another takes its device, and says so in _class. */
static void apply_colocation(leat_graph *g, leat_node *n, leat_node *with)
{
    const leat_attr *theirs = leat_node_attr(with, "_class");
    leat_attr a = {.name = "_class", .kind = LEAT_ARG_STRINGS, .n = 1};
    const char *own = leat_arena_printf(&g->arena, "loc:@%s", with->name);
    int size = (int)strlen(own);
    a.strings = &own;
    a.sizes = &size;
    if (theirs)
        a = *theirs;
    leat_node_set_attr(n, &a);
    n->device = with->device;
}

leat_status leat_scopes_apply(leat_graph *g, leat_node *n)
{
    leat_status s = apply_device(g, n);
    if (s)
        return s;
    apply_control(g->scopes, n);
    if (g->scopes->n_colocate && g->scopes->colocate[g->scopes->n_colocate - 1])
        apply_colocation(g, n, g->scopes->colocate[g->scopes->n_colocate - 1]);
    return NULL;
}

void leat_graph_set_seed(leat_graph *g, int64_t seed)
{
    g->seed = seed;
    g->has_seed = true;
}
