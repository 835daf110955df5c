/* rendezvous.h -- where the two ends of an edge between devices meet.
 *
 * 1. Each key is sent once and received once in a step, in either order.
 * 2. send never blocks. recv calls back exactly once: at once if the value is there, else from the
 *    sender's thread, or from abort's with an error.
 * 3. After abort everything fails with its status.
 */
#ifndef LEAT_RENDEZVOUS_H
#define LEAT_RENDEZVOUS_H

#include <leat/tensor.h>
#include <stdatomic.h>

typedef struct leat_rendezvous leat_rendezvous;

/* A parsed key, "send_device;incarnation;recv_device;name;frame:iteration"; lives with its plan. */
typedef struct leat_rendezvous_key {
    const char *text;
    uint64_t hash;
    bool grouped; /* a key of a group: see expect */
    bool passing; /* the key of one iteration of a loop, whose text is valid during the call only */
} leat_rendezvous_key;
leat_rendezvous_key leat_rendezvous_key_of(const char *text);

/* Tensors that another process sends together, because none of them waits for another one.
 * Reference-counted: a reply may come after the plan was freed. */
typedef struct leat_rendezvous_group {
    atomic_int refs;
    char *task;                /* one that the sender serves, "/job:ps/replica:0/task:0" */
    leat_rendezvous_key *keys; /* n of them; the group owns their texts */
    int n;
} leat_rendezvous_group;
void leat_rendezvous_group_unref(leat_rendezvous_group *g);

/* t is a reference that the callee takes; NULL with dead or an error. */
typedef void (*leat_recv_fn)(void *arg, leat_status s, leat_tensor *t, bool dead);

typedef struct leat_rendezvous_ops {
    leat_status (*send)(leat_rendezvous *r, const leat_rendezvous_key *key, leat_tensor *t,
                        bool dead);
    void (*recv)(leat_rendezvous *r, const leat_rendezvous_key *key, leat_recv_fn fn, void *arg);
    void (*abort)(leat_rendezvous *r, leat_status s); /* borrows s */
    void (*free)(leat_rendezvous *r);
    void (*reset)(leat_rendezvous *r); /* makes r ready for another step */
    /* Requests a group, before its keys are received one by one. NULL: all senders are in this
     * process. */
    void (*expect)(leat_rendezvous *r, leat_rendezvous_group *g);
} leat_rendezvous_ops;
struct leat_rendezvous {
    const leat_rendezvous_ops *ops;
};

leat_rendezvous *leat_local_rendezvous_new(void); /* between devices of this process */

#endif
