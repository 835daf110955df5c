/* far.h -- devices of other tasks, as plans see them; the cluster room implements it.
 *
 * A plan over several tasks is cut into one part a task. This task's own part is compiled further
 * and run here; the others are handed over once, when the plan is made, and started in each step.
 */
#ifndef LEAT_FAR_H
#define LEAT_FAR_H

#include <leat/session.h>

#include "passes/pass.h"
#include "runtime/step.h"

typedef struct leat_far leat_far;
typedef struct leat_far_part leat_far_part; /* of a plan */
typedef struct leat_far_step leat_far_step; /* of a step */

typedef struct leat_far_ops {
    /* Hands a part over to the task of this device, by a time of CLOCK_MONOTONIC (0: within two
     * minutes), or until it is cancelled (NULL: never). Borrows g. */
    leat_status (*part_new)(leat_far *f, const leat_target *device, const leat_graph *g,
                            int64_t deadline_ns, leat_cancellation *cancellation,
                            leat_far_part **out);
    void (*part_free)(leat_far_part *p);
    /* The other tasks' side of a step that is about to begin, with the id and the rendezvous that
     * they know it by. */
    leat_far_step *(*step_new)(leat_far *f, uint64_t *id_out, leat_rendezvous **rendezvous_out);
    /* Starts these parts. When one has ended, or the step was cancelled and nothing more will come
     * of it: leat_step_fail for an error, then leat_step_part_ended. */
    void (*step_start)(leat_far_step *x, leat_far_part *const *parts, int n, leat_step *step);
    /* Waits as leat_pool_wait does for the step's end; may read and run in this thread what other
     * tasks send for it. */
    int (*step_await)(leat_far_step *x, leat_pool *p, leat_step *step);
    /* Which tasks' parts of a step under way have not ended, in words; "" if all have. */
    void (*step_waits)(leat_far_step *x, char *out, size_t size);
    void (*step_free)(leat_far_step *x, bool failed); /* all parts have ended */
    void (*free)(leat_far *f);                        /* the session is over */
} leat_far_ops;

struct leat_far {
    const leat_far_ops *ops;
    const leat_target *targets; /* all devices, this task's among them */
    int n;
};

#endif
