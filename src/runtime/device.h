/* device.h -- where kernels run: a name, memory, threads, resources. */
#ifndef LEAT_DEVICE_H
#define LEAT_DEVICE_H

#include <leat/session.h>

#include "core/buffer.h"
#include "core/threadpool.h"
#include "graph/device_name.h"
#include "runtime/device_kind.h"
#include "runtime/resource.h"

struct leat_device {
    atomic_int refs;
    char name[128]; /* "/job:localhost/replica:0/task:0/device:CPU:0" */
    leat_device_name parsed;
    const leat_device_kind *kind;
    /* Which of the machine's devices of the kind it is. The number in its name, parsed.id, is
     * another one where users choose the devices that a process sees. */
    int ordinal;
    uint64_t incarnation; /* a random number, new each time the device is made */
    leat_allocator *allocator;
    void *state;      /* for the functions of the kind alone */
    leat_pool *intra; /* shares one kernel's work: inter, or an owned pool of another size */
    leat_pool *inter; /* runs further kernels of a step; shared by the devices of a process */
    leat_resources *resources;
    /* Where sessions share the device: the resources without a shared_name (queues, say), which
     * belong to one session. NULL: they are in `resources`. */
    leat_resources *own;
    bool borrows; /* allocator, state and pools belong to another device */
};

/* Which device is to be opened. */
typedef struct leat_device_choice {
    const leat_device_kind *kind;
    const char *job;
    int task, id; /* of its name */
    int ordinal;
    int64_t memory_limit; /* bytes for tensors; 0: none. Not for kinds in the host's memory */
} leat_device_choice;
/* threads: how many threads one kernel may use, the calling thread included. */
leat_status leat_device_new(const leat_device_choice *c, int threads, leat_pool *inter,
                            leat_device **out) LEAT_MUST_CHECK;
/* Device d for one session, which has its own resources without a shared_name, or, if isolated,
 * only resources of its own. d must outlive it. */
leat_device *leat_device_for_session(const leat_device *d, bool isolated);
leat_device *leat_device_ref(leat_device *d);
void leat_device_unref(leat_device *d);
/* For the owner of a device: drops the resources that are this device's alone, some of which may
 * refer to the device, and then the owner's reference. NULL does nothing. */
void leat_device_close(leat_device *d);

/* "device: 2, name: Tesla K40c", as TensorFlow describes a GPU, in text; NULL for a device that
 * computes in the host's memory. */
enum { LEAT_DEVICE_TEXT = 192 };
const char *leat_device_text(const leat_device *d, char text[LEAT_DEVICE_TEXT]);

/* Allocates the memory that the device's kernels compute in; NULL: the host's memory. */
static inline leat_allocator *leat_device_memory(const leat_device *d)
{
    return d->kind->host_memory ? NULL : d->allocator;
}

/* reclaim.c: for allocators of devices with memory of their own, which call it when they find none.
 * Frees what plans keep there for later steps; false if that was nothing. */
bool leat_reclaim(leat_allocator *a);
/* s, with the device's name in front unless the message has it. Takes s; NULL stays NULL. */
leat_status leat_device_error(const leat_device *d, leat_status s) LEAT_MUST_CHECK;

/* ---- device_copy.c: between memories ---- */

/* Called once, from any thread. Takes s and t; t is NULL after an error. */
typedef void (*leat_copied_fn)(void *arg, leat_status s, leat_tensor *t);
/* Calls fn with a tensor of the same value in the memory of `to` (NULL: the host's): t itself if it
 * is there already. The copy runs while the devices compute, after the work that makes t. Borrows
 * t. */
void leat_tensor_move(leat_tensor *t, leat_device *to, leat_copied_fn fn, void *arg);
/* Calls fn when the device has run all work that its kernels have enqueued. */
void leat_device_drain(leat_device *d, leat_event_fn fn, void *arg);

/* ---- device_spec.c: the devices of a process, from one line: "cpu:2,gpu:1" ---- */

/* A number of devices of one kind. */
typedef struct leat_device_count {
    char type[16]; /* upper case */
    int n;         /* -1: no number was given */
} leat_device_count;
enum { LEAT_DEVICE_COUNTS = 16 };
/* Reads "cpu:2,gpu:1" into at most LEAT_DEVICE_COUNTS counts. A kind may stand without a number.
 * NULL is "". Does not check that the kinds exist. */
leat_status leat_device_counts_read(const char *spec, leat_device_count *out,
                                    int *n_out) LEAT_MUST_CHECK;

typedef struct leat_devices_options {
    const char *spec; /* NULL or "": the default number of each kind */
    int host_devices; /* devices of leat_host_kind if spec gives no number; 0: one */
    leat_gpu_options gpu;
    const char *job;
    int task;
    int intra_op_threads, inter_op_threads; /* 0: the default */
} leat_devices_options;
/* The devices of a process, and the threads that they share. Devices of leat_host_kind come first,
 * then the others in the order of the list of kinds. */
typedef struct leat_devices {
    leat_device **v;
    int n;
    leat_pool *pool;
} leat_devices;
leat_status leat_devices_open(const leat_devices_options *o, leat_devices *out) LEAT_MUST_CHECK;
/* The same devices once more, for another task that the process serves; d's threads run them, too.
 */
leat_status leat_devices_add(const leat_devices_options *o, leat_devices *d) LEAT_MUST_CHECK;
void leat_devices_close(leat_devices *d); /* does nothing for an all-zero struct */

/* ---- device_visible.c: which GPUs a process sees, and how much of their memory it uses ---- */

/* Gives the ordinals of the devices of a kind with is_gpu that a process sees, in the order in
 * which it numbers them. `most` is what probe gave. Free with free(). */
leat_status leat_devices_visible(const leat_device_kind *k, const leat_gpu_options *o, int most,
                                 int **ordinals_out, int *n_out) LEAT_MUST_CHECK;
/* How many bytes tensors may take on a device of a kind with is_gpu; 0: there is no limit. */
leat_status leat_device_memory_limit(const leat_device_kind *k, const leat_gpu_options *o,
                                     int ordinal, int64_t *bytes_out) LEAT_MUST_CHECK;

#endif
