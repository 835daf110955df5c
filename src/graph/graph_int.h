/* graph_int.h -- the inside of graphs, for the rooms that build, change and compile them.
 *
 * 1. A node's id is its index in graph->nodes. Inputs of a node have smaller ids, except for the
 *    back edges of loops (NextIteration into Merge), which leat_node_set_input adds. Control inputs
 *    of a loop's NextIteration and ControlTrigger may have larger ids: gradients order stack
 *    operations by them. There are no cycles but through NextIteration.
 * 2. Everything a node points to lives in its graph's arena, but tensors, which are counted.
 * 3. Every attribute that the op declares is present, in the order of the definition; those that
 *    begin with "_" may follow.
 */
#ifndef LEAT_GRAPH_INT_H
#define LEAT_GRAPH_INT_H

#include <leat/extend.h>
#include <pthread.h>
#include "core/arena.h"
#include "core/map.h"
#include "graph/op_info.h"

/* A function by name with attributes bound to it. */
typedef struct leat_func {
    const char *name;
    leat_attr *attrs;
    int n_attrs;
} leat_func;

/* An attribute's value. kind is a LEAT_ARG_ kind, or one of those below. */
struct leat_attr {
    const char *name;
    int kind;
    int n; /* items of a list; bytes of a string */
    union {
        int64_t i; /* int, bool, type */
        double f;
        const char *s; /* string, placeholder */
        const leat_shape *shape;
        leat_tensor *tensor; /* counted */
        const leat_func *func;
        const int64_t *ints; /* list of int, list of bool */
        const double *floats;
        const leat_dtype *types;
        const leat_shape *shapes;
        const char *const *strings;
        leat_tensor **tensors; /* counted */
        const leat_func *funcs;
    };
    const int *sizes; /* bytes of each of strings */
};
enum { LEAT_ARG_BOOLS = 100, LEAT_ARG_TENSORS, LEAT_ARG_FUNCS, LEAT_ARG_PLACEHOLDER };

/* What is behind a resource handle, where known. */
typedef struct leat_handle_info {
    leat_dtype dtype;
    leat_shape shape;
} leat_handle_info;

struct leat_node {
    leat_graph *graph;
    int id;
    const char *name;
    const leat_op_info *op;
    const char *device; /* as asked for; after placement, the full name */
    leat_out *in;
    leat_node **controls;
    leat_attr *attrs;
    leat_dtype *out_types;
    leat_shape *out_shapes;
    leat_handle_info **out_handles; /* NULL, or one for each output, each may be NULL */
    int n_in, n_controls, n_attrs, n_out;
    leat_loc at;
    bool dead;                    /* removed by a pass */
    bool wanted;                  /* a run asks for its completion: passes keep it */
    struct leat_control_ctx *ctx; /* the cond branch or loop that it belongs to, or NULL */
    int control_base;             /* the clearing control scope that it was made in, or 0 */
};

typedef struct leat_control_ctx leat_control_ctx; /* a cond branch or a loop: control_ctx.h */
typedef struct leat_function leat_function;       /* a function of the library */

struct leat_graph {
    pthread_mutex_t lock; /* guards growth against sessions that compile */
    leat_arena arena;
    leat_node **nodes;
    int n_nodes, cap_nodes;
    leat_map by_name;    /* name -> node */
    leat_map names_used; /* lower-case name -> (void *)count, for unique names */
    leat_status status;  /* the first mistake */
    leat_node *poison;   /* what constructors give after a mistake; not in nodes */
    struct leat_scopes *scopes;
    leat_map collections;          /* name -> struct collection */
    leat_map functions;            /* name -> leat_function */
    leat_function **function_list; /* in the order they were added */
    int n_functions, cap_functions;
    const leat_graph *library;     /* where other functions are found, or NULL; outlives this */
    /* Of a function's body: the call that it is made for, how many bodies it is inside of, and how
     * many nodes were made already to know the shapes of calls. */
    const leat_node *call;
    int call_depth;
    int64_t *call_work, own_call_work;
    bool no_call_shapes; /* calls are about to be inlined: their shapes do not matter */
    leat_control_ctx *control_ctx; /* the innermost open one, or NULL */
    leat_control_ctx *contexts;    /* all of them */
    int ctx_off;                   /* above 0: whoever adds a node says where it belongs */
    leat_loc at_override;          /* file NULL: none. Gradient nodes get the caller's place */
    leat_map extras;               /* other rooms' objects by key: leat_graph_extra */
    int64_t seed;
    bool has_seed;
    int producer; /* GraphDef versions.producer */
};

