/* ops.h -- constructors of array, math, state and string ops, in TensorFlow's words.
 *
 * Each adds a node to its inputs' graph and gives its first output. All take further arguments at
 * the end: leat_name("h"), leat_on("/cpu:0"), leat_after(x), leat_attr_...(...), as leat_op does.
 * An op that has no constructor here is made by leat_op.
 */
#ifndef LEAT_OPS_H
#define LEAT_OPS_H

#include <leat/graph.h>

/* An op with n tensors as inputs, in whose graph it is made. */
LEAT_API leat_out leat_op_of(leat_loc at, const char *op, const leat_out *x, int n,
                             const leat_arg *args);
/* A list of further arguments, which may be empty; `first` keeps an empty list valid in strict
 * C11. */
#define LEAT_ARGS_AFTER(first, ...)                                                                \
    LEAT_ARRAY(leat_arg, leat_arg_new(LEAT_ARG_SKIP, NULL), ##__VA_ARGS__,                         \
               leat_arg_new(LEAT_ARG_END, NULL))
#define LEAT_ARGS(...) LEAT_ARGS_AFTER(0, ##__VA_ARGS__)
#define LEAT_OP1(op, x, ...)                                                                       \
    leat_op_of(LEAT_AT, op, LEAT_ARRAY(leat_out, x), 1, LEAT_ARGS_AFTER(0, ##__VA_ARGS__))
#define LEAT_OP2(op, x, y, ...)                                                                    \
    leat_op_of(LEAT_AT, op, LEAT_ARRAY(leat_out, x, y), 2, LEAT_ARGS_AFTER(0, ##__VA_ARGS__))
#define LEAT_OP3(op, x, y, z, ...)                                                                 \
    leat_op_of(LEAT_AT, op, LEAT_ARRAY(leat_out, x, y, z), 3, LEAT_ARGS_AFTER(0, ##__VA_ARGS__))
#define LEAT_OP4(op, a, b, c, d, ...)                                                              \
    leat_op_of(LEAT_AT, op, LEAT_ARRAY(leat_out, a, b, c, d), 4, LEAT_ARGS_AFTER(0, ##__VA_ARGS__))
/* An op with one list input. */
#define LEAT_OPN(op, xs, n, ...)                                                                   \
    leat_op_of(LEAT_AT, op, (xs), (n), LEAT_ARGS_AFTER(0, ##__VA_ARGS__))
/* An op without inputs. */
#define LEAT_OP0(g, op, ...) leat_op_at(LEAT_AT, (g), op, LEAT_ARGS_AFTER(0, ##__VA_ARGS__))

/* ---- Constants and inputs ---- */
LEAT_API leat_out leat_const_at(leat_loc at, leat_graph *g, const leat_tensor *value);
LEAT_API leat_out leat_scalar_at(leat_loc at, leat_graph *g, leat_dtype t, double v);
LEAT_API leat_out leat_int_vector_at(leat_loc at, leat_graph *g, leat_dtype t, const int64_t *v, int n);
LEAT_API leat_out leat_full_at(leat_loc at, leat_graph *g, leat_dtype t, leat_shape s, double v);
LEAT_API leat_out leat_full_named_at(leat_loc at, leat_graph *g, leat_dtype t, leat_shape s, double v,
                                     const char *name);
LEAT_API leat_out leat_string_at(leat_loc at, leat_graph *g, const char *s);
#define leat_const(g, tensor) leat_const_at(LEAT_AT, g, tensor) /* shares the tensor */
#define leat_scalar(g, dtype, v) leat_scalar_at(LEAT_AT, g, dtype, v)
/* A scalar constant of x's dtype, in x's graph. */
#define leat_scalar_like(x, v)                                                                     \
    leat_scalar_at(LEAT_AT, leat_node_graph((x).node), leat_dtype_base(leat_out_dtype(x)), v)
/* int32 vector: leat_ints(g, 0, 1) */
#define leat_ints(g, ...)                                                                          \
    leat_int_vector_at(LEAT_AT, g, LEAT_INT32, LEAT_ARRAY(int64_t, __VA_ARGS__),                   \
                       LEAT_COUNT(int64_t, __VA_ARGS__))
#define leat_int_vector(g, v, n) leat_int_vector_at(LEAT_AT, g, LEAT_INT32, v, n)
#define leat_shape_const(g, s) leat_int_vector_at(LEAT_AT, g, LEAT_INT32, (s).dim, (s).rank)
#define leat_string_const(g, s) leat_string_at(LEAT_AT, g, s)
#define leat_zeros(g, dtype, shape) leat_full_named_at(LEAT_AT, g, dtype, shape, 0, "zeros")
#define leat_ones(g, dtype, shape) leat_full_named_at(LEAT_AT, g, dtype, shape, 1, "ones")
#define leat_full(g, dtype, shape, v) leat_full_at(LEAT_AT, g, dtype, shape, v)
#define leat_placeholder(g, t, s, ...)                                                             \
    LEAT_OP0(g, "Placeholder", leat_attr_type("dtype", t), leat_attr_shape("shape", s), ##__VA_ARGS__)
#define leat_placeholder_with_default(x, s, ...)                                                   \
    LEAT_OP1("PlaceholderWithDefault", x, leat_attr_shape("shape", s), ##__VA_ARGS__)
#define leat_fill(dims, value, ...) LEAT_OP2("Fill", dims, value, ##__VA_ARGS__)
#define leat_range(start, limit, delta, ...) LEAT_OP3("Range", start, limit, delta, ##__VA_ARGS__)

/* ---- Random values, in TensorFlow's sequences: the same seeds give the same numbers ---- */
typedef struct leat_random_options {
    leat_given given;    /* set by the macro */
    leat_dtype dtype;    /* float if not set */
    double mean, stddev; /* for the normal distributions: 0, 1 */
    double low, high;    /* of the uniform distribution, [low, high): 0, 1 */
    /* The op's seed. Default: from the graph's seed, or from the system if that is not set
     * either. */
    int64_t seed;
    const char *name;
} leat_random_options;
/* kind: "random_normal", "truncated_normal", "random_uniform". */
LEAT_API leat_out leat_random_at(leat_loc at, leat_graph *g, const char *kind, leat_shape s,
                                 const leat_random_options *o);
#define leat_random_normal(g, shape, ...)                                                          \
    leat_random_at(LEAT_AT, g, "random_normal", shape,                                             \
                   LEAT_GIVEN_OPTIONS(leat_random_options, __VA_ARGS__))
/* Values more than two stddev from the mean are drawn again. */
#define leat_truncated_normal(g, shape, ...)                                                       \
    leat_random_at(LEAT_AT, g, "truncated_normal", shape,                                          \
                   LEAT_GIVEN_OPTIONS(leat_random_options, __VA_ARGS__))
#define leat_random_uniform(g, shape, ...)                                                         \
    leat_random_at(LEAT_AT, g, "random_uniform", shape,                                            \
                   LEAT_GIVEN_OPTIONS(leat_random_options, __VA_ARGS__))
/* The rows of x in random order; takes .seed and .name. */
LEAT_API leat_out leat_random_shuffle_at(leat_loc at, leat_out x, const leat_random_options *o);
#define leat_random_shuffle(x, ...)                                                                \
    leat_random_shuffle_at(LEAT_AT, x, LEAT_GIVEN_OPTIONS(leat_random_options, __VA_ARGS__))

/* ---- Array ---- */
#define leat_identity(x, ...) LEAT_OP1("Identity", x, ##__VA_ARGS__)
#define leat_stop_gradient(x, ...) LEAT_OP1("StopGradient", x, ##__VA_ARGS__)
#define leat_prevent_gradient(x, ...) LEAT_OP1("PreventGradient", x, ##__VA_ARGS__)
#define leat_check_numerics(x, message, ...)                                                       \
    LEAT_OP1("CheckNumerics", x, leat_attr_string("message", message), ##__VA_ARGS__)
#define leat_zeros_like(x, ...) LEAT_OP1("ZerosLike", x, ##__VA_ARGS__)
#define leat_ones_like(x, ...) LEAT_OP1("OnesLike", x, ##__VA_ARGS__)
#define leat_shape_of(x, ...) LEAT_OP1("Shape", x, ##__VA_ARGS__) /* int32 */
#define leat_size_of(x, ...) LEAT_OP1("Size", x, ##__VA_ARGS__)
#define leat_rank_of(x, ...) LEAT_OP1("Rank", x, ##__VA_ARGS__)
#define leat_reshape(x, shape, ...) LEAT_OP2("Reshape", x, shape, ##__VA_ARGS__)
#define leat_reshape_to(x, shape)                                                                  \
    leat_reshape(x, leat_shape_const(leat_node_graph((x).node), shape))
#define leat_expand_dims(x, axis, ...) LEAT_OP2("ExpandDims", x, axis, ##__VA_ARGS__)
#define leat_squeeze(x, ...) LEAT_OP1("Squeeze", x, ##__VA_ARGS__)
LEAT_API leat_out leat_concat_at(leat_loc at, const leat_out *xs, int n, leat_out axis);
#define leat_concat(xs, n, axis) leat_concat_at(LEAT_AT, xs, n, axis)
#define leat_pack(xs, n, axis, ...)                                                                \
    LEAT_OPN("Pack", xs, n, leat_attr_int("axis", axis), ##__VA_ARGS__)
#define leat_unpack(x, num, axis, ...)                                                             \
    LEAT_OP1("Unpack", x, leat_attr_int("num", num), leat_attr_int("axis", axis), ##__VA_ARGS__)
#define leat_split(axis, x, num, ...)                                                              \
    LEAT_OP2("Split", axis, x, leat_attr_int("num_split", num), ##__VA_ARGS__)
#define leat_split_v(x, sizes, axis, num, ...)                                                     \
    LEAT_OP3("SplitV", x, sizes, axis, leat_attr_int("num_split", num), ##__VA_ARGS__)
#define leat_slice(x, begin, size, ...) LEAT_OP3("Slice", x, begin, size, ##__VA_ARGS__)
#define leat_strided_slice(x, begin, end, strides, ...)                                            \
    LEAT_OP4("StridedSlice", x, begin, end, strides, ##__VA_ARGS__)
#define leat_gather(params, indices, axis, ...)                                                    \
    LEAT_OP3("GatherV2", params, indices, axis, ##__VA_ARGS__)
#define leat_gather_nd(params, indices, ...) LEAT_OP2("GatherNd", params, indices, ##__VA_ARGS__)
#define leat_tile(x, multiples, ...) LEAT_OP2("Tile", x, multiples, ##__VA_ARGS__)
#define leat_transpose(x, perm, ...) LEAT_OP2("Transpose", x, perm, ##__VA_ARGS__)
#define leat_invert_permutation(x, ...) LEAT_OP1("InvertPermutation", x, ##__VA_ARGS__)
#define leat_pad(x, paddings, ...) LEAT_OP2("Pad", x, paddings, ##__VA_ARGS__)
#define leat_reverse(x, axes, ...) LEAT_OP2("ReverseV2", x, axes, ##__VA_ARGS__)
#define leat_one_hot(indices, depth, on, off, ...)                                                 \
    LEAT_OP4("OneHot", indices, depth, on, off, ##__VA_ARGS__)
#define leat_where(x, ...) LEAT_OP1("Where", x, ##__VA_ARGS__)
#define leat_select(c, x, y, ...) LEAT_OP3("Select", c, x, y, ##__VA_ARGS__)
#define leat_broadcast_to(x, shape, ...) LEAT_OP2("BroadcastTo", x, shape, ##__VA_ARGS__)
#define leat_broadcast_gradient_args(s0, s1, ...)                                                  \
    LEAT_OP2("BroadcastGradientArgs", s0, s1, ##__VA_ARGS__)
LEAT_API leat_out leat_dynamic_stitch_at(leat_loc at, const leat_out *indices, const leat_out *data,
                                         int n);
#define leat_dynamic_stitch(indices, data, n) leat_dynamic_stitch_at(LEAT_AT, indices, data, n)

/* ---- Math ---- */
/* x itself if its dtype is t. */
LEAT_API leat_out leat_cast_at(leat_loc at, leat_out x, leat_dtype t);
#define leat_cast(x, dtype) leat_cast_at(LEAT_AT, x, dtype)
LEAT_API leat_out leat_conj_at(leat_loc at, leat_out x); /* x itself unless its dtype is complex */
#define leat_conj(x) leat_conj_at(LEAT_AT, x)
#define leat_neg(x, ...) LEAT_OP1("Neg", x, ##__VA_ARGS__)
#define leat_abs(x, ...) LEAT_OP1("Abs", x, ##__VA_ARGS__)
#define leat_sign(x, ...) LEAT_OP1("Sign", x, ##__VA_ARGS__)
#define leat_square(x, ...) LEAT_OP1("Square", x, ##__VA_ARGS__)
#define leat_sqrt(x, ...) LEAT_OP1("Sqrt", x, ##__VA_ARGS__)
#define leat_rsqrt(x, ...) LEAT_OP1("Rsqrt", x, ##__VA_ARGS__)
#define leat_reciprocal(x, ...) LEAT_OP1("Reciprocal", x, ##__VA_ARGS__)
#define leat_inv(x, ...) LEAT_OP1("Inv", x, ##__VA_ARGS__)
#define leat_exp(x, ...) LEAT_OP1("Exp", x, ##__VA_ARGS__)
#define leat_expm1(x, ...) LEAT_OP1("Expm1", x, ##__VA_ARGS__)
#define leat_log(x, ...) LEAT_OP1("Log", x, ##__VA_ARGS__)
#define leat_log1p(x, ...) LEAT_OP1("Log1p", x, ##__VA_ARGS__)
#define leat_sin(x, ...) LEAT_OP1("Sin", x, ##__VA_ARGS__)
#define leat_cos(x, ...) LEAT_OP1("Cos", x, ##__VA_ARGS__)
#define leat_tan(x, ...) LEAT_OP1("Tan", x, ##__VA_ARGS__)
#define leat_sinh(x, ...) LEAT_OP1("Sinh", x, ##__VA_ARGS__)
#define leat_cosh(x, ...) LEAT_OP1("Cosh", x, ##__VA_ARGS__)
#define leat_floor(x, ...) LEAT_OP1("Floor", x, ##__VA_ARGS__)
#define leat_ceil(x, ...) LEAT_OP1("Ceil", x, ##__VA_ARGS__)
#define leat_round(x, ...) LEAT_OP1("Round", x, ##__VA_ARGS__)
#define leat_lgamma(x, ...) LEAT_OP1("Lgamma", x, ##__VA_ARGS__)
#define leat_digamma(x, ...) LEAT_OP1("Digamma", x, ##__VA_ARGS__)
#define leat_polygamma(n, x, ...) LEAT_OP2("Polygamma", n, x, ##__VA_ARGS__)
#define leat_erf(x, ...) LEAT_OP1("Erf", x, ##__VA_ARGS__)
/* From an output y and its gradient dy, the gradient of the input. */
#define leat_reciprocal_grad(y, dy, ...) LEAT_OP2("ReciprocalGrad", y, dy, ##__VA_ARGS__)
#define leat_sqrt_grad(y, dy, ...) LEAT_OP2("SqrtGrad", y, dy, ##__VA_ARGS__)
#define leat_rsqrt_grad(y, dy, ...) LEAT_OP2("RsqrtGrad", y, dy, ##__VA_ARGS__)
#define leat_tanh_grad(y, dy, ...) LEAT_OP2("TanhGrad", y, dy, ##__VA_ARGS__)
#define leat_sigmoid_grad(y, dy, ...) LEAT_OP2("SigmoidGrad", y, dy, ##__VA_ARGS__)
#define leat_logical_not(x, ...) LEAT_OP1("LogicalNot", x, ##__VA_ARGS__)
#define leat_is_nan(x, ...) LEAT_OP1("IsNan", x, ##__VA_ARGS__)
#define leat_is_finite(x, ...) LEAT_OP1("IsFinite", x, ##__VA_ARGS__)
#define leat_add(x, y, ...) LEAT_OP2("Add", x, y, ##__VA_ARGS__)
#define leat_sub(x, y, ...) LEAT_OP2("Sub", x, y, ##__VA_ARGS__)
#define leat_mul(x, y, ...) LEAT_OP2("Mul", x, y, ##__VA_ARGS__)
#define leat_div(x, y, ...) LEAT_OP2("RealDiv", x, y, ##__VA_ARGS__)
#define leat_div_no_nan(x, y, ...) LEAT_OP2("DivNoNan", x, y, ##__VA_ARGS__)
#define leat_floor_div(x, y, ...) LEAT_OP2("FloorDiv", x, y, ##__VA_ARGS__)
#define leat_floor_mod(x, y, ...) LEAT_OP2("FloorMod", x, y, ##__VA_ARGS__)
#define leat_truncate_div(x, y, ...) LEAT_OP2("TruncateDiv", x, y, ##__VA_ARGS__)
#define leat_mul_no_nan(x, y, ...) LEAT_OP2("MulNoNan", x, y, ##__VA_ARGS__)
#define leat_xdivy(x, y, ...) LEAT_OP2("Xdivy", x, y, ##__VA_ARGS__)
#define leat_xlogy(x, y, ...) LEAT_OP2("Xlogy", x, y, ##__VA_ARGS__)
#define leat_pow(x, y, ...) LEAT_OP2("Pow", x, y, ##__VA_ARGS__)
#define leat_maximum(x, y, ...) LEAT_OP2("Maximum", x, y, ##__VA_ARGS__)
#define leat_minimum(x, y, ...) LEAT_OP2("Minimum", x, y, ##__VA_ARGS__)
#define leat_squared_difference(x, y, ...) LEAT_OP2("SquaredDifference", x, y, ##__VA_ARGS__)
#define leat_equal(x, y, ...) LEAT_OP2("Equal", x, y, ##__VA_ARGS__)
#define leat_not_equal(x, y, ...) LEAT_OP2("NotEqual", x, y, ##__VA_ARGS__)
#define leat_less(x, y, ...) LEAT_OP2("Less", x, y, ##__VA_ARGS__)
#define leat_less_equal(x, y, ...) LEAT_OP2("LessEqual", x, y, ##__VA_ARGS__)
#define leat_greater(x, y, ...) LEAT_OP2("Greater", x, y, ##__VA_ARGS__)
#define leat_greater_equal(x, y, ...) LEAT_OP2("GreaterEqual", x, y, ##__VA_ARGS__)
#define leat_logical_and(x, y, ...) LEAT_OP2("LogicalAnd", x, y, ##__VA_ARGS__)
#define leat_logical_or(x, y, ...) LEAT_OP2("LogicalOr", x, y, ##__VA_ARGS__)
#define leat_add_n(xs, n, ...) LEAT_OPN("AddN", xs, n, ##__VA_ARGS__)
#define leat_matmul(a, b, ...) LEAT_OP2("MatMul", a, b, ##__VA_ARGS__)
#define leat_batch_matmul(a, b, ...) LEAT_OP2("BatchMatMul", a, b, ##__VA_ARGS__)
#define leat_l2_loss(x, ...) LEAT_OP1("L2Loss", x, ##__VA_ARGS__)
#define leat_arg_max(x, axis, ...) LEAT_OP2("ArgMax", x, axis, ##__VA_ARGS__)
#define leat_arg_min(x, axis, ...) LEAT_OP2("ArgMin", x, axis, ##__VA_ARGS__)
#define leat_cumsum(x, axis, ...) LEAT_OP2("Cumsum", x, axis, ##__VA_ARGS__)
#define leat_cumprod(x, axis, ...) LEAT_OP2("Cumprod", x, axis, ##__VA_ARGS__)
#define leat_segment_sum(x, ids, ...) LEAT_OP2("SegmentSum", x, ids, ##__VA_ARGS__)
#define leat_unsorted_segment_sum(x, ids, n, ...)                                                  \
    LEAT_OP3("UnsortedSegmentSum", x, ids, n, ##__VA_ARGS__)
/* Reductions over the dimensions in `axes`, an int32 vector; keep: leat_attr_bool("keep_dims", 1).
 */
#define leat_sum(x, axes, ...) LEAT_OP2("Sum", x, axes, ##__VA_ARGS__)
#define leat_mean(x, axes, ...) LEAT_OP2("Mean", x, axes, ##__VA_ARGS__)
#define leat_prod(x, axes, ...) LEAT_OP2("Prod", x, axes, ##__VA_ARGS__)
#define leat_max(x, axes, ...) LEAT_OP2("Max", x, axes, ##__VA_ARGS__)
#define leat_min(x, axes, ...) LEAT_OP2("Min", x, axes, ##__VA_ARGS__)
#define leat_all(x, axes, ...) LEAT_OP2("All", x, axes, ##__VA_ARGS__)
#define leat_any(x, axes, ...) LEAT_OP2("Any", x, axes, ##__VA_ARGS__)
/* Over all dimensions. */
LEAT_API leat_out leat_reduce_all_at(leat_loc at, const char *op, leat_out x);
#define leat_reduce_sum(x) leat_reduce_all_at(LEAT_AT, "Sum", x)
#define leat_reduce_mean(x) leat_reduce_all_at(LEAT_AT, "Mean", x)
#define leat_reduce_max(x) leat_reduce_all_at(LEAT_AT, "Max", x)
#define leat_reduce_min(x) leat_reduce_all_at(LEAT_AT, "Min", x)
#define leat_reduce_prod(x) leat_reduce_all_at(LEAT_AT, "Prod", x)
LEAT_API leat_out leat_clip_by_value_at(leat_loc at, leat_out x, double low, double high);
#define leat_clip_by_value(x, low, high) leat_clip_by_value_at(LEAT_AT, x, low, high)

/* ---- Flow ---- */
#define leat_no_op(g, ...) LEAT_OP0(g, "NoOp", ##__VA_ARGS__)
LEAT_API leat_out leat_group_at(leat_loc at, leat_graph *g, const leat_out *x, int n, const char *name);
/* A NoOp that runs when all the given nodes have run. */
#define leat_group(g, ...)                                                                         \
    leat_group_at(LEAT_AT, g, LEAT_ARRAY(leat_out, __VA_ARGS__),                                   \
                  LEAT_COUNT(leat_out, __VA_ARGS__), NULL)

/* ---- Variables (references, as TensorFlow 1 has them by default) ---- */
#define leat_assign(ref, value, ...) LEAT_OP2("Assign", ref, value, ##__VA_ARGS__)
#define leat_assign_add(ref, value, ...) LEAT_OP2("AssignAdd", ref, value, ##__VA_ARGS__)
#define leat_assign_sub(ref, value, ...) LEAT_OP2("AssignSub", ref, value, ##__VA_ARGS__)
#define leat_scatter_update(ref, indices, updates, ...)                                            \
    LEAT_OP3("ScatterUpdate", ref, indices, updates, ##__VA_ARGS__)
#define leat_scatter_add(ref, indices, updates, ...)                                               \
    LEAT_OP3("ScatterAdd", ref, indices, updates, ##__VA_ARGS__)
#define leat_scatter_sub(ref, indices, updates, ...)                                               \
    LEAT_OP3("ScatterSub", ref, indices, updates, ##__VA_ARGS__)

/* ---- Strings ---- */
#define leat_as_string(x, ...) LEAT_OP1("AsString", x, ##__VA_ARGS__)
#define leat_string_join(xs, n, ...) LEAT_OPN("StringJoin", xs, n, ##__VA_ARGS__)

#endif
