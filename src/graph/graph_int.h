/* graph_int.h -- the internals of graphs, for the folders that build, change and compile them.
 *
 * 1. A node's id is its index in graph->nodes. Inputs of a node have smaller ids, except for the
 *    back edges of loops (NextIteration into Merge), which leat_node_set_input adds. Control inputs
 *    of a loop's NextIteration and ControlTrigger may have larger ids: gradients order stack
 *    operations by them. There are no cycles but through NextIteration.
 * 2. Everything that a node points to is in its graph's arena, except tensors, which are
 * reference-counted. 3. Every attribute that the op declares is present, in the order of the
 * definition; those that
 *    begin with "_" may follow.
 */
#ifndef LEAT_GRAPH_INT_H
#define LEAT_GRAPH_INT_H

#include <leat/extend.h>
#include <pthread.h>
#include "core/arena.h"
#include "core/map.h"
#include "core/object.h"
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
        leat_tensor *tensor; /* reference-counted */
        const leat_func *func;
        const int64_t *ints; /* list of int, list of bool */
        const double *floats;
        const leat_dtype *types;
        const leat_shape *shapes;
        const char *const *strings;
        leat_tensor **tensors; /* reference-counted */
        const leat_func *funcs;
    };
    const int *sizes; /* bytes of each of strings */
};
enum { LEAT_ARG_BOOLS = 100, LEAT_ARG_TENSORS, LEAT_ARG_FUNCS, LEAT_ARG_PLACEHOLDER };

/* The dtype and shape of the resource behind a handle, where known. */
typedef struct leat_handle_info {
    leat_dtype dtype;
    leat_shape shape;
} leat_handle_info;

struct leat_node {
    leat_graph *graph;
    int id;
    int mark; /* the last leat_control_adder that found the node among control inputs */
    const char *name;
    const leat_op_info *op;
    const char *device; /* as given by the user; after placement, the full name */
    leat_out *in;
    leat_node **controls;
    leat_attr *attrs;
    leat_dtype *out_types;
    leat_shape *out_shapes;
    leat_handle_info **out_handles; /* NULL, or one for each output, each may be NULL */
    int n_in, n_controls, n_attrs, n_out;
    leat_loc at;
    bool dead;                    /* removed by a pass */
    bool wanted;                  /* the node is a target of the run: passes keep it */
    struct leat_control_ctx *ctx; /* the cond branch or loop that it belongs to, or NULL */
    /* The control scope with control_dependencies(None) that it was made in, or 0. */
    int control_base;
    int cap_controls; /* room in controls */
};

typedef struct leat_control_ctx leat_control_ctx; /* a cond branch or a loop: control_ctx.h */
typedef struct leat_function leat_function;       /* a function of the library */

struct leat_graph {
    leat_object object;
    pthread_mutex_t lock; /* guards additions to the graph against sessions that compile it */
    leat_arena arena;
    leat_node **nodes;
    int n_nodes, cap_nodes;
    int last_mark;           /* of leat_control_adder */
    leat_map by_name;        /* name -> node */
    leat_map names_used;     /* lower-case name -> (void *)count, for unique names */
    const char *last_device; /* of leat_graph_device */
    leat_status status;      /* the first mistake */
    /* The node of outputs that constructors give after a mistake; not in nodes. */
    leat_node *poison;
    struct leat_scopes *scopes;
    leat_map collections;          /* name -> struct collection */
    leat_map functions;            /* name -> leat_function */
    leat_function **function_list; /* in the order they were added */
    int n_functions, cap_functions;
    const leat_graph *library; /* where further functions are found, or NULL; outlives this graph */
    /* For the body of a function: the call that it is made for, how deeply calls are nested, and
     * how many nodes were made so far to infer shapes of calls. */
    const leat_node *call;
    int call_depth;
    int64_t *call_work, own_call_work;
    bool no_call_shapes;           /* calls will be inlined: their output shapes are not inferred */
    leat_control_ctx *control_ctx; /* the innermost open one, or NULL */
    leat_control_ctx *contexts;    /* all of them */
    int ctx_off;                   /* above 0: the code that adds a node sets its context itself */
    /* File NULL: none. Gradient nodes get the location of the call to leat_gradients. */
    leat_loc at_override;
    leat_map extras; /* objects of other folders by key: leat_graph_extra */
    int64_t seed;
    bool has_seed;
    int producer; /* GraphDef versions.producer */
};

