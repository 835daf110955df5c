/* tf_config.c -- a cluster from the environment variable TF_CONFIG:
 *
 *     {"cluster": {"ps": ["h:2222"], "worker": ["h:2223", "h:2224"]},
 *      "task": {"type": "worker", "index": 1}}
 *
 * Kubeflow's elastic jobs write "sparseCluster" instead: a worker's has the worker itself and all
 * ps tasks, a ps task's has that task alone, as the only entry of its list, whatever its index is.
 */
#include "cluster_spec.h"

#include <errno.h>
#include <limits.h>
#include <stdlib.h>
#include <string.h>

#include "core/json.h"

#define AT(v) (v)->line, (v)->column

/* A whole number, or one in quotes, as Python's int() takes both. */
static bool whole(const char *text, int *out)
{
    char *end;
    errno = 0;
    long v = strtol(text, &end, 10);
    if (end == text || *end || errno || v < 0 || v > INT_MAX)
        return false;
    *out = (int)v;
    return true;
}

static leat_status add_task(leat_cluster *c, const leat_json *job, int index, const leat_json *v)
{
    LEAT_REQUIRE(v->kind == LEAT_JSON_STRING, INVALID_ARGUMENT,
                 "line %d, column %d: task %d of job \"%.80s\" wants an address, got %s", AT(v),
                 index, job->key, leat_json_kind_name(v));
    return leat_status_prefix(leat_cluster_set(c, job->key, index, v->text),
                              "line %d, column %d: ", AT(v));
}

/* self: the index of the only entry of a list, -1 if lists count from 0. */
static leat_status add_job(leat_cluster *c, const leat_json *job, int self)
{
    if (job->kind == LEAT_JSON_NULL)
        return NULL;
    LEAT_REQUIRE(job->kind == LEAT_JSON_LIST || job->kind == LEAT_JSON_OBJECT, INVALID_ARGUMENT,
                 "line %d, column %d: The tasks for job \"%.80s\" must be a list or a dictionary "
                 "from integers to strings, got %s",
                 AT(job), job->key, leat_json_kind_name(job));
    LEAT_TRY(
        leat_status_prefix(leat_cluster_add_job(c, job->key), "line %d, column %d: ", AT(job)));
    int index = self >= 0 && job->n == 1 ? self : 0;
    for (const leat_json *v = job->first; v; v = v->next) {
        LEAT_REQUIRE(job->kind == LEAT_JSON_LIST || whole(v->key, &index), INVALID_ARGUMENT,
                     "line %d, column %d: \"%.80s\" is no task index of job \"%.80s\"", AT(v),
                     v->key, job->key);
        LEAT_TRY(add_task(c, job, index++, v));
    }
    return NULL;
}

static leat_status read_task(const leat_json *task, char job_out[64], int *task_out)
{
    job_out[0] = 0;
    *task_out = -1;
    if (!task || task->kind == LEAT_JSON_NULL)
        return NULL;
    LEAT_REQUIRE(task->kind == LEAT_JSON_OBJECT, INVALID_ARGUMENT,
                 "line %d, column %d: \"task\" wants an object with \"type\" and \"index\", got %s",
                 AT(task), leat_json_kind_name(task));
    const leat_json *type = leat_json_get(task, "type"), *index = leat_json_get(task, "index");
    if (!type && !index)
        return NULL;
    LEAT_REQUIRE(type && type->kind == LEAT_JSON_STRING && strlen(type->text) <= LEAT_JOB_NAME_MAX,
                 INVALID_ARGUMENT,
                 "line %d, column %d: \"task\" wants the name of a job as its \"type\", got %s",
                 AT(type ? type : task), leat_json_kind_name(type));
    LEAT_REQUIRE(index && (index->kind == LEAT_JSON_NUMBER || index->kind == LEAT_JSON_STRING) &&
                     whole(index->text, task_out),
                 INVALID_ARGUMENT,
                 "line %d, column %d: \"task\" wants a whole number from 0 as its \"index\", got "
                 "%s",
                 AT(index ? index : task),
                 index && index->text ? index->text : leat_json_kind_name(index));
    memcpy(job_out, type->text, strlen(type->text) + 1);
    return NULL;
}

/* The task must be one of the cluster's. An evaluator never is; a task without a type gets its job
 * from flags. */
static leat_status check_task(const leat_cluster *c, const char *job, int task)
{
    if (!*job || strcmp(job, "evaluator") == 0)
        return NULL;
    LEAT_REQUIRE(leat_cluster_tasks(c, job), INVALID_ARGUMENT,
                 "\"task\" is of type \"%s\", which is no job of \"cluster\"", job);
    LEAT_REQUIRE(leat_cluster_address(c, job, task), INVALID_ARGUMENT,
                 "\"task\" has index %d, but job \"%s\" has no such task (%d in all)", task, job,
                 leat_cluster_find(c, job)->n);
    return NULL;
}

static leat_status read_config(const leat_json *config, leat_cluster *c, char job_out[64],
                               int *task_out)
{
    LEAT_REQUIRE(config->kind == LEAT_JSON_OBJECT, INVALID_ARGUMENT, "wants an object, got %s",
                 leat_json_kind_name(config));
    const leat_json *dense = leat_json_get(config, "cluster"),
                    *sparse = leat_json_get(config, "sparseCluster");
    const leat_json *jobs = dense && dense->n ? dense : sparse ? sparse : dense;
    LEAT_REQUIRE(!jobs || jobs->kind == LEAT_JSON_OBJECT || jobs->kind == LEAT_JSON_NULL,
                 INVALID_ARGUMENT, "line %d, column %d: \"%s\" wants an object of jobs, got %s",
                 AT(jobs), jobs->key, leat_json_kind_name(jobs));
    LEAT_TRY(read_task(leat_json_get(config, "task"), job_out, task_out));
    for (const leat_json *job = jobs ? jobs->first : NULL; job; job = job->next) {
        /* An evaluator serves no calls: a master that waited for it would wait for ever. */
        if (strcmp(job->key, "evaluator") == 0)
            continue;
        bool self = jobs == sparse && strcmp(job->key, "ps") == 0 && strcmp(job_out, "ps") == 0;
        LEAT_TRY(add_job(c, job, self ? *task_out : -1));
    }
    return check_task(c, job_out, *task_out);
}

leat_status leat_cluster_from_tf_config(const char *text, leat_cluster **cluster_out,
                                        char job_out[64], int *task_out)
{
    leat_arena arena;
    leat_arena_init(&arena);
    leat_cluster *c = leat_cluster_new();
    const leat_json *config = NULL;
    char job[64];
    int task;
    leat_status s = leat_json_read(&arena, text, &config);
    if (!s)
        s = read_config(config, c, job, &task);
    leat_arena_release(&arena);
    if (s) {
        leat_cluster_free(c);
        return leat_status_prefix(s, "TF_CONFIG: ");
    }
    memcpy(job_out, job, sizeof(job));
    *task_out = task;
    *cluster_out = c;
    return NULL;
}
