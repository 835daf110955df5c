/* send_tensors.c -- SendTensors' request to bytes and back. */
#include "cluster/messages/fields.h"
#include "cluster/messages/messages.h"

enum { MAX_TENSORS = 1 << 16 };

void leat_send_tensors_request_encode(leat_outgoing *o, const leat_send_tensors_request *q)
{
    leat_put_int(&o->text, SEND_TENSORS_REQUEST_STEP_ID, q->step_id);
}

leat_status leat_send_tensors_request_add(leat_outgoing *o, const char *key, leat_tensor *t)
{
    if (t)
        return leat_put_named(o, SEND_TENSORS_REQUEST_TENSOR, key, t);
    leat_put_text(&o->text, SEND_TENSORS_REQUEST_DEAD_KEY, key);
    return NULL;
}

static leat_status read_field(void *message, const leat_wire_field *f)
{
    leat_send_tensors_request *q = message;
    switch (f->number) {
    case SEND_TENSORS_REQUEST_STEP_ID:
        return leat_get_int(f, &q->step_id);
    case SEND_TENSORS_REQUEST_TENSOR:
        return leat_named_tensors_add(&q->tensor, f);
    case SEND_TENSORS_REQUEST_DEAD_KEY:
        return leat_names_add(&q->dead_key, f);
    }
    return NULL;
}

leat_status leat_send_tensors_request_decode(const leat_incoming *in, leat_send_tensors_request *q)
{
    LEAT_TRY(leat_decode(in, read_field, q));
    LEAT_REQUIRE(q->tensor.n + q->dead_key.n <= MAX_TENSORS, INVALID_ARGUMENT,
                 "SendTensors has more than 65,536 tensors");
    return NULL;
}

void leat_send_tensors_request_release(leat_send_tensors_request *q)
{
    leat_named_tensors_release(&q->tensor);
    leat_names_release(&q->dead_key);
    *q = (leat_send_tensors_request){0};
}
