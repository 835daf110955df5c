/* partition.c -- divides a placed graph into one graph per device, or one per process. Where an
 * edge crosses, the sender's graph gets a _Send and the receiver's a _Recv, one pair for each
 * tensor and receiving device. A control edge that crosses sends an empty tensor.
 *
 * Between processes, a pair may have a wave: the number of crossings between processes on the
 * longest path to it. Tensors of one wave from one process to another may be sent together, since
 * whatever one of them needs from the receiver was sent in an earlier wave. Tensors that wait for
 * other steps, and those in or near a loop, have no wave. A tensor whose consumers all wait for a
 * later wave from the same sender anyway is sent with that wave. */
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "core/alloc.h"
#include "passes/pass.h"

typedef struct cutter {
    leat_compile *c;
    leat_graph **parts;
    int *device_of;    /* by node id: index of its device, or of its process's first device */
    int *waves;        /* by node id; -1: none. NULL: no waves at all */
    leat_node **copy;  /* by node id: its copy in its part */
    bool *may_be_dead; /* by node id: the node may be dead in a step that needs it */
    leat_map pairs;    /* "id:output>device" -> the _Recv node */
    leat_map late;     /* the same key -> the later wave that the tensor is sent with, plus 1 */
    int n_pairs;
} cutter;

static int find_device(const leat_compile *c, const char *name)
{
    for (int i = 0; i < c->n_devices; i++)
        if (c->devices[i].name == name || strcmp(c->devices[i].name, name) == 0)
            return i;
    return 0;
}

static int find_part(const leat_compile *c, const char *name)
{
    int d = find_device(c, name);
    for (int i = 0; c->by_process && i < d; i++)
        if (c->devices[i].process == c->devices[d].process)
            return i;
    return d;
}

static bool waits_for_others(const leat_compile *c, const leat_node *x)
{
    const leat_target *d = &c->devices[find_device(c, x->device)];
    return c->may_wait && c->may_wait(x, d->parsed.type);
}

static void find_waves(cutter *k)
{
    const leat_graph *g = k->c->graph;
    if (!k->c->by_process)
        return;
    for (int i = 0; i < g->n_nodes; i++)
        if (!g->nodes[i]->dead && (leat_is_next_iteration(g->nodes[i]) ||
                                   leat_node_role(g->nodes[i]) == LEAT_ROLE_LATE_ARG))
            return;
    k->waves = leat_new_array(int, g->n_nodes + 1);
    int n;
    leat_node **order = leat_pass_order(g, &n);
    for (int i = 0; i < n; i++) {
        const leat_node *x = order[i];
        int here = k->device_of[x->id], wave = waits_for_others(k->c, x) ? -1 : 0;
        for (int j = 0; j < x->n_in + x->n_controls && wave >= 0; j++) {
            int from = (j < x->n_in ? x->in[j].node : x->controls[j - x->n_in])->id;
            int w = k->waves[from] < 0 ? -1 : k->waves[from] + (k->device_of[from] != here);
            wave = w < 0 || w > wave ? w : wave;
        }
        k->waves[x->id] = wave;
    }
    free(order);
}

enum { KEY = 64 };

static size_t pair_key(char key[KEY], leat_out x, int to)
{
    return (size_t)snprintf(key, KEY, "%d:%d>%d", x.node->id, x.index, to);
}

/* Visits inputs, then control inputs (index -1). */
static leat_out dependency(const leat_node *x, int i)
{
    return i < x->n_in ? x->in[i] : (leat_out){x->controls[i - x->n_in], -1};
}

/* The last wave from this part that x waits for. */
static int last_wave(const cutter *k, const leat_node *x, int from)
{
    int last = -1;
    for (int i = 0; i < x->n_in + x->n_controls; i++) {
        int id = dependency(x, i).node->id;
        if (k->device_of[id] == from && k->waves[id] > last)
            last = k->waves[id];
    }
    return last;
}

static void find_late(cutter *k)
{
    const leat_graph *g = k->c->graph;
    for (int i = 0; k->waves && i < g->n_nodes; i++) {
        const leat_node *x = g->nodes[i];
        for (int j = 0; !x->dead && j < x->n_in + x->n_controls; j++) {
            leat_out in = dependency(x, j);
            int from = k->device_of[in.node->id], here = k->device_of[i];
            if (from == here || k->waves[in.node->id] < 0)
                continue;
            char key[KEY];
            size_t n = pair_key(key, in, here);
            intptr_t was = (intptr_t)leat_map_get_n(&k->late, key, n);
            intptr_t wave = last_wave(k, x, from) + 1;
            if (!was || wave < was)
                leat_map_put_n(&k->late, key, n, (void *)wave);
        }
    }
}

/* Nodes after a Switch that is not the condition of a loop may be dead, up to a Merge. */
static void mark_dead(cutter *k)
{
    int n;
    leat_node **order = leat_pass_order(k->c->graph, &n);
    for (int i = 0; i < n; i++) {
        const leat_node *x = order[i];
        bool dead = leat_is_switch(x);
        bool merge = leat_is_merge(x);
        for (int j = 0; j < x->n_in && !merge; j++)
            dead |= k->may_be_dead[x->in[j].node->id];
        for (int j = 0; j < x->n_controls; j++)
            dead |= k->may_be_dead[x->controls[j]->id];
        k->may_be_dead[x->id] = dead;
    }
    free(order);
}

