/* threadpool_test.c -- jobs, loops from many threads and within each other, blocking jobs,
 * events. */
#include "core/threadpool.h"

#include <errno.h>
#include <pthread.h>
#include <stdatomic.h>
#include <unistd.h>

#include "core/spin.h"
#include "core/thread.h"
#include "test.h"

static void count_job(void *arg)
{
    atomic_fetch_add((atomic_int *)arg, 1);
}

static void submit(void)
{
    for (int n = 0; n <= 3; n++) {
        atomic_int count = 0;
        leat_pool *p = leat_pool_new(n, "test");
        CHECK_INT(leat_pool_size(p), n);
        for (int i = 0; i < 1000; i++)
            leat_pool_submit(p, count_job, &count);
        leat_pool_free(p);
        CHECK_INT(count, 1000);
    }
}

typedef struct tree {
    leat_pool *pool;
    int depth;
    atomic_int *leaves;
} tree;

static void tree_job(void *arg)
{
    tree *t = arg;
    if (t->depth == 0) {
        atomic_fetch_add(t->leaves, 1);
    } else {
        for (int i = 0; i < 2; i++) {
            tree *child = malloc(sizeof *child);
            *child = (tree){t->pool, t->depth - 1, t->leaves};
            if (t->depth % 3 == 0 && t->depth < 7)
                CHECK_INT(leat_pool_submit_blocking(t->pool, tree_job, child), 0);
            else
                leat_pool_submit(t->pool, tree_job, child);
        }
    }
    free(t);
}

/* Jobs that submit jobs, while the pool is already being freed. */
static void submit_from_jobs(void)
{
    atomic_int leaves = 0;
    leat_pool *p = leat_pool_new(2, "test");
    tree *root = malloc(sizeof *root);
    *root = (tree){p, 8, &leaves};
    leat_pool_submit(p, tree_job, root);
    leat_pool_free(p);
    CHECK_INT(leaves, 256);
}

static void after_sleep(void)
{
    leat_pool *p = leat_pool_new(2, "test");
    atomic_int count = 0;
    for (int i = 1; i <= 5; i++) {
        usleep(2000); /* long enough for the workers to fall asleep */
        leat_pool_submit(p, count_job, &count);
        for (int k = 0; k < 5000 && count < i; k++)
            usleep(100);
        CHECK_INT(count, i);
    }
    leat_pool_free(p);
}

enum { UNITS = 10000 };

static void mark(void *arg, int64_t begin, int64_t end)
{
    atomic_uchar *seen = arg;
    for (int64_t i = begin; i < end; i++)
        atomic_fetch_add_explicit(&seen[i], 1, memory_order_relaxed);
}

static int64_t not_once(const atomic_uchar *seen, int64_t n)
{
    int64_t bad = 0;
    for (int64_t i = 0; i < n; i++)
        bad += seen[i] != 1;
    return bad;
}

static void loop_covers(void)
{
    static const int64_t sizes[] = {0, 1, 2, 3, 7, 63, 64, 65, 1000, UNITS};
    static const double costs[] = {0, 1, 50, 5000, 1e9, -1, NAN};
    static atomic_uchar seen[UNITS];
    leat_pool *pools[] = {NULL, leat_pool_new(0, "none"), leat_pool_new(1, "one"),
                          leat_pool_new(3, "three")};
    for (int k = 0; k < 4; k++) {
        for (size_t i = 0; i < sizeof sizes / sizeof sizes[0]; i++) {
            for (size_t c = 0; c < sizeof costs / sizeof costs[0]; c++) {
                memset(seen, 0, sizeof seen);
                leat_pool_for(pools[k], sizes[i], costs[c], mark, seen);
                CHECK_INT(not_once(seen, sizes[i]), 0);
                CHECK_INT(sizes[i] < UNITS && seen[sizes[i]] != 0, 0);
            }
        }
        leat_pool_free(pools[k]);
    }
}

static bool after_three(void *arg)
{
    return atomic_fetch_add((atomic_int *)arg, 1) >= 3;
}

