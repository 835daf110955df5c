/* sync_replicas.c -- an optimizer that wraps another one: gradients of several replicas are
 * averaged in accumulators and applied once. The nodes are those of TensorFlow's
 * SyncReplicasOptimizer; sync.h has the protocol. */
#include <stdlib.h>
#include <string.h>

#include "core/alloc.h"
#include "core/log.h"
#include "graph/device_name.h"
#include "train/optimizer.h"
#include "train/sync.h"

typedef struct sync_optimizer {
    leat_optimizer base;
    leat_optimizer *inner;
    leat_sync_options o;
} sync_optimizer;

leat_sync *leat_sync_of(const leat_graph *g)
{
    return *(leat_sync **)leat_graph_extra((leat_graph *)g, "sync replicas", sizeof(leat_sync *));
}

static leat_var_grad *compute(leat_optimizer *opt, leat_out loss, int *n_out,
                              const leat_minimize_options *o)
{
    return leat_compute_gradients_at((leat_loc){0}, ((sync_optimizer *)opt)->inner, loss, n_out, o);
}

/* ---- One variable's accumulator ---- */

/* An attribute with the number of the replica whose gradients a node applies, for parameter servers
 * that count dropped gradients; TensorFlow's ignore it. */
static leat_arg replica_attr(const leat_sync *y)
{
    return y->lease_secs > 0 && y->replica >= 0 ? leat_attr_int("_replica", y->replica)
                                                : (leat_arg){.kind = LEAT_ARG_SKIP};
}

static leat_out number_required(leat_sync *y, const char *scope)
{
    leat_name_scope_enter(y->g, scope);
    leat_out n = leat_py_number(y->g, LEAT_INT32, y->aggregate, "num_required");
    y->required[y->n] = n;
    return n;
}

/* Gives the mean that the round takes; *push is the op by which a worker adds its gradient. */
static leat_grad_value accumulate_dense(leat_sync *y, const leat_var_grad *v, leat_out step,
                                        leat_out *push)
{
    leat_graph *g = y->g;
    const char *shared =
        leat_arena_printf(&g->arena, "%s:0/grad_accum", leat_variable_name(v->var));
    leat_dtype t = leat_out_dtype(v->grad.value);
    leat_out a =
        LEAT_OP0(g, "ResourceConditionalAccumulator", leat_attr_type("dtype", t),
                 leat_attr_shape("shape", leat_variable_shape(v->var)),
                 leat_attr_string("shared_name", shared), leat_name("conditional_accumulator"));
    *push = LEAT_OP3("ResourceAccumulatorApplyGradient", a, leat_cast(step, LEAT_INT64),
                     v->grad.value, replica_attr(y));
    leat_out n = number_required(y, "ResourceAccumulatorTakeGradient");
    leat_out mean = LEAT_OP2("ResourceAccumulatorTakeGradient", a, n, leat_attr_type("dtype", t),
                             leat_name(leat_name_scope(g)));
    leat_name_scope_leave(g);
    y->accumulators[y->n] = a;
    return (leat_grad_value){.value = mean};
}

static leat_grad_value accumulate_rows(leat_sync *y, const leat_var_grad *v, leat_out step,
                                       leat_out *push)
{
    leat_graph *g = y->g;
    const char *shared =
        leat_arena_printf(&g->arena, "%s:0/grad_accum", leat_variable_name(v->var));
    leat_dtype t = leat_out_dtype(v->grad.value);
    bool shaped = v->grad.dense_shape.node;
    leat_out a =
        LEAT_OP0(g, "SparseConditionalAccumulator", leat_attr_type("dtype", t),
                 leat_attr_shape("shape", leat_shape()), leat_attr_string("shared_name", shared),
                 leat_name("sparse_conditional_accumulator"));
    leat_out local = leat_cast(step, LEAT_INT64), indices = leat_cast(v->grad.indices, LEAT_INT64);
    leat_out shape = shaped ? leat_cast(v->grad.dense_shape, LEAT_INT64)
                            : leat_int_vector_at(LEAT_AT, g, LEAT_INT64, NULL, 0);
    *push = leat_op(g, "SparseAccumulatorApplyGradient", leat_in(a), leat_in(local),
                    leat_in(indices), leat_in(v->grad.value), leat_in(shape),
                    leat_attr_bool("has_known_shape", shaped), replica_attr(y));
    leat_out n = number_required(y, "SparseAccumulatorTakeGradient");
    leat_out mean = LEAT_OP2("SparseAccumulatorTakeGradient", a, n, leat_attr_type("dtype", t),
                             leat_name(leat_name_scope(g)));
    leat_name_scope_leave(g);
    y->accumulators[y->n] = a;
    return (leat_grad_value){
        .value = leat_output(mean, 1), .indices = mean, .dense_shape = leat_output(mean, 2)};
}

/* ---- The parts, in TensorFlow's order ---- */

