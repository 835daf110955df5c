/* cpu_device.c -- the CPU as a kind of device. A process may have several CPU devices: each has
 * variables of its own; they share memory and threads. */
#include "runtime/device.h"

#include <limits.h>
#include <stdio.h>
#include <string.h>
#include <sys/sysinfo.h>

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

static const leat_kernel_def *const *kernels(void)
{
    return leat_cpu_kernel_lists();
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
