/* exchange.h -- what the tasks of a step send each other: the rendezvous of steps over several
 * tasks.
 *
 * 1. A sender keeps a tensor until its receiver asks for it, by RecvTensor, or, between Leat tasks,
 *    for several at once, by RecvTensors. A receiver may ask before the step has begun here.
 * 2. An exchange is found by the step's id from the first mention of it until it is dropped, when
 *    the step is over on this task: whatever still waits then gets an error.
 */
#ifndef LEAT_CLUSTER_EXCHANGE_H
#define LEAT_CLUSTER_EXCHANGE_H

#include "cluster/peers.h"
#include "runtime/device.h"
#include "runtime/rendezvous.h"

typedef struct leat_exchange leat_exchange;
typedef struct leat_exchanges leat_exchanges; /* of one task */

#define LEAT_RECV_TENSOR "/tensorflow.WorkerService/RecvTensor"
#define LEAT_RECV_TENSORS "/leat.PeerService/RecvTensors"

/* Borrows all; devices: this task's. */
leat_exchanges *leat_exchanges_new(const char *task, leat_device *const *devices, int n_devices,
                                   leat_peers *peers);
void leat_exchanges_free(leat_exchanges *all); /* when no step is under way */
/* The exchange of a step, made if it is new; let go of it with unref. */
leat_exchange *leat_exchange_get(leat_exchanges *all, int64_t step);
void leat_exchange_unref(leat_exchange *x);
leat_rendezvous *leat_exchange_claim(leat_exchange *x); /* for a step that runs here */
/* A tensor that a client sends, or wants, under a key of its own; shares t, gives *out. */
leat_status leat_exchange_put(leat_exchange *x, const char *key, leat_tensor *t) LEAT_MUST_CHECK;
leat_status leat_exchange_take(leat_exchange *x, const char *key,
                               leat_tensor **out) LEAT_MUST_CHECK;
/* The step has ended well here: the exchange goes when others have taken what was sent to them. */
void leat_exchange_close(leat_exchange *x);
/* The step is over on this task, because of why. Borrows why. */
void leat_exchange_drop(leat_exchanges *all, int64_t step, leat_status why);
void leat_exchange_drop_all(leat_exchanges *all, leat_status why);

struct leat_rpc_log *leat_exchanges_log(leat_exchanges *all); /* what was fetched: rpc_log.h */

/* Answers RecvTensor and RecvTensors. */
void leat_exchange_serve(leat_exchanges *all, leat_asked *a, const leat_incoming *in);
void leat_exchange_serve_many(leat_exchanges *all, leat_asked *a, const leat_incoming *in);

#endif
