/* call.c -- a call from its acceptance to its end: the jobs that work on it, and all ends but a
 * reply. */
#include <stdlib.h>
#include <sys/random.h>

#include "cluster/local/local.h"
#include "core/alloc.h"
#include "core/buffer.h"
#include "core/cond.h"

leat_local_process leat_local = {.once = PTHREAD_ONCE_INIT, .lock = PTHREAD_MUTEX_INITIALIZER};

/* Ends calls when their deadline passes. Guarded by leat_local.lock. */
static struct {
    bool runs;        /* run_watch was submitted and has not returned. */
    int64_t until_ns; /* The time until which run_watch waits (CLOCK_MONOTONIC). */
    leat_event again; /* Ends the wait of run_watch, which then looks at all calls. */
    leat_local_job job;
} watch;

static void init_once(void)
{
    if (getrandom(&leat_local.identity, sizeof leat_local.identity, 0) !=
        sizeof leat_local.identity)
        leat_local.identity = (unsigned long long)leat_now_ns();
    leat_cond_init(&leat_local.changed);
}

void leat_local_init(void)
{
    pthread_once(&leat_local.once, init_once);
}

void leat_local_endpoint_unref(leat_local_endpoint *e)
{
    if (--e->refs == 0)
        free(e);
}

void leat_local_call_unref(leat_local_call *k)
{
    if (--k->refs)
        return;
    if (k->to)
        leat_local_endpoint_unref(k->to);
    leat_gone_release(&k->gone);
    free(k);
}

void leat_local_call_close(leat_local_call *k)
{
    k->ended = true;
    *k->at = k->next;
    if (k->next)
        k->next->at = k->at;
}

/* ---- Jobs ---- */
/* Gives an outgoing message as the receiver gets it, without a copy. The caller frees its slices
 * with free(). */
static leat_incoming incoming_of(const leat_outgoing *o)
{
    leat_slice *slices = leat_new_array(leat_slice, 2 * o->n_pieces + 1);
    int n = 0;
    size_t at = 0;
    for (int i = 0; i <= o->n_pieces; i++) {
        const leat_tensor *t = i < o->n_pieces ? o->pieces[i].tensor : NULL;
        size_t end = t ? o->pieces[i].end : o->text.n;
        if (end > at)
            slices[n++] = (leat_slice){(const uint8_t *)o->text.s + at, end - at, NULL};
        if (t && leat_tensor_bytes(t))
            slices[n++] = (leat_slice){t->data, leat_tensor_bytes(t), t->buffer};
        at = end;
    }
    return (leat_incoming){.slices = slices, .n = n, .size = leat_outgoing_size(o)};
}

static void run_reply(void *arg)
{
    leat_local_call *k = arg;
    leat_incoming in = incoming_of(&k->reply);
    k->fn(k->arg, k->status, k->status ? NULL : &in);
    free((void *)in.slices);
    leat_outgoing_release(&k->reply);
    pthread_mutex_lock(&leat_local.lock);
    k->link->calls--;
    leat_local_call_unref(k);
    pthread_cond_broadcast(&leat_local.changed);
    pthread_mutex_unlock(&leat_local.lock);
}

/* The lock is held, and released here. */
static void end_job(leat_local_endpoint *e)
{
    e->jobs--;
    pthread_cond_broadcast(&leat_local.changed);
    pthread_mutex_unlock(&leat_local.lock);
}

static void run_handler(void *arg)
{
    leat_local_call *k = arg; /* May be freed as soon as the handler has replied. */
    leat_local_endpoint *e = k->to;
    leat_outgoing request = k->request;
    leat_incoming in = incoming_of(&request);
    leat_later_jobs_begin();
    e->handler(e->arg, &k->server, k->method, &in);
    free((void *)in.slices);
    leat_outgoing_release(&request);
    pthread_mutex_lock(&leat_local.lock);
    end_job(e);
    leat_later_jobs_end();
}

static void nothing(void) {}

