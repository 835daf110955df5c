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

#endif
