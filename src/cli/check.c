/* check.c -- leat check: whether every task of a cluster can be reached and is the task that the
 * cluster names. */
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include "cluster_args.h"

typedef struct check_args {
    cli_cluster_args cluster;
    const char *timeout, *wait;
    long long timeout_s, wait_s;
} check_args;

static void print_table(const leat_probe *p, int n)
{
    printf("%-14s %-24s %-12s %-18s %-8s %-11s %s\n", "TASK", "ADDRESS", "STATE", "KIND", "DEVICES",
           "ROUND TRIP", "CLOCK");
    for (int i = 0; i < n; i++, p++) {
        char task[80], kind[64] = "-", trip[32] = "-", clock[32] = "-", devices[16] = "-";
        snprintf(task, sizeof(task), "%s/%d", p->job, p->task);
        if (p->kind[0]) {
            snprintf(kind, sizeof(kind), "%s %s", p->kind, p->version);
            snprintf(devices, sizeof(devices), "%d", p->devices);
            snprintf(trip, sizeof(trip), "%.2f ms", p->round_trip * 1e3);
        }
        if (!isnan(p->clock_ahead))
            snprintf(clock, sizeof(clock), "%+.1f ms", p->clock_ahead * 1e3);
        printf("%-14s %-24s %-12s %-18s %-8s %-11s %s\n", task, p->address,
               leat_reach_name(p->reach), kind, devices, trip, clock);
    }
}

static int count_bad(const leat_probe *p, int n)
{
    int bad = 0;
    for (int i = 0; i < n; i++)
        bad += p[i].reach != LEAT_REACH_OK;
    return bad;
}

/* Different releases work together as long as both reply, but results of different releases should
 * not be compared unknowingly. */
static void note_versions(const leat_probe *p, int n)
{
    const leat_probe *first = NULL;
    for (int i = 0; i < n; i++) {
        if (!p[i].version[0])
            continue;
        if (first && strcmp(first->version, p[i].version) != 0) {
            printf("note: %s/%d runs Leat %s, %s/%d Leat %s\n", first->job, first->task,
                   first->version, p[i].job, p[i].task, p[i].version);
            return;
        }
        first = first ? first : &p[i];
    }
}

static int report(const leat_probe *p, int n)
{
    int bad = count_bad(p, n);
    print_table(p, n);
    for (int i = 0; i < n; i++)
        if (p[i].problem[0])
            printf("%s/%d: %s\n", p[i].job, p[i].task, p[i].problem);
    note_versions(p, n);
    if (bad)
        printf("%d of %d tasks are not well\n", bad, n);
    else
        printf("all %d tasks are well\n", n);
    return bad ? 1 : 0;
}

static int check(const leat_cluster *c, const leat_probe_options *o, long long wait_s)
{
    time_t until = time(NULL) + (time_t)wait_s;
    for (;;) {
        leat_probe *p = NULL;
        int n = 0;
        leat_status s = leat_cluster_check(c, o, &p, &n);
        if (s)
            return cli_finish("check", s);
        if (count_bad(p, n) == 0 || time(NULL) >= until) {
            int code = report(p, n);
            free(p);
            return code;
        }
        free(p);
        usleep(200000);
    }
}

static bool read_args(int argc, char **argv, check_args *a)
{
    cli_values rest = {0};
    const cli_option options[] = {CLI_CLUSTER_OPTIONS(&a->cluster),
                                  {.name = "timeout", .value = &a->timeout},
                                  {.name = "wait", .value = &a->wait},
                                  {0}};
    bool ok = cli_parse(argc, argv, options, &rest);
    if (ok && rest.n)
        ok = cli_bad_use("check", "%s: takes no arguments", rest.v[0]) == 0;
    cli_values_free(&rest);
    return ok && (!a->timeout || cli_number("check", "timeout", a->timeout, 1, &a->timeout_s)) &&
           (!a->wait || cli_number("check", "wait", a->wait, 0, &a->wait_s));
}

static int run(int argc, char **argv)
{
    check_args a = {.timeout_s = 5};
    leat_probe_options o = {0};
    leat_cluster *c = NULL;
    char job[64];
    int task;
    if (!read_args(argc, argv, &a) || !cli_security_read("check", &a.cluster, &o.security) ||
        !cli_cluster_read("check", &a.cluster, &c, job, &task))
        return 2;
    o.timeout_ms = a.timeout_s * 1000;
    int code = check(c, &o, a.wait_s);
    leat_cluster_free(c);
    return code;
}

const cli_command cli_check = {
    .name = "check",
    .summary = "ask every task of a cluster whether it is there",
    .usage =
        "usage: leat check [--cluster SPEC] [--timeout S] [--wait S]\n\n"
        "Resolves, connects to and asks every task of a cluster, all at the same time. Prints a\n"
        "line for each (state, kind and version, devices, round trip, how far its clock is ahead\n"
        "of this one), and what to do about those that are not well. Exit code 0 if all "
        "are.\n\n" CLI_CLUSTER_USAGE "  --timeout S          seconds for each task (5)\n"
        "  --wait S             try again for so many seconds, until all are well "
        "(0)\n" CLI_SECURITY_USAGE,
    .run = run,
};
