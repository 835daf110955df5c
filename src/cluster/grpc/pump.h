/* pump.h -- the process's one completion queue, and the threads that work on what comes out of it.
 *
 * 1. One thread leads: it polls. Before it runs callers' code, which may block, it lets another one
 *    lead (leat_pump_let_go). So somebody always polls, however many handlers block, and what came
 *    is worked on without a change of threads.
 * 2. One queue for all channels and listeners: gRPC polls all sockets of a process together, and
 *    with two queues whoever polls would have to wake a thread of the other for every event.
 * 3. gRPC is started with the first user, and shut down, its threads joined, with the last.
 */
#ifndef LEAT_CLUSTER_GRPC_PUMP_H
#define LEAT_CLUSTER_GRPC_PUMP_H

#include <grpc/grpc.h>
#include <stdbool.h>
#include <stdint.h>

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

/* fn() runs every period_ns, or somewhat later, in the thread that leads: it must be quick. There
 * is one such function. */
void leat_pump_every(int64_t period_ns, void (*fn)(void));

gpr_timespec leat_pump_time(int64_t deadline_ns); /* CLOCK_MONOTONIC; 0: never */

#endif
