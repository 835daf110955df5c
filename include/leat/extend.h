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
typedef struct leat_infer leat_infer; /* shape inference of one node */
typedef struct leat_grad leat_grad;   /* the gradient of one node */

enum {
    LEAT_OP_STATEFUL = 1,     /* never folded, merged or run twice */
    LEAT_OP_COMMUTATIVE = 2,
    LEAT_OP_AGGREGATE = 4,    /* commutative and associative over any number of inputs */
    LEAT_OP_UNINITIALIZED = 8 /* accepts a reference to a variable that has no value */
};

/* inputs, outputs and attrs are spelled as in TensorFlow's REGISTER_OP: "x: T, y: T",
 * "inputs: N * T", "ref: Ref(T)", "out: float"; attrs are separated by ";":
 * "T: {float, double} = DT_FLOAT; N: int >= 1; keep_dims: bool = false; shape: shape = {}". */
typedef struct leat_op_def {
    const char *name, *inputs, *outputs, *attrs;
    leat_status (*shape)(leat_infer *c);
    leat_status (*grad)(leat_grad *g); /* or leat_grad_none, or leat_grad_missing */
    unsigned flags;
} leat_op_def;

/* Gradient functions that say why there is none. */
leat_status leat_grad_none(leat_grad *g);    /* not differentiable: nothing flows back */
leat_status leat_grad_missing(leat_grad *g); /* TensorFlow has none: asking is an error */

/* ---- Shape functions: inputs are known partly or wholly; say what the outputs are, or what is
 * wrong (INVALID_ARGUMENT). ---- */
LEAT_API const leat_node *leat_infer_node(leat_infer *c);
LEAT_API int leat_infer_inputs(leat_infer *c);
LEAT_API int leat_infer_outputs(leat_infer *c);
LEAT_API leat_shape leat_infer_in(leat_infer *c, int i);
LEAT_API const leat_tensor *leat_infer_value(leat_infer *c, int i); /* if constant, else NULL */
/* Input i, an integer vector, read as a shape, as far as it is known. */
LEAT_API leat_status leat_infer_value_shape(leat_infer *c, int i, leat_shape *out) LEAT_MUST_CHECK;
LEAT_API void leat_infer_out(leat_infer *c, int i, leat_shape s);
/* What is behind a resource handle: dtype and shape of a variable. */
LEAT_API bool leat_infer_in_handle(leat_infer *c, int i, leat_dtype *t, leat_shape *s);
LEAT_API void leat_infer_out_handle(leat_infer *c, int i, leat_dtype t, leat_shape s);
/* "Shape must be rank 2 but is rank 1"; a shape of unknown rank gets unknown dims. */
LEAT_API leat_status leat_infer_rank(leat_infer *c, int i, int rank, leat_shape *out) LEAT_MUST_CHECK;
LEAT_API leat_status leat_infer_rank_at_least(leat_infer *c, int i, int rank, leat_shape *out)
    LEAT_MUST_CHECK;
/* "Dimensions must be equal, but are 3 and 4". -1 is any. */
LEAT_API leat_status leat_dim_merge(int64_t a, int64_t b, int64_t *out) LEAT_MUST_CHECK;
LEAT_API leat_status leat_shape_merge(const leat_shape *a, const leat_shape *b, leat_shape *out)
    LEAT_MUST_CHECK;
LEAT_API leat_status leat_shape_broadcast(const leat_shape *a, const leat_shape *b, leat_shape *out)
    LEAT_MUST_CHECK;
/* Ready-made shape functions. */
LEAT_API leat_status leat_shape_unchanged(leat_infer *c);  /* output 0 is as input 0 */
LEAT_API leat_status leat_shape_scalar(leat_infer *c);     /* all outputs are scalars */
LEAT_API leat_status leat_shape_any(leat_infer *c);        /* nothing is known */
LEAT_API leat_status leat_shape_none(leat_infer *c);       /* no outputs */
LEAT_API leat_status leat_shape_broadcast_binary(leat_infer *c);
LEAT_API leat_status leat_shape_merged(leat_infer *c);     /* all inputs and output 0 are alike */

/* ---- Gradient functions: leat_grad_in(g, 0, leat_mul(leat_grad_out(g, 0), ...)). Inputs that
 * get nothing have no gradient. ---- */
