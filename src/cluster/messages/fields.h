/* fields.h -- field numbers of the messages that are read and written by hand, because they carry
 * tensors whose bytes are not copied.
 *
 * The names are those of src/proto/tensor.proto and src/proto/cluster.proto, and
 * tests/cluster/messages_test.c holds the numbers against them. Codecs and tests use these names;
 * everything else knows the structs of messages.h.
 */
#ifndef LEAT_CLUSTER_MESSAGES_FIELDS_H
#define LEAT_CLUSTER_MESSAGES_FIELDS_H

/* How the bytes of a field are laid out. */
enum { WIRE_VARINT = 0, WIRE_FIXED64 = 1, WIRE_BYTES = 2, WIRE_FIXED32 = 5 };

enum {
    TENSOR_SHAPE_PROTO_DIM = 2,
    TENSOR_SHAPE_PROTO_DIM_SIZE = 1,
};
enum {
    TENSOR_PROTO_DTYPE = 1,
    TENSOR_PROTO_TENSOR_SHAPE = 2,
    TENSOR_PROTO_VERSION_NUMBER = 3,
    TENSOR_PROTO_TENSOR_CONTENT = 4,
};
enum {
    NAMED_TENSOR_PROTO_NAME = 1,
    NAMED_TENSOR_PROTO_TENSOR = 2,
};

enum {
    RUN_GRAPH_REQUEST_GRAPH_HANDLE = 1,
    RUN_GRAPH_REQUEST_STEP_ID = 2,
    RUN_GRAPH_REQUEST_SEND = 3,
    RUN_GRAPH_REQUEST_RECV_KEY = 4,
    RUN_GRAPH_REQUEST_EXEC_OPTS = 5,
    RUN_GRAPH_REQUEST_SESSION_HANDLE = 8,
    RUN_GRAPH_REQUEST_STORE_ERRORS_IN_RESPONSE_BODY = 9,
    RUN_GRAPH_REQUEST_CREATE_WORKER_SESSION_CALLED = 10,
    RUN_GRAPH_REQUEST_LEAT = 1000,
    RUN_GRAPH_REQUEST_LEAT_CALL_DEPTH = 1001,
    RUN_GRAPH_REQUEST_LEAT_SENDER = 1002,
};
enum {
    RUN_GRAPH_RESPONSE_RECV = 1,
    RUN_GRAPH_RESPONSE_STEP_STATS = 2,
    RUN_GRAPH_RESPONSE_PARTITION_GRAPH = 4,
    RUN_GRAPH_RESPONSE_STATUS_CODE = 5,
    RUN_GRAPH_RESPONSE_STATUS_ERROR_MESSAGE = 6,
};

/* RecvTensorRequest has one key, RecvTensorsRequest any number of them. */
enum {
    RECV_TENSOR_REQUEST_STEP_ID = 1,
    RECV_TENSOR_REQUEST_RENDEZVOUS_KEY = 2,
};
enum {
    RECV_TENSOR_RESPONSE_TENSOR = 1,
    RECV_TENSOR_RESPONSE_IS_DEAD = 2,
    RECV_TENSOR_RESPONSE_SEND_START_MICROS = 3,
};
/* One field for each key, in the order of the keys: the tensor, or is_dead in its place. This order
 * across two fields is what a struct of protobuf-c cannot hold. */
enum {
    RECV_TENSORS_RESPONSE_TENSOR = 1,
    RECV_TENSORS_RESPONSE_IS_DEAD = 2,
};

enum {
    SEND_TENSORS_REQUEST_STEP_ID = 1,
    SEND_TENSORS_REQUEST_TENSOR = 2,
    SEND_TENSORS_REQUEST_DEAD_KEY = 3,
};

enum {
    RUN_STEP_REQUEST_SESSION_HANDLE = 1,
    RUN_STEP_REQUEST_FEED = 2,
    RUN_STEP_REQUEST_FETCH = 3,
    RUN_STEP_REQUEST_TARGET = 4,
    RUN_STEP_REQUEST_OPTIONS = 5,
    RUN_STEP_REQUEST_PARTIAL_RUN_HANDLE = 6,
    RUN_STEP_REQUEST_STORE_ERRORS_IN_RESPONSE_BODY = 7,
};
enum {
    RUN_STEP_RESPONSE_TENSOR = 1,
    RUN_STEP_RESPONSE_METADATA = 2,
    RUN_STEP_RESPONSE_STATUS_CODE = 3,
    RUN_STEP_RESPONSE_STATUS_ERROR_MESSAGE = 4,
};

enum {
    RUN_CALLABLE_REQUEST_SESSION_HANDLE = 1,
    RUN_CALLABLE_REQUEST_HANDLE = 2,
    RUN_CALLABLE_REQUEST_FEED = 3,
};
enum {
    RUN_CALLABLE_RESPONSE_FETCH = 1,
    RUN_CALLABLE_RESPONSE_METADATA = 2,
};

#endif
