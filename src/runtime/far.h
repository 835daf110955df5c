/* far.h -- devices of other tasks, as plans see them; the cluster room implements it.
 *
 * A plan over several tasks is cut into one part a task. This task's own part is compiled further
 * and run here; the others are handed over once, when the plan is made, and started in each step.
 */
#ifndef LEAT_FAR_H
#define LEAT_FAR_H

#include "passes/pass.h"
#include "runtime/step.h"

typedef struct leat_far leat_far;
typedef struct leat_far_part leat_far_part;

typedef struct leat_far_ops {
    /* Hands a part over to the task of this device, by a time of CLOCK_MONOTONIC (0: whenever).
     * Borrows g. */
    leat_status (*part_new)(leat_far *f, const leat_target *device, const leat_graph *g,
                            int64_t deadline_ns, leat_far_part **out);
    void (*part_free)(leat_far_part *p);
    /* Starts it in a step; when it has ended, or the step was cancelled and nothing more will
     * come: leat_step_fail for an error, then leat_step_part_ended. */
    void (*part_start)(leat_far_part *p, leat_step *step);
    /* Sets the id and the rendezvous of a step that is about to start, and lets go of them. */
    leat_status (*step_begin)(leat_far *f, leat_step *step);
    void (*step_end)(leat_far *f, leat_step *step);
    /* Which tasks' parts of a step under way have not ended, in words; "" if all have. */
    void (*step_waits)(leat_far *f, leat_step *step, char *out, size_t size);
    /* As leat_pool_wait for the step's end; may bring what comes for it in this thread. */
    int (*step_await)(leat_far *f, leat_pool *p, leat_step *step);
    void (*free)(leat_far *f); /* the session is over */
} leat_far_ops;

struct leat_far {
    const leat_far_ops *ops;
    const leat_target *targets; /* all devices, this task's among them */
    int n;
};

#endif
