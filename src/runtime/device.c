/* device.c -- what devices of all kinds have in common. */
#include "runtime/device.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/random.h>
#include <time.h>
#include <unistd.h>

#include "core/alloc.h"
#include "core/map.h"

static uint64_t new_incarnation(void)
{
    static atomic_uint count;
    struct timespec t;
    uint64_t random;
    if (getrandom(&random, sizeof(random), 0) == sizeof(random))
        return random | 1; /* 0 means none */
    clock_gettime(CLOCK_REALTIME, &t);
    uint64_t seed[3] = {(uint64_t)t.tv_sec * 1000000000u + (uint64_t)t.tv_nsec, (uint64_t)getpid(),
                        atomic_fetch_add(&count, 1)};
    return leat_hash(seed, sizeof(seed), 0) | 1;
}

leat_status leat_device_new(const leat_device_choice *c, int threads, leat_pool *inter,
                            leat_device **out)
{
    leat_device *d = leat_new(leat_device);
    atomic_init(&d->refs, 1);
    d->kind = c->kind;
    d->ordinal = c->ordinal;
    d->parsed = (leat_device_name){.replica = 0, .task = c->task, .id = c->id};
    snprintf(d->parsed.job, sizeof(d->parsed.job), "%s", c->job);
    snprintf(d->parsed.type, sizeof(d->parsed.type), "%s", c->kind->type);
    leat_device_name_text(&d->parsed, d->name, sizeof(d->name));
    d->incarnation = new_incarnation();
    d->inter = inter;
    leat_status s = c->kind->open(d);
    if (s) {
        s = leat_status_prefix(s, "%s cannot be opened: ", d->name);
        free(d);
        return s;
    }
    if (!c->kind->host_memory)
        d->allocator->reclaim = leat_reclaim;
    const size_t limit = c->kind->host_memory ? 0 : (size_t)c->memory_limit;
    if (limit && (!d->allocator->limit || d->allocator->limit > limit))
        d->allocator->limit = limit;
    d->intra = leat_pool_size(inter) == threads - 1 ? inter : leat_pool_new(threads - 1, "intra");
    d->resources = leat_resources_new();
    *out = d;
    return NULL;
}

const char *leat_device_text(const leat_device *d, char text[LEAT_DEVICE_TEXT])
{
    leat_device_info info = {0};
    if (d->kind->host_memory)
        return NULL;
    d->kind->describe(d->ordinal, &info);
    snprintf(text, LEAT_DEVICE_TEXT, "device: %d, name: %s", d->ordinal, info.description);
    return text;
}

leat_status leat_device_error(const leat_device *d, leat_status s)
{
    if (!s || strstr(leat_status_message(s), d->name))
        return s;
    return leat_status_prefix(s, "%s: ", d->name);
}

leat_device *leat_device_for_session(const leat_device *d, bool isolated)
{
    leat_device *x = leat_new(leat_device);
    memcpy(x, d, sizeof(*x));
    atomic_init(&x->refs, 1);
    x->borrows = true;
    if (isolated) {
        x->resources = leat_resources_new();
    } else {
        leat_resources_ref(x->resources);
        x->own = leat_resources_new();
    }
    return x;
}

leat_device *leat_device_ref(leat_device *d)
{
    atomic_fetch_add_explicit(&d->refs, 1, memory_order_relaxed);
    return d;
}

void leat_device_close(leat_device *d)
{
    if (!d)
        return;
    leat_resources_clear(d->own ? d->own : d->resources, NULL);
    leat_device_unref(d);
}

void leat_device_unref(leat_device *d)
{
    if (atomic_fetch_sub_explicit(&d->refs, 1, memory_order_acq_rel) != 1)
        return;
    if (d->intra != d->inter && !d->borrows)
        leat_pool_free(d->intra);
    leat_resources_unref(d->resources);
    leat_resources_unref(d->own);
    if (d->kind->close && !d->borrows)
        d->kind->close(d);
    free(d);
}
