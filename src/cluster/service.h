/* service.h -- TensorFlow's MasterService: sessions that clients open over the wire. */
#ifndef LEAT_CLUSTER_SERVICE_H
#define LEAT_CLUSTER_SERVICE_H

#include "cluster/master.h"

typedef struct leat_service leat_service;

/* Borrows w and peers. */
leat_service *leat_service_new(leat_worker *w, leat_peers *peers, int max_sessions);
void leat_service_free(leat_service *s); /* closes all sessions */
int leat_service_sessions(leat_service *s);
/* Steps under way end with CANCELLED; sessions are closed. */
void leat_service_close_all(leat_service *s);
/* True if the method is one of its own; it is then answered before this returns. */
bool leat_service_serve(leat_service *s, leat_asked *a, const char *method,
                        const leat_incoming *in);
/* "%016x" of 64 bits, as good as random: a session's name on all tasks. */
void leat_handle_make(char out[24]);

#endif
