/* common_towers.h -- the devices of towers: CPU devices or GPUs of this machine, or devices that a
 * list names, which may be of several tasks of a cluster. */
#ifndef COMMON_TOWERS_H
#define COMMON_TOWERS_H

#include <leat/leat.h>

enum { TOWERS_MOST = 64 };

/* What a program's flags say. If several of the first three are set, the first of them counts. */
typedef struct towers_flags {
    const char *device_list; /* "/job:worker/task:0,/job:worker/task:1" */
    int64_t num_gpus;        /* GPUs; CPU devices where this process sees no GPU */
    int64_t num_devices;     /* CPU devices */
    const char *home;        /* the device of variables; NULL: the CPU of the first tower's task */
} towers_flags;

#define TOWERS_FLAGS(f)                                                                            \
    {"num_devices", FLAG_INT, &(f).num_devices, 1, "towers, each on a CPU device of its own"},     \
        {"num_gpus", FLAG_INT, &(f).num_gpus, 0,                                                   \
         "towers, each on a GPU; on CPU devices where there is no GPU"},                           \
        {"device_list", FLAG_STRING, &(f).device_list, 0,                                          \
         "towers on these, as /gpu:0,/cpu:0 or /job:worker/task:0,/job:worker/task:1"},            \
    {                                                                                              \
        "variables_on", FLAG_STRING, &(f).home, 0,                                                 \
            "the device of the variables; default: the CPU of the first tower's task"              \
    }

typedef struct towers_devices {
    char name[TOWERS_MOST][128];
    int n;
    char home[160];
    int cpus; /* CPU devices that a session in this process needs */
} towers_devices;

leat_status towers_choose(const towers_flags *f, towers_devices *out) LEAT_MUST_CHECK;

#endif
