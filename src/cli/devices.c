/* devices.c -- leat devices: the devices that a session has on this machine. */
#include <stdio.h>

#include "cli.h"

static int run(int argc, char **argv)
{
    const char *cpus = NULL;
    cli_values rest = {0};
    const cli_option options[] = {{.name = "cpu_devices", .value = &cpus}, {0}};
    long long n_cpus = 0;
    bool ok = cli_parse(argc, argv, options, &rest);
    if (ok && rest.n)
        ok = cli_bad_use("devices", "%s: takes no arguments", rest.v[0]) == 0;
    cli_values_free(&rest);
    if (!ok || (cpus && !cli_number("devices", "cpu_devices", cpus, 1, &n_cpus)))
        return 2;
    leat_graph *g = leat_graph_new();
    leat_session *s;
    leat_status status = leat_session_open(g, &s, .cpu_devices = (int)n_cpus);
    if (!status) {
        int n;
        const char *const *names = leat_session_devices(s, &n);
        for (int i = 0; i < n; i++)
            printf("%s\n", names[i]);
        leat_session_close(s);
    }
    leat_graph_free(g);
    return cli_finish("devices", status);
}

const cli_command cli_devices = {
    .name = "devices",
    .summary = "list this machine's devices",
    .usage = "usage: leat devices [--cpu_devices N]\n\n"
             "Lists the devices that a session on this machine has, one a line.\n\n"
             "  --cpu_devices N   as if a session asked for N CPU devices\n",
    .run = run,
};
