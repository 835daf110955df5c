/* saver.h -- saves variables to checkpoints and restores them, by the session that has them, local
 * or remote.
 *
 *     leat_saver *saver = leat_saver_new(g);                  -- after all variables are made
 *     LEAT_DIE_ON_ERROR(leat_saver_save(saver, s, "train/model.ckpt", step, NULL));
 *     char *newest = leat_latest_checkpoint("train");         -- "train/model.ckpt-1200"
 *     if (newest)
 *         LEAT_DIE_ON_ERROR(leat_saver_restore(saver, s, newest));
 *
 * Nodes and files are TensorFlow's: TensorFlow restores what Leat saved, and Leat restores what
 * TensorFlow saved.
 */
#ifndef LEAT_SAVER_H
#define LEAT_SAVER_H

#include <leat/io.h>
#include <leat/session.h>
#include <leat/variable.h>

typedef struct leat_saver leat_saver; /* to be used by one thread at a time */

typedef struct leat_saver_var {
    leat_out var;
    const char *name; /* its name in the checkpoint; NULL: the variable's name */
    /* Which part of a tensor of that name it is: "10 4 0,5:-"; NULL: all of it. */
    const char *slice;
} leat_saver_var;
typedef struct leat_saver_options {
    leat_given given;           /* set by the macro */
    const leat_saver_var *vars; /* NULL: all global variables */
    int n_vars;
    bool sharded;     /* each device writes its own files, which are merged at the end */
    bool allow_empty; /* without variables, saving and restoring do nothing instead of failing */
    int max_to_keep;  /* default 5; 0 or below: all are kept */
    /* One checkpoint in so many hours is kept for good; default 10000; 0: every one is. */
    double keep_every_hours;
    /* Write relative paths to the file "checkpoint", even if the directory is absolute. */
    bool relative_paths;
    const char *name;     /* "save" */
    const char *filename; /* the default value of the node for the file name; default "model" */
} leat_saver_options;
/* Adds the nodes to the graph; a mistake is recorded in the graph (leat_graph_status). Free with
 * leat_saver_free, before the graph. */
#define leat_saver_new(g, ...)                                                                     \
    leat_saver_new_at(LEAT_AT, g, LEAT_GIVEN_OPTIONS(leat_saver_options, __VA_ARGS__))
LEAT_API leat_saver *leat_saver_new_at(leat_loc at, leat_graph *g, const leat_saver_options *o);
LEAT_API void leat_saver_free(leat_saver *v); /* of NULL does nothing */

typedef struct leat_save_options {
    const char *latest_filename; /* "checkpoint" */
    bool no_meta_graph;          /* do not write PATH.meta */
    bool no_state;               /* do not write "checkpoint", nor remove old ones */
} leat_save_options;
/* Writes a checkpoint at path, or path-<step> if step is not below 0; then writes the state file
 * beside it, and removes checkpoints beyond max_to_keep. Gives the checkpoint's path, unless
 * path_out is NULL; free with free(). */
#define leat_saver_save(v, session, path, step, path_out, ...)                                     \
    leat_saver_save_with(v, session, path, step, LEAT_OPTIONS(leat_save_options, __VA_ARGS__),     \
                         path_out)
LEAT_API leat_status leat_saver_save_with(leat_saver *v, leat_session *s, const char *path,
                                          int64_t step, const leat_save_options *o,
                                          char **path_out) LEAT_MUST_CHECK;
/* INVALID_ARGUMENT if there is no checkpoint at path. */
LEAT_API leat_status leat_saver_restore(leat_saver *v, leat_session *s,
                                        const char *path) LEAT_MUST_CHECK;
/* Makes a new saver continue with the checkpoints that dir/checkpoint lists, so that they count for
 * max_to_keep. OK if there are none. */
LEAT_API leat_status leat_saver_recover(leat_saver *v, const char *dir) LEAT_MUST_CHECK;
/* The checkpoints that the saver keeps, oldest first; *count_out of them; borrowed. */
LEAT_API const char *const *leat_saver_checkpoints(const leat_saver *v, int *count_out);

/* ---- Variables that begin with values of another model. The values are not read now, but when the
 * variables are initialised (leat_global_variables_initializer). ---- */
/* From a name in the checkpoint to one in the graph: a variable ("old/w", "new/w") or a scope
 * ("old/", "new/"), whose variables are all read; "/" is the scope of all names. */
typedef struct leat_checkpoint_map {
    const char *from, *to;
} leat_checkpoint_map;
/* path: a checkpoint, or a directory, of which the newest is taken. map NULL: all global variables
 * by their own names. Partitioned variables are called by the name of the whole. NOT_FOUND names
 * the tensor or the variable that is missing; INVALID_ARGUMENT has both shapes, or both dtypes,
 * where they differ.
 *
 *     LEAT_TRY(leat_init_from_checkpoint(g, "pretrained", LEAT_MAP({"net/", "encoder/"})));
 */
#define leat_init_from_checkpoint(g, path, ...)                                                    \
    leat_init_from_checkpoint_at(LEAT_AT, g, path, __VA_ARGS__)
#define LEAT_MAP(...)                                                                              \
    LEAT_ARRAY(leat_checkpoint_map, __VA_ARGS__), LEAT_COUNT(leat_checkpoint_map, __VA_ARGS__)
LEAT_API leat_status leat_init_from_checkpoint_at(leat_loc at, leat_graph *g, const char *path,
                                                  const leat_checkpoint_map *map,
                                                  int n) LEAT_MUST_CHECK;
typedef struct leat_warm_start_options {
    leat_given given; /* set by the macro */
    /* A regular expression (POSIX, extended) that a name must begin with; default: all. */
    const char *vars;
    const leat_checkpoint_map *renames; /* variables that have another name in the checkpoint */
    int n_renames;
} leat_warm_start_options;
/* The same for trainable variables that are chosen by a regular expression. */
#define leat_warm_start(g, path, ...)                                                              \
    leat_warm_start_with(g, path, LEAT_GIVEN_OPTIONS(leat_warm_start_options, __VA_ARGS__))
LEAT_API leat_status leat_warm_start_with(leat_graph *g, const char *path,
                                          const leat_warm_start_options *o) LEAT_MUST_CHECK;

/* Writes a MetaGraphDef: the graph, its collections and queue runners, and the saver's nodes. v may
 * be NULL. */
LEAT_API leat_status leat_meta_graph_write(const leat_graph *g, const leat_saver *v,
                                           const char *path) LEAT_MUST_CHECK;
/* Reads a MetaGraphDef, Leat's or TensorFlow's, into g: nodes, collections of tensors and of
 * variables, queue runners; other collections are ignored. Unless saver_out is NULL, gives the
 * saver that the file names, else one of all variables; NULL if there are no variables. */
LEAT_API leat_status leat_meta_graph_read(leat_graph *g, const char *path,
                                          leat_saver **saver_out) LEAT_MUST_CHECK;

#endif
