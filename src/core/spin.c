/* spin.c -- see spin.h. */
#define _GNU_SOURCE
#include "core/spin.h"

#include <errno.h>
#include <linux/futex.h>
#include <sched.h>
#include <stdatomic.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

#include "core/later.h"
#include "core/threadpool.h"

enum {
    YIELD_NS = 1000, /* About the time of a sched_yield when no other thread wants the CPU. */
    LATE_NS = LEAT_SPIN_NS, /* A spin that ends so late took twice its time: another thread ran. */
    CROWDED_NS = 200 * 1000 * 1000, /* How long leat_spin_for_peer does not spin after CROWD. */
    /* Limits of leat_spinner.late, to which a late spin adds 2 and from which any other spin
     * takes 1. Three late spins in a row reach CROWD: other threads want the CPU. After that the
     * count is CROWD_STILL, so that a single late spin reaches CROWD again. */
    CROWD = 6,
    CROWD_STILL = 4,
};

static atomic_int spinners; /* Threads of the process that spin now. */

/* ---- Spinning ---- */
static void pause_cpu(void)
{
#if defined(__x86_64__) || defined(__i386__)
    __builtin_ia32_pause();
#elif defined(__aarch64__)
    __asm__ __volatile__("yield" ::: "memory");
#endif
}

static bool may_spin(void)
{
    int most = leat_cpu_count() > 1 ? leat_cpu_count() : 0;
    if (atomic_load_explicit(&spinners, memory_order_relaxed) >= most)
        return false;
    if (atomic_fetch_add_explicit(&spinners, 1, memory_order_relaxed) < most)
        return true;
    atomic_fetch_sub_explicit(&spinners, 1, memory_order_relaxed);
    return false;
}

/* *late_ns_out: how long after its planned end the spin ended; negative if it ended before. */
static bool spin(int64_t ns, bool (*over)(void *arg), void *arg, int64_t *late_ns_out)
{
    *late_ns_out = 0;
    bool now = over(arg);
    if (now || !may_spin())
        return now;
    int64_t at = leat_now_ns(), end = at + ns, yield = at + YIELD_NS;
    while (!(now = over(arg)) && at < end) {
        pause_cpu();
        at = leat_now_ns();
        if (at >= yield) {
            sched_yield();
            at = leat_now_ns();
            yield = at + YIELD_NS;
        }
    }
    atomic_fetch_sub_explicit(&spinners, 1, memory_order_relaxed);
    *late_ns_out = at - end;
    return now;
}

bool leat_spin(int64_t ns, bool (*over)(void *arg), void *arg)
{
    int64_t late_ns;
    return spin(ns, over, arg, &late_ns);
}

bool leat_spin_crowded(const leat_spinner *s)
{
    return s->crowded_ns && leat_now_ns() < s->crowded_ns + CROWDED_NS;
}

bool leat_spin_for_peer(leat_spinner *s, bool (*over)(void *arg), void *arg)
{
    if (leat_spin_crowded(s))
        return over(arg);
    int64_t late_ns;
    bool now = spin(LEAT_SPIN_NS, over, arg, &late_ns);
    if (late_ns <= LATE_NS) {
        s->late -= s->late > 0;
    } else if ((s->late += 2) >= CROWD) {
        s->late = CROWD_STILL;
        s->crowded_ns = leat_now_ns();
    }
    return now;
}

/* ---- Parking ---- */
bool leat_futex_wait(void *word, uint32_t value, int64_t deadline_ns)
{
    leat_later_now();
    struct timespec until = {deadline_ns / 1000000000, deadline_ns % 1000000000};
    /* The bitset form takes an absolute time. */
    long rc = syscall(SYS_futex, word, FUTEX_WAIT_BITSET_PRIVATE, value,
                      deadline_ns ? &until : NULL, NULL, FUTEX_BITSET_MATCH_ANY);
    return rc == 0 || errno != ETIMEDOUT;
}

void leat_futex_wake(void *word, int n)
{
    syscall(SYS_futex, word, FUTEX_WAKE_PRIVATE, n, NULL, NULL, 0);
}
