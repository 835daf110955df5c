/* cast.c -- Cast, the same values in another dtype; Bitcast, the same bytes in another dtype. */
#include <leat/extend.h>
#include <leat/ops.h>

static bool has_gradient(leat_dtype t)
{
    return leat_types_has(LEAT_TYPES_FLOATING | LEAT_TYPES_COMPLEX, leat_dtype_base(t));
}

static leat_status cast_grad(leat_grad *g)
{
    leat_out x = leat_grad_input(g, 0), dy = leat_grad_out(g, 0);
    if (!has_gradient(leat_out_dtype(x)) || !has_gradient(leat_out_dtype(dy)))
        return NULL;
    return leat_grad_in(g, 0, leat_cast(dy, leat_dtype_base(leat_out_dtype(x))));
}

static leat_status cast_value(leat_infer *c, int i, leat_shape *out)
{
    return leat_infer_known(c, 0, out);
}

/* If elements become smaller a dimension is added at the end; if they become larger the last one is
 * removed. */
static leat_status bitcast_shape(leat_infer *c)
{
    const leat_node *n = leat_infer_node(c);
    leat_shape s = leat_infer_in(c, 0);
    const int64_t from = (int64_t)leat_dtype_size(leat_node_type(n, "T"));
    const int64_t to = (int64_t)leat_dtype_size(leat_node_type(n, "type"));
    if (s.rank < 0 || from == to || !from || !to) {
        leat_infer_out(c, 0, s);
        return NULL;
    }
    if (from > to) {
        LEAT_REQUIRE(s.rank < LEAT_MAX_RANK, INVALID_ARGUMENT, "Too many dimensions to bitcast");
        s.dim[s.rank++] = from / to;
    } else {
        LEAT_REQUIRE(s.rank > 0 && (s.dim[s.rank - 1] < 0 || s.dim[s.rank - 1] == to / from),
                     INVALID_ARGUMENT, "Cannot bitcast due to shape. %lld does not match %lld",
                     (long long)(s.rank > 0 ? s.dim[s.rank - 1] : 0), (long long)(to / from));
        s.rank--;
    }
    leat_infer_out(c, 0, s);
    return NULL;
}

#define BITCAST_TYPES                                                                              \
    "{bfloat16, half, float, double, int64, int32, uint8, uint16, int8, int16, complex64, "        \
    "complex128, qint8, quint8, qint16, quint16, qint32, uint32, uint64}"

const leat_op_def leat_ops_cast[] = {
    {.name = "Cast",
     .inputs = "x: SrcT",
     .outputs = "y: DstT",
     .attrs = "SrcT: type; DstT: type; Truncate: bool = false",
     .shape = leat_shape_unchanged,
     .grad = cast_grad,
     .value = cast_value},
    {.name = "Bitcast",
     .inputs = "input: T",
     .outputs = "output: type",
     .attrs = "T: " BITCAST_TYPES "; type: " BITCAST_TYPES,
     .shape = bitcast_shape,
     .grad = leat_grad_missing},
    {0},
};
