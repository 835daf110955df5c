/* functional.c -- ops that call one function of the graph while it runs: calls, branches,
 * gradients of functions, calls on another device. */
#include "kernels/cpu/functional.h"

#include <stdlib.h>

#include "core/alloc.h"

/* Sets the outputs to the results of the call. */
static void give_results(void *arg, leat_status s, leat_tensor **results, int n)
{
    leat_kernel *k = arg;
    for (int i = 0; i < n; i++)
        leat_kernel_set(k, i, results[i]);
    leat_kernel_done(k, s);
}

/* Checks that the function's results fit the node's outputs. */
static leat_status check_results(leat_kernel *k, const leat_callable *f)
{
    const leat_node *node = leat_kernel_node(k);
    const leat_dtype *types;
    int n = leat_callable_results(f, &types);
    LEAT_REQUIRE(n == k->n_out || !leat_node_is(node, "SymbolicGradient"), INVALID_ARGUMENT,
                 "SymGrad expects to return %d tensor(s), but get %d tensor(s) instead.", k->n_out,
                 n);
    LEAT_REQUIRE(n == k->n_out, INVALID_ARGUMENT,
                 "The function called by %s has %d results, not %d", node->name, n, k->n_out);
    for (int i = 0; i < n; i++)
        LEAT_REQUIRE(types[i] == leat_dtype_base(node->out_types[i]), INVALID_ARGUMENT,
                     "Result %d of the function called by %s is %s, not %s", i, node->name,
                     leat_dtype_name(types[i]), leat_dtype_name(node->out_types[i]));
    return NULL;
}

/* Calls f with the inputs from `first` on, unless there was an error. */
static void call(leat_kernel *k, leat_status s, leat_callable *f, int first)
{
    enum { FEW = 32 };
    int n = k->n_in - first;
    leat_tensor *few[FEW] = {NULL}, **args = n <= FEW ? few : leat_new_array(leat_tensor *, n);
    if (!s)
        s = check_results(k, f);
    for (int i = 0; i < n; i++)
        args[i] = k->in[first + i].tensor;
    if (s)
        leat_kernel_done(k, s);
    else
        leat_callable_start(f, args, n, &(leat_callable_options){.kernel = k}, give_results, k);
    if (args != few)
        free(args);
}

static void call_run(leat_kernel *k)
{
    leat_callable *f = NULL;
    leat_status s = leat_kernel_function(k, "f", 0, &f);
    call(k, s, f, 0);
}

static void gradient_run(leat_kernel *k)
{
    leat_callable *f = NULL;
    leat_status s =
        leat_callables_get(leat_kernel_callables(k), leat_node_attr(leat_kernel_node(k), "f")->func,
                           true, leat_kernel_device(k)->name, &f);
    call(k, s, f, 0);
}

/* ---- Branches ---- */

leat_status leat_truth(const leat_tensor *t, bool *out)
{
    if (t->shape.rank > 0) {
        *out = t->count > 0;
        return NULL;
    }
    if (t->dtype == LEAT_STRING) {
        *out = AT(leat_string, t)[0].size > 0;
        return NULL;
    }
    LEAT_REQUIRE(t->dtype == LEAT_BOOL || leat_types_has(LEAT_TYPES_REAL, t->dtype),
                 INVALID_ARGUMENT, "%s cannot be converted to a boolean",
                 leat_dtype_name(t->dtype));
    *out = leat_tensor_at(t, 0) != 0;
    return NULL;
}

static void if_run(leat_kernel *k)
{
    bool yes = false;
    leat_callable *f = NULL;
    leat_status s = leat_truth(leat_kernel_in(k, 0), &yes);
    if (!s)
        s = leat_kernel_function(k, yes ? "then_branch" : "else_branch", 0, &f);
    call(k, s, f, 1);
}

static void case_run(leat_kernel *k)
{
    const leat_tensor *index = leat_kernel_in(k, 0);
    int n = leat_node_attr(leat_kernel_node(k), "branches")->n;
    leat_callable *f = NULL;
    leat_status s = NULL;
    if (index->shape.rank != 0) {
        s = leat_error(INVALID_ARGUMENT, "branch_index must be scalar");
    } else {
        int32_t i = AT(int32_t, index)[0];
        s = leat_kernel_function(k, "branches", i < 0 || i >= n ? n - 1 : i, &f);
    }
    call(k, s, f, 1);
}

/* ---- On another device ---- */

static leat_status find_target(leat_kernel *k, const char **out)
{
    const leat_tensor *t = leat_kernel_in(k, 0);
    LEAT_REQUIRE(t->count == 1, INVALID_ARGUMENT, "target must be one string, not of shape %s",
                 leat_shape_show(&t->shape).s);
    const leat_string *s = &AT(leat_string, t)[0];
    return leat_callables_find_device(leat_kernel_callables(k), s->data ? s->data : "", out);
}

static void remote_run(leat_kernel *k)
{
    leat_callable *f = NULL;
    const char *device = NULL;
    leat_status s = find_target(k, &device);
    if (!s)
        s = leat_callables_get(leat_kernel_callables(k),
                               leat_node_attr(leat_kernel_node(k), "f")->func, false, device, &f);
    call(k, s, f, 1);
}

const leat_kernel_def leat_cpu_functional[] = {
    {.op = "PartitionedCall", .run_async = call_run, .flags = LEAT_KERNEL_EXPENSIVE},
    {.op = "StatefulPartitionedCall", .run_async = call_run, .flags = LEAT_KERNEL_EXPENSIVE},
    {.op = "SymbolicGradient", .run_async = gradient_run, .flags = LEAT_KERNEL_EXPENSIVE},
    {.op = "RemoteCall", .run_async = remote_run, .flags = LEAT_KERNEL_EXPENSIVE},
    {.op = "If", .run_async = if_run, .flags = LEAT_KERNEL_EXPENSIVE},
    {.op = "StatelessIf", .run_async = if_run, .flags = LEAT_KERNEL_EXPENSIVE},
    {.op = "Case", .run_async = case_run, .flags = LEAT_KERNEL_EXPENSIVE},
    {0},
};
