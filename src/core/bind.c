/* bind.c -- see bind.h. */
#define _GNU_SOURCE
#include "core/bind.h"

#include <sched.h>

static __thread cpu_set_t free_set; /* The CPUs of a bound thread before it was bound. */
static __thread int bound_to;       /* The CPU plus 1; 0: the thread is not bound. */

void leat_unbind(void)
{
    if (bound_to)
        sched_setaffinity(0, sizeof free_set, &free_set);
    bound_to = 0;
}

void leat_bind(int cpu)
{
    cpu_set_t one;
    if (bound_to == cpu + 1)
        return;
    if (!bound_to && sched_getaffinity(0, sizeof free_set, &free_set))
        return;
    if (cpu < 0 || cpu >= CPU_SETSIZE || !CPU_ISSET(cpu, &free_set))
        return;
    CPU_ZERO(&one);
    CPU_SET(cpu, &one);
    if (!sched_setaffinity(0, sizeof one, &one))
        bound_to = cpu + 1;
}
