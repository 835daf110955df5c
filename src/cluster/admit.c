/* admit.c -- see admit.h. */
#include "cluster/admit.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "cluster/cluster_spec.h"
#include "core/threadpool.h"

enum { ASK_SECONDS = 3 };

/* How two lists of tasks differ; texts are borrowed from them. */
typedef struct difference {
    char task[128]; /* A task that both have, at different addresses; "": none. */
    const char *here, *there;
    char own[128]; /* The same, for a task of the master's own process. */
    const char *own_here;
    char here_only[128], there_only[128]; /* Tasks that one list has; "": none. */
} difference;

static void task_name(char out[128], const char *job, int index)
{
    snprintf(out, 128, "/job:%s/replica:0/task:%d", job, index);
}

static void compare(leat_peers *p, const leat_cluster *there, const char *master, difference *d)
{
    const leat_cluster *here = leat_peers_cluster(p);
    const leat_peer *its = leat_peers_find(p, master);
    for (int i = 0; i < here->n; i++)
        for (int k = 0; k < here->jobs[i].n; k++) {
            const leat_task_spec *t = &here->jobs[i].tasks[k];
            const char *other = leat_cluster_address(there, here->jobs[i].name, t->index);
            char name[128];
            task_name(name, here->jobs[i].name, t->index);
            const leat_peer *at = leat_peers_find(p, name);
            if (!other) {
                memcpy(d->here_only, name, sizeof(name));
            } else if (strcmp(other, t->address) == 0 || at == leat_peers_own(p)) {
                continue; /* The master has reached this server by its own list. */
            } else if (at == its) {
                memcpy(d->own, name, sizeof(name));
                d->own_here = t->address;
            } else {
                memcpy(d->task, name, sizeof(name));
                d->here = t->address;
                d->there = other;
            }
        }
    for (int i = 0; i < there->n; i++)
        for (int k = 0; k < there->jobs[i].n; k++)
            if (!leat_cluster_address(here, there->jobs[i].name, there->jobs[i].tasks[k].index))
                task_name(d->there_only, there->jobs[i].name, there->jobs[i].tasks[k].index);
}

/* Words the refusal: which task differs, and both lists. */
static leat_status refuse(leat_peers *p, leat_code code, const Leat__LeatPeer *master,
                          const leat_cluster *there, const char *difference)
{
    leat_strbuf a = {0}, b = {0};
    leat_cluster_print(there, &a);
    leat_cluster_print(leat_peers_cluster(p), &b);
    const char *own = leat_peers_own(p)->name;
    leat_status s = leat_status_new(
        code, __FILE__, __LINE__,
        "%s refuses a session of %.127s, which was started for another cluster: %s. The cluster of "
        "that task: \"%s\"; of %s: \"%s\". Start all tasks with the same lists of hosts",
        own, master->task, difference, leat_strbuf_text(&a), own, leat_strbuf_text(&b));
    leat_strbuf_release(&a);
    leat_strbuf_release(&b);
    return s;
}

/* The master names its own address in another way than this process does. */
static leat_status check_own(leat_peers *p, const Leat__LeatPeer *master, const leat_cluster *there,
                             const difference *d)
{
    uint64_t incarnation = 0;
    bool stopping;
    leat_strbuf why = {0};
    leat_status asked =
        leat_peer_ask(leat_peers_find(p, master->task),
                      leat_now_ns() + INT64_C(1000000000) * ASK_SECONDS, &incarnation, &stopping);
    if (!asked && incarnation == master->incarnation)
        return NULL;
    leat_strbuf_printf(&why, "%s is at %s, where %s", d->own, d->own_here,
                       asked ? "nobody replies: " : "another process replies");
    if (asked)
        leat_strbuf_puts(&why, leat_status_message(asked));
    leat_status s = refuse(p, asked ? LEAT_UNAVAILABLE : LEAT_FAILED_PRECONDITION, master, there,
                           leat_strbuf_text(&why));
    leat_strbuf_release(&why);
    leat_status_free(asked);
    return s;
}

static leat_status check_lists(leat_peers *p, const Leat__LeatPeer *master,
                               const leat_cluster *there)
{
    difference d = {0};
    leat_strbuf why = {0};
    compare(p, there, master->task, &d);
    if (*d.task)
        leat_strbuf_printf(&why, "%s is at %s, not at %s", d.task, d.here, d.there);
    else if (*d.here_only && *d.there_only)
        leat_strbuf_printf(&why, "there is no %s, but a %s", d.there_only, d.here_only);
    leat_status s = NULL;
    if (why.n)
        s = refuse(p, LEAT_FAILED_PRECONDITION, master, there, leat_strbuf_text(&why));
    else if (*d.own)
        s = check_own(p, master, there, &d);
    leat_strbuf_release(&why);
    return s;
}

leat_status leat_peers_admit(leat_peers *p, const Leat__LeatPeer *master)
{
    if (master->cluster && leat_peers_own(p)) {
        leat_cluster *there = NULL;
        LEAT_TRY(leat_status_prefix(leat_cluster_from_def(master->cluster, &there),
                                    "%.127s sends a cluster that is none: ", master->task));
        leat_status s = check_lists(p, master, there);
        leat_cluster_free(there);
        LEAT_TRY(s);
    }
    leat_peer *from = leat_peers_find(p, master->task);
    if (from && master->incarnation)
        atomic_store(&from->incarnation, master->incarnation);
    return NULL;
}
