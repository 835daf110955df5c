/* stages.c -- a net in stages, each on a device, trained as a pipeline over micro-batches.
 *
 * 1. The nodes of stage s for micro-batch m wait, by control edges, for the end of micro-batch
 *    m - w at that stage: for the stage's gradients by its variables, added to those of the
 *    micro-batches before, and by its inputs. w is what may be in flight at stage s: `in_flight` at
 *    the first stage, one fewer at each later one, and at least one. So each stage soon does one
 *    forward pass and one backward pass in turn, which is known as 1F1B.
 * 2. A variable's gradients are added from the first micro-batch to the last, on the stage's
 *    device, whatever is in flight: ((g0 + g1) + g2) ...; the sum is divided by their number.
 * 3. Micro-batch m is built, with its gradients, before micro-batch m + 1, since the latter waits
 *    for nodes of the former.
 */
#include <leat/parallel.h>

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "core/alloc.h"
#include "graph/graph_int.h"
#include "train/train_int.h"

enum { MOST_BATCH = 16, MOST_OUT = 64, MOST_MICRO = 65536 };

/* One stage of one micro-batch. */
typedef struct cell {
    leat_out out[MOST_OUT];
    leat_out done; /* completes when its gradients are there */
} cell;

typedef struct gradient {
    leat_out sum;               /* dense: of the micro-batches so far */
    leat_out *values, *indices; /* rows: of each micro-batch so far */
    leat_out dense_shape;
    leat_out part; /* what the newest micro-batch has added */
    int n_rows;
    int stage; /* the first one that uses the variable; -1: none does */
} gradient;

typedef struct pipeline {
    leat_graph *g;
    leat_loc at, outer; /* where the caller is, for the nodes that no stage makes */
    const leat_stage *stages;
    int n_stages, n_micro, in_flight;
    leat_out *parts; /* of the batch: tensor b of micro-batch m at b * n_micro + m */
    int n_batch;
    cell *cells; /* of stage s and micro-batch m at m * n_stages + s */
    const leat_variable_scope *scope;
    leat_out *vars;
    gradient *grads;
    int n_vars;
} pipeline;

static cell *cell_of(const pipeline *p, int m, int s)
{
    return &p->cells[(size_t)m * (size_t)p->n_stages + (size_t)s];
}

static int outs_of(const leat_stage *s)
{
    return s->n_out ? s->n_out : 1;
}

static leat_status check(const leat_stage *stages, int n_stages, int n_batch,
                         const leat_pipeline_options *o)
{
    LEAT_REQUIRE(n_stages > 0 && stages, INVALID_ARGUMENT, "A pipeline needs at least one stage");
    LEAT_REQUIRE(n_batch <= MOST_BATCH, INVALID_ARGUMENT,
                 "A pipeline's batch of %d tensors: at most %d", n_batch, MOST_BATCH);
    LEAT_REQUIRE(o->micro_batches >= 0 && o->in_flight >= 0, INVALID_ARGUMENT,
                 "A pipeline with %d micro-batches, %d in flight: wants numbers above 0",
                 o->micro_batches, o->in_flight);
    LEAT_REQUIRE(o->micro_batches <= MOST_MICRO, INVALID_ARGUMENT,
                 "A pipeline with %d micro-batches: at most %d", o->micro_batches, MOST_MICRO);
    LEAT_REQUIRE(o->n_vars >= 0, INVALID_ARGUMENT, "A pipeline's n_vars is %d", o->n_vars);
    for (int i = 0; i < n_stages; i++) {
        LEAT_REQUIRE(stages[i].build, INVALID_ARGUMENT, "Stage %d has no function that builds it",
                     i);
        LEAT_REQUIRE(stages[i].n_out >= 0 && stages[i].n_out <= MOST_OUT, INVALID_ARGUMENT,
                     "Stage %d gives %d tensors: wants 1 to %d", i, stages[i].n_out, MOST_OUT);
    }
    LEAT_REQUIRE(outs_of(&stages[n_stages - 1]) == 1, INVALID_ARGUMENT,
                 "The last stage gives %d tensors; it must give one, the loss",
                 stages[n_stages - 1].n_out);
    return NULL;
}

/* ---- The batch ---- */

