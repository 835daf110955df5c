/* poller.h -- gRPC's completion queue, and the threads that take events out of it.
 *
 * All channels and listeners of a process share one completion queue. Each batch of operations that
 * is started on it carries a leat_tag. When the batch has ended, the queue gives an event with this
 * tag, and the thread that polls the queue calls the tag's function.
 *
 * 1. One thread polls at a time, so that tags' functions need no lock against each other. The
 *    others are idle.
 * 2. Handlers and reply functions may block. Before a tag's function calls one it calls
 *    leat_poller_release, and an idle thread polls as soon as the handler is about to wait
 *    (core/later.h finds out), or after two milliseconds. The thread that ran a shorter handler
 *    goes on to poll itself, so that a short call costs no change of threads.
 * 3. There is always an idle thread when a handler runs: if all others run handlers, one is
 *    started. Where none can be started, calls wait until a handler returns, and a warning in the
 *    log says so. Without a first thread, opening a channel or listener is an error.
 * 4. gRPC is started for the first channel or listener. With the last one it is shut down, and the
 *    threads end.
 */
#ifndef LEAT_CLUSTER_GRPC_POLLER_H
#define LEAT_CLUSTER_GRPC_POLLER_H

#include <stdbool.h>
#include <stdint.h>

#include "cluster/grpc/library.h"

typedef struct leat_tag leat_tag;
struct leat_tag {
    void (*fn)(leat_tag *tag, bool ok); /* ok: the batch's operations succeeded */
    /* Stored before gRPC gets the tag, and loaded before fn runs in another thread. gRPC orders the
     * two itself, but is built without ThreadSanitizer, which therefore does not see it. */
    int order;
};
/* The tag as gRPC gets it, when a batch is started. */
static inline void *leat_tag_pointer(leat_tag *tag)
{
    __atomic_store_n(&tag->order, 1, __ATOMIC_RELEASE);
    return tag;
}

/* A channel or listener begins to use the queue. RESOURCE_EXHAUSTED: no thread can be started. */
leat_status leat_poller_open(grpc_completion_queue **out) LEAT_MUST_CHECK;
/* A channel or listener has ended, and all its events have come. Not to be called by a tag's
 * function. */
void leat_poller_close(void);
/* See rule 2. Does nothing in a thread that does not poll. */
void leat_poller_release(void);

gpr_timespec leat_grpc_time(int64_t deadline_ns); /* CLOCK_MONOTONIC; 0: never */

#endif
