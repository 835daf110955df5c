/* ragged.c -- RaggedTensorToSparse: converts rows of different lengths, given by the end of each
 * row, to a sparse tensor. */
#include "core/element.h"
#include "kernels/cpu/cpu.h"

/* The splits of each level start with 0, do not decrease, and end with the length of the next
 * level. */
static leat_status check(leat_kernel *k, int levels, const leat_tensor *values)
{
    for (int i = 0; i < levels; i++) {
        const leat_tensor *s = leat_kernel_in(k, i);
        LEAT_REQUIRE(s->count > 0, INVALID_ARGUMENT, "ragged splits may not be empty.");
        LEAT_REQUIRE(leat_index_at(s, 0) == 0, INVALID_ARGUMENT,
                     "First value of ragged splits must be 0.");
        for (int64_t j = 1; j < s->count; j++)
            LEAT_REQUIRE(leat_index_at(s, j) >= leat_index_at(s, j - 1), INVALID_ARGUMENT,
                         "Ragged splits must not decrease.");
        int64_t next = i + 1 < levels ? leat_kernel_in(k, i + 1)->count - 1 : values->shape.dim[0];
        LEAT_REQUIRE(leat_index_at(s, s->count - 1) == next, INVALID_ARGUMENT,
                     "Final value of ragged splits must match the length the corresponding ragged "
                     "values.");
    }
    return NULL;
}

/* The row of item i: the last one that starts at or before i and is not empty. */
static int64_t row_of(const leat_tensor *splits, int64_t i)
{
    int64_t low = 0, high = splits->count - 1; /* finds the first row that starts behind i */
    while (low < high) {
        int64_t mid = low + (high - low) / 2;
        if (leat_index_at(splits, mid) > i)
            high = mid;
        else
            low = mid + 1;
    }
    return low - 1;
}

static void set_place(leat_kernel *k, int levels, int64_t item, int64_t *place)
{
    for (int d = levels; d > 0; d--) {
        const leat_tensor *s = leat_kernel_in(k, d - 1);
        int64_t row = row_of(s, item);
        place[d] = item - leat_index_at(s, row);
        item = row;
    }
    place[0] = item;
}

static leat_status ragged_run(leat_kernel *k)
{
    int levels = leat_kernel_inputs(k) - 1;
    const leat_tensor *x = leat_kernel_in(k, levels);
    LEAT_REQUIRE(x->shape.rank >= 1, INVALID_ARGUMENT, "rt_dense_values must be at least a vector");
    LEAT_TRY(check(k, levels, x));
    int rank = levels + x->shape.rank;
    int64_t n = x->shape.dim[0], each = n ? x->count / n : 0;
    leat_tensor *indices, *values, *shape;
    LEAT_TRY(leat_kernel_out(k, 0, &(leat_shape){.rank = 2, .dim = {x->count, rank}}, &indices));
    LEAT_TRY(leat_kernel_out(k, 1, &(leat_shape){.rank = 1, .dim = {x->count}}, &values));
    LEAT_TRY(leat_kernel_out(k, 2, &(leat_shape){.rank = 1, .dim = {rank}}, &shape));
    LEAT_TRY(leat_elements_copy(x->dtype, values->data, x->data, x->count));
    for (int64_t i = 0; i < x->count; i++) {
        int64_t *place = AT(int64_t, indices) + i * rank, left = i % each;
        set_place(k, levels, i / each, place);
        for (int d = x->shape.rank - 1; d > 0; d--) {
            place[levels + d] = left % x->shape.dim[d];
            left /= x->shape.dim[d];
        }
    }
    AT(int64_t, shape)[0] = leat_kernel_in(k, 0)->count - 1;
    for (int d = 0; d < levels; d++) {
        const leat_tensor *s = leat_kernel_in(k, d);
        int64_t most = 0;
        for (int64_t j = 1; j < s->count; j++) {
            int64_t length = leat_index_at(s, j) - leat_index_at(s, j - 1);
            most = length > most ? length : most;
        }
        AT(int64_t, shape)[d + 1] = most;
    }
    for (int d = 1; d < x->shape.rank; d++)
        AT(int64_t, shape)[levels + d] = x->shape.dim[d];
    return NULL;
}

const leat_kernel_def leat_cpu_ragged[] = {
    {.op = "RaggedTensorToSparse", .run = ragged_run},
    {0},
};
