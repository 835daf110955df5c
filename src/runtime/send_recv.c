/* send_recv.c -- see send_recv.h. */
#include "runtime/send_recv.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "core/element.h"
#include "core/strbuf.h"
#include "runtime/step.h"

bool leat_edge_grouped(const leat_node *n)
{
    return leat_node_attr(n, "_wave") && leat_node_attr(n, "_process");
}

leat_status leat_edge_init(const leat_node *n, void *state)
{
    leat_edge_state *e = state;
    leat_strbuf b = {0};
    leat_strbuf_printf(&b, "%s;%016" PRIx64 ";%s;%s;0:0", leat_node_string(n, "send_device"),
                       (uint64_t)leat_node_int(n, "send_device_incarnation"),
                       leat_node_string(n, "recv_device"), leat_node_string(n, "tensor_name"));
    e->text = leat_strbuf_take(&b);
    e->key = leat_rendezvous_key_of(e->text);
    e->key.grouped = leat_edge_grouped(n);
    e->on_host = leat_node_attr(n, LEAT_ON_HOST) != NULL;
    return NULL;
}

void leat_edge_release(void *state)
{
    free(((leat_edge_state *)state)->text);
}

/* The key of an iteration, whose text is written to the buffer. */
static leat_rendezvous_key key_of(const leat_edge_state *e, uint64_t frame, int64_t iteration,
                                  leat_strbuf *b)
{
    if (frame == 0)
        return e->key;
    leat_strbuf_add(b, e->text, strlen(e->text) - strlen("0:0"));
    leat_strbuf_printf(b, "%" PRIu64 ":%" PRId64, frame, iteration);
    leat_rendezvous_key key = leat_rendezvous_key_of(leat_strbuf_text(b));
    key.passing = true;
    return key;
}

static leat_status send(const leat_edge_state *e, leat_step *step, uint64_t frame,
                        int64_t iteration, const leat_tensor *t, bool dead)
{
    leat_rendezvous *r = step->rendezvous;
    LEAT_REQUIRE(r, INTERNAL, "A step without a rendezvous sends %s", e->text);
    leat_strbuf b = {0};
    leat_rendezvous_key key = key_of(e, frame, iteration, &b);
    leat_status s = r->ops->send(r, &key, leat_tensor_ref(t), dead);
    leat_strbuf_release(&b);
    return s;
}

leat_status leat_send_run(leat_kernel *k)
{
    return send(leat_kernel_state(k), k->step, k->frame, k->iteration, leat_kernel_in(k, 0), false);
}

void leat_send_dead(const leat_bound *b, leat_step *step, uint64_t frame, int64_t iteration)
{
    leat_step_fail(step, send(b->state, step, frame, iteration, NULL, true));
}

static void moved(void *arg, leat_status s, leat_tensor *t)
{
    leat_kernel *k = arg;
    k->out[0].tensor = t;
    leat_kernel_done(k, s);
}

/* The tensor is in the memory of the device that sent it, or in the host's. */
static void received(void *arg, leat_status s, leat_tensor *t, bool dead)
{
    leat_kernel *k = arg;
    const leat_edge_state *e = leat_kernel_state(k);
    leat_device *to =
        k->device->kind->host_memory || e->on_host || (t && leat_dtype_managed(t->dtype))
            ? NULL
            : k->device;
    if (t && t->count && leat_tensor_memory(t) != (to ? to->allocator : NULL)) {
        leat_tensor_move(t, to, moved, k);
        leat_tensor_unref(t);
        return;
    }
    k->out[0].tensor = t;
    k->out[0].dead = dead;
    leat_kernel_done(k, s);
}

void leat_recv_run(leat_kernel *k)
{
    const leat_edge_state *e = leat_kernel_state(k);
    leat_rendezvous *r = k->step->rendezvous;
    if (!r) {
        leat_kernel_done(k,
                         leat_error(INTERNAL, "A step without a rendezvous receives %s", e->text));
        return;
    }
    leat_strbuf b = {0};
    leat_rendezvous_key key = key_of(e, k->frame, k->iteration, &b);
    r->ops->recv(r, &key, received, k);
    leat_strbuf_release(&b);
}
