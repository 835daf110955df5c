/* device.c -- the CPU as a device; a process may have several, each with threads of its own. */
#include "runtime/device.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include "core/alloc.h"
#include "core/map.h"

static uint64_t new_incarnation(void)
{
    static atomic_uint count;
    struct timespec t;
    clock_gettime(CLOCK_REALTIME, &t);
    uint64_t seed[3] = {(uint64_t)t.tv_sec * 1000000000u + (uint64_t)t.tv_nsec, (uint64_t)getpid(),
                        atomic_fetch_add(&count, 1)};
    return leat_hash(seed, sizeof(seed), 0) | 1; /* 0 means none */
}

leat_device *leat_cpu_device_new(const char *job, int task, int id, int threads, leat_pool *inter)
{
    leat_device *d = leat_new(leat_device);
    d->parsed = (leat_device_name){.replica = 0, .task = task, .type = "CPU", .id = id};
    snprintf(d->parsed.job, sizeof(d->parsed.job), "%s", job);
    leat_device_name_text(&d->parsed, d->name, sizeof(d->name));
    d->incarnation = new_incarnation();
    d->allocator = leat_cpu_allocator();
    d->inter = inter;
    d->intra = leat_pool_size(inter) == threads - 1 ? inter : leat_pool_new(threads - 1, "intra");
    d->resources = leat_resources_new();
    return d;
}

leat_device *leat_device_for_session(const leat_device *d, bool isolated)
{
    leat_device *x = leat_new(leat_device);
    *x = *d;
    x->borrows = true;
    if (isolated) {
        x->resources = leat_resources_new();
    } else {
        leat_resources_ref(x->resources);
        x->own = leat_resources_new();
    }
    return x;
}

void leat_device_free(leat_device *d)
{
    if (!d)
        return;
    if (d->intra != d->inter && !d->borrows)
        leat_pool_free(d->intra);
    leat_resources_unref(d->resources);
    leat_resources_unref(d->own);
    free(d);
}
