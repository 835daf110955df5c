/* executor_new.c -- makes a graph ready to run: binds kernels, lays out edges, sizes memory. */
#include <stdlib.h>
#include <string.h>

#include "core/alloc.h"
#include "runtime/executor_int.h"
#include "runtime/memory_plan.h"

enum { CHECK_EVERY = 4096 }; /* nodes between two looks at the deadline */

static const enum exec_kind kinds[] = {
    [LEAT_ROLE_SWITCH] = EXEC_SWITCH,       [LEAT_ROLE_MERGE] = EXEC_MERGE,
    [LEAT_ROLE_ENTER] = EXEC_ENTER,         [LEAT_ROLE_EXIT] = EXEC_EXIT,
    [LEAT_ROLE_NEXT_ITERATION] = EXEC_NEXT, [LEAT_ROLE_TRIGGER] = EXEC_TRIGGER,
};

static leat_status make_node(leat_executor *e, exec_node *x, const leat_node *n)
{
    LEAT_TRY(leat_kernel_bind(&x->bound, n, e->device->parsed.type));
    const leat_kernel_def *def = x->bound.def;
    x->n_in = n->n_in;
    x->n_out = n->n_out;
    x->n_controls = n->n_controls;
    x->pending = n->n_in + n->n_controls;
    x->expensive = def->flags & LEAT_KERNEL_EXPENSIVE;
    x->blocks = def->flags & LEAT_KERNEL_BLOCKS;
    x->async = def->run_async != NULL;
    for (int i = 0; i < n->n_in; i++)
        x->in_refs |= leat_dtype_is_ref(leat_out_dtype(n->in[i]));
    const size_t role = leat_node_role(n);
    x->kind = role < sizeof(kinds) / sizeof(*kinds) ? (uint8_t)kinds[role] : EXEC_PLAIN;
    if (x->kind == EXEC_ENTER) {
        x->constant = leat_node_bool(n, "is_constant");
        x->parallel = (int)leat_node_int(n, "parallel_iterations");
    }
    /* A _Recv can bring dead values from another device. */
    e->has_flow |=
        x->kind != EXEC_PLAIN || (role == LEAT_ROLE_RECV && leat_node_has(n, "_may_be_dead"));
    return NULL;
}

/* By output, control edges (-1) last. */
static int by_output(const void *a, const void *b)
{
    const exec_edge *x = a, *y = b;
    if ((x->out < 0) != (y->out < 0))
        return x->out < 0 ? 1 : -1;
    if (x->out != y->out)
        return x->out - y->out;
    return x->node != y->node ? x->node - y->node : x->slot - y->slot;
}

static void make_edges(leat_executor *e, const int *place)
{
    leat_graph *g = e->graph;
    for (int pass = 0; pass < 2; pass++) { /* count, then fill */
        for (int i = 0; i < e->n_nodes; i++) {
            exec_node *x = &e->nodes[i];
            if (pass)
                x->edges = leat_arena_array(&e->arena, exec_edge, x->n_edges);
            x->n_edges = pass ? 0 : x->n_edges;
        }
        for (int i = 0; i < g->n_nodes; i++) {
            const leat_node *n = g->nodes[i];
            for (int j = 0; !n->dead && j < n->n_in + n->n_controls; j++) {
                bool data = j < n->n_in;
                leat_out from = data ? n->in[j] : (leat_out){n->controls[j - n->n_in], -1};
                exec_node *x = &e->nodes[place[from.node->id]];
                if (pass)
                    x->edges[x->n_edges] = (exec_edge){
                        .node = place[i], .slot = data ? j : -1, .out = data ? from.index : -1};
                x->n_edges++;
            }
        }
    }
    for (int i = 0; i < e->n_nodes; i++) {
        exec_node *x = &e->nodes[i];
        qsort(x->edges, (size_t)x->n_edges, sizeof(exec_edge), by_output);
        for (int j = 0; j < x->n_edges; j++)
            x->edges[j].last = j + 1 == x->n_edges || x->edges[j + 1].out != x->edges[j].out;
    }
}

