/* checkpoint_state.h -- the text file "checkpoint", which lists the checkpoints of a directory. */
#ifndef LEAT_IO_CHECKPOINT_STATE_H
#define LEAT_IO_CHECKPOINT_STATE_H

#include <leat/io.h>
#include "proto/checkpoint.pb-c.h"

/* Gives the message; relative paths in the file are prefixed with dir. Free with leat_proto_free.
 * name NULL: "checkpoint". */
leat_status leat_checkpoint_state_read(const char *dir, const char *name,
                                       Leat__CheckpointState **out) LEAT_MUST_CHECK;
/* Lists n paths, the last of them the newest. Paths below a relative dir become relative to it;
 * with `relative`, paths below an absolute dir, too. */
leat_status leat_checkpoint_state_write(const char *dir, const char *name, const char *const *paths,
                                        int n, bool relative) LEAT_MUST_CHECK;
/* Removes the files of a checkpoint, the index first, so that a partly removed checkpoint is not
 * found. */
void leat_checkpoint_remove(const char *prefix);

/* ---- checkpoint_find.c ---- */
int64_t leat_checkpoint_step(const char *path); /* 1200 of "model.ckpt-1200"; -1: none */
/* The checkpoints of a directory that are there, newest first: those that its state file lists, or,
 * if that file is damaged, those that lie there; warnings say so. Free with leat_paths_free. */
void leat_checkpoints_find(const char *dir, char ***paths_out, size_t *n_out);
/* After the checkpoint at `path` was written: removes what writers of earlier steps of the same
 * name have left when they were killed: temporary files, and data without an index. */
void leat_checkpoints_sweep(const char *path);

#endif
