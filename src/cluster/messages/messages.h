/* messages.h -- the messages that carry tensors, as C structs: what both ends of a call use.
 *
 * All other messages are structs of protobuf-c at both ends: leat_put_fields writes a request,
 * leat_reply_message a reply; LEAT_REQUEST and LEAT_UNPACK read them.
 *
 * Writing. S_encode writes the single fields of a struct, which it borrows; fields at 0, NULL or ""
 * are left out. Repeated fields and messages inside the message are written one at a time, by a
 * function each (S_add_...), straight from where they are: no list is made, and tensors are sent by
 * reference. The order of the calls is free.
 *
 * Reading. S_decode fills a struct that is all zero. S_release, which must also follow a failure,
 * frees what the struct points to; a leat_cursor in it points into the message, and is valid as
 * long as that. Fields that are not in the struct are passed over; of a single field that is there
 * several times the last one counts. Bytes that are no such message give DATA_LOSS or
 * INVALID_ARGUMENT.
 */
#ifndef LEAT_CLUSTER_MESSAGES_H
#define LEAT_CLUSTER_MESSAGES_H

#include "cluster/tensor_wire.h"
#include "proto/cluster.pb-c.h"

/* ---- Lists ---- */
typedef struct leat_names {
    char **v; /* each string is from malloc */
    int n, cap;
} leat_names;
typedef struct leat_named_tensors {
    char **name;
    leat_tensor **tensor; /* tensor[i] has name[i] */
    int n, cap;
} leat_named_tensors;
/* Each adds the value of a field. */
leat_status leat_names_add(leat_names *names, const leat_wire_field *f) LEAT_MUST_CHECK;
leat_status leat_named_tensors_add(leat_named_tensors *t, const leat_wire_field *f) LEAT_MUST_CHECK;
void leat_names_release(leat_names *names);
void leat_named_tensors_release(leat_named_tensors *t);

/* ---- RunGraph: one step of a registered graph on a worker ---- */
typedef struct leat_run_graph_request {
    char *graph_handle;
    /* Encoded, because TensorFlow's workers need it, and not decoded: a graph's handle implies the
     * session. */
    char *session_handle;
    int64_t step_id;
    leat_named_tensors send;                       /* tensors that the step starts with */
    leat_names recv_key;                           /* keys of tensors that the reply shall hold */
    bool record_timeline, record_partition_graphs; /* exec_opts */
    bool store_errors_in_response_body;
    bool create_worker_session_called;
    bool leat;               /* the master is Leat's: a step that ends well needs no CleanupGraph */
    int64_t leat_call_depth; /* calls of functions that the step is inside of */
    /* a task of the master's process, whose tensors come by SendTensors; NULL: they do not */
    char *leat_sender;
} leat_run_graph_request;
void leat_run_graph_request_encode(leat_outgoing *o, const leat_run_graph_request *q);
leat_status leat_run_graph_request_decode(const leat_incoming *in,
                                          leat_run_graph_request *q) LEAT_MUST_CHECK;
void leat_run_graph_request_release(leat_run_graph_request *q);

/* The field recv is not decoded: Leat's masters send no recv_key. */
typedef struct leat_run_graph_response {
    bool has_step_stats;
    leat_cursor step_stats;       /* StepStats */
    leat_cursor *partition_graph; /* GraphDefs */
    int n_partition_graph, cap_partition_graph;
    int64_t status_code;
    char *status_error_message;
} leat_run_graph_response;
leat_status leat_run_graph_response_add_recv(leat_outgoing *o, const char *name,
                                             leat_tensor *t) LEAT_MUST_CHECK;
void leat_run_graph_response_add_step_stats(leat_outgoing *o, const void *bytes, size_t n);
void leat_run_graph_response_add_partition_graph(leat_outgoing *o, const void *bytes, size_t n);
void leat_run_graph_response_add_error(leat_outgoing *o, leat_status s);
leat_status leat_run_graph_response_decode(const leat_incoming *in,
                                           leat_run_graph_response *r) LEAT_MUST_CHECK;
void leat_run_graph_response_release(leat_run_graph_response *r);

/* ---- RecvTensor and RecvTensors: tensors of a step from another task ---- */
/* The request of both methods; RecvTensor's has one key. */
typedef struct leat_recv_tensor_request {
    int64_t step_id;
    leat_names rendezvous_key;
} leat_recv_tensor_request;
void leat_recv_tensor_request_encode(leat_outgoing *o, const leat_recv_tensor_request *q);
void leat_recv_tensor_request_add_key(leat_outgoing *o, const char *key);
/* INVALID_ARGUMENT beyond 65,536 keys. */
leat_status leat_recv_tensor_request_decode(const leat_incoming *in,
                                            leat_recv_tensor_request *q) LEAT_MUST_CHECK;
