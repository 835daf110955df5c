/* spin.h -- how Leat's threads wait: they spin for a while where a core is to spare, then park.
 *
 * 1. How long. What runs on another core already comes soon: a thread spins for LEAT_SPIN_NS for
 *    it. A pool's thread spins for LEAT_SPIN_WORK_NS, since the pauses between a step's parallel
 *    kernels, which are longer, should not cost a wake-up each.
 * 2. Whether at all. No more threads of the process spin than it has CPUs, and none on a single
 *    CPU. A thread that waits for another process has a leat_spinner, by which it notices that
 *    other threads want its CPU; then it parks at once.
 * 3. A spinning thread yields its CPU every microsecond: a busy machine runs a woken thread on the
 *    CPU of its waker, so the one that wants it may be the very one that is waited for.
 * 4. Whom to wake. Whoever brings what is waited for wakes a thread only if that one says that it
 *    parks, and puts that off while it has more to bring (core/later.h).
 */
#ifndef LEAT_CORE_SPIN_H
#define LEAT_CORE_SPIN_H

#include <stdbool.h>
#include <stdint.h>

enum {
    LEAT_SPIN_NS = 50 * 1000,       /* about what parking and being woken on an idle CPU take */
    LEAT_SPIN_WORK_NS = 150 * 1000, /* longer than most pauses between parallel kernels */
};

int leat_cpu_count(void); /* that this process may run on */
/* Threads of a session or server that is not told how many: LEAT_NUM_THREADS, or the CPUs. */
int leat_default_threads(void);

/* Calls over(arg) until it gives true or ns have passed, and gives what it gave last. Calls it at
 * least once; only once where the thread is not to spin. */
bool leat_spin(int64_t ns, bool (*over)(void *arg), void *arg);

/* The same for LEAT_SPIN_NS, by a thread that waits for another process; s is all 0 at first. */
typedef struct leat_spinner {
    int64_t crowded_ns; /* when it was found that others want the CPU; 0: never */
    int late;           /* how much speaks for that */
} leat_spinner;
bool leat_spin_for_peer(leat_spinner *s, bool (*over)(void *arg), void *arg);
bool leat_spin_crowded(const leat_spinner *s); /* others want the CPU */

/* Sleeps while *word is value, at most until deadline_ns (CLOCK_MONOTONIC; 0: for ever). May
 * return early. False if the deadline passed. word is a 32-bit atomic of this process. */
bool leat_futex_wait(void *word, uint32_t value, int64_t deadline_ns);
void leat_futex_wake(void *word, int n);

#endif
