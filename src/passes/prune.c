/* prune.c -- copies the nodes that a run needs: all on which the fetches and targets depend, up to
 * the feeds. */
#include <stdlib.h>
#include <string.h>

#include "core/alloc.h"
#include "core/buffer.h"
#include "passes/pass.h"

typedef struct pruner {
    leat_compile *c;
    const leat_request *q;
    const leat_graph *from;
    leat_node **copy; /* by id in the source; NULL: not needed */
    int *stack, n_stack;
    leat_node **args; /* one for each feed */
    int *feed_of;     /* by id in the source: 1 + the last feed of one of its outputs, or 0 */
    int *feed_before; /* by feed: 1 + the feed of the same node before it, or 0 */
} pruner;

/* The feed of this output, or -1. */
static int feed_of(const pruner *p, leat_out x)
{
    int i = p->feed_of[x.node->id] - 1;
    while (i >= 0 && p->q->feeds[i].index != x.index)
        i = p->feed_before[i] - 1;
    return i;
}

static leat_status index_feeds(pruner *p)
{
    p->feed_of = leat_new_array(int, p->from->n_nodes + 1);
    p->feed_before = leat_new_array(int, p->q->n_feeds + 1);
    for (int i = 0; i < p->q->n_feeds; i++) {
        const leat_out x = p->q->feeds[i];
        LEAT_REQUIRE(feed_of(p, x) < 0, INVALID_ARGUMENT, "Tensor %s:%d is fed twice", x.node->name,
                     x.index);
        p->feed_before[i] = p->feed_of[x.node->id];
        p->feed_of[x.node->id] = i + 1;
    }
    return NULL;
}

static void need(pruner *p, const leat_node *n)
{
    if (p->copy[n->id])
        return;
    p->copy[n->id] = leat_node_clone(p->c->graph, n);
    p->stack[p->n_stack++] = n->id;
}

/* The feed that satisfies a control edge from n: a placeholder that is fed does not run. */
static int fed_control(const pruner *p, leat_node *n)
{
    return !n->n_in && leat_node_flag(n, LEAT_OP_PLACEHOLDER) ? feed_of(p, (leat_out){n, 0}) : -1;
}

static leat_status need_all(pruner *p)
{
    for (int visited = 0; p->n_stack; visited++) {
        LEAT_TRY(leat_pass_stopped(p->c, visited));
        const leat_node *n = p->from->nodes[p->stack[--p->n_stack]];
        for (int i = 0; i < n->n_in; i++)
            if (n->in[i].node && feed_of(p, n->in[i]) < 0)
                need(p, n->in[i].node);
        for (int i = 0; i < n->n_controls; i++)
            if (fed_control(p, n->controls[i]) < 0)
                need(p, n->controls[i]);
    }
    return NULL;
}

static leat_status end_node(pruner *p, const char *op, const char *name, leat_dtype t, int index,
                            leat_out in, leat_node **out)
{
    const leat_attr attrs[2] = {{.name = "T", .kind = LEAT_ARG_TYPE, .i = t},
                                {.name = "index", .kind = LEAT_ARG_INT, .i = index}};
    leat_node_spec spec = {.op = op,
                           .name = name,
                           .in = &in,
                           .n_in = in.node != NULL,
                           .attrs = attrs,
                           .n_attrs = 2,
                           .exact_name = true};
    return leat_graph_add(p->c->graph, &spec, out);
}

static leat_status make_args(pruner *p)
{
    for (int i = 0; i < p->q->n_feeds; i++) {
        leat_out x = p->q->feeds[i];
        leat_dtype t = leat_dtype_base(leat_out_dtype(x));
        char *name =
            leat_arena_printf(&p->c->graph->arena, "_arg_%s_%d_%d", x.node->name, x.index, i);
        LEAT_TRY(end_node(p, p->q->feed_later ? "_LateArg" : "_Arg", name, t, i, (leat_out){0},
                          &p->args[i]));
        p->args[i]->out_shapes[0] = x.node->out_shapes[x.index]; /* checked when a value is fed */
        const char *at = p->c->client_device ? p->c->client_device : x.node->device;
        p->args[i]->device = leat_graph_device(p->c->graph, at);
    }
    return NULL;
}

static leat_out mapped(const pruner *p, leat_out x)
{
    int feed = feed_of(p, x);
    return feed >= 0 ? (leat_out){p->args[feed], 0} : (leat_out){p->copy[x.node->id], x.index};
}

