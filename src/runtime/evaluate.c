/* evaluate.c -- runs one node on given values while a plan is compiled, for constant folding. */
#include <stdlib.h>

#include "core/alloc.h"
#include "core/denormals.h"
#include "runtime/session_int.h"

/* The kernel's outputs, as tensors with references of their own. */
static leat_status gather(const leat_node *n, leat_entry *out, leat_tensor **values)
{
    for (int i = 0; i < n->n_out; i++)
        LEAT_REQUIRE(out[i].tensor, INTERNAL, "Missing %d-th output from {{node %s}}", i, n->name);
    for (int i = 0; i < n->n_out; i++)
        values[i] = leat_tensor_ref(out[i].tensor);
    return NULL;
}

static void cancel_step(void *step)
{
    leat_step_fail(step, leat_error(CANCELLED, "The run was cancelled"));
}

/* The run's deadline and cancellation (c->stop, made by leat_plan_stop) end the kernel, too. */
leat_status leat_evaluate_node(const leat_compile *c, const leat_node *n, leat_tensor *const *in,
                               leat_tensor **values)
{
    leat_bound bound;
    leat_step step;
    leat_device *device = c->arg;
    LEAT_TRY(leat_kernel_bind(&bound, n, device->parsed.type));
    if (!bound.def->run || bound.def->flags & LEAT_KERNEL_BLOCKS) {
        leat_kernel_unbind(&bound);
        return leat_error(UNIMPLEMENTED, "%s waits for something", n->name);
    }
    leat_entry *entries = leat_new_array(leat_entry, n->n_in + n->n_out + 1);
    for (int i = 0; i < n->n_in; i++)
        entries[i].tensor = leat_tensor_ref(in[i]);
    leat_step_init(&step);
    step.deadline_ns = c->stop.deadline_ns;
    leat_cancel_watch watch = {.fn = cancel_step, .arg = &step};
    leat_cancellation_watch(c->stop.arg, &watch);
    leat_kernel k = {.bound = &bound,
                     .step = &step,
                     .device = device,
                     .in = entries,
                     .out = entries + n->n_in,
                     .n_in = n->n_in,
                     .n_out = n->n_out};
    const unsigned denormals = leat_denormals_off();
    leat_status s = leat_kernel_run(&k);
    leat_denormals_restore(denormals);
    leat_cancellation_unwatch(c->stop.arg, &watch);
    if (!s)
        s = gather(n, k.out, values);
    for (int i = 0; i < n->n_in + n->n_out; i++)
        leat_entry_clear(&entries[i]);
    free(entries);
    leat_step_release(&step);
    leat_kernel_unbind(&bound);
    return s;
}
