/* ring.h -- bytes from one process to another through memory that both see.
 *
 * 1. One process writes, the other reads; each keeps its own place for itself and only tells the
 *    other one of it. What the other one tells is checked: a ring can be filled with nonsense, but
 *    no index leads out of it.
 * 2. Bytes are copied out before they are looked at, so that they cannot change meanwhile.
 * 3. A process that waits spins (core/spin.h), then sleeps on a futex in the shared memory; the
 *    other one wakes it only if it sleeps.
 */
#ifndef LEAT_CLUSTER_SHM_RING_H
#define LEAT_CLUSTER_SHM_RING_H

#include <leat/status.h>
#include <stdbool.h>

#include "core/spin.h"

/* In shared memory, a cache line for each. */
typedef struct leat_ring_shared {
    _Alignas(64) uint64_t head;  /* bytes that were written, ever */
    uint32_t cpu;                /* on which the writer was then, plus 1 */
    _Alignas(64) uint64_t tail;  /* bytes that were read, ever */
    _Alignas(64) uint32_t naps;  /* futex: 1 while the reader sleeps */
    _Alignas(64) uint32_t waits; /* futex: 1 while the writer sleeps */
} leat_ring_shared;

/* One end, in one process. */
typedef struct leat_ring {
    leat_ring_shared *shared;
    uint8_t *data;
    uint64_t at; /* our place: head of a writer, tail of a reader; published now and then */
    leat_spinner spinner; /* of the one that waits at this end */
} leat_ring;

enum { LEAT_RING_BYTES = 4 << 20 };

/* Memory for two rings, ours to write and ours to read. */
typedef struct leat_ring_pair {
    void *map;
    leat_ring out, in;
} leat_ring_pair;
/* Makes the memory, and a file of it to be sent to the other. */
leat_status leat_rings_make(leat_ring_pair *p, int *fd_out) LEAT_MUST_CHECK;
/* Takes fd, which the other sent. INVALID_ARGUMENT if it is not what leat_rings_make makes. */
leat_status leat_rings_take(leat_ring_pair *p, int fd) LEAT_MUST_CHECK;
void leat_rings_release(leat_ring_pair *p);

/* Bytes that fit now, or are there now; -1 if the other tells nonsense. */
int64_t leat_ring_room(const leat_ring *r);
int64_t leat_ring_ready(const leat_ring *r);
bool leat_ring_unread(
    const leat_ring *r); /* the same by what was told, for who is not the reader */
/* n at most what fits, or is there. Nobody sees it before it is told. */
void leat_ring_put(leat_ring *r, const void *bytes, uint64_t n);
void leat_ring_get(leat_ring *r, void *to, uint64_t n);
/* By the writer, if nothing is left to be read: bytes up to the ring's end, 0 if it is at its
 * beginning. Who goes on there keeps using the same memory, which is in the caches. */
uint64_t leat_ring_to_end(const leat_ring *r);
void leat_ring_show_written(leat_ring *r); /* the reader is to be woken, too */
void leat_ring_tell_written(leat_ring *r); /* both */
void leat_ring_tell_read(leat_ring *r);
/* Returns when there is something to read, or room to write, or *stop is not 0 (wake it up with
 * leat_ring_wake then), or for no reason. */
void leat_ring_await_bytes(leat_ring *r, const uint32_t *stop);
void leat_ring_await_room(leat_ring *r, const uint32_t *stop);
int leat_ring_cpu(const leat_ring *r); /* on which the writer was; -1: unknown */
/* For a reader that sleeps at several rings: it is woken by a futex's wake at the word given, which
 * is 1 until then. After this it looks once more; awake again, it says so. */
uint32_t *leat_ring_nap(leat_ring *r);
void leat_ring_awake(leat_ring *r);
void leat_ring_wake_reader(leat_ring *r);
void leat_ring_wake_writer(leat_ring *r);

#endif
