/* row2.c -- merging dimensions, and the walk over them with a row function inside. */
#include "kernels/cpu/row2.h"

#include <stdatomic.h>

leat_status leat_broadcast_init(leat_broadcast *c, const leat_shape *a, const leat_shape *b)
{
    const int rank = a->rank > b->rank ? a->rank : b->rank;
    c->out.rank = rank;
    c->count = 1;
    c->rank = 0;
    int64_t na = 1, nb = 1; /* elements of a and b inside of the dimension at hand */
    /* Inner first here; turned round at the end. */
    for (int i = 1; i <= rank; i++) {
        const int64_t x = i <= a->rank ? a->dim[a->rank - i] : 1;
        const int64_t y = i <= b->rank ? b->dim[b->rank - i] : 1;
        LEAT_REQUIRE(x == y || x == 1 || y == 1, INVALID_ARGUMENT, "Incompatible shapes: %s vs. %s",
                     leat_shape_show(a).s, leat_shape_show(b).s);
        const int64_t z = x == 1 ? y : x;
        c->out.dim[rank - i] = z;
        LEAT_REQUIRE(leat_mul_ok(c->count, z, &c->count), INVALID_ARGUMENT,
                     "Broadcast of %s and %s has too many elements", leat_shape_show(a).s,
                     leat_shape_show(b).s);
        if (z == 1)
            continue;
        const int64_t sa = x == 1 ? 0 : na, sb = y == 1 ? 0 : nb;
        const int p = c->rank - 1;
        if (p >= 0 && sa == c->a_step[p] * c->dim[p] && sb == c->b_step[p] * c->dim[p]) {
            c->dim[p] *= z;
        } else {
            c->dim[c->rank] = z;
            c->a_step[c->rank] = sa;
            c->b_step[c->rank++] = sb;
        }
        na *= x;
        nb *= y;
    }
    if (!c->rank) {
        c->rank = 1;
        c->dim[0] = c->a_step[0] = c->b_step[0] = 1;
    }
    for (int i = 0, j = c->rank - 1; i < j; i++, j--) {
        const int64_t d = c->dim[i], sa = c->a_step[i], sb = c->b_step[i];
        c->dim[i] = c->dim[j], c->a_step[i] = c->a_step[j], c->b_step[i] = c->b_step[j];
        c->dim[j] = d, c->a_step[j] = sa, c->b_step[j] = sb;
    }
    return NULL;
}

void leat_row2_bind(const leat_node *n, const leat_row2_fn *fns, double unit_ns, const char *error,
                    void *state)
{
    const leat_dtype t = leat_dtype_base(leat_out_dtype(leat_node_input(n, 0)));
    *(leat_row2 *)state = (leat_row2){fns[leat_compute_dtype(t)], (float)unit_ns, error};
}

typedef struct walk_args {
    const leat_broadcast *c;
    leat_row2_fn fn;
    const char *a, *b;
    char *z;
    int64_t in_size, out_size; /* bytes of an element */
    atomic_bool bad;
} walk_args;

enum { CHUNK = 512 }; /* elements that are gathered at a time where rows are short */

/* The operand's elements [begin, begin + n) of the output's order, copied next to each other. */
static void gather(const leat_broadcast *c, const int64_t *step, const char *src, int64_t size,
                   int64_t begin, int64_t n, char *dst)
{
    int64_t at[LEAT_MAX_RANK], from = 0, rest = begin;
    for (int d = c->rank - 1; d >= 0; d--) {
        at[d] = rest % c->dim[d];
        rest /= c->dim[d];
        from += at[d] * step[d];
    }
    const int last = c->rank - 1;
    while (n > 0) {
        int64_t row = c->dim[last] - at[last];
        row = row < n ? row : n;
        switch (size) {
            LEAT_SIZE_CASES(for (int64_t i = 0; i < row; i++)((T *)dst)[i] =
                                ((const T *)src)[from + i * step[last]])
        }
        dst += row * size;
        n -= row;
        from += row * step[last];
        at[last] += row;
        for (int d = last; d > 0 && at[d] == c->dim[d]; d--) {
            from += step[d - 1] - step[d] * c->dim[d];
            at[d] = 0;
            at[d - 1]++;
        }
    }
}

static bool contiguous(const leat_broadcast *c, const int64_t *step)
{
    int64_t n = 1;
    for (int d = c->rank - 1; d >= 0; n *= c->dim[d--])
        if (step[d] != n)
            return false;
    return true;
}

