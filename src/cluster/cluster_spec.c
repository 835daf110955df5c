/* cluster_spec.c -- jobs, tasks and their addresses, one by one and from text. */
#include "cluster_spec.h"

#include <ctype.h>
#include <stdlib.h>
#include <string.h>

#include "core/alloc.h"
#include "core/arg.h"
#include "core/object.h"

leat_cluster *leat_cluster_new(void)
{
    return leat_new_object(leat_cluster, CLUSTER);
}

static void job_release(leat_job_spec *j)
{
    for (int i = 0; i < j->n; i++)
        free(j->tasks[i].address);
    free(j->tasks);
    free(j->name);
}

void leat_cluster_free(leat_cluster *c)
{
    if (!c)
        return;
    if (!LEAT_USABLE(CLUSTER, c))
        return;
    for (int i = 0; i < c->n; i++)
        job_release(&c->jobs[i]);
    free(c->jobs);
    leat_object_free(&c->object);
}

leat_cluster *leat_cluster_copy(const leat_cluster *c)
{
    if (!LEAT_USABLE(CLUSTER, c))
        return NULL;
    leat_cluster *copy = leat_cluster_new();
    copy->n = copy->cap = c->n;
    copy->jobs = leat_new_array(leat_job_spec, c->n + 1);
    for (int i = 0; i < c->n; i++) {
        const leat_job_spec *from = &c->jobs[i];
        leat_job_spec *to = &copy->jobs[i];
        to->name = leat_xstrdup(from->name);
        to->n = to->cap = from->n;
        to->tasks = leat_new_array(leat_task_spec, from->n + 1);
        for (int k = 0; k < from->n; k++)
            to->tasks[k] =
                (leat_task_spec){from->tasks[k].index, leat_xstrdup(from->tasks[k].address)};
    }
    return copy;
}

const leat_job_spec *leat_cluster_find(const leat_cluster *c, const char *job)
{
    for (int i = 0; i < c->n; i++)
        if (strcmp(c->jobs[i].name, job) == 0)
            return &c->jobs[i];
    return NULL;
}

/* A job name is what device names allow between "/job:" and the next slash. */
static leat_status check_job_name(const char *job)
{
    bool ok = isalpha((unsigned char)job[0]) && strlen(job) <= LEAT_JOB_NAME_MAX;
    for (const char *p = job; ok && *p; p++)
        ok = isalnum((unsigned char)*p) || *p == '_';
    LEAT_REQUIRE(
        ok, INVALID_ARGUMENT,
        "\"%.80s\" is no job name: a letter, then letters, digits and underscores, at most "
        "%d in all",
        job, LEAT_JOB_NAME_MAX);
    return NULL;
}

leat_status leat_cluster_add_job(leat_cluster *c, const char *job)
{
    LEAT_TRY(check_job_name(job));
    if (leat_cluster_find(c, job))
        return NULL;
    LEAT_REQUIRE(c->n < LEAT_JOBS_MAX, INVALID_ARGUMENT, "A cluster has at most %d jobs",
                 LEAT_JOBS_MAX);
    leat_grow(c->jobs, c->n, c->cap);
    c->jobs[c->n++] = (leat_job_spec){.name = leat_xstrdup(job)};
    return NULL;
}

void leat_cluster_remove_job(leat_cluster *c, const char *job)
{
    const leat_job_spec *j = leat_cluster_find(c, job);
    if (!j)
        return;
    int i = (int)(j - c->jobs);
    job_release(&c->jobs[i]);
    memmove(&c->jobs[i], &c->jobs[i + 1], sizeof(*c->jobs) * (size_t)(c->n - i - 1));
    c->n--;
}

