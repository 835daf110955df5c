/* Any text as TF_CONFIG, as a cluster's text and as Slurm's lists: an error, or a cluster whose
 * tasks have addresses. */
#include "cluster/cluster_spec.h"

#include <stdlib.h>
#include <string.h>

static void walk(leat_cluster *c)
{
    for (int i = 0; i < leat_cluster_jobs(c); i++) {
        int last = leat_cluster_tasks(c, leat_cluster_job(c, i)) - 1;
        if (last >= 0 && !leat_cluster_address(c, leat_cluster_job(c, i), last))
            abort();
    }
    leat_cluster_free(c);
}

static void lists(const char *text)
{
    char **hosts = NULL;
    int *counts = NULL, n = 0;
    leat_status s = leat_slurm_hosts(text, &hosts, &n);
    for (int i = 0; !s && i < n; i++)
        free(hosts[i]);
    free(hosts);
    leat_status_free(s);
    leat_status_free(leat_slurm_counts(text, &counts, &n));
    free(counts);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t n);
int LLVMFuzzerTestOneInput(const uint8_t *data, size_t n)
{
    char *text = malloc(n + 1), job[64];
    int task;
    leat_cluster *c = NULL;
    memcpy(text, data, n);
    text[n] = 0;
    leat_status s = leat_cluster_from_tf_config(text, &c, job, &task);
    if (!s)
        walk(c);
    leat_status_free(s);
    s = leat_cluster_parse(text, &c);
    if (!s)
        walk(c);
    leat_status_free(s);
    lists(text);
    free(text);
    return 0;
}
