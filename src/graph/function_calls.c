/* function_calls.c -- which calls of a graph become bodies, and which are left to be made when the
 * graph runs: those of functions that call themselves or ask for it, and those that would make it
 * too large. */
#include <stdlib.h>
#include <string.h>

#include "core/alloc.h"
#include "graph/function.h"

/* What goes beyond these is called when the graph runs. */
enum {
    MOST_DEPTH = 100,    /* calls inside calls */
    MOST_NODES = 1 << 20 /* that inlining adds */
};

bool leat_function_is_call(const leat_node *n)
{
    return !n->dead && (n->op->def->grad == leat_call_grad || leat_node_is(n, "SymbolicGradient"));
}

/* A function that was called, or a condition or loop that was lowered, on the way to a node; place
 * 0 is none. */
typedef struct frame {
    const char *name; /* of the function; "": lowered */
    bool gradient;    /* its gradient was called */
    bool branch;      /* lowered: calls here are branches of which only that runs which is needed */
    bool pruned;      /* conditions and loops here have such branches */
    int outer;        /* the frame of the call itself */
    int depth;
} frame;

typedef struct inliner {
    leat_graph *g;
    leat_inlining which;
    frame *frames;
    int n_frames, cap_frames;
    int first;    /* nodes from here on were added */
    int *made_by; /* by id - first: the frame that the node belongs to */
    int cap_made_by;
    int *through; /* ids of nodes as leat_functions_prune has them */
    int n_through, cap_through;
} inliner;

static int frame_of(const inliner *x, const leat_node *n)
{
    return n->id < x->first ? 0 : x->made_by[n->id - x->first];
}

/* Nodes from `from` on belong to this frame. */
static void note_frame(inliner *x, int from, int frame)
{
    while (x->cap_made_by < x->g->n_nodes - x->first) {
        x->cap_made_by = x->cap_made_by ? x->cap_made_by * 2 : 64;
        x->made_by = leat_xrealloc(x->made_by, sizeof(*x->made_by) * (size_t)x->cap_made_by);
    }
    for (int i = from; i < x->g->n_nodes; i++)
        x->made_by[i - x->first] = frame;
}

static int open_frame(inliner *x, frame f)
{
    leat_grow(x->frames, x->n_frames, x->cap_frames);
    f.depth = x->frames[f.outer].depth + (f.name[0] != 0);
    x->frames[x->n_frames] = f;
    return x->n_frames++;
}

static void note_through(inliner *x, const leat_node *n)
{
    leat_grow(x->through, x->n_through, x->cap_through);
    x->through[x->n_through++] = n->id;
}

static bool too_much(const inliner *x, const char *name, bool gradient, int frame)
{
    if (x->frames[frame].depth >= MOST_DEPTH || x->g->n_nodes - x->first > MOST_NODES)
        return true;
    for (; frame; frame = x->frames[frame].outer)
        if (x->frames[frame].gradient == gradient && strcmp(x->frames[frame].name, name) == 0)
            return true; /* it is recursive */
    return false;
}

/* A call by the function's name becomes one by PartitionedCall or its stateful form. */
static void leave(leat_node *n)
{
    if (leat_op_find(n->op->def->name))
        return;
    leat_arena *a = &n->graph->arena;
    leat_func f = {leat_arena_strdup(a, n->op->def->name), n->attrs, n->n_attrs};
    leat_dtype *in = leat_arena_array(a, leat_dtype, n->n_in + 1);
    for (int i = 0; i < n->n_in; i++)
        in[i] = leat_dtype_base(leat_out_dtype(n->in[i]));
    const leat_attr own[] = {
        {.name = "Tin", .kind = LEAT_ARG_TYPES, .n = n->n_in, .types = in},
        {.name = "Tout", .kind = LEAT_ARG_TYPES, .n = n->n_out, .types = n->out_types},
        {.name = "f", .kind = LEAT_ARG_FUNC, .func = &f}};
    enum { OWN = sizeof(own) / sizeof(*own) };
    n->op = leat_op_find(n->op->def->flags & LEAT_OP_STATEFUL ? "StatefulPartitionedCall"
                                                              : "PartitionedCall");
    leat_attr *attrs = leat_arena_array(a, leat_attr, n->op->n_attrs + f.n_attrs);
    int count = n->op->n_attrs;
    for (int i = 0; i < count; i++) /* those of the op begin with these three */
        attrs[i] = leat_attr_copy(a, i < OWN ? &own[i] : n->op->attrs[i].fallback);
    for (int i = 0; i < f.n_attrs; i++)
        if (f.attrs[i].name[0] == '_')
            attrs[count++] = leat_attr_copy(a, &f.attrs[i]);
    for (int i = 0; i < f.n_attrs; i++)
        leat_attr_release(&f.attrs[i]);
    n->attrs = attrs;
    n->n_attrs = count;
}

