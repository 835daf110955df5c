/* Any text as a GraphDef: an error, or a graph whose own text reads as the same graph. */
#include "core/strbuf.h"
#include "proto/graph.pb-c.h"
#include "proto/text.h"

#include <stdlib.h>
#include <string.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t n);
int LLVMFuzzerTestOneInput(const uint8_t *data, size_t n)
{
    Leat__GraphDef *g = NULL, *again = NULL;
    leat_strbuf once = {0}, twice = {0};
    leat_status s = LEAT_FROM_TEXT(graph_def, (const char *)data, n, &g);
    if (!s) {
        leat_proto_to_text(g, &once);
        s = LEAT_FROM_TEXT(graph_def, once.s, once.n, &again);
        if (s)
            abort();
        leat_proto_to_text(again, &twice);
        if (once.n != twice.n || (once.n && memcmp(once.s, twice.s, once.n) != 0))
            abort();
    }
    leat_status_free(s);
    leat_proto_free(g);
    leat_proto_free(again);
    leat_strbuf_release(&once);
    leat_strbuf_release(&twice);
    return 0;
}
