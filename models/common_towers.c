/* common_towers.c -- see common_towers.h. */
#include "common_towers.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static leat_status read_list(const char *list, towers_devices *d)
{
    for (const char *at = list; *at;) {
        const size_t n = strcspn(at, ",");
        if (d->n == TOWERS_MOST || !n || n >= sizeof(d->name[0]))
            return leat_error(INVALID_ARGUMENT,
                              "--device_list %s: wants at most %d devices, as /gpu:0,/gpu:1", list,
                              TOWERS_MOST);
        memcpy(d->name[d->n], at, n);
        d->name[d->n++][n] = 0;
        at += n + (at[n] == ',');
    }
    return d->n ? NULL : leat_error(INVALID_ARGUMENT, "--device_list names no device");
}

static leat_status count_gpus(int *n_out)
{
    leat_device_listing *all;
    int n, count = 0;
    LEAT_TRY(leat_devices_list(NULL, &all, &n));
    for (int i = 0; i < n; i++)
        count += strcmp(all[i].kind, "GPU") == 0;
    free(all);
    *n_out = count;
    return NULL;
}

static leat_status name_devices(const towers_flags *f, towers_devices *d)
{
    const int64_t n = f->num_gpus ? f->num_gpus : f->num_devices;
    int gpus = 0;
    if (n > TOWERS_MOST)
        return leat_error(INVALID_ARGUMENT, "%s: at most %d",
                          f->num_gpus ? "--num_gpus" : "--num_devices", TOWERS_MOST);
    if (f->num_gpus)
        LEAT_TRY(count_gpus(&gpus));
    if (gpus && gpus < n)
        return leat_error(INVALID_ARGUMENT,
                          "--num_gpus %lld: this process sees %d (leat devices lists them)",
                          (long long)n, gpus);
    for (d->n = 0; d->n < n; d->n++)
        snprintf(d->name[d->n], sizeof(d->name[0]), "/%s:%d", gpus ? "gpu" : "cpu", d->n);
    return NULL;
}

/* "/job:worker/task:0" of "/job:worker/task:0/gpu:1", to which the CPU is added. */
static void find_home(const towers_flags *f, towers_devices *d)
{
    const char *first = d->name[0];
    const char *task = strstr(first, "/task:");
    const size_t n = task ? 6 + strspn(task + 6, "0123456789") + (size_t)(task - first) : 0;
    snprintf(d->home, sizeof(d->home), "%.*s/cpu:0", (int)n, first);
    if (f->home)
        snprintf(d->home, sizeof(d->home), "%s", f->home);
}

leat_status towers_choose(const towers_flags *f, towers_devices *out)
{
    *out = (towers_devices){.cpus = 1};
    LEAT_TRY(f->device_list ? read_list(f->device_list, out) : name_devices(f, out));
    for (int i = 0; i < out->n; i++) {
        const char *cpu = strstr(out->name[i], "cpu:");
        if (cpu && atoi(cpu + 4) >= out->cpus)
            out->cpus = atoi(cpu + 4) + 1;
    }
    find_home(f, out);
    return NULL;
}
