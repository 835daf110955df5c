/* guard.h -- ends connections that flood a listener on gRPC.
 *
 * gRPC parses what a connection brings before it tells the listener of a call, and some of its
 * versions (1.51 among them) bound neither the memory nor the time that this takes: streams that
 * are reset as soon as they are opened, or headers that never end, need no token. gRPC's own
 * limits were tried and do not help. So a thread of this file looks at the sockets that gRPC has
 * accepted, a few milliseconds after bytes came, and disconnects a socket by three rules:
 *
 * 1. Until a call on the connection was accepted (its token was right, or none is needed) and its
 *    message has come as a whole, the connection may send LEAT_GUARD_FIRST bytes. When the polling
 *    thread has worked for OVER_NS more, for few bytes, and has not got to such a call, or after
 *    LEAT_GUARD_FIRST_AT_MOST bytes, the connection is ended. While an accepted call receives its
 *    message, there is no limit, since messages may be large.
 * 2. When the thread that polls gRPC has worked for SLOW_NS without coming back with an event, and
 *    all connections together have brought little in that time, something makes gRPC work hard for
 *    few bytes: the connection that has brought the most is ended. One on which a call has come
 *    as a whole has SLOW_KNOWN_NS, since a burst of legal calls takes long on a busy machine.
 *    SLOW_FLOODED_NS are enough if the process has grown by SLOW_MEMORY meanwhile.
 * 3. A connection on which more than UNFINISHED_MAX calls in a second were reset before their
 *    message came is ended.
 *
 * For some seconds after a connection was ended rules 1 and 2 are stricter
 * (LEAT_GUARD_FIRST_FLOODED bytes, SLOW_FLOODED_NS), because an attacker connects again at once.
 *
 * The sockets are known through gRPC's socket mutator (tuning.c). Where that cannot be used, no
 * connection is ended, and only the number of calls is limited.
 */
#ifndef LEAT_CLUSTER_GRPC_GUARD_H
#define LEAT_CLUSTER_GRPC_GUARD_H

#include <stdbool.h>
#include <stdint.h>

/* Bytes. */
enum {
    LEAT_GUARD_FIRST = 128 << 10,
    LEAT_GUARD_FIRST_FLOODED = 16 << 10,
    LEAT_GUARD_FIRST_AT_MOST = 32 << 20,
};

/* A listener begins, and ends. */
void leat_guard_open(void);
void leat_guard_close(void);
/* gRPC has accepted a connection for a listener. */
void leat_guard_accepted(int fd);
/* The polling thread begins to wait for gRPC's next event. */
void leat_guard_polls(void);

/* A call came from this peer (grpc_call_get_peer). Gives the connection's number for the functions
 * below, 0 if it is not known, and how many calls are under way on it, with this one. */
uint64_t leat_guard_call_begins(const char *peer, int *calls_out);
/* The call was accepted, and its message is received. */
void leat_guard_call_receives(uint64_t connection);
/* The message has come as a whole. */
void leat_guard_call_came(uint64_t connection);
/* A call is over. unfinished: it was accepted, and its message has not come as a whole. */
void leat_guard_call_ends(uint64_t connection, bool unfinished);

#endif
