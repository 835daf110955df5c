/* handshake.h -- how one side of shared memory greets the other. */
#ifndef LEAT_CLUSTER_SHM_HANDSHAKE_H
#define LEAT_CLUSTER_SHM_HANDSHAKE_H

#include <stdint.h>

#define LEAT_SHM_MAGIC 0x6c656174u
enum { LEAT_SHM_VERSION = 3, LEAT_SHM_ACCEPTED = 'w' };

/* The first message on the socket, with the memory's file beside it; the answer is one byte. */
typedef struct leat_shm_handshake {
    uint32_t magic, version;
    uint64_t secret;
} leat_shm_handshake;

#endif
