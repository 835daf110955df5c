/* device_setter.c -- devices for the nodes of a replica: variables and tables go to the ps tasks,
 * in turn or to the least loaded, everything else to the worker.
 *
 * As in TensorFlow's device_setter.py, devices that inner scopes set are kept, and the parts that
 * they do not name are filled in. A ps task is chosen only if the node is then in the ps job.
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "core/alloc.h"
#include "graph/device_name.h"
#include "train/train_int.h"

#include <leat/train.h>

static const char *const standard_ps_ops[] = {
    "Variable",
    "VariableV2",
    "AutoReloadVariable",
    "MutableHashTable",
    "MutableHashTableV2",
    "MutableHashTableOfTensors",
    "MutableHashTableOfTensorsV2",
    "MutableDenseHashTable",
    "MutableDenseHashTableV2",
    "VarHandleOp",
    "BoostedTreesEnsembleResourceHandleOp",
    "BoostedTreesQuantileStreamResourceHandleOp",
    "ResourceConditionalAccumulator",
    NULL,
};

struct leat_device_setter {
    leat_object object;
    leat_device_name ps, worker;
    bool merge;
    char **ps_ops; /* ends with NULL */
    leat_replica_options how;
    int *tasks; /* task indices of the ps job */
    int n_tasks, next;
    double *loads;  /* one for each task */
    char text[160]; /* the result, valid until the next call */
    /* a malformed device string: returned for every node, so that the graph reports it. */
    char *malformed;
};

double leat_byte_size_load(const leat_node *n)
{
    leat_shape shape = leat_shape_unknown();
    leat_dtype t = leat_node_type(n, "dtype");
    if (leat_node_has(n, "shape"))
        shape = leat_node_shape(n, "shape");
    else if (leat_node_outputs(n) == 1)
        shape = leat_out_shape((leat_out){(leat_node *)n, 0});
    if (!t && leat_node_outputs(n) == 1)
        t = leat_out_dtype((leat_out){(leat_node *)n, 0});
    if (!leat_shape_known(&shape))
        return -1;
    return (double)leat_shape_count(&shape) * (double)leat_dtype_size(t);
}

static void parse(leat_device_setter *d, const char *text, leat_device_name *out)
{
    leat_status s = leat_device_name_parse(text, out);
    if (s && !d->malformed)
        d->malformed = leat_xstrdup(text);
    leat_status_free(s);
}

static void copy_ops(leat_device_setter *d, const char *const *ops)
{
    int n = 0;
    while (ops[n])
        n++;
    d->ps_ops = leat_new_array(char *, n + 1);
    for (int i = 0; i < n; i++)
        d->ps_ops[i] = leat_xstrdup(ops[i]);
}

/* The tasks of the ps job that the cluster names; indices may have gaps. */
static void find_tasks(leat_device_setter *d, const leat_replica_options *o)
{
    int n = o->cluster ? leat_cluster_tasks(o->cluster, d->ps.job) : o->ps_tasks;
    int cap = 0;
    for (int i = 0; i < n; i++)
        if (!o->cluster || leat_cluster_address(o->cluster, d->ps.job, i)) {
            leat_grow(d->tasks, d->n_tasks, cap);
            d->tasks[d->n_tasks++] = i;
        }
}

leat_device_setter *leat_replica_device_setter_new(const leat_replica_options *o)
{
    leat_device_setter *d = leat_new_object(leat_device_setter, DEVICE_SETTER);
    d->how = *o;
    d->merge = !o->no_merge;
    parse(d, o->ps_device ? o->ps_device : "/job:ps", &d->ps);
    parse(d, o->worker_device ? o->worker_device : "/job:worker", &d->worker);
    find_tasks(d, o);
    if (d->n_tasks == 0 && !d->malformed) {
        leat_device_setter_free(d);
        return NULL;
    }
    bool no_ps = o->ps_device && !*o->ps_device;
    copy_ops(d, no_ps ? (const char *const[]){NULL} : o->ps_ops ? o->ps_ops : standard_ps_ops);
    d->loads = leat_new_array(double, d->n_tasks + 1);
    d->how.cluster = NULL;
    return d;
}

leat_device_setter *leat_replica_device_setter_for(int task, const leat_replica_options *o)
{
    leat_replica_options with = *o;
    char device[64];
    snprintf(device, sizeof(device), "/job:worker/task:%d", task);
    if (!with.worker_device)
        with.worker_device = device;
    return leat_replica_device_setter_new(&with);
}

void leat_device_setter_free(leat_device_setter *d)
{
    if (!d)
        return;
    if (!LEAT_USABLE(DEVICE_SETTER, d))
        return;
    for (int i = 0; d->ps_ops && d->ps_ops[i]; i++)
        free(d->ps_ops[i]);
    free(d->ps_ops);
    free(d->tasks);
    free(d->loads);
    free(d->malformed);
    leat_object_free(&d->object);
}

static bool is_ps_op(const leat_device_setter *d, const char *op)
{
    for (int i = 0; d->ps_ops[i]; i++)
        if (strcmp(d->ps_ops[i], op) == 0)
            return true;
    return false;
}

static int least_loaded(leat_device_setter *d, const leat_node *n)
{
    int at = 0;
    for (int i = 1; i < d->n_tasks; i++)
        if (d->loads[i] < d->loads[at])
            at = i;
    double load = d->how.load ? d->how.load(n) : leat_byte_size_load(n);
    if (load < 0)
        leat_graph_fail(leat_node_graph(n), n->at,
                        leat_error(INVALID_ARGUMENT,
                                   "Cannot balance '%s' (%s) by its size: its shape is not fully "
                                   "defined",
                                   leat_node_name(n), leat_node_op(n)));
    d->loads[at] += load > 0 ? load : 0;
    return d->tasks[at];
}

static int choose(leat_device_setter *d, const leat_node *n)
{
    if (d->how.choose)
        return d->how.choose(d->how.choose_arg, n);
    if (d->how.strategy == LEAT_PS_GREEDY)
        return least_loaded(d, n);
    int task = d->tasks[d->next];
    d->next = (d->next + 1) % d->n_tasks;
    return task;
}

const char *leat_device_setter_fn(void *setter, const leat_node *n)
{
    leat_device_setter *d = setter;
    const char *asked = leat_node_device(n);
    leat_device_name current;
    if (d->malformed)
        return d->malformed;
    if (!d->merge && *asked)
        return NULL;
    leat_status s = leat_device_name_parse(asked, &current);
    if (s) {
        leat_status_free(s);
        return NULL; /* reported by the scope that set it */
    }
    leat_device_name outer = d->worker;
    if (is_ps_op(d, leat_node_op(n))) {
        outer = d->ps;
        if (outer.job[0] && (!current.job[0] || strcmp(current.job, outer.job) == 0))
            outer.task = choose(d, n);
    }
    outer = leat_device_name_merge(&current, &outer);
    return leat_device_name_text(&outer, d->text, sizeof(d->text));
}

leat_setter_scope leat_device_setter_enter(leat_graph *g, leat_device_setter *setter)
{
    bool usable = LEAT_USABLE(GRAPH, g) && (!setter || LEAT_USABLE(DEVICE_SETTER, setter));
    if (!usable)
        return (leat_setter_scope){0};
    if (setter)
        leat_device_fn_enter(g, leat_device_setter_fn, setter);
    return (leat_setter_scope){setter, true};
}

void leat_device_setter_leave(leat_graph *g, leat_setter_scope *scope)
{
    if (scope->setter)
        leat_device_leave(g);
    leat_device_setter_free(scope->setter);
    *scope = (leat_setter_scope){0};
}
