/* slurm.c -- a cluster from Slurm's environment variables, and leat_cluster_from_env, which chooses
 * between these and TF_CONFIG.
 *
 * As TensorFlow's SlurmClusterResolver does it: the list of tasks has the hosts in Slurm's order,
 * with each host's tasks at the base port and the ports after it; jobs, sorted by name, take their
 * tasks from that list in turn. The variables are those of the step (srun), which may use less than
 * the whole allocation.
 */
#include "cluster_spec.h"

#include <ctype.h>
#include <errno.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "core/alloc.h"
#include "core/strbuf.h"

#define SLURM_MAX 65536 /* hosts, and tasks, of a step */

typedef struct hosts {
    char **v;
    int n, cap;
} hosts;

static void hosts_free(hosts *h)
{
    for (int i = 0; i < h->n; i++)
        free(h->v[i]);
    free(h->v);
}

static leat_status no_hosts(const char *text, const char *at)
{
    return leat_error(INVALID_ARGUMENT, "\"%.200s\" is no list of hosts: look at \"%.40s\"", text,
                      at);
}

/* A number of up to nine digits; false if there is none. */
static bool digits(const char **p, long *value, int *width)
{
    *value = 0;
    for (*width = 0; isdigit((unsigned char)**p) && *width < 10; (*width)++)
        *value = *value * 10 + (*(*p)++ - '0');
    return *width > 0 && *width < 10;
}

/* Adds all hosts that the pattern at p, up to a comma or the end, stands for, with `head` before
 * it. */
static leat_status expand(hosts *h, const char *text, const char *head, const char *p)
{
    size_t plain = strcspn(p, "[],");
    if (p[plain] != '[') {
        if (p[plain] == ']' || (!plain && !*head) || strlen(head) + plain > 255)
            return no_hosts(text, p);
        LEAT_REQUIRE(h->n < SLURM_MAX, INVALID_ARGUMENT, "\"%.200s\" has more than %d hosts", text,
                     SLURM_MAX);
        leat_strbuf name = {0};
        leat_strbuf_printf(&name, "%s%.*s", head, (int)plain, p);
        leat_grow(h->v, h->n, h->cap);
        h->v[h->n++] = leat_strbuf_take(&name);
        return NULL;
    }
    const char *close = strchr(p + plain, ']'), *q = p + plain + 1;
    if (!close || strlen(head) + plain > 255) /* this also limits the depth of the recursion */
        return no_hosts(text, p + plain);
    for (leat_status s = NULL; q <= close; q++) {
        const char *at = q;
        long low, high;
        int width, ignored;
        bool ok = digits(&q, &low, &width);
        high = low;
        if (ok && *q == '-')
            q++, ok = digits(&q, &high, &ignored);
        if (!ok || high < low || (*q != ',' && q != close))
            return no_hosts(text, at);
        for (long i = low; !s && i <= high; i++) {
            leat_strbuf more = {0};
            leat_strbuf_printf(&more, "%s%.*s%0*ld", head, (int)plain, p, width, i);
            s = expand(h, text, leat_strbuf_text(&more), close + 1);
            leat_strbuf_release(&more);
        }
        if (s)
            return s;
    }
    return NULL;
}

/* The end of the host that begins at p: a comma outside of brackets, or the end of the text. */
static const char *host_end(const char *p)
{
    for (int depth = 0; *p && (depth || *p != ','); p++)
        depth += *p == '[' ? 1 : *p == ']' && depth ? -1 : 0;
    return p;
}

leat_status leat_slurm_hosts(const char *text, char ***hosts_out, int *n_out)
{
    hosts h = {0};
    leat_status s = NULL;
    for (const char *p = text; !s;) {
        const char *end = host_end(p);
        char *one = leat_xstrndup(p, (size_t)(end - p));
        s = expand(&h, text, "", one);
        free(one);
        if (!*end)
            break;
        p = end + 1;
    }
    if (s) {
        hosts_free(&h);
        return s;
    }
    *hosts_out = h.v;
    *n_out = h.n;
    return NULL;
}