/* Rows of a few elements: the operand that is repeated is spelled out, a chunk at a time. */
static void walk_short(walk_args *w, int64_t begin, int64_t end)
{
    const leat_broadcast *c = w->c;
    _Alignas(LEAT_ALIGN) char abuf[CHUNK * 16], bbuf[CHUNK * 16];
    const bool a_whole = contiguous(c, c->a_step), b_whole = contiguous(c, c->b_step);
    bool ok = true;
    for (; begin < end; begin += CHUNK) {
        const int64_t n = end - begin < CHUNK ? end - begin : CHUNK;
        if (!a_whole)
            gather(c, c->a_step, w->a, w->in_size, begin, n, abuf);
        if (!b_whole)
            gather(c, c->b_step, w->b, w->in_size, begin, n, bbuf);
        ok &=
            w->fn(a_whole ? w->a + begin * w->in_size : abuf, false,
                  b_whole ? w->b + begin * w->in_size : bbuf, false, w->z + begin * w->out_size, n);
    }
    if (!ok)
        atomic_store_explicit(&w->bad, true, memory_order_relaxed);
}

static void walk(void *arg, int64_t begin, int64_t end)
{
    walk_args *w = arg;
    const leat_broadcast *c = w->c;
    const int last = c->rank - 1;
    if (c->rank > 1 && c->dim[last] < 24 && w->in_size <= 16) {
        walk_short(w, begin, end);
        return;
    }
    int64_t at[LEAT_MAX_RANK], a = 0, b = 0, rest = begin; /* a, b: elements */
    for (int d = last; d >= 0; d--) {
        at[d] = rest % c->dim[d];
        rest /= c->dim[d];
        a += at[d] * c->a_step[d];
        b += at[d] * c->b_step[d];
    }
    const int64_t sa = c->a_step[last], sb = c->b_step[last];
    bool ok = true;
    while (begin < end) {
        int64_t n = c->dim[last] - at[last];
        n = n < end - begin ? n : end - begin;
        ok &= w->fn(w->a + a * w->in_size, !sa, w->b + b * w->in_size, !sb,
                    w->z + begin * w->out_size, n);
        begin += n;
        a += n * sa;
        b += n * sb;
        at[last] += n;
        for (int d = last; d > 0 && at[d] == c->dim[d]; d--) {
            a += c->a_step[d - 1] - c->a_step[d] * c->dim[d];
            b += c->b_step[d - 1] - c->b_step[d] * c->dim[d];
            at[d] = 0;
            at[d - 1]++;
        }
    }
    if (!ok)
        atomic_store_explicit(&w->bad, true, memory_order_relaxed);
}

/* Output 0 in the memory of whichever input is as large and nobody else's. */
static leat_status out_over_any(leat_kernel *k, const leat_shape *shape, int64_t count,
                                leat_tensor **out)
{
    for (int i = 0; i < 2; i++) {
        const leat_tensor *t = leat_kernel_in(k, i);
        if (t->count == count && leat_tensor_sole(t))
            return leat_kernel_out_over(k, 0, i, shape, out);
    }
    return leat_kernel_out(k, 0, shape, out);
}

static leat_status error_of(const leat_row2 *r)
{
    return leat_error(INVALID_ARGUMENT, "%s", r->error ? r->error : "an element has no result");
}

leat_status leat_row2_run(leat_kernel *k)
{
    const leat_row2 *r = leat_kernel_state(k);
    const leat_tensor *a = leat_kernel_in(k, 0), *b = leat_kernel_in(k, 1);
    leat_tensor *z;
    if (a->count == 1 && b->count == 1) {
        const leat_shape *s = a->shape.rank >= b->shape.rank ? &a->shape : &b->shape;
        LEAT_TRY(out_over_any(k, s, 1, &z));
        return r->fn(a->data, false, b->data, false, z->data, 1) ? NULL : error_of(r);
    }
    leat_broadcast c;
    LEAT_TRY(leat_broadcast_init(&c, &a->shape, &b->shape));
    LEAT_TRY(out_over_any(k, &c.out, c.count, &z));
    if (!c.count)
        return NULL;
    walk_args w = {.c = &c, .fn = r->fn, .a = a->data, .b = b->data, .z = z->data};
    w.in_size = (int64_t)leat_dtype_size(a->dtype);
    w.out_size = (int64_t)leat_dtype_size(z->dtype);
    leat_kernel_for(k, c.count, r->unit_ns, walk, &w);
    return atomic_load_explicit(&w.bad, memory_order_relaxed) ? error_of(r) : NULL;
}

leat_status leat_row2_run_same(leat_kernel *k)
{
    const leat_tensor *a = leat_kernel_in(k, 0), *b = leat_kernel_in(k, 1);
    const char *op = leat_node_op(leat_kernel_node(k));
    LEAT_REQUIRE(leat_shape_equal(&a->shape, &b->shape), INVALID_ARGUMENT,
                 "Inputs to operation %s of type %s must have the same size and shape.  Input 0: "
                 "%s != input 1: %s",
                 leat_node_name(leat_kernel_node(k)), op, leat_shape_show(&a->shape).s,
                 leat_shape_show(&b->shape).s);
    return leat_row2_run(k);
}
