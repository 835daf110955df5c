/* Any bytes as an idx file, plain or gzipped. */
#define _GNU_SOURCE
#include <leat/data.h>

#include "core/buffer.h"
#include "memory_file.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t n);
int LLVMFuzzerTestOneInput(const uint8_t *data, size_t n)
{
    leat_tensor *t = NULL;
    leat_cpu_allocator()->limit = 64 << 20;
    leat_status_free(leat_idx_read(memory_file(data, n), &t));
    leat_tensor_unref(t);
    return 0;
}
