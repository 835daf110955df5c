/* control_loops.c -- a loop over several devices: every device that takes part must know the number
 * of iterations. As in TensorFlow, a device that receives values from other devices inside a frame
 * also gets a control loop for that frame,
 *
 *     Enter -> Merge -> Switch(LoopCond) -> NextIteration -> Merge
 *
 * whose Merge runs once in each iteration, the last one included; the _Recv nodes of the frame
 * depend on it. The condition is received like any other value. For nested frames, the inner Enter
 * depends on the outer Merge.
 *
 * The nodes are named "_cloop...". A graph that has such nodes already got its control loops when
 * it was partitioned by task.
 */
#include <stdlib.h>
#include <string.h>

#include "core/alloc.h"
#include "core/map.h"
#include "core/strbuf.h"
#include "passes/pass.h"

typedef struct frame {
    const char *name;
    int parent;             /* -1: the root, which is frame 0 */
    const leat_node *enter; /* an Enter of the frame */
    leat_node *cond;
} frame;

/* One frame on one device. */
typedef struct place {
    leat_node *merge; /* of the control loop; NULL if there is none */
    bool goes_round;  /* A node of the graph itself runs in the frame's iterations there. */
} place;

typedef struct maker {
    leat_graph *graph;
    int n_nodes; /* number of nodes before the pass */
    frame *frames;
    int n_frames;
    leat_map by_name; /* "number of the parent;name" -> frame */
    int *leads_to;    /* by node id: the frame of its outputs */
    leat_map places;  /* "number of the frame;device" -> place, in the graph's arena */
    leat_strbuf key;  /* the last one that was looked for in places */
    int n_named;
} maker;

bool leat_is_control_loop(const leat_node *n)
{
    return strncmp(n->name, "_cloop", 6) == 0;
}

static int child_frame(maker *m, const leat_node *enter, int parent)
{
    const char *name = leat_node_string(enter, "frame_name");
    leat_strbuf key = {0};
    leat_strbuf_printf(&key, "%d;%s", parent, name);
    frame *f = leat_map_get(&m->by_name, leat_strbuf_text(&key));
    if (!f) {
        f = &m->frames[m->n_frames++];
        *f = (frame){.name = name, .parent = parent, .enter = enter};
        leat_map_put(&m->by_name, leat_strbuf_text(&key), f);
    }
    leat_strbuf_release(&key);
    return (int)(f - m->frames);
}

static void find_frames(maker *m)
{
    int n;
    leat_node **order = leat_pass_order(m->graph, &n);
    m->frames[m->n_frames++] = (frame){.name = "", .parent = -1};
    for (int i = 0; i < n; i++) {
        leat_node *x = order[i];
        int f = 0;
        for (int j = 0; j < x->n_in + x->n_controls && !f; j++) {
            const leat_node *from = j < x->n_in ? x->in[j].node : x->controls[j - x->n_in];
            f = m->leads_to[from->id]; /* of a NextIteration, which comes later: 0 */
        }
        if (leat_node_role(x) == LEAT_ROLE_LOOP_COND)
            m->frames[f].cond = x;
        if (leat_is_enter(x))
            f = child_frame(m, x, f);
        else if (leat_is_exit(x) && f)
            f = m->frames[f].parent;
        m->leads_to[x->id] = f;
    }
    free(order);
}

static leat_status add(maker *m, const char *op, const leat_out *in, int n_in,
                       const leat_attr *attrs, int n_attrs, const char *device, leat_node **out)
{
    leat_node_spec spec = {
        .op = op,
        .name = leat_arena_printf(&m->graph->arena, "_cloop_%s_%d", op, m->n_named++),
        .in = in,
        .n_in = n_in,
        .attrs = attrs,
        .n_attrs = n_attrs,
        .device = device,
        .exact_name = true};
    return leat_graph_add(m->graph, &spec, out);
}

static leat_status start(maker *m, const char *device, leat_node **out)
{
    leat_tensor *t;
    LEAT_TRY(leat_tensor_new(LEAT_FLOAT, leat_shape(0), &t));
    const leat_attr attrs[] = {{.name = "dtype", .kind = LEAT_ARG_TYPE, .i = LEAT_FLOAT},
                               {.name = "value", .kind = LEAT_ARG_TENSOR, .tensor = t}};
    leat_status s = add(m, "Const", NULL, 0, attrs, 2, device, out);
    leat_tensor_unref(t);
    return s;
}

/* Makes the place if there is none. */
static place *place_of(maker *m, int f, const char *device)
{
    leat_strbuf_clear(&m->key);
    leat_strbuf_printf(&m->key, "%d;%s", f, device);
    place *p = leat_map_get_n(&m->places, m->key.s, m->key.n);
    if (!p) {
        p = leat_arena_new(&m->graph->arena, place);
        leat_map_put_n(&m->places, m->key.s, m->key.n, p);
    }
    return p;
}

static void find_rounds(maker *m)
{
    for (int i = 0; i < m->n_nodes; i++) {
        const leat_node *n = m->graph->nodes[i];
        if (!n->dead && leat_is_next_iteration(n))
            place_of(m, m->leads_to[i], n->device)->goes_round = true;
    }
}