/* The number of this replica: as given by the user, or the task of the device of its nodes. */
static void find_replica(leat_sync *y, const char *device)
{
    leat_device_name d = LEAT_DEVICE_ANY;
    if (y->replica < 0) {
        leat_status_free(leat_device_name_parse(device, &d));
        y->replica = d.task;
        /* If the chief is a job of its own, its number is the last one. */
        if (strcmp(d.job, "chief") == 0 || strcmp(d.job, "master") == 0)
            y->replica = y->total - 1;
    }
    if (y->replica >= y->total)
        y->replica = -1;
}

/* A variable of this worker: placed where a node without a device is placed. */
static void make_local_step(leat_sync *y)
{
    leat_graph *g = y->g;
    static const char *const collections[] = {LEAT_LOCAL_VARIABLES, NULL};
    leat_variable_spec spec = {.name = "sync_rep_local_step",
                               .dtype = leat_variable_dtype(y->global_step),
                               .options = {.not_trainable = true, .collections = collections}};
    leat_out anchor = leat_no_op(g);
    leat_with_colocate(g, anchor) y->local_step = leat_variable_make(g, &spec);
    y->local_init = leat_done(leat_variable_assign(y->local_step, y->global_step));
    int n;
    if (leat_out_ok(anchor))
        find_replica(y, anchor.node->device);
    leat_out *global = leat_global_variables(g, &n);
    y->ready_for_local_init = leat_report_uninitialized_of(g, global, n);
    free(global);
}

static void accumulate(leat_sync *y, const leat_var_grad *grads, int n, leat_var_grad *means,
                       leat_out *pushes)
{
    leat_out step = leat_variable_value(y->local_step);
    for (int i = 0; i < n && !y->g->status; i++) {
        const leat_var_grad *v = &grads[i];
        means[i].var = v->var;
        if (!v->grad.value.node)
            continue;
        leat_with_device(y->g, leat_variable_ref(v->var).node->device) means[i].grad =
            v->grad.indices.node ? accumulate_rows(y, v, step, &pushes[y->n])
                                 : accumulate_dense(y, v, step, &pushes[y->n]);
        y->n++;
    }
}

leat_out leat_sync_tokens(leat_sync *y, int n)
{
    leat_out op = {0};
    if (n <= 0)
        return leat_done(leat_no_op(y->g, leat_name("no_init_tokens")));
    leat_with_device(y->g, y->device) leat_with_name(y->g, NULL)
    {
        leat_out tokens = {0};
        leat_with_name(y->g, "Fill")
        {
            leat_out dims =
                leat_int_vector_named(LEAT_AT, y->g, LEAT_INT32, (int64_t[]){n}, 1, "dims");
            tokens = leat_fill(dims, y->global_step, leat_name(leat_name_scope(y->g)));
        }
        op = leat_op(y->g, "QueueEnqueueManyV2", leat_in(y->queue), leat_ins(&tokens, 1),
                     leat_name("sync_token_q_EnqueueMany"));
    }
    return leat_done(op);
}

static void make_queue(leat_sync *y)
{
    leat_dtype t = leat_variable_dtype(y->global_step);
    leat_shape scalar = leat_shape();
    y->queue = LEAT_OP0(y->g, "FIFOQueueV2", leat_attr_types("component_types", &t, 1),
                        leat_attr_shapes("shapes", &scalar, 1), leat_attr_int("capacity", -1),
                        leat_attr_string("shared_name", "sync_token_q"), leat_name("sync_token_q"));
}

/* What a worker runs: adds its gradients, then takes a token. */
static leat_out make_step(leat_sync *y, const leat_out *pushes)
{
    leat_graph *g = y->g;
    leat_dtype t = leat_variable_dtype(y->global_step);
    leat_control_enter(g, pushes, y->n);
    leat_out token = LEAT_OP1("QueueDequeueV2", y->queue, leat_attr_types("component_types", &t, 1),
                              leat_name("sync_token_q_Dequeue"));
    leat_control_leave(g);
    return leat_done(leat_variable_assign(y->local_step, token));
}

static void make_round(leat_sync *y, const leat_sync_after *after)
{
    leat_graph *g = y->g;
    int tokens = y->total > y->aggregate ? y->total : y->aggregate;
    leat_with_control(g, after->updated) y->round = leat_sync_tokens(y, tokens);
    if (after->averages)
        leat_with_control(g, y->round) y->round =
            leat_moving_average_apply(after->averages, after->averaged, after->n_averaged);
}

static void make_chief_init(leat_sync *y)
{
    leat_graph *g = y->g;
    leat_out *ops = leat_new_array(leat_out, y->n + 1);
    ops[0] = y->local_init;
    for (int i = 0; i < y->n; i++) {
        leat_out a = y->accumulators[i];
        bool handle = leat_out_dtype(a) == LEAT_RESOURCE;
        leat_with_device(g, a.node->device) ops[i + 1] =
            LEAT_OP2(handle ? "ResourceAccumulatorSetGlobalStep" : "AccumulatorSetGlobalStep", a,
                     leat_cast(y->global_step, LEAT_INT64), leat_name("SetGlobalStep"));
    }
    y->chief_init = leat_done(leat_group_at(LEAT_AT, g, ops, y->n + 1, NULL));
    free(ops);
}

