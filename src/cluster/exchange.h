/* exchange.h -- an exchange is the rendezvous of one step in this process, from which the other
 * processes of the step fetch tensors.
 *
 * 1. A sender keeps a tensor until its receiver calls RecvTensor for it, or, between Leat tasks,
 *    RecvTensors for several tensors at once. The call may come before the step has begun in this
 *    process. Between devices of one process a tensor is handed over without a call, even if the
 *    devices belong to different tasks. A Leat master knows which tensors of its own process the
 *    other Leat processes of the step need, and sends these by SendTensors without being asked.
 * 2. An exchange is made by the first RunGraph, RecvTensor or RecvTensors call with the step's id,
 *    or by the master's step in this process. It is found by that id until it is dropped, when the
 *    step is over in this process. Receivers that still wait then get an error.
 */
#ifndef LEAT_CLUSTER_EXCHANGE_H
#define LEAT_CLUSTER_EXCHANGE_H

#include <stdatomic.h>

#include "cluster/peers.h"
#include "runtime/device.h"
#include "runtime/rendezvous.h"

typedef struct leat_exchange leat_exchange;
typedef struct leat_exchanges leat_exchanges; /* The exchanges of one process. */
struct leat_step;

/* Borrows all arguments. Error messages call the process by the name `task`. devices has all
 * devices that the process serves. */
leat_exchanges *leat_exchanges_new(const char *task, leat_device *const *devices, int n_devices,
                                   leat_peers *peers);
void leat_exchanges_free(leat_exchanges *all); /* No step may be under way. */
/* Shares the exchange of a step, and makes it if there is none. Release it with
 * leat_exchange_unref. */
leat_exchange *leat_exchange_get(leat_exchanges *all, int64_t step);
void leat_exchange_unref(leat_exchange *x);
/* Notes that the step runs in this process, and returns the exchange as the step's rendezvous. */
leat_rendezvous *leat_exchange_claim(leat_exchange *x);
/* put adds a tensor that came with the request of RunGraph, take removes one that belongs in the
 * reply of RunGraph; the master chose the key. put shares t, take gives *out. */
leat_status leat_exchange_put(leat_exchange *x, const char *key, leat_tensor *t) LEAT_MUST_CHECK;
leat_status leat_exchange_take(leat_exchange *x, const char *key,
                               leat_tensor **out) LEAT_MUST_CHECK;
/* To be called when the step has succeeded in this process: the exchange is freed once other
 * processes have received all tensors that were sent to them. */
void leat_exchange_close(leat_exchange *x);
/* To be called when the step is over in this process: receivers that still wait get the error why,
 * which is borrowed. drop_all does the same for every step. */
void leat_exchange_drop(leat_exchanges *all, int64_t step, leat_status why);
void leat_exchange_drop_all(leat_exchanges *all, leat_status why);
/* To be called when the step is over in this process and the exchange waits for CleanupGraph: it
 * belongs to that session from then on, by whose number leat_exchange_drop_session drops it. */
void leat_exchange_keep(leat_exchange *x, uint64_t session);
void leat_exchange_drop_session(leat_exchanges *all, uint64_t session, leat_status why);
/* Drops the steps of which another task waits for a tensor for longer than limit_ns: its RecvTensor
 * or RecvTensors call ends with DEADLINE_EXCEEDED, which names what it waited for. */
void leat_exchange_end_old_waits(leat_exchanges *all, int64_t limit_ns);

/* For the step's master: sends the tensors of the group, which this process makes, to a Leat
 * process by one SendTensors call, as soon as all are there. Until the reply the call counts as a
 * part of the step. Shares g. The peer has to know of it by leat_exchange_expect_pushes. *over
 * becomes true when the peer's part of the step has ended, by leat_exchange_end_pushes: a peer that
 * has found that it does not need a tensor may end before. */
void leat_exchange_push(leat_exchange *x, leat_peer *peer, leat_rendezvous_group *g,
                        struct leat_step *step, const atomic_bool *over);
/* Sets *over, and cancels the calls of leat_exchange_push with it. */
void leat_exchange_end_pushes(leat_exchange *x, atomic_bool *over);
/* For the other processes, before the step is started: tensors of the process that serves the task
 * `sender` are not requested; they come by SendTensors. */
leat_status leat_exchange_expect_pushes(leat_exchange *x, const char *sender) LEAT_MUST_CHECK;
/* Replies to the SendTensors calls of the step. To be called when the step has ended in this
 * process (failed: with CANCELLED), before the reply to RunGraph, so that both replies are sent at
 * once. */
void leat_exchange_reply_pushed(leat_exchange *x, bool failed);

struct leat_rpc_log *
leat_exchanges_log(leat_exchanges *all); /* The log of received tensors (rpc_log.h). */

/* Handlers of RecvTensor and RecvTensors. The reply is sent when all requested tensors are there,
 * maybe after the handler has returned. */
void leat_exchange_serve(leat_exchanges *all, leat_server_call *a, const leat_incoming *in);
void leat_exchange_serve_many(leat_exchanges *all, leat_server_call *a, const leat_incoming *in);
/* Handler of SendTensors. The reply is sent when the step has ended in this process. */
void leat_exchange_take_pushed(leat_exchanges *all, leat_server_call *a, const leat_incoming *in);

#endif
