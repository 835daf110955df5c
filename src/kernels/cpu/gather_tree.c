/* gather_tree.c -- GatherTree: follows each beam of the last step back to the first one. */
#include <stdatomic.h>

#include "kernels/cpu/cpu.h"

typedef struct tree {
    leat_kernel *k;
    const int32_t *step, *parent, *length; /* (time, batch, beams) twice, (batch) */
    int32_t *y, end;
    int64_t time, batch, beams;
    _Atomic(leat_status) error;
} tree;

static void fail(tree *t, int32_t parent, int64_t b, int64_t time, int64_t beam)
{
    leat_status none = NULL,
                s = leat_error(INVALID_ARGUMENT,
                               "Saw invalid parent id %d at (batch, time, beam) == (%lld, %lld, "
                               "%lld)",
                               parent, (long long)b, (long long)time, (long long)beam);
    if (!atomic_compare_exchange_strong(&t->error, &none, s))
        leat_status_free(s);
}

/* One beam of sequence b: what comes after its end is the end token. */
static void follow(tree *t, int64_t b, int64_t beam)
{
    const int64_t length = t->length[b] < t->time ? t->length[b] : t->time;
    const int64_t row = t->batch * t->beams, at = b * t->beams;
    int64_t from = beam;
    for (int64_t i = t->time - 1; i >= 0; i--) {
        int32_t *y = &t->y[i * row + at + beam];
        if (i >= length) {
            *y = t->end;
            continue;
        }
        *y = t->step[i * row + at + from];
        const int32_t parent = t->parent[i * row + at + from];
        if (i > 0 && (parent < 0 || parent >= t->beams)) {
            fail(t, parent, b, i - 1, beam);
            return;
        }
        from = parent;
    }
    bool ended = false;
    for (int64_t i = 0; i < length; i++) {
        int32_t *y = &t->y[i * row + at + beam];
        if (ended)
            *y = t->end;
        ended = ended || *y == t->end;
    }
}

static void tree_part(void *arg, int64_t begin, int64_t end)
{
    tree *t = arg;
    leat_look look = leat_look_begin(t->k);
    for (int64_t i = begin; i < end && !leat_look_over(&look, 4 * t->time); i++)
        follow(t, i / t->beams, i % t->beams);
}

static leat_status gather_tree_run(leat_kernel *k)
{
    const leat_tensor *step = leat_kernel_in(k, 0), *parent = leat_kernel_in(k, 1);
    const leat_tensor *length = leat_kernel_in(k, 2), *end = leat_kernel_in(k, 3);
    LEAT_REQUIRE(step->shape.rank == 3, INVALID_ARGUMENT,
                 "step_ids must be a 3-tensor, saw shape: %s", leat_shape_show(&step->shape).s);
    LEAT_REQUIRE(length->shape.rank == 1, INVALID_ARGUMENT,
                 "max_sequence_lengths must be a vector, saw shape: %s",
                 leat_shape_show(&length->shape).s);
    LEAT_REQUIRE(end->shape.rank == 0, INVALID_ARGUMENT,
                 "end_token must be a scalar, saw shape: %s", leat_shape_show(&end->shape).s);
    LEAT_REQUIRE(leat_shape_equal(&step->shape, &parent->shape), INVALID_ARGUMENT,
                 "step_ids.shape must match parent_ids.shape.  but shapes are: %s and %s",
                 leat_shape_show(&step->shape).s, leat_shape_show(&parent->shape).s);
    LEAT_REQUIRE(step->shape.dim[1] == length->shape.dim[0], INVALID_ARGUMENT,
                 "batch size dimensions step_ids.shape[1] and max_sequence_lengths.shape[0] must "
                 "match.  but shapes are: %s and %s",
                 leat_shape_show(&step->shape).s, leat_shape_show(&length->shape).s);
    leat_tensor *y;
    LEAT_TRY(leat_kernel_out(k, 0, &step->shape, &y));
    if (y->count == 0)
        return NULL;
    tree t = {.k = k,
              .step = AT(int32_t, step),
              .parent = AT(int32_t, parent),
              .length = AT(int32_t, length),
              .y = AT(int32_t, y),
              .end = AT(int32_t, end)[0],
              .time = step->shape.dim[0],
              .batch = step->shape.dim[1],
              .beams = step->shape.dim[2]};
    leat_kernel_for(k, t.batch * t.beams, 4.0 * (double)t.time, tree_part, &t);
    return atomic_load(&t.error);
}

const leat_kernel_def leat_cpu_gather_tree[] = {
    {.op = "GatherTree", .where = {{"T", LEAT_T(INT32)}}, .run = gather_tree_run},
    {0},
};
