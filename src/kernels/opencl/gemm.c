/* gemm.c -- products of matrices: chooses the tiles, copies B to panels, and multiplies. */
#include "kernels/opencl/gemm.h"

#include <stdio.h>

#include "kernels/opencl/tune.h"
#include "kernels/opencl/walk.h"

extern const leat_cl_text leat_cl_text_gemm, leat_cl_text_expressions;
static const leat_cl_text *const texts[] = {&leat_cl_text_gemm, NULL};
static const leat_cl_text *const texts_of_end[] = {&leat_cl_text_expressions, &leat_cl_text_gemm,
                                                   NULL};

enum { GPU_GROUP = 16 }; /* work items in both directions */

leat_status leat_cl_countable(int64_t x)
{
    LEAT_REQUIRE(x <= INT32_MAX, UNIMPLEMENTED,
                 "kernels of GPUs count to 2**31 - 1, and a product here has %lld elements",
                 (long long)x);
    return NULL;
}

/* Begins a function of gemm.cl, compiled for the product's end. */
static leat_cl_launch begin(leat_opencl *d, const leat_cl_product *p, const leat_cl_tiles *t,
                            const char *function)
{
    char options[160];
    if (!p->end.bias)
        return leat_cl_begin(d, texts, t->options, function);
    snprintf(options, sizeof options, "%s -DACT=%s%s", t->options, p->end.op ? "EXPR_" : "",
             p->end.op ? p->end.op : "");
    return leat_cl_begin(d, texts_of_end, options, function);
}

static leat_status pack(leat_kernel *k, const leat_cl_product *p, const leat_cl_tiles *t,
                        int64_t depth, int64_t batch, leat_tensor **out)
{
    const int64_t panels = (p->n + t->width - 1) / t->width;
    const leat_shape shape = leat_shape(batch * panels * depth * t->width);
    LEAT_TRY(leat_kernel_temp(k, LEAT_FLOAT, &shape, out));
    leat_cl_launch l = leat_cl_begin(leat_cl_of(k), texts, t->options, "pack");
    leat_cl_at(&l, p->b);
    leat_cl_tensor(&l, *out);
    leat_cl_int(&l, p->b_down);
    leat_cl_int(&l, p->b_right);
    leat_cl_int(&l, depth);
    leat_cl_int(&l, p->n);
    leat_cl_int(&l, batch);
    leat_cl_int(&l, p->b_step);
    return leat_cl_each(&l, batch * panels * depth, t->width);
}

/* A product of no terms: C is zero, or the end of it. */
static leat_status multiply_nothing(leat_opencl *d, const leat_cl_product *p,
                                    const leat_cl_tiles *t)
{
    if (p->add)
        return NULL;
    LEAT_REQUIRE(p->ldc == p->n && (p->batch <= 1 || p->c_step == p->m * p->n), INTERNAL,
                 "a product without depth has gaps");
    const int64_t rows = p->m * (p->batch ? p->batch : 1);
    LEAT_TRY(leat_cl_fill(d, p->c, rows * p->n, sizeof(float), NULL));
    if (!p->end.bias)
        return NULL;
    leat_cl_launch l = begin(d, p, t, "finish");
    leat_cl_at(&l, p->c);
    leat_cl_at(&l, p->end.bias);
    leat_cl_int(&l, rows);
    leat_cl_int(&l, p->n);
    leat_cl_int(&l, p->ldc);
    return leat_cl_each(&l, rows, (double)p->n);
}

leat_status leat_cl_gemm_by(leat_opencl *d, const leat_cl_product *p, const leat_cl_tiles *t)
{
    const int64_t depth = p->parts * p->left.len, batch = p->batch ? p->batch : 1;
    const int64_t wide[4] = {batch, p->a_step, p->b_step, p->c_step};
    int32_t steps[4];
    for (int i = 0; i < 4; i++) {
        LEAT_TRY(leat_cl_countable(wide[i]));
        steps[i] = (int32_t)wide[i];
    }
    leat_cl_launch l = begin(d, p, t, "gemm");
    leat_cl_at(&l, p->a);
    leat_cl_at(&l, p->panels);
    leat_cl_at(&l, p->c);
    leat_cl_bytes(&l, &p->left, sizeof p->left);
    leat_cl_bytes(&l, steps, sizeof steps);
    leat_cl_int(&l, p->m);
    leat_cl_int(&l, p->n);
    leat_cl_int(&l, p->parts);
    leat_cl_int(&l, p->ldc);
    leat_cl_int(&l, !p->add);
    if (p->end.bias)
        leat_cl_at(&l, p->end.bias);
    const int64_t down = (p->m + t->rows - 1) / t->rows;
    if (d->listed->on_cpu)
        return leat_cl_each(&l, batch * down,
                            0.02 * (double)t->rows * (double)p->n * (double)depth);
    const int64_t groups[2] = {(p->n + t->width - 1) / t->width, batch * down};
    return leat_cl_groups(&l, groups, (int64_t[]){GPU_GROUP, GPU_GROUP});
}

leat_status leat_cl_gemm(leat_kernel *k, const leat_cl_product *p)
{
    const int64_t depth = p->parts * p->left.len;
    leat_cl_product q = *p;
    const leat_cl_tiles *t;
    if (!p->m || !p->n)
        return NULL;
    LEAT_TRY(leat_cl_tiles_for(leat_cl_of(k), p->n, &t));
    if (!depth)
        return multiply_nothing(leat_cl_of(k), p, t);
    const int64_t panel = depth * ((p->n + t->width - 1) / t->width * t->width);
    LEAT_TRY(leat_cl_countable(p->m * p->ldc));
    LEAT_TRY(leat_cl_countable(panel));
    if (!p->panels) {
        const int64_t several = p->b_step && p->batch ? p->batch : 1;
        leat_tensor *packed;
        LEAT_TRY(pack(k, p, t, depth, several, &packed));
        q.panels = packed->data;
        q.b_step = several > 1 ? panel : 0;
    }
    return leat_cl_gemm_by(leat_cl_of(k), &q, t);
}

leat_status leat_cl_pack(leat_kernel *k, leat_cl_product *p)
{
    const int64_t depth = p->parts * p->left.len;
    const leat_cl_tiles *t;
    leat_tensor *packed;
    if (!depth || !p->n)
        return NULL;
    LEAT_TRY(leat_cl_tiles_for(leat_cl_of(k), p->n, &t));
    LEAT_TRY(pack(k, p, t, depth, 1, &packed));
    p->panels = packed->data;
    return NULL;
}
