/* Any bytes as the position of an iterator: restored, after which elements are read, or refused. */
#include <leat/data.h>
#include <leat/leat.h>

#include "core/buffer.h"

static leat_dataset *make(void)
{
    leat_dataset *d;
    LEAT_DIE_ON_ERROR(leat_dataset_from_range(0, 100, 1, &d));
    LEAT_DIE_ON_ERROR(leat_dataset_shuffle(d, 8, 1, &d));
    LEAT_DIE_ON_ERROR(leat_dataset_repeat(d, 2, &d));
    LEAT_DIE_ON_ERROR(leat_dataset_skip(d, 1, &d));
    LEAT_DIE_ON_ERROR(leat_dataset_batch(d, 3, false, &d));
    LEAT_DIE_ON_ERROR(leat_dataset_prefetch(d, 2, &d));
    LEAT_DIE_ON_ERROR(leat_dataset_take(d, 50, &d));
    return d;
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t n);
int LLVMFuzzerTestOneInput(const uint8_t *data, size_t n)
{
    static leat_dataset *d;
    static leat_data_iterator *it;
    leat_cpu_allocator()->limit = 8 << 20;
    if (!d) {
        d = make();
        LEAT_DIE_ON_ERROR(leat_data_iterator_open(d, &it));
    }
    leat_status s = leat_data_iterator_restore(it, data, n);
    for (int i = 0; !s && i < 100; i++) {
        leat_tensor *t = NULL;
        s = leat_data_iterator_next(it, &t, 1);
        leat_tensor_unref(t);
    }
    leat_status_free(s);
    return 0;
}
