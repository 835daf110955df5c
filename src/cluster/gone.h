/* gone.h -- telling whoever works on a call that its caller went away, exactly once, and never
 * after the call was answered. */
#ifndef LEAT_CLUSTER_GONE_H
#define LEAT_CLUSTER_GONE_H

#include <pthread.h>
#include <stdbool.h>
#include <stdint.h>

typedef struct leat_gone {
    pthread_mutex_t lock; /* guards all of it; taken last, not held while fn runs */
    void (*fn)(void *arg);
    void *arg;
    bool gone, answered;
    uint32_t running; /* futex word: 1 while fn runs, */
    pthread_t runner; /* in this thread */
} leat_gone;

void leat_gone_init(leat_gone *g);
void leat_gone_release(leat_gone *g);
bool leat_gone_watch(leat_gone *g, void (*fn)(void *arg), void *arg); /* false: gone already */
/* The caller went away. before() is called if fn is going to run. */
void leat_gone_fire(leat_gone *g, void (*before)(void));
/* The call is answered: waits while fn runs, unless it is fn that answers. */
void leat_gone_answer(leat_gone *g);

#endif
