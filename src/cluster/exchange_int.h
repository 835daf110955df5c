/* exchange_int.h -- exchanges from the inside: exchange.c keeps them, exchange_serve.c serves other
 * processes, exchange_fetch.c requests tensors from them. */
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
    leat_rendezvous *table; /* Where senders and receivers of this process meet. */
    pthread_mutex_t lock;   /* Guards what follows; held while calls are started and cancelled. */
    struct leat_recv_call *recv_calls;
    struct leat_serving *servings; /* Calls of other processes that wait; linked by next, prev. */
    bool dropped;
    atomic_bool claimed;      /* The step runs in this process. */
    _Atomic uint64_t session; /* Set by leat_exchange_keep; 0 before. */
    /* Tensors that other processes have not fetched, plus 1 until leat_exchange_close. */
    atomic_int kept;
    char **texts; /* The keys of leat_exchange_put and _take, and of served requests. */
    int n_texts, cap_texts;
};

struct leat_exchanges {
    const char *task; /* The name of this process in error messages. */
    leat_device *const *devices;
    size_t *name_sizes; /* The lengths of the devices' names. */
    int n_devices;
    leat_peers *peers;
    leat_rpc_log log;         /* Tensors fetched from other processes. */
    pthread_mutex_t lock;     /* Guards by_step; taken before an exchange's lock. */
    struct leat_map *by_step; /* The step's id (int64_t) -> leat_exchange. */
};

/* A RecvTensor or RecvTensors call of this process that has no reply yet. */
typedef struct leat_recv_call {
    leat_exchange *x; /* A reference. */
    leat_call *call;
    struct leat_recv_call *next, *prev;
    int64_t requested_at;         /* By leat_rpc_log_now. */
    char *key;                    /* RecvTensor only. */
    leat_rendezvous_group *group; /* RecvTensors only: a reference. */
    leat_recv_fn fn;              /* RecvTensor only: called with the tensor. */
    void *arg;
} leat_recv_call;

/* Returns the device of this process whose name, followed by ';', begins the text, or NULL if the
 * device belongs to another process. */
const leat_device *leat_exchange_own_device(const leat_exchanges *all, const char *text);
/* Takes the text, which then lives as long as the exchange. Called with its lock held. */
void leat_exchange_keep_text(leat_exchange *x, char *text);

/* exchange_serve.c: true if a call of another process waits since a time before begin_ns; writes
 * who waits for what to out. */
bool leat_exchange_old_wait(leat_exchange *x, int64_t begin_ns, char *out, size_t size);

/* exchange_fetch.c */
void leat_exchange_fetch_one(leat_exchange *x, leat_peer *peer, const char *key, leat_recv_fn fn,
                             void *arg);
void leat_exchange_fetch_group(leat_exchange *x, leat_rendezvous_group *g);

#endif
