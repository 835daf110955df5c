/* meta_graph_fuzz.c -- any bytes as a MetaGraphDef: taken in, or refused. */
#include <leat/leat.h>

#include "core/buffer.h"
#include "train/saver.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    leat_cpu_allocator()->limit = 8 << 20;
    leat_graph *g = leat_graph_new();
    leat_saver *saver = NULL;
    leat_status_free(leat_meta_graph_parse(g, data, size, &saver));
    leat_saver_free(saver);
    leat_graph_free(g);
    return 0;
}
