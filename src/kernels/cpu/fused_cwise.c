/* fused_cwise.c -- _FusedCwise: a tree of element-wise ops, block by block, so that what lies
 * between them stays in the first cache. Each step is the row function of the op's own kernel, so
 * the values are those of the ops one by one. Where shapes turn out to need more than repeating
 * single elements, the steps run one after the other, as their ops would. */
#include <stdlib.h>
#include <string.h>

#include "core/alloc.h"
#include "kernels/cpu/rows.h"

enum { BLOCK = 512, REGISTERS = 12 }; /* elements; blocks that are alive at once, at most */

typedef struct step {
    leat_rows rows;
    const char *op, *name; /* of the node that it comes from */
    int a, b;              /* operands: inputs, or n_args + a register */
    int to;                /* register */
} step;

typedef struct program {
    step *steps;
    int n, n_args;
    double unit_ns;
} program;

/* Results are used once, and in the order of a stack: the operands of a step are on top. */
static leat_status place(program *p, int *home, int operand, int step, int *depth, int *out)
{
    if (operand < p->n_args) {
        *out = operand;
        return NULL;
    }
    int from = operand - p->n_args;
    LEAT_REQUIRE(from < step && home[from] == *depth - 1, INVALID_ARGUMENT,
                 "_FusedCwise: the operands of step %d are out of order", step);
    *out = p->n_args + home[from];
    home[from] = -1;
    --*depth;
    return NULL;
}

static leat_status make_program(const leat_node *n, program *p, int *home)
{
    int n_ops, n_operands, n_names, depth = 0;
    const char *const *ops = leat_node_strings(n, "ops", &n_ops);
    const int64_t *operands = leat_node_ints(n, "operands", &n_operands);
    const char *const *names = leat_node_strings(n, "names", &n_names);
    LEAT_REQUIRE(n_ops > 0 && n_operands == 2 * n_ops, INVALID_ARGUMENT,
                 "_FusedCwise has %d ops and %d operands", n_ops, n_operands);
    p->n_args = (int)leat_node_int(n, "num_args");
    p->steps = leat_new_array(step, n_ops);
    for (int i = 0; i < n_ops; i++) {
        step *s = &p->steps[i];
        int64_t a = operands[2 * i], b = operands[2 * i + 1];
        s->op = ops[i];
        s->name = i < n_names ? names[i] : leat_node_name(n);
        LEAT_TRY(leat_rows_find(n, ops[i], &s->rows));
        p->unit_ns += s->rows.one.unit_ns + s->rows.two.unit_ns;
        LEAT_REQUIRE(a >= 0 && a < p->n_args + i && b < p->n_args + i &&
                         (b >= 0) == (s->rows.two.fn != NULL),
                     INVALID_ARGUMENT, "_FusedCwise: step %d has the wrong operands", i);
        /* The second operand was computed last: it is on top. */
        if (b >= 0)
            LEAT_TRY(place(p, home, (int)b, i, &depth, &s->b));
        LEAT_TRY(place(p, home, (int)a, i, &depth, &s->a));
        s->to = home[i] = depth++;
        LEAT_REQUIRE(depth <= REGISTERS, INVALID_ARGUMENT, "_FusedCwise is too deep at step %d", i);
        p->n++;
    }
    return NULL;
}

static leat_status init(const leat_node *n, void *state)
{
    int n_ops;
    leat_node_strings(n, "ops", &n_ops);
    int *home = leat_new_array(int, n_ops + 1); /* the register of each step's result */
    leat_status s = make_program(n, state, home);
    free(home);
    if (s)
        free(((program *)state)->steps);
    return s;
}

static void release(void *state)
{
    free(((program *)state)->steps);
}

typedef struct run_args {
    const program *p;
    leat_kernel *k;
    char *y;
    size_t size; /* of an element */
} run_args;

static void blocks(void *arg, int64_t begin, int64_t end)
{
    const run_args *r = arg;
    const program *p = r->p;
    _Alignas(64) char registers[REGISTERS][BLOCK * sizeof(double)];
    for (int64_t at = begin; at < end; at += BLOCK) {
        int64_t n = end - at < BLOCK ? end - at : BLOCK;
        for (int i = 0; i < p->n; i++) {
            const step *s = &p->steps[i];
            const void *x[2] = {NULL, NULL};
            bool one[2] = {false, false};
            for (int o = 0; o < 1 + (s->rows.two.fn != NULL); o++) {
                int from = o ? s->b : s->a;
                if (from >= p->n_args) {
                    x[o] = registers[from - p->n_args];
                    continue;
                }
                const leat_tensor *t = r->k->in[from].tensor;
                one[o] = t->count == 1;
                x[o] = (const char *)t->data + (one[o] ? 0 : (size_t)at * r->size);
            }
            void *z = i + 1 < p->n ? registers[s->to] : r->y + (size_t)at * r->size;
            if (s->rows.two.fn)
                s->rows.two.fn(x[0], one[0], x[1], one[1], z, n);
            else
                s->rows.one.fn(x[0], z, n);
        }
    }
}

