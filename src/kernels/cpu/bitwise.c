/* bitwise.c -- bit operations of integers. Shift counts are limited to 0 and the number of bits
 * less one. */
#include "kernels/cpu/row1.h"
#include "kernels/cpu/row2.h"

#define BITS(T) ((T)(8 * sizeof(T) - 1))
#define SHIFT(T, y) ((y) < 0 ? (T)0 : (y) > BITS(T) ? BITS(T) : (y))
#define EXPR1_invert(T, x) (T)(~(x))
#define EXPR1_population_count(T, x)                                                               \
    (uint8_t) __builtin_popcountll(sizeof(T) == 1   ? (uint8_t)(x)                                 \
                                   : sizeof(T) == 2 ? (uint16_t)(x)                                \
                                   : sizeof(T) == 4 ? (uint32_t)(x)                                \
                                                    : (uint64_t)(x))
#define EXPR_and(T, x, y) (T)((x) & (y))
#define EXPR_or(T, x, y) (T)((x) | (y))
#define EXPR_xor(T, x, y) (T)((x) ^ (y))
#define EXPR_left(T, x, y) (T)((LEAT_WIDE(T))(x) << SHIFT(T, y))
#define EXPR_right(T, x, y) (T)((x) >> SHIFT(T, y))

#define POPULATION_COUNT(name, dtype, T) LEAT_ROW1_FN(name, T, uint8_t)
LEAT_Y_INTEGER(LEAT_ROW1_SAME, invert)
LEAT_Y_INTEGER(POPULATION_COUNT, population_count)
LEAT_ROW1_INIT(invert, 0.2, LEAT_Y_INTEGER(LEAT_ROW1_ENTRY, invert))
LEAT_ROW1_INIT(population_count, 1, LEAT_Y_INTEGER(LEAT_ROW1_ENTRY, population_count))

#define TWO(name)                                                                                  \
    LEAT_Y_INTEGER(LEAT_ROW2_SAME, name)                                                           \
    LEAT_ROW2_INIT(name, 0.3, NULL, LEAT_Y_INTEGER(LEAT_ROW2_ENTRY, name))
TWO(and)
TWO(or)
TWO(xor)
TWO(left)
TWO(right)

const leat_kernel_def leat_cpu_bitwise[] = {
    LEAT_ROW1_KERNEL("Invert", LEAT_TYPES_INTEGER, invert),
    LEAT_ROW1_KERNEL("PopulationCount", LEAT_TYPES_INTEGER, population_count),
    LEAT_ROW2_KERNEL("BitwiseAnd", LEAT_TYPES_INTEGER, and),
    LEAT_ROW2_KERNEL("BitwiseOr", LEAT_TYPES_INTEGER, or),
    LEAT_ROW2_KERNEL("BitwiseXor", LEAT_TYPES_INTEGER, xor),
    LEAT_ROW2_KERNEL("LeftShift", LEAT_TYPES_INTEGER, left),
    LEAT_ROW2_KERNEL("RightShift", LEAT_TYPES_INTEGER, right),
    {0},
};
