/* spin.h -- waiting: a short spin where a core is to spare for it, then a futex. */
#ifndef LEAT_CORE_SPIN_H
#define LEAT_CORE_SPIN_H

#include <stdbool.h>
#include <stdint.h>

/* At most as many threads as there are CPUs spin at a time, over all pools and events, none on a
 * single CPU: one that may not spin sleeps at once. (One less would put the worker to sleep that
 * ends a job while its caller spins.) Every true is followed by leat_spin_end. */
bool leat_spin_begin(void);
void leat_spin_end(void);
int leat_cpu_count(void); /* that this process may run on */
/* Threads of a session or server that is not told how many: LEAT_NUM_THREADS, or the CPUs. */
int leat_default_threads(void);

/* How long a thread spins for what another thread or process is to send, before it sleeps: a
 * little longer than it takes to sleep and to be woken on an idle CPU. */
enum { LEAT_SPIN_NS = 50 * 1000 };

static inline void leat_spin_pause(void)
{
#if defined(__x86_64__) || defined(__i386__)
    __builtin_ia32_pause();
#elif defined(__aarch64__)
    __asm__ __volatile__("yield" ::: "memory");
#endif
}

/* Between two looks of a spinning thread: lets somebody else have the CPU who wants it, perhaps the
 * very one that is waited for, because a busy machine runs a woken thread on the CPU of its waker.
 * False if end_ns (CLOCK_MONOTONIC) has passed. */
bool leat_spin_goes_on(int64_t end_ns);

/* Sleeps while *word is value, at most until deadline_ns (CLOCK_MONOTONIC; 0: for ever). May
 * return early. False if the deadline passed. word is a 32-bit atomic of this process. */
bool leat_futex_wait(void *word, uint32_t value, int64_t deadline_ns);
void leat_futex_wake(void *word, int n);

#endif
