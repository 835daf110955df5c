/* gemm.c -- products of matrices: chooses the tiles, copies B to panels, and multiplies. */
#include "kernels/opencl/gemm.h"

#include <stdio.h>

#include "kernels/opencl/tune.h"
#include "kernels/opencl/walk.h"

extern const leat_cl_text leat_cl_text_gemm;
static const leat_cl_text *const texts[] = {&leat_cl_text_gemm, NULL};

enum { GPU_TILE = 64, GPU_GROUP = 16 };

static leat_status fits(int64_t x)
{
    LEAT_REQUIRE(x <= INT32_MAX, UNIMPLEMENTED,
                 "kernels of GPUs count to 2**31 - 1, and a product here has %lld elements",
                 (long long)x);
    return NULL;
}

static leat_status pack(leat_kernel *k, const leat_cl_product *p, const leat_cl_tiles *t,
                        int64_t depth, leat_tensor **out)
{
    const int64_t panels = (p->n + t->width - 1) / t->width;
    const leat_shape shape = leat_shape(panels * depth * t->width);
    LEAT_TRY(leat_kernel_temp(k, LEAT_FLOAT, &shape, out));
    leat_cl_launch l = leat_cl_begin(leat_cl_of(k), texts, t->options, "pack");
    leat_cl_at(&l, p->b);
    leat_cl_tensor(&l, *out);
    leat_cl_int(&l, p->b_down);
    leat_cl_int(&l, p->b_right);
    leat_cl_int(&l, depth);
    leat_cl_int(&l, p->n);
    return leat_cl_each(&l, panels * depth, t->width);
}

leat_status leat_cl_gemm(leat_kernel *k, const leat_cl_product *p)
{
    leat_opencl *d = leat_cl_of(k);
    const int64_t depth = p->parts * p->left.len;
    leat_tensor *packed;
    if (!p->m || !p->n)
        return NULL;
    if (!depth && p->add)
        return NULL;
    if (!depth) {
        LEAT_REQUIRE(p->ldc == p->n, INTERNAL, "a product without depth has gaps");
        return leat_cl_fill(d, p->c, p->m * p->n, sizeof(float), NULL);
    }
    LEAT_TRY(fits(p->m * p->ldc));
    LEAT_TRY(fits(depth * p->n));
    const leat_cl_tiles *t;
    LEAT_TRY(leat_cl_tiles_for(k, p->n, &t));
    LEAT_TRY(pack(k, p, t, depth, &packed));
    leat_cl_launch l = leat_cl_begin(d, texts, t->options, "gemm");
    leat_cl_at(&l, p->a);
    leat_cl_tensor(&l, packed);
    leat_cl_at(&l, p->c);
    leat_cl_bytes(&l, &p->left, sizeof p->left);
    leat_cl_int(&l, p->m);
    leat_cl_int(&l, p->n);
    leat_cl_int(&l, p->parts);
    leat_cl_int(&l, p->ldc);
    leat_cl_int(&l, !p->add);
    if (d->listed->on_cpu)
        return leat_cl_each(&l, (p->m + t->rows - 1) / t->rows,
                            0.02 * (double)t->rows * (double)p->n * (double)depth);
    const int64_t groups[2] = {(p->n + GPU_TILE - 1) / GPU_TILE, (p->m + GPU_TILE - 1) / GPU_TILE};
    return leat_cl_groups(&l, groups, (int64_t[]){GPU_GROUP, GPU_GROUP});
}

leat_status leat_cl_matmul(leat_kernel *k, int64_t m, int64_t n, int64_t depth, const void *a,
                           int64_t a_down, int64_t a_right, const void *b, int64_t b_down,
                           int64_t b_right, void *c)
{
    LEAT_TRY(fits(m * depth));
    leat_cl_product p = {.m = m,
                         .n = n,
                         .parts = 1,
                         .left = {.rows = leat_cl_digit(a_down),
                                  .parts = leat_cl_digit(0),
                                  .len = (int32_t)depth,
                                  .by = (int32_t)a_right},
                         .a = a,
                         .b = b,
                         .b_down = b_down,
                         .b_right = b_right,
                         .c = c,
                         .ldc = n};
    return leat_cl_gemm(k, &p);
}
