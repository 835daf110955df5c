/* methods.h -- the names of all calls between clients, masters and workers, for callers and for the
 * services that dispatch them. */
#ifndef LEAT_CLUSTER_MESSAGES_METHODS_H
#define LEAT_CLUSTER_MESSAGES_METHODS_H

/* Clients to a master. */
#define LEAT_MASTER_SERVICE "/tensorflow.MasterService/"
#define LEAT_METHOD_CREATE_SESSION LEAT_MASTER_SERVICE "CreateSession"
#define LEAT_METHOD_EXTEND_SESSION LEAT_MASTER_SERVICE "ExtendSession"
#define LEAT_METHOD_PARTIAL_RUN_SETUP LEAT_MASTER_SERVICE "PartialRunSetup"
#define LEAT_METHOD_RUN_STEP LEAT_MASTER_SERVICE "RunStep"
#define LEAT_METHOD_CLOSE_SESSION LEAT_MASTER_SERVICE "CloseSession"
#define LEAT_METHOD_LIST_DEVICES LEAT_MASTER_SERVICE "ListDevices"
#define LEAT_METHOD_RESET LEAT_MASTER_SERVICE "Reset"
#define LEAT_METHOD_MAKE_CALLABLE LEAT_MASTER_SERVICE "MakeCallable"
#define LEAT_METHOD_RUN_CALLABLE LEAT_MASTER_SERVICE "RunCallable"
#define LEAT_METHOD_RELEASE_CALLABLE LEAT_MASTER_SERVICE "ReleaseCallable"

/* A Leat client to a Leat master. */
#define LEAT_METHOD_HOLD "/leat.MasterService/Hold"

/* Masters to workers, and workers to each other. */
#define LEAT_WORKER_SERVICE "/tensorflow.WorkerService/"
#define LEAT_METHOD_GET_STATUS LEAT_WORKER_SERVICE "GetStatus"
#define LEAT_METHOD_CREATE_WORKER_SESSION LEAT_WORKER_SERVICE "CreateWorkerSession"
#define LEAT_METHOD_DELETE_WORKER_SESSION LEAT_WORKER_SERVICE "DeleteWorkerSession"
#define LEAT_METHOD_REGISTER_GRAPH LEAT_WORKER_SERVICE "RegisterGraph"
#define LEAT_METHOD_DEREGISTER_GRAPH LEAT_WORKER_SERVICE "DeregisterGraph"
#define LEAT_METHOD_RUN_GRAPH LEAT_WORKER_SERVICE "RunGraph"
#define LEAT_METHOD_CLEANUP_GRAPH LEAT_WORKER_SERVICE "CleanupGraph"
#define LEAT_METHOD_CLEANUP_ALL LEAT_WORKER_SERVICE "CleanupAll"
#define LEAT_METHOD_RECV_TENSOR LEAT_WORKER_SERVICE "RecvTensor"
#define LEAT_METHOD_LOGGING LEAT_WORKER_SERVICE "Logging"
#define LEAT_METHOD_TRACING LEAT_WORKER_SERVICE "Tracing"

/* Between tasks of Leat alone. */
#define LEAT_PEER_SERVICE "/leat.PeerService/"
#define LEAT_METHOD_RECV_TENSORS LEAT_PEER_SERVICE "RecvTensors"
#define LEAT_METHOD_SEND_TENSORS LEAT_PEER_SERVICE "SendTensors"
#define LEAT_METHOD_DONE LEAT_PEER_SERVICE "Done"

#endif
