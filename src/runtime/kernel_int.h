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
    bool moved; /* an input whose tensor became an output: no reference of its own any more */
} leat_entry;

static inline void leat_entry_clear(leat_entry *e) /* lets go */
{
    if (e->tensor && !e->moved)
        leat_tensor_unref(e->tensor);
    if (e->var)
        leat_resource_unref(&e->var->base);
    *e = (leat_entry){0};
}
leat_entry leat_entry_copy(const leat_entry *e); /* shares */

typedef struct leat_step leat_step; /* one run of a plan */

/* A kernel bound to a node of a plan. */
typedef struct leat_bound {
    const leat_kernel_def *def;
    const leat_node *node;
    void *state;
    bool via_float; /* half or bfloat16, computed in float */
    struct leat_callables *callables; /* functions that the node may run; NULL: none. Borrowed */
    /* Of each input, then of each output: leat_place. NULL where the device's memory is the
     * host's, and there is no difference. */
    uint8_t *places;
} leat_bound;

struct leat_kernel {
    const leat_bound *bound;
    leat_step *step;
    leat_device *device;
    leat_entry *in;  /* of the node's inputs; the executor's */
    leat_entry *out; /* of the node's outputs, empty at first */
    int n_in, n_out;
    bool as_float;           /* small floats are floats to this run (via_float.c) */
    struct leat_temp *temps; /* memory for this run only */
    const int *slots;        /* for each output its place in kept, or -1; NULL: none */
    leat_buffer **kept;      /* the memory plan's buffers, kept from step to step */
    void (*done)(leat_kernel *k, leat_status s); /* of an async kernel: set by the executor */
    uint64_t frame;                              /* of a loop that it is in; 0 outside */
    int64_t iteration;                           /* of that frame */
};

/* The kernel for this node on this kind of device; NOT_FOUND says which there are: "No OpKernel
 * was registered to support Op 'X' used by {{node y}} with these attrs: ...". */
leat_status leat_kernel_find(const leat_node *n, const char *device_type,
                             const leat_kernel_def **out, bool *via_float_out) LEAT_MUST_CHECK;
leat_status leat_kernel_bind(leat_bound *b, const leat_node *n,
                             const char *device_type) LEAT_MUST_CHECK;
void leat_kernel_unbind(leat_bound *b);
/* Where a kernel wants an input, or makes an output. */
typedef enum leat_place {
    LEAT_PLACE_DEVICE,
    LEAT_PLACE_HOST,
    LEAT_PLACE_ANY /* it hands the value on without looking at it */
} leat_place;
/* places.c: of each input of n, then of each output. Strings, handles and variants are in the
 * host's memory. */
void leat_kernel_places(const leat_kernel_def *def, const leat_node *n, uint8_t *places);
/* What `host` names exists. */
leat_status leat_kernel_places_check(const leat_kernel_def *def) LEAT_MUST_CHECK;
static inline bool leat_kernel_out_on_host(const leat_kernel *k, int i)
{
    return k->bound->places && k->bound->places[k->n_in + i] == LEAT_PLACE_HOST;
}
/* Every registered kernel names a known op and known type attributes, none is there twice. */
leat_status leat_kernel_registry_check(void) LEAT_MUST_CHECK;
/* Runs a synchronous kernel (through via_float.c where that is needed). */
leat_status leat_kernel_run(leat_kernel *k) LEAT_MUST_CHECK;
leat_status leat_kernel_run_via_float(leat_kernel *k) LEAT_MUST_CHECK;
void leat_kernel_free_temps(leat_kernel *k);

/* For kernels of our own, beyond extend.h. */
leat_device *leat_kernel_device(leat_kernel *k);
leat_resources *leat_kernel_resources(leat_kernel *k);
/* The handle in input i; INVALID_ARGUMENT if it is none, or one of another device. */
leat_status leat_kernel_handle(leat_kernel *k, int i, const leat_handle **out) LEAT_MUST_CHECK;
/* The variable behind input i, a reference or a handle; borrowed for this run. */
leat_status leat_kernel_variable(leat_kernel *k, int i, leat_variable **out) LEAT_MUST_CHECK;
/* Output i is a reference to v; shares v. */
void leat_kernel_set_ref(leat_kernel *k, int i, leat_variable *v);
/* Output i is what input `in` is, reference or value. */
void leat_kernel_forward(leat_kernel *k, int i, int in);
/* Input i as a tensor that the kernel may write to and keep: the input itself if nobody else needs
 * it, else a copy. Gives a reference. */
leat_status leat_kernel_take(leat_kernel *k, int i, leat_tensor **out) LEAT_MUST_CHECK;

/* src/kernels/any/list.c: kernels that touch no memory of a device; every kind has them. A
 * NULL-ended list of arrays, each ended by a kernel without an op. */
extern const leat_kernel_def *const leat_any_kernel_lists[];
/* Adds the kernels of a kind that was registered; device_kinds.c alone calls this. */
void leat_kernels_add_kind(const leat_device_kind *kind);

#endif
