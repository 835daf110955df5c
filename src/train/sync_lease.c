/* sync_lease.c -- the nodes of synchronous replicas that TensorFlow does not have: leases, by which
 * the chief knows which replicas are alive, rounds with fewer tokens, and the number of dropped
 * gradients.
 *
 * The lease is a variable beside the global step, in no collection: it is neither saved nor waited
 * for, so a chief that runs TensorFlow ignores it, and the first replica that starts initialises
 * it. TensorFlow's workers have no lease, and always count as present.
 */
#include "train/optimizer.h"
#include "train/sync.h"

static leat_out one_index(leat_sync *y)
{
    return leat_int_vector_named(LEAT_AT, y->g, LEAT_INT32, (int64_t[]){y->replica}, 1, "replica");
}

static leat_out one_value(leat_sync *y, int64_t v, const char *name)
{
    return leat_int_vector_named(LEAT_AT, y->g, LEAT_INT64, &v, 1, name);
}

static void make_lease(leat_sync *y)
{
    leat_graph *g = y->g;
    leat_shape shape = leat_shape(y->total);
    y->lease = LEAT_OP0(g, "VariableV2", leat_attr_type("dtype", LEAT_INT64),
                        leat_attr_shape("shape", shape),
                        leat_attr_string("shared_name", "sync_replicas/lease"), leat_name("lease"));
    y->lease_exists = LEAT_OP1("IsVariableInitialized", y->lease, leat_name("lease/exists"));
    leat_out zeros = leat_full_named_at(LEAT_AT, g, LEAT_INT64, shape, 0, "lease/zeros");
    y->lease_init = leat_done(leat_assign(y->lease, zeros, leat_name("lease/Assign")));
    if (y->replica < 0)
        return;
    leat_out at = one_index(y);
    leat_arg lock = leat_attr_bool("use_locking", true);
    y->join = leat_done(leat_scatter_update(y->lease, at, one_value(y, 1, "lease/first"), lock,
                                            leat_name("lease/join")));
    y->beat = leat_done(leat_scatter_add(y->lease, at, one_value(y, 1, "lease/one"), lock,
                                         leat_name("lease/beat")));
    y->leave = leat_done(leat_scatter_update(y->lease, at, one_value(y, -1, "lease/gone"), lock,
                                             leat_name("lease/leave")));
}

/* `count`, a constant that is fed, has no control inputs; the tokens have those that are open. */
static leat_out tokens(leat_sync *y, leat_out count)
{
    leat_out t = leat_fill(count, y->global_step, leat_name("tokens"));
    return leat_done(leat_op(y->g, "QueueEnqueueManyV2", leat_in(y->queue), leat_ins(&t, 1),
                             leat_name("give_tokens")));
}

static void make_few_round(leat_sync *y, const leat_sync_after *after)
{
    leat_graph *g = y->g;
    y->few = leat_int_vector_named(LEAT_AT, g, LEAT_INT32, (int64_t[]){y->total}, 1, "few");
    y->n_more = leat_int_vector_named(LEAT_AT, g, LEAT_INT32, (int64_t[]){0}, 1, "more");
    y->more = tokens(y, y->n_more);
    leat_with_control(g, after->updated) y->few_round = tokens(y, y->few);
    if (after->averages)
        leat_with_control(g, y->few_round) y->few_round =
            leat_moving_average_apply(after->averages, after->averaged, after->n_averaged);
}

static void make_repair(leat_sync *y)
{
    leat_graph *g = y->g;
    leat_out *set = leat_arena_array(&g->arena, leat_out, y->n);
    y->waiting = leat_arena_array(&g->arena, leat_out, y->n);
    y->dropped = leat_arena_array(&g->arena, leat_out, y->n);
    leat_arg whose =
        y->replica >= 0 ? leat_attr_int("_replica", y->replica) : (leat_arg){.kind = LEAT_ARG_SKIP};
    for (int i = 0; i < y->n; i++) {
        leat_out a = y->accumulators[i];
        bool handle = leat_out_dtype(a) == LEAT_RESOURCE;
        leat_with_device(g, a.node->device)
        {
            set[i] =
                LEAT_OP2(handle ? "ResourceAccumulatorSetGlobalStep" : "AccumulatorSetGlobalStep",
                         a, leat_cast(y->global_step, LEAT_INT64));
            y->waiting[i] = LEAT_OP1(
                handle ? "ResourceAccumulatorNumAccumulated" : "AccumulatorNumAccumulated", a);
            y->dropped[i] = LEAT_OP1(
                handle ? "_ResourceAccumulatorNumDropped" : "_AccumulatorNumDropped", a, whose);
        }
    }
    y->set_steps = leat_done(leat_group_at(LEAT_AT, g, set, y->n, "set_steps"));
}

void leat_sync_add_leases(leat_sync *y, const leat_sync_after *after)
{
    leat_graph *g = y->g;
    leat_with_device(g, y->device)
    {
        make_lease(y);
        make_few_round(y, after);
    }
    make_repair(y);
}