static leat_status check_batch(const pipeline *p, leat_out x)
{
    LEAT_REQUIRE(leat_out_ok(x) && x.node->graph == p->g, INVALID_ARGUMENT,
                 "A tensor of a pipeline's batch is no tensor of the graph of the others");
    const leat_shape *s = &x.node->out_shapes[x.index];
    LEAT_REQUIRE(s->rank != 0, INVALID_ARGUMENT,
                 "%s is a scalar; a batch has its examples along dimension 0", x.node->name);
    LEAT_REQUIRE(s->rank < 0 || s->dim[0] < 0 || s->dim[0] % p->n_micro == 0, INVALID_ARGUMENT,
                 "%s has %lld examples, which %d micro-batches do not divide", x.node->name,
                 (long long)s->dim[0], p->n_micro);
    return NULL;
}

static leat_status cut_batch(pipeline *p, const leat_out *batch)
{
    p->parts = leat_new_array(leat_out, p->n_batch * p->n_micro + 1);
    for (int b = 0; b < p->n_batch; b++) {
        LEAT_TRY(check_batch(p, batch[b]));
        if (p->n_micro == 1) {
            p->parts[b] = batch[b];
            continue;
        }
        leat_out axis = leat_scalar(p->g, LEAT_INT32, 0);
        leat_out split = leat_split(axis, batch[b], p->n_micro);
        for (int m = 0; m < p->n_micro; m++)
            p->parts[b * p->n_micro + m] = leat_output(split, m);
    }
    return NULL;
}

/* ---- Forward ---- */

/* A variable belongs to the first stage with a node that reads it. */
static void find_users(pipeline *p, int s, int first_node)
{
    for (int i = first_node; i < p->g->n_nodes; i++) {
        const leat_node *n = p->g->nodes[i];
        for (int k = 0; k < n->n_in; k++) {
            const leat_node *self = leat_variable_ref(n->in[k]).node;
            for (int v = 0; self && v < p->n_vars; v++)
                if (p->vars[v].node == self && p->grads[v].stage < 0)
                    p->grads[v].stage = s;
        }
    }
}

/* What the stage's nodes for this micro-batch wait for; node NULL: nothing. */
static leat_out awaited(const pipeline *p, int m, int s)
{
    const int w = p->in_flight - s > 1 ? p->in_flight - s : 1;
    return m >= w ? cell_of(p, m - w, s)->done : (leat_out){0};
}

static leat_status check_outs(const pipeline *p, int s, const cell *c)
{
    for (int i = 0; i < outs_of(&p->stages[s]); i++) {
        LEAT_REQUIRE(leat_out_ok(c->out[i]) && c->out[i].index >= 0, INVALID_ARGUMENT,
                     "Stage %d has not given tensor %d of %d", s, i, outs_of(&p->stages[s]));
        LEAT_REQUIRE(c->out[i].node->graph == p->g, INVALID_ARGUMENT,
                     "Stage %d has given a tensor of another graph, %s", s, c->out[i].node->name);
    }
    if (s < p->n_stages - 1)
        return NULL;
    const leat_shape *shape = &c->out[0].node->out_shapes[c->out[0].index];
    LEAT_REQUIRE(shape->rank <= 0, INVALID_ARGUMENT,
                 "The last stage gives the loss, a scalar; %s has shape %s", c->out[0].node->name,
                 leat_shape_show(shape).s);
    return NULL;
}

static leat_status build_stage(pipeline *p, int m, int s)
{
    const leat_stage *stage = &p->stages[s];
    leat_graph *g = p->g;
    cell *c = cell_of(p, m, s);
    char name[64];
    leat_out batch[MOST_BATCH] = {{0}}, wait = awaited(p, m, s);
    for (int b = 0; b < p->n_batch; b++)
        batch[b] = p->parts[b * p->n_micro + m];
    snprintf(name, sizeof(name), "micro_%d/stage_%d", m, s);
    const bool device = stage->device && stage->device[0];
    if (device)
        leat_device_enter(g, stage->device);
    if (wait.node)
        leat_control_enter(g, &wait, 1);
    leat_with_name(g, name)
        leat_with_variable_scope(g, NULL, .scope = p->scope, .reuse = LEAT_AUTO_REUSE)
    {
        leat_at_leave(g, p->outer);
        stage->build(g, stage->arg, batch, s ? cell_of(p, m, s - 1)->out : NULL, c->out);
        leat_at_enter(g, p->at);
    }
    if (wait.node)
        leat_control_leave(g);
    if (device)
        leat_device_leave(g);
    return g->status ? NULL : check_outs(p, s, c);
}

/* ---- Backward ---- */

