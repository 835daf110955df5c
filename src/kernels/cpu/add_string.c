/* add_string.c -- Add of strings joins them. */
#include <stdlib.h>

#include "kernels/cpu/row2.h"

static leat_status join(const leat_string *a, const leat_string *b, leat_string *z)
{
    const size_t n = a->size + b->size; /* both are in memory */
    char small[256], *text = n <= sizeof(small) ? small : malloc(n);
    LEAT_REQUIRE(text, RESOURCE_EXHAUSTED, "No memory for a string of %zu bytes", n);
    if (a->size)
        memcpy(text, a->data, a->size);
    if (b->size)
        memcpy(text + a->size, b->data, b->size);
    const bool ok = leat_string_set(z, text, n);
    if (text != small)
        free(text);
    LEAT_REQUIRE(ok, RESOURCE_EXHAUSTED, "No memory for a string of %zu bytes", n);
    return NULL;
}

static leat_status add_string(leat_kernel *k)
{
    const leat_tensor *a = leat_kernel_in(k, 0), *b = leat_kernel_in(k, 1);
    leat_broadcast c;
    leat_tensor *z;
    LEAT_TRY(leat_broadcast_init(&c, &a->shape, &b->shape));
    LEAT_TRY(leat_kernel_out(k, 0, &c.out, &z));
    for (int64_t i = 0; i < c.count; i++) {
        int64_t x = 0, y = 0, rest = i;
        for (int d = c.rank - 1; d >= 0; d--) {
            x += rest % c.dim[d] * c.a_step[d];
            y += rest % c.dim[d] * c.b_step[d];
            rest /= c.dim[d];
        }
        LEAT_TRY(join(AT(leat_string, a) + x, AT(leat_string, b) + y, AT(leat_string, z) + i));
    }
    return NULL;
}

const leat_kernel_def leat_cpu_add_string[] = {
    {.op = "Add", .where = {{"T", LEAT_T(STRING)}}, .run = add_string},
    {0},
};
