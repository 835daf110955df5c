/* extend.h -- how ops and kernels are written, Leat's own and users'.
 *
 * An op is what is true on every device: definition, shape function, gradient. A kernel computes
 * it on one kind of device for some dtypes. They meet by op name, dtypes and device type when a
 * plan is compiled; nothing is looked up while a step runs.
 */
#ifndef LEAT_EXTEND_H
#define LEAT_EXTEND_H

#include <leat/graph.h>

/* ---- Sets of dtypes ---- */
typedef uint64_t leat_types;
#define LEAT_T(name) (UINT64_C(1) << LEAT_##name)
#define LEAT_TYPES_SIGNED (LEAT_T(INT8) | LEAT_T(INT16) | LEAT_T(INT32) | LEAT_T(INT64))
#define LEAT_TYPES_UNSIGNED (LEAT_T(UINT8) | LEAT_T(UINT16) | LEAT_T(UINT32) | LEAT_T(UINT64))
#define LEAT_TYPES_INTEGER (LEAT_TYPES_SIGNED | LEAT_TYPES_UNSIGNED)
#define LEAT_TYPES_SMALL_FLOAT (LEAT_T(HALF) | LEAT_T(BFLOAT16))
#define LEAT_TYPES_FLOATING (LEAT_T(FLOAT) | LEAT_T(DOUBLE) | LEAT_TYPES_SMALL_FLOAT)
#define LEAT_TYPES_REAL (LEAT_TYPES_FLOATING | LEAT_TYPES_INTEGER)
#define LEAT_TYPES_COMPLEX (LEAT_T(COMPLEX64) | LEAT_T(COMPLEX128))
#define LEAT_TYPES_INDEX (LEAT_T(INT32) | LEAT_T(INT64))
#define LEAT_TYPES_ANY (~UINT64_C(0))
static inline bool leat_types_has(leat_types set, leat_dtype t)
{
    return t < 64 && (set >> t & 1);
}

/* ---- An op ---- */
typedef struct leat_infer leat_infer; /* the inputs and outputs that a shape function sees */
typedef struct leat_grad leat_grad;   /* the inputs and outputs that a gradient function sees */

/* Properties of an op. Passes, the executor and the graph know ops by these properties and by their
 * role, never by a list of names, so an op that a user registers is treated as Leat's own. */
enum {
    LEAT_OP_STATEFUL = 1, /* has state or side effects: never folded, merged or run twice */
    LEAT_OP_COMMUTATIVE = 2,
    LEAT_OP_AGGREGATE = 4,     /* commutative and associative over any number of inputs */
    LEAT_OP_UNINITIALIZED = 8, /* accepts a reference to a variable that has no value */
    /* Running the op has no side effect, although the op is stateful or takes references: it writes
     * to none of its inputs. A reference that it outputs is one of its inputs. */
    LEAT_OP_NO_EFFECTS = 16,
    /* The op checks something and fails if that does not hold, so it runs even if its output is not
     * used. */
    LEAT_OP_CHECKS = 32,
    /* The one output is input 0, unchanged. */
    LEAT_OP_IDENTITY = 64,
    /* The one output has the elements of input 0 in the same order; further inputs give the
     * shape. */
    LEAT_OP_RESHAPES = 128,
    /* The output is meant to be fed. It is never folded, even if it has a default value. */
    LEAT_OP_PLACEHOLDER = 256,
    /* f(f(x)) == x for integers and bools. */
    LEAT_OP_INVOLUTION = 512,
    /* Element-wise: "x: T" or "x: T, y: T" gives "z: T", element by element; T is the only
     * attribute. Two operands broadcast if the shape function is leat_shape_broadcast_binary, else
     * their shapes are the same. A tree of such ops is fused into one pass over memory. The op's
     * kernels are made of row functions (leat/rows.h) and set LEAT_KERNEL_ROWS. */
    LEAT_OP_CWISE = 1024
};

