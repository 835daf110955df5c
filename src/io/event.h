/* event.h -- event files: records that are Event messages, the first with the version. */
#ifndef LEAT_IO_EVENT_H
#define LEAT_IO_EVENT_H

#include <leat/io.h>
#include "proto/event.pb-c.h"

typedef struct leat_event_writer leat_event_writer; /* to be used by one thread at a time */
/* A new file events.out.tfevents.<seconds>.<host><suffix> in dir, which is made if need be. */
leat_status leat_event_writer_open(const char *dir, const char *suffix,
                                   leat_event_writer **out) LEAT_MUST_CHECK;
const char *leat_event_writer_path(const leat_event_writer *w);
/* wall_time 0: the current time. */
leat_status leat_event_write(leat_event_writer *w, Leat__Event *e) LEAT_MUST_CHECK;
/* Writes the bytes of an Event message. */
leat_status leat_event_write_bytes(leat_event_writer *w, const void *bytes,
                                   size_t n) LEAT_MUST_CHECK;
leat_status leat_event_flush(leat_event_writer *w) LEAT_MUST_CHECK;
leat_status leat_event_writer_close(leat_event_writer *w) LEAT_MUST_CHECK; /* frees, too */
double leat_wall_time(void);                                               /* seconds since 1970 */

/* The next event of a file of records; free with leat_proto_free. OUT_OF_RANGE: no more. */
leat_status leat_event_next_message(leat_record_reader *r, Leat__Event **out) LEAT_MUST_CHECK;

#endif