static leat_status find_vars(pipeline *p, const leat_pipeline_options *o)
{
    int n = o->n_vars;
    p->vars = o->vars ? leat_new_array(leat_out, n + 1) : leat_trainable_variables(p->g, &n);
    p->n_vars = n;
    p->grads = leat_new_array(gradient, n + 1);
    for (int i = 0; i < n; i++) {
        leat_out v = o->vars ? o->vars[i] : p->vars[i];
        p->vars[i] = leat_variable_ref(v);
        p->grads[i].stage = -1;
        LEAT_REQUIRE(p->vars[i].node, INVALID_ARGUMENT,
                     "Trying to optimize %s, which is no variable",
                     v.node ? v.node->name : "nothing");
    }
    LEAT_REQUIRE(n > 0, INVALID_ARGUMENT, "No variables to optimize.");
    return NULL;
}

static void add_rows(pipeline *p, gradient *a, const leat_grad_value *v)
{
    if (!a->values) {
        a->values = leat_new_array(leat_out, p->n_micro);
        a->indices = leat_new_array(leat_out, p->n_micro);
        a->dense_shape = v->dense_shape;
    }
    a->values[a->n_rows] = a->part = v->value;
    a->indices[a->n_rows++] = v->indices;
}

/* Adds a micro-batch's gradient by a variable, on the device where it was computed. */
static void add_gradient(pipeline *p, gradient *a, const leat_grad_value *v)
{
    a->part = (leat_out){0};
    if (!v->value.node)
        return;
    const char *device = v->value.node->device;
    if (v->indices.node && !a->sum.node) {
        add_rows(p, a, v);
        return;
    }
    leat_with_device(p->g, device)
    {
        leat_out dense = leat_grad_dense(*v);
        a->sum = a->part = a->sum.node ? leat_add(a->sum, dense) : dense;
    }
}

/* A node that completes when micro-batch m has its gradients at stage s: by the variables that
 * belong to the stage, and by what the stage before gave. */
static leat_out done_of(pipeline *p, int s, const leat_grad_value *by_inputs, int n)
{
    leat_out *all = leat_new_array(leat_out, n + p->n_vars + 1), done = {0};
    int k = 0;
    for (int i = 0; i < n; i++)
        if (by_inputs[i].value.node)
            all[k++] = by_inputs[i].value;
    for (int v = 0; v < p->n_vars; v++)
        if (p->grads[v].stage == s && p->grads[v].part.node)
            all[k++] = p->grads[v].part;
    const bool device = p->stages[s].device && p->stages[s].device[0];
    if (device)
        leat_device_enter(p->g, p->stages[s].device);
    leat_control_enter(p->g, all, k);
    if (k)
        done = leat_done(leat_no_op(p->g, leat_name("done")));
    leat_control_leave(p->g);
    if (device)
        leat_device_leave(p->g);
    free(all);
    return done;
}

/* The gradients of the newest micro-batch: by all variables, and by what each stage gives the next
 * one. */
static leat_status add_backward(pipeline *p, int m)
{
    int n = p->n_vars;
    for (int s = 0; s + 1 < p->n_stages; s++)
        n += outs_of(&p->stages[s]);
    leat_out *xs = leat_new_array(leat_out, n + 1);
    leat_grad_value *v = leat_new_array(leat_grad_value, n + 1);
    memcpy(xs, p->vars, sizeof(*xs) * (size_t)p->n_vars);
    n = p->n_vars;
    for (int s = 0; s + 1 < p->n_stages; s++)
        for (int i = 0; i < outs_of(&p->stages[s]); i++)
            xs[n++] = cell_of(p, m, s)->out[i];
    char name[64];
    snprintf(name, sizeof(name), "micro_%d/gradients", m);
    leat_status status = leat_gradients(&cell_of(p, m, p->n_stages - 1)->out[0], 1, xs, n, v,
                                        .gate = true, .colocate = true, .name = name);
    if (!status)
        leat_with_name(p->g, name)
        {
            for (int i = 0; i < p->n_vars; i++)
                add_gradient(p, &p->grads[i], &v[i]);
            const leat_grad_value *inputs = v + p->n_vars;
            for (int s = 0; s < p->n_stages; s++) {
                int count = s ? outs_of(&p->stages[s - 1]) : 0;
                cell_of(p, m, s)->done = done_of(p, s, inputs, count);
                inputs += count;
            }
        }
    free(xs);
    free(v);
    return status;
}

/* ---- The results ---- */

static leat_out divided(const pipeline *p, leat_out x)
{
    if (p->n_micro == 1 || !x.node)
        return x;
    leat_out y = {0};
    leat_with_device(p->g, x.node->device) y = leat_py_right("Mul", "mean", x, 1.0 / p->n_micro);
    return y;
}