/* What an op is to passes and executor; most ops have no role. */
typedef enum leat_role {
    LEAT_ROLE_NONE,
    /* Control flow, which the executor does itself. The forms for references (RefSwitch ...) have
     * the same roles. */
    LEAT_ROLE_SWITCH,
    LEAT_ROLE_MERGE,
    LEAT_ROLE_ENTER,
    LEAT_ROLE_EXIT,
    LEAT_ROLE_NEXT_ITERATION,
    LEAT_ROLE_LOOP_COND,
    LEAT_ROLE_TRIGGER, /* runs after its control inputs, even if all of them are dead */
    LEAT_ROLE_NO_OP,   /* has control edges only */
    /* The attribute "value" is the output. */
    LEAT_ROLE_CONST,
    /* Where values enter and leave a compiled graph or a function's body. The runtime has their
     * kernels: no op of a program can have these roles. */
    LEAT_ROLE_ARG,
    LEAT_ROLE_LATE_ARG, /* gets its value while the step runs, not at its start */
    LEAT_ROLE_RETVAL,
    LEAT_ROLE_SEND,
    LEAT_ROLE_RECV,
    /* Output i is the shape, size or rank (as the role's name says) of input i, as an integer
     * vector or scalar. */
    LEAT_ROLE_SHAPE,
    LEAT_ROLE_SIZE,
    LEAT_ROLE_RANK,
    /* Variables. */
    LEAT_ROLE_VARIABLE,       /* gives a reference to a variable */
    LEAT_ROLE_HANDLE,         /* gives a resource handle of a variable */
    LEAT_ROLE_READ,           /* gives the value of the variable whose handle is input 0 */
    LEAT_ROLE_IS_INITIALIZED, /* tells whether the variable that is input 0 has a value */
    LEAT_ROLE_COUNTER,        /* counts epochs in the variable that is input 0 */
    LEAT_ROLE_QUEUE,          /* gives the handle of a queue, or a reference to it */
    /* Ops that call a function which input 0 chooses, or call a function repeatedly. */
    LEAT_ROLE_IF,
    LEAT_ROLE_CASE,
    LEAT_ROLE_WHILE,
    /* Arithmetic on two operands that broadcast. Passes replace x + 0, 0 + x, x - 0, x * 1, 1 * x
     * and x / 1 by x. */
    LEAT_ROLE_ADD,
    LEAT_ROLE_SUB,
    LEAT_ROLE_MUL,
    LEAT_ROLE_DIV,
    /* Input 1, a vector, is added to the last dimension of input 0; with data_format "NCHW", to the
     * second. */
    LEAT_ROLE_BIAS_ADD,
    /* The product of matrices 0 and 1. The op named by `fused` computes the same product, adds
     * input 2, a bias, to every row, and applies an element-wise op of one operand to the
     * result. */
    LEAT_ROLE_PRODUCT,
    /* Output 0 is the loss of each row of logits (input 0) and labels (input 1), output 1 its
     * gradient. The op named by `fused` has an input 2, a column, by which output 1 is
     * multiplied. */
    LEAT_ROLE_CROSS_ENTROPY,
    /* The tensors of input 0, a list, are joined along the dimension that input 1 says. */
    LEAT_ROLE_CONCAT,
    /* Input 1 is cut into equal parts along the dimension that input 0 says. */
    LEAT_ROLE_SPLIT,
    /* 1 / (1 + e^-x) and tanh x, element by element; y (1 - y) dy and (1 - y^2) dy, their
     * gradients, whose input 0 is y and whose input 1 is dy. */
    LEAT_ROLE_SIGMOID,
    LEAT_ROLE_TANH,
    LEAT_ROLE_SIGMOID_GRAD,
    LEAT_ROLE_TANH_GRAD
} leat_role;

/* inputs, outputs and attrs are spelled as in TensorFlow's REGISTER_OP: "x: T, y: T",
 * "inputs: N * T", "ref: Ref(T)", "out: float"; attrs are separated by ";":
 * "T: {float, double} = DT_FLOAT; N: int >= 1; keep_dims: bool = false; shape: shape = {}". */
typedef struct leat_op_def {
    const char *name, *inputs, *outputs, *attrs;
    leat_status (*shape)(leat_infer *c);
    leat_status (*grad)(leat_grad *g); /* or leat_grad_none, or leat_grad_missing */
    unsigned flags;
    leat_role role;
    /* Roles PRODUCT and CROSS_ENTROPY: the op into which an instance of this one can be fused; or
     * NULL. */
    const char *fused;
    /* For an op over a list of inputs of one shape: the element-wise op of two operands that gives
     * the same when it is applied to the first two, then to that result and the third, and so
     * on. */
    const char *pairwise;
    /* For a training op: the name of the input that is the gradient, dense and of the variable's
     * shape. Variables (references or handles) are the first inputs; those after the gradient are
     * scalars. The kernels have a rule (leat/rows.h), so that the element-wise ops that compute the
     * gradient can be fused into the update. */
    const char *gradient;
    /* Gives what is known, before a step runs, of output i, an integer vector (or scalar): its
     * elements are returned as the dimensions of a shape, -1 where an element is not known. The
     * shape functions of ops that use the output get this by leat_infer_value_shape. NULL: the
     * output is known only if constant folding computes it. */
    leat_status (*value)(leat_infer *c, int i, leat_shape *out);
    /* For an op that gives the resource handle of something with a position in the input (an
     * iterator, a reader, a queue): the op that takes the handle and gives the position as a
     * scalar, and the op that takes handle and position and goes there. Checkpoints contain the
     * position after leat_save_input; that of a queue only if a queue runner fills the queue. */
    const char *save_position, *restore_position;
} leat_op_def;

