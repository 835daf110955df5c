/* copies.c -- copies between a device's memory and the host's, as nodes of the device's graph.
 *
 * 1. A kernel says where it wants each input and makes each output (places.c).
 * 2. Kernels that hand values on without looking at them take what comes. Those that hand values on
 *    to each other (the flow ops of a loop) agree: in the device's memory, if any value comes from
 *    there, else in the host's. So a loop's counter that only kernels on the host read stays in the
 *    host's memory.
 * 3. A tensor that leaves this process leaves from the host's memory. A tensor that comes from
 *    another device is brought where it is wanted by its _Recv.
 * 4. An edge between different memories gets a copy, one for all users of an output. The copy of a
 *    constant is kept from step to step.
 */
#include <stdlib.h>
#include <string.h>

#include "core/alloc.h"
#include "runtime/plan.h"
#include "runtime/send_recv.h"

typedef struct copier {
    leat_graph *g;
    int n_nodes; /* without the copies */
    uint8_t **places;
    bool *on_device;    /* by node id: what it hands on is in the device's memory */
    leat_node **copies; /* by output: its copy in the other memory, or NULL */
    int *first;         /* by node id: index of its first output in `copies` */
} copier;

static bool is_here(const char *device, leat_device *const *all, int n_all)
{
    for (int i = 0; i < n_all; i++)
        if (strcmp(all[i]->name, device) == 0)
            return true;
    return false;
}

/* Whether the receiver is another process, or the client of a session. */
static bool leaves(const leat_node *send, leat_device *const *all, int n_all)
{
    return leat_node_bool(send, "client_terminated") ||
           !is_here(leat_node_string(send, "recv_device"), all, n_all);
}

/* False if some node has no kernel: leat_kernel_bind will give the error. */
static bool find_places(copier *c, const leat_device *d, leat_device *const *all, int n_all)
{
    for (int i = 0; i < c->n_nodes; i++) {
        const leat_node *n = c->g->nodes[i];
        const leat_kernel_def *def;
        bool via_float;
        if (n->dead)
            continue;
        leat_status s = leat_kernel_find(n, d->kind->type, &def, &via_float);
        if (s) {
            leat_status_free(s);
            return false;
        }
        c->places[i] = leat_xcalloc((size_t)(n->n_in + n->n_out) + 1, 1);
        leat_kernel_places(def, n, c->places[i]);
        if (leat_node_role(n) == LEAT_ROLE_SEND && leaves(n, all, n_all))
            c->places[i][0] = LEAT_PLACE_HOST;
    }
    return true;
}

/* Tensors that no kernel wants in the device's memory are received into the host's. */
static void receive_on_host(copier *c)
{
    bool *wanted = leat_new_array(bool, c->n_nodes + 1);
    for (int i = 0; i < c->n_nodes; i++) {
        const leat_node *n = c->g->nodes[i];
        for (int j = 0; !n->dead && j < n->n_in; j++)
            wanted[n->in[j].node->id] |= c->places[i][j] != LEAT_PLACE_HOST;
    }
    for (int i = 0; i < c->n_nodes; i++) {
        leat_node *n = c->g->nodes[i];
        if (n->dead || wanted[i] || leat_node_role(n) != LEAT_ROLE_RECV)
            continue;
        c->places[i][0] = LEAT_PLACE_HOST;
        leat_node_set_attr(n, &(leat_attr){.name = LEAT_ON_HOST, .kind = LEAT_ARG_BOOL, .i = 1});
    }
    free(wanted);
}

static bool comes_from_device(const copier *c, leat_out x)
{
    int place = c->places[x.node->id][x.node->n_in + x.index];
    return place == LEAT_PLACE_ANY ? c->on_device[x.node->id] : place == LEAT_PLACE_DEVICE;
}

/* One round of rule 2. True if anything has changed. */
static bool agree(copier *c)
{
    bool changed = false;
    for (int i = 0; i < c->n_nodes; i++) {
        const leat_node *n = c->g->nodes[i];
        for (int j = 0; !n->dead && j < n->n_in; j++) {
            leat_out x = n->in[j];
            if (c->places[i][j] != LEAT_PLACE_ANY)
                continue;
            if (comes_from_device(c, x) && !c->on_device[i]) {
                c->on_device[i] = changed = true;
            } else if (c->places[x.node->id][x.node->n_in + x.index] == LEAT_PLACE_ANY &&
                       c->on_device[i] && !c->on_device[x.node->id]) {
                c->on_device[x.node->id] = changed = true;
            }
        }
    }
    return changed;
}

static leat_status copy_of(copier *c, leat_out x, bool to_device, leat_node **out)
{
    leat_node **made = &c->copies[c->first[x.node->id] + x.index];
    if (!*made) {
        leat_attr attrs[] = {
            {.name = "T", .kind = LEAT_ARG_TYPE, .i = leat_dtype_base(leat_out_dtype(x))},
            {.name = "keep",
             .kind = LEAT_ARG_BOOL,
             .i = leat_node_role(x.node) == LEAT_ROLE_CONST}};
        leat_node_spec spec = {
            .op = to_device ? "_CopyToDevice" : "_CopyToHost",
            .name = leat_arena_printf(&c->g->arena, "_copy_%d_%s", x.index, x.node->name),
            .in = &x,
            .n_in = 1,
            .attrs = attrs,
            .n_attrs = to_device ? 2 : 1,
            .device = x.node->device,
            .exact_name = true};
        LEAT_TRY(leat_graph_add(c->g, &spec, made));
    }
    *out = *made;
    return NULL;
}

static leat_status connect(copier *c, leat_node *n)
{
    for (int j = 0; j < n->n_in; j++) {
        int place = c->places[n->id][j];
        bool wants_device =
            place == LEAT_PLACE_ANY ? c->on_device[n->id] : place == LEAT_PLACE_DEVICE;
        leat_node *copy;
        if (wants_device == comes_from_device(c, n->in[j]))
            continue;
        LEAT_TRY(copy_of(c, n->in[j], wants_device, &copy));
        n->in[j] = (leat_out){copy, 0};
    }
    return NULL;
}

leat_status leat_insert_copies(leat_graph *g, const leat_device *d, leat_device *const *all,
                               int n_all)
{
    copier c = {.g = g, .n_nodes = g->n_nodes};
    c.places = leat_new_array(uint8_t *, c.n_nodes + 1);
    c.on_device = leat_new_array(bool, c.n_nodes + 1);
    c.first = leat_new_array(int, c.n_nodes + 1);
    for (int i = 0; i < c.n_nodes; i++)
        c.first[i + 1] = c.first[i] + g->nodes[i]->n_out;
    c.copies = leat_new_array(leat_node *, c.first[c.n_nodes] + 1);
    leat_status s = NULL;
    if (find_places(&c, d, all, n_all)) {
        receive_on_host(&c);
        while (agree(&c))
            ;
        for (int i = 0; i < c.n_nodes && !s; i++)
            if (!g->nodes[i]->dead)
                s = connect(&c, g->nodes[i]);
    }
    for (int i = 0; i < c.n_nodes; i++)
        free(c.places[i]);
    free(c.places);
    free(c.on_device);
    free(c.first);
    free(c.copies);
    return s;
}
