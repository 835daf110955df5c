/* coordinator.c -- threads that are stopped together. */
#include <leat/coordinator.h>

#include <pthread.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>

#include "core/alloc.h"
#include "core/cond.h"
#include "core/log.h"
#include "core/object.h"
#include "core/strbuf.h"
#include "core/threadpool.h"
#include "graph/given.h"

enum { GRACE_MS = 120 * 1000 };

typedef struct member {
    leat_coordinator *c; /* shares a reference */
    char *name;
    pthread_t id;
    leat_thread_fn fn;
    void *arg;
    int64_t interval_ms; /* below 0: fn is called once */
    bool ended, orphan;  /* orphan: the thread is not joined and frees itself */
    struct member *next;
} member;

struct leat_coordinator {
    leat_object object;
    atomic_int refs;
    atomic_bool stop;
    pthread_mutex_t lock; /* guards the following fields, and members' ended and orphan */
    pthread_cond_t changed;
    bool joined;
    leat_status status;
    member *members;
};

leat_coordinator *leat_coordinator_new(void)
{
    leat_coordinator *c = leat_new_object(leat_coordinator, COORDINATOR);
    atomic_init(&c->refs, 1);
    pthread_mutex_init(&c->lock, NULL);
    leat_cond_init(&c->changed);
    return c;
}

static void unref(leat_coordinator *c)
{
    if (atomic_fetch_sub(&c->refs, 1) != 1)
        return;
    leat_status_free(c->status);
    pthread_mutex_destroy(&c->lock);
    pthread_cond_destroy(&c->changed);
    leat_object_free(&c->object);
}

static void member_free(member *m)
{
    unref(m->c);
    free(m->name);
    free(m);
}

/* ---- Stopping ---- */

void leat_coordinator_request_stop(leat_coordinator *c, leat_status s)
{
    if (!LEAT_USABLE(COORDINATOR, c))
        return;
    if (leat_status_code(s) == LEAT_OUT_OF_RANGE) {
        leat_status_free(s);
        s = NULL;
    }
    if (s)
        LEAT_LOG(INFO, "Error reported to Coordinator: %s: %s", leat_code_name(leat_status_code(s)),
                 leat_status_message(s));
    pthread_mutex_lock(&c->lock);
    if (!atomic_load(&c->stop) && !c->status) {
        c->status = s;
        s = NULL;
    }
    atomic_store(&c->stop, true);
    pthread_cond_broadcast(&c->changed);
    pthread_mutex_unlock(&c->lock);
    leat_status_free(s);
}

bool leat_coordinator_should_stop(const leat_coordinator *c)
{
    if (!LEAT_USABLE(COORDINATOR, c))
        return false;
    return atomic_load(&((leat_coordinator *)c)->stop);
}

static int64_t after_ms(int64_t ms)
{
    return ms > INT64_MAX / 4000000 ? INT64_MAX / 4 : leat_now_ns() + ms * 1000000;
}

bool leat_coordinator_wait_for_stop(leat_coordinator *c, int64_t timeout_ms)
{
    if (!LEAT_USABLE(COORDINATOR, c))
        return false;
    int64_t deadline = timeout_ms < 0 ? INT64_MAX : after_ms(timeout_ms);
    pthread_mutex_lock(&c->lock);
    while (!atomic_load(&c->stop) && leat_cond_wait_until(&c->changed, &c->lock, deadline))
        ;
    pthread_mutex_unlock(&c->lock);
    return leat_coordinator_should_stop(c);
}

void leat_coordinator_clear_stop(leat_coordinator *c)
{
    if (!LEAT_USABLE(COORDINATOR, c))
        return;
    pthread_mutex_lock(&c->lock);
    leat_status_free(c->status);
    c->status = NULL;
    c->joined = false;
    atomic_store(&c->stop, false);
    pthread_mutex_unlock(&c->lock);
}

leat_status leat_coordinator_status(leat_coordinator *c)
{
    LEAT_CHECK(COORDINATOR, c);
    pthread_mutex_lock(&c->lock);
    leat_status s = leat_status_copy(c->status);
    pthread_mutex_unlock(&c->lock);
    return s;
}

bool leat_coordinator_joined(leat_coordinator *c)
{
    if (!LEAT_USABLE(COORDINATOR, c))
        return false;
    pthread_mutex_lock(&c->lock);
    bool joined = c->joined;
    pthread_mutex_unlock(&c->lock);
    return joined;
}

/* ---- Threads ---- */

