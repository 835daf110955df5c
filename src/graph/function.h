/* function.h -- functions: named graphs with arguments and results, in a library that belongs to a
 * graph. A function is kept as its FunctionDef. Its name is an op; PartitionedCall and
 * SymbolicGradient name it in an attribute. Before a graph runs, calls are replaced by bodies where
 * that can be done; the other calls are made by kernels (runtime/callable.h).
 */
#ifndef LEAT_FUNCTION_INT_H
#define LEAT_FUNCTION_INT_H

#include "graph/graph_int.h"
#include "proto/graph.pb-c.h"

struct leat_function {
    const char *name;
    Leat__FunctionDef *def;
    leat_op_def op_def; /* the signature as an op; info->def points to it */
    leat_op_info *info;
    const char *gradient; /* the function that is its gradient, or NULL: made from the body */
    /* Where the nodes of the body were made; none if the function was imported. */
    struct leat_function_line {
        const char *node;
        leat_loc at;
    } * lines;
    int n_lines;
};

/* Adds a function; takes def. A function that is there already may be added again. */
leat_status leat_function_add(leat_graph *g, Leat__FunctionDef *def) LEAT_MUST_CHECK;
/* The function of this name in g's library, or in that of the graph it was made for, or NULL. */
const leat_function *leat_function_find(const leat_graph *g, const char *name);
/* Forgets all functions but the first n: an import failed. */
void leat_functions_truncate(leat_graph *g, int n);

/* function_op.c: f->op_def and f->info from f->def->signature, in g's arena. */
leat_status leat_function_make_op(leat_graph *g, leat_function *f) LEAT_MUST_CHECK;
/* Shapes of what a call gives: inferred in the body. And of a body's _Arg: as it is passed. */
leat_status leat_call_shape(leat_infer *c);
leat_status leat_arg_shape(leat_infer *c);
/* Gradient of a call: one SymbolicGradient. */
leat_status leat_call_grad(leat_grad *g);
/* The function that a call node calls (or is the gradient of), with its attributes; borrowed. */
leat_func leat_called_function(const leat_node *n);

/* A function's body as a graph of its own, for one choice of attributes. */
typedef struct leat_body {
    leat_graph *g;      /* its functions are found in the library it comes from */
    leat_node **args;   /* _Arg nodes, one for each tensor that is passed */
    leat_out *results;  /* what comes back */
    leat_node **to_run; /* run though no result may need them */
    int n_args, n_results, n_to_run;
} leat_body;
void leat_body_free(leat_body *b); /* all but the struct itself */

/* function_body.c: the body of a function of this library; placeholders in it are replaced by f's
 * attributes. What is known of the call's arguments is known in the body; without a call (NULL),
 * nothing is. */
leat_status leat_function_instantiate(leat_graph *library, const leat_node *call,
                                      const leat_func *f, leat_body *out) LEAT_MUST_CHECK;
/* function_grad.c: args are the function's and then dL/d(results); results are dL/d(args). */
leat_status leat_function_instantiate_grad(leat_graph *library, const leat_node *call,
                                           const leat_func *f, leat_body *out) LEAT_MUST_CHECK;

/* function_inline.c: the call becomes an IdentityN (or NoOp) over its body, whose nodes are added
 * to g as "call/...". For graphs that are to be run: names and contexts of users' graphs would
 * suffer. branch: of a condition or loop outside of functions; what nobody needs of the body is
 * left out later. */
leat_status leat_function_inline(leat_graph *g, leat_node *call, bool branch) LEAT_MUST_CHECK;
/* function_lower.c: If and While over functions become Switches, Merges and loops over calls.
 * branch: the calls will be inlined as branches. */
bool leat_function_is_flow(const leat_node *n);
leat_status leat_function_lower(leat_graph *g, leat_node *n, bool branch) LEAT_MUST_CHECK;
/* function_prune.c: what nobody needs of branches. through: by id, nodes whose results are used
 * without waiting for the node. Nodes that are then needed neither by one that is wanted nor by a
 * _Retval are taken out of g. */
void leat_functions_prune(leat_graph *g, const bool *through);
/* function_calls.c: n calls a function, by its name or by an op like PartitionedCall. */
bool leat_function_is_call(const leat_node *n);
typedef enum leat_inlining {
    LEAT_INLINE_ALL, /* whatever can be */
    /* Not what asks to be called: the function's attribute _noinline; an If, Case or While without
     * _lower_using_switch_merge. */
    LEAT_INLINE_AS_ASKED,
    LEAT_INLINE_NONE
} leat_inlining;
/* Calls, and those in the bodies. What is not inlined, has no end, or would become too large, is
 * left to be called when the graph runs, by PartitionedCall, StatefulPartitionedCall or
 * SymbolicGradient.
 * Outside of functions, a condition or loop that asks to be lowered has only those side effects
 * that somebody needs, as in TensorFlow; in_function: g is the body of a function, and has all. */
leat_status leat_functions_inline(leat_graph *g, leat_inlining which,
                                  bool in_function) LEAT_MUST_CHECK;

/* function_gather.c: whether a node, or some node of g, has a function in an attribute. */
bool leat_node_names_functions(const leat_node *n);
bool leat_graph_names_functions(const leat_graph *g);
/* Copies the functions that nodes of g name, and all that their bodies name, from a library to a
 * graph, which may be g or the library itself. NOT_FOUND if a node names one that is not there. */
leat_status leat_functions_gather(const leat_graph *g, const leat_graph *library,
                                  leat_graph *to) LEAT_MUST_CHECK;
/* The same for one node. */
leat_status leat_functions_gather_for(const leat_node *n, const leat_graph *library,
                                      leat_graph *to) LEAT_MUST_CHECK;
/* function_define.c: adds to g's library a function without arguments, whose body is the nodes of g
 * and whose results are the n outputs of these. */
leat_status leat_function_of_graph(leat_graph *g, const char *name, const leat_out *results,
                                   int n) LEAT_MUST_CHECK;

#endif
