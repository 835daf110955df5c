/* memory_plan.c -- see memory_plan.h. Two outputs may share a slot if all nodes that may hold the
 * one are ancestors of the producer of the other, so that no order of execution can mix them up. An
 * output that a kernel writes over or hands on is also held by the consumers of the kernel.
 * Ancestors and holders are sets of bits, so graphs of more nodes than LARGE get a slot for each
 * output. */
#include "runtime/memory_plan.h"

#include <stdlib.h>
#include <string.h>

#include "core/alloc.h"
#include "core/element.h"
#include "runtime/executor_int.h"

enum { LARGE = 8192 };

typedef struct planner {
    leat_executor *e;
    uint64_t *above; /* n_nodes sets: the ancestors of each node */
    uint64_t *hold;  /* a set for each output: the nodes that may hold its memory */
    int *hold_at;    /* by node: index of its first output in `hold` */
    size_t words;    /* length of a set; 0: the sets are not made */
    int *order;      /* nodes, ancestors first */
    struct slot {
        int producer; /* of the output that has the slot now */
        int out;
    } * slots;
    int n_slots, cap_slots;
} planner;

static uint64_t *ancestors(planner *p, int node)
{
    return p->above + p->words * (size_t)node;
}

static uint64_t *holders(planner *p, int node, int out)
{
    return p->hold + p->words * (size_t)(p->hold_at[node] + out);
}

static void add_set(planner *p, uint64_t *to, const uint64_t *from)
{
    for (size_t w = 0; w < p->words; w++)
        to[w] |= from[w];
}

static void add_one(uint64_t *to, int node)
{
    to[node / 64] |= UINT64_C(1) << (node % 64);
}

/* Whether a kernel may use the memory of input x for output y: both must have the same size. */
static bool may_share(leat_dtype t, const leat_shape *x, leat_dtype u, const leat_shape *y)
{
    int64_t a = leat_shape_count(x), b = leat_shape_count(y);
    if (leat_element_size(t) != leat_element_size(u) || (a >= 0 && b >= 0 && a != b))
        return false;
    return x->rank != y->rank || leat_shape_compatible(x, y);
}

/* Goes from the last node to the first, so that the holders of the consumers are known. */
static void set_holders(planner *p)
{
    const leat_executor *e = p->e;
    for (int at = e->n_nodes - 1; at >= 0; at--) {
        const exec_node *x = &e->nodes[p->order[at]];
        const leat_node *n = x->bound.node;
        for (int i = 0; i < x->n_edges && x->edges[i].out >= 0; i++) {
            int out = x->edges[i].out, to = x->edges[i].node;
            const leat_node *user = e->nodes[to].bound.node;
            uint64_t *mine = holders(p, p->order[at], out);
            add_one(mine, to);
            for (int o = 0; o < user->n_out; o++)
                if (may_share(n->out_types[out], &n->out_shapes[out], user->out_types[o],
                              &user->out_shapes[o]))
                    add_set(p, mine, holders(p, to, o));
        }
    }
}

/* Outputs that leave the step, or whose memory the kernel does not allocate, get no slot. */
static bool wanted(const leat_executor *e, const exec_node *x, int out)
{
    leat_dtype t = x->bound.node->out_types[out];
    bool used = false;
    if (x->bound.places && x->bound.places[x->n_in + out] != LEAT_PLACE_DEVICE)
        return false; /* slots are in the device's memory */
    if (x->frame != 0 || x->async || x->kind != EXEC_PLAIN || leat_dtype_is_ref(t) ||
        leat_dtype_managed(t))
        return false;
    for (int i = 0; i < x->n_edges; i++) {
        if (x->edges[i].out != out)
            continue;
        used = true;
        if (leat_node_role(e->nodes[x->edges[i].node].bound.node) == LEAT_ROLE_RETVAL)
            return false;
    }
    return used;
}

static bool free_before(planner *p, const struct slot *s, int node)
{
    const uint64_t *held = holders(p, s->producer, s->out), *above = ancestors(p, node);
    for (size_t w = 0; w < p->words; w++)
        if (held[w] & ~above[w])
            return false;
    return true;
}

static void set_ancestors(planner *p)
{
    leat_executor *e = p->e;
    int *pending = leat_new_array(int, e->n_nodes + 1), n = 0;
    for (int i = 0; i < e->n_nodes; i++) {
        pending[i] = e->nodes[i].pending;
        if (!pending[i])
            p->order[n++] = i;
    }
    for (int at = 0; at < n; at++) {
        const exec_node *x = &e->nodes[p->order[at]];
        for (int i = 0; i < x->n_edges; i++) {
            int to = x->edges[i].node;
            add_set(p, ancestors(p, to), ancestors(p, p->order[at]));
            add_one(ancestors(p, to), p->order[at]);
            if (--pending[to] == 0)
                p->order[n++] = to;
        }
    }
    free(pending);
}

static int slot_for(planner *p, int node, int out)
{
    for (int i = 0; p->words && i < p->n_slots; i++)
        if (free_before(p, &p->slots[i], node)) {
            p->slots[i] = (struct slot){node, out};
            return i;
        }
    leat_grow(p->slots, p->n_slots, p->cap_slots);
    p->slots[p->n_slots] = (struct slot){node, out};
    return p->n_slots++;
}

void leat_memory_plan(leat_executor *e)
{
    planner p = {.e = e, .order = leat_new_array(int, e->n_nodes + 1)};
    for (int i = 0; i < e->n_nodes; i++)
        p.order[i] = i;
    if (e->n_nodes <= LARGE && !e->has_flow) {
        p.words = ((size_t)e->n_nodes + 63) / 64;
        p.above = leat_new_array(uint64_t, p.words * (size_t)e->n_nodes + 1);
        p.hold_at = leat_new_array(int, e->n_nodes + 1);
        for (int i = 0; i < e->n_nodes; i++)
            p.hold_at[i + 1] = p.hold_at[i] + e->nodes[i].n_out;
        p.hold = leat_new_array(uint64_t, p.words * (size_t)p.hold_at[e->n_nodes] + 1);
        set_ancestors(&p);
        set_holders(&p);
    }
    for (int at = 0; at < e->n_nodes; at++) {
        exec_node *x = &e->nodes[p.order[at]];
        int *slots = leat_arena_array(&e->arena, int, x->n_out + 1);
        bool any = false;
        for (int o = 0; o < x->n_out; o++) {
            slots[o] = wanted(e, x, o) ? slot_for(&p, p.order[at], o) : -1;
            any |= slots[o] >= 0;
        }
        x->slots = any ? slots : NULL;
    }
    e->n_slots = p.n_slots;
    free(p.above);
    free(p.hold);
    free(p.hold_at);
    free(p.order);
    free(p.slots);
}
