/* executor_int.h -- the executor from the inside: executor.c makes and runs it, executor_flow.c
 * knows frames, iterations and dead values.
 *
 * 1. A node runs once in an iteration of its frame, when all its inputs have come; a Merge, when
 *    one live input has come, or all have come dead.
 * 2. The root frame has one iteration, whose memory belongs to the run. In graphs without flow ops
 *    nothing else exists, and inputs are counted down without a lock.
 * 3. In graphs with flow ops outputs are delivered under the run's flow lock; kernels run without
 * it.
 * 4. run->active counts the threads at work on the run and the async kernels under way. The thread
 *    that brings it to zero ends the run.
 */
#ifndef LEAT_EXECUTOR_INT_H
#define LEAT_EXECUTOR_INT_H

#include "runtime/executor.h"

typedef struct exec_edge {
    int node;  /* index of the receiving node */
    int slot;  /* which input of that node; -1: control */
    int out;   /* which output it comes from; -1: control */
    bool last; /* the last edge of this output: the reference moves along it */
} exec_edge;

enum exec_kind {
    EXEC_PLAIN,
    EXEC_SWITCH,
    EXEC_MERGE,
    EXEC_ENTER,
    EXEC_EXIT,
    EXEC_NEXT,
    EXEC_TRIGGER
};

typedef struct exec_node {
    leat_bound bound;
    exec_edge *edges; /* by output, control edges last */
    int n_edges, n_in, n_out;
    int in_at;   /* index of its first input in iteration.entries of its frame */
    int local;   /* index among the nodes of its frame */
    int frame;   /* index in leat_executor.frames */
    int pending; /* inputs, data and control, that must come */
    int n_controls;
    uint8_t kind; /* exec_kind */
    bool expensive, async, blocks;
    bool in_refs;     /* some input may be a reference where the op wants a value */
    bool constant;    /* Enter of a loop invariant */
    int child_frame;  /* Enter: index of the frame that it enters */
    int parallel;     /* Enter: parallel_iterations */
    const int *slots; /* for each output its slot in the memory plan; or NULL */
} exec_node;

/* A loop of the graph, or the root: what all its live frames have in common. */
typedef struct exec_frame {
    const char *name;
    int parent; /* -1: the root */
    int n_nodes, n_entries;
    int n_enters; /* number of Enter nodes that enter it */
    int *pending; /* for each of its nodes: iteration.pending at the start */
} exec_frame;

struct leat_executor {
    leat_graph *graph;
    leat_device *device;
    exec_node *nodes;
    int n_nodes;
    exec_frame *frames; /* 0 is the root */
    int n_frames;
    int *roots; /* nodes without inputs */
    int n_roots;
    int n_slots; /* of the memory plan */
    bool has_flow;
    leat_arena arena;
};

typedef struct iteration {
    leat_entry *entries;
    atomic_int *pending;
    atomic_uchar *dead; /* for each node: a control input came dead */
    int *dead_inputs;   /* of Merge nodes: data inputs that came dead; NULL without flow */
    int64_t number;
    uint64_t frame_id; /* the same on all devices that run the loop; 0: the root */
    int busy;          /* tasks and child frames alive in it (not counted in the root) */
    struct live_frame *frame;
} iteration;

typedef struct task {
    exec_node *node;
    iteration *it;
} task;

/* A stack of tasks that one thread is to run. The array in the struct saves most runs an
 * allocation. */
typedef struct task_list {
    task *v; /* from malloc, once there are more tasks than `few` holds */
    int n, cap;
    int kept;      /* the first `kept` tasks stay with this thread: other threads need no look */
    int expensive; /* which of those is expensive, at most one if there are other threads; or -1 */
    task few[24];
} task_list;

struct leat_run {
    leat_executor *executor;
    leat_step *step;
    iteration root;
    leat_buffer **kept; /* the buffer of each slot of the memory plan */
    struct job {
        leat_run *run;
        task t;
    } * jobs;        /* one for each node: the argument when another thread runs it */
    task_list spare; /* the starting thread's, kept between steps */
    atomic_int active;
    _Atomic(const exec_node *)
        expensive;        /* an expensive node that runs now, for messages; or NULL */
    pthread_mutex_t flow; /* guards frames and iterations; see rule 3 */
    /* The live frames of each of the executor's frames, linked; NULL until there is one. */
    struct live_frame **frames;
    pthread_mutex_t wait_lock;      /* guards waiting */
    struct leat_async_run *waiting; /* async kernels under way, linked */
};

void leat_task_push(task_list *l, exec_node *n, iteration *it);
/* Delivers a node's outputs in a graph with flow ops; new tasks go to `ready`. Clears `out`. */
leat_status leat_flow_propagate(leat_run *r, task t, leat_entry *out, bool dead, task_list *ready);
/* One task of `it` has ended. */
void leat_flow_task_done(leat_run *r, iteration *it, task_list *ready);
void leat_flow_clear(leat_run *r); /* after a failed step: frees what is left */
void leat_iteration_init(const leat_executor *e, int frame, iteration *it);
void leat_iteration_release(const leat_executor *e, int frame, iteration *it);
/* Finds the static frame of every node. */
leat_status leat_flow_frames(leat_executor *e) LEAT_MUST_CHECK;

#endif
