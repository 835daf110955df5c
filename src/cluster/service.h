/* service.h -- TensorFlow's MasterService: sessions that clients open over the wire. */
#ifndef LEAT_CLUSTER_SERVICE_H
#define LEAT_CLUSTER_SERVICE_H

#include "cluster/connections.h"
#include "cluster/master.h"

typedef struct leat_service leat_service;

/* Borrows w and peers. max_sessions: 0 for the default. */
leat_service *leat_service_new(leat_worker *w, leat_peers *peers, int max_sessions);
/* Sets the port that clients connect to, by which their connections are found. */
void leat_service_use_port(leat_service *s, int port);
void leat_service_free(leat_service *s); /* closes all sessions */
int leat_service_sessions(leat_service *s);
/* True if a client has a session, or opens one, or has used one in the last five seconds: a client
 * whose session failed makes a new one. */
bool leat_service_in_use(leat_service *s);
/* service_idle.c: closes the sessions that had no call for idle_ns and whose clients' connections,
 * to be looked for in `open`, are closed for as long. */
void leat_service_expire(leat_service *s, const leat_connections *open, int64_t idle_ns);
/* Ends the CreateSession calls that wait for other tasks, and those to come, with UNAVAILABLE. */
void leat_service_stop_opening(leat_service *s);
/* The server stops: ends the steps under way with UNAVAILABLE, and closes all sessions. */
void leat_service_stop(leat_service *s);
/* service_hold.c: a task is about to end: tells the clients that hold it. */
void leat_service_tell_ending(leat_service *s);
/* True if the method is one of MasterService; the reply is then sent, maybe after the return. */
bool leat_service_serve(leat_service *s, leat_server_call *a, const char *method,
                        const leat_incoming *in);
/* True for all methods of MasterService: steps, and opening a session, wait for other tasks. */
bool leat_service_may_block(const char *method);
/* Makes a handle for a session, 16 hexadecimal digits of a hash of time, process and count. */
void leat_handle_make(char out[24]);

#endif
