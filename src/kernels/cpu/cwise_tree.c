/* cwise_tree.c -- see cwise_tree.h. Intermediate results stay in the first-level cache. Each step
 * calls the row function of the op's own kernel, so the results are those of the single ops. */
#include "kernels/cpu/cwise_tree.h"

#include <stdlib.h>

#include "core/alloc.h"

/* Limit of blocks of intermediate results that are in use at the same time. */
enum { REGISTERS = 12 };

typedef struct leat_cwise_step {
    leat_rows rows;
    const char *op, *name; /* op and name of the original node */
    int a, b;              /* operands: index of an input, or n_args + a register */
    int to;                /* register of the result */
} step;

/* Registers are allocated like a stack: each result is used once, and the operands of a step are on
 * top of the stack. */
static leat_status place(leat_cwise_tree *t, int *home, int operand, int step, int *depth, int *out)
{
    if (operand < t->n_args) {
        *out = operand;
        return NULL;
    }
    int from = operand - t->n_args;
    LEAT_REQUIRE(from < step && home[from] == *depth - 1, INVALID_ARGUMENT,
                 "The operands of element-wise step %d are out of order", step);
    *out = t->n_args + home[from];
    home[from] = -1;
    --*depth;
    return NULL;
}

static leat_status make_steps(leat_cwise_tree *t, const leat_node *n, int *home)
{
    int n_ops, n_operands, n_names, depth = 0;
    const char *const *ops = leat_node_strings(n, "ops", &n_ops);
    const int64_t *operands = leat_node_ints(n, "operands", &n_operands);
    const char *const *names = leat_node_strings(n, "names", &n_names);
    LEAT_REQUIRE(n_ops > 0 && n_operands == 2 * n_ops, INVALID_ARGUMENT,
                 "%s has %d ops and %d operands", leat_node_op(n), n_ops, n_operands);
    t->n_args = (int)leat_node_int(n, "num_args");
    t->steps = leat_new_array(step, n_ops);
    for (int i = 0; i < n_ops; i++) {
        step *s = &t->steps[i];
        int64_t a = operands[2 * i], b = operands[2 * i + 1];
        s->op = ops[i];
        s->name = i < n_names ? names[i] : leat_node_name(n);
        LEAT_TRY(leat_rows_find(n, ops[i], &s->rows));
        t->unit_ns += s->rows.one.unit_ns + s->rows.two.unit_ns;
        LEAT_REQUIRE(a >= 0 && a < t->n_args + i && b < t->n_args + i &&
                         (b >= 0) == (s->rows.two.fn != NULL),
                     INVALID_ARGUMENT, "Element-wise step %d has the wrong operands", i);
        /* The second operand was computed last, so it is on top. */
        if (b >= 0)
            LEAT_TRY(place(t, home, (int)b, i, &depth, &s->b));
        LEAT_TRY(place(t, home, (int)a, i, &depth, &s->a));
        s->to = home[i] = depth++;
        LEAT_REQUIRE(depth <= REGISTERS, INVALID_ARGUMENT, "%s is too deep at step %d",
                     leat_node_op(n), i);
        t->n++;
    }
    return NULL;
}

leat_status leat_cwise_init(leat_cwise_tree *t, const leat_node *n)
{
    int n_ops;
    leat_node_strings(n, "ops", &n_ops);
    int *home = leat_new_array(int, n_ops + 1); /* the register of each step's result */
    leat_status s = make_steps(t, n, home);
    free(home);
    if (s)
        leat_cwise_release(t);
    return s;
}

void leat_cwise_release(leat_cwise_tree *t)
{
    free(t->steps);
    t->steps = NULL;
}