/* For ops without a gradient: use one of these as grad. */
/* Not differentiable: no gradient flows back, without an error. */
leat_status leat_grad_none(leat_grad *g);
/* TensorFlow has no gradient: an error if one is requested. */
leat_status leat_grad_missing(leat_grad *g);

/* ---- Shape functions: inputs are known partly or wholly. A shape function sets the outputs'
 * shapes, or returns INVALID_ARGUMENT with the reason. ---- */
LEAT_API const leat_node *leat_infer_node(leat_infer *c);
LEAT_API int leat_infer_inputs(leat_infer *c);
LEAT_API int leat_infer_outputs(leat_infer *c);
LEAT_API leat_shape leat_infer_in(leat_infer *c, int i);
/* The value of input i if it is constant, else NULL. */
LEAT_API const leat_tensor *leat_infer_value(leat_infer *c, int i);
/* Input i, an integer vector, read as a shape; -1 or unknown rank where it is not known. */
LEAT_API leat_status leat_infer_value_shape(leat_infer *c, int i, leat_shape *out) LEAT_MUST_CHECK;
/* The same for an op's `value`: input i may also be a scalar, which is a shape of one dimension. */
LEAT_API leat_status leat_infer_known(leat_infer *c, int i, leat_shape *out) LEAT_MUST_CHECK;
LEAT_API void leat_infer_out(leat_infer *c, int i, leat_shape s);
/* The dtype and shape of the variable behind a resource handle (input or output i). */
LEAT_API bool leat_infer_in_handle(leat_infer *c, int i, leat_dtype *t, leat_shape *s);
LEAT_API void leat_infer_out_handle(leat_infer *c, int i, leat_dtype t, leat_shape s);
/* Error: "Shape must be rank 2 but is rank 1". An input of unknown rank gets unknown dimensions. */
LEAT_API leat_status leat_infer_rank(leat_infer *c, int i, int rank,
                                     leat_shape *out) LEAT_MUST_CHECK;
LEAT_API leat_status leat_infer_rank_at_least(leat_infer *c, int i, int rank,
                                              leat_shape *out) LEAT_MUST_CHECK;
/* Error: "Dimensions must be equal, but are 3 and 4". -1 is equal to any size. */
LEAT_API leat_status leat_dim_merge(int64_t a, int64_t b, int64_t *out) LEAT_MUST_CHECK;
LEAT_API leat_status leat_shape_merge(const leat_shape *a, const leat_shape *b,
                                      leat_shape *out) LEAT_MUST_CHECK;
LEAT_API leat_status leat_shape_broadcast(const leat_shape *a, const leat_shape *b,
                                          leat_shape *out) LEAT_MUST_CHECK;
/* Ready-made shape functions. */
LEAT_API leat_status leat_shape_unchanged(leat_infer *c); /* output 0 has the shape of input 0 */
LEAT_API leat_status leat_shape_scalar(leat_infer *c);    /* all outputs are scalars */
LEAT_API leat_status leat_shape_any(leat_infer *c);       /* nothing is known */
LEAT_API leat_status leat_shape_none(leat_infer *c);      /* no outputs */
LEAT_API leat_status leat_shape_broadcast_binary(leat_infer *c);
LEAT_API leat_status leat_shape_merged(leat_infer *c); /* all inputs and output 0 have one shape */

/* ---- Gradient functions, for example leat_grad_in(g, 0, leat_mul(leat_grad_out(g, 0), ...)). An
 * input for which leat_grad_in is not called has no gradient. ---- */
