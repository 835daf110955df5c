/* matmul.c -- MatMul, BatchMatMul and BatchMatMulV2. */
#include "kernels/opencl/gemm.h"
#include "kernels/opencl/walk.h"

typedef struct matmul_state {
    bool ta, tb;
} matmul_state;

static leat_status init(const leat_node *n, void *state)
{
    const bool one = strcmp(leat_node_op(n), "MatMul") == 0;
    *(matmul_state *)state = (matmul_state){leat_node_bool(n, one ? "transpose_a" : "adj_x"),
                                            leat_node_bool(n, one ? "transpose_b" : "adj_y")};
    return NULL;
}

/* The product of a matrix with sizes da and one with sizes db, as they are stored. */
static leat_status multiply(leat_kernel *k, const matmul_state *s, const int64_t *da, const void *a,
                            const int64_t *db, const void *b, void *c)
{
    return leat_cl_matmul(k, da[s->ta], db[!s->tb], da[!s->ta], a, s->ta ? 1 : da[1],
                          s->ta ? da[1] : 1, b, s->tb ? 1 : db[1], s->tb ? db[1] : 1, c);
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
    LEAT_TRY(leat_kernel_out(k, 0, &shape, &c));
    return multiply(k, s, da, a->data, db, b->data, c->data);
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
    const int64_t m = da[0] * da[1], n = db[0] * db[1], c = da[s->ta] * db[!s->tb];
    for (int64_t i = 0; i < stacked && z->count; i++) {
        int64_t at_x = 0, at_y = 0, rest = i;
        for (int d = w.rank - 1; d >= 0; d--) {
            at_x += rest % w.dim[d] * w.a[d];
            at_y += rest % w.dim[d] * w.b[d];
            rest /= w.dim[d];
        }
        LEAT_TRY(multiply(k, s, da, (const float *)x->data + at_x * m, db,
                          (const float *)y->data + at_y * n, (float *)z->data + i * c));
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
    ROW("BatchMatMul", batch_matmul),
    ROW("BatchMatMulV2", batch_matmul),
    {0},
};