/* What is left of a loop is skipped once its stop says so. */
static void loop_stops(void)
{
    static atomic_uchar seen[UNITS];
    leat_pool *pools[] = {NULL, leat_pool_new(3, "three")};
    for (int k = 0; k < 2; k++) {
        atomic_int asked = 0;
        memset(seen, 0, sizeof seen);
        leat_pool_for_until(pools[k], UNITS, 1e6, mark, seen,
                            &(leat_loop_stop){after_three, &asked});
        int64_t done = UNITS - not_once(seen, UNITS);
        CHECK(done > 0 && done <= 3 * 2); /* slices of 2 ms: two units each */
        leat_pool_for_until(pools[k], UNITS, 1e6, mark, seen, NULL);
        CHECK_INT(not_once(seen, UNITS), done);
        leat_pool_free(pools[k]);
    }
}

typedef struct nest {
    leat_pool *pool;
    atomic_long sum;
    int depth;
} nest;

static void nest_loop(void *arg, int64_t begin, int64_t end)
{
    nest *outer = arg;
    for (int64_t i = begin; i < end; i++) {
        if (outer->depth == 0) {
            atomic_fetch_add(&outer->sum, 1);
            continue;
        }
        nest inner = {.pool = outer->pool, .depth = outer->depth - 1};
        leat_pool_for(outer->pool, 7, 1e5, nest_loop, &inner);
        atomic_fetch_add(&outer->sum, inner.sum);
    }
}

static void loops_nest(void)
{
    nest n = {.pool = leat_pool_new(3, "nest"), .depth = 4};
    leat_pool_for(n.pool, 7, 1e5, nest_loop, &n);
    CHECK_INT(n.sum, 7 * 7 * 7 * 7 * 7);
    leat_pool_free(n.pool);
}

static void *loops_thread(void *arg)
{
    leat_pool *p = arg;
    atomic_uchar *seen = calloc(512, 1);
    intptr_t bad = 0;
    for (int k = 0; k < 200; k++) {
        memset(seen, 0, 512);
        leat_pool_for(p, 512, k % 3 ? 100 : 1000, mark, seen);
        bad += not_once(seen, 512);
        if (k % 50 == 0)
            usleep(500);
    }
    free(seen);
    return (void *)bad;
}

/* More callers than there are places for loops: some run alone. */
static void loops_concurrent(void)
{
    enum { THREADS = 20 };
    pthread_t thread[THREADS];
    leat_pool *p = leat_pool_new(2, "test");
    for (int i = 0; i < THREADS; i++)
        pthread_create(&thread[i], NULL, loops_thread, p);
    for (int i = 0; i < THREADS; i++) {
        void *bad;
        pthread_join(thread[i], &bad);
        CHECK_INT((intptr_t)bad, 0);
    }
    leat_pool_free(p);
}

typedef struct gate {
    leat_event in, out;
} gate;

static void gate_job(void *arg)
{
    gate *g = arg;
    leat_event_set(&g->in);
    leat_event_wait(&g->out, 0);
}

/* Twenty jobs that wait, all at once; ordinary jobs and loops go on meanwhile. */
static void blocking(void)
{
    enum { GATES = 20 };
    gate g[GATES] = {0};
    atomic_int count = 0;
    leat_pool *p = leat_pool_new(1, "test");
    for (int i = 0; i < GATES; i++)
        CHECK_INT(leat_pool_submit_blocking(p, gate_job, &g[i]), 0);
    for (int i = 0; i < GATES; i++)
        CHECK(leat_event_wait(&g[i].in, leat_now_ns() + 10000000000));
    leat_pool_submit(p, count_job, &count);
    for (int k = 0; k < 5000 && count == 0; k++)
        usleep(100);
    CHECK_INT(count, 1);
    for (int i = 0; i < GATES; i++)
        leat_event_set(&g[i].out);
    leat_pool_free(p);
}

