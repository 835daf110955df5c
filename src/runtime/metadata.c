/* metadata.c -- what a traced run took. */
#include <stdlib.h>

#include "core/alloc.h"
#include "runtime/session_int.h"
#include "runtime/trace.h"

struct leat_metadata {
    leat_trace *trace;
};

leat_metadata *leat_metadata_of(leat_trace *t)
{
    leat_metadata *m = leat_new(leat_metadata);
    m->trace = t;
    return m;
}

void leat_metadata_free(leat_metadata *m)
{
    if (!m)
        return;
    leat_trace_free(m->trace);
    free(m);
}
