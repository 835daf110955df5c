/* saver.h -- internals of savers and MetaGraphs; for saver.c, saver_build.c, meta_graph.c,
 * meta_graph_read.c, saved_model.c, saved_model_write.c. */
#ifndef LEAT_TRAIN_SAVER_H
#define LEAT_TRAIN_SAVER_H

#include <leat/saver.h>

#include "core/object.h"
#include "proto/field.h"
#include "proto/meta_graph.pb-c.h"

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
    leat_out restore;  /* the op that restores the variables */
    /* The ops that restore and that only read the position of the input; without a node if it is
     * not part of the checkpoints. */
    leat_out restore_input, read_input;
    int max_to_keep;   /* 0: all */
    bool sharded, relative;
    double keep_every_hours;
    double keep_next; /* the first checkpoint after this time is kept for good */
    leat_kept *kept;  /* oldest first */
    int n_kept, cap_kept;
    const char **paths; /* paths of kept, for leat_saver_checkpoints */
};

#define LEAT_RESTORE_INPUT "restore_input" /* the name of that op in the saver's scope */

/* Restores the position of the input, if it is part of the saver's checkpoints. */
leat_status leat_saver_restore_input(leat_saver *v, leat_session *s,
                                     const char *path) LEAT_MUST_CHECK;
/* Restores the variables alone, after it has read the position of the input. */
leat_status leat_saver_restore_variables(leat_saver *v, leat_session *s,
                                         const char *path) LEAT_MUST_CHECK;

/* Makes a saver without nodes. */
leat_saver *leat_saver_make(leat_graph *g, const leat_saver_options *o);
/* Adds the nodes; sets filename, save, restore, empty. */
void leat_saver_build(leat_saver *v, leat_graph *g, const leat_saver_options *o);

/* A new message: LEAT_MESSAGE(Leat__SaverDef, saver_def). Free with leat_proto_free. */
#define LEAT_MESSAGE(type, name) ((type *)leat_message_new(&leat__##name##__descriptor))

/* The name by which messages call a tensor, "w:0", or a node without outputs, "w". NULL if x has no
 * node. Free with free(). */
char *leat_meta_graph_name(leat_out x);
/* The other way: "w:0" is a tensor; "w" a node, *out then has index -1. */
leat_status leat_meta_graph_find(const leat_graph *g, const char *name,
                                 leat_out *out) LEAT_MUST_CHECK;
/* Adds a collection, which is empty, to a message. */
Leat__CollectionDef *leat_meta_graph_collection(Leat__MetaGraphDef *m, const char *name);
/* As leat_meta_graph_write, to a message; free with leat_proto_free. */
leat_status leat_meta_graph_to_proto(const leat_graph *g, const leat_saver *v,
                                     Leat__MetaGraphDef **out) LEAT_MUST_CHECK;
/* Like leat_meta_graph_read, from a message, and from bytes in memory. */
leat_status leat_meta_graph_from_proto(leat_graph *g, const Leat__MetaGraphDef *m,
                                       leat_saver **saver_out) LEAT_MUST_CHECK;
leat_status leat_meta_graph_parse(leat_graph *g, const void *bytes, size_t n,
                                  leat_saver **saver_out) LEAT_MUST_CHECK;
#define LEAT_QUEUE_RUNNERS "queue_runners" /* name of the collection */

/* Continues with these checkpoints, newest first, so that they count for max_to_keep. */
void leat_saver_go_on(leat_saver *v, char *const *paths, size_t n);

#endif
