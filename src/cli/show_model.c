/* show_model.c -- leat show DIR: the signatures of a SavedModel. */
#include <stdio.h>

#include "cli.h"

static void show_tensors(const char *what, const leat_signature_tensor *v, int n)
{
    for (int i = 0; i < n; i++) {
        const leat_shape shape = leat_out_shape(v[i].x);
        printf("    %s %s: %s %s, %s:%d%s\n", what, v[i].name,
               leat_dtype_name(leat_out_dtype(v[i].x)), leat_shape_show(&shape).s,
               leat_node_name(v[i].x.node), v[i].x.index,
               v[i].indices.node ? ", values of a sparse tensor" : "");
    }
}

static void show_signatures(const leat_signature *v, int n)
{
    for (int i = 0; i < n; i++) {
        printf("  signature %s (%s)\n", v[i].name, v[i].method);
        show_tensors("input", v[i].inputs, v[i].n_inputs);
        show_tensors("output", v[i].outputs, v[i].n_outputs);
    }
}

leat_status cli_show_model(const char *dir)
{
    leat_saved_model *m;
    LEAT_TRY(leat_saved_model_load(dir, &m));
    int n;
    const leat_signature *v = leat_saved_model_signatures(m, &n);
    printf("%s: SavedModel, %d nodes, %d signatures\n", dir,
           leat_graph_nodes(leat_saved_model_graph(m)), n);
    show_signatures(v, n);
    leat_saved_model_close(m);
    return NULL;
}