static leat_status member_work(member *m)
{
    if (m->interval_ms < 0)
        return m->fn(m->arg);
    int64_t next = leat_now_ns();
    for (;;) {
        int64_t left = (next - leat_now_ns()) / 1000000;
        if (leat_coordinator_wait_for_stop(m->c, left > 0 ? left : 0))
            return NULL;
        next += m->interval_ms * 1000000;
        LEAT_TRY(m->fn(m->arg));
    }
}

static void *member_main(void *arg)
{
    member *m = arg;
    leat_coordinator *c = m->c;
    leat_status s = member_work(m);
    if (s)
        leat_coordinator_request_stop(c, s);
    pthread_mutex_lock(&c->lock);
    m->ended = true;
    bool orphan = m->orphan;
    pthread_cond_broadcast(&c->changed);
    pthread_mutex_unlock(&c->lock);
    if (orphan)
        member_free(m);
    return NULL;
}

leat_status leat_coordinator_loop(leat_coordinator *c, const char *name, int64_t interval_ms,
                                  leat_thread_fn fn, void *arg)
{
    LEAT_CHECK(COORDINATOR, c);
    member *m = leat_new(member);
    *m = (member){
        .c = c, .name = leat_xstrdup(name), .fn = fn, .arg = arg, .interval_ms = interval_ms};
    atomic_fetch_add(&c->refs, 1);
    pthread_mutex_lock(&c->lock);
    int failed = pthread_create(&m->id, NULL, member_main, m);
    if (!failed) {
        m->next = c->members;
        c->members = m;
    }
    pthread_mutex_unlock(&c->lock);
    if (!failed)
        return NULL;
    leat_status s =
        leat_error(RESOURCE_EXHAUSTED, "Cannot start thread %s: %s", name, strerror(failed));
    member_free(m);
    return s;
}

leat_status leat_coordinator_start(leat_coordinator *c, const char *name, leat_thread_fn fn,
                                   void *arg)
{
    return leat_coordinator_loop(c, name, -1, fn, arg);
}

/* ---- Joining ---- */

static bool any_alive(const leat_coordinator *c)
{
    for (const member *m = c->members; m; m = m->next)
        if (!m->ended)
            return true;
    return false;
}

/* Removes the members from c; threads that still run become orphans, and are named in the error.
 * The lock is held. */
static member *leave_the_living(leat_coordinator *c, leat_strbuf *names)
{
    member *ended = NULL;
    while (c->members) {
        member *m = c->members;
        c->members = m->next;
        if (m->ended) {
            m->next = ended;
            ended = m;
            continue;
        }
        leat_strbuf_printf(names, " %s", m->name);
        m->orphan = true;
        pthread_detach(m->id);
    }
    return ended;
}

static void join_all(member *ended)
{
    while (ended) {
        member *m = ended;
        ended = m->next;
        pthread_join(m->id, NULL);
        member_free(m);
    }
}

leat_status leat_coordinator_join_with(leat_coordinator *c, const leat_join_options *o)
{
    LEAT_CHECK(COORDINATOR, c);
    leat_strbuf names = {0};
    pthread_mutex_lock(&c->lock);
    while (any_alive(c) && !atomic_load(&c->stop))
        pthread_cond_wait(&c->changed, &c->lock);
    int64_t deadline = after_ms(leat_given_int_or(&o->given, "grace_ms", o->grace_ms, GRACE_MS));
    while (any_alive(c) && leat_cond_wait_until(&c->changed, &c->lock, deadline))
        ;
    member *ended = leave_the_living(c, &names);
    c->joined = true;
    leat_status s = leat_status_copy(c->status);
    pthread_mutex_unlock(&c->lock);
    join_all(ended);
    const char *living = leat_strbuf_text(&names);
    if (*living && o->ignore_live_threads)
        LEAT_LOG(INFO, "Coordinator stopped with threads still running:%s", living);
    else if (*living && !s)
        s = leat_error(DEADLINE_EXCEEDED, "Coordinator stopped with threads still running:%s",
                       living);
    leat_strbuf_release(&names);
    return s;
}

void leat_coordinator_free(leat_coordinator *c)
{
    if (!c || !LEAT_USABLE(COORDINATOR, c))
        return;
    leat_strbuf names = {0};
    pthread_mutex_lock(&c->lock);
    atomic_store(&c->stop, true);
    pthread_cond_broadcast(&c->changed);
    member *ended = leave_the_living(c, &names);
    pthread_mutex_unlock(&c->lock);
    join_all(ended);
    leat_strbuf_release(&names);
    unref(c);
}
