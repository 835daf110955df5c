/* device.c -- GPUs, as OpenCL has them: the kind "GPU". */
#include <stdlib.h>
#include <string.h>
#include <stdio.h>

#include "core/alloc.h"
#include "core/thread.h"
#include "kernels/opencl/walk.h"

static leat_status probe(int *most_out)
{
    leat_cl_devices(most_out);
    return NULL;
}

static void describe(int id, leat_device_info *out)
{
    int n;
    const leat_cl_listed *v = leat_cl_devices(&n);
    *out = (leat_device_info){.memory = id < n ? v[id].memory : 0};
    if (id < n)
        snprintf(out->description, sizeof out->description, "%.100s, OpenCL", v[id].name);
}

static leat_status make_queues(leat_opencl *d)
{
    int32_t error;
    d->context = leat_cl.CreateContext(NULL, 1, &d->listed->id, NULL, NULL, &error);
    if (!d->context)
        return leat_cl_status("clCreateContext", error);
    for (int i = 0; i < 2; i++) {
        d->queues[i] = leat_cl.CreateCommandQueue(d->context, d->listed->id, 0, &error);
        if (!d->queues[i])
            return leat_cl_status("clCreateCommandQueue", error);
    }
    return NULL;
}

/* The driver may start threads, which must not take the program's signals. */
static leat_status make_context(leat_opencl *d)
{
    sigset_t before;
    leat_signals_block(&before);
    leat_status s = make_queues(d);
    pthread_sigmask(SIG_SETMASK, &before, NULL);
    return s;
}

/* Frees what make_context has made, all or a part. */
static void drop_context(leat_opencl *d)
{
    for (int i = 0; i < 2; i++)
        if (d->queues[i])
            leat_cl.ReleaseCommandQueue(d->queues[i]);
    if (d->context)
        leat_cl.ReleaseContext(d->context);
}

static leat_status open(leat_device *device)
{
    int n;
    const leat_cl_listed *v = leat_cl_devices(&n);
    LEAT_REQUIRE(device->ordinal < n, NOT_FOUND, "there are %d OpenCL devices", n);
    leat_opencl *d = leat_new(leat_opencl);
    d->device = device;
    d->listed = &v[device->ordinal];
    leat_status s = make_context(d);
    if (!s)
        s = leat_cl_memory_open(d);
    if (s) {
        drop_context(d);
        free(d);
        return s;
    }
    pthread_mutex_init(&d->enqueuing, NULL);
    pthread_mutex_init(&d->building, NULL);
    pthread_mutex_init(&d->tuning, NULL);
    pthread_mutex_init(&d->idle, NULL);
    device->state = d;
    device->allocator = &d->memory;
    return NULL;
}

static void close(leat_device *device)
{
    leat_opencl *d = device->state;
    for (int i = 0; i < 2; i++)
        leat_cl.Finish(d->queues[i]);
    leat_cl_programs_close(d);
    leat_cl_memory_close(d);
    drop_context(d);
    pthread_mutex_destroy(&d->enqueuing);
    pthread_mutex_destroy(&d->building);
    pthread_mutex_destroy(&d->tuning);
    pthread_mutex_destroy(&d->idle);
    free(d);
}

const leat_device_kind leat_opencl_kind = {
    .type = "GPU",
    .priority = 210, /* TensorFlow's value */
    .is_gpu = true,
    .by_default = -1,
    .probe = probe,
    .describe = describe,
    .open = open,
    .close = close,
    .kernels = leat_cl_kernel_lists,
    .copy = leat_cl_copy,
    .move = leat_cl_move_views,
    .add = leat_cl_add_to,
    .mark = leat_cl_mark,
    .wait = leat_cl_wait,
    .on_event = leat_cl_on_event,
    .event_free = leat_cl_event_free,
};
