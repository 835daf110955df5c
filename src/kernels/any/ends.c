/* ends.c -- the kernels by which values enter and leave a compiled graph: _Arg and _Retval for
 * feeds and fetches, _Send and _Recv for edges between devices. */
#include "kernels/cpu/cpu.h"
#include "runtime/late.h"
#include "runtime/send_recv.h"
#include "runtime/step.h"

static leat_status index_init(const leat_node *n, void *state)
{
    *(int64_t *)state = leat_node_int(n, "index");
    return NULL;
}

static leat_status arg_run(leat_kernel *k)
{
    leat_kernel_set(k, 0, leat_tensor_ref(k->step->feeds[*(int64_t *)leat_kernel_state(k)]));
    return NULL;
}

static leat_status retval_run(leat_kernel *k)
{
    int index = (int)*(int64_t *)leat_kernel_state(k);
    leat_tensor *t = leat_tensor_ref(leat_kernel_in(k, 0));
    if (k->step->late)
        leat_late_fetched(k->step->late, index, t);
    else
        k->step->fetches[index] = t;
    return NULL;
}

static void late_arg_run(leat_kernel *k)
{
    leat_late_wait(k->step->late, (int)*(int64_t *)leat_kernel_state(k), k);
}

const leat_kernel_def leat_any_ends[] = {
    {.op = "_Arg",
     .run = arg_run,
     .state_size = sizeof(int64_t),
     .init = index_init,
     .host = "output"},
    {.op = "_LateArg",
     .run_async = late_arg_run,
     .state_size = sizeof(int64_t),
     .init = index_init,
     .host = "output"},
    {.op = "_Retval",
     .run = retval_run,
     .state_size = sizeof(int64_t),
     .init = index_init,
     .host = "input"},
    {.op = "_Send",
     .run = leat_send_run,
     .state_size = sizeof(leat_edge_state),
     .init = leat_edge_init,
     .release = leat_edge_release,
     .flags = LEAT_KERNEL_ANY_MEMORY},
    {.op = "_Recv",
     .run_async = leat_recv_run,
     .state_size = sizeof(leat_edge_state),
     .init = leat_edge_init,
     .release = leat_edge_release},
    {0},
};
