/* event.c -- one waiter, one event. After setting it, the setter does not touch its memory again
 * (waking an address is harmless), so the waiter may free it at once. */
#include <time.h>

#include "core/later.h"
#include "core/spin.h"
#include "core/threadpool.h"

enum { UNSET = 0, SET = 1, SLEEPING = 2 };

int64_t leat_now_ns(void)
{
    struct timespec t;
    clock_gettime(CLOCK_MONOTONIC, &t);
    return (int64_t)t.tv_sec * 1000000000 + t.tv_nsec;
}

void leat_event_init(leat_event *e)
{
    __atomic_store_n(&e->state, UNSET, __ATOMIC_RELAXED);
}

void leat_event_set(leat_event *e)
{
    if (__atomic_exchange_n(&e->state, SET, __ATOMIC_RELEASE) == SLEEPING)
        leat_futex_wake(&e->state, 1);
}

bool leat_event_is_set(const leat_event *e)
{
    return __atomic_load_n(&e->state, __ATOMIC_ACQUIRE) == SET;
}

static bool over(void *event)
{
    return leat_event_is_set(event);
}

int32_t leat_event_sleep(leat_event *e)
{
    int32_t unset = UNSET;
    return __atomic_compare_exchange_n(&e->state, &unset, SLEEPING, 0, __ATOMIC_ACQUIRE,
                                       __ATOMIC_ACQUIRE)
               ? SLEEPING
               : -1;
}

void leat_event_awake(leat_event *e)
{
    int32_t sleeping = SLEEPING;
    __atomic_compare_exchange_n(&e->state, &sleeping, UNSET, 0, __ATOMIC_ACQUIRE, __ATOMIC_ACQUIRE);
}

int leat_event_park(leat_event *e, int64_t deadline_ns)
{
    if (leat_event_sleep(e) < 0)
        return 1;
    while (!leat_event_is_set(e)) {
        if (leat_futex_wait(&e->state, SLEEPING, deadline_ns))
            continue;
        leat_event_awake(e);
        return leat_event_is_set(e);
    }
    return 1;
}

int leat_event_wait(leat_event *e, int64_t deadline_ns)
{
    if (leat_event_is_set(e))
        return 1;
    leat_later_now();
    return leat_spin(LEAT_SPIN_NS, over, e) || leat_event_park(e, deadline_ns);
}
