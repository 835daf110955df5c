/* openssl.h -- OpenSSL, loaded when TLS is first used: see core/library.h. gRPC's library loads
 * the same OpenSSL into the process.
 *
 * Files of this folder include this header instead of OpenSSL's own. Where it is included, the
 * names of OpenSSL's functions are macros (openssl_names.h, made from openssl.inc) that call
 * through leat_openssl. A function that openssl.inc lacks is an error of the linker.
 */
#ifndef LEAT_CLUSTER_SOCKET_OPENSSL_H
#define LEAT_CLUSTER_SOCKET_OPENSSL_H

#include <leat/status.h>
#include <openssl/err.h>
#include <openssl/ssl.h>
#include <openssl/x509v3.h>

typedef struct leat_openssl_functions {
#define X(name) __typeof__(name) *name;
#include "cluster/socket/openssl.inc"
#undef X
} leat_openssl_functions;

/* The pointers are all NULL until leat_openssl_load succeeds, and do not change afterwards. */
extern leat_openssl_functions leat_openssl;

/* The first call loads OpenSSL; later calls give the same result. Must have succeeded before any
 * function of OpenSSL is called. NOT_FOUND: OpenSSL cannot be loaded. */
leat_status leat_openssl_load(void) LEAT_MUST_CHECK;

#include "openssl_names.h"

#endif
