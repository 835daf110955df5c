/* partition.c -- cuts a placed graph into one graph a device. Where an edge crosses, the sender's
 * graph gets a _Send and the receiver's a _Recv, one pair for each tensor and receiving device. A
 * control edge that crosses sends an empty tensor. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "core/alloc.h"
#include "passes/pass.h"

typedef struct cutter {
    leat_compile *c;
    leat_graph **parts;
    int *device_of;    /* by node id: index of its device */
    leat_node **copy;  /* by node id: its copy in its part */
    bool *may_be_dead; /* by node id: it may not run in a step that needs it */
    leat_map pairs;    /* "id:output>device" -> the _Recv node */
    int n_pairs;
} cutter;

static int find_device(const leat_compile *c, const char *name)
{
    for (int i = 0; i < c->n_devices; i++)
        if (c->devices[i].name == name || strcmp(c->devices[i].name, name) == 0)
            return i;
    return 0;
}

/* Below a Switch that is not the condition of a loop, up to a Merge, nodes may be dead. */
static void mark_dead(cutter *k)
{
    int n;
    leat_node **order = leat_pass_order(k->c->graph, &n);
    for (int i = 0; i < n; i++) {
        const leat_node *x = order[i];
        bool dead = leat_node_is(x, "Switch") || leat_node_is(x, "RefSwitch");
        bool merge = leat_node_is(x, "Merge") || leat_node_is(x, "RefMerge");
        for (int j = 0; j < x->n_in && !merge; j++)
            dead |= k->may_be_dead[x->in[j].node->id];
        for (int j = 0; j < x->n_controls; j++)
            dead |= k->may_be_dead[x->controls[j]->id];
        k->may_be_dead[x->id] = dead;
    }
    free(order);
}

static leat_attr string_attr(const char *name, const char *s)
{
    return (leat_attr){.name = name, .kind = LEAT_ARG_STRING, .s = s, .n = (int)strlen(s)};
}

static leat_status end_node(cutter *k, const char *op, leat_dtype t, leat_out in, int from, int to,
                            const char *tensor_name, leat_node **out)
{
    const leat_target *sender = &k->c->devices[from], *receiver = &k->c->devices[to];
    bool send = strcmp(op, "_Send") == 0;
    leat_graph *part = k->parts[send ? from : to];
    const leat_attr attrs[] = {
        {.name = send ? "T" : "tensor_type", .kind = LEAT_ARG_TYPE, .i = t},
        string_attr("tensor_name", tensor_name),
        string_attr("send_device", sender->name),
        string_attr("recv_device", receiver->name),
        {.name = "send_device_incarnation",
         .kind = LEAT_ARG_INT,
         .i = (int64_t)sender->incarnation},
    };
    char *name = leat_arena_printf(&part->arena, "_%s_%d", send ? "send" : "recv", k->n_pairs);
    leat_node_spec spec = {.op = op,
                           .name = name,
                           .in = &in,
                           .n_in = send,
                           .attrs = attrs,
                           .n_attrs = 5,
                           .device = (send ? sender : receiver)->name,
                           .exact_name = true};
    return leat_graph_add(part, &spec, out);
}

/* What a control edge sends: an empty tensor, made after the node that it waits for. */
static leat_status signal(cutter *k, leat_node *after, int part, leat_out *out)
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
                           .device = k->c->devices[part].name,
                           .exact_name = true};
    leat_status s = leat_graph_add(k->parts[part], &spec, &n);
    leat_tensor_unref(t);
    *out = (leat_out){n, 0};
    return s;
}

/* The _Recv, on device `to`, of a tensor (or of a node's completion, index -1). */
static leat_status crossing(cutter *k, leat_out x, int to, leat_node **recv_out)
{
    char key[64];
    int n = snprintf(key, sizeof(key), "%d:%d>%d", x.node->id, x.index, to);
    leat_node *recv = leat_map_get_n(&k->pairs, key, (size_t)n);
    if (!recv) {
        int from = k->device_of[x.node->id];
        leat_out value = {k->copy[x.node->id], x.index};
        if (x.index < 0)
            LEAT_TRY(signal(k, k->copy[x.node->id], from, &value));
        leat_dtype t = leat_dtype_base(leat_out_dtype(value));
        const char *tensor_name =
            leat_arena_printf(&k->parts[from]->arena, "edge_%d_%s", k->n_pairs, x.node->name);
        leat_node *send;
        LEAT_TRY(end_node(k, "_Send", t, value, from, to, tensor_name, &send));
        LEAT_TRY(end_node(k, "_Recv", t, (leat_out){0}, from, to, tensor_name, &recv));
        if (x.index >= 0)
            recv->out_shapes[0] = x.node->out_shapes[x.index];
        if (k->may_be_dead[x.node->id])
            leat_node_set_attr(recv,
                               &(leat_attr){.name = "_may_be_dead", .kind = LEAT_ARG_BOOL, .i = 1});
        leat_map_put_n(&k->pairs, key, (size_t)n, recv);
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
        LEAT_TRY(crossing(k, x, here, &recv));
        n->in[i] = (leat_out){recv, 0};
    }
    for (int i = 0; i < was->n_controls; i++) {
        leat_node *before = k->copy[was->controls[i]->id];
        if (k->device_of[was->controls[i]->id] != here)
            LEAT_TRY(crossing(k, (leat_out){was->controls[i], -1}, here, &before));
        leat_node_add_control(n, before);
    }
    return NULL;
}

static leat_status cut(cutter *k)
{
    leat_graph *g = k->c->graph;
    mark_dead(k);
    for (int i = 0; i < g->n_nodes; i++) {
        if (g->nodes[i]->dead)
            continue;
        int d = k->device_of[i];
        if (!k->parts[d])
            k->parts[d] = leat_graph_new();
        k->copy[i] = leat_node_clone(k->parts[d], g->nodes[i]);
    }
    for (int i = 0; i < g->n_nodes; i++)
        if (!g->nodes[i]->dead)
            LEAT_TRY(connect(k, g->nodes[i]));
    return NULL;
}

leat_status leat_pass_partition(leat_compile *c, leat_graph ***parts_out)
{
    leat_graph *g = c->graph;
    leat_graph **parts = leat_new_array(leat_graph *, c->n_devices + 1);
    cutter k = {.c = c, .parts = parts, .device_of = leat_new_array(int, g->n_nodes + 1)};
    bool one = true;
    for (int i = 0; i < g->n_nodes; i++)
        if (!g->nodes[i]->dead) {
            k.device_of[i] = find_device(c, g->nodes[i]->device);
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
    free(k.may_be_dead);
    leat_map_release(&k.pairs);
    for (int i = 0; s && i < c->n_devices; i++)
        leat_graph_free(parts[i]);
    if (s)
        free(parts);
    else
        *parts_out = parts;
    return s;
}