/* Sets the inputs of the copies, which are copies, too. */
static leat_status connect(pruner *p)
{
    for (int id = 0; id < p->from->n_nodes; id++) {
        leat_node *n = p->copy[id];
        const leat_node *was = p->from->nodes[id];
        LEAT_TRY(leat_pass_stopped(p->c, id));
        if (!n)
            continue;
        for (int i = 0; i < was->n_in; i++) {
            LEAT_REQUIRE(was->in[i].node, INVALID_ARGUMENT, "Node %s lacks input %d", was->name, i);
            n->in[i] = mapped(p, was->in[i]);
            LEAT_REQUIRE(!leat_dtype_is_ref(leat_out_dtype(was->in[i])) ||
                             leat_dtype_is_ref(leat_out_dtype(n->in[i])) ||
                             feed_of(p, was->in[i]) >= 0,
                         INTERNAL, "Node %s lost a reference", n->name);
        }
        leat_control_adder controls = leat_control_adder_of(n);
        for (int i = 0; i < was->n_controls; i++) {
            int feed = fed_control(p, was->controls[i]);
            leat_control_adder_add(&controls,
                                   feed >= 0 ? p->args[feed] : p->copy[was->controls[i]->id]);
        }
    }
    for (int i = 0; i < p->q->n_fetches; i++) {
        leat_out x = p->q->fetches[i];
        leat_node *ret;
        char *name =
            leat_arena_printf(&p->c->graph->arena, "_retval_%s_%d_%d", x.node->name, x.index, i);
        LEAT_TRY(end_node(p, "_Retval", name, leat_dtype_base(leat_out_dtype(x)), i, mapped(p, x),
                          &ret));
        const char *at = p->c->client_device ? p->c->client_device : x.node->device;
        ret->device = leat_graph_device(p->c->graph, at);
    }
    return NULL;
}

/* Shapes were inferred while the graph was built, some from the values of constants. If such a
 * constant is fed, the shapes of nodes that depend on it may be wrong. */
static void forget_shapes(const pruner *p)
{
    const leat_graph *g = p->c->graph;
    bool any = false, *fed = leat_new_array(bool, g->n_nodes + 1);
    for (int i = 0; i < p->q->n_feeds; i++) {
        leat_dtype t = p->args[i]->out_types[0];
        const leat_node *was = p->q->feeds[i].node;
        fed[p->args[i]->id] =
            (t == LEAT_INT32 || t == LEAT_INT64) && !leat_node_flag(was, LEAT_OP_PLACEHOLDER);
        any |= fed[p->args[i]->id];
    }
    int n = 0;
    leat_node **order = any ? leat_pass_order(g, &n) : NULL;
    for (int i = 0; i < n; i++) {
        leat_node *x = order[i];
        for (int j = 0; j < x->n_in; j++)
            fed[x->id] |= fed[x->in[j].node->id];
        for (int j = 0; fed[x->id] && x->n_in && j < x->n_out; j++)
            x->out_shapes[j] = leat_shape_unknown();
    }
    free(order);
    free(fed);
}

/* Compiles all of g: the nodes that no other node uses are the targets. */
void leat_pass_take(leat_compile *c, leat_graph *g)
{
    c->graph = g;
    for (int i = 0; i < g->n_nodes; i++)
        g->nodes[i]->wanted = true;
    for (int i = 0; i < g->n_nodes; i++) {
        const leat_node *n = g->nodes[i];
        for (int j = 0; j < n->n_in; j++)
            n->in[j].node->wanted = false;
        for (int j = 0; j < n->n_controls; j++)
            n->controls[j]->wanted = false;
    }
}

leat_status leat_pass_prune(leat_compile *c, const leat_request *q)
{
    pruner p = {.c = c, .q = q, .from = c->source};
    c->graph = leat_graph_new();
    c->graph->producer = c->source->producer;
    p.copy = leat_new_array(leat_node *, p.from->n_nodes + 1);
    p.stack = leat_new_array(int, p.from->n_nodes + 1);
    p.args = leat_new_array(leat_node *, q->n_feeds + 1);
    leat_status s = index_feeds(&p);
    if (!s)
        s = make_args(&p);
    for (int i = 0; i < q->n_fetches && !s; i++)
        if (feed_of(&p, q->fetches[i]) < 0)
            need(&p, q->fetches[i].node);
    for (int i = 0; i < q->n_targets && !s; i++) {
        need(&p, q->targets[i].node);
        p.copy[q->targets[i].node->id]->wanted = true;
    }
    if (!s)
        s = need_all(&p);
    if (!s)
        s = connect(&p);
    if (!s)
        forget_shapes(&p);
    free(p.copy);
    free(p.stack);
    free(p.args);
    free(p.feed_of);
    free(p.feed_before);
    return s;
}
