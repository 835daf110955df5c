/* random.c -- tensors of random numbers. */
#include "core/element.h"
#include "kernels/cpu/distributions.h"
#include "kernels/cpu/random.h"
#include "kernels/cpu/shapes.h"

/* ---- Tensors of numbers ---- */

static leat_status read_limits(leat_kernel *k, int first, leat_distribution *d)
{
    const leat_tensor *low = leat_kernel_in(k, first), *high = leat_kernel_in(k, first + 1);
    LEAT_REQUIRE(low->shape.rank == 0, INVALID_ARGUMENT, "minval must be 0-D, got shape %s",
                 leat_shape_show(&low->shape).s);
    LEAT_REQUIRE(high->shape.rank == 0, INVALID_ARGUMENT, "maxval must be 0-D, got shape %s",
                 leat_shape_show(&high->shape).s);
    int64_t from = leat_index_at(low, 0), to = leat_index_at(high, 0);
    LEAT_REQUIRE(from < to || d->range, INVALID_ARGUMENT, "Need minval < maxval, got %lld >= %lld",
                 (long long)from, (long long)to);
    d->low = from;
    d->range = (uint64_t)to - (uint64_t)from;
    return NULL;
}

static leat_status random_of(leat_kernel *k, leat_distribution_kind kind)
{
    leat_tensor *y;
    leat_philox p;
    leat_distribution d = leat_distribution_of(kind, leat_kernel_out_dtype(k, 0));
    LEAT_TRY(leat_random_output(k, &y));
    if (kind == LEAT_UNIFORM_INT) {
        d.range = y->count == 0; /* without elements, any limits are accepted */
        LEAT_TRY(read_limits(k, 1, &d));
    }
    if (y->count == 0)
        return NULL;
    LEAT_TRY(leat_random_reserve(k, (uint64_t)y->count * 256, &p));
    leat_distribution_fill(k, &d, p, y);
    return NULL;
}

static leat_status stateless_of(leat_kernel *k, leat_distribution_kind kind)
{
    leat_tensor *y;
    const leat_tensor *seed = leat_kernel_in(k, 1);
    leat_distribution d = leat_distribution_of(kind, leat_kernel_out_dtype(k, 0));
    LEAT_REQUIRE(seed->shape.rank == 1 && seed->count == 2, INVALID_ARGUMENT,
                 "seed must have shape [2], not %s", leat_shape_show(&seed->shape).s);
    LEAT_TRY(leat_random_output(k, &y));
    if (y->count == 0)
        return NULL;
    if (kind == LEAT_UNIFORM_INT)
        LEAT_TRY(read_limits(k, 2, &d));
    leat_distribution_fill(k, &d, leat_random_seeded(seed), y);
    return NULL;
}

#define RUN(name, kind)                                                                            \
    static leat_status name(leat_kernel *k)                                                        \
    {                                                                                              \
        return random_of(k, kind);                                                                 \
    }                                                                                              \
    static leat_status stateless_##name(leat_kernel *k)                                            \
    {                                                                                              \
        return stateless_of(k, kind);                                                              \
    }
RUN(uniform, LEAT_UNIFORM)
RUN(normal, LEAT_NORMAL)
RUN(truncated, LEAT_TRUNCATED_NORMAL)
RUN(uniform_int, LEAT_UNIFORM_INT)

/* ---- RandomShuffle: rows in random order ---- */

static leat_status shuffle(leat_kernel *k)
{
    const leat_tensor *x = leat_kernel_in(k, 0);
    if (x->count <= 1 || x->shape.dim[0] <= 1) {
        leat_kernel_forward(k, 0, 0);
        return NULL;
    }
    int64_t n = x->shape.dim[0], row = x->count / n;
    leat_shape rows = {.rank = 1, .dim = {n}};
    leat_tensor *order, *y;
    leat_philox p;
    LEAT_TRY(leat_kernel_temp(k, LEAT_INT64, &rows, &order));
    LEAT_TRY(leat_kernel_out(k, 0, &x->shape, &y));
    LEAT_TRY(leat_random_reserve(k, (uint64_t)(n - 1 + 3) / 4, &p));
    leat_philox_single s = {.gen = &p, .used = 4};
    int64_t *at = AT(int64_t, order);
    leat_look look = leat_look_begin(k);
    enum { JUMP = 16 }; /* elements whose time an access takes that is not in a cache */
    for (int64_t i = 0; i < n; i++)
        at[i] = i;
    for (int64_t i = 0; i < n - 1; i++) {
        if (leat_look_over(&look, JUMP))
            return leat_kernel_check(k);
        int64_t j = i + leat_philox_one(&s) % (uint32_t)(n - i), other = at[j];
        at[j] = at[i];
        at[i] = other;
    }
    size_t bytes = (size_t)row * leat_dtype_size(x->dtype);
    for (int64_t i = 0; i < n; i++) {
        if (leat_look_over(&look, JUMP + row))
            return leat_kernel_check(k);
        char *to = (char *)y->data + (size_t)i * bytes;
        const char *from = (const char *)x->data + (size_t)at[i] * bytes;
        if (leat_is_managed(x->dtype))
            LEAT_TRY(leat_elements_copy(x->dtype, to, from, row));
        else
            memcpy(to, from, bytes);
    }
    return NULL;
}

#define STATEFUL(name, attr, types, fn)                                                            \
    {                                                                                              \
        .op = name, .where = {{attr, types}}, .run = fn, .state_size = LEAT_RANDOM_STATE,          \
        .release = leat_random_release                                                             \
    }
#define STATELESS(name, types, fn)                                                                 \
    {                                                                                              \
        .op = name, .where = {{"dtype", types}}, .run = fn                                         \
    }

const leat_kernel_def leat_cpu_random[] = {
    STATEFUL("RandomUniform", "dtype", LEAT_TYPES_FLOATING, uniform),
    STATEFUL("RandomStandardNormal", "dtype", LEAT_TYPES_FLOATING, normal),
    STATEFUL("TruncatedNormal", "dtype", LEAT_TYPES_FLOATING, truncated),
    STATEFUL("RandomUniformInt", "Tout", LEAT_TYPES_INDEX, uniform_int),
    STATEFUL("RandomShuffle", "T", LEAT_TYPES_ANY, shuffle),
    STATELESS("StatelessRandomUniform", LEAT_TYPES_FLOATING, stateless_uniform),
    STATELESS("StatelessRandomNormal", LEAT_TYPES_FLOATING, stateless_normal),
    STATELESS("StatelessTruncatedNormal", LEAT_TYPES_FLOATING, stateless_truncated),
    STATELESS("StatelessRandomUniformInt", LEAT_TYPES_INDEX, stateless_uniform_int),
    {0},
};
