/* admit.c -- see admit.h. */
#include "cluster/admit.h"

#include <stdlib.h>

#include "cluster/cluster_spec.h"
#include "core/threadpool.h"

enum { ASK_SECONDS = 3 };

/* Words the refusal: which task differs, and both lists. */
static leat_status refuse(leat_peers *p, leat_code code,
                          const Leat__CreateWorkerSessionRequest *master, const leat_cluster *there,
                          const char *difference)
{
    leat_strbuf a = {0}, b = {0};
    leat_cluster_print(there, &a);
    leat_cluster_print(leat_peers_cluster(p), &b);
    const char *own = leat_peers_own(p)->name;
    leat_status s = leat_status_new(
        code, __FILE__, __LINE__,
        "%s refuses a session of %.127s, which was started for another cluster: %s. The cluster of "
        "that task: \"%s\"; of %s: \"%s\". Start all tasks with the same lists of hosts",
        own, master->master_task, difference, leat_strbuf_text(&a), own, leat_strbuf_text(&b));
    leat_strbuf_release(&a);
    leat_strbuf_release(&b);
    return s;
}

/* The master names its own address in another way than this process does. */
static leat_status check_own(leat_peers *p, const Leat__CreateWorkerSessionRequest *master,
                             const leat_cluster *there, const char *task)
{
    uint64_t incarnation = 0;
    bool stopping;
    leat_strbuf why = {0};
    leat_peer *from = leat_peers_find(p, master->master_task);
    leat_status asked = leat_peer_ask(from, leat_now_ns() + INT64_C(1000000000) * ASK_SECONDS,
                                      &incarnation, &stopping);
    if (!asked && incarnation == (uint64_t)master->master_incarnation)
        return NULL;
    leat_strbuf_printf(&why, "%s is at %s, where %s", task, from->address,
                       asked ? "nobody replies: " : "another process replies");
    if (asked)
        leat_strbuf_puts(&why, leat_status_message(asked));
    leat_status s = refuse(p, asked ? LEAT_UNAVAILABLE : LEAT_FAILED_PRECONDITION, master, there,
                           leat_strbuf_text(&why));
    leat_strbuf_release(&why);
    leat_status_free(asked);
    return s;
}

static leat_status check_lists(leat_peers *p, const Leat__CreateWorkerSessionRequest *master,
                               const leat_cluster *there)
{
    leat_cluster_difference d;
    leat_strbuf why = {0};
    const leat_peer *from = leat_peers_find(p, master->master_task);
    leat_cluster_compare(leat_peers_cluster(p), there, leat_peers_own(p)->address,
                         from ? from->address : NULL, &d);
    leat_status s = NULL;
    if (leat_cluster_difference_print(&d, &why))
        s = refuse(p, LEAT_FAILED_PRECONDITION, master, there, leat_strbuf_text(&why));
    else if (*d.caller)
        s = check_own(p, master, there, d.caller);
    leat_strbuf_release(&why);
    return s;
}

leat_status leat_peers_admit(leat_peers *p, const Leat__CreateWorkerSessionRequest *master)
{
    leat_cluster *there = NULL;
    LEAT_TRY(leat_status_prefix(leat_cluster_from_def(master->leat_cluster, &there),
                                "%.127s sends a cluster that is none: ", master->master_task));
    leat_status s = leat_peers_own(p) ? check_lists(p, master, there) : NULL;
    leat_cluster_free(there);
    LEAT_TRY(s);
    leat_peer *from = leat_peers_find(p, master->master_task);
    if (from && master->master_incarnation)
        atomic_store(&from->incarnation, (uint64_t)master->master_incarnation);
    return NULL;
}
