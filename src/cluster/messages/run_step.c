/* run_step.c -- RunStep's request and response to bytes and back. */
#include <stdlib.h>

#include "cluster/messages/fields.h"
#include "cluster/messages/messages.h"
#include "proto/wire.h"

/* ---- The request ---- */

void leat_run_step_request_encode(leat_outgoing *o, const leat_run_step_request *q)
{
    leat_strbuf *b = &o->text;
    leat_put_text(b, RUN_STEP_REQUEST_SESSION_HANDLE, q->session_handle);
    if (q->options)
        leat_put_message(b, RUN_STEP_REQUEST_OPTIONS, q->options);
    leat_put_text(b, RUN_STEP_REQUEST_PARTIAL_RUN_HANDLE, q->partial_run_handle);
    leat_put_int(b, RUN_STEP_REQUEST_STORE_ERRORS_IN_RESPONSE_BODY,
                 q->store_errors_in_response_body);
}

leat_status leat_run_step_request_add_feed(leat_outgoing *o, const char *name, leat_tensor *t)
{
    return leat_put_named(o, RUN_STEP_REQUEST_FEED, name, t);
}

void leat_run_step_request_add_fetch(leat_outgoing *o, const char *name)
{
    leat_put_text(&o->text, RUN_STEP_REQUEST_FETCH, name);
}

void leat_run_step_request_add_target(leat_outgoing *o, const char *name)
{
    leat_put_text(&o->text, RUN_STEP_REQUEST_TARGET, name);
}

static leat_status read_options(leat_run_step_request *q, const leat_wire_field *f)
{
    leat_cursor part;
    leat_proto_free(q->options);
    q->options = NULL;
    LEAT_TRY(leat_get_part(f, &part));
    return LEAT_GET(run_options, &part, &q->options);
}

static leat_status read_request_field(void *message, const leat_wire_field *f)
{
    leat_run_step_request *q = message;
    switch (f->number) {
    case RUN_STEP_REQUEST_SESSION_HANDLE:
        return leat_replace_text(f, &q->session_handle);
    case RUN_STEP_REQUEST_FEED:
        return leat_named_tensors_add(&q->feed, f);
    case RUN_STEP_REQUEST_FETCH:
        return leat_names_add(&q->fetch, f);
    case RUN_STEP_REQUEST_TARGET:
        return leat_names_add(&q->target, f);
    case RUN_STEP_REQUEST_OPTIONS:
        return read_options(q, f);
    case RUN_STEP_REQUEST_PARTIAL_RUN_HANDLE:
        return leat_replace_text(f, &q->partial_run_handle);
    case RUN_STEP_REQUEST_STORE_ERRORS_IN_RESPONSE_BODY:
        return leat_get_bool(f, &q->store_errors_in_response_body);
    }
    return NULL;
}

leat_status leat_run_step_request_decode(const leat_incoming *in, leat_run_step_request *q)
{
    return leat_decode(in, read_request_field, q);
}

void leat_run_step_request_release(leat_run_step_request *q)
{
    free(q->session_handle);
    leat_named_tensors_release(&q->feed);
    leat_names_release(&q->fetch);
    leat_names_release(&q->target);
    leat_proto_free(q->options);
    free(q->partial_run_handle);
    *q = (leat_run_step_request){0};
}

/* ---- The response ---- */

leat_status leat_run_step_response_add_tensor(leat_outgoing *o, const char *name, leat_tensor *t)
{
    return leat_put_named(o, RUN_STEP_RESPONSE_TENSOR, name, t);
}

void leat_run_step_response_add_metadata(leat_outgoing *o, const void *bytes, size_t n)
{
    leat_put_bytes(&o->text, RUN_STEP_RESPONSE_METADATA, bytes, n);
}

void leat_run_step_response_add_error(leat_outgoing *o, leat_status s)
{
    leat_put_int(&o->text, RUN_STEP_RESPONSE_STATUS_CODE, leat_status_code(s));
    leat_put_text(&o->text, RUN_STEP_RESPONSE_STATUS_ERROR_MESSAGE, leat_status_message(s));
}

static leat_status read_response_field(void *message, const leat_wire_field *f)
{
    leat_run_step_response *r = message;
    switch (f->number) {
    case RUN_STEP_RESPONSE_TENSOR:
        return leat_named_tensors_add(&r->tensor, f);
    case RUN_STEP_RESPONSE_METADATA:
        r->has_metadata = true;
        return leat_get_part(f, &r->metadata);
    case RUN_STEP_RESPONSE_STATUS_CODE:
        return leat_get_int(f, &r->status_code);
    case RUN_STEP_RESPONSE_STATUS_ERROR_MESSAGE:
        return leat_replace_text(f, &r->status_error_message);
    }
    return NULL;
}

leat_status leat_run_step_response_decode(const leat_incoming *in, leat_run_step_response *r)
{
    return leat_decode(in, read_response_field, r);
}

void leat_run_step_response_release(leat_run_step_response *r)
{
    leat_named_tensors_release(&r->tensor);
    free(r->status_error_message);
    *r = (leat_run_step_response){0};
}
