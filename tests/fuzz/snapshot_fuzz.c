/* Any bytes as a file of a snapshot's elements, plain or compressed, each with up to three tensors;
 * and records that are skipped. */
#include "io/snapshot.h"

static void read_all(const uint8_t *data, size_t n, bool gzip, int tensors)
{
    leat_snapshot_reader *r;
    leat_status s = leat_snapshot_reader_over(data, n, gzip, &r);
    if (s) {
        leat_status_free(s);
        return;
    }
    while (!s) {
        leat_tensor *t[3] = {NULL, NULL, NULL};
        s = tensors ? leat_snapshot_next(r, t, tensors) : leat_snapshot_skip(r);
        for (int i = 0; i < 3; i++)
            leat_tensor_unref(t[i]);
    }
    leat_status_free(s);
    leat_snapshot_reader_free(r);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t n);
int LLVMFuzzerTestOneInput(const uint8_t *data, size_t n)
{
    for (int tensors = 0; tensors < 4; tensors++) {
        read_all(data, n, false, tensors);
        read_all(data, n, true, tensors);
    }
    return 0;
}