static leat_out build(sync_optimizer *so, leat_sync *y, const leat_var_grad *grads, int n)
{
    leat_graph *g = y->g;
    leat_var_grad *means = leat_new_array(leat_var_grad, n + 1);
    leat_out *pushes = leat_new_array(leat_out, n + 1), train = {g->poison, -1};
    leat_sync_after after = {.averages = so->o.variable_averages,
                             .averaged = so->o.variables_to_average,
                             .n_averaged = so->o.n_variables_to_average};
    make_local_step(y);
    leat_with_name(g, so->base.name)
    {
        accumulate(y, grads, n, means, pushes);
        if (!g->status)
            leat_with_device(g, y->device) leat_with_name(g, NULL)
            {
                after.updated = leat_apply_gradients_at(
                    (leat_loc){0}, so->inner, means, n,
                    &(leat_minimize_options){.global_step = y->global_step});
                make_queue(y);
                if (!g->status)
                    train = make_step(y, pushes);
                if (!g->status)
                    make_round(y, &after);
            }
        if (!g->status)
            make_chief_init(y);
        if (!g->status && y->lease_secs > 0)
            leat_sync_add_leases(y, &after);
    }
    free(means);
    free(pushes);
    return train;
}

static int total_of(const sync_optimizer *so)
{
    return (int)leat_given_int_or(&so->o.given, "total_num_replicas", so->o.total_num_replicas,
                                  so->o.replicas_to_aggregate);
}

static leat_status check(const sync_optimizer *so, const leat_minimize_options *o)
{
    LEAT_REQUIRE(o->global_step.node && leat_variable_ref(o->global_step).node, INVALID_ARGUMENT,
                 "Global step is required to check staleness");
    LEAT_TRY(leat_require_given(&so->o.given, "leat_sync_replicas", "replicas_to_aggregate",
                                so->o.replicas_to_aggregate));
    LEAT_REQUIRE(so->o.replicas_to_aggregate > 0, INVALID_ARGUMENT,
                 "replicas_to_aggregate must be positive, but was %d", so->o.replicas_to_aggregate);
    LEAT_REQUIRE(total_of(so) > 0, INVALID_ARGUMENT,
                 "total_num_replicas must be positive, but was %d", total_of(so));
    return NULL;
}

static leat_out apply(leat_optimizer *opt, const leat_var_grad *grads, int n,
                      const leat_minimize_options *o)
{
    sync_optimizer *so = (sync_optimizer *)opt;
    leat_graph *g = leat_graph_of(grads[0].var);
    leat_status s = check(so, o);
    if (s)
        return leat_done(leat_graph_fail(g, (leat_loc){0}, s));
    leat_sync **head = leat_graph_extra(g, "sync replicas", sizeof(leat_sync *));
    leat_sync *y = leat_arena_new(&g->arena, leat_sync);
    y->g = g;
    y->aggregate = so->o.replicas_to_aggregate;
    y->total = total_of(so);
    y->lease_secs = leat_given_or(&so->o.given, "lease_secs", so->o.lease_secs, 10);
    y->replica = (int)leat_given_int_or(&so->o.given, "replica", so->o.replica, -1);
    y->global_step = leat_variable_value(o->global_step);
    y->device = leat_variable_ref(o->global_step).node->device;
    y->accumulators = leat_arena_array(&g->arena, leat_out, n);
    y->required = leat_arena_array(&g->arena, leat_out, n);
    leat_out train = build(so, y, grads, n);
    if (g->status)
        return (leat_out){g->poison, -1};
    y->next = *head;
    *head = y;
    LEAT_LOG(INFO, "SyncReplicasV2: replicas_to_aggregate=%d; total_num_replicas=%d", y->aggregate,
             y->total);
    return train;
}

static void release(leat_optimizer *opt)
{
    leat_optimizer_free(((sync_optimizer *)opt)->inner);
}

static const leat_optimizer_ops ops = {
    .constructor = "leat_sync_replicas", .compute = compute, .apply = apply, .free = release};

leat_optimizer *leat_sync_replicas_new(leat_optimizer *inner, const leat_sync_options *o)
{
    sync_optimizer *so =
        leat_optimizer_new(sizeof(*so), &ops, &o->given, o->name, "sync_replicas", o->use_locking);
    so->inner = inner;
    so->o = *o;
    so->base.mistake = leat_object_check(inner, LEAT_OBJECT_OPTIMIZER, "leat_sync_replicas");
    return &so->base;
}

int64_t leat_sync_dropped(const leat_graph *g)
{
    if (!LEAT_USABLE(GRAPH, g))
        return 0;
    leat_sync *y = leat_sync_of(g);
    return y ? atomic_load(&y->n_dropped) : 0;
}

int leat_sync_quorum(const leat_graph *g)
{
    if (!LEAT_USABLE(GRAPH, g))
        return 0;
    leat_sync *y = leat_sync_of(g);
    return y ? atomic_load(&y->quorum) : 0;
}
