/* matmul.c -- products of matrices: MatMul, and of stacks of matrices: BatchMatMul, whose stacks
 * are of one shape, and BatchMatMulV2, whose stacks broadcast. */
#include <leat/extend.h>
#include <leat/ops.h>

#include "core/buffer.h"

static leat_status matmul_shape(leat_infer *c)
{
    const leat_node *n = leat_infer_node(c);
    const bool ta = leat_node_bool(n, "transpose_a"), tb = leat_node_bool(n, "transpose_b");
    leat_shape a, b;
    int64_t inner;
    LEAT_TRY(leat_infer_rank(c, 0, 2, &a));
    LEAT_TRY(leat_infer_rank(c, 1, 2, &b));
    LEAT_TRY(leat_dim_merge(a.dim[!ta], b.dim[tb], &inner));
    leat_infer_out(c, 0, leat_shape(a.dim[ta], b.dim[!tb]));
    return NULL;
}

typedef leat_status (*join_fn)(const leat_shape *a, const leat_shape *b, leat_shape *out);

/* The shapes of the stacks are merged or broadcast. */
static leat_status batch_shape(leat_infer *c, join_fn join)
{
    const leat_node *n = leat_infer_node(c);
    const bool ax = leat_node_bool(n, "adj_x"), ay = leat_node_bool(n, "adj_y");
    leat_shape x, y, out;
    LEAT_TRY(leat_infer_rank_at_least(c, 0, 2, &x));
    LEAT_TRY(leat_infer_rank_at_least(c, 1, 2, &y));
    if (x.rank < 0 || y.rank < 0) {
        leat_infer_out(c, 0, leat_shape_unknown());
        return NULL;
    }
    const int64_t *mx = x.dim + x.rank - 2, *my = y.dim + y.rank - 2;
    int64_t inner;
    leat_shape stack_x = leat_shape_make(x.rank - 2, x.dim);
    leat_shape stack_y = leat_shape_make(y.rank - 2, y.dim);
    LEAT_TRY(leat_dim_merge(mx[!ax], my[ay], &inner));
    LEAT_TRY(join(&stack_x, &stack_y, &out));
    out.dim[out.rank++] = mx[ax];
    out.dim[out.rank++] = my[!ay];
    leat_infer_out(c, 0, out);
    return NULL;
}

static leat_status sum_shape(leat_infer *c)
{
    leat_shape a, b;
    LEAT_TRY(leat_infer_rank(c, 0, 2, &a));
    LEAT_TRY(leat_infer_rank(c, leat_infer_inputs(c) / 2, 2, &b));
    leat_infer_out(c, 0, leat_shape(a.dim[1], b.dim[1]));
    return NULL;
}

static leat_status batch_matmul_shape(leat_infer *c)
{
    return batch_shape(c, leat_shape_merge);
}

static leat_status batch_matmul_v2_shape(leat_infer *c)
{
    return batch_shape(c, leat_shape_broadcast);
}

/* dx and dy of z = op(x) op(y), where op is a transposition or nothing: each is a product of dz and
 * the other factor, whose order and transpositions follow from those of z. */
typedef struct product {
    leat_out x, y, dz;
    bool tx, ty; /* transposed */
    const char *op, *attr_x, *attr_y;
} product;

static leat_out multiply(const product *p, leat_out a, leat_out b, bool ta, bool tb)
{
    return LEAT_OP2(p->op, a, b, leat_attr_bool(p->attr_x, ta), leat_attr_bool(p->attr_y, tb));
}

static leat_out by_x(const product *p)
{
    return p->tx ? multiply(p, p->y, p->dz, p->ty, true) : multiply(p, p->dz, p->y, false, !p->ty);
}

static leat_out by_y(const product *p)
{
    return p->ty ? multiply(p, p->dz, p->x, true, p->tx) : multiply(p, p->x, p->dz, !p->tx, false);
}

static product product_of(leat_grad *g, const char *attr_x, const char *attr_y)
{
    const leat_node *n = leat_grad_node(g);
    return (product){leat_grad_input(g, 0),
                     leat_grad_input(g, 1),
                     leat_grad_out(g, 0),
                     leat_node_bool(n, attr_x),
                     leat_node_bool(n, attr_y),
                     leat_node_op(n),
                     attr_x,
                     attr_y};
}

