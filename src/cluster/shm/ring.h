/* ring.h -- bytes from one process to another through memory that both see.
 *
 * 1. One process writes, the other one reads. Each keeps its own position in private memory
 *    (leat_ring.at), and publishes it in the shared memory (head, tail). The position that the peer
 *    publishes is checked: a wrong one ends the connection, and never leads outside of the ring.
 * 2. The reader copies bytes out before it looks at them, so that the peer cannot change them
 *    meanwhile.
 * 3. A thread that waits spins (core/spin.h), then parks on a futex in the shared memory; the peer
 *    wakes it only if it has parked.
 */
#ifndef LEAT_CLUSTER_SHM_RING_H
#define LEAT_CLUSTER_SHM_RING_H

#include <leat/status.h>
#include <stdbool.h>

#include "core/spin.h"

/* The part of a ring in shared memory besides its bytes. Each side's fields have a cache line of
 * their own. All are atomic. */
typedef struct leat_ring_shared {
    _Alignas(64) uint64_t head;  /* Bytes written since the ring was made. */
    uint32_t cpu;                /* The CPU on which the writer last set head, plus 1. */
    _Alignas(64) uint64_t tail;  /* Bytes read since the ring was made. */
    _Alignas(64) uint32_t naps;  /* A futex: 1 while the reader is parked. */
    _Alignas(64) uint32_t waits; /* A futex: 1 while the writer is parked. */
} leat_ring_shared;

/* One process's end of a ring: that of the writer or that of the reader. */
typedef struct leat_ring {
    leat_ring_shared *shared;
    uint8_t *data;
    uint64_t at; /* Bytes written or read by this end; head or tail, perhaps not published yet. */
    leat_spinner spinner; /* Of the thread that waits at this end. */
} leat_ring;

enum { LEAT_RING_BYTES = 4 << 20 };

/* Memory with two rings: this process writes to out and reads from in. */
typedef struct leat_ring_pair {
    void *map;
    leat_ring out, in;
} leat_ring_pair;
/* Makes the memory. *fd_out is a descriptor of it, to be sent to the peer and then closed. */
leat_status leat_rings_make(leat_ring_pair *p, int *fd_out) LEAT_MUST_CHECK;
/* Takes fd, which the peer sent. INVALID_ARGUMENT: it is not memory of leat_rings_make. */
leat_status leat_rings_take(leat_ring_pair *p, int fd) LEAT_MUST_CHECK;
void leat_rings_release(leat_ring_pair *p);

/* For the writer: bytes that fit now. -1: the peer has published a wrong position. */
int64_t leat_ring_room(const leat_ring *r);
/* For the reader: bytes that can be read now. -1: the peer has published a wrong position. */
int64_t leat_ring_ready(const leat_ring *r);
/* For threads that are not the reader: whether there are bytes to be read, by the published
 * positions. */
bool leat_ring_unread(const leat_ring *r);
/* Write and read n bytes, which must not be more than leat_ring_room and leat_ring_ready gave. The
 * peer does not notice before the position is published. */
void leat_ring_put(leat_ring *r, const void *bytes, uint64_t n);
void leat_ring_get(leat_ring *r, void *to, uint64_t n);
/* Publishes what was written. The caller has to call leat_ring_wake_reader afterwards. */
void leat_ring_show_written(leat_ring *r);
/* Publishes what was read, and wakes the writer. */
void leat_ring_tell_read(leat_ring *r);
/* Waits until there are bytes to read (reader) or there is room to write, or *stop is not 0; may
 * return early. A thread that sets *stop has to wake the reader or the writer. */
void leat_ring_await(leat_ring *r, bool reader, const uint32_t *stop);
/* The CPU on which the writer last published what it wrote; -1: unknown. */
int leat_ring_cpu(const leat_ring *r);
/* For a reader that is going to park at several rings at once. leat_ring_nap says that the reader
 * parks, and gives the futex, whose value is 1 until the reader is woken. After it the reader has
 * to check for bytes once more. leat_ring_awake says that the reader runs again. */
uint32_t *leat_ring_nap(leat_ring *r);
void leat_ring_awake(leat_ring *r);
/* Wake the parked reader or writer; do nothing if it is not parked. */
void leat_ring_wake_reader(leat_ring *r);
void leat_ring_wake_writer(leat_ring *r);

#endif
