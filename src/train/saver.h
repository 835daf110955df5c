/* saver.h -- the inside of savers; for saver.c, saver_build.c, meta_graph.c, meta_graph_read.c. */
#ifndef LEAT_TRAIN_SAVER_H
#define LEAT_TRAIN_SAVER_H

#include <leat/saver.h>

typedef struct leat_kept { /* a checkpoint that was saved */
    char *path;
    double time; /* when, in seconds since 1970 */
} leat_kept;

struct leat_saver {
    leat_graph *graph;
    bool empty;        /* there are no variables */
    leat_out filename; /* to be fed */
    leat_out save;     /* saves; its value is the path */
    leat_out restore;  /* restores */
    int max_to_keep;   /* 0: all */
    bool sharded, relative;
    double keep_every_hours;
    double keep_next; /* a checkpoint after this time is kept for good */
    leat_kept *kept;  /* oldest first */
    int n_kept, cap_kept;
    const char **paths; /* of kept, for leat_saver_checkpoints */
};

/* One without nodes yet. */
leat_saver *leat_saver_make(leat_graph *g, const leat_saver_options *o);
/* Adds the nodes; sets filename, save, restore, empty. */
void leat_saver_build(leat_saver *v, leat_graph *g, const leat_saver_options *o);

/* As leat_meta_graph_read, of bytes. */
leat_status leat_meta_graph_parse(leat_graph *g, const void *bytes, size_t n,
                                  leat_saver **saver_out) LEAT_MUST_CHECK;
#define LEAT_QUEUE_RUNNERS "queue_runners" /* the collection */

#endif
