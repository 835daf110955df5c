/* gather.c -- Gather, GatherV2, and ResourceGather of a variable. params is seen as (batch, outer,
 * dim, inner), indices as (batch, picks), the output as (batch, outer, picks, inner): inner
 * elements are copied at a time. */
#include <inttypes.h>

#include "kernels/cpu/indices.h"
#include "kernels/cpu/move.h"
#include "kernels/cpu/update.h"

typedef struct gather_args {
    const leat_tensor *params, *indices;
    leat_tensor *y;
    int64_t outer, dim, picks;
    size_t bytes; /* bytes of `inner` elements */
} gather_args;

#define GATHER(I)                                                                                  \
    static void gather_##I(const gather_args *g, const I *index, int64_t begin, int64_t end)       \
    {                                                                                              \
        char *y = g->y->data;                                                                      \
        const char *p = g->params->data;                                                           \
        int64_t pick = begin % g->picks, block = begin / g->picks; /* of batch and outer */        \
        index += block / g->outer * g->picks;                                                      \
        for (int64_t r = begin; r < end; r++) {                                                    \
            const char *from = p + (size_t)(block * g->dim + index[pick]) * g->bytes;              \
            switch (g->bytes) {                                                                    \
            case 4:                                                                                \
                memcpy(y + (size_t)r * 4, from, 4);                                                \
                break;                                                                             \
            case 8:                                                                                \
                memcpy(y + (size_t)r * 8, from, 8);                                                \
                break;                                                                             \
            default:                                                                               \
                memcpy(y + (size_t)r * g->bytes, from, g->bytes);                                  \
            }                                                                                      \
            if (++pick == g->picks) {                                                              \
                pick = 0;                                                                          \
                if (++block % g->outer == 0)                                                       \
                    index += g->picks;                                                             \
            }                                                                                      \
        }                                                                                          \
    }                                                                                              \
    /* The first index that is not in [0, dim), or -1. */                                          \
    static int64_t bad_##I(const I *index, int64_t n, int64_t dim)                                 \
    {                                                                                              \
        bool bad = false;                                                                          \
        for (int64_t i = 0; i < n; i++)                                                            \
            bad |= (uint64_t)(int64_t)index[i] >= (uint64_t)dim;                                   \
        for (int64_t i = 0; bad && i < n; i++)                                                     \
            if ((uint64_t)(int64_t)index[i] >= (uint64_t)dim)                                      \
                return i;                                                                          \
        return -1;                                                                                 \
    }
GATHER(int32_t)
GATHER(int64_t)

static void gather_part(void *arg, int64_t begin, int64_t end)
{
    const gather_args *g = arg;
    if (g->indices->dtype == LEAT_INT32)
        gather_int32_t(g, g->indices->data, begin, end);
    else
        gather_int64_t(g, g->indices->data, begin, end);
}

static leat_status gather_managed(const gather_args *g, int64_t rows)
{
    int64_t inner = (int64_t)(g->bytes / leat_element_size(g->params->dtype));
    for (int64_t r = 0; r < rows; r++) {
        int64_t block = r / g->picks;
        int64_t at = leat_index_at(g->indices, block / g->outer * g->picks + r % g->picks);
        LEAT_TRY(leat_elements_copy(g->params->dtype, leat_element(g->y, r * inner),
                                    leat_element(g->params, (block * g->dim + at) * inner), inner));
    }
    return NULL;
}

static leat_status gather(leat_kernel *k, const leat_tensor *params, bool after_batch)
{
    leat_gather_dims d;
    LEAT_TRY(leat_gather_read(k, &params->shape, after_batch,
                              *(const int64_t *)leat_kernel_state(k), &d));
    gather_args g = {.params = params,
                     .indices = leat_kernel_in(k, 1),
                     .outer = d.outer,
                     .dim = d.dim,
                     .picks = d.picks};
    int64_t bad = g.indices->dtype == LEAT_INT32
                      ? bad_int32_t(g.indices->data, g.indices->count, g.dim)
                      : bad_int64_t(g.indices->data, g.indices->count, g.dim);
    LEAT_REQUIRE(bad < 0, INVALID_ARGUMENT, "indices%s = %" PRId64 " is not in [0, %" PRId64 ")",
                 leat_index_show(&g.indices->shape, bad).s, leat_index_at(g.indices, bad), g.dim);
    LEAT_TRY(leat_kernel_out(k, 0, &d.shape, &g.y));
    if (g.y->count == 0)
        return NULL;
    g.bytes = (size_t)d.inner * leat_element_size(g.params->dtype);
    if (leat_is_managed(g.params->dtype))
        return gather_managed(&g, g.y->count / d.inner);
    leat_kernel_for(k, g.y->count / d.inner, 3 + 0.1 * (double)g.bytes, gather_part, &g);
    return NULL;
}

static leat_status gather_run(leat_kernel *k)
{
    return gather(k, leat_kernel_in(k, 0), false);
}

/* The lock is held while rows are copied: if the value were shared instead, a writer would have to
 * copy all of it. */
static leat_status resource_gather_run(leat_kernel *k)
{
    leat_variable *v;
    LEAT_TRY(leat_kernel_variable_of(k, 0, leat_kernel_out_dtype(k, 0), &v));
    leat_variable_lock(v);
    leat_status s = v->value ? gather(k, v->value, true)
                             : leat_error(FAILED_PRECONDITION,
                                          "Attempting to use uninitialized value %s", v->name);
    leat_variable_unlock(v);
    return s;
}

static leat_status gather_init(const leat_node *n, void *state)
{
    *(int64_t *)state = leat_node_int(n, "batch_dims"); /* 0 for Gather, which has none */
    return NULL;
}

#define GATHERS(name, fn)                                                                          \
    {                                                                                              \
        .op = name, .run = fn, .state_size = sizeof(int64_t), .init = gather_init                  \
    }
const leat_kernel_def leat_cpu_gather[] = {
    GATHERS("Gather", gather_run),
    GATHERS("GatherV2", gather_run),
    GATHERS("ResourceGather", resource_gather_run),
    {0},
};
