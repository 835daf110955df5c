/* exchange.h -- what the processes of a step send each other: the rendezvous of steps over several
 * processes.
 *
 * 1. A sender keeps a tensor until its receiver calls RecvTensor for it, or, between Leat tasks,
 *    RecvTensors for several at once. The call may come before the step has begun here. Between
 *    devices of one process, whichever tasks they are of, a tensor is handed over without a call.
 * 2. An exchange is found by the step's id from the first mention of it until it is dropped, when
 *    the step is over in this process: whatever still waits then gets an error.
 */
#ifndef LEAT_CLUSTER_EXCHANGE_H
#define LEAT_CLUSTER_EXCHANGE_H

#include "cluster/peers.h"
#include "runtime/device.h"
#include "runtime/rendezvous.h"

typedef struct leat_exchange leat_exchange;
typedef struct leat_exchanges leat_exchanges; /* of one process */

/* Borrows all arguments. task: what messages call the process; devices: all that it serves. */
leat_exchanges *leat_exchanges_new(const char *task, leat_device *const *devices, int n_devices,
                                   leat_peers *peers);
void leat_exchanges_free(leat_exchanges *all); /* when no step is under way */
/* Shares the exchange of a step, which is made if there is none; released by leat_exchange_unref.
 */
leat_exchange *leat_exchange_get(leat_exchanges *all, int64_t step);
void leat_exchange_unref(leat_exchange *x);
leat_rendezvous *leat_exchange_claim(leat_exchange *x); /* for a step that runs here */
/* A tensor that comes with RunGraph, or that its reply shall hold, under a key that the master
 * chose. put shares t, take gives *out. */
leat_status leat_exchange_put(leat_exchange *x, const char *key, leat_tensor *t) LEAT_MUST_CHECK;
leat_status leat_exchange_take(leat_exchange *x, const char *key,
                               leat_tensor **out) LEAT_MUST_CHECK;
/* The step has ended well on this task: the exchange is freed when other tasks have received all
 * that was sent to them. */
void leat_exchange_close(leat_exchange *x);
/* The step is over on this task: whatever still waits gets the error why, which is borrowed. */
void leat_exchange_drop(leat_exchanges *all, int64_t step, leat_status why);
void leat_exchange_drop_all(leat_exchanges *all, leat_status why);

struct leat_rpc_log *
leat_exchanges_log(leat_exchanges *all); /* of tensors that were received: rpc_log.h */

/* Serve RecvTensor and RecvTensors: the reply follows when the tensors are there. */
void leat_exchange_serve(leat_exchanges *all, leat_server_call *a, const leat_incoming *in);
void leat_exchange_serve_many(leat_exchanges *all, leat_server_call *a, const leat_incoming *in);

#endif
