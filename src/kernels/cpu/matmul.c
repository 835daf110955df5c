/* matmul.c -- MatMul, _FusedMatMul, BatchMatMul and BatchMatMulV2, by gemm.h. */
#include "kernels/cpu/fused_end.h"

typedef struct matmul_state {
    bool ta, tb; /* transposed; for stacks also conjugated */
    leat_fused_end end;
} matmul_state;

static leat_status matmul_init(const leat_node *n, void *state)
{
    const bool one = strcmp(leat_node_op(n), "MatMul") == 0;
    *(matmul_state *)state = (matmul_state){
        .ta = leat_node_bool(n, one ? "transpose_a" : "adj_x"),
        .tb = leat_node_bool(n, one ? "transpose_b" : "adj_y"),
    };
    return NULL;
}

static leat_status fused_init(const leat_node *n, void *state)
{
    matmul_state *s = state;
    *s = (matmul_state){.ta = leat_node_bool(n, "transpose_a"),
                        .tb = leat_node_bool(n, "transpose_b")};
    return leat_fused_end_init(n, &s->end);
}

static leat_status matmul(leat_kernel *k)
{
    const matmul_state *s = leat_kernel_state(k);
    const leat_tensor *a = leat_kernel_in(k, 0), *b = leat_kernel_in(k, 1);
    for (int i = 0; i < 2; i++) {
        const leat_shape *shape = &leat_kernel_in(k, i)->shape;
        LEAT_REQUIRE(shape->rank == 2, INVALID_ARGUMENT,
                     "In[%d] is not a matrix. Instead it has shape %s", i,
                     leat_shape_show(shape).s);
    }
    const int64_t *da = a->shape.dim, *db = b->shape.dim;
    LEAT_REQUIRE(da[!s->ta] == db[s->tb], INVALID_ARGUMENT,
                 "Matrix size-incompatible: In[0]: %s, In[1]: %s", leat_shape_show(&a->shape).s,
                 leat_shape_show(&b->shape).s);
    leat_shape shape = {.rank = 2, .dim = {da[s->ta], db[!s->tb]}};
    leat_loop_stop stop;
    leat_gemm_epilogue e = {.stop = leat_kernel_stop(k, &stop)};
    LEAT_TRY(leat_fused_end_use(k, &s->end, &shape, &e));
    leat_tensor *c;
    LEAT_TRY(leat_kernel_out(k, 0, &shape, &c));
    leat_gemm(c->dtype, leat_kernel_device(k)->intra, (leat_gemm_op)s->ta, (leat_gemm_op)s->tb,
              shape.dim[0], shape.dim[1], da[!s->ta], a->data, da[1], b->data, db[1], c->data,
              shape.dim[1], &e);
    return NULL;
}

/* ---- Stacks ---- */
typedef struct stack_args {
    const leat_tensor *x, *y;
    leat_tensor *z;
    leat_gemm_op tx, ty;
    int64_t m, n, k, ldx, ldy;
    leat_pool *pool; /* NULL: each product uses one thread, and the stack is split among threads */
    leat_gemm_epilogue e;
    int rank;                   /* of the stack */
    int64_t dim[LEAT_MAX_RANK]; /* of the stack */
    /* Distance, in matrices, to the next of this dimension; 0: broadcast. */
    int64_t x_step[LEAT_MAX_RANK];
    int64_t y_step[LEAT_MAX_RANK];
} stack_args;

static void stack_part(void *arg, int64_t begin, int64_t end)
{
    const stack_args *s = arg;
    const size_t size = leat_dtype_size(s->z->dtype);
    for (int64_t i = begin; i < end; i++) {
        int64_t x = 0, y = 0, rest = i;
        for (int d = s->rank - 1; d >= 0; d--) {
            x += rest % s->dim[d] * s->x_step[d];
            y += rest % s->dim[d] * s->y_step[d];
            rest /= s->dim[d];
        }
        leat_gemm(s->z->dtype, s->pool, s->tx, s->ty, s->m, s->n, s->k,
                  (const char *)s->x->data + (size_t)(x * s->m * s->k) * size, s->ldx,
                  (const char *)s->y->data + (size_t)(y * s->k * s->n) * size, s->ldy,
                  (char *)s->z->data + (size_t)(i * s->m * s->n) * size, s->n, &s->e);
    }
}

