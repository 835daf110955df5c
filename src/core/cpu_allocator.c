/* cpu_allocator.c -- the process's memory for tensors.
 *
 * Small sizes are blocks (block.h). Other sizes are rounded up to eighths of a power of two, and
 * freed memory is kept in a bounded cache for the next allocation of that size: a training step
 * allocates the same sizes again and again, and touching fresh pages costs far more than computing
 * on them. From 2 MB on, memory is mapped at the alignment of huge pages. */
#include <errno.h>
#include <pthread.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <sys/sysinfo.h>

#include "core/block.h"
#include "core/buffer.h"

enum { KEPT_MAX = 128 };
static const size_t map_from = 1 << 20, huge_page = 2 << 20;

/* Freed memory, oldest first. */
static struct {
    pthread_mutex_t lock; /* guards the other fields; no other lock is taken under it */
    int n;
    size_t bytes;
    struct {
        void *p;
        size_t size;
    } kept[KEPT_MAX];
} cache = {.lock = PTHREAD_MUTEX_INITIALIZER};

static pthread_once_t once = PTHREAD_ONCE_INIT;
static size_t machine_bytes; /* RAM and swap */
static size_t cache_bytes_max;

static void look_at_machine(void)
{
    struct sysinfo info;
    if (sysinfo(&info) == 0) {
        cache_bytes_max = (size_t)info.totalram * info.mem_unit / 8;
        machine_bytes = ((size_t)info.totalram + info.totalswap) * info.mem_unit;
    } else {
        machine_bytes = SIZE_MAX / 4;
    }
    if (cache_bytes_max > (size_t)1 << 30)
        cache_bytes_max = (size_t)1 << 30;
}

static size_t rounded(size_t size)
{
    int power = 63 - __builtin_clzl(size);
    size_t step = (size_t)1 << (power - 3);
    if (step < 4096)
        step = 4096;
    return (size + step - 1) & ~(step - 1);
}

static void *map(size_t size)
{
    size_t extra = size >= huge_page ? huge_page : 0;
    char *p = mmap(NULL, size + extra, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    if (p == MAP_FAILED)
        return NULL;
    if (extra) {
        size_t before = (huge_page - (uintptr_t)p % huge_page) % huge_page;
        if (before)
            munmap(p, before);
        if (extra > before)
            munmap(p + before + size, extra - before);
        p += before;
        madvise(p, size, MADV_HUGEPAGE);
    }
    return p;
}

static void *fresh(size_t size)
{
    if (size >= map_from && !LEAT_ASAN)
        return map(size);
    void *p = NULL;
    return posix_memalign(&p, LEAT_ALIGN, size) == 0 ? p : NULL;
}

static void give_back(void *p, size_t size)
{
    if (size >= map_from && !LEAT_ASAN)
        munmap(p, size);
    else
        free(p);
}

/* Removes entry i; the lock is held. */
static void *take(int i)
{
    void *p = cache.kept[i].p;
    cache.bytes -= cache.kept[i].size;
    cache.n--;
    for (; i < cache.n; i++)
        cache.kept[i] = cache.kept[i + 1];
    return p;
}

static void *cached(size_t size)
{
    void *p = NULL;
    pthread_mutex_lock(&cache.lock);
    for (int i = cache.n - 1; i >= 0 && !p; i--) {
        if (cache.kept[i].size == size)
            p = take(i);
    }
    pthread_mutex_unlock(&cache.lock);
    return p;
}

/* Frees the oldest entries until there are at most n and `bytes` bytes; the freeing is done without
 * the lock. */
static void shrink(int n, size_t bytes)
{
    for (;;) {
        void *p = NULL;
        size_t size = 0;
        pthread_mutex_lock(&cache.lock);
        if (cache.n > n || cache.bytes > bytes) {
            size = cache.kept[0].size;
            p = take(0);
        }
        pthread_mutex_unlock(&cache.lock);
        if (!p)
            return;
        give_back(p, size);
    }
}

static void *cpu_alloc(leat_allocator *a, size_t size)
{
    if (size <= LEAT_BLOCK_MAX)
        return leat_block_alloc(size ? size : 1);
    pthread_once(&once, look_at_machine);
    if (size > machine_bytes)
        return NULL;
    if (LEAT_ASAN)
        return fresh(size);
    size = rounded(size);
    void *p = cached(size);
    if (!p)
        p = fresh(size);
    if (!p) {
        shrink(0, 0);
        p = fresh(size);
    }
    return p;
}

static void cpu_free(leat_allocator *a, void *p, size_t size)
{
    if (size <= LEAT_BLOCK_MAX) {
        leat_block_free(p, size ? size : 1);
        return;
    }
    if (LEAT_ASAN) {
        give_back(p, size);
        return;
    }
    size = rounded(size);
    if (size > cache_bytes_max / 2) {
        give_back(p, size);
        return;
    }
    shrink(KEPT_MAX - 1, cache_bytes_max - size);
    pthread_mutex_lock(&cache.lock);
    if (cache.n < KEPT_MAX) {
        cache.kept[cache.n].p = p;
        cache.kept[cache.n++].size = size;
        cache.bytes += size;
        p = NULL;
    }
    pthread_mutex_unlock(&cache.lock);
    if (p)
        give_back(p, size);
}

leat_allocator leat_cpu_memory = {.name = "CPU", .alloc = cpu_alloc, .free = cpu_free};
