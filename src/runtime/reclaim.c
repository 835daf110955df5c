/* reclaim.c -- memory of devices that plans keep for their next steps, given back when an
 * allocation finds none. Memory of the host's is not: there the system decides what is too much. */
#include <pthread.h>

#include "runtime/plan_int.h"

/* Held while plans are added, removed or made to give back memory. Plans' own locks are taken under
 * it; it may be taken while a kernel runs. */
static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static leat_plan *plans; /* those with parts on such devices, linked by next_kept */

static bool uses(const leat_plan *p, const leat_allocator *a)
{
    for (int i = 0; i < p->n_parts; i++)
        if (p->parts[i].device->allocator == a)
            return true;
    return false;
}

bool leat_reclaim(leat_allocator *a)
{
    bool any = false;
    pthread_mutex_lock(&lock);
    for (leat_plan *p = plans; p; p = p->next_kept)
        if (uses(p, a))
            any |= leat_plan_steps_free(p);
    pthread_mutex_unlock(&lock);
    return any;
}

void leat_reclaim_from(leat_plan *p)
{
    bool own = false;
    for (int i = 0; i < p->n_parts; i++)
        own |= leat_device_memory(p->parts[i].device) != NULL;
    if (!own)
        return;
    pthread_mutex_lock(&lock);
    p->next_kept = plans;
    plans = p;
    pthread_mutex_unlock(&lock);
}

void leat_reclaim_no_more(leat_plan *p)
{
    pthread_mutex_lock(&lock);
    for (leat_plan **at = &plans; *at; at = &(*at)->next_kept)
        if (*at == p) {
            *at = p->next_kept;
            break;
        }
    pthread_mutex_unlock(&lock);
}
