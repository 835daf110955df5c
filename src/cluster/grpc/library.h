/* library.h -- gRPC's C core, loaded when a channel or a listener is first opened, so that programs
 * without a cluster neither need nor load it: loading gRPC takes most of the time in which a
 * program starts.
 *
 * Files of this folder include this header instead of gRPC's own. After it the names of gRPC's
 * functions are macros (grpc_names.h, made from library.inc) that call through leat_grpc. A
 * function that library.inc lacks is an error of the linker.
 */
#ifndef LEAT_CLUSTER_GRPC_LIBRARY_H
#define LEAT_CLUSTER_GRPC_LIBRARY_H

#include <grpc/byte_buffer_reader.h>
#include <grpc/grpc.h>
#include <grpc/grpc_security.h>
#include <grpc/support/alloc.h>
#include <grpc/support/log.h>

#include <leat/status.h>

typedef struct leat_grpc_functions {
#define X(name) __typeof__(name) *name;
#include "cluster/grpc/library.inc"
#undef X
} leat_grpc_functions;

/* All NULL until leat_grpc_load succeeds, constant from then on. */
extern leat_grpc_functions leat_grpc;

/* Loads gRPC with the first call; later calls give the same result. Must have succeeded before any
 * function of gRPC is called. The library is never unloaded. NOT_FOUND: this machine lacks it.
 * INVALID_ARGUMENT: gRPC would abort on the environment variable GRPC_POLL_STRATEGY. */
leat_status leat_grpc_load(void) LEAT_MUST_CHECK;

#include "grpc_names.h"

#endif