void leat_recv_tensor_request_release(leat_recv_tensor_request *q);

typedef struct leat_recv_tensor_response {
    leat_tensor *tensor; /* with is_dead an empty one, which TensorFlow needs */
    bool is_dead;
    int64_t send_start_micros; /* when the sender began, CLOCK_REALTIME; 0: unknown */
} leat_recv_tensor_response;
leat_status leat_recv_tensor_response_encode(leat_outgoing *o,
                                             const leat_recv_tensor_response *r) LEAT_MUST_CHECK;
/* DATA_LOSS if there is neither a tensor nor is_dead. */
leat_status leat_recv_tensor_response_decode(const leat_incoming *in,
                                             leat_recv_tensor_response *r) LEAT_MUST_CHECK;
void leat_recv_tensor_response_release(leat_recv_tensor_response *r);

/* RecvTensors' response: one tensor for each key, in their order; NULL for a dead one. */
leat_status leat_recv_tensors_response_add(leat_outgoing *o, leat_tensor *t) LEAT_MUST_CHECK;
/* Decodes the next tensor; c begins as leat_cursor_of the message. Gives *t_out. False at the end,
 * or, with *s set, where the bytes are no such message. */
bool leat_recv_tensors_response_next(leat_cursor *c, leat_tensor **t_out, leat_status *s);

/* ---- SendTensors: tensors of a step that its master sends without being asked ---- */
typedef struct leat_send_tensors_request {
    int64_t step_id;
    leat_named_tensors tensor; /* by rendezvous key */
    leat_names dead_key;       /* rendezvous keys of dead values */
} leat_send_tensors_request;
void leat_send_tensors_request_encode(leat_outgoing *o, const leat_send_tensors_request *q);
/* t is NULL for a dead value. */
leat_status leat_send_tensors_request_add(leat_outgoing *o, const char *key,
                                          leat_tensor *t) LEAT_MUST_CHECK;
/* INVALID_ARGUMENT beyond 65,536 tensors. */
leat_status leat_send_tensors_request_decode(const leat_incoming *in,
                                             leat_send_tensors_request *q) LEAT_MUST_CHECK;
void leat_send_tensors_request_release(leat_send_tensors_request *q);

/* ---- RunStep: a client's step ---- */
typedef struct leat_run_step_request {
    char *session_handle;
    leat_named_tensors feed;
    leat_names fetch, target;
    Leat__RunOptions *options;
    char *partial_run_handle;
    bool store_errors_in_response_body;
} leat_run_step_request;
void leat_run_step_request_encode(leat_outgoing *o, const leat_run_step_request *q);
leat_status leat_run_step_request_add_feed(leat_outgoing *o, const char *name,
                                           leat_tensor *t) LEAT_MUST_CHECK;
void leat_run_step_request_add_fetch(leat_outgoing *o, const char *name);
void leat_run_step_request_add_target(leat_outgoing *o, const char *name);
leat_status leat_run_step_request_decode(const leat_incoming *in,
                                         leat_run_step_request *q) LEAT_MUST_CHECK;
void leat_run_step_request_release(leat_run_step_request *q);

typedef struct leat_run_step_response {
    leat_named_tensors tensor;
    bool has_metadata;
    leat_cursor metadata; /* RunMetadata */
    int64_t status_code;
    char *status_error_message;
} leat_run_step_response;
leat_status leat_run_step_response_add_tensor(leat_outgoing *o, const char *name,
                                              leat_tensor *t) LEAT_MUST_CHECK;
void leat_run_step_response_add_metadata(leat_outgoing *o, const void *bytes, size_t n);
void leat_run_step_response_add_error(leat_outgoing *o, leat_status s);
leat_status leat_run_step_response_decode(const leat_incoming *in,
                                          leat_run_step_response *r) LEAT_MUST_CHECK;
void leat_run_step_response_release(leat_run_step_response *r);

/* ---- RunCallable: a step whose feeds and fetches were named before ---- */
typedef struct leat_run_callable_request {
    char *session_handle;
    int64_t handle;
    leat_tensor **feed;
    int n_feed, cap_feed;
} leat_run_callable_request;
leat_status leat_run_callable_request_decode(const leat_incoming *in,
                                             leat_run_callable_request *q) LEAT_MUST_CHECK;
void leat_run_callable_request_release(leat_run_callable_request *q);
leat_status leat_run_callable_response_add_fetch(leat_outgoing *o, leat_tensor *t) LEAT_MUST_CHECK;
void leat_run_callable_response_add_metadata(leat_outgoing *o, const void *bytes, size_t n);

#endif
