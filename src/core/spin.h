/* spin.h -- how Leat's threads wait: they spin for a while if a CPU is free for that, then park.
 *
 * 1. How long a thread spins. A result that another CPU computes already comes soon, so a thread
 *    spins for LEAT_SPIN_NS. A thread of a pool spins for LEAT_SPIN_WORK_NS, so that it need not be
 *    woken after each of the longer pauses between a step's parallel kernels.
 * 2. Which threads spin. No more threads of the process spin than it has CPUs, and none on a single
 *    CPU. A thread that waits for another process has a leat_spinner, by which it notices that
 *    other threads want its CPU; then the thread parks at once.
 * 3. A spinning thread yields its CPU every microsecond. On a busy machine Linux runs a woken
 *    thread on the CPU of its waker, so the thread that gets the CPU by the yield may be the very
 *    one that the spinning thread waits for.
 * 4. Which threads are woken. A thread that brings a result wakes the waiter only if the waiter has
 *    marked itself as parked, and delays the wake-up while it has more results to bring
 *    (core/later.h).
 */
#ifndef LEAT_CORE_SPIN_H
#define LEAT_CORE_SPIN_H

#include <stdbool.h>
#include <stdint.h>

enum {
    LEAT_SPIN_NS = 50 * 1000,       /* About the time to park and to be woken on an idle CPU. */
    LEAT_SPIN_WORK_NS = 150 * 1000, /* Longer than most pauses between parallel kernels. */
};

/* Calls over(arg) until it returns true or ns nanoseconds have passed, and returns its last result.
 * Calls it at least once, and only once if the thread may not spin (rule 2). */
bool leat_spin(int64_t ns, bool (*over)(void *arg), void *arg);

/* What a thread that waits for another process knows of its CPU; all 0 at first. */
typedef struct leat_spinner {
    int64_t crowded_ns; /* When other threads were last found to want the CPU; 0: never. */
    int late;           /* Grows with each spin that ended late, shrinks with each other spin. */
} leat_spinner;
/* The same as leat_spin for LEAT_SPIN_NS, for a thread that waits for another process. Does not
 * spin while leat_spin_crowded. */
bool leat_spin_for_peer(leat_spinner *s, bool (*over)(void *arg), void *arg);
/* Whether other threads wanted the CPU in the last 200 ms. */
bool leat_spin_crowded(const leat_spinner *s);

/* Parks while *word is value, at most until deadline_ns (CLOCK_MONOTONIC; 0: for ever). May return
 * early. Returns false if the deadline has passed. word is a 32-bit atomic that only this process
 * uses. */
bool leat_futex_wait(void *word, uint32_t value, int64_t deadline_ns);
void leat_futex_wake(void *word, int n); /* Wakes at most n threads that are parked on word. */

#endif
