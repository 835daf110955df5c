/* device.h -- where kernels run: a name, memory, threads, resources. */
#ifndef LEAT_DEVICE_H
#define LEAT_DEVICE_H

#include "core/buffer.h"
#include "core/threadpool.h"
#include "graph/device_name.h"
#include "runtime/resource.h"

typedef struct leat_device {
    char name[128]; /* "/job:localhost/replica:0/task:0/device:CPU:0" */
    leat_device_name parsed;
    uint64_t incarnation; /* differs each time a device comes up */
    leat_allocator *allocator;
    leat_pool *intra; /* splits one kernel's work: inter, or owned if it has another size */
    leat_pool *inter; /* runs further kernels of a step; shared by the devices of a process */
    leat_resources *resources;
    /* Queues and the like that have no shared_name belong to a session: here, where sessions share
     * the device. NULL: they are among resources. */
    leat_resources *own;
    bool borrows; /* its threads are another device's */
} leat_device;

/* threads: how many one kernel may use, the caller among them. */
leat_device *leat_cpu_device_new(const char *job, int task, int id, int threads, leat_pool *inter);
/* The same device as one session has it, all resources its own if it is isolated; d must outlive
 * it. */
leat_device *leat_device_for_session(const leat_device *d, bool isolated);
void leat_device_free(leat_device *d);

#endif
