/* saver.h -- internals of savers; for saver.c, saver_build.c, meta_graph.c, meta_graph_read.c. */
#ifndef LEAT_TRAIN_SAVER_H
#define LEAT_TRAIN_SAVER_H

#include <leat/saver.h>

#include "core/object.h"

typedef struct leat_kept { /* a checkpoint that was saved */
    char *path;
    double time; /* when it was saved, in seconds since 1970 */
} leat_kept;

struct leat_saver {
    leat_object object;
    leat_graph *graph;
    bool empty;        /* there are no variables */
    leat_out filename; /* the placeholder of the path */
    leat_out save;     /* the op that saves; its output is the path */
    leat_out restore;  /* the op that restores */
    int max_to_keep;   /* 0: all */
    bool sharded, relative;
    double keep_every_hours;
    double keep_next; /* the first checkpoint after this time is kept for good */
    leat_kept *kept;  /* oldest first */
    int n_kept, cap_kept;
    const char **paths; /* paths of kept, for leat_saver_checkpoints */
};

/* Makes a saver without nodes. */
leat_saver *leat_saver_make(leat_graph *g, const leat_saver_options *o);
/* Adds the nodes; sets filename, save, restore, empty. */
void leat_saver_build(leat_saver *v, leat_graph *g, const leat_saver_options *o);

/* Like leat_meta_graph_read, from bytes in memory. */
leat_status leat_meta_graph_parse(leat_graph *g, const void *bytes, size_t n,
                                  leat_saver **saver_out) LEAT_MUST_CHECK;
#define LEAT_QUEUE_RUNNERS "queue_runners" /* name of the collection */

/* Continues with these checkpoints, newest first, so that they count for max_to_keep. */
void leat_saver_go_on(leat_saver *v, char *const *paths, size_t n);

#endif
