/* parts.h -- messages of any size, as several messages of one call.
 *
 * gRPC's messages end at 2 GB, and a large one arrives as thousands of pieces that lie in memory
 * twice before anybody can use them. So between two Leat tasks a message of more than
 * leat_parts_from bytes travels in parts, which LEAT_PARTS in the call's metadata says:
 * 1. First a head: how many segments there are, and the size of each. A tensor is one of its own.
 * 2. Then the bytes of all segments in order, in messages of leat_parts_bytes each, but the last.
 * The receiver copies each part to its place as it comes: a tensor's bytes to where they stay.
 * A caller shows by its user agent that it takes replies in parts. A listener shows by its reply to
 * a ping that it takes requests in parts.
 */
#ifndef LEAT_CLUSTER_GRPC_PARTS_H
#define LEAT_CLUSTER_GRPC_PARTS_H

#include "cluster/grpc/library.h"
#include "cluster/transport.h"

#define LEAT_PARTS "leat-parts"         /* the metadata's key */
#define LEAT_PARTS_AGENT "leat-parts/1" /* The start of a user agent; a reply to a ping. */
/* Tests change these. */
extern size_t leat_parts_from;  /* bytes: larger messages go in parts */
extern size_t leat_parts_bytes; /* of a part */
extern int64_t leat_whole_max;  /* the most that goes as one message: gRPC's limit */
extern bool leat_parts_known;   /* false: be like a program that knows nothing of parts */

bool leat_parts_in(const grpc_metadata_array *m);    /* A message in parts comes. */
bool leat_parts_taken(const grpc_metadata_array *m); /* The caller takes replies in parts. */
grpc_metadata leat_parts_mark(void);

/* ---- Sending ---- */
typedef struct leat_parts leat_parts;
leat_parts *leat_parts_new(leat_outgoing *o); /* takes what is in o */
void leat_parts_free(leat_parts *p);
grpc_byte_buffer *leat_parts_head(const leat_parts *p);
grpc_byte_buffer *leat_parts_next(leat_parts *p);
bool leat_parts_left(const leat_parts *p); /* there is a next one */

/* ---- Receiving ---- */
typedef struct leat_gather leat_gather;
/* From a head. RESOURCE_EXHAUSTED beyond most bytes. */
leat_status leat_gather_new(grpc_byte_buffer *head, int64_t most,
                            leat_gather **out) LEAT_MUST_CHECK;
void leat_gather_free(leat_gather *g); /* what tensors share stays */
leat_status leat_gather_add(leat_gather *g, grpc_byte_buffer *part) LEAT_MUST_CHECK;
size_t leat_gather_missing(const leat_gather *g);         /* bytes that have not come */
leat_incoming leat_gather_incoming(const leat_gather *g); /* when all came; slices are g's */

#endif
