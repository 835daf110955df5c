/* cumulate.c -- Cumsum and Cumprod: x is (outer, along, inner), computed a row at a time. */
#include "kernels/cpu/complex.h"

typedef struct cumulate_state {
    bool product, exclusive, reverse;
} cumulate_state;

typedef struct cumulate_args {
    const cumulate_state *s;
    const leat_tensor *x;
    leat_tensor *y;
    int64_t along, inner;
} cumulate_args;

/* For each outer index: row r of y is its previous row combined with row r of x (r - 1 if
 * exclusive); if reversed, rows are taken from the end. */
#define CUMULATE(name, dtype, T)                                                                   \
    static inline T step_##T(bool product, T a, T b)                                               \
    {                                                                                              \
        return product ? (T)((LEAT_WIDE(T))a * (LEAT_WIDE(T))b)                                    \
                       : (T)((LEAT_WIDE(T))a + (LEAT_WIDE(T))b);                                   \
    }                                                                                              \
    static void row_##T(bool product, const T *a, const T *b, T *y, int64_t n)                     \
    {                                                                                              \
        if (product)                                                                               \
            for (int64_t i = 0; i < n; i++)                                                        \
                y[i] = step_##T(true, a[i], b[i]);                                                 \
        else                                                                                       \
            for (int64_t i = 0; i < n; i++)                                                        \
                y[i] = step_##T(false, a[i], b[i]);                                                \
    }                                                                                              \
    static void cumulate_##T(const cumulate_args *c, int64_t begin, int64_t end)                   \
    {                                                                                              \
        const cumulate_state *s = c->s;                                                            \
        const int64_t along = c->along, inner = c->inner, by = s->reverse ? -inner : inner;        \
        for (int64_t o = begin; o < end; o++) {                                                    \
            const int64_t from = (o * along + (s->reverse ? along - 1 : 0)) * inner;               \
            const T *x = AT(T, c->x) + from;                                                       \
            T *y = AT(T, c->y) + from;                                                             \
            for (int64_t i = 0; i < inner; i++)                                                    \
                y[i] = s->exclusive ? (T)s->product : x[i];                                        \
            for (int64_t r = 1; r < along; r++, x += by, y += by)                                  \
                row_##T(s->product, y, s->exclusive ? x : x + by, y + by, inner);                  \
        }                                                                                          \
    }
LEAT_Y_REAL(CUMULATE, )
LEAT_Y_COMPLEX(CUMULATE, )

#define CUMULATE_CASE(name, dtype, T)                                                              \
    case LEAT_##dtype:                                                                             \
        cumulate_##T(arg, begin, end);                                                             \
        break;

static void part(void *arg, int64_t begin, int64_t end)
{
    switch (((cumulate_args *)arg)->x->dtype) {
        LEAT_Y_REAL(CUMULATE_CASE, )
        LEAT_Y_COMPLEX(CUMULATE_CASE, )
    default:
        break;
    }
}

static leat_status init(const leat_node *n, void *state)
{
    *(cumulate_state *)state = (cumulate_state){
        strcmp(leat_node_op(n), "Cumprod") == 0,
        leat_node_bool(n, "exclusive"),
        leat_node_bool(n, "reverse"),
    };
    return NULL;
}

static leat_status cumulate(leat_kernel *k)
{
    cumulate_args c = {.s = leat_kernel_state(k), .x = leat_kernel_in(k, 0)};
    const leat_tensor *t = leat_kernel_in(k, 1);
    const leat_shape *s = &c.x->shape;
    LEAT_REQUIRE(t->shape.rank == 0, INVALID_ARGUMENT, "ScanOp: axis must be a scalar, not %s",
                 leat_shape_show(&t->shape).s);
    int64_t axis = leat_index_at(t, 0);
    axis += axis < 0 ? s->rank : 0;
    LEAT_REQUIRE(axis >= 0 && axis < s->rank, INVALID_ARGUMENT,
                 "ScanOp: Expected scan axis in the range [%d, %d), but got %lld", -s->rank,
                 s->rank, (long long)axis);
    LEAT_TRY(leat_kernel_out(k, 0, s, &c.y));
    if (!c.x->count)
        return NULL;
    int64_t outer = 1;
    c.inner = 1;
    for (int d = 0; d < s->rank; d++)
        *(d < axis ? &outer : &c.inner) *= d == axis ? 1 : s->dim[d];
    c.along = s->dim[axis];
    leat_kernel_for(k, outer, (double)(c.along * c.inner), part, &c);
    return NULL;
}

#define KERNEL(op_)                                                                                \
    {                                                                                              \
        .op = op_, .where = {{"T", LEAT_ROW_REAL | LEAT_ROW_COMPLEX}}, .run = cumulate,            \
        .state_size = sizeof(cumulate_state), .init = init, .flags = LEAT_KERNEL_VIA_FLOAT         \
    }

const leat_kernel_def leat_cpu_cumulate[] = {KERNEL("Cumsum"), KERNEL("Cumprod"), {0}};
