/* list.c -- the OpenCL devices that this process may use.
 *
 * GPUs and accelerators always are; devices whose work runs on the machine's CPU, such as PoCL's,
 * only if the environment asks for them: LEAT_OPENCL_CPU=1, or POCL_DEVICES, which says which
 * devices PoCL has. So a machine on which PoCL is installed behaves as one without.
 *
 * libOpenCL loads all drivers that the machine has, and PoCL's loads all of LLVM. It is not loaded
 * where PoCL's is the only driver and is not wanted.
 */
#include <ctype.h>
#include <dirent.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>

#include "core/alloc.h"
#include "core/log.h"
#include "core/thread.h"
#include "kernels/opencl/opencl.h"

enum { MOST_PLATFORMS = 16, MOST_DEVICES = 64 };

static pthread_once_t once = PTHREAD_ONCE_INIT;
static leat_cl_listed devices[MOST_DEVICES];
static int n_devices;

static bool is_set(const char *name)
{
    const char *v = getenv(name);
    return v && *v && strcmp(v, "0") != 0;
}

static bool wants_cpus(void)
{
    return is_set("LEAT_OPENCL_CPU") || is_set("POCL_DEVICES");
}

/* Whether a file of the vendors' folder, which holds the name of a driver's library, names PoCL's.
 */
static bool names_pocl(const char *folder, const char *file)
{
    char path[512], line[512] = "";
    snprintf(path, sizeof path, "%s/%s", folder, file);
    FILE *f = fopen(path, "r");
    if (!f)
        return false;
    if (!fgets(line, sizeof line, f))
        line[0] = 0;
    fclose(f);
    return strstr(line, "pocl") != NULL;
}

/* True if the machine has a driver that is not PoCL's, or may have one in a place of its own. */
static bool has_other_drivers(void)
{
    static const char folder[] = "/etc/OpenCL/vendors";
    static const char *const elsewhere[] = {"OCL_ICD_VENDORS", "OPENCL_VENDOR_PATH",
                                            "OCL_ICD_FILENAMES"};
    for (size_t i = 0; i < sizeof elsewhere / sizeof *elsewhere; i++)
        if (is_set(elsewhere[i]))
            return true;
    DIR *d = opendir(folder);
    bool found = false;
    for (struct dirent *e; d && !found && (e = readdir(d));) {
        const char *dot = strrchr(e->d_name, '.');
        found = dot && strcmp(dot, ".icd") == 0 && !names_pocl(folder, e->d_name);
    }
    if (d)
        closedir(d);
    return found;
}

static uint64_t number_of(cl_device id, uint32_t what, size_t size)
{
    uint64_t value = 0; /* the least significant bytes come first on all machines of Leat's */
    if (leat_cl.GetDeviceInfo(id, what, size, &value, NULL))
        return 0;
    return value;
}

static void text_of(cl_device id, uint32_t what, char *out, size_t size)
{
    size_t n = 0;
    if (leat_cl.GetDeviceInfo(id, what, size - 1, out, &n))
        n = 0;
    out[n < size ? n : size - 1] = 0;
}

/* Several spaces, as some vendors write them, become one. */
static void squeeze(char *s)
{
    char *to = s;
    for (const char *from = s + strspn(s, " "); *from; from++)
        if (*from != ' ' || (from[1] != ' ' && from[1] != 0))
            *to++ = *from;
    *to = 0;
}

static void add_device(cl_device id, const char *platform, bool on_cpu)
{
    leat_cl_listed *x = &devices[n_devices];
    char name[128], version[128], driver[128];
    if (!number_of(id, CL_DEVICE_AVAILABLE, 4) || !number_of(id, CL_DEVICE_COMPILER_AVAILABLE, 4) ||
        !number_of(id, CL_DEVICE_ENDIAN_LITTLE, 4))
        return;
    *x = (leat_cl_listed){
        .id = id,
        /* For tests: what GPUs run can be run on a CPU, too, but not fast. */
        .on_cpu = on_cpu && !is_set("LEAT_OPENCL_AS_GPU"),
        .memory = (int64_t)number_of(id, CL_DEVICE_GLOBAL_MEM_SIZE, 8),
        .most = (int64_t)number_of(id, CL_DEVICE_MAX_MEM_ALLOC_SIZE, 8),
        .units = (int)number_of(id, CL_DEVICE_MAX_COMPUTE_UNITS, 4),
        .group = number_of(id, CL_DEVICE_MAX_WORK_GROUP_SIZE, sizeof(size_t)),
    };
    text_of(id, CL_DEVICE_NAME, name, sizeof name);
    squeeze(name);
    memcpy(x->name, name, sizeof name);
    text_of(id, CL_DEVICE_VERSION, version, sizeof version);
    text_of(id, CL_DRIVER_VERSION, driver, sizeof driver);
    snprintf(x->driver, sizeof x->driver, "%.100s|%.80s|%.40s|%.30s", platform, name, version,
             driver);
    n_devices++;
}

static void add_platform(cl_platform p, bool cpus)
{
    cl_device ids[MOST_DEVICES];
    uint32_t n = 0;
    char version[128] = "";
    const uint64_t types =
        cpus ? CL_DEVICE_TYPE_CPU : CL_DEVICE_TYPE_GPU | CL_DEVICE_TYPE_ACCELERATOR;
    if (leat_cl.GetPlatformInfo(p, CL_PLATFORM_VERSION, sizeof version - 1, version, NULL))
        version[0] = 0;
    if (leat_cl.GetDeviceIDs(p, types, MOST_DEVICES, ids, &n))
        return; /* CL_DEVICE_NOT_FOUND: it has none of these types */
    for (uint32_t i = 0; i < n && n_devices < MOST_DEVICES; i++)
        add_device(ids[i], version, cpus);
}

static void find_all(void)
{
    cl_platform platforms[MOST_PLATFORMS];
    uint32_t n = 0;
    leat_status s = leat_cl_load();
    if (!s && leat_cl.GetPlatformIDs(MOST_PLATFORMS, platforms, &n))
        n = 0; /* no driver is installed */
    leat_status_free(s);
    if (n > MOST_PLATFORMS)
        n = MOST_PLATFORMS;
    for (uint32_t i = 0; i < n; i++)
        add_platform(platforms[i], false);
    for (uint32_t i = 0; i < n && wants_cpus(); i++)
        add_platform(platforms[i], true);
}

/* A driver may start threads, which must not take the program's signals. */
static void find(void)
{
    if (!wants_cpus() && !has_other_drivers())
        return;
    sigset_t before;
    leat_signals_block(&before);
    find_all();
    pthread_sigmask(SIG_SETMASK, &before, NULL);
}

const leat_cl_listed *leat_cl_devices(int *n_out)
{
    pthread_once(&once, find);
    *n_out = n_devices;
    return devices;
}
