/* map_defun.c -- MapDefun: a function is called for each row of some tensors, all calls at once;
 * its results are rows of the outputs. */
#include <pthread.h>
#include <stdlib.h>

#include "core/alloc.h"
#include "core/element.h"
#include "kernels/cpu/cpu.h"

typedef struct calls {
    leat_kernel *k;
    int64_t rows;
    pthread_mutex_t lock; /* guards what follows */
    int64_t left;         /* calls that have not ended, and 1 while calls are started */
    leat_status status;   /* the first error */
    leat_tensor **out;    /* of each output: made by the first result */
} calls;

typedef struct row {
    calls *c;
    int64_t i;
} row;

static leat_status check_arguments(leat_kernel *k, int n, int64_t *rows)
{
    for (int i = 0; i < n; i++) {
        const leat_shape *s = &leat_kernel_in(k, i)->shape;
        LEAT_REQUIRE(s->rank > 0, INVALID_ARGUMENT,
                     "All inputs must have rank at least 1. Input %d has a rank of 0.", i);
        if (i == 0)
            *rows = s->dim[0];
        LEAT_REQUIRE(s->dim[0] == *rows, INVALID_ARGUMENT,
                     "All inputs must have the same dimension 0. Input %d has leading dimension "
                     "%lld, while all previous inputs have leading dimension %lld",
                     i, (long long)s->dim[0], (long long)*rows);
    }
    return NULL;
}

static leat_status check_results(leat_kernel *k, const leat_callable *f)
{
    const leat_dtype *types;
    const leat_node *node = leat_kernel_node(k);
    int n_shapes, n = leat_callable_results(f, &types);
    leat_node_shapes(node, "output_shapes", &n_shapes);
    LEAT_REQUIRE(n_shapes == node->n_out, INVALID_ARGUMENT,
                 "Length of output_shapes and output_types must match.");
    LEAT_REQUIRE(n == node->n_out, INVALID_ARGUMENT, "Mismatch in number of function outputs.");
    for (int i = 0; i < n; i++)
        LEAT_REQUIRE(types[i] == node->out_types[i], INVALID_ARGUMENT,
                     "Mismatch in function return type and expected output type for output: %d", i);
    return NULL;
}

/* Makes output o for rows of shape s. */
static leat_status make_output(calls *c, int o, const leat_shape *s)
{
    int n;
    const leat_shape *want = leat_node_shapes(leat_kernel_node(c->k), "output_shapes", &n);
    leat_shape whole = *s;
    LEAT_REQUIRE(leat_shape_compatible(&want[o], s), INVALID_ARGUMENT,
                 "Mismatch in function retval shape, %s, and expected output shape, %s.",
                 leat_shape_show(s).s, leat_shape_show(&want[o]).s);
    LEAT_REQUIRE(s->rank < LEAT_MAX_RANK, INVALID_ARGUMENT, "A result has too many dimensions");
    memmove(whole.dim + 1, whole.dim, sizeof(*whole.dim) * (size_t)whole.rank++);
    whole.dim[0] = c->rows;
    return leat_kernel_out(c->k, o, &whole, &c->out[o]);
}

/* With the lock held: output o gets its row i. */
static leat_status put_row(calls *c, int o, int64_t i, const leat_tensor *t)
{
    if (!c->out[o])
        LEAT_TRY(make_output(c, o, &t->shape));
    const leat_tensor *y = c->out[o];
    const leat_shape each = leat_shape_make(y->shape.rank - 1, y->shape.dim + 1);
    LEAT_REQUIRE(leat_shape_equal(&each, &t->shape), INVALID_ARGUMENT,
                 "Mismatch in function retval shape, %s, and expected output shape, %s.",
                 leat_shape_show(&t->shape).s, leat_shape_show(&each).s);
    return leat_elements_copy(
        y->dtype, (char *)y->data + leat_element_size(y->dtype) * (size_t)(i * t->count), t->data,
        t->count);
}

