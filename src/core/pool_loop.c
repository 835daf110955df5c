/* pool_loop.c -- leat_pool_for: the caller writes the description of its loop to a slot that
 * spinning workers read, and threads take pieces of the loop by decrementing `left`. The caller
 * takes pieces, too, and then waits only for the pieces that other threads have taken. The bounds
 * of the pieces depend on n, unit_ns and the pool's size alone. If no slot is free, the caller runs
 * the loop alone, not cut into pieces. */
#include "core/denormals.h"
#include "core/pool_int.h"
#include "core/spin.h"

static const double inline_ns = 10e3;     /* Loops shorter than this run in the caller. */
static const double piece_ns = 4e3;       /* No piece is shorter than this. */
static const int64_t wake_ns = 50 * 1000; /* For this much work, sleeping workers are woken. */
static const double slice_ns = 2e6;       /* The time between two calls of a loop's stop. */
/* No unit is taken to be shorter, not even one that has nothing to do, such as an empty row. */
static const double least_ns = 0.02;
enum { PIECES_A_THREAD = 4 };
static const unsigned waiting_bit = 1u << 31; /* In loop.unfinished: the caller is parked. */

static bool piece_take(loop *l, int32_t *piece)
{
    int left = atomic_load_explicit(&l->left, memory_order_relaxed);
    do {
        if (left <= 0)
            return false;
    } while (!atomic_compare_exchange_weak_explicit(&l->left, &left, left - 1, memory_order_acquire,
                                                    memory_order_relaxed));
    *piece = l->pieces - left;
    return true;
}

/* Calls fn on [begin, end), slice by slice, until stop returns true. */
static void slices_run(const loop *l, int64_t begin, int64_t end)
{
    if (!l->stop) {
        l->fn(l->arg, begin, end);
        return;
    }
    while (begin < end && !leat_loop_stopped(l->stop)) {
        const int64_t next = end - begin > l->slice ? begin + l->slice : end;
        l->fn(l->arg, begin, next);
        begin = next;
    }
}

/* Works on pieces until none is left; returns how many it did. */
static unsigned pieces_run(loop *l)
{
    unsigned done = 0;
    for (int32_t i; piece_take(l, &i); done++) {
        int64_t begin = i * l->chunk;
        int64_t end = l->n - begin > l->chunk ? begin + l->chunk : l->n;
        slices_run(l, begin, end);
    }
    return done;
}

bool leat_pool_loop_waiting(leat_pool *p)
{
    for (unsigned open = atomic_load(&p->open); open; open &= open - 1) {
        if (atomic_load_explicit(&p->loops[__builtin_ctz(open)].left, memory_order_relaxed) > 0)
            return true;
    }
    return false;
}

bool leat_pool_loop_help(leat_pool *p)
{
    const unsigned denormals = leat_denormals_off();
    bool helped = false;
    for (unsigned open = atomic_load(&p->open); open; open &= open - 1) {
        loop *l = &p->loops[__builtin_ctz(open)];
        unsigned done = pieces_run(l);
        if (done == 0)
            continue;
        helped = true;
        unsigned before = atomic_fetch_sub_explicit(&l->unfinished, done, memory_order_acq_rel);
        if (before - done == waiting_bit)
            leat_futex_wake(&l->unfinished, 1);
    }
    leat_denormals_restore(denormals);
    return helped;
}

static bool all_done(void *arg)
{
    const loop *l = arg;
    return !atomic_load_explicit(&l->unfinished, memory_order_acquire);
}

/* Waits for the pieces that other threads have taken. */
static void others_wait(loop *l)
{
    if (leat_spin(LEAT_SPIN_WORK_NS, all_done, l))
        return;
    unsigned unfinished = atomic_fetch_or(&l->unfinished, waiting_bit) | waiting_bit;
    while (unfinished != waiting_bit) {
        leat_futex_wait(&l->unfinished, unfinished, 0);
        unfinished = atomic_load_explicit(&l->unfinished, memory_order_acquire);
    }
}

