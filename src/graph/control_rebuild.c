/* control_rebuild.c -- finds the contexts of an imported graph, which does not contain them, from
 * its structure. Nodes are visited in order: a node is in the context of its inputs. An Enter opens
 * a loop by its frame's name, an Exit leaves it; a Switch that no LoopCond controls opens the
 * branches of a cond on its predicate, a Merge ends them. */
#include "graph/control_ctx.h"

#include <string.h>

#include "core/alloc.h"

static leat_control_ctx *deeper(leat_control_ctx *a, leat_control_ctx *b)
{
    return !a || (b && b->depth > a->depth) ? b : a;
}

/* The innermost context of n's inputs and control inputs. */
static leat_control_ctx *of_inputs(const leat_node *n)
{
    leat_control_ctx *c = NULL;
    for (int i = 0; i < n->n_in; i++)
        if (n->in[i].node && n->in[i].node->id < n->id)
            c = deeper(c, leat_out_ctx(n->in[i]));
    for (int i = 0; i < n->n_controls; i++)
        if (n->controls[i]->id < n->id)
            c = deeper(c, leat_out_ctx((leat_out){n->controls[i], -1}));
    return c;
}

static leat_control_ctx *common(leat_control_ctx *a, leat_control_ctx *b)
{
    while (a != b) {
        if (!a || !b)
            return NULL;
        if (a->depth >= b->depth)
            a = a->outer;
        else
            b = b->outer;
    }
    return a;
}

static leat_control_ctx *find_loop(leat_graph *g, const leat_control_ctx *outer, const char *frame)
{
    leat_control_ctx *c = g->contexts;
    while (c &&
           !(c->is_loop && leat_ctx_loop(c->outer) == leat_ctx_loop((leat_control_ctx *)outer) &&
             strcmp(c->frame, frame) == 0))
        c = c->next;
    return c;
}

static leat_control_ctx *of_enter(leat_node *n)
{
    leat_graph *g = n->graph;
    leat_control_ctx *outer = of_inputs(n);
    const char *frame = leat_node_string(n, "frame_name");
    leat_control_ctx *c = find_loop(g, outer, frame);
    if (c)
        return c;
    c = leat_ctx_new(g, outer, true);
    c->frame = leat_arena_strdup(&g->arena, frame);
    c->parallel_iterations = (int)leat_node_int(n, "parallel_iterations");
    return c;
}

static leat_control_ctx *of_switch(leat_node *n)
{
    leat_control_ctx *outer = of_inputs(n);
    if (leat_is_loop_switch(n))
        return outer;
    leat_out p = leat_ctx_predicate(n->in[1]);
    for (leat_control_ctx *c = n->graph->contexts; c; c = c->next) {
        if (c->is_loop || c->outer != outer)
            continue;
        leat_out q = leat_ctx_predicate(c->pred);
        if (q.node == p.node && q.index == p.index)
            return c;
    }
    leat_control_ctx *branches[2];
    leat_ctx_new_branches(n->graph, outer, n->in[1], branches);
    return branches[1];
}

static leat_control_ctx *of_merge(const leat_node *n)
{
    if (leat_is_loop_merge(n))
        return n->in[0].node->ctx;
    leat_control_ctx *c = n->n_in ? leat_out_ctx(n->in[0]) : NULL;
    for (int i = 1; i < n->n_in; i++)
        c = common(c, leat_out_ctx(n->in[i]));
    return c;
}

/* Records in a loop's context the nodes that it must know. */
static void note(leat_node *n)
{
    leat_control_ctx *c = n->ctx;
    if (!c->is_loop) {
        if (!c->pivot && leat_is_identity(n) && leat_is_switch(n->in[0].node) &&
            leat_out_ctx(n->in[0]) == c)
            c->pivot = n;
        return;
    }
    if (leat_is_loop_merge(n) && !c->pivot_for_pred)
        c->pivot_for_pred = n;
    else if (leat_node_role(n) == LEAT_ROLE_LOOP_COND)
        c->loop_cond = (leat_out){n, 0};
    else if (leat_is_identity(n) && leat_is_loop_switch(n->in[0].node) && n->in[0].index == 1 &&
             !c->pivot_for_body)
        c->pivot_for_body = n;
    else if (leat_node_is(n, "StackPopV2")) /* only gradient loops pop */
        c->is_grad = true;
    if (!leat_is_exit(n))
        return;
    leat_out *exits = leat_arena_array(&n->graph->arena, leat_out, c->n_exits + 1);
    if (c->n_exits)
        memcpy(exits, c->exits, sizeof(*exits) * (size_t)c->n_exits);
    exits[c->n_exits++] = (leat_out){n, 0};
    c->exits = exits;
}

leat_status leat_ctx_rebuild(leat_graph *g)
{
    for (int i = 0; i < g->n_nodes; i++) {
        leat_node *n = g->nodes[i];
        if (n->ctx)
            continue;
        if (leat_is_enter(n))
            n->ctx = of_enter(n);
        else if (leat_is_switch(n))
            n->ctx = of_switch(n);
        else if (leat_is_merge(n))
            n->ctx = of_merge(n);
        else
            n->ctx = of_inputs(n);
        if (n->ctx)
            note(n);
    }
    for (leat_control_ctx *c = g->contexts; c; c = c->next) {
        LEAT_REQUIRE(!c->is_loop || (c->loop_cond.node && c->pivot_for_pred), INVALID_ARGUMENT,
                     "The loop of frame '%s' is not well-formed: it has no %s", c->frame,
                     c->loop_cond.node ? "variable" : "LoopCond");
    }
    return NULL;
}