/* The task of a device, from the device's full name. */
static const char *task_of(leat_arena *a, const char *device)
{
    const char *end = strstr(device, "/device:");
    return leat_arena_printf(a, "%.*s", end ? (int)(end - device) : (int)strlen(device), device);
}

static leat_attr string_attr(const char *name, const char *s)
{
    return (leat_attr){.name = name, .kind = LEAT_ARG_STRING, .s = s, .n = (int)strlen(s)};
}

/* One end (_Send or _Recv) of a pair from one device to another, in the graph of one of them. */
typedef struct pair {
    const leat_target *sender, *receiver;
    const char *tensor_name;
    int wave;
    const char *process; /* The task by whose name the sender's process is called. */
} pair;

static leat_status end_node(cutter *k, const char *op, leat_dtype t, leat_out in, leat_graph *part,
                            const pair *p, leat_node **out)
{
    bool send = strcmp(op, "_Send") == 0;
    const leat_attr attrs[] = {
        {.name = send ? "T" : "tensor_type", .kind = LEAT_ARG_TYPE, .i = t},
        string_attr("tensor_name", p->tensor_name),
        string_attr("send_device", p->sender->name),
        string_attr("recv_device", p->receiver->name),
        {.name = "send_device_incarnation",
         .kind = LEAT_ARG_INT,
         .i = (int64_t)p->sender->incarnation},
        {.name = "_wave", .kind = LEAT_ARG_INT, .i = p->wave},
        string_attr("_process", p->process),
    };
    /* A TensorFlow task keeps kernels of these ops by name as long as a session lives, so a second
     * graph must not use the names of the first, whichever task has cut it. */
    static atomic_uint last;
    const char *cutter = k->c->client_device ? k->c->client_device : "";
    char *name = leat_arena_printf(&part->arena, "_%s_%u_%x", send ? "send" : "recv",
                                   atomic_fetch_add(&last, 1),
                                   (unsigned)leat_hash(cutter, strlen(cutter), 0));
    leat_node_spec spec = {.op = op,
                           .name = name,
                           .in = &in,
                           .n_in = send,
                           .attrs = attrs,
                           .n_attrs = p->wave >= 0 ? 7 : 5,
                           .device = (send ? p->sender : p->receiver)->name,
                           .exact_name = true};
    return leat_graph_add(part, &spec, out);
}

/* The empty tensor that a control edge sends, made after the node that it waits for. */
static leat_status signal(cutter *k, leat_node *after, int part, const char *device, leat_out *out)
{
    leat_tensor *t;
    leat_node *n;
    LEAT_TRY(leat_tensor_new(LEAT_FLOAT, leat_shape(0), &t));
    const leat_attr attrs[] = {{.name = "dtype", .kind = LEAT_ARG_TYPE, .i = LEAT_FLOAT},
                               {.name = "value", .kind = LEAT_ARG_TENSOR, .tensor = t}};
    leat_node_spec spec = {.op = "Const",
                           .name =
                               leat_arena_printf(&k->parts[part]->arena, "_signal_%d", k->n_pairs),
                           .controls = &after,
                           .n_controls = 1,
                           .attrs = attrs,
                           .n_attrs = 2,
                           .device = device,
                           .exact_name = true};
    leat_status s = leat_graph_add(k->parts[part], &spec, &n);
    leat_tensor_unref(t);
    *out = (leat_out){n, 0};
    return s;
}

/* A _Recv for a node in a loop receives a tensor in every iteration. */
static void wait_for_iteration(cutter *k, leat_node *recv, const leat_node *user)
{
    for (int i = 0; i < user->n_controls; i++) {
        const leat_node *c = user->controls[i];
        if (leat_is_control_loop(c) && leat_is_merge(c) && strcmp(c->device, user->device) == 0)
            leat_node_add_control(recv, k->copy[c->id]);
    }
}

/* On a TensorFlow task, a dead value that a _Recv gets is passed on along data edges only. So a
 * node with a control edge that may be dead waits for an extra node after the _Recv. Leat's own
 * tasks do not need that. */
static leat_status behind_signal(cutter *k, const pair *p, leat_graph *part, leat_node **recv)
{
    const leat_attr type = {.name = "T", .kind = LEAT_ARG_TYPE, .i = LEAT_FLOAT};
    if (!k->c->by_process || p->receiver->together)
        return NULL;
    leat_node_spec spec = {.op = "Identity",
                           .name = leat_arena_printf(&part->arena, "%s_signal", (*recv)->name),
                           .in = &(leat_out){*recv, 0},
                           .n_in = 1,
                           .attrs = &type,
                           .n_attrs = 1,
                           .device = p->receiver->name,
                           .exact_name = true};
    return leat_graph_add(part, &spec, recv);
}

/* The _Recv, in part `to`, of a tensor (or of a node's completion, index -1) for a consumer
 * there. */