static leat_grad_value mean_gradient(const pipeline *p, const gradient *a)
{
    leat_grad_value y = {0};
    if (!a->n_rows) {
        y.value = divided(p, a->sum);
        return y;
    }
    leat_with_device(p->g, a->values[0].node->device)
    {
        leat_out axis = leat_scalar(p->g, LEAT_INT32, 0);
        bool one = a->n_rows == 1;
        y.value = divided(p, one ? a->values[0] : leat_concat(a->values, a->n_rows, axis));
        y.indices = one ? a->indices[0] : leat_concat(a->indices, a->n_rows, axis);
        y.dense_shape = a->dense_shape;
    }
    return y;
}

static leat_out mean_loss(const pipeline *p)
{
    leat_out *all = leat_new_array(leat_out, p->n_micro), y = {0};
    for (int m = 0; m < p->n_micro; m++)
        all[m] = cell_of(p, m, p->n_stages - 1)->out[0];
    leat_with_device(p->g, all[0].node->device) y =
        p->n_micro == 1 ? all[0] : divided(p, leat_add_n(all, p->n_micro));
    free(all);
    return y;
}

static leat_status build_micro(pipeline *p, int m, const leat_pipeline_options *o)
{
    int *first = leat_new_array(int, p->n_stages + 1);
    leat_status status = NULL;
    for (int s = 0; s < p->n_stages && !status && !p->g->status; s++) {
        first[s] = p->g->n_nodes;
        status = build_stage(p, m, s);
    }
    if (!status && !p->g->status && m == 0)
        status = find_vars(p, o); /* the stages have made their variables */
    for (int s = 0; s < p->n_stages && !status && !p->g->status && m == 0; s++)
        find_users(p, s, first[s]);
    if (!status && !p->g->status)
        status = add_backward(p, m);
    free(first);
    return status;
}

static leat_status build(pipeline *p, const leat_out *batch, const leat_pipeline_options *o,
                         leat_out *loss_out)
{
    leat_status status = cut_batch(p, batch);
    for (int m = 0; m < p->n_micro && !status && !p->g->status; m++)
        status = build_micro(p, m, o);
    if (!status && !p->g->status)
        *loss_out = mean_loss(p);
    return status;
}

static leat_var_grad *results(const pipeline *p, int *n_out)
{
    leat_var_grad *v = leat_new_array(leat_var_grad, p->n_vars + 1);
    for (int i = 0; i < p->n_vars; i++)
        v[i] = (leat_var_grad){p->vars[i], mean_gradient(p, &p->grads[i])};
    *n_out = p->n_vars;
    return v;
}

static void release(pipeline *p)
{
    for (int i = 0; p->grads && i < p->n_vars; i++) {
        free(p->grads[i].values);
        free(p->grads[i].indices);
    }
    free(p->grads);
    free(p->vars);
    free(p->cells);
    free(p->parts);
}

leat_var_grad *leat_pipeline_gradients_at(leat_loc at, const leat_stage *stages, int n_stages,
                                          const leat_out *batch, int n_batch,
                                          const leat_pipeline_options *o, leat_out *loss_out,
                                          int *n_out)
{
    leat_graph *g = n_batch > 0 && batch && leat_out_ok(batch[0]) ? batch[0].node->graph : NULL;
    leat_var_grad *v = NULL;
    *n_out = 0;
    *loss_out = (leat_out){g ? g->poison : NULL, -1};
    if (!g || g->status)
        return leat_new_array(leat_var_grad, 1);
    pipeline p = {.g = g,
                  .at = at,
                  .outer = leat_at_enter(g, at),
                  .stages = stages,
                  .n_stages = n_stages,
                  .n_batch = n_batch};
    leat_status s = check(stages, n_stages, n_batch, o);
    if (!s) {
        p.n_micro = o->micro_batches ? o->micro_batches : 1;
        p.in_flight = o->in_flight ? o->in_flight : n_stages;
        p.scope = leat_variable_scope_current(g);
        s = leat_try_array((int64_t)p.n_micro * n_stages, &p.cells);
    }
    if (!s) {
        leat_with_name(g, o->name ? o->name : "pipeline")
        {
            s = build(&p, batch, o, loss_out);
            if (!s && !g->status)
                v = results(&p, n_out);
        }
    }
    if (s)
        leat_graph_fail(g, at, s);
    leat_at_leave(g, p.outer);
    release(&p);
    return v ? v : leat_new_array(leat_var_grad, 1);
}
