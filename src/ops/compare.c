/* compare.c -- comparisons, which give bools, and the logic of bools. None has a gradient. */
#include <leat/extend.h>

/* With incompatible_shape_error false, shapes that do not fit give a scalar, and shapes that are
 * not known may turn out not to fit. */
static leat_status equality_shape(leat_infer *c)
{
    if (leat_node_bool(leat_infer_node(c), "incompatible_shape_error"))
        return leat_shape_broadcast_binary(c);
    leat_shape a = leat_infer_in(c, 0), b = leat_infer_in(c, 1), out;
    leat_status s = leat_shape_broadcast(&a, &b, &out);
    if (s)
        out = leat_shape();
    else if (!leat_shape_known(&a) || !leat_shape_known(&b))
        out = leat_shape_unknown();
    leat_status_free(s);
    leat_infer_out(c, 0, out);
    return NULL;
}

#define COMPARISON(op)                                                                             \
    {                                                                                              \
        .name = op, .inputs = "x: T, y: T", .outputs = "z: bool", .attrs = "T: realnumbertype",    \
        .shape = leat_shape_broadcast_binary, .grad = leat_grad_none                               \
    }
#define EQUALITY(op)                                                                               \
    {                                                                                              \
        .name = op, .inputs = "x: T, y: T", .outputs = "z: bool",                                  \
        .attrs = "T: {bfloat16, half, float, double, uint8, int8, int16, int32, int64, "           \
                 "complex64, quint8, qint8, qint32, string, bool, complex128}; "                   \
                 "incompatible_shape_error: bool = true",                                          \
        .shape = equality_shape, .grad = leat_grad_none, .flags = LEAT_OP_COMMUTATIVE              \
    }
#define LOGICAL(op)                                                                                \
    {                                                                                              \
        .name = op, .inputs = "x: bool, y: bool", .outputs = "z: bool",                            \
        .shape = leat_shape_broadcast_binary, .grad = leat_grad_none, .flags = LEAT_OP_COMMUTATIVE \
    }

const leat_op_def leat_ops_compare[] = {
    COMPARISON("Less"),
    COMPARISON("LessEqual"),
    COMPARISON("Greater"),
    COMPARISON("GreaterEqual"),
    EQUALITY("Equal"),
    EQUALITY("NotEqual"),
    {.name = "ApproximateEqual",
     .inputs = "x: T, y: T",
     .outputs = "z: bool",
     .attrs = "T: numbertype; tolerance: float = 0.00001",
     .shape = leat_shape_merged,
     .grad = leat_grad_none,
     .flags = LEAT_OP_COMMUTATIVE},
    {.name = "LogicalNot",
     .inputs = "x: bool",
     .outputs = "y: bool",
     .shape = leat_shape_unchanged,
     .grad = leat_grad_none,
     .flags = LEAT_OP_INVOLUTION},
    LOGICAL("LogicalAnd"),
    LOGICAL("LogicalOr"),
    {0},
};