static leat_status crossing(cutter *k, leat_out x, int to, const leat_node *user,
                            leat_node **recv_out)
{
    char key[KEY];
    size_t n = pair_key(key, x, to);
    leat_node *recv = leat_map_get_n(&k->pairs, key, n);
    if (!recv) {
        int from = k->device_of[x.node->id];
        leat_out value = {k->copy[x.node->id], x.index};
        pair p = {.sender = &k->c->devices[find_device(k->c, x.node->device)],
                  .receiver = &k->c->devices[find_device(k->c, user->device)],
                  .wave = -1,
                  .process = task_of(&k->parts[from]->arena, k->c->devices[from].name)};
        if (k->waves && p.sender->together && p.receiver->together)
            p.wave = (int)(intptr_t)leat_map_get_n(&k->late, key, n) - 1;
        if (x.index < 0)
            LEAT_TRY(signal(k, k->copy[x.node->id], from, p.sender->name, &value));
        leat_dtype t = leat_dtype_base(leat_out_dtype(value));
        p.tensor_name =
            leat_arena_printf(&k->parts[from]->arena, "edge_%d_%s", k->n_pairs, x.node->name);
        leat_node *send;
        LEAT_TRY(end_node(k, "_Send", t, value, k->parts[from], &p, &send));
        LEAT_TRY(end_node(k, "_Recv", t, (leat_out){0}, k->parts[to], &p, &recv));
        if (x.index >= 0)
            recv->out_shapes[0] = x.node->out_shapes[x.index];
        if (k->may_be_dead[x.node->id])
            leat_node_set_attr(recv,
                               &(leat_attr){.name = "_may_be_dead", .kind = LEAT_ARG_BOOL, .i = 1});
        wait_for_iteration(k, recv, user);
        if (x.index < 0)
            LEAT_TRY(behind_signal(k, &p, k->parts[to], &recv));
        leat_map_put_n(&k->pairs, key, n, recv);
        k->n_pairs++;
    }
    *recv_out = recv;
    return NULL;
}

static leat_status connect(cutter *k, const leat_node *was)
{
    leat_node *n = k->copy[was->id];
    int here = k->device_of[was->id];
    for (int i = 0; i < was->n_in; i++) {
        leat_out x = was->in[i];
        n->in[i] = (leat_out){k->copy[x.node->id], x.index};
        if (k->device_of[x.node->id] == here)
            continue;
        leat_node *recv;
        LEAT_TRY(crossing(k, x, here, was, &recv));
        n->in[i] = (leat_out){recv, 0};
    }
    leat_node **before = leat_new_array(leat_node *, was->n_controls + 1);
    leat_status s = NULL;
    for (int i = 0; i < was->n_controls && !s; i++) {
        before[i] = k->copy[was->controls[i]->id];
        if (k->device_of[was->controls[i]->id] != here)
            s = crossing(k, (leat_out){was->controls[i], -1}, here, was, &before[i]);
    }
    leat_control_adder controls = leat_control_adder_of(n);
    for (int i = 0; i < was->n_controls && !s; i++)
        leat_control_adder_add(&controls, before[i]);
    free(before);
    return s;
}

static leat_status cut(cutter *k)
{
    leat_graph *g = k->c->graph;
    mark_dead(k);
    find_waves(k);
    find_late(k);
    for (int i = 0; i < g->n_nodes; i++) {
        if (g->nodes[i]->dead)
            continue;
        int d = k->device_of[i];
        if (!k->parts[d])
            k->parts[d] = leat_graph_new();
        k->copy[i] = leat_node_clone(k->parts[d], g->nodes[i]);
    }
    for (int i = 0; i < g->n_nodes; i++) {
        LEAT_TRY(leat_pass_stopped(k->c, i));
        if (!g->nodes[i]->dead)
            LEAT_TRY(connect(k, g->nodes[i]));
    }
    return NULL;
}

leat_status leat_pass_partition(leat_compile *c, leat_graph ***parts_out)
{
    LEAT_TRY(leat_pass_control_loops(c));
    leat_graph *g = c->graph;
    leat_graph **parts = leat_new_array(leat_graph *, c->n_devices + 1);
    cutter k = {.c = c, .parts = parts, .device_of = leat_new_array(int, g->n_nodes + 1)};
    bool one = true;
    for (int i = 0; i < g->n_nodes; i++)
        if (!g->nodes[i]->dead) {
            k.device_of[i] = find_part(c, g->nodes[i]->device);
            one &= k.device_of[i] == 0;
        }
    leat_status s = NULL;
    if (one) {
        parts[0] = g;
        c->graph = NULL;
    } else {
        k.copy = leat_new_array(leat_node *, g->n_nodes + 1);
        k.may_be_dead = leat_new_array(bool, g->n_nodes + 1);
        s = cut(&k);
    }
    free(k.device_of);
    free(k.copy);
    free(k.waves);
    free(k.may_be_dead);
    leat_map_release(&k.pairs);
    leat_map_release(&k.late);
    for (int i = 0; s && i < c->n_devices; i++)
        leat_graph_free(parts[i]);
    if (s)
        free(parts);
    else
        *parts_out = parts;
    return s;
}