/* What a new node is made of. Zeroed fields mean none. */
typedef struct leat_node_spec {
    const char *op, *name, *device;
    const leat_out *in; /* flat; lists in the order of the definition */
    int n_in;
    const int *list_n; /* length of each list argument, -1 for single ones; NULL: from attributes */
    leat_node *const *controls;
    int n_controls;
    const leat_attr *attrs;
    int n_attrs;
    leat_loc at;
    bool exact_name; /* name is final, scopes do not apply (import, passes) */
    bool loose;      /* inputs may be missing ({NULL, 0}): Merge of a loop being imported */
} leat_node_spec;

/* Adds a node; checks op, inputs, attributes and shapes. On failure the graph is as before and
 * its status is not touched. */
leat_status leat_graph_add(leat_graph *g, const leat_node_spec *spec,
                           leat_node **out) LEAT_MUST_CHECK;
/* Makes s the graph's mistake if it is the first; takes s. Gives the poison output. */
leat_out leat_graph_fail(leat_graph *g, leat_loc at, leat_status s);
/* Replaces input i, checking its dtype. */
leat_status leat_node_set_input(leat_node *n, int i, leat_out x) LEAT_MUST_CHECK;
void leat_node_add_control(leat_node *n, leat_node *before);     /* once, however often asked */
leat_attr *leat_node_attr(const leat_node *n, const char *name); /* NULL if absent */
/* Sets or replaces an attribute of n (copied into the arena, tensors shared). */
void leat_node_set_attr(leat_node *n, const leat_attr *a);
leat_status leat_node_infer(leat_node *n) LEAT_MUST_CHECK;   /* runs the shape function */
leat_attr leat_attr_copy(leat_arena *a, const leat_attr *v); /* deep; shares tensors */
void leat_attr_release(leat_attr *a);                        /* lets go of tensors */
bool leat_attr_equal(const leat_attr *a, const leat_attr *b);
/* An object of another room that lives with the graph; made zeroed, in the arena, when missing. */
void *leat_graph_extra(leat_graph *g, const char *key, size_t size);

static inline bool leat_node_is(const leat_node *n, const char *op)
{
    return __builtin_strcmp(n->op->def->name, op) == 0;
}
static inline bool leat_out_ok(leat_out x)
{
    return x.node && x.node != x.node->graph->poison;
}

/* What is built until at_override is set back has the caller's place, or that of its caller. */
static inline leat_loc leat_at_enter(leat_graph *g, leat_loc at)
{
    leat_loc outer = g->at_override;
    if (!outer.file)
        g->at_override = at;
    return outer;
}

/* A constant with a name. */
leat_out leat_int_vector_named(leat_loc at, leat_graph *g, leat_dtype t, const int64_t *v, int n,
                               const char *name);

/* "scope/name" made unique as TensorFlow does, in the arena. */
const char *leat_unique_name(leat_graph *g, const char *name);
void leat_name_use(leat_graph *g, const char *name); /* a final name is taken */
bool leat_name_valid(const char *name);

/* scope.c, used by leat_graph_add and by graph.c */
struct leat_scopes *leat_scopes_new(void);
void leat_scopes_free(struct leat_scopes *s);
leat_status leat_scopes_apply(leat_graph *g, leat_node *n) LEAT_MUST_CHECK;
/* The opened control dependencies, for control flow builders. */
void leat_collections_free(leat_graph *g);
/* Walks the names of collections, in no order: size_t i = 0; while (leat_collection_next(g, &i, ...)) */
bool leat_collection_next(const leat_graph *g, size_t *i, const char **name);

/* As leat_colocate_enter, but scopes outside do not count. */
void leat_colocate_only_enter(leat_graph *g, leat_out with);

/* control_ctx.c, used by leat_graph_add: brings the inputs of a node into the open context (may add
 * nodes), and says which context it will belong to; then its control inputs. */
leat_status leat_ctx_take_inputs(leat_graph *g, const char *op, const char *name, leat_out *in,
                                 int n_in, leat_control_ctx **ctx_out) LEAT_MUST_CHECK;
leat_status leat_ctx_take_controls(leat_control_ctx *ctx, leat_node *n) LEAT_MUST_CHECK;
void leat_control_ctxs_free(leat_graph *g);

/* function.c: the library's function of this name as an op, or NULL; and freeing them all. */
const leat_op_info *leat_function_op(leat_graph *g, const char *name);
void leat_functions_free(leat_graph *g);

#endif