leat_status leat_address_split(const char *address, char host_out[256], int *port_out)
{
    const char *colon = strrchr(address, ':'), *host = address;
    size_t n = colon ? (size_t)(colon - address) : 0;
    bool bracketed = n >= 2 && host[0] == '[' && host[n - 1] == ']';
    if (bracketed)
        host++, n -= 2;
    int port = 0;
    const char *digits = colon ? colon + 1 : "";
    bool ok = n > 0 && n < 256 && *digits && strspn(digits, "0123456789") == strlen(digits);
    for (; ok && *digits; digits++) {
        port = port * 10 + (*digits - '0');
        ok = port <= 65535;
    }
    /* A second colon is part of an IPv6 address only within brackets. */
    for (size_t i = 0; ok && i < n; i++) {
        unsigned char ch = (unsigned char)host[i];
        ok = isgraph(ch) && !strchr(",;|=/[]\"'\\", ch) && (ch != ':' || bracketed);
    }
    LEAT_REQUIRE(ok, INVALID_ARGUMENT,
                 "Could not interpret \"%.200s\" as a host-port pair: wants \"host:port\", a port "
                 "from 0 to 65535",
                 address);
    memcpy(host_out, host, n);
    host_out[n] = 0;
    *port_out = port;
    return NULL;
}

/* The position of the task with this index in j->tasks, or where it would be inserted. */
static int position(const leat_job_spec *j, int index)
{
    int low = 0, high = j->n;
    while (low < high) {
        int middle = low + (high - low) / 2;
        if (j->tasks[middle].index < index)
            low = middle + 1;
        else
            high = middle;
    }
    return low;
}

static leat_status set_task(leat_cluster *c, const char *job, int task, const char *address)
{
    char host[256];
    int port, all = 0;
    LEAT_REQUIRE(task >= 0, INVALID_ARGUMENT, "Task index %d of job \"%.80s\" is negative", task,
                 job);
    LEAT_TRY(leat_status_prefix(leat_address_split(address, host, &port), "Job \"%.80s\": ", job));
    LEAT_TRY(leat_cluster_add_job(c, job));
    for (int i = 0; i < c->n; i++)
        all += c->jobs[i].n;
    LEAT_REQUIRE(all < LEAT_CLUSTER_MAX, INVALID_ARGUMENT, "A cluster has at most %d tasks",
                 LEAT_CLUSTER_MAX);
    leat_job_spec *j = (leat_job_spec *)leat_cluster_find(c, job);
    int at = position(j, task);
    if (at < j->n && j->tasks[at].index == task) {
        char *copy = leat_xstrdup(address);
        free(j->tasks[at].address);
        j->tasks[at].address = copy;
        return NULL;
    }
    leat_grow(j->tasks, j->n, j->cap);
    memmove(&j->tasks[at + 1], &j->tasks[at], sizeof(*j->tasks) * (size_t)(j->n - at));
    j->tasks[at] = (leat_task_spec){task, leat_xstrdup(address)};
    j->n++;
    return NULL;
}

leat_status leat_cluster_set(leat_cluster *c, const char *job, int task, const char *address)
{
    LEAT_CHECK(CLUSTER, c);
    LEAT_CHECK_ARG(job);
    LEAT_CHECK_ARG(address);
    return set_task(c, job, task, address);
}

/* A copy of the text from begin to end without blanks around it. */
static char *trimmed(const char *begin, const char *end)
{
    while (begin < end && isspace((unsigned char)*begin))
        begin++;
    while (end > begin && isspace((unsigned char)end[-1]))
        end--;
    return leat_xstrndup(begin, (size_t)(end - begin));
}

/* Addresses that are separated by a character. */
static leat_status add_list(leat_cluster *c, const char *job, const char *text, const char *end,
                            char separator)
{
    LEAT_TRY(leat_cluster_add_job(c, job));
    for (const char *p = text;;) {
        const char *stop = memchr(p, separator, (size_t)(end - p));
        if (!stop)
            stop = end;
        char *address = trimmed(p, stop);
        leat_status s;
        int next = leat_cluster_tasks(c, job);
        if (!*address)
            s = leat_error(INVALID_ARGUMENT,
                           "Job \"%s\": an empty address for task %d in \"%.*s\" (Could not "
                           "interpret \"\" as a host-port pair)",
                           job, next, (int)(end - text < 200 ? end - text : 200), text);
        else
            s = set_task(c, job, next, address);
        free(address);
        if (s || stop == end)
            return s;
        p = stop + 1;
    }
}

