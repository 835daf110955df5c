/* row1.c -- the run of every element-wise kernel of one operand. */
#include "kernels/cpu/row1.h"

void leat_row1_bind(const leat_node *n, const leat_row1_fn *fns, double unit_ns, void *state)
{
    const leat_dtype t = leat_dtype_base(leat_out_dtype(leat_node_input(n, 0)));
    *(leat_row1 *)state = (leat_row1){fns[leat_compute_dtype(t)], (float)unit_ns};
}

typedef struct row1_args {
    leat_row1_fn fn;
    const char *x;
    char *y;
    size_t x_size, y_size; /* bytes of an element */
} row1_args;

static void part(void *arg, int64_t begin, int64_t end)
{
    const row1_args *r = arg;
    r->fn(r->x + (size_t)begin * r->x_size, r->y + (size_t)begin * r->y_size, end - begin);
}

void leat_row1_apply(leat_kernel *k, const leat_row1 *r, const leat_tensor *x, leat_tensor *y)
{
    if (x->count == 1) {
        r->fn(x->data, y->data, 1);
        return;
    }
    row1_args args = {.fn = r->fn, .x = x->data, .y = y->data};
    args.x_size = leat_dtype_size(x->dtype);
    args.y_size = leat_dtype_size(y->dtype);
    leat_kernel_for(k, x->count, r->unit_ns, part, &args);
}

leat_status leat_row1_run(leat_kernel *k)
{
    const leat_tensor *x = leat_kernel_in(k, 0);
    leat_tensor *y;
    LEAT_TRY(leat_kernel_out_over(k, 0, 0, &x->shape, &y));
    leat_row1_apply(k, leat_kernel_state(k), x, y);
    return NULL;
}
