/* bitwise.c -- the bits of integers: Invert, PopulationCount, And, Or, Xor and shifts. */
#include <leat/extend.h>

#define INTEGERS "T: {int8, int16, int32, int64, uint8, uint16, uint32, uint64}"
#define UNARY(op, out, ...)                                                                        \
    {                                                                                              \
        .name = op, .inputs = "x: T", .outputs = out, .attrs = INTEGERS,                           \
        .shape = leat_shape_unchanged, .grad = leat_grad_none, ##__VA_ARGS__                       \
    }
#define BINARY(op, ...)                                                                            \
    {                                                                                              \
        .name = op, .inputs = "x: T, y: T", .outputs = "z: T", .attrs = INTEGERS,                  \
        .shape = leat_shape_broadcast_binary, .grad = leat_grad_none, ##__VA_ARGS__                \
    }

const leat_op_def leat_ops_bitwise[] = {
    UNARY("Invert", "y: T", .flags = LEAT_OP_INVOLUTION),
    UNARY("PopulationCount", "y: uint8"),
    BINARY("BitwiseAnd", .flags = LEAT_OP_COMMUTATIVE),
    BINARY("BitwiseOr", .flags = LEAT_OP_COMMUTATIVE),
    BINARY("BitwiseXor", .flags = LEAT_OP_COMMUTATIVE),
    BINARY("LeftShift"),
    BINARY("RightShift"),
    {0},
};