LEAT_API leat_graph *leat_grad_graph(leat_grad *g);
LEAT_API const leat_node *leat_grad_node(leat_grad *g);
LEAT_API leat_out leat_grad_input(leat_grad *g, int i);  /* input i of the op */
LEAT_API leat_out leat_grad_output(leat_grad *g, int i); /* output i of the op */
/* dL/d(output i) as a dense tensor; zeros if no gradient reached that output. */
LEAT_API leat_out leat_grad_out(leat_grad *g, int i);
LEAT_API bool leat_grad_has_out(leat_grad *g, int i);
/* Whether the gradient of input i is used; if not, it need not be built. */
LEAT_API bool leat_grad_wants(leat_grad *g, int i);
/* dL/d(output i) in the form in which it was built: dense, or rows (IndexedSlices). */
LEAT_API leat_grad_value leat_grad_out_value(leat_grad *g, int i);
LEAT_API leat_status leat_grad_in(leat_grad *g, int i, leat_out dx) LEAT_MUST_CHECK;
LEAT_API leat_status leat_grad_in_value(leat_grad *g, int i, leat_grad_value dx) LEAT_MUST_CHECK;
/* Nodes that the constructors add get the file and line of the call to leat_gradients. */

/* ---- A kernel ---- */
typedef struct leat_kernel leat_kernel; /* one run of a kernel in one step */

enum {
    LEAT_KERNEL_EXPENSIVE = 1, /* worth a thread of its own */
    /* Also serves half and bfloat16: inputs and outputs are converted to and from float. */
    LEAT_KERNEL_VIA_FLOAT = 2,
    LEAT_KERNEL_BLOCKS = 4, /* may wait for something outside the step */
    /* Can be a step of a fused tree of element-wise ops. Of a CPU's kernel the state is a leat_row1
     * or leat_row2 (leat/rows.h). */
    LEAT_KERNEL_ROWS = 8,
    /* Hands its inputs on as outputs and looks at none of them, but for those that `host` names:
     * their memory may be the host's or the device's. */
    LEAT_KERNEL_ANY_MEMORY = 16,
    /* All inputs, outputs and temporary memory are the host's, whatever the device's memory is: for
     * shapes and counts, which a device would only have to copy to and fro. */
    LEAT_KERNEL_ON_HOST = 32
};

/* One of run and run_async is set. `state`, of state_size bytes, initially zero, belongs to one
 * node of one plan: init reads the attributes into it once, release frees what init allocated.
 * Several steps may run the same node at once, so run must not write to `state` without a lock. */
typedef struct leat_kernel_def {
    const char *op;
    struct {
        const char *attr; /* a type attribute of the op; NULL ends */
        leat_types types; /* the dtypes it may have */
    } where[3];
    leat_status (*run)(leat_kernel *k);
    /* Starts the computation. It calls leat_kernel_done(k, status) exactly once, at any later time,
     * from any thread, also before run_async returns. */
    void (*run_async)(leat_kernel *k);
    size_t state_size;
    leat_status (*init)(const leat_node *n, void *state);
    void (*release)(void *state);
    unsigned flags;
    const struct leat_apply_rule *rule; /* for training ops (leat/rows.h), else NULL */
    /* Inputs and outputs of the op that are in the host's memory, "shape, axis", on a device whose
     * memory is not the host's. Those of type string, resource and variant always are. All others
     * are in the device's memory: the run enqueues work on them and need not wait for it, but has
     * done with the host's memory when it returns. */
    const char *host;
} leat_kernel_def;

LEAT_API const leat_node *leat_kernel_node(leat_kernel *k);
LEAT_API void *leat_kernel_state(leat_kernel *k);
LEAT_API int leat_kernel_inputs(leat_kernel *k);
LEAT_API const leat_tensor *leat_kernel_in(leat_kernel *k, int i); /* borrowed */
LEAT_API leat_dtype leat_kernel_out_dtype(leat_kernel *k, int i);
/* Output i, allocated but not initialised, for the kernel to fill. Borrowed by the kernel. */
LEAT_API leat_status leat_kernel_out(leat_kernel *k, int i, const leat_shape *shape,
                                     leat_tensor **out) LEAT_MUST_CHECK;
/* Like leat_kernel_out, but the output uses the memory of input `in` if the step does not need that
 * input any more and the sizes are equal. The kernel may write element e of the output only after
 * it has read element e of the input. */
LEAT_API leat_status leat_kernel_out_over(leat_kernel *k, int i, int in, const leat_shape *shape,
                                          leat_tensor **out) LEAT_MUST_CHECK;
