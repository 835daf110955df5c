/* Any bytes as a file of lines and as one of pieces of equal length, plain or compressed: the two
 * ways of reading give the same bytes. */
#include <stdlib.h>

#include "io/stream.h"

enum { MOST = 4 << 20 }; /* bytes that are read of a file, which may grow a thousandfold */

static void read_lines(const uint8_t *data, size_t n, leat_record_form form)
{
    leat_stream *s;
    leat_strbuf line = {0};
    bool end = false;
    leat_status bad = leat_stream_over(data, n, form, &s);
    for (size_t all = 0; !bad && !end && all < MOST; all += line.n + 1) {
        leat_strbuf_clear(&line);
        bad = leat_stream_line(s, &line, &end);
    }
    leat_status_free(bad);
    leat_stream_close(s);
    leat_strbuf_release(&line);
}

static size_t read_pieces(const uint8_t *data, size_t n, leat_record_form form, uint64_t piece)
{
    leat_stream *s;
    leat_strbuf bytes = {0};
    size_t all = 0;
    leat_status bad = leat_stream_over(data, n, form, &s);
    for (bool end = false; !bad && !end && all < MOST; all += bytes.n) {
        leat_strbuf_clear(&bytes);
        bad = leat_stream_read(s, piece, &bytes);
        end = bytes.n < piece;
    }
    if (bad || all > MOST - 4096)
        all = SIZE_MAX;
    leat_status_free(bad);
    leat_stream_close(s);
    leat_strbuf_release(&bytes);
    return all;
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t n);
int LLVMFuzzerTestOneInput(const uint8_t *data, size_t n)
{
    for (int form = LEAT_RECORD_PLAIN; form <= LEAT_RECORD_ZLIB; form++) {
        read_lines(data, n, (leat_record_form)form);
        const size_t few = read_pieces(data, n, (leat_record_form)form, 7);
        const size_t many = read_pieces(data, n, (leat_record_form)form, 4096);
        if (few != SIZE_MAX && many != SIZE_MAX && few != many)
            abort();
    }
    return 0;
}
