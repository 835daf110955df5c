/* queue.c -- the two queues of a device: copies, events, and what waits for them. Both are in
 * order, and are used by several threads at once, as OpenCL allows. */
#include <stdlib.h>

#include "core/alloc.h"
#include "kernels/opencl/opencl.h"

/* Called with d->enqueuing held. */
static leat_status enqueue_copy(leat_opencl *d, cl_queue q, leat_copy_way way, void *to,
                                const void *from, size_t bytes)
{
    uint64_t at_to = 0, at_from = 0;
    cl_memory m_to = way == LEAT_COPY_OUT ? NULL : leat_cl_where(d, to, &at_to);
    cl_memory m_from = way == LEAT_COPY_IN ? NULL : leat_cl_where(d, from, &at_from);
    switch (way) {
    case LEAT_COPY_IN:
        LEAT_CL_TRY(EnqueueWriteBuffer, q, m_to, CL_FALSE, at_to, bytes, from, 0, NULL, NULL);
        break;
    case LEAT_COPY_OUT:
        LEAT_CL_TRY(EnqueueReadBuffer, q, m_from, CL_FALSE, at_from, bytes, to, 0, NULL, NULL);
        break;
    case LEAT_COPY_WITHIN:
        LEAT_CL_TRY(EnqueueCopyBuffer, q, m_from, m_to, at_from, at_to, bytes, 0, NULL, NULL);
        break;
    }
    return NULL;
}

leat_status leat_cl_copy(leat_device *device, int queue, leat_copy_way way, void *to,
                         const void *from, size_t bytes)
{
    leat_opencl *d = device->state;
    if (!bytes)
        return NULL;
    pthread_mutex_lock(&d->enqueuing);
    leat_status s = enqueue_copy(d, d->queues[queue], way, to, from, bytes);
    pthread_mutex_unlock(&d->enqueuing);
    return s;
}

leat_status leat_cl_mark(leat_device *device, int queue, leat_device_event *out)
{
    leat_opencl *d = device->state;
    cl_queue q = d->queues[queue];
    cl_event e = NULL;
    pthread_mutex_lock(&d->enqueuing);
    leat_status s = leat_cl_status("clEnqueueMarkerWithWaitList",
                                   leat_cl.EnqueueMarkerWithWaitList(q, 0, NULL, &e));
    /* Without this, a driver may keep what was enqueued to itself. */
    if (!s)
        s = leat_cl_status("clFlush", leat_cl.Flush(q));
    pthread_mutex_unlock(&d->enqueuing);
    if (!s) {
        *out = e;
        return NULL;
    }
    if (e)
        leat_cl.ReleaseEvent(e);
    leat_cl.Finish(q); /* copies must not use memory that the caller frees now */
    return s;
}

/* e is an event of the same device: without copy_peer there are no others. */
leat_status leat_cl_wait(leat_device *device, int queue, leat_device_event e)
{
    leat_opencl *d = device->state;
    cl_event event = e;
    pthread_mutex_lock(&d->enqueuing);
    leat_status s =
        leat_cl_status("clEnqueueBarrierWithWaitList",
                       leat_cl.EnqueueBarrierWithWaitList(d->queues[queue], 1, &event, NULL));
    pthread_mutex_unlock(&d->enqueuing);
    return s;
}

void leat_cl_event_free(leat_device *device, leat_device_event e)
{
    leat_cl.ReleaseEvent(e);
}

/* ---- What happens when an event has come ---- */

typedef struct coming {
    leat_device *device;
    leat_event_fn fn;
    void *arg;
    int32_t status; /* CL_COMPLETE, or the error of the work before the event */
} coming;

static leat_status status_of(const leat_device *d, int32_t status)
{
    LEAT_REQUIRE(status >= 0, INTERNAL, "The work of %s failed with %s (%d); it may be lost",
                 d->name, leat_cl_error_name(status), (int)status);
    return NULL;
}

static void tell(void *arg)
{
    coming c = *(coming *)arg;
    free(arg);
    c.fn(c.arg, status_of(c.device, c.status));
}

/* Runs in a thread of the driver's, in which functions of OpenCL must not be called that may take
 * long: the pool does the work. */
static void came(cl_event e, int32_t status, void *arg)
{
    coming *c = arg;
    c->status = status;
    leat_cl.ReleaseEvent(e);
    leat_pool_submit(c->device->inter, tell, c);
}

void leat_cl_on_event(leat_device *device, leat_device_event event, leat_event_fn fn, void *arg)
{
    int32_t status;
    leat_status s = leat_cl_status("clGetEventInfo",
                                   leat_cl.GetEventInfo(event, CL_EVENT_COMMAND_EXECUTION_STATUS,
                                                        sizeof status, &status, NULL));
    if (!s && status > CL_COMPLETE) {
        coming *c = leat_new(coming);
        *c = (coming){.device = device, .fn = fn, .arg = arg};
        s = leat_cl_status("clSetEventCallback",
                           leat_cl.SetEventCallback(event, CL_COMPLETE, came, c));
        if (!s)
            return;
        free(c);
    }
    leat_cl.ReleaseEvent(event);
    fn(arg, s ? s : status_of(device, status));
}
