/* device.h -- where kernels run: a name, memory, threads, resources. */
#ifndef LEAT_DEVICE_H
#define LEAT_DEVICE_H

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
    uint64_t incarnation; /* differs each time a device comes up */
    leat_allocator *allocator;
    void *state;      /* the kind's own */
    leat_pool *intra; /* splits one kernel's work: inter, or owned if it has another size */
    leat_pool *inter; /* runs further kernels of a step; shared by the devices of a process */
    leat_resources *resources;
    /* Queues and the like that have no shared_name belong to a session: here, where sessions share
     * the device. NULL: they are among resources. */
    leat_resources *own;
    bool borrows; /* its memory, state and threads are another device's */
};

/* threads: how many one kernel may use, the caller among them. */
leat_status leat_device_new(const leat_device_kind *kind, const char *job, int task, int id,
                            int threads, leat_pool *inter, leat_device **out) LEAT_MUST_CHECK;
/* The same device as one session has it, all resources its own if it is isolated; d must outlive
 * it. */
leat_device *leat_device_for_session(const leat_device *d, bool isolated);
leat_device *leat_device_ref(leat_device *d);
void leat_device_unref(leat_device *d);
/* Of whoever made it: lets go of the resources that are this device's alone, some of which may
 * refer to the device, and then of the device. NULL does nothing. */
void leat_device_close(leat_device *d);

/* The memory that its kernels compute in; NULL: the host's. */
static inline leat_allocator *leat_device_memory(const leat_device *d)
{
    return d->kind->host_memory ? NULL : d->allocator;
}

/* ---- device_copy.c: between memories ---- */

/* One call, from any thread. Takes s, or t, which is NULL after an error. */
typedef void (*leat_copied_fn)(void *arg, leat_status s, leat_tensor *t);
/* A tensor of the same value in the memory of `to` (NULL: in the host's): t itself if it is there
 * already. A copy runs beside what the devices compute, after all that t waits for. Borrows t. */
void leat_tensor_move(leat_tensor *t, leat_device *to, leat_copied_fn fn, void *arg);
/* Calls fn when the device has run all that its kernels have enqueued. */
void leat_device_drain(leat_device *d, leat_event_fn fn, void *arg);

/* ---- device_spec.c: the devices of a process, from one line: "cpu:2,gpu:1" ---- */

/* So many devices of a kind. */
typedef struct leat_device_count {
    char type[16]; /* upper case */
    int n;         /* -1: no number was given */
} leat_device_count;
enum { LEAT_DEVICE_COUNTS = 16 };
/* Reads "cpu:2,gpu:1" into at most LEAT_DEVICE_COUNTS counts. A kind may stand without a number.
 * NULL is "". Whether there are such kinds is not looked at. */
leat_status leat_device_counts_read(const char *spec, leat_device_count *out,
                                    int *n_out) LEAT_MUST_CHECK;

typedef struct leat_devices_options {
    const char *spec; /* NULL or "": of each kind its default number */
    int host_devices; /* of the kind whose memory is the host's, if spec does not say; 0: one */
    const char *job;
    int task;
    int intra_op_threads, inter_op_threads; /* 0: the default */
} leat_devices_options;
/* The devices that a process has, and the threads that they share. Those of the host's kind come
 * first, then the others in the order of the list of kinds. */
typedef struct leat_devices {
    leat_device **v;
    int n;
    leat_pool *pool;
} leat_devices;
leat_status leat_devices_open(const leat_devices_options *o, leat_devices *out) LEAT_MUST_CHECK;
void leat_devices_close(leat_devices *d); /* of zeroed ones does nothing */

#endif
