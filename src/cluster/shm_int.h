/* shm_int.h -- how one side of shared memory greets the other. */
#ifndef LEAT_CLUSTER_SHM_INT_H
#define LEAT_CLUSTER_SHM_INT_H

#include "cluster/shm.h"
#include "cluster/shm_conn.h"

#define LEAT_SHM_MAGIC 0x6c656174u
enum { LEAT_SHM_VERSION = 3, LEAT_SHM_WELCOME = 'w' };

/* The first message on the socket, with the memory's file beside it; the answer is one byte. */
typedef struct leat_shm_hello {
    uint32_t magic, version;
    uint64_t secret;
} leat_shm_hello;

#endif
