/* cluster_compare.c -- whether two lists of tasks are of the same cluster. */
#include <stdio.h>
#include <string.h>

#include "cluster/cluster_spec.h"

static void task_name(char out[128], const char *job, int index)
{
    snprintf(out, 128, "/job:%s/replica:0/task:%d", job, index);
}

static bool is_at(const char *address, const char *same)
{
    return same && strcmp(address, same) == 0;
}

void leat_cluster_compare(const leat_cluster *here, const leat_cluster *there, const char *callee,
                          const char *caller, leat_cluster_difference *d)
{
    *d = (leat_cluster_difference){0};
    for (int i = 0; i < here->n; i++)
        for (int k = 0; k < here->jobs[i].n; k++) {
            const leat_task_spec *t = &here->jobs[i].tasks[k];
            const char *other = leat_cluster_address(there, here->jobs[i].name, t->index);
            if (other && (strcmp(other, t->address) == 0 || is_at(t->address, callee)))
                continue;
            char *name = !other ? d->here_only : is_at(t->address, caller) ? d->caller : d->task;
            task_name(name, here->jobs[i].name, t->index);
            if (name == d->task) {
                d->here = t->address;
                d->there = other;
            }
        }
    for (int i = 0; i < there->n; i++)
        for (int k = 0; k < there->jobs[i].n; k++)
            if (!leat_cluster_address(here, there->jobs[i].name, there->jobs[i].tasks[k].index))
                task_name(d->there_only, there->jobs[i].name, there->jobs[i].tasks[k].index);
}

bool leat_cluster_difference_print(const leat_cluster_difference *d, leat_strbuf *out)
{
    if (*d->task)
        leat_strbuf_printf(out, "%s is at %s, not at %s", d->task, d->here, d->there);
    else if (*d->here_only && *d->there_only)
        leat_strbuf_printf(out, "there is no %s, but a %s", d->there_only, d->here_only);
    else
        return false;
    return true;
}
