/* here.c -- see here.h. */
#include "cluster/here.h"

#include <pthread.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "cluster/gone.h"
#include "cluster/transport_int.h"
#include "core/alloc.h"
#include "core/threadpool.h"

typedef struct here here;
struct leat_here_door {
    leat_here_door *next;
    char *address;
    leat_handler_fn handler;
    void *arg;
    here *calls; /* that are not answered */
    int n_calls, handlers;
    bool closed;
};

struct here {
    leat_call call;
    leat_asked asked;
    leat_here_door *door;
    here *next, **link;
    leat_gone gone;
    leat_reply_fn fn;
    void *arg;
    int refs;  /* the handler, the answer, and for a moment whoever cuts calls off */
    bool told; /* that it is cut off */
};

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER; /* all of it but gone; before gone's */
static pthread_cond_t changed = PTHREAD_COND_INITIALIZER;
static leat_here_door *doors;

static here *of_asked(const leat_asked *a)
{
    return (here *)((char *)a - offsetof(here, asked));
}

static void unref(here *h)
{
    pthread_mutex_lock(&lock);
    int left = --h->refs;
    pthread_mutex_unlock(&lock);
    if (left)
        return;
    leat_gone_release(&h->gone);
    free(h);
}

/* What is sent, as what came: nothing is copied. slices_out is freed with free(). */
static leat_incoming as_incoming(const leat_outgoing *o, leat_slice **slices_out)
{
    leat_slice *v = *slices_out = leat_new_array(leat_slice, 2 * o->n_pieces + 1);
    leat_incoming in = {.slices = v};
    size_t text = 0;
    for (int i = 0; i <= o->n_pieces; i++) {
        size_t end = i < o->n_pieces ? o->pieces[i].end : o->text.n;
        if (end > text)
            v[in.n++] = (leat_slice){(const uint8_t *)o->text.s + text, end - text};
        text = end;
        if (i < o->n_pieces && leat_tensor_bytes(o->pieces[i].tensor))
            v[in.n++] = (leat_slice){leat_tensor_data(o->pieces[i].tensor),
                                     leat_tensor_bytes(o->pieces[i].tensor)};
    }
    for (int i = 0; i < in.n; i++)
        in.size += v[i].n;
    return in;
}

static void reply(leat_asked *a, leat_status s, leat_outgoing *o)
{
    static leat_outgoing nothing;
    here *h = of_asked(a);
    leat_gone_answer(&h->gone);
    pthread_mutex_lock(&lock);
    *h->link = h->next;
    if (h->next)
        h->next->link = h->link;
    if (--h->door->n_calls == 0)
        pthread_cond_broadcast(&changed);
    pthread_mutex_unlock(&lock);
    if (s) {
        h->fn(h->arg, s, NULL);
    } else {
        leat_slice *slices;
        leat_incoming in = as_incoming(o ? o : &nothing, &slices);
        h->fn(h->arg, NULL, &in);
        free(slices);
    }
    if (o)
        leat_outgoing_release(o);
    unref(h);
}

static bool on_gone(leat_asked *a, void (*fn)(void *arg), void *arg)
{
    return leat_gone_watch(&of_asked(a)->gone, fn, arg);
}

static const char *peer(const leat_asked *a)
{
    return "this process";
}

static void nothing_before(void) {}

static void cancel(leat_call *call)
{
    leat_gone_fire(&((here *)call)->gone, nothing_before);
}

leat_call *leat_here_new(const char *address)
{
    static const leat_asked_ops ops = {.reply = reply, .on_gone = on_gone, .peer = peer};
    pthread_mutex_lock(&lock);
    leat_here_door *d = doors;
    while (d && (d->closed || strcmp(d->address, address) != 0))
        d = d->next;
    here *h = NULL;
    if (d) {
        h = leat_new(here);
        *h = (here){.call = {cancel}, .asked = {&ops}, .door = d, .refs = 2};
        leat_gone_init(&h->gone);
        h->link = &d->calls;
        h->next = d->calls;
        if (h->next)
            h->next->link = &h->next;
        d->calls = h;
        d->n_calls++;
        d->handlers++;
    }
    pthread_mutex_unlock(&lock);
    return h ? &h->call : NULL;
}

void leat_here_call(leat_call *call, const char *method, leat_outgoing *request, leat_reply_fn fn,
                    void *arg)
{
    here *h = (here *)call;
    leat_here_door *d = h->door;
    h->fn = fn;
    h->arg = arg;
    leat_slice *slices;
    leat_incoming in = as_incoming(request, &slices);
    d->handler(d->arg, &h->asked, method, &in);
    free(slices);
    leat_outgoing_release(request);
    unref(h);
    pthread_mutex_lock(&lock);
    if (--d->handlers == 0)
        pthread_cond_broadcast(&changed);
    pthread_mutex_unlock(&lock);
}

leat_here_door *leat_here_open(const char *address, leat_handler_fn handler, void *arg)
{
    leat_here_door *d = leat_new(leat_here_door);
    *d = (leat_here_door){.address = leat_xstrdup(address), .handler = handler, .arg = arg};
    pthread_mutex_lock(&lock);
    d->next = doors;
    doors = d;
    pthread_mutex_unlock(&lock);
    return d;
}

/* Whoever waits for an answer has waited in vain. The lock is held, but not while this tells. */
static void cut_off(leat_here_door *d)
{
    for (;;) {
        here *h = d->calls;
        while (h && h->told)
            h = h->next;
        if (!h)
            return;
        h->told = true;
        h->refs++;
        pthread_mutex_unlock(&lock);
        leat_gone_fire(&h->gone, nothing_before);
        unref(h);
        pthread_mutex_lock(&lock);
    }
}

void leat_here_close(leat_here_door *d, int64_t deadline_ns)
{
    pthread_mutex_lock(&lock);
    d->closed = true;
    /* The clock of a static condition is the wall's; a look now and then is enough here. */
    while (d->n_calls && leat_now_ns() < deadline_ns) {
        pthread_mutex_unlock(&lock);
        nanosleep(&(struct timespec){.tv_nsec = 1000000}, NULL);
        pthread_mutex_lock(&lock);
    }
    cut_off(d);
    while (d->handlers || d->n_calls)
        pthread_cond_wait(&changed, &lock);
    for (leat_here_door **p = &doors; *p; p = &(*p)->next)
        if (*p == d) {
            *p = d->next;
            break;
        }
    pthread_mutex_unlock(&lock);
    free(d->address);
    free(d);
}
