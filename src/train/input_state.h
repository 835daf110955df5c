/* input_state.h -- the position of a graph's input as part of its checkpoints (leat_save_input in
 * leat/input.h); for savers.
 *
 * 1. What has a position are iterators, readers, queues that queue runners fill, and the counters
 *    of epochs. A saver saves the state of each as a tensor beside the variables.
 * 2. While a checkpoint is written, no queue runner runs an op, so that no element is on its way
 *    from one queue to the next: see leat_runners_hold.
 * 3. The state is restored after the local initialisation, which sets counters of epochs to 0 and
 *    iterators to their beginning, and before queue runners start.
 */
#ifndef LEAT_TRAIN_INPUT_STATE_H
#define LEAT_TRAIN_INPUT_STATE_H

#include <leat/session.h>

#include "graph/graph_int.h"

/* Something with a position. */
typedef struct leat_input_part {
    leat_out of; /* its handle, or the variable that counts epochs */
    /* The ops for its state; NULL for a variable. */
    const char *save, *restore;
    leat_dtype state;
} leat_input_part;

bool leat_input_saved(leat_graph *g); /* leat_save_input was called */
/* The parts of g's input, in the order of the nodes; free with free(). */
leat_status leat_input_parts(leat_graph *g, leat_input_part **out, int *n_out) LEAT_MUST_CHECK;

/* ---- queue_runner.c ---- */
/* Adds the nodes by which queues are made unlimited while their queue runners are held. */
void leat_runners_prepare(leat_graph *g);
/* Holds the queue runners of g in s: each ends the op that it runs, and begins no other until
 * leat_runners_release. Those that dequeue what others enqueue are held first. So that their ops
 * can end, queues take elements beyond their capacity meanwhile. DEADLINE_EXCEEDED if one does not
 * end for a minute; all go on then. */
leat_status leat_runners_hold(leat_graph *g, leat_session *s) LEAT_MUST_CHECK;
void leat_runners_release(leat_graph *g, leat_session *s);

#endif
