/* memory_plan.c -- see memory_plan.h. Two outputs may share a slot if every consumer of the one
 * is an ancestor of the producer of the other, so that no order of execution can mix them up.
 * Ancestors are sets of bits, so graphs of more nodes than LARGE get a slot for each output. */
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
    size_t words;
    int *order; /* nodes, ancestors first */
    struct slot {
        int producer; /* of the output that has it now */
        int out;
    } * slots;
    int n_slots, cap_slots;
} planner;

static uint64_t *ancestors(planner *p, int node)
{
    return p->above + p->words * (size_t)node;
}

static bool is_above(planner *p, int a, int b) /* a is an ancestor of b */
{
    return ancestors(p, b)[a / 64] >> (a % 64) & 1;
}

/* Values that leave the step, or are not made by the kernel itself, are not planned. */
static bool wanted(const leat_executor *e, const exec_node *x, int out)
{
    leat_dtype t = x->bound.node->out_types[out];
    bool used = false;
    if (x->frame != 0 || x->async || x->kind != EXEC_PLAIN || leat_dtype_is_ref(t) ||
        leat_dtype_managed(t))
        return false;
    for (int i = 0; i < x->n_edges; i++) {
        if (x->edges[i].out != out)
            continue;
        used = true;
        if (leat_node_is(e->nodes[x->edges[i].node].bound.node, "_Retval"))
            return false;
    }
    return used;
}

static bool free_before(planner *p, const struct slot *s, int node)
{
    const exec_node *x = &p->e->nodes[s->producer];
    for (int i = 0; i < x->n_edges; i++)
        if (x->edges[i].out == s->out && !is_above(p, x->edges[i].node, node))
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
            uint64_t *mine = ancestors(p, p->order[at]), *theirs = ancestors(p, to);
            for (size_t w = 0; w < p->words; w++)
                theirs[w] |= mine[w];
            theirs[p->order[at] / 64] |= UINT64_C(1) << (p->order[at] % 64);
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
        set_ancestors(&p);
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
    free(p.order);
    free(p.slots);
}