leat_status leat_slurm_counts(const char *text, int **counts_out, int *n_out)
{
    int *counts = NULL, n = 0, cap = 0;
    for (const char *p = text;; p++) {
        const char *at = p;
        long count, times = 1;
        int width;
        bool ok = digits(&p, &count, &width);
        if (ok && strncmp(p, "(x", 2) == 0) {
            p += 2;
            ok = digits(&p, &times, &width) && *p++ == ')';
        }
        if (!ok || !times || (*p && *p != ',') || count > SLURM_MAX || n + times > SLURM_MAX) {
            free(counts);
            return leat_error(INVALID_ARGUMENT,
                              "\"%.200s\" is no list of tasks per node: look at \"%.40s\"", text,
                              at);
        }
        for (; times; times--) {
            leat_grow(counts, n, cap);
            counts[n++] = (int)count;
        }
        if (!*p)
            break;
    }
    *counts_out = counts;
    *n_out = n;
    return NULL;
}

static leat_status number(const char *name, int least, int *out)
{
    const char *text = getenv(name);
    char *end = NULL;
    errno = 0;
    long v = text ? strtol(text, &end, 10) : -1;
    LEAT_REQUIRE(text, NOT_FOUND, "%s is not set", name);
    LEAT_REQUIRE(end != text && !*end && !errno && v >= least && v <= INT_MAX, INVALID_ARGUMENT,
                 "%s is \"%.80s\", wants a whole number from %d", name, text, least);
    *out = (int)v;
    return NULL;
}

/* A step, from Slurm's environment variables. */
typedef struct step {
    int rank, tasks;
    char **hosts;
    int n_hosts;
    int *counts; /* number of tasks of each host */
    int n_counts;
} step;

static void step_release(step *st)
{
    hosts_free(&(hosts){st->hosts, st->n_hosts, 0});
    free(st->counts);
}

static leat_status step_read(step *st)
{
    const char *list = getenv("SLURM_STEP_NODELIST"), *per = getenv("SLURM_STEP_TASKS_PER_NODE");
    LEAT_TRY(number("SLURM_PROCID", 0, &st->rank));
    LEAT_REQUIRE(list && per, NOT_FOUND,
                 "SLURM_STEP_NODELIST and SLURM_STEP_TASKS_PER_NODE are not set: start the tasks "
                 "by srun");
    LEAT_TRY(number("SLURM_STEP_NUM_TASKS", 1, &st->tasks));
    LEAT_TRY(leat_status_prefix(leat_slurm_hosts(list, &st->hosts, &st->n_hosts),
                                "SLURM_STEP_NODELIST: "));
    LEAT_TRY(leat_status_prefix(leat_slurm_counts(per, &st->counts, &st->n_counts),
                                "SLURM_STEP_TASKS_PER_NODE: "));
    LEAT_REQUIRE(st->n_hosts == st->n_counts, INVALID_ARGUMENT,
                 "SLURM_STEP_NODELIST has %d hosts, SLURM_STEP_TASKS_PER_NODE is of %d",
                 st->n_hosts, st->n_counts);
    long all = 0;
    for (int i = 0; i < st->n_counts; i++)
        all += st->counts[i];
    LEAT_REQUIRE(all == st->tasks, INVALID_ARGUMENT,
                 "SLURM_STEP_NUM_TASKS is %d, but SLURM_STEP_TASKS_PER_NODE has %ld", st->tasks,
                 all);
    LEAT_REQUIRE(st->rank < st->tasks, INVALID_ARGUMENT,
                 "SLURM_PROCID is %d, but the step has %d tasks", st->rank, st->tasks);
    return NULL;
}

/* For each task its host, and its number on that host: hosts are filled one after the other, or,
 * with `srun --distribution cyclic`, in turn. */
static leat_status place_tasks(const step *st, int *host_of, int *offset_of)
{
    const char *way = getenv("SLURM_DISTRIBUTION");
    bool cyclic = way && strncmp(way, "cyclic", 6) == 0;
    LEAT_REQUIRE(!way || cyclic || !*way || strncmp(way, "block", 5) == 0, UNIMPLEMENTED,
                 "SLURM_DISTRIBUTION is \"%.80s\": only block and cyclic are known", way);
    int rank = 0;
    if (!cyclic) {
        for (int h = 0; h < st->n_hosts; h++)
            for (int k = 0; k < st->counts[h]; k++, rank++)
                host_of[rank] = h, offset_of[rank] = k;
        return NULL;
    }
    for (int k = 0; rank < st->tasks; k++)
        for (int h = 0; h < st->n_hosts; h++)
            if (k < st->counts[h])
                host_of[rank] = h, offset_of[rank++] = k;
    return NULL;
}

