/* pending.h -- the connections that a listener has accepted, but whose handshake is not complete.
 *
 * 1. Each costs a descriptor and an entry of a table. When the table is full, the oldest
 * connection, which has had the most time, is closed.
 * 2. A connection is closed when its handshake is not complete after some seconds.
 * 3. When descriptors have run out, nothing is accepted for a tenth of a second, the oldest
 *    connection makes room for another, and the log says so, at most once a second.
 *
 * One thread uses a table. */
#ifndef LEAT_CLUSTER_STREAM_PENDING_H
#define LEAT_CLUSTER_STREAM_PENDING_H

#include <stdbool.h>
#include <stdint.h>

enum { LEAT_PENDING_MAX = 64 };

typedef struct leat_pending {
    int socket;
    int64_t deadline_ns; /* When the connection is closed; set by leat_pending_add. */
    void *state;         /* Of the handshake, for the listener; may be NULL. */
} leat_pending;
typedef struct leat_pending_table {
    const char *what;                 /* How peers connect, in messages: "a socket". */
    void (*free_state)(void *state);  /* NULL: there is none. */
    leat_pending v[LEAT_PENDING_MAX]; /* The oldest connection first. */
    int n;
    int64_t accept_ns; /* Until this time no connections are accepted; 0: they are. */
    int64_t log_ns;    /* From this time on a failure is logged again. */
} leat_pending_table;

/* Adds the connection at the end of the table, and takes it. */
void leat_pending_add(leat_pending_table *t, int socket, void *state);
/* Removes entry i, and gives its connection. */
leat_pending leat_pending_take(leat_pending_table *t, int i);
void leat_pending_close(leat_pending_table *t, int i); /* Removes entry i, and closes it. */
void leat_pending_close_all(leat_pending_table *t);
/* accept has failed with errno e: see rule 3. */
void leat_pending_pause(leat_pending_table *t, int e);
/* Closes connections whose deadline has passed, and ends a pause that is over. Gives the time of
 * the next of these (CLOCK_MONOTONIC); 0: there is none. */
int64_t leat_pending_expire(leat_pending_table *t);
/* True, and false for a second afterwards: a failure may be logged now. */
bool leat_pending_may_log(leat_pending_table *t);

#endif