leat_status leat_cluster_add(leat_cluster *c, const char *job, const char *addresses)
{
    LEAT_CHECK(CLUSTER, c);
    LEAT_CHECK_ARG(job);
    LEAT_CHECK_ARG(addresses);
    return add_list(c, job, addresses, addresses + strlen(addresses), ',');
}

/* Adds one "job=addresses". An empty part is passed over, so that a list may end with its
 * separator. */
static leat_status add_part(leat_cluster *c, const char *begin, const char *end, char equals,
                            char separator)
{
    char *part = trimmed(begin, end);
    leat_status s = NULL;
    if (*part) {
        char *at = strchr(part, equals);
        char *job = trimmed(part, at ? at : part);
        if (!at)
            s = leat_error(INVALID_ARGUMENT,
                           "\"%.200s\" is no job with its tasks: wants \"job%chost:port\"", part,
                           equals);
        else if (leat_cluster_tasks(c, job))
            s = leat_error(INVALID_ARGUMENT, "Job \"%.80s\" is there twice", job);
        else
            s = add_list(c, job, at + 1, part + strlen(part), separator);
        free(job);
    }
    free(part);
    return s;
}

leat_status leat_cluster_parse(const char *text, leat_cluster **cluster_out)
{
    LEAT_CHECK_ARG(text);
    /* TensorFlow's grpc_tensorflow_server uses "job|host:port;host:port,job|..." instead. */
    bool tensorflow = strchr(text, '|') != NULL;
    char equals = tensorflow ? '|' : '=', jobs = tensorflow ? ',' : ';';
    leat_cluster *c = leat_cluster_new();
    leat_status s = NULL;
    for (const char *p = text; !s;) {
        const char *stop = p + strcspn(p, (char[]){jobs, 0});
        s = add_part(c, p, stop, equals, tensorflow ? ';' : ',');
        if (!*stop)
            break;
        p = stop + 1;
    }
    if (!s && c->n == 0)
        s = leat_error(INVALID_ARGUMENT, "\"%.200s\" names no job", text);
    if (s) {
        leat_cluster_free(c);
        return leat_status_prefix(s, "Cluster: ");
    }
    *cluster_out = c;
    return NULL;
}

int leat_cluster_jobs(const leat_cluster *c)
{
    if (!LEAT_USABLE(CLUSTER, c))
        return 0;
    return c->n;
}

const char *leat_cluster_job(const leat_cluster *c, int i)
{
    if (!LEAT_USABLE(CLUSTER, c))
        return NULL;
    return i >= 0 && i < c->n ? c->jobs[i].name : NULL;
}

int leat_cluster_tasks(const leat_cluster *c, const char *job)
{
    if (!LEAT_USABLE(CLUSTER, c))
        return 0;
    const leat_job_spec *j = leat_cluster_find(c, job);
    return j && j->n ? j->tasks[j->n - 1].index + 1 : 0;
}

const char *leat_cluster_address(const leat_cluster *c, const char *job, int task)
{
    if (!LEAT_USABLE(CLUSTER, c))
        return NULL;
    const leat_job_spec *j = leat_cluster_find(c, job);
    int at = j ? position(j, task) : 0;
    return j && at < j->n && j->tasks[at].index == task ? j->tasks[at].address : NULL;
}

void leat_cluster_print(const leat_cluster *c, leat_strbuf *out)
{
    enum { LIMIT = 1500 }; /* bytes */
    const size_t begin = out->n;
    for (int i = 0; i < c->n; i++) {
        const leat_job_spec *j = &c->jobs[i];
        int next = -1; /* the index after that of the task before */
        for (int k = 0; k < j->n; k++) {
            const leat_task_spec *t = &j->tasks[k];
            if (out->n - begin > LIMIT) {
                leat_strbuf_puts(out, ",...");
                return;
            }
            if (t->index == next)
                leat_strbuf_printf(out, ",%s", t->address);
            else if (t->index == 0)
                leat_strbuf_printf(out, "%s%s=%s", i ? ";" : "", j->name, t->address);
            else
                leat_strbuf_printf(out, "%s%s[%d]=%s", i || k ? ";" : "", j->name, t->index,
                                   t->address);
            next = t->index + 1;
        }
    }
}
