/* Any bytes as a file of records, plain or compressed, and each record as an event; and the bytes
 * as one event, since no mutation gets past a checksum. */
#include "io/event.h"
#include "io/record.h"
#include "proto/wire.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t n);
int LLVMFuzzerTestOneInput(const uint8_t *data, size_t n)
{
    for (int form = LEAT_RECORD_AUTO; form <= LEAT_RECORD_ZLIB; form++) {
        leat_record_reader *r = leat_record_reader_over(data, n, (leat_record_form)form);
        if (!r)
            continue;
        for (;;) {
            Leat__Event *e = NULL;
            leat_status s = leat_event_next_message(r, &e);
            leat_code code = leat_status_code(s);
            leat_status_free(s);
            leat_proto_free(e);
            if (code == LEAT_OUT_OF_RANGE || code == LEAT_DATA_LOSS)
                break; /* of the file, or of a message; the file's come again and again */
        }
        leat_record_reader_free(r);
    }
    Leat__Event *e = NULL;
    leat_status_free(LEAT_UNPACK(event, data, n, &e));
    leat_proto_free(e);
    return 0;
}
