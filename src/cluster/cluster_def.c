/* cluster_def.c -- a cluster as TensorFlow's ClusterDef, and back. */
#include "cluster_spec.h"

#include <stdlib.h>
#include <string.h>

#include "core/alloc.h"

static leat_status add_job(leat_cluster *c, const Leat__JobDef *job)
{
    LEAT_TRY(leat_cluster_add_job(c, job->name));
    LEAT_REQUIRE(!leat_cluster_find(c, job->name)->n, INVALID_ARGUMENT,
                 "ClusterDef: job \"%s\" is there twice", job->name);
    for (size_t i = 0; i < job->n_tasks; i++)
        LEAT_TRY(leat_cluster_set(c, job->name, job->tasks[i]->key, job->tasks[i]->value));
    return NULL;
}

leat_status leat_cluster_from_def(const Leat__ClusterDef *def, leat_cluster **cluster_out)
{
    leat_cluster *c = leat_cluster_new();
    leat_status s = NULL;
    for (size_t i = 0; !s && i < def->n_job; i++)
        s = add_job(c, def->job[i]);
    if (s) {
        leat_cluster_free(c);
        return s;
    }
    *cluster_out = c;
    return NULL;
}

static int by_name(const void *a, const void *b)
{
    return strcmp((*(Leat__JobDef *const *)a)->name, (*(Leat__JobDef *const *)b)->name);
}

/* Memory that leat__cluster_def__free_unpacked frees: each message, array and string on its own. */
Leat__ClusterDef *leat_cluster_to_def(const leat_cluster *c)
{
    Leat__ClusterDef *def = leat_new(Leat__ClusterDef);
    leat__cluster_def__init(def);
    def->n_job = (size_t)c->n;
    def->job = c->n ? leat_new_array(Leat__JobDef *, c->n) : NULL;
    for (int i = 0; i < c->n; i++) {
        const leat_job_spec *from = &c->jobs[i];
        Leat__JobDef *to = def->job[i] = leat_new(Leat__JobDef);
        leat__job_def__init(to);
        to->name = leat_xstrdup(from->name);
        to->n_tasks = (size_t)from->n;
        to->tasks = from->n ? leat_new_array(Leat__JobDef__TasksEntry *, from->n) : NULL;
        for (int k = 0; k < from->n; k++) {
            Leat__JobDef__TasksEntry *e = to->tasks[k] = leat_new(Leat__JobDef__TasksEntry);
            leat__job_def__tasks_entry__init(e);
            e->key = from->tasks[k].index;
            e->value = leat_xstrdup(from->tasks[k].address);
        }
    }
    if (c->n)
        qsort(def->job, def->n_job, sizeof(*def->job), by_name);
    return def;
}
