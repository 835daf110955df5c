/* memory_test.c -- in steady state a training step allocates nothing: every way to get memory from
 * the C library is counted here. */
#include <limits.h>
#include <stdatomic.h>

#include "core/block.h"
#include "mlp.h"

/* The sanitizers have allocators of their own. */
#if LEAT_ASAN || defined(__SANITIZE_THREAD__)
#define COUNTS 0
#else
#define COUNTS 1
#endif

static atomic_int allocations;
static atomic_bool counting;

#if COUNTS
static void count(void)
{
    if (atomic_load(&counting))
        atomic_fetch_add(&allocations, 1);
}

/* glibc's own, so that they can be called before symbols are looked up. */
extern void *__libc_malloc(size_t n), *__libc_calloc(size_t n, size_t size);
extern void *__libc_realloc(void *p, size_t n), *__libc_memalign(size_t align, size_t n);

void *malloc(size_t n)
{
    count();
    return __libc_malloc(n);
}

void *calloc(size_t n, size_t size)
{
    count();
    return __libc_calloc(n, size);
}

void *realloc(void *p, size_t n)
{
    count();
    return __libc_realloc(p, n);
}

void *aligned_alloc(size_t align, size_t n)
{
    count();
    return __libc_memalign(align, n);
}

int posix_memalign(void **out, size_t align, size_t n)
{
    count();
    *out = __libc_memalign(align, n);
    return *out ? 0 : 12;
}
#endif

/* The threads' lists of free blocks fill up first. */
enum { BATCH = 100, IN = 784, HIDDEN = 100, OUT = 10, WARM = 500, STEPS = 20 };

/* Allocations of the best of some windows of STEPS steps: which thread frees what another made is
 * up to chance, until every thread has what it needs. */
static int steady(bool clip, int64_t batch, int threads)
{
    mlp m;
    leat_session *s;
    leat_tensor *x[2], *y[2];
    int fewest = INT_MAX, windows = threads > 1 ? 50 : 1;
    for (int i = 0; i < 2; i++)
        mlp_batch(BATCH, IN, OUT, &x[i], &y[i]);
    mlp_build(&m, clip, batch, IN, HIDDEN, OUT);
    CHECK_OK(leat_session_open(m.g, &s, .intra_op_threads = threads, .inter_op_threads = threads));
    CHECK_OK(leat_session_run(s, LEAT_NO_FEED, LEAT_NO_FETCH, LEAT_TARGET(m.init)));
    for (int i = 0; i < WARM + windows * STEPS && fewest; i++) {
        leat_tensor *t = NULL;
        if (i == WARM)
            atomic_store(&counting, true);
        if (i >= WARM && (i - WARM) % STEPS == 0)
            atomic_store(&allocations, 0);
        CHECK_OK(leat_session_run(s, LEAT_FEED({m.x, x[i % 2]}, {m.y, y[i % 2]}),
                                  LEAT_FETCH({m.loss, &t}), LEAT_TARGET(m.train)));
        leat_tensor_unref(t);
        int n = atomic_load(&allocations);
        if (i >= WARM && (i - WARM) % STEPS == STEPS - 1 && n < fewest)
            fewest = n;
    }
    atomic_store(&counting, false);
    leat_session_close(s);
    mlp_free(&m);
    for (int i = 0; i < 2; i++) {
        leat_tensor_unref(x[i]);
        leat_tensor_unref(y[i]);
    }
    return fewest;
}

static void one_thread(void)
{
    if (!COUNTS)
        SKIP("under AddressSanitizer every block comes from malloc");
    CHECK_INT(steady(false, -1, 1), 0);
    CHECK_INT(steady(false, BATCH, 1), 0);
    CHECK_INT(steady(true, -1, 1), 0);
}

static void threads(void)
{
    if (!COUNTS)
        SKIP("under AddressSanitizer every block comes from malloc");
    CHECK_INT(steady(false, -1, 2), 0);
    CHECK_INT(steady(true, -1, 2), 0);
}

int main(int argc, char **argv)
{
    return RUN(argc, argv, {"one_thread", one_thread}, {"threads", threads});
}
