/* recv_tensor.c -- requests and responses of RecvTensor and RecvTensors to bytes and back. */
#include "cluster/messages/fields.h"
#include "cluster/messages/messages.h"

enum { MAX_KEYS = 1 << 16 };

/* ---- The request of both ---- */

void leat_recv_tensor_request_encode(leat_outgoing *o, const leat_recv_tensor_request *q)
{
    leat_put_int(&o->text, RECV_TENSOR_REQUEST_STEP_ID, q->step_id);
}

void leat_recv_tensor_request_add_key(leat_outgoing *o, const char *key)
{
    leat_put_text(&o->text, RECV_TENSOR_REQUEST_RENDEZVOUS_KEY, key);
}

static leat_status read_request_field(void *message, const leat_wire_field *f)
{
    leat_recv_tensor_request *q = message;
    switch (f->number) {
    case RECV_TENSOR_REQUEST_STEP_ID:
        return leat_get_int(f, &q->step_id);
    case RECV_TENSOR_REQUEST_RENDEZVOUS_KEY:
        LEAT_REQUIRE(q->rendezvous_key.n < MAX_KEYS, INVALID_ARGUMENT,
                     "More than 65,536 tensors are wanted");
        return leat_names_add(&q->rendezvous_key, f);
    }
    return NULL;
}

leat_status leat_recv_tensor_request_decode(const leat_incoming *in, leat_recv_tensor_request *q)
{
    return leat_decode(in, read_request_field, q);
}

void leat_recv_tensor_request_release(leat_recv_tensor_request *q)
{
    leat_names_release(&q->rendezvous_key);
    *q = (leat_recv_tensor_request){0};
}

/* ---- RecvTensor's response ---- */

leat_status leat_recv_tensor_response_encode(leat_outgoing *o, const leat_recv_tensor_response *r)
{
    leat_put_int(&o->text, RECV_TENSOR_RESPONSE_IS_DEAD, r->is_dead);
    leat_put_int(&o->text, RECV_TENSOR_RESPONSE_SEND_START_MICROS, r->send_start_micros);
    return r->tensor ? leat_put_tensor(o, RECV_TENSOR_RESPONSE_TENSOR, r->tensor) : NULL;
}

static leat_status read_response_field(void *message, const leat_wire_field *f)
{
    leat_recv_tensor_response *r = message;
    switch (f->number) {
    case RECV_TENSOR_RESPONSE_TENSOR:
        leat_tensor_unref(r->tensor);
        r->tensor = NULL;
        return leat_get_tensor(f, &r->tensor);
    case RECV_TENSOR_RESPONSE_IS_DEAD:
        return leat_get_bool(f, &r->is_dead);
    case RECV_TENSOR_RESPONSE_SEND_START_MICROS:
        return leat_get_int(f, &r->send_start_micros);
    }
    return NULL;
}

leat_status leat_recv_tensor_response_decode(const leat_incoming *in, leat_recv_tensor_response *r)
{
    LEAT_TRY(leat_decode(in, read_response_field, r));
    LEAT_REQUIRE(r->tensor || r->is_dead, DATA_LOSS, "The reply to RecvTensor has no tensor");
    return NULL;
}

void leat_recv_tensor_response_release(leat_recv_tensor_response *r)
{
    leat_tensor_unref(r->tensor);
    *r = (leat_recv_tensor_response){0};
}

/* ---- RecvTensors' response ---- */

leat_status leat_recv_tensors_response_add(leat_outgoing *o, leat_tensor *t)
{
    if (t)
        return leat_put_tensor(o, RECV_TENSORS_RESPONSE_TENSOR, t);
    leat_put_int(&o->text, RECV_TENSORS_RESPONSE_IS_DEAD, 1);
    return NULL;
}

bool leat_recv_tensors_response_next(leat_cursor *c, leat_tensor **t_out, leat_status *s)
{
    leat_wire_field f;
    while (leat_next_field(c, &f, s)) {
        if (f.number == RECV_TENSORS_RESPONSE_TENSOR) {
            *s = leat_get_tensor(&f, t_out);
            return !*s;
        }
        if (f.number == RECV_TENSORS_RESPONSE_IS_DEAD) {
            bool dead;
            *t_out = NULL;
            *s = leat_get_bool(&f, &dead);
            return !*s;
        }
    }
    return false;
}
