/* callable_ops.h -- for tests of functions that kernels run: an op that calls its function for all
 * elements of a tensor at once; an op that keeps its function after the step; graphs with both. */
#ifndef LEAT_TEST_CALLABLE_OPS_H
#define LEAT_TEST_CALLABLE_OPS_H

#include <leat/extend.h>
#include <leat/function.h>
#include <leat/leat.h>
#include <pthread.h>

#include "core/alloc.h"
#include "graph/graph_int.h"
#include "runtime/callable.h"
#include "runtime/kernel_int.h"
#include "runtime/session_int.h"
#include "test.h"

/* ---- Ops ---- */

typedef struct each {
    leat_kernel *k;
    leat_tensor *y;
    atomic_int left;
    pthread_mutex_t lock; /* guards status */
    leat_status status;
} each;

typedef struct one {
    each *all;
    int at;
} one;

static inline void each_ended(each *e)
{
    if (atomic_fetch_sub(&e->left, 1) != 1)
        return;
    leat_kernel *k = e->k;
    leat_status s = e->status;
    pthread_mutex_destroy(&e->lock);
    free(e);
    leat_kernel_done(k, s);
}

static inline void one_done(void *arg, leat_status s, leat_tensor **results, int n)
{
    one *x = arg;
    each *e = x->all;
    pthread_mutex_lock(&e->lock);
    if (!s)
        ((float *)leat_tensor_data(e->y))[x->at] = (float)leat_tensor_at(results[0], 0);
    e->status = leat_status_first(e->status, s);
    pthread_mutex_unlock(&e->lock);
    for (int i = 0; i < n; i++)
        leat_tensor_unref(results[i]);
    free(x);
    each_ended(e);
}

/* f(element, captured...) */
static inline void for_each(leat_kernel *k)
{
    const leat_tensor *x = leat_kernel_in(k, 0);
    int n = (int)leat_tensor_count(x);
    leat_callable *f;
    leat_tensor *y, *args[4] = {NULL};
    leat_shape shape = leat_shape(n);
    leat_status s = leat_kernel_function(k, "f", 0, &f);
    if (!s)
        s = leat_kernel_out(k, 0, &shape, &y);
    if (s || leat_callable_args(f, NULL) > 4) {
        leat_kernel_done(k, s ? s : leat_error(INVALID_ARGUMENT, "too many arguments"));
        return;
    }
    each *e = leat_new(each);
    pthread_mutex_init(&e->lock, NULL);
    e->k = k;
    e->y = y;
    atomic_init(&e->left, n + 1);
    for (int i = 1; i < leat_kernel_inputs(k); i++)
        args[i] = (leat_tensor *)leat_kernel_in(k, i);
    for (int i = 0; i < n; i++) {
        one *a = leat_new(one);
        *a = (one){e, i};
        args[0] = leat_scalar_float((float)leat_tensor_at(x, i));
        leat_callable_start(f, args, leat_kernel_inputs(k), &(leat_callable_options){.kernel = k},
                            one_done, a);
        leat_tensor_unref(args[0]);
    }
    each_ended(e);
}

static leat_callable *kept;

static inline leat_status keep(leat_kernel *k)
{
    leat_callable *f;
    LEAT_TRY(leat_kernel_function(k, "f", 0, &f));
    kept = leat_callable_ref(f);
    return NULL;
}

/* The function of a node, and its gradient, are two callables. */
static inline leat_status two_callables(leat_kernel *k)
{
    leat_callable *f, *gradient;
    LEAT_TRY(leat_kernel_function(k, "f", 0, &f));
    LEAT_TRY(leat_callables_get(leat_kernel_callables(k),
                                leat_node_attr(leat_kernel_node(k), "f")->func, true,
                                leat_kernel_device(k)->name, &gradient));
    LEAT_REQUIRE(leat_callable_args(f, NULL) == 1 && leat_callable_args(gradient, NULL) == 2,
                 INTERNAL, "f has %d arguments, its gradient has %d", leat_callable_args(f, NULL),
                 leat_callable_args(gradient, NULL));
    return NULL;
}

