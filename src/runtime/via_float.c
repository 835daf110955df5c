/* via_float.c -- runs a float kernel for half and bfloat16: inputs are widened, outputs rounded,
 * variables written back. Small floats save memory, not time, on CPUs; so no kernel needs to know
 * them. */
#include <stdlib.h>
#include <string.h>

#include "core/alloc.h"
#include "core/half.h"
#include "runtime/kernel_int.h"

static bool is_small(const leat_tensor *t)
{
    return t && (t->dtype == LEAT_HALF || t->dtype == LEAT_BFLOAT16);
}

static leat_status widen(leat_kernel *k, const leat_tensor *t, leat_tensor **out)
{
    LEAT_TRY(leat_tensor_alloc(k->device->allocator, LEAT_FLOAT, &t->shape, out));
    if (t->dtype == LEAT_HALF)
        leat_halves_to_floats(t->data, (*out)->data, t->count);
    else
        leat_bfloat16s_to_floats(t->data, (*out)->data, t->count);
    return NULL;
}

static void narrow(const leat_tensor *from, leat_tensor *to)
{
    if (to->dtype == LEAT_HALF)
        leat_halves_from_floats(from->data, to->data, to->count);
    else
        leat_bfloat16s_from_floats(from->data, to->data, to->count);
}

static leat_status store_outputs(leat_kernel *k, leat_kernel *sub)
{
    for (int i = 0; i < k->n_out; i++) {
        leat_tensor *t = sub->out[i].tensor;
        leat_dtype want = leat_kernel_out_dtype(k, i);
        if (!t || t->dtype == want) {
            k->out[i] = sub->out[i];
            sub->out[i] = (leat_entry){0};
            continue;
        }
        leat_tensor *y;
        LEAT_TRY(leat_kernel_out(k, i, &t->shape, &y));
        narrow(t, y);
    }
    return NULL;
}

leat_status leat_kernel_run_via_float(leat_kernel *k)
{
    leat_kernel sub = *k;
    sub.as_float = true;
    sub.slots = NULL;
    sub.temps = NULL;
    sub.in = leat_new_array(leat_entry, k->n_in + k->n_out + 1);
    sub.out = sub.in + k->n_in;
    leat_status s = NULL;
    for (int i = 0; i < k->n_in && !s; i++) {
        if (is_small(k->in[i].tensor))
            s = widen(k, k->in[i].tensor, &sub.in[i].tensor);
        else
            sub.in[i] = leat_entry_copy(&k->in[i]);
    }
    if (!s)
        s = k->bound->def->run(&sub);
    atomic_store_explicit(&k->stopped, atomic_load(&sub.stopped), memory_order_relaxed);
    if (!s)
        s = store_outputs(k, &sub);
    leat_kernel_free_temps(&sub);
    for (int i = 0; i < k->n_in + k->n_out; i++)
        leat_entry_clear(&sub.in[i]);
    free(sub.in);
    return s;
}