/* Without a thread to be had, a job that may block runs in a thread that is idle, or is refused. */
static void blocking_refused(void)
{
    gate g[2] = {0};
    leat_pool *p = leat_pool_new(0, "test");
    __atomic_store_n(&leat_threads_refused, 1, __ATOMIC_SEQ_CST);
    CHECK_INT(leat_pool_submit_blocking(p, gate_job, &g[0]), EAGAIN);
    __atomic_store_n(&leat_threads_refused, 0, __ATOMIC_SEQ_CST);
    leat_event_set(&g[0].out);
    CHECK_INT(leat_pool_submit_blocking(p, gate_job, &g[0]), 0);
    CHECK(leat_event_wait(&g[0].in, leat_now_ns() + 10000000000));
    __atomic_store_n(&leat_threads_refused, 1, __ATOMIC_SEQ_CST);
    int e = EAGAIN;
    for (int k = 0; k < 5000 && e; k++) { /* until the thread is idle */
        e = leat_pool_submit_blocking(p, gate_job, &g[1]);
        usleep(100);
    }
    CHECK_INT(e, 0);
    CHECK(leat_event_wait(&g[1].in, leat_now_ns() + 10000000000));
    CHECK_INT(leat_pool_submit_blocking(p, gate_job, &g[0]), EAGAIN); /* It is not idle. */
    __atomic_store_n(&leat_threads_refused, 0, __ATOMIC_SEQ_CST);
    leat_event_set(&g[1].out);
    leat_pool_free(p);
}

static void *set_later(void *arg)
{
    usleep(3000);
    leat_event_set(arg);
    return NULL;
}

static void event(void)
{
    leat_event e;
    leat_event_init(&e);
    int64_t start = leat_now_ns();
    CHECK(!leat_event_wait(&e, start + 2000000));
    CHECK(leat_now_ns() - start >= 2000000);
    CHECK(!leat_event_wait(&e, 1)); /* long past */
    CHECK(!leat_pool_park(NULL, &e, 1));
    pthread_t t;
    pthread_create(&t, NULL, set_later, &e);
    CHECK(leat_event_wait(&e, 0));
    CHECK(leat_event_wait(&e, 1)); /* stays set */
    CHECK(leat_pool_park(NULL, &e, 1));
    pthread_join(t, NULL);
    leat_event_init(&e);
    leat_event_set(&e);
    CHECK(leat_event_wait(&e, 0));
}

/* Spins within a spin, until one may not: that one looks only once. */
static int nested_spins;
static bool spin_within(void *looks)
{
    int within = 0;
    if (++*(int *)looks == 1)
        return false;
    nested_spins++;
    leat_spin(INT64_C(1000000000), spin_within, &within);
    return true;
}

/* No more threads than there are CPUs may spin, none on a single one. */
static void spin_budget(void)
{
    int looks = 0;
    leat_spin(INT64_C(1000000000), spin_within, &looks);
    CHECK_INT(nested_spins, leat_cpu_count() > 1 ? leat_cpu_count() : 0);
    nested_spins = looks = 0; /* and all have ended */
    leat_spin(INT64_C(1000000000), spin_within, &looks);
    CHECK_INT(nested_spins, leat_cpu_count() > 1 ? leat_cpu_count() : 0);
}

static bool look_slowly(void *looks)
{
    ++*(int *)looks;
    usleep(1000);
    return false;
}

/* Whose spins end late, time and again, parks without them for a while. */
static void spin_crowded(void)
{
    leat_spinner s = {0};
    int looks = 0;
    if (leat_cpu_count() == 1)
        return;
    for (int i = 0; i < 3; i++) {
        CHECK(!leat_spin_crowded(&s));
        CHECK(!leat_spin_for_peer(&s, look_slowly, &looks));
    }
    CHECK(leat_spin_crowded(&s));
    looks = 0;
    CHECK(!leat_spin_for_peer(&s, look_slowly, &looks));
    CHECK_INT(looks, 1);
    s.crowded_ns -= INT64_C(1000000000);
    CHECK(!leat_spin_crowded(&s));
}

int main(int argc, char **argv)
{
    return RUN(argc, argv, {"submit", submit}, {"submit_from_jobs", submit_from_jobs},
               {"after_sleep", after_sleep}, {"loop_covers", loop_covers},
               {"loop_stops", loop_stops}, {"loops_nest", loops_nest},
               {"loops_concurrent", loops_concurrent}, {"blocking", blocking},
               {"blocking_refused", blocking_refused}, {"event", event},
               {"spin_budget", spin_budget}, {"spin_crowded", spin_crowded});
}