static void place_in_frames(leat_executor *e)
{
    for (int i = 0; i < e->n_nodes; i++) {
        exec_node *x = &e->nodes[i];
        exec_frame *f = &e->frames[x->frame];
        x->local = f->n_nodes++;
        x->in_at = f->n_entries;
        f->n_entries += x->n_in;
    }
    for (int i = 0; i < e->n_frames; i++)
        e->frames[i].pending = leat_arena_array(&e->arena, int, e->frames[i].n_nodes);
    for (int i = 0; i < e->n_nodes; i++) {
        exec_node *x = &e->nodes[i];
        /* Bit 0: no live input came yet; above it the control inputs to come. See executor_flow.c
         */
        e->frames[x->frame].pending[x->local] =
            x->kind == EXEC_MERGE ? 1 + 2 * x->n_controls : x->pending;
        if (x->pending == 0)
            e->roots[e->n_roots++] = i;
    }
}

leat_status leat_executor_new(leat_graph *g, leat_device *device, struct leat_callables *callables,
                              const leat_stop *stop, leat_executor **out)
{
    leat_executor *e = leat_new(leat_executor);
    leat_arena_init(&e->arena);
    e->graph = g;
    e->device = device;
    int *place = leat_new_array(int, g->n_nodes + 1);
    e->nodes = leat_new_array(exec_node, g->n_nodes + 1);
    leat_status s = NULL;
    for (int i = 0; i < g->n_nodes && !s; i++) {
        if (i % CHECK_EVERY == CHECK_EVERY - 1 && (s = leat_stop_check(stop)))
            break;
        if (g->nodes[i]->dead)
            continue;
        place[i] = e->n_nodes++;
        s = make_node(e, &e->nodes[place[i]], g->nodes[i]);
        e->nodes[place[i]].bound.callables = callables;
    }
    if (!s) {
        e->roots = leat_arena_array(&e->arena, int, e->n_nodes);
        make_edges(e, place);
        s = leat_flow_frames(e);
    }
    free(place);
    if (!s) {
        place_in_frames(e);
        leat_memory_plan(e);
        *out = e;
        return NULL;
    }
    leat_executor_free(e);
    return s;
}

void leat_executor_free(leat_executor *e)
{
    if (!e)
        return;
    for (int i = 0; i < e->n_nodes; i++)
        leat_kernel_unbind(&e->nodes[i].bound);
    free(e->nodes);
    leat_arena_release(&e->arena);
    free(e);
}

void leat_iteration_init(const leat_executor *e, int frame, iteration *it)
{
    const exec_frame *f = &e->frames[frame];
    memset(it, 0, sizeof(*it));
    it->entries = leat_new_array(leat_entry, f->n_entries + 1);
    it->pending = leat_xmalloc(sizeof(int) * (size_t)(f->n_nodes + 1));
    memcpy(it->pending, f->pending, sizeof(int) * (size_t)f->n_nodes);
    if (e->has_flow) {
        it->dead = leat_xcalloc((size_t)f->n_nodes + 1, 1);
        it->dead_inputs = leat_new_array(int, f->n_nodes + 1);
    }
}

void leat_iteration_release(const leat_executor *e, int frame, iteration *it)
{
    for (int i = 0; i < e->frames[frame].n_entries; i++)
        leat_entry_clear(&it->entries[i]);
    free(it->entries);
    free((void *)it->pending);
    free((void *)it->dead);
    free(it->dead_inputs);
}

leat_run *leat_run_new(leat_executor *e)
{
    leat_run *r = leat_new(leat_run);
    r->executor = e;
    leat_iteration_init(e, 0, &r->root);
    r->kept = leat_new_array(leat_buffer *, e->n_slots + 1);
    r->jobs = leat_new_array(struct job, e->n_nodes + 1);
    pthread_mutex_init(&r->flow, NULL);
    pthread_mutex_init(&r->wait_lock, NULL);
    return r;
}

void leat_run_free(leat_run *r)
{
    if (!r)
        return;
    leat_flow_clear(r);
    free(r->frames);
    leat_iteration_release(r->executor, 0, &r->root);
    for (int i = 0; i < r->executor->n_slots; i++)
        if (r->kept[i]) {
            r->kept[i]->cached = false;
            leat_buffer_unref(r->kept[i]);
        }
    pthread_mutex_destroy(&r->flow);
    pthread_mutex_destroy(&r->wait_lock);
    free(r->kept);
    free(r->jobs);
    if (r->spare.v != r->spare.few)
        free(r->spare.v);
    free(r);
}
