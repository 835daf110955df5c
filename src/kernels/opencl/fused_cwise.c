/* fused_cwise.c -- _FusedCwise: a tree of element-wise ops. A node that has run a few times
 * computes its tree by a function of its own, which passes over the memory once; until then, and
 * where operands are broadcast otherwise than from a single element, the steps run one after
 * another, by the functions of the single ops. So graphs that run once wait for no compiler. */
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>

#include "core/alloc.h"
#include "kernels/opencl/tree.h"
#include "kernels/opencl/walk.h"

extern const leat_cl_text leat_cl_text_expressions;

enum { RUNS_BEFORE = 8 };

typedef struct fused_state {
    leat_cl_tree tree;
    atomic_int runs;
    _Atomic(const leat_cl_text *) text; /* set after RUNS_BEFORE runs; NULL: it has none */
} fused_state;

static leat_status init(const leat_node *n, void *state)
{
    fused_state *s = state;
    leat_status bad = leat_cl_tree_init(&s->tree, n);
    if (bad)
        leat_cl_tree_release(&s->tree);
    return bad;
}

static void release(void *state)
{
    leat_cl_tree_release(&((fused_state *)state)->tree);
}

/* ---- One step after another ---- */

static leat_status step(leat_kernel *k, const leat_cl_step *s, const leat_tensor *a,
                        const leat_tensor *b, leat_tensor **out)
{
    char function[48];
    leat_cl_walk w = {0};
    leat_shape shape = a->shape;
    leat_tensor *z;
    LEAT_REQUIRE(
        !b || !s->same || leat_shape_equal(&a->shape, &b->shape), INVALID_ARGUMENT,
        "Inputs to operation %s of type %s must have the same size and shape.  Input 0: %s "
        "!= input 1: %s",
        s->name, s->op, leat_shape_show(&a->shape).s, leat_shape_show(&b->shape).s);
    if (b)
        LEAT_TRY(leat_cl_broadcast(&a->shape, &b->shape, &w, &shape));
    snprintf(function, sizeof function, "%s_float", s->op);
    LEAT_TRY(leat_tensor_alloc(k->device->allocator, LEAT_FLOAT, &shape, &z));
    leat_status bad = z->count ? leat_cl_cwise(leat_cl_of(k), function, &w, a->data,
                                               b ? b->data : NULL, z->data, z->count)
                               : NULL;
    if (bad)
        leat_tensor_unref(z);
    else
        *out = z;
    return bad;
}

/* Each result is used once, by a later step; then its memory is free for what is enqueued next. */
static leat_status by_steps(leat_kernel *k, const leat_cl_tree *t)
{
    leat_tensor **results = leat_new_array(leat_tensor *, t->n);
    leat_status status = NULL;
    for (int i = 0; i < t->n && !status; i++) {
        const leat_cl_step *s = &t->steps[i];
        const int from[2] = {s->a, s->b};
        const leat_tensor *x[2] = {NULL, NULL};
        for (int o = 0; o < 2 && from[o] >= 0; o++)
            x[o] = from[o] < t->n_args ? leat_kernel_in(k, from[o]) : results[from[o] - t->n_args];
        status = step(k, s, x[0], x[1], &results[i]);
        if (status)
            status = leat_status_suffix(status, "\n\t [[{{node %s}}]]", s->name);
        for (int o = 0; o < 2; o++)
            if (from[o] >= t->n_args) {
                leat_tensor_unref(results[from[o] - t->n_args]);
                results[from[o] - t->n_args] = NULL;
            }
    }
    if (!status) {
        leat_kernel_set(k, 0, results[t->n - 1]);
        results[t->n - 1] = NULL;
    }
    for (int i = 0; i < t->n; i++)
        leat_tensor_unref(results[i]);
    free(results);
    return status;
}

/* ---- All at once ---- */

/* The input of the result's shape. */
static int widest_of(leat_kernel *k, int n)
{
    int widest = 0;
    for (int i = 1; i < n; i++) {
        const leat_tensor *t = leat_kernel_in(k, i), *w = leat_kernel_in(k, widest);
        if (t->shape.rank > w->shape.rank ||
            (t->shape.rank == w->shape.rank && t->count > w->count))
            widest = i;
    }
    return widest;
}

/* Whether each argument has the shape s or is a single element, and each step has an operand of
 * that shape, both if it does not broadcast. *ones_out: bit k is set for a single element k. */
static bool fits(leat_kernel *k, const leat_cl_tree *t, const leat_shape *s, uint64_t *ones_out)
{
    uint64_t ones = 0;
    for (int i = 0; i < t->n_args; i++) {
        const leat_tensor *x = leat_kernel_in(k, i);
        if (leat_shape_equal(&x->shape, s))
            continue;
        if (x->count != 1 || x->shape.rank > s->rank)
            return false;
        ones |= (uint64_t)1 << i;
    }
    for (int i = 0; i < t->n && ones; i++) {
        const leat_cl_step *at = &t->steps[i];
        const int from[2] = {at->a, at->b};
        int wide = 0, operands = at->b < 0 ? 1 : 2;
        for (int o = 0; o < operands; o++)
            wide += from[o] >= t->n_args || !(ones >> from[o] & 1);
        if (wide == 0 || (wide < operands && at->same))
            return false;
    }
    *ones_out = ones;
    return true;
}

static leat_status run(leat_kernel *k)
{
    fused_state *s = leat_kernel_state(k);
    const leat_cl_tree *t = &s->tree;
    uint64_t ones;
    const int runs = atomic_load_explicit(&s->runs, memory_order_relaxed);
    if (runs < RUNS_BEFORE && atomic_fetch_add(&s->runs, 1) == RUNS_BEFORE - 1 && t->n > 1)
        atomic_store(&s->text, leat_cl_tree_text(t));
    const leat_cl_text *text = atomic_load(&s->text);
    const int widest = widest_of(k, t->n_args);
    const leat_shape shape = leat_kernel_in(k, widest)->shape;
    if (!text || !fits(k, t, &shape, &ones))
        return by_steps(k, t);
    const void *in[64];
    for (int i = 0; i < t->n_args; i++)
        in[i] = leat_kernel_in(k, i)->data; /* the output may take an input's memory */
    leat_tensor *z;
    LEAT_TRY(leat_kernel_out_over(k, 0, widest, &shape, &z));
    if (!z->count)
        return NULL;
    char options[40];
    snprintf(options, sizeof options, "-DONES=%lluUL", (unsigned long long)ones);
    const leat_cl_text *const texts[] = {&leat_cl_text_expressions, text, NULL};
    leat_cl_launch l = leat_cl_begin(leat_cl_of(k), texts, options, "tree");
    for (int i = 0; i < t->n_args; i++)
        leat_cl_at(&l, in[i]);
    leat_cl_tensor(&l, z);
    leat_cl_int(&l, z->count);
    return leat_cl_each(&l, z->count, t->n);
}

const leat_kernel_def leat_opencl_fused_cwise[] = {
    {.op = "_FusedCwise",
     .where = {{"T", LEAT_T(FLOAT)}},
     .run = run,
     .state_size = sizeof(fused_state),
     .init = init,
     .release = release},
    {0},
};
