/* run_callable.c -- RunCallable's request from bytes, and its response to bytes. The other
 * directions are not needed: Leat's clients make no callables. */
#include <stdlib.h>

#include "cluster/messages/fields.h"
#include "cluster/messages/messages.h"
#include "core/alloc.h"

static leat_status read_request_field(void *message, const leat_wire_field *f)
{
    leat_run_callable_request *q = message;
    switch (f->number) {
    case RUN_CALLABLE_REQUEST_SESSION_HANDLE:
        return leat_replace_text(f, &q->session_handle);
    case RUN_CALLABLE_REQUEST_HANDLE:
        return leat_get_int(f, &q->handle);
    case RUN_CALLABLE_REQUEST_FEED:
        leat_grow(q->feed, q->n_feed, q->cap_feed);
        LEAT_TRY(leat_get_tensor(f, &q->feed[q->n_feed]));
        q->n_feed++;
    }
    return NULL;
}

leat_status leat_run_callable_request_decode(const leat_incoming *in, leat_run_callable_request *q)
{
    return leat_decode(in, read_request_field, q);
}

void leat_run_callable_request_release(leat_run_callable_request *q)
{
    for (int i = 0; i < q->n_feed; i++)
        leat_tensor_unref(q->feed[i]);
    free(q->feed);
    free(q->session_handle);
    *q = (leat_run_callable_request){0};
}

leat_status leat_run_callable_response_add_fetch(leat_outgoing *o, leat_tensor *t)
{
    return leat_put_tensor(o, RUN_CALLABLE_RESPONSE_FETCH, t);
}

void leat_run_callable_response_add_metadata(leat_outgoing *o, const void *bytes, size_t n)
{
    leat_put_bytes(&o->text, RUN_CALLABLE_RESPONSE_METADATA, bytes, n);
}
