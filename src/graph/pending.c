#include "graph/graph_int.h"
#include "graph/control_flow.h"
#include "graph/graphdef.h"
#include "core/alloc.h"
#define W __attribute__((weak))
W leat_status leat_control_ctx_added(leat_control_ctx *ctx, leat_node *n){return 0;}
W const leat_op_info *leat_function_op(leat_graph *g, const char *name){return 0;}
W void leat_functions_free(leat_graph *g){}
W leat_status leat_switch_grad(leat_grad*g){return 0;}
W leat_status leat_merge_grad(leat_grad*g){return 0;}
W leat_status leat_enter_grad(leat_grad*g){return 0;}
W leat_status leat_exit_grad(leat_grad*g){return 0;}
W leat_status leat_next_iteration_grad(leat_grad*g){return 0;}
W leat_status leat_functions_import(leat_graph *g, const Leat__FunctionDefLibrary *lib){return 0;}
W leat_status leat_functions_export(const leat_graph *g, Leat__FunctionDefLibrary **out){*out=leat_xmalloc(sizeof(**out));leat__function_def_library__init(*out);return 0;}