/* The input that has the output's shape, if the others have it, too, or one element. */
static int widest_of(leat_kernel *k, const program *p)
{
    int widest = 0;
    for (int i = 1; i < p->n_args; i++) {
        const leat_tensor *t = k->in[i].tensor, *w = k->in[widest].tensor;
        if (t->shape.rank > w->shape.rank ||
            (t->shape.rank == w->shape.rank && t->count > w->count))
            widest = i;
    }
    return widest;
}

/* Whether each step has an operand of x's shape, and its other one has, too, or one element, and
 * that is allowed. */
static bool in_blocks(leat_kernel *k, const program *p, const leat_tensor *x)
{
    bool same = true;
    for (int i = 0; i < p->n_args; i++) {
        const leat_tensor *t = k->in[i].tensor;
        bool equal = leat_shape_equal(&t->shape, &x->shape);
        if (!equal && (t->count != 1 || t->shape.rank > x->shape.rank))
            return false;
        same &= equal;
    }
    for (int i = 0; i < p->n && !same; i++) {
        const step *s = &p->steps[i];
        int from[2] = {s->a, s->rows.two.fn ? s->b : s->a}, wide = 0;
        for (int o = 0; o < 2; o++)
            wide +=
                from[o] >= p->n_args || leat_shape_equal(&k->in[from[o]].tensor->shape, &x->shape);
        if (wide == 0 || (wide == 1 && s->rows.same))
            return false;
    }
    return true;
}

static leat_status new_result(leat_kernel *k, const program *p, int i, const leat_shape *shape,
                              leat_tensor **out)
{
    if (i + 1 == p->n)
        return leat_kernel_out(k, 0, shape, out);
    return leat_tensor_alloc(k->device->allocator, k->in[0].tensor->dtype, shape, out);
}

/* b is NULL for ops of one operand. The result may be there even after an error. */
static leat_status step_run(leat_kernel *k, const program *p, int i, const leat_tensor *a,
                            const leat_tensor *b, leat_tensor **out)
{
    const step *s = &p->steps[i];
    if (!b) {
        LEAT_TRY(new_result(k, p, i, &a->shape, out));
        leat_row1_apply(k, &s->rows.one, a, *out);
        return NULL;
    }
    leat_broadcast c;
    if (s->rows.same)
        LEAT_TRY(leat_row2_check_same(s->name, s->op, &a->shape, &b->shape));
    LEAT_TRY(leat_broadcast_init(&c, &a->shape, &b->shape));
    LEAT_TRY(new_result(k, p, i, &c.out, out));
    return leat_row2_apply(k, &s->rows.two, &c, a, b, *out);
}

static leat_status one_by_one(leat_kernel *k, const program *p)
{
    leat_tensor *registers[REGISTERS] = {NULL};
    leat_status status = NULL;
    for (int i = 0; i < p->n && !status; i++) {
        const step *s = &p->steps[i];
        int from[2] = {s->a, s->rows.two.fn ? s->b : -1};
        const leat_tensor *x[2] = {NULL, NULL};
        for (int o = 0; o < 2 && from[o] >= 0; o++)
            x[o] = from[o] < p->n_args ? k->in[from[o]].tensor : registers[from[o] - p->n_args];
        leat_tensor *z = NULL;
        status = step_run(k, p, i, x[0], x[1], &z);
        if (status)
            status = leat_status_suffix(status, "\n\t [[{{node %s}}]]", s->name);
        for (int o = 0; o < 2; o++) {
            if (from[o] < p->n_args)
                continue;
            leat_tensor_unref(registers[from[o] - p->n_args]);
            registers[from[o] - p->n_args] = NULL;
        }
        if (i + 1 < p->n)
            registers[s->to] = z;
    }
    for (int i = 0; i < REGISTERS; i++)
        leat_tensor_unref(registers[i]);
    return status;
}

static leat_status run(leat_kernel *k)
{
    const program *p = leat_kernel_state(k);
    int widest = widest_of(k, p);
    const leat_tensor *x = k->in[widest].tensor;
    if (!in_blocks(k, p, x))
        return one_by_one(k, p);
    leat_tensor *y;
    LEAT_TRY(leat_kernel_out_over(k, 0, widest, &x->shape, &y));
    run_args r = {.p = p, .k = k, .y = y->data, .size = leat_dtype_size(x->dtype)};
    if (x->count <= BLOCK)
        blocks(&r, 0, x->count);
    else
        leat_kernel_for(k, x->count, p->unit_ns, blocks, &r);
    return NULL;
}

const leat_kernel_def leat_cpu_fused_cwise[] = {
    {.op = "_FusedCwise",
     .where = {{"T", LEAT_T(FLOAT) | LEAT_T(DOUBLE)}},
     .run = run,
     .state_size = sizeof(program),
     .init = init,
     .release = release},
    {0},
};
