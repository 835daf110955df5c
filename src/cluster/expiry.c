/* expiry.c -- see expiry.h. */
#include "cluster/expiry.h"

#include <pthread.h>
#include <stdlib.h>
#include <string.h>

#include "core/alloc.h"
#include "core/cond.h"
#include "core/thread.h"

enum { IDLE_SECONDS = 3600, CALL_SECONDS = 7 * 24 * 3600 }; /* The defaults. */

struct leat_expiry {
    leat_service *service;
    leat_worker *worker;
    int port;
    int64_t idle_ns, call_ns; /* The limits; 0: none. */
    leat_cancellation *stop;  /* Ends calls to other tasks. */
    pthread_t thread;
    pthread_mutex_t lock; /* Guards stopping. */
    pthread_cond_t changed;
    bool stopping;
};

/* 0 is the default, a negative number no limit, and so is one that nanoseconds do not hold. */
static int64_t limit_ns(double seconds, int usual)
{
    if (seconds < 0 || seconds * 1e9 >= (double)INT64_MAX)
        return 0;
    return (int64_t)((seconds > 0 ? seconds : usual) * 1e9);
}

/* Looks often enough that a limit is kept to within a quarter, and at least once a minute, so that
 * a client's connection was seen open at most a minute before it closed. */
static int64_t pause_ns(const leat_expiry *e)
{
    const int64_t minute = INT64_C(60000000000), shortest = 10000000;
    int64_t n = minute;
    if (e->idle_ns && e->idle_ns / 4 < n)
        n = e->idle_ns / 4;
    if (e->call_ns && e->call_ns / 4 < n)
        n = e->call_ns / 4;
    return n > shortest ? n : shortest;
}

static void look(leat_expiry *e)
{
    if (e->call_ns) {
        leat_worker_end_old_runs(e->worker, e->call_ns);
        leat_exchange_end_old_waits(leat_worker_exchanges(e->worker), e->call_ns);
    }
    if (!e->idle_ns || (!leat_service_sessions(e->service) && !leat_worker_sessions(e->worker)))
        return;
    leat_connections *open = leat_connections_read(e->port);
    leat_service_expire(e->service, open, e->idle_ns);
    leat_worker_expire(e->worker, open, e->idle_ns, e->stop);
    leat_connections_free(open);
}

static void *run(void *arg)
{
    leat_expiry *e = arg;
    pthread_mutex_lock(&e->lock);
    while (!e->stopping) {
        int64_t until = leat_now_ns() + pause_ns(e);
        while (!e->stopping && leat_cond_wait_until(&e->changed, &e->lock, until))
            ;
        if (e->stopping)
            break;
        pthread_mutex_unlock(&e->lock);
        look(e);
        pthread_mutex_lock(&e->lock);
    }
    pthread_mutex_unlock(&e->lock);
    return NULL;
}

static void expiry_free(leat_expiry *e)
{
    leat_cancellation_free(e->stop);
    pthread_mutex_destroy(&e->lock);
    pthread_cond_destroy(&e->changed);
    free(e);
}

leat_status leat_expiry_start(const leat_server_options *o, int port, leat_service *s,
                              leat_worker *w, leat_expiry **out)
{
    leat_expiry *e = leat_new(leat_expiry);
    e->service = s;
    e->worker = w;
    e->port = port;
    e->idle_ns = limit_ns(o->session_idle_secs, IDLE_SECONDS);
    e->call_ns = limit_ns(o->max_call_secs, CALL_SECONDS);
    e->stop = leat_cancellation_new();
    pthread_mutex_init(&e->lock, NULL);
    leat_cond_init(&e->changed);
    int code = pthread_create(&e->thread, NULL, run, e);
    if (code) {
        expiry_free(e);
        return leat_error(RESOURCE_EXHAUSTED, "No thread can be started for the server: %s. %s",
                          strerror(code), LEAT_NO_THREAD_HINT);
    }
    *out = e;
    return NULL;
}

void leat_expiry_stop(leat_expiry *e)
{
    if (!e)
        return;
    pthread_mutex_lock(&e->lock);
    e->stopping = true;
    pthread_cond_broadcast(&e->changed);
    pthread_mutex_unlock(&e->lock);
    leat_cancel_runs(e->stop);
    pthread_join(e->thread, NULL);
    expiry_free(e);
}
