/* random.c -- tensors of random numbers; the generators are those of kernels/any/generator.c, so a
 * node draws the same numbers on every kind of device, up to the rounding of logarithms. */
#include "kernels/cpu/random.h"

#include <string.h>

#include "kernels/opencl/opencl.h"

extern const leat_cl_text leat_cl_text_random;
static const leat_cl_text *const texts[] = {&leat_cl_text_random, NULL};

/* The function of random.cl by the op's name. */
static const char *function_of(leat_kernel *k)
{
    const char *op = leat_node_op(leat_kernel_node(k));
    return strstr(op, "Uniform") ? "uniform" : strstr(op, "Truncated") ? "truncated" : "normal";
}

static leat_status fill(leat_kernel *k, const leat_philox *p, const leat_tensor *y)
{
    leat_cl_launch l = leat_cl_begin(leat_cl_of(k), texts, "", function_of(k));
    leat_cl_tensor(&l, y);
    leat_cl_bytes(&l, p, sizeof *p);
    leat_cl_int(&l, y->count);
    return leat_cl_each(&l, (y->count + 3) / 4, 60);
}

static leat_status stateful(leat_kernel *k)
{
    leat_tensor *y;
    leat_philox p;
    LEAT_TRY(leat_random_output(k, &y));
    if (!y->count)
        return NULL;
    LEAT_TRY(leat_random_reserve(k, (uint64_t)y->count * 256, &p));
    return fill(k, &p, y);
}

static leat_status stateless(leat_kernel *k)
{
    const leat_tensor *seed = leat_kernel_in(k, 1);
    leat_tensor *y;
    LEAT_REQUIRE(seed->shape.rank == 1 && seed->count == 2, INVALID_ARGUMENT,
                 "seed must have shape [2], not %s", leat_shape_show(&seed->shape).s);
    LEAT_TRY(leat_random_output(k, &y));
    const leat_philox p = leat_random_seeded(seed);
    return y->count ? fill(k, &p, y) : NULL;
}

#define STATEFUL(name)                                                                             \
    {                                                                                              \
        .op = name, .where = {{"dtype", LEAT_T(FLOAT)}}, .run = stateful,                          \
        .state_size = LEAT_RANDOM_STATE, .release = leat_random_release, .host = "shape"           \
    }
#define STATELESS(name)                                                                            \
    {                                                                                              \
        .op = name, .where = {{"dtype", LEAT_T(FLOAT)}}, .run = stateless, .host = "shape, seed"   \
    }

const leat_kernel_def leat_opencl_random[] = {
    STATEFUL("RandomUniform"),
    STATEFUL("RandomStandardNormal"),
    STATEFUL("TruncatedNormal"),
    STATELESS("StatelessRandomUniform"),
    STATELESS("StatelessRandomNormal"),
    STATELESS("StatelessTruncatedNormal"),
    {0},
};
