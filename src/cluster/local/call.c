/* call.c -- a call from its acceptance to its end: the jobs that work on it, and all ends but a
 * reply. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/random.h>

#include "cluster/local/local.h"
#include "core/alloc.h"
#include "core/buffer.h"
#include "core/cond.h"
#include "core/thread.h"

leat_local_process leat_local = {.once = PTHREAD_ONCE_INIT, .lock = PTHREAD_MUTEX_INITIALIZER};

static void init_once(void)
{
    if (getrandom(&leat_local.identity, sizeof leat_local.identity, 0) !=
        sizeof leat_local.identity)
        leat_local.identity = (unsigned long long)leat_now_ns();
    leat_cond_init(&leat_local.changed);
    leat_cond_init(&leat_local.watch);
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

/* The handler is not called, and the call ends with an error. */
static void refuse_handler(void *arg, int error)
{
    char what[256];
    leat_local_call *k = arg;
    leat_local_endpoint *e = k->to;
    leat_outgoing request = k->request;
    snprintf(what, sizeof what,
             "was not called, because no thread can be started for the call: %s. %s",
             strerror(error), LEAT_NO_THREAD_HINT);
    pthread_mutex_lock(&leat_local.lock);
    leat_status s = k->ended ? NULL : leat_local_failure(k, LEAT_RESOURCE_EXHAUSTED, what);
    pthread_mutex_unlock(&leat_local.lock);
    leat_server_call_reply(&k->server, s, NULL);
    leat_outgoing_release(&request);
    pthread_mutex_lock(&leat_local.lock);
    end_job(e);
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
    k->reply_job = (leat_local_job){.fn = run_reply, .arg = k};
    leat_local_job_soon(&k->reply_job);
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
    k->reply_job = (leat_local_job){.fn = run_reply, .arg = k};
    k->gone_job = (leat_local_job){.fn = run_gone, .arg = k};
    pthread_mutex_unlock(&leat_local.lock);
    leat_local_job_submit(&k->reply_job);
    leat_local_job_submit(&k->gone_job);
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

void leat_local_call_start(leat_local_call *k, leat_local_endpoint *e)
{
    pthread_mutex_lock(&leat_local.lock);
    k->link->calls++;
    leat_status s = k->status = leat_local_accept(k, e);
    k->ended = s != NULL;
    if (!s)
        leat_local_watch_deadline(k->deadline_ns);
    pthread_mutex_unlock(&leat_local.lock);
    if (!s) {
        k->handler_job = (leat_local_job){.fn = run_handler, .refused = refuse_handler, .arg = k};
        leat_local_job_soon(&k->handler_job);
    } else {
        leat_outgoing_release(&k->request);
        leat_local_call_answer(k);
    }
}
