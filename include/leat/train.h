/* train.h -- training: optimizers, gradients clipped and applied, learning rates that decay, moving
 * averages, the global step.
 *
 * All functions here build nodes; a mistake is recorded in the graph (leat_graph_status). Options
 * that are not written have TensorFlow's defaults; an option of 0 is 0. Where TensorFlow has no
 * default the option is marked "required": to leave it out is a mistake.
 */
#ifndef LEAT_TRAIN_H
#define LEAT_TRAIN_H

#include <leat/cluster.h>
#include <leat/nn.h>
#include <leat/variable.h>

/* ---- The global step: an int64 variable, one for each graph, that counts updates ---- */
#define LEAT_GLOBAL_STEP "global_step"
/* Finds the variable in the collection "global_step", or makes it. */
#define leat_global_step(g) leat_global_step_at(LEAT_AT, g)
LEAT_API leat_out leat_global_step_at(leat_loc at, leat_graph *g);

typedef struct leat_moving_average leat_moving_average;

/* ---- Optimizers. An optimizer can be used for any number of losses of one graph; its slots are
 * variables of the graph and outlive it. ---- */
typedef struct leat_optimizer leat_optimizer;
LEAT_API void leat_optimizer_free(leat_optimizer *opt); /* of NULL does nothing */

/* A learning rate is a number or a scalar tensor, such as a schedule's. A required option that is
 * missing is reported when the optimizer is first used, with the line of its constructor. */
typedef struct leat_gradient_descent_options {
    leat_given given;     /* set by the macro */
    double learning_rate; /* required, unless the tensor is set */
    leat_out learning_rate_tensor;
    bool use_locking;
    const char *name; /* "GradientDescent" */
} leat_gradient_descent_options;
LEAT_API leat_optimizer *leat_gradient_descent_new(const leat_gradient_descent_options *o);
#define leat_gradient_descent(...)                                                                 \
    leat_gradient_descent_new(LEAT_GIVEN_OPTIONS(leat_gradient_descent_options, __VA_ARGS__))

typedef struct leat_momentum_options {
    leat_given given;               /* set by the macro */
    double learning_rate, momentum; /* required, unless their tensors are set */
    leat_out learning_rate_tensor, momentum_tensor;
    bool use_nesterov, use_locking;
    const char *name; /* "Momentum" */
} leat_momentum_options;
LEAT_API leat_optimizer *leat_momentum_new(const leat_momentum_options *o);
#define leat_momentum(...) leat_momentum_new(LEAT_GIVEN_OPTIONS(leat_momentum_options, __VA_ARGS__))

typedef struct leat_adam_options {
    leat_given given;             /* set by the macro */
    double learning_rate;         /* 0.001 */
    double beta1, beta2, epsilon; /* 0.9, 0.999, 1e-8 */
    leat_out learning_rate_tensor;
    bool use_locking;
    const char *name; /* "Adam" */
} leat_adam_options;
LEAT_API leat_optimizer *leat_adam_new(const leat_adam_options *o);
#define leat_adam(...) leat_adam_new(LEAT_GIVEN_OPTIONS(leat_adam_options, __VA_ARGS__))

typedef struct leat_adagrad_options {
    leat_given given;                 /* set by the macro */
    double learning_rate;             /* required, unless the tensor is set */
    double initial_accumulator_value; /* 0.1; must be positive */
    leat_out learning_rate_tensor;
    bool use_locking;
    const char *name; /* "Adagrad" */
} leat_adagrad_options;
LEAT_API leat_optimizer *leat_adagrad_new(const leat_adagrad_options *o);
#define leat_adagrad(...) leat_adagrad_new(LEAT_GIVEN_OPTIONS(leat_adagrad_options, __VA_ARGS__))

typedef struct leat_rmsprop_options {
    leat_given given;                /* set by the macro */
    double learning_rate;            /* required, unless the tensor is set */
    double decay, momentum, epsilon; /* 0.9, 0, 1e-10 */
    leat_out learning_rate_tensor;
    bool centered, use_locking;
    const char *name; /* "RMSProp" */
} leat_rmsprop_options;
LEAT_API leat_optimizer *leat_rmsprop_new(const leat_rmsprop_options *o);
#define leat_rmsprop(...) leat_rmsprop_new(LEAT_GIVEN_OPTIONS(leat_rmsprop_options, __VA_ARGS__))