bool leat_cwise_fits(const leat_cwise_tree *t, const leat_entry *in, const leat_shape *s)
{
    bool same = true;
    for (int i = 0; i < t->n_args; i++) {
        const leat_tensor *x = in[i].tensor;
        bool equal = leat_shape_equal(&x->shape, s);
        if (!equal && (x->count != 1 || x->shape.rank > s->rank))
            return false;
        same &= equal;
    }
    for (int i = 0; i < t->n && !same; i++) {
        const step *at = &t->steps[i];
        int from[2] = {at->a, at->rows.two.fn ? at->b : at->a}, wide = 0;
        for (int o = 0; o < 2; o++)
            wide += from[o] >= t->n_args || leat_shape_equal(&in[from[o]].tensor->shape, s);
        if (wide == 0 || (wide == 1 && at->rows.same))
            return false;
    }
    return true;
}

void leat_cwise_block(const leat_cwise_tree *t, const leat_entry *in, int64_t at, int64_t n,
                      void *y)
{
    _Alignas(64) char registers[REGISTERS][LEAT_CWISE_BLOCK * sizeof(double)];
    size_t size = leat_dtype_size(in[0].tensor->dtype);
    for (int i = 0; i < t->n; i++) {
        const step *s = &t->steps[i];
        const void *x[2] = {NULL, NULL};
        bool one[2] = {false, false};
        for (int o = 0; o < 1 + (s->rows.two.fn != NULL); o++) {
            int from = o ? s->b : s->a;
            if (from >= t->n_args) {
                x[o] = registers[from - t->n_args];
                continue;
            }
            const leat_tensor *arg = in[from].tensor;
            one[o] = arg->count == 1;
            x[o] = (const char *)arg->data + (one[o] ? 0 : (size_t)at * size);
        }
        void *z = i + 1 < t->n ? registers[s->to] : y;
        if (s->rows.two.fn)
            s->rows.two.fn(x[0], one[0], x[1], one[1], z, n);
        else
            s->rows.one.fn(x[0], z, n);
    }
}

/* b is NULL for ops of one operand. Even after an error, the result may have been allocated. */
static leat_status step_run(leat_kernel *k, const step *s, const leat_tensor *a,
                            const leat_tensor *b, leat_tensor **out)
{
    leat_allocator *memory = k->device->allocator;
    if (!b) {
        LEAT_TRY(leat_tensor_alloc(memory, a->dtype, &a->shape, out));
        leat_row1_apply(k, &s->rows.one, a, *out);
        return NULL;
    }
    leat_broadcast c;
    if (s->rows.same)
        LEAT_TRY(leat_row2_check_same(s->name, s->op, &a->shape, &b->shape));
    LEAT_TRY(leat_broadcast_init(&c, &a->shape, &b->shape));
    LEAT_TRY(leat_tensor_alloc(memory, a->dtype, &c.out, out));
    return leat_row2_apply(k, &s->rows.two, &c, a, b, *out);
}

leat_status leat_cwise_whole(leat_kernel *k, const leat_cwise_tree *t, const leat_entry *in,
                             leat_tensor **out)
{
    leat_tensor *registers[REGISTERS] = {NULL};
    leat_status status = NULL;
    for (int i = 0; i < t->n && !status; i++) {
        const step *s = &t->steps[i];
        int from[2] = {s->a, s->rows.two.fn ? s->b : -1};
        const leat_tensor *x[2] = {NULL, NULL};
        for (int o = 0; o < 2 && from[o] >= 0; o++)
            x[o] = from[o] < t->n_args ? in[from[o]].tensor : registers[from[o] - t->n_args];
        leat_tensor *z = NULL;
        status = step_run(k, s, x[0], x[1], &z);
        if (status)
            status = leat_status_suffix(status, "\n\t [[{{node %s}}]]", s->name);
        for (int o = 0; o < 2; o++) {
            if (from[o] < t->n_args)
                continue;
            leat_tensor_unref(registers[from[o] - t->n_args]);
            registers[from[o] - t->n_args] = NULL;
        }
        registers[s->to] = z;
    }
    int last = t->steps[t->n - 1].to;
    *out = NULL;
    if (!status) {
        *out = registers[last];
        registers[last] = NULL;
    }
    for (int i = 0; i < REGISTERS; i++)
        leat_tensor_unref(registers[i]);
    return status;
}
