/* rpc_log.h -- which tensors a task fetched from others, and when, for WorkerService's Logging.
 *
 * A master that traces a step turns it on, runs the step, and takes what there is of it; it gets
 * rows as TensorFlow's worker makes them. While nobody has turned it on nothing is kept.
 */
#ifndef LEAT_CLUSTER_RPC_LOG_H
#define LEAT_CLUSTER_RPC_LOG_H

#include <pthread.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>

#include "core/strbuf.h"

typedef struct leat_rpc_log {
    atomic_int wanted;    /* how many have turned it on, and not off */
    pthread_mutex_t lock; /* guards what follows */
    struct leat_rpc_rows *rows;
    int n_rows;
} leat_rpc_log;

void leat_rpc_log_init(leat_rpc_log *l);
void leat_rpc_log_release(leat_rpc_log *l);
void leat_rpc_log_turn(leat_rpc_log *l, bool on);
static inline bool leat_rpc_log_on(const leat_rpc_log *l)
{
    return atomic_load_explicit(&((leat_rpc_log *)l)->wanted, memory_order_relaxed) > 0;
}
int64_t leat_rpc_log_now(void); /* microseconds, CLOCK_REALTIME */
/* key: as a rendezvous has it. Times are leat_rpc_log_now's. */
void leat_rpc_log_add(leat_rpc_log *l, int64_t step, const char *key, int64_t bytes, int64_t start,
                      int64_t end);
/* Puts what there is of a step, a LabeledStepStats, into a LoggingResponse, and forgets it. */
void leat_rpc_log_take(leat_rpc_log *l, int64_t step, leat_strbuf *response);
void leat_rpc_log_clear(leat_rpc_log *l);

#endif
