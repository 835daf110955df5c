/* race.h -- calls a function in a second thread at about the time at which a run ends.
 *
 *     race r;
 *     race_init(&r);
 *     for (int i = 0; i < rounds; i++) {
 *         race_start(&r, cancel, c);      // cancel(c) is called at a random time from now
 *         bool ended = run(...);          // true: the run ended before cancel was called
 *         race_await(&r, ended);          // adapts the time for the next rounds
 *     }
 *     race_release(&r);
 */
#ifndef LEAT_TEST_RACE_H
#define LEAT_TEST_RACE_H

#include <pthread.h>
#include <sched.h>
#include <stdatomic.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <time.h>

typedef struct race {
    pthread_t thread;
    atomic_int begun, over; /* number of the round; begun is -1 to end the thread */
    void (*fn)(void *arg);
    void *arg;
    int64_t start_ns;
    int64_t usual_ns; /* the function is called after about this time */
    int64_t fixed_ns; /* not 0: used instead of usual_ns */
    uint64_t random;
    /* Number of runs that ended before the function was called, and of runs that it ended. */
    int well, early;
} race;

static inline int64_t race_now(void)
{
    struct timespec t;
    clock_gettime(CLOCK_MONOTONIC, &t);
    return (int64_t)t.tv_sec * 1000000000 + t.tv_nsec;
}

static inline void *race_main(void *arg)
{
    race *r = arg;
    for (int round = 1;; round++) {
        int begun, spins = 0;
        while ((begun = atomic_load(&r->begun)) != round && begun != -1)
            if (++spins > 20000)
                sched_yield();
        if (begun == -1)
            return NULL;
        r->random = r->random * UINT64_C(6364136223846793005) + UINT64_C(1442695040888963407);
        int64_t usual = r->fixed_ns ? r->fixed_ns : r->usual_ns;
        /* From half of `usual` to one and a half times `usual` after the start. */
        int64_t at = r->start_ns + usual / 2 + (int64_t)((r->random >> 33) % (uint64_t)(usual + 1));
        while (race_now() < at)
            ;
        r->fn(r->arg);
        atomic_store(&r->over, round);
    }
}

static inline void race_init(race *r)
{
    *r = (race){.usual_ns = 20000, .random = 12345};
    pthread_create(&r->thread, NULL, race_main, r);
}

static inline void race_start(race *r, void (*fn)(void *arg), void *arg)
{
    r->fn = fn;
    r->arg = arg;
    r->start_ns = race_now();
    atomic_fetch_add(&r->begun, 1);
}

/* Waits until the function has returned. ended: whether the run ended before the function was
 * called; the time of the next call is adapted so that about half of the runs do. */
static inline void race_await(race *r, bool ended)
{
    while (atomic_load(&r->over) != atomic_load(&r->begun))
        sched_yield();
    r->well += ended;
    r->early += !ended;
    r->usual_ns += ended ? -(r->usual_ns / 16) : r->usual_ns / 16 + 100;
    if (r->usual_ns > 20000000)
        r->usual_ns = 20000000;
}

static inline void race_release(race *r)
{
    atomic_store(&r->begun, -1);
    pthread_join(r->thread, NULL);
    printf("%d runs ended by themselves, %d were ended\n", r->well, r->early);
}

/* The number of rounds: $LEAT_ROUNDS, or `usual`. */
static inline int race_rounds(int usual)
{
    const char *text = getenv("LEAT_ROUNDS");
    return text && atoi(text) > 0 ? atoi(text) : usual;
}

#endif
