/* Any bytes as an index of a checkpoint whose data are the same bytes: each tensor is an error or
 * is read. */
#include "io/bundle.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "io/snappy.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t n);
int LLVMFuzzerTestOneInput(const uint8_t *data, size_t n)
{
    static char prefix[64], path[96];
    if (!*path) {
        snprintf(prefix, sizeof(prefix), "/tmp/leat_bundle_fuzz.%d", (int)getpid());
        snprintf(path, sizeof(path), "%s.data-00000-of-00001", prefix);
    }
    size_t size;
    if (leat_snappy_size(data, n, &size) && size < 1 << 20) {
        char *out = malloc(size + 1);
        leat_snappy_decode(data, n, out, size);
        free(out);
    }
    FILE *f = fopen(path, "wb");
    if (f) {
        fwrite(data, 1, n, f);
        fclose(f);
    }
    char *copy = malloc(n + 1);
    if (n)
        memcpy(copy, data, n);
    leat_bundle *b = NULL;
    leat_status s = leat_bundle_parse(copy, n, prefix, &b);
    const leat_table *t = s ? NULL : leat_bundle_table(b);
    leat_status_free(s);
    for (size_t i = 0; t && i < t->n && i < 100; i++) {
        leat_tensor *x = NULL;
        leat_status_free(leat_bundle_tensor(b, t->entries[i].key, t->entries[i].n_key, &x));
        leat_tensor_unref(x);
    }
    leat_bundle_free(b);
    unlink(path);
    return 0;
}
