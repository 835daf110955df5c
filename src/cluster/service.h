/* service.h -- TensorFlow's MasterService: sessions that clients open over the wire. */
#ifndef LEAT_CLUSTER_SERVICE_H
#define LEAT_CLUSTER_SERVICE_H

#include "cluster/master.h"

typedef struct leat_service leat_service;

/* Borrows w and peers. */
leat_service *leat_service_new(leat_worker *w, leat_peers *peers, int max_sessions);
void leat_service_free(leat_service *s); /* closes all sessions */
int leat_service_sessions(leat_service *s);
/* Cancels the steps under way, and closes all sessions. */
void leat_service_close_all(leat_service *s);
/* True if the method is one of MasterService; the reply is then sent before this returns. */
bool leat_service_serve(leat_service *s, leat_server_call *a, const char *method,
                        const leat_incoming *in);
/* Makes a handle for a session, 16 hexadecimal digits of a hash of time, process and count. */
void leat_handle_make(char out[24]);

#endif
