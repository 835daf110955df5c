/* launch.c -- puts together and enqueues the launch of one function. */
#include "kernels/opencl/opencl.h"

leat_cl_launch leat_cl_begin(leat_opencl *d, const leat_cl_text *const *texts, const char *options,
                             const char *function)
{
    leat_cl_launch l = {.d = d};
    l.status = leat_cl_function_find(d, texts, options, function, &l.function);
    if (!l.status)
        l.status = leat_cl_function_take(d, l.function, &l.kernel);
    return l;
}

void leat_cl_bytes(leat_cl_launch *l, const void *value, size_t n)
{
    if (!l->status)
        l->status =
            leat_cl_status("clSetKernelArg", leat_cl.SetKernelArg(l->kernel, l->args++, n, value));
}

void leat_cl_at(leat_cl_launch *l, const void *address)
{
    uint64_t offset;
    cl_memory m = leat_cl_where(l->d, address, &offset);
    leat_cl_bytes(l, &m, sizeof m);
    leat_cl_bytes(l, &offset, sizeof offset);
}

void leat_cl_float(leat_cl_launch *l, double x)
{
    const float value = (float)x;
    leat_cl_bytes(l, &value, sizeof value);
}

void leat_cl_int(leat_cl_launch *l, int64_t x)
{
    const int32_t value = (int32_t)x;
    if (!l->status && value != x)
        l->status = leat_error(UNIMPLEMENTED,
                               "kernels of GPUs count to 2**31 - 1, and here are %lld elements",
                               (long long)x);
    leat_cl_bytes(l, &value, sizeof value);
}

/* Enqueues, if there was no error, and gives the kernel object back. */
static leat_status finish(leat_cl_launch *l, const size_t global[2], const size_t local[2])
{
    if (!l->status && global[0] && global[1]) {
        pthread_mutex_lock(&l->d->enqueuing);
        l->status =
            leat_cl_status("clEnqueueNDRangeKernel",
                           leat_cl.EnqueueNDRangeKernel(l->d->queues[LEAT_QUEUE_COMPUTE], l->kernel,
                                                        2, NULL, global, local, 0, NULL, NULL));
        pthread_mutex_unlock(&l->d->enqueuing);
    }
    if (l->kernel)
        leat_cl_function_give(l->d, l->function, l->kernel);
    return l->status;
}

/* On a CPU each work item takes a run of neighbours (EACH in common.cl), so there are as few work
 * items as keep its cores busy; on a GPU neighbours belong to neighbouring work items. */
leat_status leat_cl_each(leat_cl_launch *l, int64_t n, double unit_ns)
{
    const leat_cl_listed *x = l->d->listed;
    int64_t items, size = 1;
    if (x->on_cpu) {
        const double worth = (double)n * unit_ns / 10000; /* 10 us are worth a work item */
        items = x->units == 1 || worth < 2 ? 1
                : worth < 4 * x->units     ? (int64_t)worth
                                           : 4 * x->units;
    } else {
        const int64_t most = (int64_t)x->units * 2048;
        size = x->group < 256 ? (int64_t)x->group : 256;
        items = n < most ? n : most;
        items = (items + size - 1) / size * size;
    }
    if (n <= 0)
        items = 0;
    else if (items > n && x->on_cpu)
        items = n;
    return finish(l, (size_t[]){(size_t)items, 1}, (size_t[]){(size_t)size, 1});
}

leat_status leat_cl_groups(leat_cl_launch *l, const int64_t groups[2], const int64_t size[2])
{
    return finish(l, (size_t[]){(size_t)(groups[0] * size[0]), (size_t)(groups[1] * size[1])},
                  (size_t[]){(size_t)size[0], (size_t)size[1]});
}