/* Drops one of the calls that are left; the last one ends the kernel. Takes s. */
static void end_one(calls *c, leat_status s)
{
    pthread_mutex_lock(&c->lock);
    c->status = leat_status_first(c->status, s);
    const bool last = --c->left == 0;
    pthread_mutex_unlock(&c->lock);
    if (!last)
        return;
    leat_kernel *k = c->k;
    leat_status status = c->status;
    pthread_mutex_destroy(&c->lock);
    free(c->out);
    free(c);
    leat_kernel_done(k, status);
}

static void called(void *arg, leat_status s, leat_tensor **results, int n)
{
    row *r = arg;
    calls *c = r->c;
    pthread_mutex_lock(&c->lock);
    for (int o = 0; o < n && !s && !c->status; o++)
        s = put_row(c, o, r->i, results[o]);
    pthread_mutex_unlock(&c->lock);
    for (int o = 0; o < n; o++)
        leat_tensor_unref(results[o]);
    free(r);
    end_one(c, s);
}

/* The arguments of the call for row i: rows, then what is captured. Gives references. */
static leat_status arguments_of(leat_kernel *k, int n_rows, int64_t i, leat_tensor **args)
{
    for (int a = 0; a < leat_kernel_inputs(k); a++) {
        const leat_tensor *t = leat_kernel_in(k, a);
        leat_tensor *one;
        if (a >= n_rows) {
            args[a] = leat_tensor_ref((leat_tensor *)t);
            continue;
        }
        LEAT_TRY(leat_tensor_rows(t, i, i + 1, &one));
        leat_status s = leat_tensor_reshape(
            one, leat_shape_make(one->shape.rank - 1, one->shape.dim + 1), &args[a]);
        leat_tensor_unref(one);
        LEAT_TRY(s);
    }
    return NULL;
}

static void start_row(calls *c, leat_callable *f, int n_rows, int64_t i)
{
    const int n = leat_kernel_inputs(c->k);
    leat_tensor **args = leat_new_array(leat_tensor *, n + 1);
    leat_status s = arguments_of(c->k, n_rows, i, args);
    pthread_mutex_lock(&c->lock);
    c->left++;
    pthread_mutex_unlock(&c->lock);
    if (s) {
        end_one(c, s);
    } else {
        row *r = leat_new(row);
        *r = (row){c, i};
        leat_callable_start(f, args, n, &(leat_callable_options){.kernel = c->k}, called, r);
    }
    for (int a = 0; a < n; a++)
        leat_tensor_unref(args[a]);
    free(args);
}

/* Without rows, outputs are empty, with the shapes that the node says. */
static leat_status make_empty(calls *c)
{
    int n;
    const leat_shape *want = leat_node_shapes(leat_kernel_node(c->k), "output_shapes", &n);
    for (int o = 0; o < n; o++) {
        LEAT_REQUIRE(leat_shape_known(&want[o]), INVALID_ARGUMENT,
                     "There are no rows, and the shape of output %d, %s, is not known", o,
                     leat_shape_show(&want[o]).s);
        LEAT_TRY(make_output(c, o, &want[o]));
    }
    return NULL;
}

static void map_defun_run(leat_kernel *k)
{
    int n_rows;
    leat_callable *f;
    int64_t rows = 0;
    leat_node_types(leat_kernel_node(k), "Targuments", &n_rows);
    leat_status s = check_arguments(k, n_rows, &rows);
    if (!s)
        s = leat_kernel_function(k, "f", 0, &f);
    if (!s)
        s = check_results(k, f);
    if (s) {
        leat_kernel_done(k, s);
        return;
    }
    calls *c = leat_new(calls);
    *c = (calls){.k = k, .rows = rows, .left = 1};
    c->out = leat_new_array(leat_tensor *, k->n_out + 1);
    pthread_mutex_init(&c->lock, NULL);
    s = rows ? NULL : make_empty(c);
    for (int64_t i = 0; i < rows && !s; i++) {
        s = leat_kernel_check(k);
        if (!s)
            start_row(c, f, n_rows, i);
    }
    end_one(c, s);
}

const leat_kernel_def leat_cpu_map_defun[] = {
    {.op = "MapDefun", .run_async = map_defun_run, .flags = LEAT_KERNEL_EXPENSIVE},
    {0},
};
