/* device_name.h -- device names, full or partial: "/job:ps/task:1", "/cpu:0",
 * "/job:worker/replica:0/task:0/device:CPU:1", "job:worker/task:0/gpu:0". */
#ifndef LEAT_DEVICE_NAME_H
#define LEAT_DEVICE_NAME_H

#include <leat/status.h>

typedef struct leat_device_name {
    char job[64];      /* "" for any */
    int replica, task; /* -1 for any */
    char type[16];     /* "CPU", "GPU", upper case; "" for any */
    int id;            /* -1 for any */
} leat_device_name;

#define LEAT_DEVICE_ANY ((leat_device_name){.replica = -1, .task = -1, .id = -1})

leat_status leat_device_name_parse(const char *text, leat_device_name *out) LEAT_MUST_CHECK;
/* Parts that `over` does not have are taken from `under`. */
leat_device_name leat_device_name_merge(const leat_device_name *over,
                                        const leat_device_name *under);
/* True if a device of this full name matches the partial name. */
bool leat_device_name_fits(const leat_device_name *full, const leat_device_name *asked);
/* "/job:ps/task:1/device:CPU:0"; gives buf. */
char *leat_device_name_text(const leat_device_name *d, char *buf, size_t n);

#endif
