/* one_hot.c -- OneHot. indices are (before, after), the output is (before, depth, after). */
#include "kernels/cpu/indices.h"
#include "kernels/cpu/move.h"

typedef struct one_hot_args {
    const leat_tensor *indices, *on, *off;
    leat_tensor *y;
    int64_t depth, after;
} one_hot_args;

static int64_t index_at(const leat_tensor *t, int64_t i)
{
    return t->dtype == LEAT_UINT8 ? AT(uint8_t, t)[i] : leat_index_at(t, i);
}

#define ONE_HOT(bytes, T)                                                                          \
    static void one_hot_##T(const one_hot_args *o, int64_t begin, int64_t end)                     \
    {                                                                                              \
        T on = *AT(T, o->on), off = *AT(T, o->off);                                                \
        for (int64_t b = begin; b < end; b++) {                                                    \
            T *y = AT(T, o->y) + b * o->depth * o->after;                                          \
            for (int64_t i = 0; i < o->depth * o->after; i++)                                      \
                y[i] = off;                                                                        \
            for (int64_t a = 0; a < o->after; a++) {                                               \
                int64_t i = index_at(o->indices, b * o->after + a);                                \
                if (i >= 0 && i < o->depth)                                                        \
                    y[i * o->after + a] = on;                                                      \
            }                                                                                      \
        }                                                                                          \
    }
#define SIZES(X) X(1, leat_m1) X(2, leat_m2) X(4, leat_m4) X(8, leat_m8) X(16, leat_m16)
SIZES(ONE_HOT)

#define CASE(bytes, T)                                                                             \
    case bytes:                                                                                    \
        one_hot_##T(arg, begin, end);                                                              \
        break;

static void one_hot_part(void *arg, int64_t begin, int64_t end)
{
    switch (leat_element_size(((one_hot_args *)arg)->y->dtype)) {
        SIZES(CASE)
    }
}

static leat_status one_hot_managed(leat_kernel *k, const one_hot_args *o)
{
    LEAT_TRY(leat_move_fill(k, o->y, o->off->data));
    for (int64_t e = 0; e < o->indices->count; e++) {
        int64_t i = index_at(o->indices, e), b = e / o->after, a = e % o->after;
        if (i >= 0 && i < o->depth)
            LEAT_TRY(leat_elements_copy(o->y->dtype,
                                        leat_element(o->y, (b * o->depth + i) * o->after + a),
                                        o->on->data, 1));
    }
    return NULL;
}

static leat_status one_hot(leat_kernel *k)
{
    one_hot_args o = {
        .indices = leat_kernel_in(k, 0), .on = leat_kernel_in(k, 2), .off = leat_kernel_in(k, 3)};
    leat_one_hot_dims d;
    LEAT_TRY(leat_one_hot_read(k, *(const int64_t *)leat_kernel_state(k), &d));
    o.depth = d.depth;
    o.after = d.after;
    LEAT_TRY(leat_kernel_out(k, 0, &d.shape, &o.y));
    if (o.y->count == 0)
        return NULL;
    if (leat_is_managed(o.y->dtype))
        return one_hot_managed(k, &o);
    double bytes = (double)(o.depth * o.after) * (double)leat_element_size(o.y->dtype);
    leat_kernel_for(k, d.before, 3 + 0.05 * bytes, one_hot_part, &o);
    return NULL;
}

static leat_status one_hot_init(const leat_node *n, void *state)
{
    *(int64_t *)state = leat_node_int(n, "axis");
    return NULL;
}

const leat_kernel_def leat_cpu_one_hot[] = {
    {.op = "OneHot", .run = one_hot, .state_size = sizeof(int64_t), .init = one_hot_init},
    {0},
};
