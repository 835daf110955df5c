/* stream.h -- the bytes of a file from its beginning to its end, decompressed where the file is
 * compressed: what readers of records, of lines and of pieces of equal length are made of.
 *
 * The end of the file is no error: reads give fewer bytes then. A compressed file that is cut off
 * ends where its bytes end. No function allocates more memory than the file can fill.
 */
#ifndef LEAT_IO_STREAM_H
#define LEAT_IO_STREAM_H

#include <leat/io.h>

#include "core/strbuf.h"

typedef struct leat_stream leat_stream; /* to be used by one thread at a time */

/* form says whether the file is compressed; AUTO is not compressed. */
leat_status leat_stream_open(const char *path, leat_record_form form,
                             leat_stream **out) LEAT_MUST_CHECK;
/* Reads from memory, which is borrowed, instead of a file. */
leat_status leat_stream_over(const void *bytes, size_t n, leat_record_form form,
                             leat_stream **out) LEAT_MUST_CHECK;
void leat_stream_close(leat_stream *s);             /* of NULL does nothing */
const char *leat_stream_path(const leat_stream *s); /* NULL if the stream reads from memory */
int64_t leat_stream_stored(const leat_stream *s);   /* bytes of the file, as they are stored */
/* Opens the file again and goes to its beginning. */
leat_status leat_stream_rewind(leat_stream *s) LEAT_MUST_CHECK;

/* Adds up to n bytes to `to`; fewer only at the end of the file. DATA_LOSS if the compressed data
 * is damaged. */
leat_status leat_stream_read(leat_stream *s, uint64_t n, leat_strbuf *to) LEAT_MUST_CHECK;
/* Skips up to n bytes. *skipped_out is less than n only at the end of the file. */
leat_status leat_stream_skip(leat_stream *s, uint64_t n, uint64_t *skipped_out) LEAT_MUST_CHECK;
/* Adds the next line to `to`, without its end ("\n" or "\r\n"). *end_out is true, and nothing is
 * added, if there are no more lines. */
leat_status leat_stream_line(leat_stream *s, leat_strbuf *to, bool *end_out) LEAT_MUST_CHECK;
/* The bytes that the next read gives first, as many as are in memory, without reading them; at
 * least one unless the file has ended. Valid until the next call. */
leat_status leat_stream_peek(leat_stream *s, const unsigned char **bytes_out,
                             size_t *n_out) LEAT_MUST_CHECK;
/* The same without reading the file: as many bytes as are in memory, maybe none. */
size_t leat_stream_window(const leat_stream *s, const unsigned char **bytes_out);
/* Makes the window larger by bytes that need not be waited for: the system has them in its cache.
 * False: there are none, or no room for them. What the window was before is not valid any more. */
bool leat_stream_extend(leat_stream *s);
/* Goes n bytes on, which are in the window. */
void leat_stream_advance(leat_stream *s, size_t n);
/* Before anything was read but by leat_stream_peek: from now on the stream is of this form. */
leat_status leat_stream_set_form(leat_stream *s, leat_record_form form) LEAT_MUST_CHECK;

#endif
