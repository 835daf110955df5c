/* gone.c -- see gone.h. */
#include "cluster/gone.h"

#include "core/spin.h"

void leat_gone_init(leat_gone *g)
{
    *g = (leat_gone){0};
    pthread_mutex_init(&g->lock, NULL);
}

void leat_gone_release(leat_gone *g)
{
    pthread_mutex_destroy(&g->lock);
}

bool leat_gone_watch(leat_gone *g, void (*fn)(void *arg), void *arg)
{
    pthread_mutex_lock(&g->lock);
    bool here = !g->gone;
    if (here) {
        g->fn = fn;
        g->arg = arg;
    }
    pthread_mutex_unlock(&g->lock);
    return here;
}

void leat_gone_fire(leat_gone *g, void (*before)(void))
{
    pthread_mutex_lock(&g->lock);
    bool run = g->fn && !g->gone && !g->replied;
    g->gone = true;
    g->running = run;
    g->runner = pthread_self();
    pthread_mutex_unlock(&g->lock);
    if (!run)
        return;
    before();
    g->fn(g->arg);
    pthread_mutex_lock(&g->lock);
    g->running = 0;
    leat_futex_wake(&g->running, 1);
    pthread_mutex_unlock(&g->lock);
}

void leat_gone_reply(leat_gone *g)
{
    pthread_mutex_lock(&g->lock);
    g->replied = true;
    while (g->running && !pthread_equal(g->runner, pthread_self())) {
        pthread_mutex_unlock(&g->lock);
        leat_futex_wait(&g->running, 1, 0);
        pthread_mutex_lock(&g->lock);
    }
    pthread_mutex_unlock(&g->lock);
}