/* ---- Minimizing: the op that does one update ---- */
typedef enum leat_gate {
    LEAT_GATE_OP,    /* all gradients of an op are computed before one of them is used */
    LEAT_GATE_NONE,  /* most parallel; results may differ from run to run */
    LEAT_GATE_GRAPH, /* all gradients are computed before one of them is used */
} leat_gate;
typedef struct leat_minimize_options {
    leat_out global_step; /* incremented after the update; NULL node: none */
    const leat_out *vars; /* NULL: all trainable variables */
    int n_vars;
    leat_gate gate;
    bool colocate; /* place gradients on the devices of the ops that they are gradients of */
    leat_out grad_loss;    /* d(something)/d(loss); NULL node: 1 */
    const char *name;      /* name of the update; default: the optimizer's */
} leat_minimize_options;
#define leat_minimize(opt, loss, ...)                                                              \
    leat_minimize_at(LEAT_AT, opt, loss, LEAT_OPTIONS(leat_minimize_options, __VA_ARGS__))
LEAT_API leat_out leat_minimize_at(leat_loc at, leat_optimizer *opt, leat_out loss,
                                   const leat_minimize_options *o);

/* Minimizing in two calls, so that the gradients can be changed in between. */
typedef struct leat_var_grad {
    leat_out var;         /* the output that is the variable's reference or handle */
    leat_grad_value grad; /* value.node NULL: the loss does not depend on var */
} leat_var_grad;
/* Gives an array of *n_out, to be freed with free(). The options global_step and name are
 * ignored. */
#define leat_compute_gradients(opt, loss, n_out, ...)                                              \
    leat_compute_gradients_at(LEAT_AT, opt, loss, n_out,                                           \
                              LEAT_OPTIONS(leat_minimize_options, __VA_ARGS__))
LEAT_API leat_var_grad *leat_compute_gradients_at(leat_loc at, leat_optimizer *opt, leat_out loss,
                                                  int *n_out, const leat_minimize_options *o);
/* Of the options, only global_step and name are used. */
#define leat_apply_gradients(opt, grads, n, ...)                                                   \
    leat_apply_gradients_at(LEAT_AT, opt, grads, n,                                                \
                            LEAT_OPTIONS(leat_minimize_options, __VA_ARGS__))
LEAT_API leat_out leat_apply_gradients_at(leat_loc at, leat_optimizer *opt,
                                          const leat_var_grad *grads, int n,
                                          const leat_minimize_options *o);
/* The slot ("m", "v", "momentum", "accumulator", "rms", ...) that the optimizer keeps for a
 * variable. */
LEAT_API leat_out leat_optimizer_slot(leat_optimizer *opt, leat_out var, const char *slot);

/* ---- Synchronous replicas: the gradients of several workers are averaged and applied once ----
 * The protocol is that of TensorFlow's SyncReplicasOptimizer. leat_monitored_open and
 * leat_supervisor_open detect that a graph was built with it. The global step counts rounds, not
 * gradients. */
typedef struct leat_sync_options {
    leat_given given;          /* set by the macro */
    int replicas_to_aggregate; /* required: how many gradients are averaged in a round */
    /* Default: replicas_to_aggregate. If more, the others are backup workers, whose gradients are
     * dropped if they come too late; if fewer, a worker gives several gradients a round. */
    int total_num_replicas;
    leat_moving_average *variable_averages; /* updated after each round; borrowed */
    const leat_out *variables_to_average;
    int n_variables_to_average;
    bool use_locking;
    /* A replica that has sent nothing for so long is not waited for until it is back. Default 10;
     * 0 or below: every replica is always waited for, as in TensorFlow. */
    double lease_secs;
    /* This worker's number, below total_num_replicas. Default: the task index of the device that
     * this worker's nodes get. */
    int replica;
    const char *name; /* "sync_replicas" */
} leat_sync_options;
/* Takes opt. */
LEAT_API leat_optimizer *leat_sync_replicas_new(leat_optimizer *opt, const leat_sync_options *o);
#define leat_sync_replicas(opt, ...)                                                               \
    leat_sync_replicas_new(opt, LEAT_GIVEN_OPTIONS(leat_sync_options, __VA_ARGS__))
/* How many gradients of this worker were dropped because they came too late, as last reported by
 * the parameter servers; -1 if those do not count them (TensorFlow's do not). */
LEAT_API int64_t leat_sync_dropped(const leat_graph *g);
/* On the chief: how many gradients the current round waits for. */
LEAT_API int leat_sync_quorum(const leat_graph *g);

typedef struct leat_average_options {
    /* One reduction for all gradients of a dtype instead of one for each variable: every tower
     * joins its gradients to a vector, on the device of the first of them, so that one tensor goes
     * from each tower to where they are averaged. Gradients that are rows are averaged one by one. */
    bool fused;
} leat_average_options;
/* For towers: averages the gradients of the towers (n_vars of each), variable by variable; the
 * result names the first tower's variables. Gives an array to be freed with free(). */
