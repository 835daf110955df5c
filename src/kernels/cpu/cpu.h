/* cpu.h -- what every CPU kernel includes: dtype switches and typed access to tensors.
 *
 * A kernel is one function for all its dtypes. LEAT_CASES runs a block with T defined as the C
 * type of the dtype at hand:
 *
 *     switch (x->dtype) {
 *         LEAT_CASES(REAL, negate(AT(T, x), AT(T, y), n));   -- a function made by a macro, or
 *     }
 *
 * half and bfloat16 are rarely worth a case: a kernel with LEAT_KERNEL_VIA_FLOAT serves them.
 */
#ifndef LEAT_CPU_H
#define LEAT_CPU_H

#include <math.h>
#include <stdint.h>
#include <string.h>

#include "core/checked.h"
#include "runtime/kernel_int.h"

#define AT(T, t) ((T *)(t)->data)

/* X-lists of (dtype, C type). */
#define LEAT_X_FLOAT(X) X(FLOAT, float) X(DOUBLE, double)
#define LEAT_X_SIGNED(X) X(INT8, int8_t) X(INT16, int16_t) X(INT32, int32_t) X(INT64, int64_t)
#define LEAT_X_UNSIGNED(X)                                                                         \
    X(UINT8, uint8_t) X(UINT16, uint16_t) X(UINT32, uint32_t) X(UINT64, uint64_t)
#define LEAT_X_INTEGER(X) LEAT_X_SIGNED(X) LEAT_X_UNSIGNED(X)
#define LEAT_X_REAL(X)                                                                             \
    LEAT_X_FLOAT(X) LEAT_X_INTEGER(X) /* dtypes that are computed in their own type */

/* case labels for use inside switch (dtype) */
#define LEAT_CASE(dtype, ctype, ...)                                                               \
    case LEAT_##dtype: {                                                                           \
        typedef ctype T;                                                                           \
        __VA_ARGS__;                                                                               \
        break;                                                                                     \
    }
#define LEAT_CASES_FLOAT(...)                                                                      \
    LEAT_CASE(FLOAT, float, __VA_ARGS__) LEAT_CASE(DOUBLE, double, __VA_ARGS__)
#define LEAT_CASES_SIGNED(...)                                                                     \
    LEAT_CASE(INT8, int8_t, __VA_ARGS__)                                                           \
    LEAT_CASE(INT16, int16_t, __VA_ARGS__)                                                         \
    LEAT_CASE(INT32, int32_t, __VA_ARGS__)                                                         \
    LEAT_CASE(INT64, int64_t, __VA_ARGS__)
#define LEAT_CASES_UNSIGNED(...)                                                                   \
    LEAT_CASE(UINT8, uint8_t, __VA_ARGS__)                                                         \
    LEAT_CASE(UINT16, uint16_t, __VA_ARGS__)                                                       \
    LEAT_CASE(UINT32, uint32_t, __VA_ARGS__)                                                       \
    LEAT_CASE(UINT64, uint64_t, __VA_ARGS__)
#define LEAT_CASES_INTEGER(...) LEAT_CASES_SIGNED(__VA_ARGS__) LEAT_CASES_UNSIGNED(__VA_ARGS__)
#define LEAT_CASES_REAL(...) LEAT_CASES_FLOAT(__VA_ARGS__) LEAT_CASES_INTEGER(__VA_ARGS__)
#define LEAT_CASES(set, ...) LEAT_CASES_##set(__VA_ARGS__)

/* Kernels that only move elements switch on their size: T is an unsigned integer of it.
 * (16 bytes: complex128; not strings, handles, variants: use leat_elements_copy for those.) */
typedef struct leat_16bytes {
    uint64_t a, b;
} leat_16bytes;
#define LEAT_SIZE_CASES(...)                                                                       \
    case 1: {                                                                                      \
        typedef uint8_t T;                                                                         \
        __VA_ARGS__;                                                                               \
        break;                                                                                     \
    }                                                                                              \
    case 2: {                                                                                      \
        typedef uint16_t T;                                                                        \
        __VA_ARGS__;                                                                               \
        break;                                                                                     \
    }                                                                                              \
    case 4: {                                                                                      \
        typedef uint32_t T;                                                                        \
        __VA_ARGS__;                                                                               \
        break;                                                                                     \
    }                                                                                              \
    case 8: {                                                                                      \
        typedef uint64_t T;                                                                        \
        __VA_ARGS__;                                                                               \
        break;                                                                                     \
    }                                                                                              \
    case 16: {                                                                                     \
        typedef leat_16bytes T;                                                                    \
        __VA_ARGS__;                                                                               \
        break;                                                                                     \
    }
/* True for strings, handles and variants. */
static inline bool leat_is_managed(leat_dtype t)
{
    return t == LEAT_STRING || t == LEAT_RESOURCE || t == LEAT_VARIANT;
}

/* Element i of an integer tensor of int32 or int64. */
static inline int64_t leat_index_at(const leat_tensor *t, int64_t i)
{
    return t->dtype == LEAT_INT32 ? AT(int32_t, t)[i] : AT(int64_t, t)[i];
}
static inline void leat_index_put(leat_tensor *t, int64_t i, int64_t v)
{
    if (t->dtype == LEAT_INT32)
        AT(int32_t, t)[i] = (int32_t)v;
    else
        AT(int64_t, t)[i] = v;
}

/* leat_kernel_for looks only between two calls whether its step was cancelled or is late. A loop
 * that one call may spend long in, or that is not in a leat_kernel_for, counts what it does, and
 * looks now and then itself:
 *
 *     leat_look look = leat_look_begin(k);
 *     for (...)
 *         if (leat_look_over(&look, elements)) -- that are done in this round
 *             return;
 *
 * Not for kernels with a reference or a resource, which do to the end what they began. */
typedef struct leat_look {
    leat_kernel *k;
    int64_t left; /* elements until the next look */
} leat_look;

enum { LEAT_LOOK_AFTER = 1 << 22 }; /* elements of some 1 ns: a few milliseconds */

static inline leat_look leat_look_begin(leat_kernel *k)
{
    return (leat_look){k, LEAT_LOOK_AFTER};
}

/* True once the kernel need not go on. */
static inline bool leat_look_over(leat_look *l, int64_t elements)
{
    l->left -= elements;
    if (__builtin_expect(l->left > 0, 1))
        return false;
    const bool over = leat_kernel_cancelled(l->k);
    l->left = over ? 0 : LEAT_LOOK_AFTER;
    return over;
}

#endif
