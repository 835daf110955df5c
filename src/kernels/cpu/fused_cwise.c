/* fused_cwise.c -- _FusedCwise: a tree of element-wise ops, computed block by block. If shapes turn
 * out to need more broadcasting than single elements, the steps run one after another. */
#include "kernels/cpu/cwise_tree.h"

static leat_status init(const leat_node *n, void *state)
{
    return leat_cwise_init(state, n);
}

static void release(void *state)
{
    leat_cwise_release(state);
}

typedef struct run_args {
    const leat_cwise_tree *tree;
    const leat_entry *in;
    char *y;
    size_t size; /* of an element */
} run_args;

static void blocks(void *arg, int64_t begin, int64_t end)
{
    const run_args *r = arg;
    for (int64_t at = begin; at < end; at += LEAT_CWISE_BLOCK) {
        int64_t n = end - at < LEAT_CWISE_BLOCK ? end - at : LEAT_CWISE_BLOCK;
        leat_cwise_block(r->tree, r->in, at, n, r->y + (size_t)at * r->size);
    }
}

/* The input that has the output's shape, if each other input has it, too, or has one element. */
static int widest_of(leat_kernel *k, int n)
{
    int widest = 0;
    for (int i = 1; i < n; i++) {
        const leat_tensor *t = k->in[i].tensor, *w = k->in[widest].tensor;
        if (t->shape.rank > w->shape.rank ||
            (t->shape.rank == w->shape.rank && t->count > w->count))
            widest = i;
    }
    return widest;
}

static leat_status run(leat_kernel *k)
{
    const leat_cwise_tree *tree = leat_kernel_state(k);
    int widest = widest_of(k, tree->n_args);
    const leat_tensor *x = k->in[widest].tensor;
    leat_tensor *y;
    if (!leat_cwise_fits(tree, k->in, &x->shape)) {
        LEAT_TRY(leat_cwise_whole(k, tree, k->in, &y));
        leat_kernel_set(k, 0, y);
        return NULL;
    }
    LEAT_TRY(leat_kernel_out_over(k, 0, widest, &x->shape, &y));
    run_args r = {tree, k->in, y->data, leat_dtype_size(x->dtype)};
    if (x->count <= LEAT_CWISE_BLOCK)
        blocks(&r, 0, x->count);
    else
        leat_kernel_for(k, x->count, tree->unit_ns, blocks, &r);
    return NULL;
}

const leat_kernel_def leat_cpu_fused_cwise[] = {
    {.op = "_FusedCwise",
     .where = {{"T", LEAT_T(FLOAT) | LEAT_T(DOUBLE)}},
     .run = run,
     .state_size = sizeof(leat_cwise_tree),
     .init = init,
     .release = release},
    {0},
};
