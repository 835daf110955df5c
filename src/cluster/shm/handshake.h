/* handshake.h -- the handshake of two tasks that are going to use shared memory. */
#ifndef LEAT_CLUSTER_SHM_HANDSHAKE_H
#define LEAT_CLUSTER_SHM_HANDSHAKE_H

#include <stdint.h>

#define LEAT_SHM_MAGIC 0x6c656174u
enum { LEAT_SHM_VERSION = 3, LEAT_SHM_ACCEPTED = 'w' };

/* The first message on the socket. The descriptor of the shared memory is sent with it
 * (SCM_RIGHTS). The reply is the byte LEAT_SHM_ACCEPTED. */
typedef struct leat_shm_handshake {
    uint32_t magic, version;
    uint64_t secret;
} leat_shm_handshake;

#endif