/* The description of a new node. Fields that are zero are not given. */
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
    bool exact_name; /* name is final and does not get the scopes' prefix (import, passes) */
    bool loose;      /* inputs may be missing ({NULL, 0}): Merge of a loop being imported */
} leat_node_spec;

/* Adds a node; checks op, inputs, attributes and shapes. On failure the graph and its status are
 * unchanged. */
leat_status leat_graph_add(leat_graph *g, const leat_node_spec *spec,
                           leat_node **out) LEAT_MUST_CHECK;
/* The name of a device, in the arena; the same pointer if the call before gave that name. */
const char *leat_graph_device(leat_graph *g, const char *device);
/* Frees what finds nodes by name: nothing is looked for in the graph, or added to it, any more. */
void leat_graph_seal(leat_graph *g);
/* Records s as the graph's mistake if it is the first; takes s. Gives the poison output. */
leat_out leat_graph_fail(leat_graph *g, leat_loc at, leat_status s);
/* Replaces input i, checking its dtype. */
leat_status leat_node_set_input(leat_node *n, int i, leat_out x) LEAT_MUST_CHECK;
/* Does nothing if the control input exists. Looks at all that n has: to add many, use an adder. */
void leat_node_add_control(leat_node *n, leat_node *before);
/* Adds many control inputs to one node, each in constant time:
 *     leat_control_adder a = leat_control_adder_of(n);
 *     leat_control_adder_add(&a, before);
 * Valid until the next adder of the same graph is made, or n's control inputs change otherwise. */
typedef struct leat_control_adder {
    leat_node *to;
    int mark;
} leat_control_adder;
leat_control_adder leat_control_adder_of(leat_node *n);
void leat_control_adder_add(leat_control_adder *a, leat_node *before);
leat_attr *leat_node_attr(const leat_node *n, const char *name); /* NULL if absent */
/* Sets or replaces an attribute of n (copied into the arena, tensors shared). */
void leat_node_set_attr(leat_node *n, const leat_attr *a);
leat_status leat_node_infer(leat_node *n) LEAT_MUST_CHECK;   /* runs the shape function */
leat_attr leat_attr_copy(leat_arena *a, const leat_attr *v); /* deep; shares tensors */
/* The same for attribute i of a node with this op: a name that the op declares is the op's. */
leat_attr leat_attr_copy_of(leat_arena *a, const leat_op_info *op, int i, const leat_attr *v);
void leat_attr_release(leat_attr *a); /* drops references to tensors */
bool leat_attr_equal(const leat_attr *a, const leat_attr *b);
/* An object of another folder that lives as long as the graph; made on first use, zeroed, in the
 * arena. */
void *leat_graph_extra(leat_graph *g, const char *key, size_t size);

/* For code about one op alone; properties that several ops share are flags or roles of their
 * definition. */
static inline bool leat_node_is(const leat_node *n, const char *op)
{
    return __builtin_strcmp(n->op->def->name, op) == 0;
}
static inline leat_role leat_node_role(const leat_node *n)
{
    return n->op->def->role;
}
/* Whether the op has one of these flags. */
static inline bool leat_node_flag(const leat_node *n, unsigned flags)
{
    return (n->op->def->flags & flags) != 0;
}
static inline bool leat_is_switch(const leat_node *n)
{
    return leat_node_role(n) == LEAT_ROLE_SWITCH;
}
static inline bool leat_is_merge(const leat_node *n)
{
    return leat_node_role(n) == LEAT_ROLE_MERGE;
}
static inline bool leat_is_enter(const leat_node *n)
{
    return leat_node_role(n) == LEAT_ROLE_ENTER;
}
static inline bool leat_is_exit(const leat_node *n)
{
    return leat_node_role(n) == LEAT_ROLE_EXIT;
}
static inline bool leat_is_next_iteration(const leat_node *n)
{
    return leat_node_role(n) == LEAT_ROLE_NEXT_ITERATION;
}
static inline bool leat_is_const(const leat_node *n)
{
    return leat_node_role(n) == LEAT_ROLE_CONST;
}
/* Whether the output is a copy of the input's value when the node runs. A placeholder with a
 * default is not such a node, because another value may be fed. */
