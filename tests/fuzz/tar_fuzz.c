/* Any bytes as a tar archive: all names and all bytes of its files are read. */
#include "data/tar.h"

#include <stdint.h>
#include <string.h>

static volatile unsigned sum; /* of all bytes, so that they are read */

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t n);
int LLVMFuzzerTestOneInput(const uint8_t *data, size_t n)
{
    leat_tar t = {(const char *)data, n, 0};
    char name[101];
    const char *bytes;
    size_t size;
    bool more = true;
    while (more) {
        leat_status s = leat_tar_next(&t, name, &bytes, &size, &more);
        if (s) {
            leat_status_free(s);
            break;
        }
        sum += (unsigned)strlen(name);
        for (size_t i = 0; more && i < size; i++)
            sum += (unsigned char)bytes[i];
    }
    return 0;
}
