/* gone.h -- calls a function when a server call's caller is lost, exactly once, and never after the
 * reply. */
#ifndef LEAT_CLUSTER_GONE_H
#define LEAT_CLUSTER_GONE_H

#include <pthread.h>
#include <stdbool.h>
#include <stdint.h>

typedef struct leat_gone {
    pthread_mutex_t lock; /* guards all of it; taken last, not held while fn runs */
    void (*fn)(void *arg);
    void *arg;
    bool gone; /* the caller is lost */
    bool replied;
    uint32_t running; /* 1 while fn runs; a futex */
    pthread_t runner; /* the thread that runs fn */
} leat_gone;

void leat_gone_init(leat_gone *g);
void leat_gone_release(leat_gone *g);
/* Sets the function. False if the caller is lost already: fn is not called then. */
bool leat_gone_watch(leat_gone *g, void (*fn)(void *arg), void *arg);
/* The caller is lost: calls before() and then fn, if there is one and no reply was made. */
void leat_gone_fire(leat_gone *g, void (*before)(void));
/* The handler replies: waits while fn runs, unless it is fn that replies. */
void leat_gone_reply(leat_gone *g);

#endif
