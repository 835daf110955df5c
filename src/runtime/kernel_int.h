/* kernel_int.h -- one run of a kernel, from the inside; and the registry of kernels. */
#ifndef LEAT_KERNEL_INT_H
#define LEAT_KERNEL_INT_H

#include <leat/extend.h>

#include "core/buffer.h"
#include "graph/graph_int.h"
#include "runtime/device.h"
#include "runtime/resource.h"
#include "runtime/variable.h"

/* What travels along an edge: a tensor, or a reference to a variable; or it is dead (the branch
 * not taken). Owns one reference to what it points at. */
typedef struct leat_entry {
    leat_tensor *tensor;
    leat_variable *var;
    bool dead;
} leat_entry;

void leat_entry_clear(leat_entry *e); /* lets go */

typedef struct leat_step leat_step; /* one session run, or the part of it on this task */

/* A kernel bound to a node of a plan. */
typedef struct leat_bound {
    const leat_kernel_def *def;
    const leat_node *node;
    void *state;
    bool via_float; /* half or bfloat16, computed in float */
} leat_bound;

struct leat_kernel {
    const leat_bound *bound;
    leat_step *step;
    leat_device *device;
    leat_entry *in;  /* n_in of them; the executor's */
    leat_entry *out; /* n_out of them, empty at first */
    leat_tensor **temps;
    int n_temps, cap_temps;
    leat_buffer **plan; /* for each output a buffer kept from earlier steps, or NULL */
    void (*done)(leat_kernel *k, leat_status s); /* of an async kernel: set by the executor */
};

/* The kernel for this node on this kind of device; NOT_FOUND says which dtypes there are:
 * "No OpKernel was registered to support Op 'X' used by node y with these attrs". */
leat_status leat_kernel_find(const leat_node *n, const char *device_type,
                             const leat_kernel_def **out, bool *via_float_out) LEAT_MUST_CHECK;
leat_status leat_kernel_bind(leat_bound *b, const leat_node *n,
                             const char *device_type) LEAT_MUST_CHECK;
void leat_kernel_unbind(leat_bound *b);
leat_status leat_kernel_registry_check(void) LEAT_MUST_CHECK;

/* For kernels of our own, beyond extend.h. */
leat_device *leat_kernel_device(leat_kernel *k);
leat_resources *leat_kernel_resources(leat_kernel *k);
/* The variable behind input i, a reference or a handle; borrowed for this run. */
leat_status leat_kernel_variable(leat_kernel *k, int i, leat_variable **out) LEAT_MUST_CHECK;
/* Output i is a reference to v; shares v. */
void leat_kernel_set_ref(leat_kernel *k, int i, leat_variable *v);
/* Output i is what input `in` is, reference or value. */
void leat_kernel_forward(leat_kernel *k, int i, int in);
/* Input i as a tensor that the kernel may write to and keep: the input itself if nobody else needs
 * it, else a copy. Gives a reference. */
leat_status leat_kernel_take(leat_kernel *k, int i, leat_tensor **out) LEAT_MUST_CHECK;

/* src/kernels/<device>/list.c: NULL-ended; each entry is an array that ends with a NULL op. */
extern const leat_kernel_def *const leat_cpu_kernel_lists[];

#endif
