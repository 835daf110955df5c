/* send_recv.c -- see send_recv.h. */
#include "runtime/send_recv.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>

#include "core/strbuf.h"
#include "runtime/step.h"

leat_status leat_edge_init(const leat_node *n, void *state)
{
    leat_edge_state *e = state;
    leat_strbuf b = {0};
    leat_strbuf_printf(&b, "%s;%016" PRIx64 ";%s;%s;0:0", leat_node_string(n, "send_device"),
                       (uint64_t)leat_node_int(n, "send_device_incarnation"),
                       leat_node_string(n, "recv_device"), leat_node_string(n, "tensor_name"));
    e->text = leat_strbuf_take(&b);
    e->key = leat_rendezvous_key_of(e->text);
    e->key.grouped = leat_node_attr(n, "_wave") != NULL;
    return NULL;
}

void leat_edge_release(void *state)
{
    free(((leat_edge_state *)state)->text);
}

leat_status leat_send_run(leat_kernel *k)
{
    leat_edge_state *e = leat_kernel_state(k);
    leat_rendezvous *r = k->step->rendezvous;
    LEAT_REQUIRE(r, INTERNAL, "A step without a rendezvous sends %s", e->text);
    return r->ops->send(r, &e->key, leat_tensor_ref(leat_kernel_in(k, 0)), false);
}

void leat_send_dead(const leat_bound *b, leat_step *step)
{
    leat_edge_state *e = b->state;
    leat_rendezvous *r = step->rendezvous;
    leat_step_fail(step, r ? r->ops->send(r, &e->key, NULL, true)
                           : leat_error(INTERNAL, "A step without a rendezvous sends %s", e->text));
}

static void received(void *arg, leat_status s, leat_tensor *t, bool dead)
{
    leat_kernel *k = arg;
    k->out[0].tensor = t;
    k->out[0].dead = dead;
    leat_kernel_done(k, s);
}

void leat_recv_run(leat_kernel *k)
{
    leat_edge_state *e = leat_kernel_state(k);
    leat_rendezvous *r = k->step->rendezvous;
    if (r)
        r->ops->recv(r, &e->key, received, k);
    else
        leat_kernel_done(k,
                         leat_error(INTERNAL, "A step without a rendezvous receives %s", e->text));
}
