/* pair.h -- a cluster of two tasks for tests, /job:ps/task:0 and /job:worker/task:0: both servers
 * in the test's process, or the ps in a process of its own that can be killed. */
#ifndef LEAT_TESTS_CLUSTER_PAIR_H
#define LEAT_TESTS_CLUSTER_PAIR_H

#include <leat/leat.h>

#include "cluster/task.h"
#include "port.h"
#include "test.h"

static inline leat_cluster *pair_cluster(void)
{
    leat_cluster *c = leat_cluster_new();
    const char *jobs[] = {"ps", "worker"};
    for (int i = 0; i < 2; i++) {
        char address[32];
        snprintf(address, sizeof(address), "localhost:%d", free_port());
        CHECK_OK(leat_cluster_add(c, jobs[i], address));
    }
    return c;
}

/* ---- Both in this process ---- */
typedef struct pair {
    leat_server *ps, *worker;
} pair;

static inline void pair_stop(pair *p)
{
    leat_server_free(p->worker);
    leat_server_free(p->ps);
    *p = (pair){0};
}

/* options may be NULL. */
static inline void pair_start(pair *p, const leat_server_options *options)
{
    leat_cluster *c = pair_cluster();
    *p = (pair){0};
    LEAT_DIE_ON_ERROR(leat_server_start(c, "ps", 0, options, &p->ps));
    LEAT_DIE_ON_ERROR(leat_server_start(c, "worker", 0, options, &p->worker));
    leat_cluster_free(c);
}

/* ---- The ps in a process of its own ---- */

/* The process of --role ps "PS WORKER", which are the two addresses: prints "ready", and serves
 * until it is killed. */
static inline int pair_be_ps(const char *arg)
{
    char ps[64], worker[64];
    leat_server *s = NULL;
    if (sscanf(arg, "%63s %63s", ps, worker) != 2)
        return 2;
    leat_cluster *c = leat_cluster_new();
    LEAT_DIE_ON_ERROR(leat_cluster_add(c, "ps", ps));
    LEAT_DIE_ON_ERROR(leat_cluster_add(c, "worker", worker));
    LEAT_DIE_ON_ERROR(leat_server_start(c, "ps", 0, NULL, &s));
    printf("ready\n");
    fflush(stdout);
    leat_status_free(leat_server_join(s));
    return 0;
}

/* Starts the process, and returns when it serves. main calls pair_be_ps for the role "ps". */
static inline task pair_start_ps(const leat_cluster *c)
{
    char arg[130], line[64];
    snprintf(arg, sizeof(arg), "%s %s", leat_cluster_address(c, "ps", 0),
             leat_cluster_address(c, "worker", 0));
    task t = task_start("ps", arg);
    CHECK(fgets(line, sizeof(line), t.says) && strcmp(line, "ready\n") == 0);
    return t;
}

#endif