#define leat_average_gradients(towers, n_towers, n_vars, ...)                                      \
    leat_average_gradients_at(LEAT_AT, towers, n_towers, n_vars,                                   \
                              LEAT_OPTIONS(leat_average_options, __VA_ARGS__))
LEAT_API leat_var_grad *leat_average_gradients_at(leat_loc at, leat_var_grad *const *towers,
                                                  int n_towers, int n_vars,
                                                  const leat_average_options *o);

/* ---- Finding what made a NaN ---- */
/* A node that computes the n tensors xs and checks every tensor of floats that they need, in the
 * order in which the ops were made, but for those inside of loops and branches. It fails with
 * INVALID_ARGUMENT at the first that has a NaN or an infinity: "conv1/Conv2D:0 : Tensor had NaN
 * values". (tf.add_check_numerics_ops checks the whole graph.) */
#define leat_add_check_numerics(xs, n) leat_add_check_numerics_at(LEAT_AT, xs, n)
LEAT_API leat_out leat_add_check_numerics_at(leat_loc at, const leat_out *xs, int n);

/* ---- Clipping ---- */
#define leat_clip_by_norm(x, norm) leat_clip_by_norm_at(LEAT_AT, x, norm)
LEAT_API leat_out leat_clip_by_norm_at(leat_loc at, leat_out x, double norm);
/* sqrt(sum of squares of all elements). Entries whose node is NULL are ignored. */
#define leat_global_norm(grads, n) leat_global_norm_at(LEAT_AT, grads, n)
LEAT_API leat_out leat_global_norm_at(leat_loc at, const leat_grad_value *grads, int n);
/* Scales all in place so that their global norm is at most `norm`. Gives the norm before scaling.
 * If that norm is not finite, all elements become NaN. */
#define leat_clip_by_global_norm(grads, n, norm) leat_clip_by_global_norm_at(LEAT_AT, grads, n, norm)
LEAT_API leat_out leat_clip_by_global_norm_at(leat_loc at, leat_grad_value *grads, int n,
                                              double norm);

/* ---- Learning rates that depend on the step, an integer scalar ---- */
typedef struct leat_decay_options {
    leat_given given;                  /* set by the macro */
    double learning_rate, decay_steps; /* required */
    double decay_rate;                 /* required, but not used by polynomial decay */
    bool staircase;                    /* the exponent is rounded down to an integer */
    double end_learning_rate; /* for polynomial decay: default 0.0001 */
    double power;             /* for polynomial decay: default 1 */
    bool cycle; /* for polynomial decay: starts again, with more decay steps, when it has ended */
    const char *name;
} leat_decay_options;
#define leat_exponential_decay(step, ...)                                                          \
    leat_exponential_decay_at(LEAT_AT, step, LEAT_GIVEN_OPTIONS(leat_decay_options, __VA_ARGS__))
LEAT_API leat_out leat_exponential_decay_at(leat_loc at, leat_out step, const leat_decay_options *o);
#define leat_natural_exp_decay(step, ...)                                                          \
    leat_natural_exp_decay_at(LEAT_AT, step, LEAT_GIVEN_OPTIONS(leat_decay_options, __VA_ARGS__))
LEAT_API leat_out leat_natural_exp_decay_at(leat_loc at, leat_out step, const leat_decay_options *o);
#define leat_inverse_time_decay(step, ...)                                                         \
    leat_inverse_time_decay_at(LEAT_AT, step, LEAT_GIVEN_OPTIONS(leat_decay_options, __VA_ARGS__))
LEAT_API leat_out leat_inverse_time_decay_at(leat_loc at, leat_out step,
                                             const leat_decay_options *o);
#define leat_polynomial_decay(step, ...)                                                           \
    leat_polynomial_decay_at(LEAT_AT, step, LEAT_GIVEN_OPTIONS(leat_decay_options, __VA_ARGS__))
LEAT_API leat_out leat_polynomial_decay_at(leat_loc at, leat_out step, const leat_decay_options *o);
/* values[0] for steps up to and including boundaries[0], ..., values[n] beyond boundaries[n -
 * 1]. */
#define leat_piecewise_constant(step, boundaries, values, n)                                       \
    leat_piecewise_constant_at(LEAT_AT, step, boundaries, values, n)
LEAT_API leat_out leat_piecewise_constant_at(leat_loc at, leat_out step, const double *boundaries,
                                             const double *values, int n);

