/* graphdef_fuzz.c -- any bytes as a GraphDef: imported or refused; what was imported is exported,
 * imported again, and its last node is run. */
#include <leat/leat.h>
#include <stdlib.h>

#include "core/buffer.h"

static void run_last(leat_graph *g)
{
    leat_node *n = leat_graph_node(g, leat_graph_nodes(g) - 1);
    leat_session *s;
    if (!n)
        return;
    leat_status status = leat_session_open(g, &s, .timeout_ms = 2000, .inter_op_threads = 1);
    if (!status) {
        status = leat_session_run(s, LEAT_NO_FEED, LEAT_NO_FETCH, LEAT_TARGET(((leat_out){n, -1})));
        leat_session_close(s);
    }
    leat_status_free(status);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    leat_cpu_allocator()->limit = 8 << 20;
    leat_graph *g = leat_graph_new(), *again = leat_graph_new();
    void *bytes = NULL;
    size_t n = 0;
    leat_status s = leat_graph_from_binary(g, data, size, "");
    if (!s)
        s = leat_graph_to_binary(g, &bytes, &n);
    if (!s) {
        s = leat_graph_from_binary(again, bytes, n, "");
        if (s)
            abort(); /* what we write we can read */
        run_last(g);
    }
    leat_status_free(s);
    free(bytes);
    leat_graph_free(g);
    leat_graph_free(again);
    return 0;
}
