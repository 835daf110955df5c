/* grad_sum.c -- the gradients that a tensor gets from all its consumers: collected, summed (AddN),
 * rows concatenated, rows made dense, and gated. */
#include <string.h>

#include <leat/ops.h>
#include "graph/gradients_int.h"

static leat_grad_slot *slot_of(leat_backprop *b, leat_out x)
{
    leat_grad_node_state *s = leat_grad_state_of(b, x.node);
    if (!s->slots)
        s->slots = leat_arena_array(&b->scratch, leat_grad_slot, x.node->n_out);
    return &s->slots[x.index];
}

void leat_grad_send(leat_backprop *b, leat_out to, leat_grad_value v)
{
    leat_grad_slot *s = slot_of(b, to);
    if (s->summed) {
        s->n = 0;
        s->summed = false;
    }
    if (s->n == s->cap) {
        int cap = s->cap ? s->cap * 2 : 2;
        leat_grad_value *more = leat_arena_array(&b->scratch, leat_grad_value, cap);
        if (s->n)
            memcpy(more, s->v, sizeof(*more) * (size_t)s->n);
        s->v = more;
        s->cap = cap;
    }
    s->v[s->n++] = v;
}

bool leat_grad_came(leat_backprop *b, const leat_node *n)
{
    const leat_grad_slot *slots = leat_grad_state_of(b, n)->slots;
    for (int i = 0; slots && i < n->n_out; i++)
        for (int k = 0; k < slots[i].n; k++)
            if (leat_grad_some(slots[i].v[k]))
                return true;
    return false;
}

static leat_out add_beside_first(leat_graph *g, const leat_out *x, int n)
{
    leat_colocate_only_enter(g, x[0]);
    leat_out y = leat_add_n(x, n);
    leat_colocate_leave(g);
    return y;
}

/* Sums the gradients of each device first; each sum is placed on the device of its first
 * summand. */
static leat_out add_by_device(leat_backprop *b, const leat_grad_slot *s)
{
    leat_out *sums = leat_arena_array(&b->scratch, leat_out, s->n);
    leat_out *part = leat_arena_array(&b->scratch, leat_out, s->n);
    bool *done = leat_arena_array(&b->scratch, bool, s->n);
    int n = 0;
    for (int i = 0; i < s->n; i++) {
        int k = 0;
        for (int j = i; j < s->n && !done[i]; j++)
            if (strcmp(s->v[j].value.node->device, s->v[i].value.node->device) == 0 && !done[j])
                part[k++] = s->v[j].value;
        for (int j = i + 1; j < s->n && k; j++)
            done[j] |= strcmp(s->v[j].value.node->device, s->v[i].value.node->device) == 0;
        if (k == 1)
            sums[n++] = part[0];
        else if (k > 1)
            sums[n++] = add_beside_first(b->g, part, k);
    }
    return n == 1 ? sums[0] : leat_add_n(sums, n);
}

/* The sum of several sets of rows is their concatenation: rows with the same index are added when
 * they are used. */
static leat_grad_value join_rows(leat_backprop *b, const leat_grad_slot *s)
{
    leat_out *values = leat_arena_array(&b->scratch, leat_out, s->n);
    leat_out *indices = leat_arena_array(&b->scratch, leat_out, s->n);
    bool wide = false;
    for (int i = 0; i < s->n; i++)
        wide |= leat_out_dtype(s->v[i].indices) == LEAT_INT64;
    for (int i = 0; i < s->n; i++) {
        values[i] = s->v[i].value;
        indices[i] = wide ? leat_cast(s->v[i].indices, LEAT_INT64) : s->v[i].indices;
    }
    leat_out axis = leat_scalar(b->g, LEAT_INT32, 0);
    return (leat_grad_value){leat_concat(values, s->n, axis), leat_concat(indices, s->n, axis),
                             s->v[0].dense_shape};
}

static leat_grad_value sum(leat_backprop *b, leat_grad_slot *s)
{
    if (s->n == 1)
        return s->v[0];
    int rows = 0;
    for (int i = 0; i < s->n; i++)
        rows += s->v[i].indices.node != NULL;
    if (rows == 0)
        return leat_grad_tensor(add_by_device(b, s));
    if (rows == s->n)
        return join_rows(b, s);
    leat_out *all = leat_arena_array(&b->scratch, leat_out, s->n);
    for (int i = 0; i < s->n; i++)
        all[i] = leat_grad_dense(s->v[i]);
    return leat_grad_tensor(leat_add_n(all, s->n));
}

leat_grad_value leat_grad_sum(leat_backprop *b, leat_out x)
{
    if (!leat_grad_state_of(b, x.node)->slots)
        return (leat_grad_value){0};
    leat_grad_slot *s = slot_of(b, x);
    int n = 0;
    for (int i = 0; i < s->n; i++)
        if (leat_grad_some(s->v[i]))
            s->v[n++] = s->v[i];
    s->n = n;
    if (n == 0)
        return (leat_grad_value){0};
    s->v[0] = sum(b, s);
    s->n = 1;
    s->summed = true;
    return s->v[0];
}

void leat_grad_sums(leat_backprop *b, leat_node *n, leat_grad_value *sums_out)
{
    for (int i = 0; i < n->n_out; i++)
        sums_out[i] = leat_grad_sum(b, (leat_out){n, i});
}

leat_out leat_grad_dense_at(leat_loc at, leat_grad_value v)
{
    if (!v.indices.node || !v.value.node)
        return v.value;
    leat_graph *g = v.value.node->graph;
    if (!v.dense_shape.node)
        return leat_graph_fail(
            g, at,
            leat_error(INVALID_ARGUMENT,
                       "Tensor conversion requested for IndexedSlices without dense_shape: %s",
                       v.value.node->name));
    leat_loc outer = leat_at_enter(g, at);
    leat_out zero = leat_ints(g, 0), one = leat_ints(g, 1);
    leat_out rows =
        leat_strided_slice(v.dense_shape, zero, one, one, leat_attr_int("shrink_axis_mask", 1));
    leat_out dense = leat_unsorted_segment_sum(v.value, v.indices, rows);
    leat_at_leave(g, outer);
    return dense;
}

/* Adds a node that waits for all gradients, and for each gradient an Identity that waits for that
 * node. */
void leat_grad_gate(leat_grad *c)
{
    leat_graph *g = c->b->g;
    int n = 0, n_in = c->node->n_in;
    leat_out *all = leat_arena_array(&c->b->scratch, leat_out, n_in + 1);
    for (int i = 0; i < n_in; i++)
        if (leat_grad_some(c->in[i]))
            all[n++] = c->in[i].value;
    if (n < 2)
        return;
    leat_name_scope_enter(g, "tuple");
    leat_colocate_only_enter(g, (leat_out){0});
    leat_out gate = leat_group_at(LEAT_AT, g, all, n, NULL);
    leat_colocate_leave(g);
    for (int i = 0; i < n_in; i++) {
        if (!leat_grad_some(c->in[i]))
            continue;
        leat_with_colocate(g, c->in[i].value) c->in[i].value =
            leat_identity(c->in[i].value, leat_after(gate), leat_name("control_dependency"));
    }
    leat_name_scope_leave(g);
}
