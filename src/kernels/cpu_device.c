/* cpu_device.c -- the CPU as a kind of device. A process may have several CPU devices: each has
 * variables of its own; they share memory and threads. */
#include "runtime/device.h"

#include <assert.h>
#include <limits.h>
#include <pthread.h>
#include <stdio.h>
#include <string.h>
#include <sys/sysinfo.h>

#include "kernels/dataset/list.h"
#include "kernels/levels.h"

static leat_status probe(int *most_out)
{
    LEAT_TRY(leat_cpu_level_check());
    *most_out = INT_MAX; /* no limit */
    return NULL;
}

/* The "model name" line of /proc/cpuinfo, or "". */
static void read_model(char *out, size_t size)
{
    char line[256];
    FILE *f = fopen("/proc/cpuinfo", "r");
    while (f && fgets(line, sizeof(line), f)) {
        const char *colon = strchr(line, ':');
        if (!colon || strncmp(line, "model name", 10) != 0)
            continue;
        const char *text = colon + 1 + strspn(colon + 1, " \t");
        snprintf(out, size, "%.*s", (int)strcspn(text, "\n"), text);
        break;
    }
    if (f)
        fclose(f);
}

static void describe(int id, leat_device_info *out)
{
    struct sysinfo info;
    *out = (leat_device_info){0};
    char model[100] = "CPU";
    read_model(model, sizeof(model));
    snprintf(out->description, sizeof(out->description), "%.90s, kernels for %.15s", model,
             leat_cpu_level());
    if (leat_cpu_allocator()->limit)
        out->memory = (int64_t)leat_cpu_allocator()->limit;
    else if (sysinfo(&info) == 0)
        out->memory = (int64_t)info.totalram * info.mem_unit;
}

static leat_status open(leat_device *d)
{
    d->allocator = leat_cpu_allocator();
    return NULL;
}

enum { MOST_LISTS = 256 };
static const leat_kernel_def *lists[MOST_LISTS + 1]; /* NULL-ended */
static pthread_once_t lists_once = PTHREAD_ONCE_INIT;

static int add_lists(int n, const leat_kernel_def *const *from)
{
    while (*from && n < MOST_LISTS)
        lists[n++] = *from++;
    assert(!*from);
    return n;
}

/* The kernels for this processor, and those that are compiled once. */
static void join_lists(void)
{
    int n = add_lists(0, leat_cpu_kernel_lists());
    add_lists(n, leat_dataset_kernel_lists);
}

static const leat_kernel_def *const *kernels(void)
{
    pthread_once(&lists_once, join_lists);
    return lists;
}

const leat_device_kind leat_cpu_kind = {
    .type = "CPU",
    .priority = 70, /* TensorFlow's value; its GPUs have 210 */
    .host_memory = true,
    .by_default = 1,
    .probe = probe,
    .describe = describe,
    .open = open,
    .kernels = kernels,
};