static inline bool leat_is_identity(const leat_node *n)
{
    return (n->op->def->flags & (LEAT_OP_IDENTITY | LEAT_OP_PLACEHOLDER)) == LEAT_OP_IDENTITY &&
           !n->op->out[0].is_ref;
}
/* For messages about an x without a node: "no tensor (its node is NULL)", or, if leat_gradients
 * gave it, "the gradient by 'w', which no y depends on". */
leat_text leat_no_tensor(const leat_graph *g, leat_out x);
/* What leat_gradients gives for an x that no y depends on: no node, and which x it was. */
static inline leat_out leat_no_gradient(leat_out x)
{
    return (leat_out){NULL, -2 - x.node->id};
}
static inline bool leat_out_ok(leat_out x)
{
    return x.node && x.node != x.node->graph->poison;
}

/* Nodes that are built until at_override is reset get the location of the public function's
 * caller. */
static inline leat_loc leat_at_enter(leat_graph *g, leat_loc at)
{
    leat_loc outer = g->at_override;
    if (!outer.file)
        g->at_override = at;
    return outer;
}

/* Ends what leat_at_enter began; outer is what that gave. A public function that calls functions of
 * its caller leaves before such a call and enters again after it, so that nodes which the caller's
 * functions make have their own locations. */
static inline void leat_at_leave(leat_graph *g, leat_loc outer)
{
    g->at_override = outer;
}

/* A constant with a name. */
leat_out leat_int_vector_named(leat_loc at, leat_graph *g, leat_dtype t, const int64_t *v, int n,
                               const char *name);

/* "scope/name" made unique as TensorFlow does, in the arena. */
const char *leat_unique_name(leat_graph *g, const char *name);
void leat_name_use(leat_graph *g, const char *name); /* marks a final name as used */
bool leat_name_valid(const char *name);

/* scope.c, used by leat_graph_add and by graph.c */
struct leat_scopes *leat_scopes_new(void);
void leat_scopes_free(struct leat_scopes *s);
leat_status leat_scopes_apply(leat_graph *g, leat_node *n) LEAT_MUST_CHECK;
/* The open control dependencies, for builders of control flow. */
void leat_collections_free(leat_graph *g);
/* Visits the names of collections, in no particular order: size_t i = 0; while
 * (leat_collection_next(g, &i, ...)) */
bool leat_collection_next(const leat_graph *g, size_t *i, const char **name);

/* Like leat_colocate_enter, but colocation scopes outside are ignored. */
void leat_colocate_only_enter(leat_graph *g, leat_out with);

/* control_ctx.c, used by leat_graph_add: captures the inputs of a node for the open context (may
 * add nodes), and gives the context that the node will belong to; then the same for its control
 * inputs. */
leat_status leat_ctx_take_inputs(leat_graph *g, const char *op, const char *name, leat_out *in,
                                 int n_in, leat_control_ctx **ctx_out) LEAT_MUST_CHECK;
leat_status leat_ctx_take_controls(leat_control_ctx *ctx, leat_node *n) LEAT_MUST_CHECK;
void leat_control_ctxs_free(leat_graph *g);

/* function.c: the library's function of this name as an op, or NULL; and freeing them all. */
const leat_op_info *leat_function_op(leat_graph *g, const char *name);
void leat_functions_free(leat_graph *g);

#endif
