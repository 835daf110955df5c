/* device_kinds.c -- the list of all kinds of devices. */
#include <pthread.h>
#include <stdatomic.h>
#include <string.h>
#include <strings.h>

#include "runtime/device_kind.h"
#include "runtime/kernel_int.h"

enum { BUILT_IN = 2, MOST = 16 };

extern const leat_device_kind leat_cpu_kind;    /* src/kernels/cpu_device.c */
extern const leat_device_kind leat_opencl_kind; /* src/kernels/opencl/device.c */

static const leat_device_kind *kinds[MOST] = {&leat_cpu_kind, &leat_opencl_kind};
static atomic_int n_kinds = BUILT_IN;
static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER; /* held while a kind is added */

int leat_device_kinds(void)
{
    return atomic_load_explicit(&n_kinds, memory_order_acquire);
}

const leat_device_kind *leat_device_kind_at(int i)
{
    return kinds[i];
}

const leat_device_kind *leat_device_kind_find(const char *type)
{
    for (int i = 0, n = leat_device_kinds(); i < n; i++)
        if (strcasecmp(kinds[i]->type, type) == 0)
            return kinds[i];
    return NULL;
}

const leat_device_kind *leat_host_kind(void)
{
    int i = 0;
    while (!kinds[i]->host_memory)
        i++;
    return kinds[i];
}

int leat_device_priority(const char *type)
{
    const leat_device_kind *k = leat_device_kind_find(type);
    return k ? k->priority : -1;
}

leat_status leat_device_kind_register(const leat_device_kind *kind)
{
    LEAT_REQUIRE(kind->type && kind->type[0] && strlen(kind->type) < 16, INVALID_ARGUMENT,
                 "A kind of devices needs a name of 1 to 15 letters, not \"%s\"",
                 kind->type ? kind->type : "");
    LEAT_REQUIRE(kind->probe && kind->describe && kind->open && kind->kernels, INVALID_ARGUMENT,
                 "The kind of devices %s lacks probe, describe, open or kernels", kind->type);
    LEAT_REQUIRE(kind->host_memory ||
                     (kind->copy && kind->mark && kind->wait && kind->on_event && kind->event_free),
                 INVALID_ARGUMENT,
                 "The kind of devices %s, whose memory is not the host's, lacks copy, mark, wait, "
                 "on_event or event_free",
                 kind->type);
    pthread_mutex_lock(&lock);
    int n = atomic_load(&n_kinds);
    leat_status s = NULL;
    if (leat_device_kind_find(kind->type))
        s = leat_error(ALREADY_EXISTS, "There is a kind of devices %s already", kind->type);
    else if (n == MOST)
        s = leat_error(RESOURCE_EXHAUSTED, "There are %d kinds of devices, as many as can be",
                       MOST);
    if (!s) {
        kinds[n] = kind;
        leat_kernels_add_kind(kind);
        atomic_store_explicit(&n_kinds, n + 1, memory_order_release);
    }
    pthread_mutex_unlock(&lock);
    return s;
}
