/* kernel_int.h -- one run of a kernel, from the inside; and the registry of kernels. */
#ifndef LEAT_KERNEL_INT_H
#define LEAT_KERNEL_INT_H

#include <leat/extend.h>

#include <stdatomic.h>

#include "core/buffer.h"
#include "core/threadpool.h"
#include "graph/graph_int.h"
#include "runtime/device.h"
#include "runtime/resource.h"
#include "runtime/variable.h"

/* What an edge delivers: a tensor, a reference to a variable, or a dead value (of a branch that was
 * not taken). An entry owns one reference to the tensor or variable. */
typedef struct leat_entry {
    leat_tensor *tensor;
    leat_variable *var;
    bool dead;
    bool moved; /* the tensor of this input became an output, which owns its reference now */
} leat_entry;

static inline void leat_entry_clear(leat_entry *e) /* drops its reference */
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
    bool via_float;   /* half or bfloat16, computed in float */
    bool holds_state; /* an input is a reference or a handle: its loops are never left half done */
    struct leat_callables *callables; /* those of the node's plan; NULL: none. Borrowed */
    /* A leat_place for each input, then for each output. NULL where the device's memory is the
     * host's. */
    uint8_t *places;
    _Atomic(struct leat_note *) note; /* see leat_kernel_note; NULL: not made yet */
} leat_bound;

struct leat_kernel {
    const leat_bound *bound;
    leat_step *step;
    leat_device *device;
    leat_entry *in;  /* the node's inputs; owned by the executor */
    leat_entry *out; /* the node's outputs; empty at first */
    int n_in, n_out;
    bool as_float;           /* the kernel gets half and bfloat16 as float (via_float.c) */
    struct leat_temp *temps; /* memory for this run only */
    const int *slots;        /* for each output its place in kept, or -1; NULL: none */
    leat_buffer **kept;      /* the memory plan's buffers, kept from step to step */
    void (*done)(leat_kernel *k, leat_status s); /* async kernels: set by the executor */
    uint64_t frame;                              /* id of the loop's frame; 0: outside of loops */
    int64_t iteration;                           /* number of the frame's iteration */
    atomic_bool stopped; /* the kernel has been told that the rest of its work is not wanted */
};

/* The kernel for this node on this kind of device; NOT_FOUND lists those that exist: "No OpKernel
 * was registered to support Op 'X' used by {{node y}} with these attrs: ...". */
leat_status leat_kernel_find(const leat_node *n, const char *device_type,
                             const leat_kernel_def **out, bool *via_float_out) LEAT_MUST_CHECK;
leat_status leat_kernel_bind(leat_bound *b, const leat_node *n,
                             const char *device_type) LEAT_MUST_CHECK;
void leat_kernel_unbind(leat_bound *b);
/* What is derived from a node when a kernel first asks for it, for all its runs: make's object,
 * whose first field this is; freed by note->free with the plan. Borrowed. */
typedef struct leat_note {
    void (*free)(struct leat_note *note);
} leat_note;
leat_note *leat_kernel_note(leat_kernel *k, leat_note *(*make)(const leat_node *n));
/* Where a kernel wants an input, or makes an output. */
typedef enum leat_place {
    LEAT_PLACE_DEVICE,
    LEAT_PLACE_HOST,
    LEAT_PLACE_ANY /* the kernel hands the value on without reading it */
} leat_place;
/* places.c: the leat_place of each input of n, then of each output. Strings, handles and variants
 * are in the host's memory. */
void leat_kernel_places(const leat_kernel_def *def, const leat_node *n, uint8_t *places);
/* Checks that the op has all inputs and outputs that def->host names. */
leat_status leat_kernel_places_check(const leat_kernel_def *def) LEAT_MUST_CHECK;
static inline bool leat_kernel_out_on_host(const leat_kernel *k, int i)
{
    return k->bound->places && k->bound->places[k->n_in + i] == LEAT_PLACE_HOST;
}
/* Checks that every registered kernel names a known op and known type attributes, and that none is
 * there twice. */
leat_status leat_kernel_registry_check(void) LEAT_MUST_CHECK;
/* Runs a synchronous kernel (through via_float.c where that is needed). */
leat_status leat_kernel_run(leat_kernel *k) LEAT_MUST_CHECK;
leat_status leat_kernel_run_via_float(leat_kernel *k) LEAT_MUST_CHECK;
void leat_kernel_free_temps(leat_kernel *k);

/* ---- For the kernels in src/kernels, beyond extend.h ---- */
/* For loops that do not use leat_kernel_for: says when to end early. NULL if the kernel has
 * references or handles as inputs: it may be writing to a variable, and goes on to its end. */
const leat_loop_stop *leat_kernel_stop(leat_kernel *k, leat_loop_stop *s);
/* The error of a kernel that ends early because leat_kernel_cancelled; else NULL. */
leat_status leat_kernel_check(leat_kernel *k) LEAT_MUST_CHECK;
leat_device *leat_kernel_device(leat_kernel *k);
leat_resources *leat_kernel_resources(leat_kernel *k);
/* The handle in input i; INVALID_ARGUMENT if the input is no handle, or one of another device. */
leat_status leat_kernel_handle(leat_kernel *k, int i, const leat_handle **out) LEAT_MUST_CHECK;
/* The variable behind input i, a reference or a handle; borrowed for this run. */
leat_status leat_kernel_variable(leat_kernel *k, int i, leat_variable **out) LEAT_MUST_CHECK;
/* Makes output i a reference to v; shares v. */
void leat_kernel_set_ref(leat_kernel *k, int i, leat_variable *v);
/* Makes output i the same reference or value as input `in`. */
void leat_kernel_forward(leat_kernel *k, int i, int in);
/* Input i as a tensor that the kernel may write to and keep: the input itself if nothing else
 * refers to it, else a copy. Gives a reference. */
leat_status leat_kernel_take(leat_kernel *k, int i, leat_tensor **out) LEAT_MUST_CHECK;

/* src/kernels/any/list.c: kernels that read and write no device's memory; every kind has them. A
 * NULL-ended list of arrays, each ended by a kernel without an op. */
extern const leat_kernel_def *const leat_any_kernel_lists[];
/* Adds the kernels of a kind that was registered; device_kinds.c alone calls this. */
void leat_kernels_add_kind(const leat_device_kind *kind);

#endif
