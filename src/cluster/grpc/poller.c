/* poller.c -- see poller.h. */
#define _GNU_SOURCE
#include "cluster/grpc/poller.h"

#include <pthread.h>
#include <string.h>
#include <time.h>

#include "cluster/grpc/channel_int.h"
#include "cluster/grpc/guard.h"
#include "core/later.h"
#include "core/log.h"
#include "core/spin.h"
#include "core/thread.h"
#include "core/threadpool.h"

enum {
    IDLE_MAX = 16,              /* Idle threads that are kept. */
    WATCH_NS = 2 * 1000 * 1000, /* How long no thread polls while a handler runs: rule 2. */
};

static pthread_mutex_t users_lock = PTHREAD_MUTEX_INITIALIZER; /* Guards users and queue. */
static int users;                    /* Number of channels and listeners. */
static grpc_completion_queue *queue; /* While there are users. */

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;  /* Guards what follows; taken last. */
static pthread_cond_t changed = PTHREAD_COND_INITIALIZER; /* Wakes idle threads. */
static pthread_cond_t ended = PTHREAD_COND_INITIALIZER;   /* The last thread has ended. */
static int threads;
static int idle;            /* Number of threads that neither poll nor run a handler. */
static bool polled;         /* A thread polls. */
static bool wanted;         /* An idle thread is to poll at once. */
static bool watched;        /* An idle thread checks every WATCH_NS whether a thread polls. */
static bool over;           /* The queue was shut down and is empty. */
static bool warned;         /* The warning that no thread can be started was logged. */
static int64_t released_ns; /* When a thread last stopped polling in order to run a handler. */

static _Thread_local bool polling; /* This thread polls. */

gpr_timespec leat_grpc_time(int64_t deadline_ns)
{
    if (!deadline_ns)
        return gpr_inf_future(GPR_CLOCK_MONOTONIC);
    return (gpr_timespec){deadline_ns / 1000000000, (int32_t)(deadline_ns % 1000000000),
                          GPR_CLOCK_MONOTONIC};
}

static bool take_event(void *event)
{
    grpc_event *e = event;
    *e = grpc_completion_queue_next(queue, gpr_inf_past(GPR_CLOCK_MONOTONIC), NULL);
    return e->type != GRPC_QUEUE_TIMEOUT;
}

static grpc_event next_event(void)
{
    grpc_event e;
    int64_t until = leat_ping_check();
    leat_guard_polls();
    if (!leat_spin(LEAT_SPIN_NS, take_event, &e))
        e = grpc_completion_queue_next(queue, leat_grpc_time(until), NULL);
    return e;
}

/* Polls until another thread does, or the queue has ended. */
static void poll_queue(void)
{
    while (polling) {
        grpc_event e = next_event();
        leat_later_begin(); /* Delays want_poller until the handler waits. */
        if (e.type == GRPC_OP_COMPLETE) {
            leat_tag *tag = e.tag;
            __atomic_load_n(&tag->order, __ATOMIC_ACQUIRE);
            tag->fn(tag, e.success);
        }
        pthread_mutex_lock(&lock);
        if (!polled) /* The tag's function has released the queue, and no other thread polls. */
            polling = polled = true;
        if (e.type == GRPC_QUEUE_SHUTDOWN) {
            over = true;
            polling = polled = false;
            pthread_cond_broadcast(&changed);
        }
        pthread_mutex_unlock(&lock);
        leat_later_end();
    }
}

/* Waits until this thread is to poll. One idle thread checks every WATCH_NS while handlers run, and
 * parks when none has run since its last check. The lock is held. */
static void stay_idle(void)
{
    static int64_t looked_ns;
    if (watched || (polled && released_ns < looked_ns)) {
        pthread_cond_wait(&changed, &lock);
    } else {
        looked_ns = leat_now_ns();
        int64_t until = looked_ns + WATCH_NS;
        watched = true;
        pthread_cond_clockwait(&changed, &lock, CLOCK_MONOTONIC,
                               &(struct timespec){until / 1000000000, until % 1000000000});
        watched = false;
    }
}

static void *run(void *unused)
{
    pthread_setname_np(pthread_self(), "leat-rpc");
    pthread_mutex_lock(&lock);
    while (!over && !(polled && idle > IDLE_MAX)) {
        if (polled || (!wanted && leat_now_ns() < released_ns + WATCH_NS)) {
            stay_idle();
            continue;
        }
        polling = polled = true;
        idle--;
        pthread_mutex_unlock(&lock);
        poll_queue();
        pthread_mutex_lock(&lock);
        idle++;
    }
    idle--;
    if (--threads == 0)
        pthread_cond_signal(&ended);
    pthread_mutex_unlock(&lock);
    return NULL;
}

/* Gives an errno; 0: a thread was started. The lock is held. */
static int start_thread(void)
{
    int e = leat_thread_start(NULL, run, NULL);
    threads += !e;
    idle += !e;
    return e;
}

/* The handler that this thread runs is about to wait. */
static void want_poller(void *unused)
{
    pthread_mutex_lock(&lock);
    wanted = !polled;
    if (wanted && !idle) /* None could be started when the handler was called. */
        (void)start_thread();
    if (wanted)
        pthread_cond_signal(&changed);
    pthread_mutex_unlock(&lock);
}

void leat_poller_release(void)
{
    if (!polling)
        return;
    pthread_mutex_lock(&lock);
    polling = polled = wanted = false;
    released_ns = leat_now_ns();
    int e = idle ? 0 : start_thread();
    if (!watched)
        pthread_cond_signal(&changed);
    bool warn = e && !warned;
    warned = e;
    pthread_mutex_unlock(&lock);
    if (warn)
        LEAT_LOG(WARNING,
                 "No thread can be started to take calls over gRPC while a handler runs (%s): they "
                 "wait until it returns",
                 strerror(e));
    bool again;
    if (!leat_later_put(want_poller, NULL, &again))
        want_poller(NULL);
}

/* The first thread is started before gRPC, so that nothing needs to be undone if it cannot be
 * started. It waits for the lock. */
static leat_status start(void)
{
    pthread_mutex_lock(&lock);
    over = false;
    wanted = true;
    int e = start_thread();
    if (!e) {
        grpc_init();
        queue = grpc_completion_queue_create_for_next(NULL);
    }
    pthread_mutex_unlock(&lock);
    LEAT_REQUIRE(!e, RESOURCE_EXHAUSTED, "No thread can be started for calls over gRPC: %s. %s",
                 strerror(e), LEAT_NO_THREAD_HINT);
    return NULL;
}

static void stop(void)
{
    grpc_completion_queue_shutdown(queue);
    pthread_mutex_lock(&lock);
    while (threads)
        pthread_cond_wait(&ended, &lock);
    pthread_mutex_unlock(&lock);
    grpc_completion_queue_destroy(queue);
    grpc_shutdown_blocking();
}

leat_status leat_poller_open(grpc_completion_queue **out)
{
    pthread_mutex_lock(&users_lock);
    leat_status s = users ? NULL : start();
    if (!s) {
        users++;
        *out = queue;
    }
    pthread_mutex_unlock(&users_lock);
    return s;
}

void leat_poller_close(void)
{
    pthread_mutex_lock(&users_lock);
    if (!--users)
        stop();
    pthread_mutex_unlock(&users_lock);
}