/* The library says of a function that it is not to be inlined. */
static bool asks_not_to(const leat_graph *g, const char *name)
{
    const leat_function *f = leat_function_find(g, name);
    for (size_t i = 0; f && i < f->def->n_attr; i++)
        if (strcmp(f->def->attr[i]->key, "_noinline") == 0)
            return f->def->attr[i]->value && f->def->attr[i]->value->b;
    return false;
}

/* Calls may name an executor: TensorFlow has these. */
static leat_status check_executor(const leat_node *n)
{
    const leat_attr *a = leat_node_attr(n, "executor_type");
    LEAT_REQUIRE(!a || a->kind != LEAT_ARG_STRING || a->n == 0 || strcmp(a->s, "DEFAULT") == 0 ||
                     strcmp(a->s, "SINGLE_THREADED_EXECUTOR") == 0,
                 NOT_FOUND, "No executor factory registered for the given executor type: %s", a->s);
    return NULL;
}

/* TensorFlow lowers an If or While only if this attribute says so. */
static bool asks_to_lower(const leat_node *n)
{
    const leat_attr *a = leat_node_attr(n, "_lower_using_switch_merge");
    return a && a->kind == LEAT_ARG_BOOL && a->i;
}

static leat_status lower_node(inliner *x, leat_node *n)
{
    int outer = frame_of(x, n), from = x->g->n_nodes;
    bool asked = asks_to_lower(n), branch = asked && x->frames[outer].pruned;
    if (x->which == LEAT_INLINE_NONE || (x->which == LEAT_INLINE_AS_ASKED && !asked))
        return NULL;
    LEAT_TRY(leat_function_lower(x->g, n, branch));
    if (branch)
        note_through(x, n);
    note_frame(x, from, open_frame(x, (frame){.name = "", .branch = branch, .outer = outer}));
    return NULL;
}

static leat_status inline_node(inliner *x, leat_node *n)
{
    int outer = frame_of(x, n), from = x->g->n_nodes;
    const char *name = leat_arena_strdup(&x->g->arena, leat_called_function(n).name);
    bool gradient = leat_node_is(n, "SymbolicGradient"), branch = x->frames[outer].branch;
    LEAT_TRY(check_executor(n));
    if (x->which == LEAT_INLINE_NONE || too_much(x, name, gradient, outer) ||
        (x->which == LEAT_INLINE_AS_ASKED && asks_not_to(x->g, name))) {
        leave(n);
        return NULL;
    }
    LEAT_TRY(leat_function_inline(x->g, n, branch));
    if (branch)
        note_through(x, n);
    const frame f = {.name = name, .gradient = gradient, .pruned = branch, .outer = outer};
    note_frame(x, from, open_frame(x, f));
    return NULL;
}

static void prune(const inliner *x)
{
    bool *through = leat_new_array(bool, x->g->n_nodes + 1);
    for (int i = 0; i < x->n_through; i++)
        through[x->through[i]] = true;
    leat_functions_prune(x->g, through);
    free(through);
}

leat_status leat_functions_inline(leat_graph *g, leat_inlining which, bool in_function)
{
    inliner x = {.g = g, .which = which, .first = g->n_nodes};
    leat_grow(x.frames, x.n_frames, x.cap_frames);
    x.frames[x.n_frames++] = (frame){.name = "", .pruned = !in_function};
    g->no_call_shapes = true;
    leat_status s = NULL;
    for (int i = 0; i < g->n_nodes && !s; i++) {
        leat_node *n = g->nodes[i];
        if (!n->dead && leat_function_is_flow(n))
            s = lower_node(&x, n);
        else if (leat_function_is_call(n))
            s = inline_node(&x, n);
    }
    if (!s && x.n_through)
        prune(&x);
    free(x.through);
    free(x.made_by);
    free(x.frames);
    return s;
}
