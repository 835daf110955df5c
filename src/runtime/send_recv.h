/* send_recv.h -- the two ends of an edge between devices, as kernels of any device use them. */
#ifndef LEAT_SEND_RECV_H
#define LEAT_SEND_RECV_H

#include "runtime/kernel_int.h"
#include "runtime/rendezvous.h"

#define LEAT_ON_HOST "_on_host" /* an attribute that copies.c gives to nodes */

/* The state of _Send and _Recv kernels. */
typedef struct leat_edge_state {
    char *text; /* the key's text outside of loops; ends with ";0:0" */
    leat_rendezvous_key key;
    bool on_host; /* _Recv: the tensor is wanted in the host's memory (copies.c) */
} leat_edge_state;

/* Whether the tensor comes in a message with others: see groups.h. */
bool leat_edge_grouped(const leat_node *n);
leat_status leat_edge_init(const leat_node *n, void *state);
void leat_edge_release(void *state);
leat_status leat_send_run(leat_kernel *k);
void leat_recv_run(leat_kernel *k);
/* Sends a dead value in this iteration of this frame. */
void leat_send_dead(const leat_bound *b, leat_step *step, uint64_t frame, int64_t iteration);

#endif
