/* matmul.c -- MatMul, _FusedMatMul, BatchMatMul and BatchMatMulV2. */
#include "kernels/opencl/gemm.h"
#include "kernels/opencl/walk.h"

typedef struct matmul_state {
    bool ta, tb;
    leat_cl_fused fused;
} matmul_state;

static leat_status init(const leat_node *n, void *state)
{
    const bool one = strcmp(leat_node_op(n), "MatMul") == 0;
    *(matmul_state *)state = (matmul_state){.ta = leat_node_bool(n, one ? "transpose_a" : "adj_x"),
                                            .tb = leat_node_bool(n, one ? "transpose_b" : "adj_y")};
    return NULL;
}

static leat_status fused_init(const leat_node *n, void *state)
{
    matmul_state *s = state;
    s->ta = leat_node_bool(n, "transpose_a");
    s->tb = leat_node_bool(n, "transpose_b");
    return leat_cl_fused_init(n, &s->fused);
}

/* The product of a matrix with sizes da and one with sizes db, as they are stored. */
static leat_cl_product product_of(const matmul_state *s, const int64_t *da, const void *a,
                                  const int64_t *db, const void *b, void *c)
{
    return (leat_cl_product){.m = da[s->ta],
                             .n = db[!s->tb],
                             .parts = 1,
                             .left = {.rows = leat_cl_digit(s->ta ? 1 : da[1]),
                                      .parts = leat_cl_digit(0),
                                      .len = (int32_t)da[!s->ta],
                                      .by = (int32_t)(s->ta ? da[1] : 1)},
                             .a = a,
                             .b = b,
                             .b_down = s->tb ? 1 : db[1],
                             .b_right = s->tb ? db[1] : 1,
                             .c = c,
                             .ldc = db[!s->tb]};
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
    const leat_shape shape = leat_shape(da[s->ta], db[!s->tb]);
    leat_tensor *c;
    leat_cl_end end;
    LEAT_TRY(leat_cl_fused_end(k, &s->fused, &shape, &end));
    LEAT_TRY(leat_kernel_out(k, 0, &shape, &c));
    LEAT_TRY(leat_cl_countable(a->count));
    leat_cl_product p = product_of(s, da, a->data, db, b->data, c->data);
    p.end = end;
    return leat_cl_gemm(k, &p);
}

/* ---- Stacks ---- */

static leat_status stacks_check(leat_kernel *k, const matmul_state *s)
{
    const leat_shape *x = &leat_kernel_in(k, 0)->shape, *y = &leat_kernel_in(k, 1)->shape;
    LEAT_REQUIRE(x->rank >= 2 && y->rank >= 2, INVALID_ARGUMENT, "In[%d] ndims must be >= 2: %d",
                 x->rank >= 2, x->rank >= 2 ? y->rank : x->rank);
    const int64_t kx = x->dim[x->rank - 2 + !s->ta], ky = y->dim[y->rank - 2 + s->tb];
    LEAT_REQUIRE(kx == ky, INVALID_ARGUMENT,
                 "In[0] mismatch In[1] shape: %lld vs. %lld: %s %s %d %d", (long long)kx,
                 (long long)ky, leat_shape_show(x).s, leat_shape_show(y).s, s->ta, s->tb);
    if (strcmp(leat_node_op(leat_kernel_node(k)), "BatchMatMul") != 0)
        return NULL;
    LEAT_REQUIRE(x->rank == y->rank, INVALID_ARGUMENT,
                 "In[0] and In[1] has different ndims: %s vs. %s", leat_shape_show(x).s,
                 leat_shape_show(y).s);
    for (int d = 0; d < x->rank - 2; d++)
        LEAT_REQUIRE(x->dim[d] == y->dim[d], INVALID_ARGUMENT,
                     "In[0].dim(%d) and In[1].dim(%d) must be the same: %s vs %s", d, d,
                     leat_shape_show(x).s, leat_shape_show(y).s);
    return NULL;
}

static leat_status batch_matmul(leat_kernel *k)
{
    const matmul_state *s = leat_kernel_state(k);
    const leat_tensor *x = leat_kernel_in(k, 0), *y = leat_kernel_in(k, 1);
    leat_cl_walk w;
    leat_shape shape;
    leat_tensor *z;
    LEAT_TRY(stacks_check(k, s));
    leat_shape sx = x->shape, sy = y->shape;
    const int64_t *da = x->shape.dim + (sx.rank -= 2), *db = y->shape.dim + (sy.rank -= 2);
    leat_status bad = leat_cl_broadcast(&sx, &sy, &w, &shape);
    if (bad && leat_status_code(bad) == LEAT_INVALID_ARGUMENT) {
        leat_status_free(bad);
        return leat_error(INVALID_ARGUMENT,
                          "In[0] and In[1] must have compatible batch dimensions: %s vs. %s",
                          leat_shape_show(&x->shape).s, leat_shape_show(&y->shape).s);
    }
    if (bad)
        return bad;
    const int64_t stacked = leat_shape_count(&shape);
    LEAT_REQUIRE(shape.rank + 2 <= LEAT_MAX_RANK, INVALID_ARGUMENT, "too many dimensions");
    shape.dim[shape.rank++] = da[s->ta];
    shape.dim[shape.rank++] = db[!s->tb];
    LEAT_TRY(leat_kernel_out(k, 0, &shape, &z));
    if (!z->count)
        return NULL;
    const int64_t m = da[0] * da[1], n = db[0] * db[1], c = da[s->ta] * db[!s->tb];
    LEAT_TRY(leat_cl_countable(m));
    leat_cl_product p = product_of(s, da, x->data, db, y->data, z->data);
    /* The innermost dimension of the stack is one launch. */
    const int last = w.rank - 1;
    if (last >= 0) {
        p.batch = w.dim[last];
        p.a_step = w.a[last] * m;
        p.b_step = w.b[last] * n;
        p.c_step = c;
    }
    const int64_t launches = stacked / (last >= 0 ? p.batch : 1);
    for (int64_t i = 0; i < launches; i++) {
        int64_t at_x = 0, at_y = 0, rest = i;
        for (int d = last - 1; d >= 0; d--) {
            at_x += rest % w.dim[d] * w.a[d];
            at_y += rest % w.dim[d] * w.b[d];
            rest /= w.dim[d];
        }
        p.a = (const float *)x->data + at_x * m;
        p.b = (const float *)y->data + at_y * n;
        p.c = (float *)z->data + i * c * (last >= 0 ? p.batch : 1);
        LEAT_TRY(leat_cl_gemm(k, &p));
    }
    return NULL;
}

#define ROW(name, run_)                                                                            \
    {                                                                                              \
        .op = name, .where = {{"T", LEAT_T(FLOAT)}}, .run = run_, .init = init,                    \
        .state_size = sizeof(matmul_state)                                                         \
    }

const leat_kernel_def leat_opencl_matmul[] = {
    ROW("MatMul", matmul),
    {.op = "_FusedMatMul",
     .where = {{"T", LEAT_T(FLOAT)}},
     .run = matmul,
     .init = fused_init,
     .state_size = sizeof(matmul_state)},
    ROW("BatchMatMul", batch_matmul),
    ROW("BatchMatMulV2", batch_matmul),
    {0},
};