typedef struct slurm_job {
    char name[LEAT_JOB_NAME_MAX + 1];
    int tasks;
} slurm_job;

static int by_name(const void *a, const void *b)
{
    return strcmp(((const slurm_job *)a)->name, ((const slurm_job *)b)->name);
}

/* "ps=1,worker=3", sorted by name; NULL: all tasks are workers. */
static leat_status read_jobs(const char *text, int all, slurm_job jobs[16], int *n_out)
{
    int n = 0;
    long sum = 0;
    if (!text || !*text)
        jobs[n++] = (slurm_job){"worker", sum = all};
    for (const char *p = text ? text : ""; *p; p += *p == ',' || *p == ';') {
        int used = 0;
        LEAT_REQUIRE(n < 16, INVALID_ARGUMENT, "\"%.200s\" has more than 16 jobs", text);
        slurm_job *j = &jobs[n++];
        int got = sscanf(p, " %63[A-Za-z0-9_] = %6d %n", j->name, &j->tasks, &used);
        LEAT_REQUIRE(got == 2 && used && j->tasks >= 0 && (!p[used] || strchr(",;", p[used])),
                     INVALID_ARGUMENT,
                     "\"%.200s\" does not say how the tasks are split into jobs: wants "
                     "\"ps=1,worker=3\", look at \"%.40s\"",
                     text, p);
        sum += j->tasks;
        p += used;
    }
    LEAT_REQUIRE(sum == all, INVALID_ARGUMENT,
                 "The jobs \"%.200s\" have %ld tasks, the Slurm step has %d", text ? text : "", sum,
                 all);
    qsort(jobs, (size_t)n, sizeof(*jobs), by_name);
    *n_out = n;
    return NULL;
}

static leat_status fill(const step *st, const char *jobs_text, int port_base, leat_cluster *c,
                        char job_out[64], int *task_out)
{
    slurm_job jobs[16];
    int n_jobs = 0, rank = 0;
    LEAT_TRY(read_jobs(jobs_text, st->tasks, jobs, &n_jobs));
    int *host_of = leat_new_array(int, st->tasks), *offset_of = leat_new_array(int, st->tasks);
    leat_status s = place_tasks(st, host_of, offset_of);
    for (int j = 0; !s && j < n_jobs; j++)
        for (int t = 0; !s && t < jobs[j].tasks; t++, rank++) {
            char address[300];
            snprintf(address, sizeof(address), "%.255s:%d", st->hosts[host_of[rank]],
                     port_base + offset_of[rank]);
            s = leat_cluster_set(c, jobs[j].name, t, address);
            if (rank == st->rank) {
                memcpy(job_out, jobs[j].name, sizeof(jobs[j].name));
                *task_out = t;
            }
        }
    free(host_of);
    free(offset_of);
    return s;
}

leat_status leat_cluster_from_slurm(const char *jobs, int port_base, leat_cluster **cluster_out,
                                    char job_out[64], int *task_out)
{
    step st = {0};
    leat_cluster *c = leat_cluster_new();
    char job[64] = "";
    int task = -1;
    leat_status s = step_read(&st);
    if (!s)
        s = fill(&st, jobs, port_base ? port_base : 8888, c, job, &task);
    step_release(&st);
    if (s) {
        leat_cluster_free(c);
        return leat_status_prefix(s, "Slurm: ");
    }
    memcpy(job_out, job, sizeof(job));
    *task_out = task;
    *cluster_out = c;
    return NULL;
}

leat_status leat_cluster_from_env(leat_cluster **cluster_out, char job_out[64], int *task_out)
{
    const char *config = getenv("TF_CONFIG");
    int port = 0;
    if (config && *config)
        return leat_cluster_from_tf_config(config, cluster_out, job_out, task_out);
    LEAT_REQUIRE(getenv("SLURM_PROCID"), NOT_FOUND,
                 "The environment has no cluster: neither TF_CONFIG nor Slurm's SLURM_PROCID is "
                 "set");
    if (getenv("LEAT_PORT_BASE"))
        LEAT_TRY(number("LEAT_PORT_BASE", 1, &port));
    return leat_cluster_from_slurm(getenv("LEAT_JOBS"), port, cluster_out, job_out, task_out);
}
