/* guarded_kernels.h -- the kernels of guarded_device.h. */
#ifndef LEAT_TESTS_GUARDED_KERNELS_H
#define LEAT_TESTS_GUARDED_KERNELS_H

#include "core/element.h"
#include "guarded_queue.h"
#include "runtime/kernel_int.h"

/* ---- Kernels: those of the CPU, run by the queue ---- */

static struct {
    leat_kernel_def *defs;
    const leat_kernel_def **cpu; /* the CPU's kernel of each one in defs */
    const leat_kernel_def *lists[3];
    int n, cap, cap_cpu;
} guarded_kernels;

/* A kernel of the CPU may give tensors that are in another memory, a Const's value, say: moves t to
 * the memory where it belongs. */
static leat_status guarded_bring(leat_tensor **t, leat_allocator *to)
{
    leat_tensor *x;
    if (!*t || !(*t)->count || leat_dtype_managed((*t)->dtype) || leat_tensor_memory(*t) == to)
        return NULL;
    LEAT_TRY(leat_tensor_alloc(to, (*t)->dtype, &(*t)->shape, &x));
    memcpy(x->data, (*t)->data, leat_tensor_bytes(*t));
    leat_tensor_unref(*t);
    *t = x;
    return NULL;
}

static leat_status guarded_bring_all(leat_kernel *k)
{
    leat_allocator *memory = k->device->allocator;
    for (int i = 0; i < k->n_out; i++)
        LEAT_TRY(guarded_bring(&k->out[i].tensor, leat_kernel_out_on_host(k, i) ? NULL : memory));
    for (int i = 0; i < k->n_in + k->n_out; i++) {
        leat_variable *v = i < k->n_in ? k->in[i].var : k->out[i - k->n_in].var;
        if (!v)
            continue;
        leat_variable_lock(v);
        leat_status s = guarded_bring(&v->value, memory);
        leat_variable_unlock(v);
        LEAT_TRY(s);
    }
    return NULL;
}

/* When the queue runs a kernel of the CPU, the kernel may write over a tensor (an input, the value
 * of a variable, an item of a TensorArray) that has no other reference at that time. Work that was
 * enqueued after it may read the same tensor, so all work holds references to its inputs until it
 * has run: a kernel of the CPU in its entries, a guarded_work in `held`. */
static void guarded_kernel_run(void *arg)
{
    leat_kernel *k = arg, inner = *k;
    guarded *g = k->device->state;
    leat_bound bound = *k->bound;
    bound.def = guarded_kernels.cpu[k->bound->def - guarded_kernels.defs];
    inner.bound = &bound;
    guarded_enter(g);
    guarded_at_work = g;
    leat_status s = leat_kernel_run(&inner);
    if (!s)
        s = guarded_bring_all(k);
    guarded_at_work = NULL;
    guarded_leave(g);
    leat_kernel_done(k, s);
}

static void guarded_kernel_start(leat_kernel *k)
{
    guarded_enqueue(k->device->state, LEAT_QUEUE_COMPUTE, guarded_kernel_run, k);
}

/* ---- Kernels that return before their work is done ---- */

typedef struct guarded_work {
    guarded *g;
    float (*fn)(float x);
    float *y;
    int64_t n;
    int n_x;
    struct guarded_operand {
        const float *v;
        leat_tensor *held; /* NULL if the work had the only reference when it was enqueued */
    } x[];
} guarded_work;

static float guarded_neg(float x)
{
    return -x;
}

static float guarded_square(float x)
{
    return x * x;
}

static void guarded_work_run(void *arg)
{
    guarded_work *w = arg;
    guarded_enter(w->g);
    for (int64_t i = 0; i < w->n; i++) {
        float sum = w->x[0].v[i];
        for (int j = 1; j < w->n_x; j++)
            sum += w->x[j].v[i];
        w->y[i] = w->fn ? w->fn(sum) : sum;
    }
    guarded_leave(w->g);
    for (int i = 0; i < w->n_x; i++)
        leat_tensor_unref(w->x[i].held);
    free(w);
}

