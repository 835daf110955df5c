/* pump.h -- the process's one completion queue, and the threads that work on what comes out of it.
 *
 * 1. One thread leads: it polls. Before it runs callers' code, which may block, it lets others lead
 *    (leat_pump_let_go): one takes over when the code has run for a millisecond; at once, if calls
 *    are made meanwhile by other threads, or by one that may block; and at once, while such code
 * takes long on average. So somebody always polls, however many handlers block, and a short one
 * costs no change of threads.
 * 2. One queue for all channels and listeners: gRPC polls all sockets of a process together, and
 *    with two queues whoever polls would have to wake a thread of the other for every event.
 * 3. A thread that waits for a reply leads while it waits, if nobody does, and if there are no
 *    listeners, whose handlers might keep it. After a reply the lead stays free for a millisecond:
 *    he may come again.
 * 4. gRPC is started with the first user, and shut down, its threads joined, with the last.
 */
#ifndef LEAT_CLUSTER_GRPC_PUMP_H
#define LEAT_CLUSTER_GRPC_PUMP_H

#include <grpc/grpc.h>
#include <stdbool.h>
#include <stdint.h>

#include "core/threadpool.h"

typedef struct leat_tag leat_tag;
struct leat_tag {
    void (*fn)(leat_tag *tag, bool ok);
    int handed; /* orders what was written before the batch before fn, for ThreadSanitizer's eyes */
};
static inline void *leat_tag_hand(leat_tag *tag)
{
    __atomic_store_n(&tag->handed, 1, __ATOMIC_RELEASE);
    return tag;
}

/* Each channel and listener is a user; all its events must have come out before it leaves. Not from
 * a thread of the pump. */
grpc_completion_queue *leat_pump_join(void);
void leat_pump_leave(void);

/* Called by a tag's function before it runs callers' code: see 1. */
void leat_pump_let_go(void);

/* Called by callers' code that is going to wait for the replies to calls that it makes. */
void leat_pump_may_block(void);
/* A call is being made. waits: leat_pump_wait is going to be called for it. */
void leat_pump_need(bool waits);
/* Waits until a tag's function, or what it calls, has set done. */
void leat_pump_wait(leat_event *done);
void leat_pump_listener(int by); /* there is one more (1), or one less (-1) */

/* fn() runs every period_ns, or somewhat later, in the thread that leads: it must be quick. There
 * is one such function. */
void leat_pump_every(int64_t period_ns, void (*fn)(void));

gpr_timespec leat_pump_time(int64_t deadline_ns); /* CLOCK_MONOTONIC; 0: never */

#endif
