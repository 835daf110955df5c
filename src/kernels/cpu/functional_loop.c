/* functional_loop.c -- While and For, whose condition and body are functions of the graph that are
 * called alternately. */
#include <stdlib.h>

#include "core/alloc.h"
#include "kernels/cpu/functional.h"

/* A running loop. One call is made at a time. Two threads come to its end: the one that started the
 * call, when leat_callable_start returns, and the one in which the call ended. The second of them
 * continues the loop, so that iterations do not nest on the stack. */
typedef struct loop {
    leat_kernel *k;
    leat_callable *cond, *body;          /* cond is NULL for For */
    int32_t i, limit, delta;             /* used by For only */
    enum { NOTHING, COND, BODY } called; /* the last function that was called */
    atomic_int turns;   /* how many of the two threads have come to the end of the call */
    leat_status status; /* status of the last call */
    leat_tensor **results;
    int n;                 /* number of loop variables */
    leat_tensor *values[]; /* references: For's counter, then the loop variables */
} loop;

static void end(loop *l, leat_status s)
{
    leat_kernel *k = l->k;
    for (int i = 0; i < l->n; i++)
        if (!s)
            leat_kernel_set(k, i, l->values[1 + i]);
        else
            leat_tensor_unref(l->values[1 + i]);
    leat_tensor_unref(l->values[0]);
    free(l->results);
    free(l);
    leat_kernel_done(k, s);
}

/* Whether For has another iteration; its counter becomes an argument. */
static leat_status count(loop *l, bool *more)
{
    *more = l->delta > 0 ? l->i < l->limit : l->i > l->limit;
    if (!*more)
        return NULL;
    leat_tensor_unref(l->values[0]);
    l->values[0] = NULL;
    return leat_tensor_copy_of(LEAT_INT32, leat_shape(), &l->i, &l->values[0]);
}

/* Takes the results of the last call, and returns what to call next: NOTHING at the end. */
static leat_status advance(loop *l)
{
    bool more = true;
    leat_status s = l->status;
    l->status = NULL;
    LEAT_TRY(s);
    for (int i = 0; l->called == BODY && i < l->n; i++) {
        leat_tensor_unref(l->values[1 + i]);
        l->values[1 + i] = l->results[i];
    }
    if (l->called == BODY && l->cond == NULL && __builtin_add_overflow(l->i, l->delta, &l->i))
        more = false; /* the counter would overflow */
    if (l->called == COND) {
        s = leat_truth(l->results[0], &more);
        leat_tensor_unref(l->results[0]);
        LEAT_TRY(s);
    }
    if (!l->cond && more)
        LEAT_TRY(count(l, &more));
    l->called = !more ? NOTHING : l->cond && l->called != COND ? COND : BODY;
    return NULL;
}

static void called(void *arg, leat_status s, leat_tensor **results, int n);

static void go_on(loop *l)
{
    leat_status s;
    while (!(s = advance(l)) && l->called != NOTHING) {
        const int first = l->cond ? 1 : 0;
        atomic_store(&l->turns, 0);
        leat_callable_start(l->called == COND ? l->cond : l->body, l->values + first,
                            l->n + 1 - first, &(leat_callable_options){.kernel = l->k}, called, l);
        if (atomic_fetch_add(&l->turns, 1) == 0)
            return;
    }
    end(l, s);
}

static void called(void *arg, leat_status s, leat_tensor **results, int n)
{
    loop *l = arg;
    l->status = s;
    for (int i = 0; i < n; i++)
        l->results[i] = results[i];
    if (atomic_fetch_add(&l->turns, 1) == 1)
        go_on(l);
}

/* Runs a loop over the inputs from `first` on. */
static loop *loop_new(leat_kernel *k, int first)
{
    int n = k->n_in - first;
    loop *l = leat_xcalloc(1, sizeof(loop) + sizeof(leat_tensor *) * (size_t)(n + 1));
    l->k = k;
    l->n = n;
    l->results = leat_new_array(leat_tensor *, n + 1);
    for (int i = 0; i < n; i++)
        l->values[1 + i] = leat_tensor_ref(k->in[first + i].tensor);
    return l;
}

static leat_status find_body(loop *l, const char *op)
{
    LEAT_TRY(leat_kernel_function(l->k, "body", 0, &l->body));
    const leat_dtype *types;
    int n = leat_callable_results(l->body, &types);
    LEAT_REQUIRE(n == l->n, INVALID_ARGUMENT, "%s loop body returned %d arguments. Expected: %d",
                 op, n, l->n);
    for (int i = 0; i < n; i++)
        LEAT_REQUIRE(types[i] == l->values[1 + i]->dtype, INVALID_ARGUMENT,
                     "%s loop body returned %s as argument %d. Expected: %s", op,
                     leat_dtype_name(types[i]), i, leat_dtype_name(l->values[1 + i]->dtype));
    return NULL;
}

static leat_status find_while(loop *l)
{
    LEAT_TRY(leat_kernel_function(l->k, "cond", 0, &l->cond));
    int n = leat_callable_results(l->cond, NULL);
    LEAT_REQUIRE(n == 1, INVALID_ARGUMENT,
                 "Expected a single scalar return value from WhileOp cond, got %d tensors.", n);
    return find_body(l, "While");
}

static void while_run(leat_kernel *k)
{
    loop *l = loop_new(k, 0);
    leat_status s = find_while(l);
    if (s)
        end(l, s);
    else
        go_on(l);
}

static leat_status scalar(leat_kernel *k, int i, const char *name, int32_t *out)
{
    const leat_tensor *t = leat_kernel_in(k, i);
    LEAT_REQUIRE(t->shape.rank == 0, INVALID_ARGUMENT, "%s must be a scalar, but %s", name,
                 leat_shape_show(&t->shape).s);
    *out = AT(int32_t, t)[0];
    return NULL;
}

static leat_status find_for(loop *l)
{
    LEAT_TRY(scalar(l->k, 0, "start", &l->i));
    LEAT_TRY(scalar(l->k, 1, "limit", &l->limit));
    LEAT_TRY(scalar(l->k, 2, "delta", &l->delta));
    LEAT_REQUIRE((l->delta > 0 && l->i <= l->limit) || (l->delta < 0 && l->i >= l->limit) ||
                     (l->delta == 0 && l->i == l->limit),
                 INVALID_ARGUMENT, "Invalid start/limit/delta: %d %d %d", l->i, l->limit, l->delta);
    return find_body(l, "For");
}

static void for_run(leat_kernel *k)
{
    loop *l = loop_new(k, 3);
    leat_status s = find_for(l);
    if (s)
        end(l, s);
    else
        go_on(l);
}

const leat_kernel_def leat_cpu_functional_loop[] = {
    {.op = "While", .run_async = while_run, .flags = LEAT_KERNEL_EXPENSIVE},
    {.op = "StatelessWhile", .run_async = while_run, .flags = LEAT_KERNEL_EXPENSIVE},
    {.op = "For", .run_async = for_run, .flags = LEAT_KERNEL_EXPENSIVE},
    {0},
};