LEAT_API leat_graph *leat_grad_graph(leat_grad *g);
LEAT_API const leat_node *leat_grad_node(leat_grad *g);
LEAT_API leat_out leat_grad_input(leat_grad *g, int i);  /* the op's */
LEAT_API leat_out leat_grad_output(leat_grad *g, int i); /* the op's */
LEAT_API leat_out leat_grad_out(leat_grad *g, int i);    /* dL/d(output i), dense; zeros if nothing came */
LEAT_API bool leat_grad_has_out(leat_grad *g, int i);
/* Whether a gradient of input i leads anywhere; what is not wanted need not be built. */
LEAT_API bool leat_grad_wants(leat_grad *g, int i);
LEAT_API leat_grad_value leat_grad_out_value(leat_grad *g, int i); /* as it came, rows or dense */
LEAT_API leat_status leat_grad_in(leat_grad *g, int i, leat_out dx) LEAT_MUST_CHECK;
LEAT_API leat_status leat_grad_in_value(leat_grad *g, int i, leat_grad_value dx) LEAT_MUST_CHECK;
/* The constructors use the place of the caller of leat_gradients. */

/* ---- A kernel ---- */
typedef struct leat_kernel leat_kernel; /* one run of a kernel */

enum {
    LEAT_KERNEL_EXPENSIVE = 1, /* worth a thread of its own */
    LEAT_KERNEL_VIA_FLOAT = 2, /* serves half and bfloat16, too: inputs and outputs are converted */
    LEAT_KERNEL_BLOCKS = 4     /* may wait for something outside the step */
};

/* One of run and run_async is set. `state`, of state_size bytes, zeroed, belongs to one node of
 * one plan: init reads the attributes into it once, release undoes that. Several steps may run
 * the same node at once, so run must not write to it without a lock. */
typedef struct leat_kernel_def {
    const char *op;
    struct {
        const char *attr; /* a type attribute of the op; NULL ends */
        leat_types types; /* what it may be */
    } where[3];
    leat_status (*run)(leat_kernel *k);
    /* Starts; calls leat_kernel_done(k, status) exactly once, now or later, from any thread. */
    void (*run_async)(leat_kernel *k);
    size_t state_size;
    leat_status (*init)(const leat_node *n, void *state);
    void (*release)(void *state);
    unsigned flags;
} leat_kernel_def;

LEAT_API const leat_node *leat_kernel_node(leat_kernel *k);
LEAT_API void *leat_kernel_state(leat_kernel *k);
LEAT_API int leat_kernel_inputs(leat_kernel *k);
LEAT_API const leat_tensor *leat_kernel_in(leat_kernel *k, int i); /* borrowed */
LEAT_API leat_dtype leat_kernel_out_dtype(leat_kernel *k, int i);
/* Output i, to be filled: its bytes are not set. Borrowed by the kernel, which may write to it. */
LEAT_API leat_status leat_kernel_out(leat_kernel *k, int i, const leat_shape *shape,
                                     leat_tensor **out) LEAT_MUST_CHECK;
/* The same, but in the memory of input `in` if this step needs it no more and it has as many
 * bytes: element e of the output may be written once element e of that input was read. */
LEAT_API leat_status leat_kernel_out_over(leat_kernel *k, int i, int in, const leat_shape *shape,
                                          leat_tensor **out) LEAT_MUST_CHECK;
LEAT_API void leat_kernel_set(leat_kernel *k, int i, leat_tensor *t); /* output i is t; takes it */
/* Memory for this run only. */
LEAT_API leat_status leat_kernel_temp(leat_kernel *k, leat_dtype t, const leat_shape *shape,
                                      leat_tensor **out) LEAT_MUST_CHECK;
/* fn(arg, begin, end) over [0, n) on this device's threads; unit_ns is a guess of one's cost. */
LEAT_API void leat_kernel_for(leat_kernel *k, int64_t n, double unit_ns,
                              void (*fn)(void *arg, int64_t begin, int64_t end), void *arg);
LEAT_API bool leat_kernel_cancelled(leat_kernel *k); /* long loops ask now and then */
LEAT_API void leat_kernel_done(leat_kernel *k, leat_status s); /* takes s; of an async kernel */

/* ---- Adding to Leat from outside; call before the first graph is made ---- */
LEAT_API leat_status leat_register_op(const leat_op_def *op) LEAT_MUST_CHECK;
/* device_type: "CPU", "GPU". */
LEAT_API leat_status leat_register_kernels(const char *device_type, const leat_kernel_def *kernels,
                                           int n) LEAT_MUST_CHECK;

#endif
