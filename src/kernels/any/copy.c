/* copy.c -- _CopyToHost and _CopyToDevice. They are asynchronous: the device computes meanwhile,
 * and so does the host. */
#include <stdatomic.h>

#include "runtime/kernel_int.h"

typedef struct copy_state {
    bool keep;
    _Atomic(leat_tensor *) kept; /* the copy of a constant, from the first run on */
} copy_state;

static leat_status to_device_init(const leat_node *n, void *state)
{
    ((copy_state *)state)->keep = leat_node_bool(n, "keep");
    return NULL;
}

static void to_device_release(void *state)
{
    leat_tensor_unref(atomic_load(&((copy_state *)state)->kept));
}

static void to_host_done(void *arg, leat_status s, leat_tensor *t)
{
    leat_kernel *k = arg;
    if (t)
        leat_kernel_set(k, 0, t);
    leat_kernel_done(k, s);
}

static void to_host(leat_kernel *k)
{
    leat_tensor_move(k->in[0].tensor, NULL, to_host_done, k);
}

static void to_device_done(void *arg, leat_status s, leat_tensor *t)
{
    leat_kernel *k = arg;
    copy_state *state = leat_kernel_state(k);
    leat_tensor *none = NULL;
    if (t && state->keep) {
        leat_tensor_ref(t);
        if (!atomic_compare_exchange_strong(&state->kept, &none, t))
            leat_tensor_unref(t); /* another step has stored its copy meanwhile */
    }
    if (t)
        leat_kernel_set(k, 0, t);
    leat_kernel_done(k, s);
}

static void to_device(leat_kernel *k)
{
    copy_state *state = leat_kernel_state(k);
    leat_tensor *kept = atomic_load_explicit(&state->kept, memory_order_acquire);
    if (kept) {
        leat_kernel_set(k, 0, leat_tensor_ref(kept));
        leat_kernel_done(k, NULL);
        return;
    }
    leat_tensor_move(k->in[0].tensor, leat_kernel_device(k), to_device_done, k);
}

const leat_kernel_def leat_any_copy[] = {
    {.op = "_CopyToHost", .run_async = to_host, .host = "output"},
    {.op = "_CopyToDevice",
     .run_async = to_device,
     .state_size = sizeof(copy_state),
     .init = to_device_init,
     .release = to_device_release,
     .host = "input"},
    {0},
};
