/* row2.c -- merges dimensions, and calls a row function for each row. */
#include "kernels/cpu/row2.h"

#include <stdatomic.h>

leat_status leat_broadcast_init(leat_broadcast *c, const leat_shape *a, const leat_shape *b)
{
    const int rank = a->rank > b->rank ? a->rank : b->rank;
    c->out.rank = rank;
    c->count = 1;
    c->rank = 0;
    int64_t na = 1, nb = 1; /* elements of a and b inside the current dimension */
    /* Inner dimensions first; reversed at the end. */
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

enum { CHUNK = 512 }; /* elements that are gathered at a time if rows are short */

/* Copies the operand's elements for [begin, begin + n) of the output to contiguous memory. */
#define GATHER(T)                                                                                  \
    static void gather_##T(const leat_broadcast *c, const int64_t *step, const T *src,             \
                           int64_t begin, int64_t n, T *dst)                                       \
    {                                                                                              \
        int64_t at[LEAT_MAX_RANK], from = 0, rest = begin;                                         \
        for (int d = c->rank - 1; d >= 0; d--) {                                                   \
            at[d] = rest % c->dim[d];                                                              \
            rest /= c->dim[d];                                                                     \
            from += at[d] * step[d];                                                               \
        }                                                                                          \
        const int last = c->rank - 1;                                                              \
        const int64_t width = c->dim[last], by = step[last];                                       \
        int64_t i = at[last];                                                                      \
        while (n > 0) {                                                                            \
            const int64_t row = width - i < n ? width - i : n;                                     \
            for (int64_t j = 0; j < row; j++, from += by)                                          \
                dst[j] = src[from];                                                                \
            dst += row;                                                                            \
            n -= row;                                                                              \
            i = 0;                                                                                 \
            from += step[last - 1] - by * width;                                                   \
            for (int d = last - 1; d > 0 && ++at[d] == c->dim[d]; d--) {                           \
                from += step[d - 1] - step[d] * c->dim[d];                                         \
                at[d] = 0;                                                                         \
            }                                                                                      \
        }                                                                                          \
    }
GATHER(uint8_t)
GATHER(uint16_t)
GATHER(uint32_t)
GATHER(uint64_t)
GATHER(leat_16bytes)

static void gather(const leat_broadcast *c, const int64_t *step, const void *src, int64_t size,
                   int64_t begin, int64_t n, void *dst)
{
    switch (size) {
    case 1:
        gather_uint8_t(c, step, src, begin, n, dst);
        break;
    case 2:
        gather_uint16_t(c, step, src, begin, n, dst);
        break;
    case 4:
        gather_uint32_t(c, step, src, begin, n, dst);
        break;
    case 8:
        gather_uint64_t(c, step, src, begin, n, dst);
        break;
    default:
        gather_leat_16bytes(c, step, src, begin, n, dst);
        break;
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

/* An operand whose elements are the same for each of the innermost rows. */
static bool periodic(const leat_broadcast *c, const int64_t *step)
{
    for (int d = 0; d < c->rank - 1; d++)
        if (step[d])
            return false;
    return true;
}

/* For rows of a few elements: the operand that is repeated is expanded, a chunk at a time. Chunks
 * are whole numbers of rows, so an operand that repeats with every row is expanded once. */
static void walk_short(walk_args *w, int64_t begin, int64_t end)
{
    const leat_broadcast *c = w->c;
    _Alignas(LEAT_ALIGN) char buf[2][CHUNK * 16];
    const int64_t *step[2] = {c->a_step, c->b_step};
    const char *in[2] = {w->a, w->b};
    const int64_t chunk = CHUNK / c->dim[c->rank - 1] * c->dim[c->rank - 1];
    bool whole[2], once[2], ok = true;
    for (int i = 0; i < 2; i++) {
        whole[i] = contiguous(c, step[i]);
        once[i] = periodic(c, step[i]);
        if (once[i])
            gather(c, step[i], in[i], w->in_size, begin, end - begin < chunk ? end - begin : chunk,
                   buf[i]);
    }
    for (; begin < end; begin += chunk) {
        const int64_t n = end - begin < chunk ? end - begin : chunk;
        const void *x[2];
        for (int i = 0; i < 2; i++) {
            if (!whole[i] && !once[i])
                gather(c, step[i], in[i], w->in_size, begin, n, buf[i]);
            x[i] = whole[i] ? in[i] + begin * w->in_size : buf[i];
        }
        ok &= w->fn(x[0], false, x[1], false, w->z + begin * w->out_size, n);
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

/* Output 0 in the memory of an input that has its size and no other user. */
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

leat_status leat_row2_apply(leat_kernel *k, const leat_row2 *r, const leat_broadcast *c,
                            const leat_tensor *a, const leat_tensor *b, leat_tensor *z)
{
    if (!c->count)
        return NULL;
    walk_args w = {.c = c, .fn = r->fn, .a = a->data, .b = b->data, .z = z->data};
    w.in_size = (int64_t)leat_dtype_size(a->dtype);
    w.out_size = (int64_t)leat_dtype_size(z->dtype);
    leat_kernel_for(k, c->count, r->unit_ns, walk, &w);
    return atomic_load_explicit(&w.bad, memory_order_relaxed) ? error_of(r) : NULL;
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
    return leat_row2_apply(k, r, &c, a, b, z);
}

leat_status leat_row2_check_same(const char *name, const char *op, const leat_shape *a,
                                 const leat_shape *b)
{
    LEAT_REQUIRE(leat_shape_equal(a, b), INVALID_ARGUMENT,
                 "Inputs to operation %s of type %s must have the same size and shape.  Input 0: "
                 "%s != input 1: %s",
                 name, op, leat_shape_show(a).s, leat_shape_show(b).s);
    return NULL;
}

leat_status leat_row2_run_same(leat_kernel *k)
{
    const leat_node *n = leat_kernel_node(k);
    LEAT_TRY(leat_row2_check_same(leat_node_name(n), leat_node_op(n), &leat_kernel_in(k, 0)->shape,
                                  &leat_kernel_in(k, 1)->shape));
    return leat_row2_run(k);
}