LEAT_API void leat_kernel_set(leat_kernel *k, int i, leat_tensor *t); /* output i is t; takes t */
/* Memory for this run only. */
LEAT_API leat_status leat_kernel_temp(leat_kernel *k, leat_dtype t, const leat_shape *shape,
                                      leat_tensor **out) LEAT_MUST_CHECK;
/* Calls fn(arg, begin, end) on parts of [0, n), on this device's threads; unit_ns is the estimated
 * cost of one element. What is left is skipped once the step was cancelled or its time is over,
 * unless an input is a reference or a resource: the node then fails, and its outputs are not used.
 * A kernel that goes on with what the loop has written, such as counts or indices, checks
 * leat_kernel_cancelled first. */
LEAT_API void leat_kernel_for(leat_kernel *k, int64_t n, double unit_ns,
                              void (*fn)(void *arg, int64_t begin, int64_t end), void *arg);
LEAT_API bool leat_kernel_cancelled(leat_kernel *k); /* long loops check this now and then */
/* Ends an asynchronous kernel; takes s. */
LEAT_API void leat_kernel_done(leat_kernel *k, leat_status s);

/* ---- Functions of the graph, run by kernels ----
 * An op whose attributes name functions ("f: func", "branches: list(func)") has kernels that run
 * them: any number of times, many at once, each with tensors of its own. A call is a step inside
 * the kernel's step: it ends when that step is cancelled or its timeout passes, and its nodes run
 * on the devices that they name, else on the kernel's. Captured tensors and resource handles are
 * passed as further arguments. */
typedef struct leat_callable leat_callable; /* a function with its attributes, ready to be run */

/* The function in attribute `attr` of the kernel's node, item i of a list of functions (else i is
 * 0). The first call compiles it, once for all runs of the plan. Borrowed: it lives as long as the
 * run of the kernel. NOT_FOUND if there is no such function, INVALID_ARGUMENT if something is wrong
 * with its body. */
LEAT_API leat_status leat_kernel_function(leat_kernel *k, const char *attr, int i,
                                          leat_callable **out) LEAT_MUST_CHECK;
/* For an object that outlives the step, such as an iterator: with a reference the function can be
 * run after the session's plan was freed, until the device is closed; a device drops its resources
 * before it is closed. A kernel's state must not hold a reference: the reference may keep the plan
 * alive that the state belongs to, and neither would be freed. Gives c. */
LEAT_API leat_callable *leat_callable_ref(leat_callable *c);
LEAT_API void leat_callable_unref(leat_callable *c); /* of NULL does nothing */
/* The number of arguments or results; their dtypes, too, unless types_out is NULL. */
LEAT_API int leat_callable_args(const leat_callable *c, const leat_dtype **types_out);
LEAT_API int leat_callable_results(const leat_callable *c, const leat_dtype **types_out);

typedef struct leat_cancellation leat_cancellation; /* session.h */
typedef struct leat_callable_options {
    /* The kernel whose step the call is part of, which must not end before the call; NULL: the call
     * is part of no step. */
    leat_kernel *kernel;
    /* Ends the call with CANCELLED; may be NULL. Borrowed until the call has ended. */
    leat_cancellation *cancellation;
} leat_callable_options;
/* Called when the call has ended. Takes s and, if s is OK, a reference to each of the n results;
 * borrows the array. It may drop the caller's reference to the callable. */
typedef void (*leat_callable_fn)(void *arg, leat_status s, leat_tensor **results, int n);
/* Starts a call; shares the arguments. done is called exactly once, maybe before this returns, from
 * any thread. It is an error if an argument is missing or of another dtype, and if calls are nested
 * more than 1000 deep (RESOURCE_EXHAUSTED). options may be NULL. */
LEAT_API void leat_callable_start(leat_callable *c, leat_tensor *const *args, int n,
                                  const leat_callable_options *options, leat_callable_fn done,
                                  void *arg);
/* The same, but waits until the call has ended: for threads that a kernel's object has started, not
 * for kernels. Writes all results to the caller's array. */
LEAT_API leat_status leat_callable_run(leat_callable *c, leat_tensor *const *args, int n,
                                       const leat_callable_options *options,
                                       leat_tensor **results) LEAT_MUST_CHECK;

/* ---- Registering ops and kernels from outside; call these before the first graph is made ---- */
LEAT_API leat_status leat_register_op(const leat_op_def *op) LEAT_MUST_CHECK;
/* device_type is "CPU" or "GPU". */
LEAT_API leat_status leat_register_kernels(const char *device_type, const leat_kernel_def *kernels,
                                           int n) LEAT_MUST_CHECK;

#endif
