/* shm_send.h -- what shm_conn.c and shm_send.c share. */
#ifndef LEAT_CLUSTER_SHM_SEND_H
#define LEAT_CLUSTER_SHM_SEND_H

#include "cluster/shm_conn.h"

typedef struct leat_unsent leat_unsent;

/* A thread of the connection, which ends with leat_conn_thread_ends. */
bool leat_conn_thread(leat_conn *c, void *(*fn)(void *conn));
void leat_conn_thread_ends(leat_conn *c);
void leat_conn_drop_unsent(leat_conn *c);

#endif
