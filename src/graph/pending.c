#include "graph/graph_int.h"
#include "graph/control_flow.h"
#include "graph/graphdef.h"
#include "core/alloc.h"
#define W __attribute__((weak))
W leat_status leat_functions_import(leat_graph *g, const Leat__FunctionDefLibrary *lib){return 0;}
W leat_status leat_functions_export(const leat_graph *g, Leat__FunctionDefLibrary **out){*out=leat_xmalloc(sizeof(**out));leat__function_def_library__init(*out);return 0;}