static void run_gone(void *arg)
{
    leat_local_call *k = arg;
    leat_local_endpoint *e = k->to;
    leat_gone_fire(&k->gone, nothing);
    pthread_mutex_lock(&leat_local.lock);
    leat_local_call_unref(k);
    end_job(e);
}

void leat_local_call_answer(leat_local_call *k)
{
    leat_local_job_soon(&k->reply_job, run_reply, k);
}

/* ---- Calls that end without a reply ---- */
leat_status leat_local_failure(const leat_local_call *k, leat_code code, const char *what)
{
    return leat_status_new(
        code, __FILE__, __LINE__, "%s (%s, in this process) %s [%s, after %.3f s]", k->link->peer,
        k->link->address, what, k->method, (double)(leat_now_ns() - k->started_ns) / 1e9);
}

void leat_local_call_give_up(leat_local_call *k, leat_code code, const char *what)
{
    leat_local_call_close(k);
    k->status = leat_local_failure(k, code, what);
    k->refs++;
    k->to->jobs++;
    pthread_mutex_unlock(&leat_local.lock);
    leat_local_job_submit(&k->reply_job, run_reply, k);
    leat_local_job_submit(&k->gone_job, run_gone, k);
}

void leat_local_give_up_all(const leat_local_link *l, const leat_local_endpoint *e, leat_code code,
                            const char *what)
{
    for (;;) {
        pthread_mutex_lock(&leat_local.lock);
        leat_local_call *k = leat_local.calls;
        while (k && k->link != l && k->to != e)
            k = k->next;
        if (!k)
            break;
        leat_local_call_give_up(k, code, what);
    }
    pthread_mutex_unlock(&leat_local.lock);
}

/* A job that ends calls when their deadline passes. Runs while there are calls with a deadline. */
static void run_watch(void *unused)
{
    pthread_mutex_lock(&leat_local.lock);
    for (;;) {
        leat_local_call *soonest = NULL;
        for (leat_local_call *k = leat_local.calls; k; k = k->next)
            if (k->deadline_ns && (!soonest || k->deadline_ns < soonest->deadline_ns))
                soonest = k;
        if (!soonest)
            break;
        if (soonest->deadline_ns <= leat_now_ns()) {
            leat_local_call_give_up(
                soonest, LEAT_DEADLINE_EXCEEDED,
                "did not answer in time. It is busy, or what was called for takes longer");
        } else {
            int64_t until = watch.until_ns = soonest->deadline_ns;
            leat_event_init(&watch.again);
            pthread_mutex_unlock(&leat_local.lock);
            leat_event_park(&watch.again, until);
        }
        pthread_mutex_lock(&leat_local.lock);
    }
    watch.runs = false;
    pthread_mutex_unlock(&leat_local.lock);
}

/* A call with this deadline begins. True: run_watch has to be submitted. The lock is held. */
static bool watch_deadline(int64_t deadline_ns)
{
    bool start = deadline_ns && !watch.runs;
    if (deadline_ns && watch.runs && deadline_ns < watch.until_ns)
        leat_event_set(&watch.again);
    watch.runs |= start;
    return start;
}

void leat_local_call_start(leat_local_call *k, leat_local_endpoint *e)
{
    pthread_mutex_lock(&leat_local.lock);
    k->link->calls++;
    leat_status s = k->status = leat_local_accept(k, e);
    k->ended = s != NULL;
    bool start_watch = !s && watch_deadline(k->deadline_ns);
    pthread_mutex_unlock(&leat_local.lock);
    if (start_watch)
        leat_local_job_submit(&watch.job, run_watch, NULL);
    if (!s) {
        leat_local_job_soon(&k->handler_job, run_handler, k);
    } else {
        leat_outgoing_release(&k->request);
        leat_local_call_answer(k);
    }
}

void leat_local_leave(void)
{
    if (watch.runs)
        leat_event_set(&watch.again); /* run_watch returns if no call has a deadline. */
    pthread_mutex_unlock(&leat_local.lock);
    leat_local_jobs_leave();
}
