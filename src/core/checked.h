/* checked.h -- arithmetic on sizes, all in one place: false means that the result does not fit. */
#ifndef LEAT_CORE_CHECKED_H
#define LEAT_CORE_CHECKED_H

#include <stdbool.h>
#include <stdint.h>

static inline bool leat_add_ok(int64_t a, int64_t b, int64_t *out)
{
    return !__builtin_add_overflow(a, b, out);
}
static inline bool leat_sub_ok(int64_t a, int64_t b, int64_t *out)
{
    return !__builtin_sub_overflow(a, b, out);
}
static inline bool leat_mul_ok(int64_t a, int64_t b, int64_t *out)
{
    return !__builtin_mul_overflow(a, b, out);
}

#endif
