/* exchange_int.h -- exchanges from the inside: exchange.c keeps and serves them, exchange_fetch.c
 * requests tensors from other processes. */
#ifndef LEAT_CLUSTER_EXCHANGE_INT_H
#define LEAT_CLUSTER_EXCHANGE_INT_H

#include <pthread.h>

#include "cluster/exchange.h"
#include "cluster/rpc_log.h"

struct leat_exchange {
    leat_rendezvous base;
    leat_exchanges *all;
    int64_t step;
    atomic_int refs;
    leat_rendezvous *table; /* where the two sides meet in this process */
    pthread_mutex_t lock;   /* guards what follows; calls are cancelled under it */
    struct leat_recv_call *recv_calls;
    bool dropped;
    atomic_bool claimed; /* the step runs here */
    atomic_int kept;     /* tensors that others have not taken, and one until it is closed */
    char **texts;        /* keys that other processes requested */
    int n_texts, cap_texts;
};

struct leat_exchanges {
    const char *task; /* for messages */
    leat_device *const *devices;
    size_t *name_sizes; /* of the devices' names */
    int n_devices;
    leat_peers *peers;
    leat_rpc_log log;     /* of what was fetched */
    pthread_mutex_t lock; /* guards by_step; before an exchange's */
    struct leat_map *by_step;
};

/* A call of RecvTensor or RecvTensors under way. */
typedef struct leat_recv_call {
    leat_exchange *x; /* a reference */
    leat_call *call;
    struct leat_recv_call *next, *prev;
    int64_t requested_at;         /* leat_rpc_log_now */
    char *key;                    /* of a single tensor */
    leat_rendezvous_group *group; /* a reference; or a single tensor: */
    leat_recv_fn fn;
    void *arg;
} leat_recv_call;

/* exchange_fetch.c */
void leat_exchange_fetch_one(leat_exchange *x, leat_peer *peer, const char *key, leat_recv_fn fn,
                             void *arg);
void leat_exchange_fetch_group(leat_exchange *x, leat_rendezvous_group *g);

#endif
