/* opencl.h -- what the files of this folder share: the state of a device, its memory, its programs
 * and the launch of a kernel.
 *
 * Memory. A device has chunks, which are buffers of OpenCL, and gives out parts of them. The
 * address of a part is a number: a base, the chunk's slot and the offset in the chunk. So tensors
 * that are views at an offset need nothing of OpenCL, and a kernel gets a chunk and an offset for
 * each tensor (TENSOR in common.cl). This needs no more than OpenCL 1.2.
 */
#ifndef LEAT_OPENCL_OPENCL_H
#define LEAT_OPENCL_OPENCL_H

#include <pthread.h>

#include "core/map.h"
#include "kernels/opencl/cl.h"
#include "runtime/kernel_int.h"

/* ---- list.c: the devices of the machine ---- */

/* One OpenCL device that a process may use. */
typedef struct leat_cl_listed {
    cl_device id;
    bool on_cpu;      /* its work items run on the machine's CPU */
    int64_t memory;   /* bytes */
    int64_t most;     /* bytes that one buffer may have */
    int units;        /* compute units */
    size_t group;     /* work items that a work group may have */
    char name[128];   /* "NVIDIA GeForce ..." */
    char driver[256]; /* platform, device and versions: what compiled programs depend on */
} leat_cl_listed;
/* All devices that are GPUs or accelerators, in the order of the platforms, then, if the user wants
 * them, those on CPUs. The list is made once; *n_out is 0 without OpenCL. */
const leat_cl_listed *leat_cl_devices(int *n_out);

/* ---- memory.c ---- */

enum { LEAT_CL_CHUNKS = 1024 };
typedef struct leat_cl_block leat_cl_block;
typedef struct leat_cl_heap {
    pthread_mutex_t lock; /* guards all below; no other lock is taken under it */
    struct leat_cl_chunk {
        cl_memory memory; /* NULL: the slot is free */
        size_t size;
        leat_cl_block **at; /* by offset / LEAT_CL_GRAIN: the block that begins there */
    } chunks[LEAT_CL_CHUNKS];
    size_t reserved;          /* bytes in chunks */
    leat_cl_block *spare[64]; /* free blocks by the logarithm of their size */
    int number;               /* of this device in the process; part of its addresses */
} leat_cl_heap;

/* The state of a device. */
typedef struct leat_opencl {
    leat_allocator memory; /* first: functions of the allocator get its address */
    leat_cl_heap heap;
    leat_device *device;
    const leat_cl_listed *listed;
    cl_context context;
    cl_queue queues[2];
    /* Held while something is enqueued. PoCL's device "basic" runs what is enqueued in the thread
     * that calls, and waits for a lock of its own for ever if it finds, at the end of a command,
     * another one that a second thread has enqueued meanwhile and that waits for it. */
    pthread_mutex_t enqueuing;
    pthread_mutex_t building; /* held while programs are looked up and built; guards `programs` */
    leat_map programs;        /* by source and options */
    pthread_mutex_t tuning;   /* held while tiles are looked for; taken before `building` */
    const struct leat_cl_tiles
        *tiles[2];        /* by the class of products (tune.c); NULL: not yet known */
    pthread_mutex_t idle; /* guards the idle kernels of all programs */
} leat_opencl;

leat_status leat_cl_memory_open(leat_opencl *d) LEAT_MUST_CHECK;
void leat_cl_memory_close(leat_opencl *d);
/* The buffer and the offset behind an address of d's memory. */
cl_memory leat_cl_where(const leat_opencl *d, const void *address, uint64_t *offset_out);

/* ---- program.c: programs, built when they are first used and kept on disk ---- */

/* OpenCL C that was embedded when Leat was built. */
typedef struct leat_cl_text {
    const char *name; /* "reduce.cl" */
    const char *text;
    size_t size;
} leat_cl_text;
typedef struct leat_cl_program leat_cl_program;
typedef struct leat_cl_function leat_cl_function; /* a kernel of a program */

/* The function `name` of a program: common.cl and the texts (NULL ends), compiled with the
 * options. */
leat_status leat_cl_function_find(leat_opencl *d, const leat_cl_text *const *texts,
                                  const char *options, const char *name,
                                  leat_cl_function **out) LEAT_MUST_CHECK;
void leat_cl_programs_close(leat_opencl *d);
/* A kernel object of a function, for this thread alone until it is given back. */
leat_status leat_cl_function_take(leat_opencl *d, leat_cl_function *f,
                                  cl_kernel *out) LEAT_MUST_CHECK;
void leat_cl_function_give(leat_opencl *d, leat_cl_function *f, cl_kernel k);

/* ---- cache.c: files that are kept for the next process ---- */

/* Reads what was stored under this key for the device; false if there is nothing that is whole. */
bool leat_cl_cache_read(const leat_opencl *d, const char *kind, uint64_t key, char **bytes_out,
                        size_t *n_out);
/* Stores it; that it cannot be stored is no error. */
void leat_cl_cache_write(const leat_opencl *d, const char *kind, uint64_t key, const void *bytes,
                         size_t n);

/* ---- launch.c: a kernel's work, enqueued ---- */

/* A launch that is being put together. The first error is kept, and leat_cl_run returns it. */
typedef struct leat_cl_launch {
    leat_opencl *d;
    leat_cl_function *function;
    cl_kernel kernel;
    uint32_t args;
    leat_status status;
} leat_cl_launch;

static inline leat_opencl *leat_cl_of(leat_kernel *k)
{
    return k->device->state;
}
leat_cl_launch leat_cl_begin(leat_opencl *d, const leat_cl_text *const *texts, const char *options,
                             const char *function);
/* Arguments, in the order of the function's parameters. */
void leat_cl_at(leat_cl_launch *l, const void *address); /* TENSOR(x): a buffer and an offset */
static inline void leat_cl_tensor(leat_cl_launch *l, const leat_tensor *t)
{
    leat_cl_at(l, t->data);
}
void leat_cl_bytes(leat_cl_launch *l, const void *value, size_t n); /* a struct, by value */
void leat_cl_float(leat_cl_launch *l, double x);
/* An int; UNIMPLEMENTED for what does not fit: kernels count elements in 32 bits. */
void leat_cl_int(leat_cl_launch *l, int64_t x);
/* Enqueues the function for n elements that it goes through by EACH, or for a grid of work groups;
 * dimension 1 may be 1. Does nothing if n or groups[0] * groups[1] is 0. */
leat_status leat_cl_each(leat_cl_launch *l, int64_t n, double unit_ns) LEAT_MUST_CHECK;
leat_status leat_cl_groups(leat_cl_launch *l, const int64_t groups[2],
                           const int64_t size[2]) LEAT_MUST_CHECK;

/* ---- queue.c: the functions of the kind ---- */

leat_status leat_cl_copy(leat_device *d, int queue, leat_copy_way way, void *to, const void *from,
                         size_t bytes) LEAT_MUST_CHECK;
leat_status leat_cl_mark(leat_device *d, int queue, leat_device_event *out) LEAT_MUST_CHECK;
leat_status leat_cl_wait(leat_device *d, int queue, leat_device_event e) LEAT_MUST_CHECK;
void leat_cl_on_event(leat_device *d, leat_device_event e, leat_event_fn fn, void *arg);
void leat_cl_event_free(leat_device *d, leat_device_event e);

/* list of the folder's kernels: list_kernels.c */
const leat_kernel_def *const *leat_cl_kernel_lists(void);

#endif
