/* device_kind.h -- a kind of devices: what the runtime must know of CPUs, of GPUs, and of whatever
 * comes next. A kind is one struct and one line in device_kinds.c (or one call of
 * leat_device_kind_register); nothing else in the runtime knows a kind by its name.
 */
#ifndef LEAT_DEVICE_KIND_H
#define LEAT_DEVICE_KIND_H

#include <leat/extend.h>

typedef struct leat_device leat_device;
struct leat_move;
typedef void *leat_device_event; /* a point in a queue of a device */
/* Called once, from any thread. Takes s. */
typedef void (*leat_event_fn)(void *arg, leat_status s);

/* A device whose memory is not the host's has two queues; what is enqueued on one runs in order. */
enum { LEAT_QUEUE_COMPUTE, LEAT_QUEUE_COPY };
typedef enum leat_copy_way {
    LEAT_COPY_IN,    /* from the host's memory */
    LEAT_COPY_OUT,   /* to the host's memory */
    LEAT_COPY_WITHIN /* from the device's memory to the device's */
} leat_copy_way;

/* What a device is, for people. */
typedef struct leat_device_info {
    char description[128]; /* "Intel(R) Xeon(R) Platinum 8370C" */
    int64_t memory;        /* bytes that it has for tensors; 0: not known */
} leat_device_info;

typedef struct leat_device_kind {
    const char *type; /* as in device names, upper case: "CPU" */
    /* A node without a device goes to the kind of the highest priority that has a kernel for it. */
    int priority;
    /* The kind computes in the host's memory, and its kernels have done their work when they
     * return. Every process has a device of such a kind. */
    bool host_memory;
    /* What users say of GPUs holds for this kind: CUDA_VISIBLE_DEVICES, LEAT_VISIBLE_DEVICES, and
     * leat_gpu_options (device_visible.c). */
    bool is_gpu;
    int by_default; /* number of devices where none is given; -1: all that exist */
    leat_status (*probe)(int *most_out); /* how many devices can be opened here */
    /* ordinal: which of the devices that probe counted, from 0. */
    void (*describe)(int ordinal, leat_device_info *out);
    /* open opens the device d->ordinal. It sets d->allocator, and d->state if the kind uses it; all
     * other fields are set before. close, which may be NULL, frees both. */
    leat_status (*open)(leat_device *d);
    void (*close)(leat_device *d);
    /* The kind's kernels: a NULL-ended list of arrays, each ended by a kernel without an op. */
    const leat_kernel_def *const *(*kernels)(void);
    /* ---- Queues; all functions from here on are NULL where host_memory is true ---- */
    /* Enqueues a copy. The caller keeps both memories until the copy was done. */
    leat_status (*copy)(leat_device *d, int queue, leat_copy_way way, void *to, const void *from,
                        size_t bytes);
    /* Enqueues copies of elements of `size` bytes between two strided views (kernels/cpu/move.h) in
     * the device's memory; zeros where from is NULL. The CPU's kernels that only move elements run
     * by it on devices of this kind, where the kind lists them; NULL: it lists none. */
    leat_status (*move)(leat_device *d, const struct leat_move *m, size_t size, void *to,
                        const void *from);
    /* Enqueues a copy from the memory of another device of this kind; NULL: such copies go through
     * the host's memory. */
    leat_status (*copy_peer)(leat_device *d, int queue, void *to, leat_device *from_device,
                             const void *from, size_t bytes);
    /* Gives an event that comes when all work that is in the queue now has run. After an error the
     * queue's copies use no memory any more: those that had not begun are dropped. */
    leat_status (*mark)(leat_device *d, int queue, leat_device_event *out);
    /* Work that is enqueued from now on runs after the event, which belongs to this device or to
     * another one of the same kind. Borrows e. */
    leat_status (*wait)(leat_device *d, int queue, leat_device_event e);
    /* Calls fn when the event has come, with an error if the work before it failed. Takes e. */
    void (*on_event)(leat_device *d, leat_device_event e, leat_event_fn fn, void *arg);
    void (*event_free)(leat_device *d, leat_device_event e);
    /* Enqueues the addition of n floats to those at `to`, which are in the device's memory, too.
     * The CPU's kernels that move elements use it; NULL where move is. */
    leat_status (*add)(leat_device *d, void *to, const void *from, int64_t n);
} leat_device_kind;

/* device_kinds.c. The kinds that are built in, then those that were registered. */
int leat_device_kinds(void);
const leat_device_kind *leat_device_kind_at(int i);
const leat_device_kind *leat_device_kind_find(const char *type); /* any case; NULL: none */
const leat_device_kind *leat_host_kind(void); /* the first one whose memory is the host's */
/* The priority of a kind by name; -1 for one that this process does not know. */
int leat_device_priority(const char *type);
/* Adds a kind and its kernels, before the first session is opened. Borrows kind for ever. */
leat_status leat_device_kind_register(const leat_device_kind *kind) LEAT_MUST_CHECK;

#endif