static leat_status join_stacks(const leat_shape *x, const leat_shape *y, stack_args *s,
                               leat_shape *out)
{
    out->rank = s->rank = (x->rank > y->rank ? x->rank : y->rank) - 2;
    int64_t nx = 1, ny = 1; /* number of matrices inside the current dimension */
    for (int d = s->rank - 1; d >= 0; d--) {
        const int ix = d - s->rank + x->rank - 2, iy = d - s->rank + y->rank - 2;
        const int64_t a = ix < 0 ? 1 : x->dim[ix], b = iy < 0 ? 1 : y->dim[iy];
        LEAT_REQUIRE(a == b || a == 1 || b == 1, INVALID_ARGUMENT,
                     "In[0] and In[1] must have compatible batch dimensions: %s vs. %s",
                     leat_shape_show(x).s, leat_shape_show(y).s);
        s->dim[d] = out->dim[d] = a == 1 ? b : a;
        s->x_step[d] = a == 1 ? 0 : nx;
        s->y_step[d] = b == 1 ? 0 : ny;
        nx *= a;
        ny *= b;
    }
    return NULL;
}

static leat_status multiply_stacks(leat_kernel *k)
{
    const matmul_state *t = leat_kernel_state(k);
    stack_args s = {.x = leat_kernel_in(k, 0), .y = leat_kernel_in(k, 1)};
    const leat_shape *x = &s.x->shape, *y = &s.y->shape;
    leat_shape out;
    LEAT_TRY(join_stacks(x, y, &s, &out));
    const int64_t *mx = x->dim + x->rank - 2, *my = y->dim + y->rank - 2;
    LEAT_REQUIRE(mx[!t->ta] == my[t->tb], INVALID_ARGUMENT,
                 "In[0] mismatch In[1] shape: %lld vs. %lld: %s %s %d %d", (long long)mx[!t->ta],
                 (long long)my[t->tb], leat_shape_show(x).s, leat_shape_show(y).s, t->ta, t->tb);
    s.m = out.dim[out.rank++] = mx[t->ta];
    s.n = out.dim[out.rank++] = my[!t->tb];
    s.k = mx[!t->ta];
    s.ldx = mx[1];
    s.ldy = my[1];
    s.tx = t->ta ? LEAT_GEMM_H : LEAT_GEMM_N;
    s.ty = t->tb ? LEAT_GEMM_H : LEAT_GEMM_N;
    leat_loop_stop stop;
    s.e.stop = leat_kernel_stop(k, &stop);
    LEAT_TRY(leat_kernel_out(k, 0, &out, &s.z));
    if (!s.z->count)
        return NULL;
    /* Many small products are distributed to threads whole; a few large ones are split inside. */
    const int64_t stack = s.z->count / (s.m * s.n);
    const double work = (double)s.m * (double)s.n * (double)s.k;
    if (stack < 8 && work > 1e6) {
        s.pool = leat_kernel_device(k)->intra;
        stack_part(&s, 0, stack);
    } else {
        leat_kernel_for(k, stack, 0.05 * work + 20, stack_part, &s);
    }
    return NULL;
}

static leat_status batch_matmul(leat_kernel *k)
{
    const leat_shape *x = &leat_kernel_in(k, 0)->shape, *y = &leat_kernel_in(k, 1)->shape;
    LEAT_REQUIRE(x->rank == y->rank, INVALID_ARGUMENT,
                 "In[0] and In[1] has different ndims: %s vs. %s", leat_shape_show(x).s,
                 leat_shape_show(y).s);
    LEAT_REQUIRE(x->rank >= 2, INVALID_ARGUMENT, "In[0] and In[1] ndims must be >= 2: %d", x->rank);
    for (int d = 0; d < x->rank - 2; d++)
        LEAT_REQUIRE(x->dim[d] == y->dim[d], INVALID_ARGUMENT,
                     "In[0].dim(%d) and In[1].dim(%d) must be the same: %s vs %s", d, d,
                     leat_shape_show(x).s, leat_shape_show(y).s);
    return multiply_stacks(k);
}

static leat_status batch_matmul_v2(leat_kernel *k)
{
    for (int i = 0; i < 2; i++) {
        const int rank = leat_kernel_in(k, i)->shape.rank;
        LEAT_REQUIRE(rank >= 2, INVALID_ARGUMENT, "In[%d] ndims must be >= 2: %d", i, rank);
    }
    return multiply_stacks(k);
}

#define KERNEL(op_, fn)                                                                            \
    {                                                                                              \
        .op = op_, .where = {{"T", LEAT_ROW_FLOAT | LEAT_ROW_INDEX | LEAT_TYPES_COMPLEX}},         \
        .run = fn, .state_size = sizeof(matmul_state), .init = matmul_init,                        \
        .flags = LEAT_KERNEL_VIA_FLOAT | LEAT_KERNEL_EXPENSIVE                                     \
    }

const leat_kernel_def leat_cpu_matmul[] = {
    KERNEL("MatMul", matmul),
    {.op = "_FusedMatMul",
     .where = {{"T", LEAT_T(FLOAT)}},
     .run = matmul,
     .state_size = sizeof(matmul_state),
     .init = fused_init,
     .flags = LEAT_KERNEL_EXPENSIVE},
    KERNEL("BatchMatMul", batch_matmul),
    KERNEL("BatchMatMulV2", batch_matmul_v2),
    {0},
};
