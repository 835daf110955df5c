/* cse.c -- common subexpressions: of several pure nodes on one device with the same op, attributes,
 * inputs and control inputs, one is kept. Nodes with the same inputs are in the same frame, and
 * dead in the same steps. */
#include <stdlib.h>
#include <string.h>

#include "core/alloc.h"
#include "core/buffer.h"
#include "passes/pass.h"

enum { HASHED_BYTES = 256 }; /* bytes of a constant that are hashed; the rest is only compared */

typedef struct merger {
    leat_node **table; /* open addressing by hash */
    uint64_t *hashes;
    size_t size;
} merger;

/* Attributes that do not change what a node computes. */
static bool is_note(const leat_attr *a)
{
    return strcmp(a->name, "_class") == 0 || strcmp(a->name, "_output_shapes") == 0;
}

static bool same_out(leat_out x, leat_out y)
{
    return x.node == y.node && x.index == y.index;
}

/* The result of a sum of more than two inputs depends on their order. */
static bool commutes(const leat_node *n)
{
    return leat_node_flag(n, LEAT_OP_COMMUTATIVE) && n->n_in == 2;
}

static int by_id(const void *a, const void *b)
{
    return (*(leat_node *const *)a)->id - (*(leat_node *const *)b)->id;
}

static uint64_t hash_node(const leat_node *n)
{
    uint64_t h = leat_hash(&n->op, sizeof(n->op), 0), sum = 0;
    const bool any_order = commutes(n);
    for (int i = 0; i < n->n_in; i++) {
        int edge[2] = {n->in[i].node->id, n->in[i].index};
        uint64_t e = leat_hash(edge, sizeof(edge), any_order ? 0 : h);
        if (any_order)
            sum += e;
        else
            h = e;
    }
    h ^= sum;
    for (int i = 0; i < n->n_controls; i++)
        h = leat_hash(&n->controls[i]->id, sizeof(int), h);
    const leat_tensor *t = leat_is_const(n) ? leat_node_tensor(n, "value") : NULL;
    if (t && t->dtype != LEAT_STRING) {
        size_t bytes = leat_tensor_bytes(t);
        h = leat_hash(t->data, bytes < HASHED_BYTES ? bytes : HASHED_BYTES, h ^ t->dtype);
    }
    return h;
}

static const leat_attr *next_attr(const leat_node *n, int *at)
{
    while (*at < n->n_attrs && is_note(&n->attrs[*at]))
        ++*at;
    return *at < n->n_attrs ? &n->attrs[(*at)++] : NULL;
}

static bool same_attrs(const leat_node *a, const leat_node *b)
{
    int i = 0, j = 0;
    for (;;) {
        const leat_attr *x = next_attr(a, &i), *y = next_attr(b, &j);
        if (!x || !y)
            return x == y;
        if (strcmp(x->name, y->name) != 0 || !leat_attr_equal(x, y))
            return false;
    }
}

static bool same(const leat_node *a, const leat_node *b)
{
    if (a->op != b->op || a->n_in != b->n_in || a->n_controls != b->n_controls ||
        a->n_out != b->n_out || strcmp(a->device, b->device) != 0)
        return false;
    bool swapped = commutes(a) && !same_out(a->in[0], b->in[0]);
    for (int i = 0; i < a->n_in; i++)
        if (!same_out(a->in[i], b->in[swapped ? 1 - i : i]))
            return false;
    for (int i = 0; i < a->n_controls; i++)
        if (a->controls[i] != b->controls[i])
            return false;
    return same_attrs(a, b);
}

/* A node that computes the same, or n itself. */
static leat_node *first_like(merger *m, leat_node *n)
{
    if (n->n_controls > 1)
        qsort(n->controls, (size_t)n->n_controls, sizeof(*n->controls), by_id);
    uint64_t h = hash_node(n);
    size_t at = h & (m->size - 1);
    for (; m->table[at]; at = (at + 1) & (m->size - 1))
        if (m->hashes[at] == h && same(m->table[at], n))
            return m->table[at];
    m->table[at] = n;
    m->hashes[at] = h;
    return n;
}

leat_status leat_pass_cse(leat_compile *c)
{
    leat_graph *g = c->graph;
    merger m = {.size = 16};
    while (m.size < 2 * (size_t)g->n_nodes)
        m.size *= 2;
    m.table = leat_new_array(leat_node *, m.size);
    m.hashes = leat_new_array(uint64_t, m.size);
    leat_replacement *replaced = leat_replacements_new(g);
    int count;
    leat_node **order = leat_pass_order(g, &count);
    leat_status s = NULL;
    for (int i = 0; i < count && !(s = leat_pass_stopped(c, i)); i++) {
        leat_node *n = order[i], *kept;
        leat_replace_inputs(replaced, n);
        if (!leat_node_is_pure(n) || (kept = first_like(&m, n)) == n)
            continue;
        kept->wanted |= n->wanted;
        replaced[n->id] = (leat_replacement){.by = {kept, 0}, .is_gone = true};
    }
    leat_replacements_end(replaced, g);
    free(order);
    free(m.table);
    free(m.hashes);
    return s;
}
