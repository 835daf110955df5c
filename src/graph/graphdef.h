/* graphdef.h -- graphs as GraphDef messages; used by import, export and functions. */
#ifndef LEAT_GRAPHDEF_H
#define LEAT_GRAPHDEF_H

#include "graph/graph_int.h"
#include "proto/graph.pb-c.h"

/* The attribute's arrays are in the arena; its tensors are given (leat_attr_release). */
leat_status leat_attr_from_proto(leat_arena *a, const char *name, const Leat__AttrValue *p,
                                 leat_attr *out) LEAT_MUST_CHECK;
/* Gives a message; free with leat_proto_free. */
leat_status leat_attr_to_proto(const leat_attr *a, Leat__AttrValue **out) LEAT_MUST_CHECK;
leat_status leat_node_to_proto(const leat_node *n, Leat__NodeDef **out) LEAT_MUST_CHECK;
leat_status leat_graph_to_proto(const leat_graph *g, Leat__GraphDef **out) LEAT_MUST_CHECK;

/* Adds the nodes of a GraphDef, or of a function's body, which may be in any order, to g; names get
 * the prefix. On failure g is unchanged. */
leat_status leat_nodes_import(leat_graph *g, Leat__NodeDef *const *nodes, size_t n,
                              const char *prefix) LEAT_MUST_CHECK;

/* As leat_graph_from_binary, for a message. Without a prefix, inputs may be nodes that g has. */
leat_status leat_graph_from_proto(leat_graph *g, const Leat__GraphDef *p,
                                  const char *prefix) LEAT_MUST_CHECK;

/* "name", "name:2", "^name"; *index is -1 for control. *name_n: bytes of the name. */
leat_status leat_input_parse(const char *text, const char **name, size_t *name_n,
                             int *index) LEAT_MUST_CHECK;

/* function.c: the library of a GraphDef. */
leat_status leat_functions_import(leat_graph *g,
                                  const Leat__FunctionDefLibrary *lib) LEAT_MUST_CHECK;
/* Gives a library with all functions of g; free with leat_proto_free. */
leat_status leat_functions_export(const leat_graph *g,
                                  Leat__FunctionDefLibrary **out) LEAT_MUST_CHECK;

#endif
