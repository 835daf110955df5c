/* op_fuzz.c -- any op, with any attributes and inputs: see random_op.h. */
#include "fuzz/random_op.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    leat_cpu_allocator()->limit = 8 << 20;
    random_op(data, size, -1);
    return 0;
}
