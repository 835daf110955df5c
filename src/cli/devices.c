/* devices.c -- leat devices: the devices that a session has on this machine. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "cli.h"

bool cli_devices_ok(const char *command, const char *spec)
{
    leat_device_listing *list;
    int n;
    leat_status s = leat_devices_list(spec, &list, &n);
    if (!s) {
        free(list);
        return true;
    }
    cli_bad_use(command, "%s", leat_status_message(s));
    leat_status_free(s);
    return false;
}

bool cli_gpu_memory(const char *command, const char *fraction, const char *limit,
                    leat_gpu_options *out)
{
    char *end = NULL;
    if (fraction) {
        out->memory_fraction = strtod(fraction, &end);
        if (end == fraction || *end || !(out->memory_fraction > 0 && out->memory_fraction <= 1))
            return cli_bad_use(command,
                               "--gpu_memory_fraction %s: wants a number above 0, and at most 1",
                               fraction) == 0;
    }
    leat_status s = limit ? leat_bytes_read(limit, &out->memory_limit) : NULL;
    if (!s)
        return true;
    cli_bad_use(command, "--gpu_memory_limit: %s", leat_status_message(s));
    leat_status_free(s);
    return false;
}

static void show(const leat_device_listing *list, int n)
{
    int width = 0;
    for (int i = 0; i < n; i++) {
        int letters = (int)strlen(list[i].name);
        width = letters > width ? letters : width;
    }
    for (int i = 0; i < n; i++) {
        char memory[32] = "-";
        if (list[i].memory)
            snprintf(memory, sizeof(memory), "%.1f GB", (double)list[i].memory / 1e9);
        printf("%-*s  %-4s  %10s  %s", width, list[i].name, list[i].kind, memory,
               list[i].description);
        const char *number = strrchr(list[i].name, ':');
        if (number && atoi(number + 1) != list[i].ordinal)
            printf(" (number %d of this machine's)", list[i].ordinal);
        putchar('\n');
    }
}

static int run(int argc, char **argv)
{
    const char *cpus = NULL, *spec = NULL;
    cli_values rest = {0};
    const cli_option options[] = {
        {.name = "devices", .value = &spec}, {.name = "cpu_devices", .value = &cpus}, {0}};
    long long n_cpus = 0;
    bool ok = cli_parse(argc, argv, options, &rest);
    if (ok && rest.n)
        ok = cli_bad_use("devices", "%s: takes no arguments", rest.v[0]) == 0;
    cli_values_free(&rest);
    if (ok && cpus && spec)
        ok = cli_bad_use("devices", "--cpu_devices and --devices say the same: give one") == 0;
    if (!ok || (cpus && !cli_number("devices", "cpu_devices", cpus, 1, &n_cpus)))
        return 2;
    char of_cpus[32];
    snprintf(of_cpus, sizeof(of_cpus), "cpu:%lld", n_cpus);
    if (cpus)
        spec = of_cpus;
    if (!cli_devices_ok("devices", spec))
        return 2;
    leat_device_listing *list = NULL;
    int n = 0;
    leat_status s = leat_devices_list(spec, &list, &n);
    show(list, n);
    free(list);
    return cli_finish("devices", s);
}

const cli_command cli_devices = {
    .name = "devices",
    .summary = "list this machine's devices",
    .usage =
        "usage: leat devices [--devices SPEC]\n\n"
        "Lists the devices that a session on this machine has, one a line: name, kind, memory\n"
        "for tensors, and what it is.\n\n"
        "LEAT_CPU in the environment chooses the instruction set of the CPU's kernels: x86-64,\n"
        "x86-64-v3 (AVX2) or x86-64-v4 (AVX-512); by default the best that the CPU has.\n"
        "LEAT_VISIBLE_DEVICES, or else CUDA_VISIBLE_DEVICES, says which of the machine's GPUs\n"
        "there are, and in which order: 2,0. Nothing behind the = leaves none.\n\n"
        "  --devices SPEC    as if a session asked for so many of each kind: cpu:2,gpu:1\n"
        "  --cpu_devices N   the same as --devices cpu:N\n",
    .run = run,
};
