/* parts.h -- messages of any size, as several messages of one call.
 *
 * gRPC's messages are limited to 2 GB, and a large one arrives as thousands of pieces, which are in
 * memory twice while they are joined. So between two Leat tasks a message of more than
 * leat_parts_from bytes is sent in parts; LEAT_PARTS in the call's metadata says so:
 * 1. First a head: how many segments there are, and the size of each. A tensor is one of its own.
 * 2. Then the bytes of all segments in order, in messages of leat_parts_bytes each; the last one
 *    may be shorter.
 *
 * The receiver copies each part to its place when it comes: a tensor's bytes to the tensor's
 * buffer. A caller shows by its user agent that it takes replies in parts. A listener shows by its
 * reply to a ping that it takes requests in parts.
 */
#ifndef LEAT_CLUSTER_GRPC_PARTS_H
#define LEAT_CLUSTER_GRPC_PARTS_H

#include "cluster/grpc/library.h"
#include "cluster/transport.h"

#define LEAT_PARTS "leat-parts"         /* the metadata's key */
#define LEAT_PARTS_AGENT "leat-parts/1" /* The start of a user agent; a reply to a ping. */
/* Tests change these. */
extern size_t leat_parts_from;  /* bytes: larger messages are sent in parts */
extern size_t leat_parts_bytes; /* bytes of a part */
extern int64_t leat_whole_max;  /* bytes of the largest single message: gRPC's limit */
extern bool leat_parts_known;   /* false: behave like a program that does not know parts */

bool leat_parts_in(const grpc_metadata_array *m);    /* The message of this call is in parts. */
bool leat_parts_taken(const grpc_metadata_array *m); /* The caller takes replies in parts. */
grpc_metadata leat_parts_mark(void);

/* ---- Sending ---- */
typedef struct leat_parts leat_parts;
leat_parts *leat_parts_new(leat_outgoing *o); /* takes what is in o */
void leat_parts_free(leat_parts *p);
grpc_byte_buffer *leat_parts_head(const leat_parts *p);
grpc_byte_buffer *leat_parts_next(leat_parts *p);
bool leat_parts_left(const leat_parts *p); /* leat_parts_next has another part */

/* ---- Receiving ---- */
typedef struct leat_gather leat_gather;
/* From a head. RESOURCE_EXHAUSTED beyond most bytes. */
leat_status leat_gather_new(grpc_byte_buffer *head, int64_t most,
                            leat_gather **out) LEAT_MUST_CHECK;
void leat_gather_free(leat_gather *g); /* buffers that tensors share stay */
leat_status leat_gather_add(leat_gather *g, grpc_byte_buffer *part) LEAT_MUST_CHECK;
size_t leat_gather_missing(const leat_gather *g); /* bytes that have not come */
/* When no byte is missing. Borrows from g. */
leat_incoming leat_gather_incoming(const leat_gather *g);

#endif