static inline leat_status vector(leat_infer *c)
{
    leat_infer_out(c, 0, leat_shape(-1));
    return NULL;
}

static inline void register_ops(void)
{
    static const leat_op_def ops[] = {{.name = "TestForEach",
                                       .inputs = "x: float, captured: Tcaptured",
                                       .outputs = "y: float",
                                       .attrs = "Tcaptured: list(type) >= 0; f: func",
                                       .shape = vector,
                                       .grad = leat_grad_missing,
                                       .flags = LEAT_OP_STATEFUL},
                                      {.name = "TestKeep",
                                       .attrs = "f: func",
                                       .shape = leat_shape_none,
                                       .grad = leat_grad_missing,
                                       .flags = LEAT_OP_STATEFUL},
                                      {.name = "TestTwo",
                                       .attrs = "f: func",
                                       .shape = leat_shape_none,
                                       .grad = leat_grad_missing,
                                       .flags = LEAT_OP_STATEFUL}};
    static const leat_kernel_def kernels[] = {{.op = "TestForEach", .run_async = for_each},
                                              {.op = "TestKeep", .run = keep},
                                              {.op = "TestTwo", .run = two_callables}};
    for (int i = 0; i < 3; i++)
        CHECK_OK(leat_register_op(&ops[i]));
    CHECK_OK(leat_register_kernels("CPU", kernels, 3));
}

/* ---- Graphs ---- */

static inline leat_out number(leat_graph *g, double v)
{
    return leat_scalar(g, LEAT_FLOAT, v);
}

static inline leat_out call(leat_graph *g, const char *f, leat_out x)
{
    return leat_op(g, "PartitionedCall", leat_ins(&x, 1),
                   leat_attr_types("Tout", (leat_dtype[]){LEAT_FLOAT}, 1), leat_attr_func("f", f),
                   leat_name(f));
}

static inline void one_result(leat_graph *g, void *arg, leat_out *outs)
{
    outs[0] = number(g, 1);
}

static inline void two_before(leat_graph *g, void *arg, leat_out *outs)
{
    leat_out n = *(leat_out *)arg;
    outs[0] = leat_add(call(g, "Fibonacci", leat_sub(n, number(g, 1))),
                       call(g, "Fibonacci", leat_sub(n, number(g, 2))));
}

static inline void fibonacci(leat_graph *g, void *arg, const leat_out *in, leat_out *out)
{
    leat_out n = in[0];
    leat_cond(leat_less(n, number(g, 3)), one_result, two_before, &n, out, 1);
}

typedef struct program {
    leat_graph *g;
    leat_out x, y;
    leat_session *s;
} program;

static inline program open_program(const char *name, leat_function_fn fn)
{
    program p = {.g = leat_graph_new()};
    leat_function_define(p.g, name, fn, NULL, 1, LEAT_FLOAT);
    p.x = leat_placeholder(p.g, LEAT_FLOAT, leat_shape());
    p.y = call(p.g, name, p.x);
    CHECK_OK(leat_graph_status(p.g));
    CHECK_OK(leat_session_open(p.g, &p.s));
    return p;
}

static inline void close_program(program *p)
{
    leat_session_close(p->s);
    leat_graph_free(p->g);
}

static inline void scaled(leat_graph *g, void *arg, const leat_out *in, leat_out *out)
{
    out[0] = leat_mul(in[0], in[1]);
}

/* Function "F" with a captured tensor of this dtype, for each of 0 .. n - 1. */
static inline leat_out each_of(leat_graph *g, int n, leat_function_fn fn, leat_out captured)
{
    leat_function_define(g, "F", fn, NULL, 1, LEAT_FLOAT,
                         leat_dtype_base(leat_out_dtype(captured)));
    leat_out x = leat_range(number(g, 0), number(g, n), number(g, 1));
    return leat_op(g, "TestForEach", leat_in(x), leat_ins(&captured, 1), leat_attr_func("f", "F"),
                   leat_name("each"));
}

#endif