static leat_status loop_for(maker *m, int f, const char *device, leat_node **merge_out);

/* A device that only sends loop invariants must iterate, too, to send them in every iteration. */
static leat_status sender_goes_round(maker *m, int f, const char *device)
{
    leat_node *merge;
    const place *p = place_of(m, f, device);
    return p->merge || p->goes_round ? NULL : loop_for(m, f, device, &merge);
}

static leat_status make_loop(maker *m, int f, const char *device, leat_node *from,
                             leat_node **merge_out)
{
    const frame *x = &m->frames[f];
    LEAT_REQUIRE(x->cond, INVALID_ARGUMENT, "A cross-device loop must have a pivot predicate: %s",
                 x->name);
    const leat_attr type = {.name = "T", .kind = LEAT_ARG_TYPE, .i = LEAT_FLOAT};
    const leat_attr enter_attrs[] = {
        type,
        {.name = "frame_name", .kind = LEAT_ARG_STRING, .s = x->name, .n = (int)strlen(x->name)},
        {.name = "parallel_iterations",
         .kind = LEAT_ARG_INT,
         .i = leat_node_int(x->enter, "parallel_iterations")}};
    const leat_attr merge_attrs[] = {type, {.name = "N", .kind = LEAT_ARG_INT, .i = 2}};
    leat_node *enter, *merge, *fork, *next;
    LEAT_TRY(add(m, "Enter", &(leat_out){from, 0}, 1, enter_attrs, 3, device, &enter));
    const leat_out both[2] = {{enter, 0}, {enter, 0}};
    LEAT_TRY(add(m, "Merge", both, 2, merge_attrs, 2, device, &merge));
    const leat_out chosen[2] = {{merge, 0}, {x->cond, 0}};
    LEAT_TRY(add(m, "Switch", chosen, 2, &type, 1, device, &fork));
    LEAT_TRY(add(m, "NextIteration", &(leat_out){fork, 1}, 1, &type, 1, device, &next));
    merge->in[1] = (leat_out){next, 0};
    if (strcmp(x->cond->device, device) != 0)
        leat_node_add_control(fork, merge); /* the _Recv nodes wait for it */
    *merge_out = merge;
    return NULL;
}

/* The Merge of a frame's control loop on a device; made, from the outermost frame in, if there is
 * none. */
static leat_status loop_for(maker *m, int f, const char *device, leat_node **merge_out)
{
    int path[64], depth = 0;
    leat_node *from = NULL;
    for (int at = f; at > 0 && !(from = place_of(m, at, device)->merge);
         at = m->frames[at].parent) {
        LEAT_REQUIRE(depth < 64, UNIMPLEMENTED, "Loops on several devices, nested too deep");
        path[depth++] = at;
    }
    if (!from)
        LEAT_TRY(start(m, device, &from));
    while (depth) {
        int at = path[--depth];
        LEAT_TRY(make_loop(m, at, device, from, &from));
        place_of(m, at, device)->merge = from;
        if (strcmp(m->frames[at].cond->device, device) != 0)
            LEAT_TRY(sender_goes_round(m, at, m->frames[at].cond->device));
    }
    *merge_out = from;
    return NULL;
}

static leat_status add_loops(maker *m)
{
    for (int i = 0; i < m->n_nodes; i++) {
        leat_node *to = m->graph->nodes[i];
        int n_edges = to->dead ? 0 : to->n_in + to->n_controls;
        const leat_node *added = NULL; /* the Merge that was added last: that of all edges */
        for (int j = 0; j < n_edges; j++) {
            const leat_node *from = j < to->n_in ? to->in[j].node : to->controls[j - to->n_in];
            int f = m->leads_to[from->id];
            if (f == 0 || strcmp(from->device, to->device) == 0)
                continue;
            leat_node *merge = NULL;
            LEAT_TRY(loop_for(m, f, to->device, &merge));
            if (merge != added)
                leat_node_add_control(to, merge);
            added = merge;
            LEAT_TRY(sender_goes_round(m, f, from->device));
        }
    }
    return NULL;
}

leat_status leat_pass_control_loops(leat_compile *c)
{
    leat_graph *g = c->graph;
    bool any = false;
    for (int i = 0; i < g->n_nodes; i++) {
        if (g->nodes[i]->dead)
            continue;
        if (leat_is_control_loop(g->nodes[i]))
            return NULL;
        any |= leat_is_enter(g->nodes[i]);
    }
    if (!any)
        return NULL;
    maker m = {.graph = g,
               .n_nodes = g->n_nodes,
               .frames = leat_new_array(frame, g->n_nodes + 2),
               .leads_to = leat_new_array(int, g->n_nodes + 1)};
    find_frames(&m);
    find_rounds(&m);
    leat_status s = add_loops(&m);
    leat_map_release(&m.by_name);
    free(m.frames);
    free(m.leads_to);
    leat_map_release(&m.places);
    leat_strbuf_release(&m.key);
    return s;
}
