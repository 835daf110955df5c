/* run_graph.c -- RunGraph's request and response to bytes and back. */
#include <stdlib.h>

#include "cluster/messages/fields.h"
#include "cluster/messages/messages.h"
#include "core/alloc.h"
#include "proto/wire.h"

/* ---- The request ---- */

void leat_run_graph_request_encode(leat_outgoing *o, const leat_run_graph_request *q)
{
    leat_strbuf *b = &o->text;
    leat_put_text(b, RUN_GRAPH_REQUEST_GRAPH_HANDLE, q->graph_handle);
    leat_put_int(b, RUN_GRAPH_REQUEST_STEP_ID, q->step_id);
    if (q->record_timeline || q->record_partition_graphs) {
        Leat__ExecutorOpts opts = LEAT__EXECUTOR_OPTS__INIT;
        opts.record_timeline = q->record_timeline;
        opts.record_partition_graphs = q->record_partition_graphs;
        leat_put_message(b, RUN_GRAPH_REQUEST_EXEC_OPTS, &opts);
    }
    leat_put_text(b, RUN_GRAPH_REQUEST_SESSION_HANDLE, q->session_handle);
    leat_put_int(b, RUN_GRAPH_REQUEST_STORE_ERRORS_IN_RESPONSE_BODY,
                 q->store_errors_in_response_body);
    leat_put_int(b, RUN_GRAPH_REQUEST_CREATE_WORKER_SESSION_CALLED,
                 q->create_worker_session_called);
    leat_put_int(b, RUN_GRAPH_REQUEST_LEAT, q->leat);
    leat_put_int(b, RUN_GRAPH_REQUEST_LEAT_CALL_DEPTH, q->leat_call_depth);
    leat_put_text(b, RUN_GRAPH_REQUEST_LEAT_SENDER, q->leat_sender);
}

static leat_status read_exec_opts(leat_run_graph_request *q, const leat_wire_field *f)
{
    leat_cursor part;
    Leat__ExecutorOpts *o;
    LEAT_TRY(leat_get_part(f, &part));
    LEAT_TRY(LEAT_GET(executor_opts, &part, &o));
    q->record_timeline = o->record_timeline;
    q->record_partition_graphs = o->record_partition_graphs;
    leat_proto_free(o);
    return NULL;
}

static leat_status read_request_field(void *message, const leat_wire_field *f)
{
    leat_run_graph_request *q = message;
    switch (f->number) {
    case RUN_GRAPH_REQUEST_GRAPH_HANDLE:
        return leat_replace_text(f, &q->graph_handle);
    case RUN_GRAPH_REQUEST_STEP_ID:
        return leat_get_int(f, &q->step_id);
    case RUN_GRAPH_REQUEST_SEND:
        return leat_named_tensors_add(&q->send, f);
    case RUN_GRAPH_REQUEST_RECV_KEY:
        return leat_names_add(&q->recv_key, f);
    case RUN_GRAPH_REQUEST_EXEC_OPTS:
        return read_exec_opts(q, f);
    case RUN_GRAPH_REQUEST_STORE_ERRORS_IN_RESPONSE_BODY:
        return leat_get_bool(f, &q->store_errors_in_response_body);
    case RUN_GRAPH_REQUEST_CREATE_WORKER_SESSION_CALLED:
        return leat_get_bool(f, &q->create_worker_session_called);
    case RUN_GRAPH_REQUEST_LEAT:
        return leat_get_bool(f, &q->leat);
    case RUN_GRAPH_REQUEST_LEAT_CALL_DEPTH:
        return leat_get_int(f, &q->leat_call_depth);
    case RUN_GRAPH_REQUEST_LEAT_SENDER:
        return leat_replace_text(f, &q->leat_sender);
    }
    return NULL;
}

leat_status leat_run_graph_request_decode(const leat_incoming *in, leat_run_graph_request *q)
{
    return leat_decode(in, read_request_field, q);
}

void leat_run_graph_request_release(leat_run_graph_request *q)
{
    free(q->graph_handle);
    free(q->leat_sender);
    leat_named_tensors_release(&q->send);
    leat_names_release(&q->recv_key);
    *q = (leat_run_graph_request){0};
}

/* ---- The response ---- */

leat_status leat_run_graph_response_add_recv(leat_outgoing *o, const char *name, leat_tensor *t)
{
    return leat_put_named(o, RUN_GRAPH_RESPONSE_RECV, name, t);
}

void leat_run_graph_response_add_step_stats(leat_outgoing *o, const void *bytes, size_t n)
{
    leat_put_bytes(&o->text, RUN_GRAPH_RESPONSE_STEP_STATS, bytes, n);
}

void leat_run_graph_response_add_partition_graph(leat_outgoing *o, const void *bytes, size_t n)
{
    leat_put_bytes(&o->text, RUN_GRAPH_RESPONSE_PARTITION_GRAPH, bytes, n);
}

void leat_run_graph_response_add_error(leat_outgoing *o, leat_status s)
{
    leat_put_int(&o->text, RUN_GRAPH_RESPONSE_STATUS_CODE, leat_status_code(s));
    leat_put_text(&o->text, RUN_GRAPH_RESPONSE_STATUS_ERROR_MESSAGE, leat_status_message(s));
}

static leat_status read_response_field(void *message, const leat_wire_field *f)
{
    leat_run_graph_response *r = message;
    switch (f->number) {
    case RUN_GRAPH_RESPONSE_STEP_STATS:
        r->has_step_stats = true;
        return leat_get_part(f, &r->step_stats);
    case RUN_GRAPH_RESPONSE_PARTITION_GRAPH:
        leat_grow(r->partition_graph, r->n_partition_graph, r->cap_partition_graph);
        return leat_get_part(f, &r->partition_graph[r->n_partition_graph++]);
    case RUN_GRAPH_RESPONSE_STATUS_CODE:
        return leat_get_int(f, &r->status_code);
    case RUN_GRAPH_RESPONSE_STATUS_ERROR_MESSAGE:
        return leat_replace_text(f, &r->status_error_message);
    }
    return NULL;
}

leat_status leat_run_graph_response_decode(const leat_incoming *in, leat_run_graph_response *r)
{
    return leat_decode(in, read_response_field, r);
}

void leat_run_graph_response_release(leat_run_graph_response *r)
{
    free(r->partition_graph);
    free(r->status_error_message);
    *r = (leat_run_graph_response){0};
}
