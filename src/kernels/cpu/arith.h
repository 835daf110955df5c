/* arith.h -- helpers for element-wise kernels: lists of types, arithmetic that wraps. */
#ifndef LEAT_KERNELS_CPU_ARITH_H
#define LEAT_KERNELS_CPU_ARITH_H

#include "kernels/cpu/cpu.h"
#include "kernels/cpu/level_rows.h"

/* The type in which sums and products of T wrap without undefined behaviour. */
#define LEAT_WIDE_float float
#define LEAT_WIDE_double double
#define LEAT_WIDE_int8_t uint32_t
#define LEAT_WIDE_int16_t uint32_t
#define LEAT_WIDE_int32_t uint32_t
#define LEAT_WIDE_int64_t uint64_t
#define LEAT_WIDE_uint8_t uint32_t
#define LEAT_WIDE_uint16_t uint32_t
#define LEAT_WIDE_uint32_t uint32_t
#define LEAT_WIDE_uint64_t uint64_t
#define LEAT_WIDE(T) LEAT_WIDE_##T

/* Lists of types with a name as argument: X(name, dtype, C type). */
#define LEAT_Y_FLOAT(X, name) X(name, FLOAT, float) X(name, DOUBLE, double)
#define LEAT_Y_INDEX(X, name) X(name, INT32, int32_t) X(name, INT64, int64_t)
#define LEAT_Y_INTEGER(X, name)                                                                    \
    X(name, INT8, int8_t)                                                                          \
    X(name, INT16, int16_t)                                                                        \
    X(name, INT32, int32_t)                                                                        \
    X(name, INT64, int64_t)                                                                        \
    X(name, UINT8, uint8_t)                                                                        \
    X(name, UINT16, uint16_t)                                                                      \
    X(name, UINT32, uint32_t)                                                                      \
    X(name, UINT64, uint64_t)
#define LEAT_Y_REAL(X, name) LEAT_Y_FLOAT(X, name) LEAT_Y_INTEGER(X, name)
#define LEAT_Y_BOOL(X, name) X(name, BOOL, _Bool) /* bool is a macro */

/* The dtypes of each of these lists; half and bfloat16 are computed in float. */
#define LEAT_ROW_FLOAT (LEAT_T(FLOAT) | LEAT_T(DOUBLE))
#define LEAT_ROW_INDEX LEAT_TYPES_INDEX
#define LEAT_ROW_INTEGER LEAT_TYPES_INTEGER
#define LEAT_ROW_REAL (LEAT_ROW_FLOAT | LEAT_ROW_INTEGER)

/* The dtype in which a kernel computes for a node of dtype t. */
static inline leat_dtype leat_compute_dtype(leat_dtype t)
{
    return t == LEAT_HALF || t == LEAT_BFLOAT16 ? LEAT_FLOAT : t;
}

#endif