static leat_status matmul_grad(leat_grad *g)
{
    product p = product_of(g, "transpose_a", "transpose_b");
    p.x = leat_conj(p.x); /* BatchMatMul's adjoint conjugates, MatMul's transposition does not */
    p.y = leat_conj(p.y);
    if (leat_grad_wants(g, 0))
        LEAT_TRY(leat_grad_in(g, 0, by_x(&p)));
    return leat_grad_wants(g, 1) ? leat_grad_in(g, 1, by_y(&p)) : NULL;
}

static leat_status batch_matmul_grad(leat_grad *g)
{
    const product p = product_of(g, "adj_x", "adj_y");
    if (leat_grad_wants(g, 0))
        LEAT_TRY(leat_grad_in(g, 0, by_x(&p)));
    return leat_grad_wants(g, 1) ? leat_grad_in(g, 1, by_y(&p)) : NULL;
}

/* A shape without its last two dimensions. */
static leat_out stack_of(leat_out shape)
{
    leat_graph *g = leat_node_graph(shape.node);
    return leat_strided_slice(shape, leat_ints(g, 0), leat_ints(g, -2), leat_ints(g, 1),
                              leat_attr_int("begin_mask", 1));
}

/* Sums over the stack dimensions along which a factor was broadcast. */
static leat_status batch_matmul_v2_grad(leat_grad *g)
{
    const product p = product_of(g, "adj_x", "adj_y");
    leat_shape x = leat_out_shape(p.x), y = leat_out_shape(p.y);
    bool same = x.rank >= 2 && x.rank == y.rank;
    for (int d = 0; same && d < x.rank - 2; d++)
        same = x.dim[d] >= 0 && x.dim[d] == y.dim[d];
    if (same || (x.rank == 2 && y.rank == 2))
        return batch_matmul_grad(g);
    leat_out sx = leat_shape_of(p.x), sy = leat_shape_of(p.y);
    leat_out axes = leat_broadcast_gradient_args(stack_of(sx), stack_of(sy));
    if (leat_grad_wants(g, 0))
        LEAT_TRY(leat_grad_in(g, 0, leat_reshape(leat_sum(by_x(&p), axes), sx)));
    if (leat_grad_wants(g, 1))
        LEAT_TRY(leat_grad_in(g, 1, leat_reshape(leat_sum(by_y(&p), leat_output(axes, 1)), sy)));
    return NULL;
}

#define TYPES "T: {bfloat16, half, float, double, int32, int64, complex64, complex128}"

const leat_op_def leat_ops_matmul[] = {
    {.name = "MatMul",
     .inputs = "a: T, b: T",
     .outputs = "product: T",
     .attrs = "transpose_a: bool = false; transpose_b: bool = false; " TYPES,
     .shape = matmul_shape,
     .grad = matmul_grad,
     .role = LEAT_ROLE_PRODUCT,
     .fused = "_FusedMatMul"},
    /* Made by the fuse pass from a MatMul, a BiasAdd and an activation. */
    {.name = "_FusedMatMul",
     .inputs = "a: T, b: T, args: num_args * T",
     .outputs = "product: T",
     .attrs = "transpose_a: bool = false; transpose_b: bool = false; T: {float}; "
              "num_args: int >= 0; fused_ops: list(string) = []; epsilon: float = 0.0001",
     .shape = matmul_shape,
     .grad = leat_grad_missing},
    /* Made by passes/fuse_products.c: the sum of the products of each a, transposed, and its b. */
    {.name = "_SumOfProducts",
     .inputs = "a: N * T, b: N * T",
     .outputs = "sum: T",
     .attrs = "N: int >= 1; T: {float}",
     .shape = sum_shape,
     .grad = leat_grad_missing},
    {.name = "BatchMatMul",
     .inputs = "x: T, y: T",
     .outputs = "output: T",
     .attrs = TYPES "; adj_x: bool = false; adj_y: bool = false",
     .shape = batch_matmul_shape,
     .grad = batch_matmul_grad},
    {.name = "BatchMatMulV2",
     .inputs = "x: T, y: T",
     .outputs = "output: T",
     .attrs = TYPES "; adj_x: bool = false; adj_y: bool = false",
     .shape = batch_matmul_v2_shape,
     .grad = batch_matmul_v2_grad},
    {0},
};
