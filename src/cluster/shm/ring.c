/* ring.c -- see ring.h. */
#define _GNU_SOURCE
#include "cluster/shm/ring.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <linux/futex.h>
#include <sched.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

enum { HEADER = 4096, MAP_BYTES = HEADER + 2 * LEAT_RING_BYTES };
_Static_assert(2 * sizeof(leat_ring_shared) <= HEADER, "both fit in front of the rings");

static leat_status map_rings(leat_ring_pair *p, int fd, bool maker)
{
    uint8_t *m = mmap(NULL, MAP_BYTES, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
    LEAT_REQUIRE(m != MAP_FAILED, RESOURCE_EXHAUSTED, "Cannot map shared memory: %s",
                 strerror(errno));
    leat_ring_shared *shared = (leat_ring_shared *)m;
    leat_ring ring[2];
    for (int i = 0; i < 2; i++)
        ring[i] =
            (leat_ring){.shared = &shared[i], .data = m + HEADER + (size_t)i * LEAT_RING_BYTES};
    *p = (leat_ring_pair){m, ring[!maker], ring[maker]};
    return NULL;
}

leat_status leat_rings_make(leat_ring_pair *p, int *fd_out)
{
    int fd = memfd_create("leat", MFD_CLOEXEC | MFD_ALLOW_SEALING);
    LEAT_REQUIRE(fd >= 0, RESOURCE_EXHAUSTED, "Cannot make shared memory: %s", strerror(errno));
    leat_status s = NULL;
    /* The size is sealed: a process that accesses memory which its peer has truncated gets
     * SIGBUS. */
    if (ftruncate(fd, MAP_BYTES) ||
        fcntl(fd, F_ADD_SEALS, F_SEAL_SHRINK | F_SEAL_GROW | F_SEAL_SEAL))
        s = leat_error(RESOURCE_EXHAUSTED, "Cannot make shared memory: %s", strerror(errno));
    else
        s = map_rings(p, fd, true);
    if (s)
        close(fd);
    else
        *fd_out = fd;
    return s;
}

leat_status leat_rings_take(leat_ring_pair *p, int fd)
{
    struct stat st;
    int seals = fcntl(fd, F_GET_SEALS);
    leat_status s;
    if (seals < 0 || !(seals & F_SEAL_SHRINK) || fstat(fd, &st) || st.st_size != MAP_BYTES)
        s = leat_error(INVALID_ARGUMENT, "What was sent is not shared memory for rings");
    else
        s = map_rings(p, fd, false);
    close(fd);
    return s;
}

void leat_rings_release(leat_ring_pair *p)
{
    if (p->map)
        munmap(p->map, MAP_BYTES);
    *p = (leat_ring_pair){0};
}

int64_t leat_ring_room(const leat_ring *r)
{
    uint64_t used = r->at - __atomic_load_n(&r->shared->tail, __ATOMIC_SEQ_CST);
    return used > LEAT_RING_BYTES ? -1 : (int64_t)(LEAT_RING_BYTES - used);
}

int64_t leat_ring_ready(const leat_ring *r)
{
    uint64_t n = __atomic_load_n(&r->shared->head, __ATOMIC_SEQ_CST) - r->at;
    return n > LEAT_RING_BYTES ? -1 : (int64_t)n;
}

bool leat_ring_unread(const leat_ring *r)
{
    return __atomic_load_n(&r->shared->head, __ATOMIC_ACQUIRE) !=
           __atomic_load_n(&r->shared->tail, __ATOMIC_ACQUIRE);
}

void leat_ring_put(leat_ring *r, const void *bytes, uint64_t n)
{
    uint64_t at = r->at % LEAT_RING_BYTES, first = LEAT_RING_BYTES - at;
    first = n < first ? n : first;
    memcpy(r->data + at, bytes, first);
    if (n > first)
        memcpy(r->data, (const uint8_t *)bytes + first, n - first);
    r->at += n;
}

void leat_ring_get(leat_ring *r, void *to, uint64_t n)
{
    uint64_t at = r->at % LEAT_RING_BYTES, first = LEAT_RING_BYTES - at;
    first = n < first ? n : first;
    memcpy(to, r->data + at, first);
    if (n > first)
        memcpy((uint8_t *)to + first, r->data, n - first);
    r->at += n;
}

static void wake(uint32_t *word)
{
    if (__atomic_load_n(word, __ATOMIC_SEQ_CST) && __atomic_exchange_n(word, 0, __ATOMIC_SEQ_CST))
        syscall(SYS_futex, word, FUTEX_WAKE, INT_MAX, NULL, NULL, 0);
}

/* The writer stores head and then loads naps; the reader stores naps and then loads head
 * (leat_ring_await).
 * Each needs a full fence in between, so that the writer sees that the reader is about to park, or
 * the reader sees the new head. The same holds for tail and waits. Stores and loads are all
 * SEQ_CST: on ARM an acquire load (LDAPR) may be done before a store that precedes it. */
void leat_ring_show_written(leat_ring *r)
{
    __atomic_store_n(&r->shared->cpu, (uint32_t)sched_getcpu() + 1, __ATOMIC_RELAXED);
    __atomic_store_n(&r->shared->head, r->at, __ATOMIC_SEQ_CST);
}

void leat_ring_tell_read(leat_ring *r)
{
    __atomic_store_n(&r->shared->tail, r->at, __ATOMIC_SEQ_CST);
    wake(&r->shared->waits);
}

int leat_ring_cpu(const leat_ring *r)
{
    return (int)__atomic_load_n(&r->shared->cpu, __ATOMIC_RELAXED) - 1;
}

typedef struct ring_wait {
    const leat_ring *ring;
    bool reader;
    const uint32_t *stop;
} ring_wait;

static bool over(void *arg)
{
    const ring_wait *w = arg;
    return (w->reader ? leat_ring_ready(w->ring) : leat_ring_room(w->ring)) != 0 ||
           __atomic_load_n(w->stop, __ATOMIC_SEQ_CST);
}

void leat_ring_await(leat_ring *r, bool reader, const uint32_t *stop)
{
    ring_wait w = {r, reader, stop};
    uint32_t *word = reader ? &r->shared->naps : &r->shared->waits;
    if (leat_spin_for_peer(&r->spinner, over, &w))
        return;
    __atomic_store_n(word, 1, __ATOMIC_SEQ_CST);
    if (!over(&w))
        syscall(SYS_futex, word, FUTEX_WAIT, 1, NULL, NULL, 0);
    __atomic_store_n(word, 0, __ATOMIC_SEQ_CST);
}

uint32_t *leat_ring_nap(leat_ring *r)
{
    __atomic_store_n(&r->shared->naps, 1, __ATOMIC_SEQ_CST);
    return &r->shared->naps;
}

void leat_ring_awake(leat_ring *r)
{
    __atomic_store_n(&r->shared->naps, 0, __ATOMIC_SEQ_CST);
}

void leat_ring_wake_reader(leat_ring *r)
{
    wake(&r->shared->naps);
}

void leat_ring_wake_writer(leat_ring *r)
{
    wake(&r->shared->waits);
}