static leat_status guarded_work_start(leat_kernel *k, float (*fn)(float x))
{
    int n_x = leat_kernel_inputs(k);
    leat_tensor *y;
    for (int i = 1; i < n_x; i++)
        LEAT_REQUIRE(leat_shape_equal(&leat_kernel_in(k, i)->shape, &leat_kernel_in(k, 0)->shape),
                     INVALID_ARGUMENT,
                     "Inputs to operation %s of type AddN must have the same size and shape.  "
                     "Input 0: %s != input %d: %s",
                     leat_node_name(leat_kernel_node(k)),
                     leat_shape_show(&leat_kernel_in(k, 0)->shape).s, i,
                     leat_shape_show(&leat_kernel_in(k, i)->shape).s);
    guarded_work *w = leat_xcalloc(1, sizeof(*w) + sizeof(w->x[0]) * (size_t)n_x);
    for (int i = 0; i < n_x; i++)
        w->x[i].v = leat_kernel_in(k, i)->data;
    leat_status s = leat_kernel_out_over(k, 0, 0, &leat_kernel_in(k, 0)->shape, &y);
    if (s) {
        free(w);
        return s;
    }
    w->g = k->device->state;
    w->fn = fn;
    w->y = y->data;
    w->n = y->count;
    w->n_x = n_x;
    for (int i = 0; i < n_x; i++) {
        const leat_tensor *x = leat_kernel_in(k, i);
        w->x[i].held = leat_tensor_sole(x) ? NULL : leat_tensor_ref(x);
    }
    guarded_enqueue(w->g, LEAT_QUEUE_COMPUTE, guarded_work_run, w);
    return NULL;
}

static leat_status guarded_run_neg(leat_kernel *k)
{
    return guarded_work_start(k, guarded_neg);
}

static leat_status guarded_run_square(leat_kernel *k)
{
    return guarded_work_start(k, guarded_square);
}

static leat_status guarded_run_add_n(leat_kernel *k)
{
    return guarded_work_start(k, NULL);
}

static const leat_kernel_def guarded_own[] = {
    {.op = "Neg", .where = {{"T", LEAT_T(FLOAT)}}, .run = guarded_run_neg},
    {.op = "Square", .where = {{"T", LEAT_T(FLOAT)}}, .run = guarded_run_square},
    {.op = "AddN", .where = {{"T", LEAT_T(FLOAT)}}, .run = guarded_run_add_n},
    {0},
};

/* ---- The list ---- */

/* The inputs and outputs that TensorFlow's GPU kernels of these ops have in the host's memory. */
static const struct {
    const char *op, *host;
} guarded_host[] = {
    {"Sum", "reduction_indices"},
    {"Mean", "reduction_indices"},
    {"Max", "reduction_indices"},
    {"Fill", "dims"},
    {"Tile", "multiples"},
    {"Transpose", "perm"},
    {"ConcatV2", "axis"},
    {"Concat", "concat_dim"},
    {"Slice", "begin, size"},
    {"StridedSlice", "begin, end, strides"},
    {"Split", "split_dim"},
    {"ArgMax", "dimension"},
    {"Pad", "paddings"},
    {"Range", "start, limit, delta, output"},
    {"RandomUniform", "shape"},
    {"BroadcastGradientArgs", "s0, s1, r0, r1"},
    {"TruncatedNormal", "shape"},
    {"IsVariableInitialized", "is_initialized"},
    {"StridedSliceGrad", "shape, begin, end, strides"},
};

/* Not for variants: kernels on the host read the tensors in them. */
static bool guarded_can(const leat_kernel_def *d)
{
    const leat_op_info *op = leat_op_find(d->op);
    bool variants = false;
    for (int i = 0; i < op->n_in + op->n_out; i++)
        variants |= (i < op->n_in ? &op->in[i] : &op->out[i - op->n_in])->type == LEAT_VARIANT;
    return d->run && !(d->flags & LEAT_KERNEL_BLOCKS) && !variants;
}

static void guarded_wrap(const leat_kernel_def *d)
{
    leat_grow(guarded_kernels.cpu, guarded_kernels.n, guarded_kernels.cap_cpu);
    leat_grow(guarded_kernels.defs, guarded_kernels.n, guarded_kernels.cap);
    guarded_kernels.cpu[guarded_kernels.n] = d;
    leat_kernel_def *x = &guarded_kernels.defs[guarded_kernels.n++];
    *x = *d;
    x->run = NULL;
    x->run_async = guarded_kernel_start;
    for (size_t i = 0; i < sizeof(guarded_host) / sizeof(*guarded_host); i++)
        if (strcmp(guarded_host[i].op, d->op) == 0)
            x->host = guarded_host[i].host;
    for (int i = 0; guarded_own[i].op; i++)
        if (strcmp(guarded_own[i].op, d->op) == 0)
            x->where[0].types &= ~LEAT_T(FLOAT);
}

static const leat_kernel_def *const *guarded_kernel_lists(void)
{
    const leat_kernel_def *const *lists = leat_host_kind()->kernels();
    for (int i = 0; lists[i]; i++)
        for (const leat_kernel_def *d = lists[i]; d->op; d++)
            if (guarded_can(d))
                guarded_wrap(d);
    leat_grow(guarded_kernels.defs, guarded_kernels.n, guarded_kernels.cap);
    guarded_kernels.defs[guarded_kernels.n] = (leat_kernel_def){0};
    guarded_kernels.lists[0] = guarded_own;
    guarded_kernels.lists[1] = guarded_kernels.defs;
    return guarded_kernels.lists;
}

#endif
