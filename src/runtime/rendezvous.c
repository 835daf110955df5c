/* rendezvous.c -- between devices of one process: a pointer is handed over. */
#include "runtime/rendezvous.h"

#include <pthread.h>
#include <stdlib.h>
#include <string.h>

#include "core/alloc.h"
#include "core/map.h"

/* A key that was sent or received, or both. Kept in an open-addressing table that is used again in
 * each step. */
typedef struct meeting {
    uint64_t hash;
    const char *text; /* NULL: free */
    char *owned;      /* the text of a passing key */
    leat_tensor *tensor;
    bool dead, sent, met; /* met: both sides have come */
    leat_recv_fn fn;
    void *arg;
} meeting;

typedef struct local {
    leat_rendezvous base;
    pthread_mutex_t lock; /* guards all below; callbacks run without it */
    meeting *table;
    size_t n, cap; /* power of two */
    leat_status aborted;
} local;

leat_rendezvous_key leat_rendezvous_key_of(const char *text)
{
    return (leat_rendezvous_key){.text = text,
                                 .hash = leat_hash(text, strlen(text), leat_hash_secret())};
}

static meeting *find(local *l, const leat_rendezvous_key *key)
{
    size_t i = key->hash & (l->cap - 1);
    while (l->table[i].text &&
           !(l->table[i].hash == key->hash && strcmp(l->table[i].text, key->text) == 0))
        i = (i + 1) & (l->cap - 1);
    return &l->table[i];
}

static void grow(local *l)
{
    meeting *old = l->table;
    size_t n = l->cap;
    l->cap = n ? n * 2 : 64;
    l->table = leat_new_array(meeting, l->cap);
    for (size_t i = 0; i < n; i++)
        if (old[i].text)
            *find(l, &(leat_rendezvous_key){.text = old[i].text, .hash = old[i].hash}) = old[i];
    free(old);
}

static meeting *come(local *l, const leat_rendezvous_key *key)
{
    if (l->n * 2 >= l->cap)
        grow(l);
    meeting *m = find(l, key);
    if (!m->text) {
        m->owned = key->passing ? leat_xstrdup(key->text) : NULL;
        m->text = m->owned ? m->owned : key->text;
        m->hash = key->hash;
        l->n++;
    }
    return m;
}

/* Removes a meeting, so that memory does not grow with the iterations of a loop. Meetings that
 * follow in the table move up. */
static void forget(local *l, meeting *m)
{
    size_t mask = l->cap - 1, hole = (size_t)(m - l->table);
    free(m->owned);
    for (size_t i = (hole + 1) & mask; l->table[i].text; i = (i + 1) & mask) {
        size_t home = l->table[i].hash & mask;
        if (((i - home) & mask) < ((i - hole) & mask))
            continue; /* the place of its hash lies behind the hole */
        l->table[hole] = l->table[i];
        hole = i;
    }
    l->table[hole] = (meeting){0};
    l->n--;
}

static leat_status local_send(leat_rendezvous *r, const leat_rendezvous_key *key, leat_tensor *t,
                              bool dead)
{
    local *l = (local *)r;
    pthread_mutex_lock(&l->lock);
    leat_status s = leat_status_copy(l->aborted);
    meeting *m = s ? NULL : come(l, key);
    if (m && m->sent)
        s = leat_error(ABORTED, "Duplicated send: %s", key->text);
    if (s) {
        pthread_mutex_unlock(&l->lock);
        leat_tensor_unref(t);
        return s;
    }
    m->sent = true;
    leat_recv_fn fn = m->fn;
    void *arg = m->arg;
    if (!fn) {
        m->tensor = t;
        m->dead = dead;
    }
    m->met = fn != NULL;
    m->fn = NULL;
    if (fn && key->passing)
        forget(l, m);
    pthread_mutex_unlock(&l->lock);
    if (fn)
        fn(arg, NULL, t, dead);
    return NULL;
}

static void local_recv(leat_rendezvous *r, const leat_rendezvous_key *key, leat_recv_fn fn,
                       void *arg)
{
    local *l = (local *)r;
    leat_tensor *t = NULL;
    bool dead = false, now = true;
    pthread_mutex_lock(&l->lock);
    leat_status s = leat_status_copy(l->aborted);
    meeting *m = s ? NULL : come(l, key);
    if (m && (m->met || m->fn)) {
        s = leat_error(ABORTED, "Duplicated recv: %s", key->text);
    } else if (m && m->sent) {
        t = m->tensor;
        dead = m->dead;
        m->tensor = NULL;
        m->met = true;
        if (key->passing)
            forget(l, m);
    } else if (m) {
        m->fn = fn;
        m->arg = arg;
        now = false;
    }
    pthread_mutex_unlock(&l->lock);
    if (now)
        fn(arg, s, t, dead);
}

static void local_abort(leat_rendezvous *r, leat_status s)
{
    local *l = (local *)r;
    pthread_mutex_lock(&l->lock);
    if (!l->aborted)
        l->aborted = leat_status_copy(s);
    for (size_t i = 0; i < l->cap; i++) {
        meeting *m = &l->table[i];
        leat_recv_fn fn = m->fn;
        if (!fn)
            continue;
        m->fn = NULL;
        m->met = true;
        void *arg = m->arg;
        pthread_mutex_unlock(&l->lock); /* the table does not grow once aborted */
        fn(arg, leat_status_copy(s), NULL, false);
        pthread_mutex_lock(&l->lock);
    }
    pthread_mutex_unlock(&l->lock);
}

static void local_reset(leat_rendezvous *r)
{
    local *l = (local *)r;
    for (size_t i = 0; i < l->cap; i++) {
        leat_tensor_unref(l->table[i].tensor);
        free(l->table[i].owned);
    }
    if (l->n)
        memset(l->table, 0, sizeof(*l->table) * l->cap);
    l->n = 0;
    leat_status_free(l->aborted);
    l->aborted = NULL;
}

static void local_free(leat_rendezvous *r)
{
    local *l = (local *)r;
    local_reset(r);
    free(l->table);
    pthread_mutex_destroy(&l->lock);
    free(l);
}

static const leat_rendezvous_ops local_ops = {
    .send = local_send,
    .recv = local_recv,
    .abort = local_abort,
    .free = local_free,
    .reset = local_reset,
};

leat_rendezvous *leat_local_rendezvous_new(void)
{
    local *l = leat_new(local);
    l->base.ops = &local_ops;
    pthread_mutex_init(&l->lock, NULL);
    return &l->base;
}