/* ---- Moving averages of variables, in shadow variables "w/ExponentialMovingAverage" ---- */
typedef struct leat_moving_average_options {
    leat_given given; /* set by the macro */
    double decay;     /* required */
    /* If set, the decay is at most (1 + num_updates) / (10 + num_updates). */
    leat_out num_updates;
    bool zero_debias;     /* correct the bias of averages of tensors, which start at zero */
    const char *name;     /* "ExponentialMovingAverage" */
} leat_moving_average_options;
LEAT_API leat_moving_average *leat_moving_average_make(const leat_moving_average_options *o);
#define leat_moving_average_new(...)                                                               \
    leat_moving_average_make(LEAT_GIVEN_OPTIONS(leat_moving_average_options, __VA_ARGS__))
LEAT_API void leat_moving_average_free(leat_moving_average *ema); /* of NULL does nothing */
/* The op that updates the averages of these variables or other tensors; makes averages that do not
 * exist yet. */
#define leat_moving_average_apply(ema, xs, n) leat_moving_average_apply_at(LEAT_AT, ema, xs, n)
LEAT_API leat_out leat_moving_average_apply_at(leat_loc at, leat_moving_average *ema,
                                               const leat_out *xs, int n);
/* The value of x's average; a NULL node if it has none. */
LEAT_API leat_out leat_moving_average_of(leat_moving_average *ema, leat_out x);

/* ---- Placing the nodes of a replica: variables on the ps tasks, other nodes on the worker, as by
 * tf.train.replica_device_setter. Devices set by scopes inside are kept. ---- */
typedef enum leat_ps_strategy {
    LEAT_PS_ROUND_ROBIN, /* one ps task after another */
    LEAT_PS_GREEDY,      /* the ps task with the least load so far */
} leat_ps_strategy;
typedef struct leat_replica_options {
    const leat_cluster *cluster; /* the size of its job "ps" is the number of ps tasks; borrowed */
    int ps_tasks;                /* number of ps tasks, if there is no cluster */
    const char *ps_device;       /* default "/job:ps"; "": no ps */
    const char *worker_device;   /* default "/job:worker"; "": anywhere */
    bool no_merge; /* the device of a node that already has one is not merged with the setter's */
    /* Ops that are placed on a ps task, a list that ends with NULL; default: variables and
     * tables. */
    const char *const *ps_ops;
    leat_ps_strategy strategy;
    double (*load)(const leat_node *n); /* for LEAT_PS_GREEDY; default leat_byte_size_load */
    int (*choose)(void *arg, const leat_node *n); /* gives a ps task; used instead of `strategy` */
    void *choose_arg;
} leat_replica_options;
typedef struct leat_device_setter leat_device_setter;
/* Gives NULL, which as a setter does nothing, if there are no ps tasks. Free with
 * leat_device_setter_free. */
LEAT_API leat_device_setter *leat_replica_device_setter_new(const leat_replica_options *o);
LEAT_API void leat_device_setter_free(leat_device_setter *d); /* of NULL does nothing */
/* The setter of this task of the job "worker" (or of .worker_device):
 * leat_replica_device_setter(cluster, 0, .strategy = LEAT_PS_GREEDY) */
#define leat_replica_device_setter(cluster_, task, ...)                                            \
    leat_replica_device_setter_for(                                                                \
        task, LEAT_OPTIONS(leat_replica_options, .cluster = (cluster_), ##__VA_ARGS__))
LEAT_API leat_device_setter *leat_replica_device_setter_for(int task, const leat_replica_options *o);
/* A leat_device_fn, for a setter that is used more than once: leat_with_device_fn(g,
 * leat_device_setter_fn, setter). */
LEAT_API const char *leat_device_setter_fn(void *setter, const leat_node *n);
/* Takes the setter: leat_with_device_setter(g, leat_replica_device_setter(cluster, task)) { ... } */
typedef struct leat_setter_scope {
    leat_device_setter *setter;
    bool inside;
} leat_setter_scope;
LEAT_API leat_setter_scope leat_device_setter_enter(leat_graph *g, leat_device_setter *setter);
LEAT_API void leat_device_setter_leave(leat_graph *g, leat_setter_scope *scope);
#define leat_with_device_setter(g, setter)                                                         \
    for (leat_setter_scope leat_setter_ = leat_device_setter_enter(g, setter);                     \
         leat_setter_.inside; leat_device_setter_leave(g, &leat_setter_))
/* The bytes of a variable, from its node's dtype and shape; -1 if the shape is not fully known. */
LEAT_API double leat_byte_size_load(const leat_node *n);

#endif