static loop *loop_claim(leat_pool *p)
{
    for (int i = 0; i < LOOPS; i++) {
        bool free = false;
        if (!atomic_load_explicit(&p->loops[i].claimed, memory_order_relaxed) &&
            atomic_compare_exchange_strong_explicit(&p->loops[i].claimed, &free, true,
                                                    memory_order_acquire, memory_order_relaxed))
            return &p->loops[i];
    }
    return NULL;
}

/* A short loop is left to the spinning workers. But once loops that lacked workers add up to
 * wake_ns of work, sleeping workers are woken. */
static void sleepers_wake(leat_pool *p, int32_t pieces, double total_ns)
{
    int wanted = pieces - 1 - atomic_load(&p->spinners);
    if (wanted <= 0 || atomic_load(&p->sleepers) == 0)
        return;
    int64_t total = total_ns < (double)wake_ns ? (int64_t)total_ns : wake_ns;
    if (atomic_fetch_add_explicit(&p->lost_ns, total, memory_order_relaxed) + total < wake_ns)
        return;
    atomic_store_explicit(&p->lost_ns, 0, memory_order_relaxed);
    leat_pool_wake(p, wanted);
}

/* Returns how many units a piece has: a multiple of 16 where it has 64 or more, so that pieces
 * begin at vectors and cache lines. */
static int64_t chunk_size(const leat_pool *p, int64_t n, double total_ns)
{
    double most = (double)(p->size + 1) * PIECES_A_THREAD;
    double pieces = total_ns / piece_ns < most ? total_ns / piece_ns : most;
    if (pieces > 4096)
        pieces = 4096;
    int64_t chunk = pieces < (double)n ? (int64_t)((double)n / pieces) : 1;
    if (chunk >= 64)
        chunk = (chunk + 15) / 16 * 16;
    return chunk > 0 ? chunk : 1;
}

/* Returns how many units a slice has: a multiple of 16 where it has 64 or more, as with pieces. */
static int64_t slice_size(double unit_ns)
{
    const double units = slice_ns / (unit_ns > 0.001 ? unit_ns : 0.001);
    return units < 64 ? (units < 1 ? 1 : (int64_t)units) : (int64_t)units / 16 * 16;
}

void leat_pool_for(leat_pool *p, int64_t n, double unit_ns,
                   void (*fn)(void *arg, int64_t begin, int64_t end), void *arg)
{
    leat_pool_for_until(p, n, unit_ns, fn, arg, NULL);
}

void leat_pool_for_until(leat_pool *p, int64_t n, double unit_ns,
                         void (*fn)(void *arg, int64_t begin, int64_t end), void *arg,
                         const leat_loop_stop *stop)
{
    if (n <= 0)
        return;
    if (!(unit_ns >= least_ns))
        unit_ns = least_ns;
    double total_ns = (double)n * unit_ns;
    if (n == 1 || !(total_ns >= inline_ns)) {
        fn(arg, 0, n);
        return;
    }
    const int64_t slice = slice_size(unit_ns),
                  chunk = p && p->size ? chunk_size(p, n, total_ns) : n;
    loop *l = chunk < n ? loop_claim(p) : NULL;
    if (!l) {
        slices_run(&(loop){.fn = fn, .arg = arg, .slice = slice, .stop = stop}, 0, n);
        return;
    }
    int32_t pieces = (int32_t)((n - 1) / chunk + 1);
    l->fn = fn;
    l->arg = arg;
    l->n = n;
    l->chunk = chunk;
    l->slice = slice;
    l->stop = stop;
    l->pieces = pieces;
    atomic_store_explicit(&l->unfinished, (unsigned)pieces, memory_order_relaxed);
    atomic_store_explicit(&l->left, pieces, memory_order_release);
    unsigned bit = 1u << (l - p->loops);
    atomic_fetch_or(&p->open, bit);
    sleepers_wake(p, pieces, total_ns);
    unsigned mine = pieces_run(l);
    atomic_fetch_and_explicit(&p->open, ~bit, memory_order_relaxed);
    if (atomic_fetch_sub_explicit(&l->unfinished, mine, memory_order_acq_rel) != mine)
        others_wait(l);
    atomic_store_explicit(&l->claimed, false, memory_order_release);
}
