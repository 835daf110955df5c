/* sum_of_products.c -- _SumOfProducts: the sum of the products of pairs of matrices, the left ones
 * transposed. The rows of some pairs at a time are gathered, and multiplied as one pair. */
#include "kernels/cpu/cpu.h"
#include "kernels/cpu/gemm.h"

enum { DEPTH = 512 }; /* rows that are gathered at a time, unless a pair has more */

typedef struct part {
    leat_kernel *k;
    int begin, end; /* pairs */
    int64_t m, n;   /* columns of left and right matrices */
    float *left, *right;
} part;

/* Copies the rows of pairs [begin, end), numbered from the part's first. */
static void gather(void *arg, int64_t begin, int64_t end)
{
    const part *p = arg;
    const int pairs = leat_kernel_inputs(p->k) / 2;
    int64_t row = 0;
    for (int i = p->begin; i < p->begin + end; i++) {
        const leat_tensor *a = leat_kernel_in(p->k, i), *b = leat_kernel_in(p->k, pairs + i);
        if (i >= p->begin + begin) {
            memcpy(p->left + row * p->m, a->data, leat_tensor_bytes(a));
            memcpy(p->right + row * p->n, b->data, leat_tensor_bytes(b));
        }
        row += a->shape.dim[0];
    }
}

static leat_status check(leat_kernel *k, int pairs, int64_t m, int64_t n)
{
    for (int i = 0; i < pairs; i++) {
        const leat_shape *a = &leat_kernel_in(k, i)->shape;
        const leat_shape *b = &leat_kernel_in(k, pairs + i)->shape;
        LEAT_REQUIRE(a->rank == 2 && b->rank == 2 && a->dim[0] == b->dim[0], INVALID_ARGUMENT,
                     "Matrix size-incompatible: In[0]: %s, In[1]: %s", leat_shape_show(a).s,
                     leat_shape_show(b).s);
        LEAT_REQUIRE(a->dim[1] == m && b->dim[1] == n, INVALID_ARGUMENT,
                     "Products of a sum must have one shape: [%lld,%lld] != [%lld,%lld]",
                     (long long)m, (long long)n, (long long)a->dim[1], (long long)b->dim[1]);
    }
    return NULL;
}

static int64_t rows_of(leat_kernel *k, int pair)
{
    return leat_kernel_in(k, pair)->shape.dim[0];
}

/* Pairs from `begin` on whose rows are gathered together; at least one. */
static int end_of_part(leat_kernel *k, int begin, int pairs, int64_t *rows)
{
    int end = begin + 1;
    for (*rows = rows_of(k, begin); end < pairs && *rows + rows_of(k, end) <= DEPTH; end++)
        *rows += rows_of(k, end);
    return end;
}

static leat_status temp(leat_kernel *k, int64_t rows, int64_t columns, float **out)
{
    leat_tensor *t;
    const leat_shape s = leat_shape(rows, columns);
    LEAT_TRY(leat_kernel_temp(k, LEAT_FLOAT, &s, &t));
    *out = t->data;
    return NULL;
}

static leat_status sum_of_products(leat_kernel *k)
{
    const int pairs = leat_kernel_inputs(k) / 2;
    const leat_shape *a = &leat_kernel_in(k, 0)->shape, *b = &leat_kernel_in(k, pairs)->shape;
    const int64_t m = a->rank == 2 ? a->dim[1] : 0, n = b->rank == 2 ? b->dim[1] : 0;
    LEAT_TRY(check(k, pairs, m, n));
    int64_t rows, most = 0;
    for (int i = 0; i < pairs;) {
        i = end_of_part(k, i, pairs, &rows);
        most = rows > most ? rows : most;
    }
    part p = {.k = k, .m = m, .n = n};
    LEAT_TRY(temp(k, most, m, &p.left));
    LEAT_TRY(temp(k, most, n, &p.right));
    leat_tensor *c;
    LEAT_TRY(leat_kernel_out(k, 0, &(leat_shape){.rank = 2, .dim = {m, n}}, &c));
    for (int i = 0; i < pairs && !leat_kernel_cancelled(k); i = p.end) {
        p.begin = i;
        p.end = end_of_part(k, i, pairs, &rows);
        const int64_t count = p.end - p.begin;
        leat_kernel_for(k, count, 0.1 * (double)(rows / count * (m + n)), gather, &p);
        leat_loop_stop stop;
        const leat_gemm_epilogue e = {.accumulate = i > 0, .stop = leat_kernel_stop(k, &stop)};
        leat_gemm_f32(leat_kernel_device(k)->intra, LEAT_GEMM_T, LEAT_GEMM_N, m, n, rows, p.left, m,
                      p.right, n, c->data, n, &e);
    }
    return NULL;
}

const leat_kernel_def leat_cpu_sum_of_products[] = {
    {.op = "_SumOfProducts",
     .where = {{"T", LEAT_T(FLOAT)}},
     .run = sum_of_products,
     .flags = LEAT_KERNEL_EXPENSIVE},
    {0},
};
