/* far.h -- the interface by which plans use the devices of other tasks; src/cluster implements it.
 *
 * A plan over several tasks is partitioned into one part for each task. This task's part is
 * compiled further and runs here. The other parts are sent to their tasks once, when the plan is
 * made, and started in each step.
 */
#ifndef LEAT_FAR_H
#define LEAT_FAR_H

#include <leat/session.h>
#include <pthread.h>
#include <stdatomic.h>

#include "passes/pass.h"
#include "runtime/step.h"

typedef struct leat_far leat_far;
typedef struct leat_far_part leat_far_part; /* A plan's part on another task. */
typedef struct leat_far_step leat_far_step; /* All parts of a step on other tasks. */

typedef struct leat_far_ops {
    /* Sends part g to the task that has this device. Fails at deadline_ns (CLOCK_MONOTONIC; 0:
     * after two minutes), and when the cancellation, which may be NULL, is cancelled. Borrows g. */
    leat_status (*part_new)(leat_far *f, const leat_target *device, const leat_graph *g,
                            int64_t deadline_ns, leat_cancellation *cancellation,
                            leat_far_part **out);
    void (*part_free)(leat_far_part *p);
    /* Prepares a step on the other tasks. Gives the step's id on all tasks, and the rendezvous
     * where its parts meet. */
    leat_far_step *(*step_new)(leat_far *f, uint64_t *id_out, leat_rendezvous **rendezvous_out);
    /* Starts these parts. When a part has ended, or when the step was cancelled and the part's task
     * sends nothing more, the implementation calls leat_step_fail if there is an error, and then
     * leat_step_part_ended. */
    void (*step_start)(leat_far_step *x, leat_far_part *const *parts, int n, leat_step *step);
    /* Waits for the step's end as leat_pool_wait does. Meanwhile the calling thread may read what
     * other tasks send, and run the nodes that waited for that. */
    int (*step_await)(leat_far_step *x, leat_pool *p, leat_step *step);
    /* Describes, for a message, the parts that have not ended; "" if all have. */
    void (*step_waits)(leat_far_step *x, char *out, size_t size);
    void (*step_free)(leat_far_step *x, bool failed); /* Called when all parts have ended. */
    /* leat_session_hold (on) and leat_session_let_go (off); off also when the session is closed. */
    void (*hold)(leat_far *f, bool on);
    const char *(*ending)(leat_far *f); /* leat_session_ending */
    void (*close)(leat_far *f);         /* Called when the session is closed. */
    void (*free)(leat_far *f);          /* Called when the last reference is released. */
} leat_far_ops;

/* The other tasks of a session. The session holds a reference, and so does its set of callables
 * (callable.h), which may outlive the session. */
struct leat_far {
    const leat_far_ops *ops;
    const leat_target *targets; /* All devices of the session, this task's among them. */
    int n;                      /* The number of targets. */
    atomic_int refs;
    atomic_bool closed;               /* Parts may not be sent or started any more. */
    pthread_mutex_t lock;             /* Guards what follows. */
    struct leat_callables *callables; /* Of all plans; NULL until a plan needs them. */
};

void leat_far_init(leat_far *f, const leat_far_ops *ops); /* f then has one reference. */
leat_far *leat_far_ref(leat_far *f);
void leat_far_unref(leat_far *f); /* f may be NULL. */
void leat_far_close(leat_far *f);

#endif
