/* rpc_log.h -- a log of the tensors that a task has fetched from other tasks, for WorkerService's
 * method Logging.
 *
 * A master that traces a step turns the log on, runs the step, and fetches the rows of the step,
 * which are as TensorFlow's worker writes them. While no master has turned the log on, no rows are
 * added.
 */
#ifndef LEAT_CLUSTER_RPC_LOG_H
#define LEAT_CLUSTER_RPC_LOG_H

#include <leat/status.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>

#include "core/strbuf.h"

typedef struct leat_rpc_log {
    atomic_int wanted;    /* number of masters that have turned the log on, and not off */
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
/* Adds a row. key: the rendezvous key of the tensor; start and end: from leat_rpc_log_now. */
void leat_rpc_log_add(leat_rpc_log *l, int64_t step, const char *key, int64_t bytes, int64_t start,
                      int64_t end);
/* Adds the rows of a step, a LabeledStepStats, to a LoggingResponse, and drops them. */
leat_status leat_rpc_log_take(leat_rpc_log *l, int64_t step, leat_strbuf *response) LEAT_MUST_CHECK;
void leat_rpc_log_clear(leat_rpc_log *l);

#endif
