/* train.h -- training: optimizers, gradients clipped and applied, learning rates that decay,
 * moving averages, the global step.
 *
 * Everything here builds nodes; mistakes stick to the graph. Options that are not set (zero) have
 * TensorFlow's defaults.
 */
#ifndef LEAT_TRAIN_H
#define LEAT_TRAIN_H

#include <leat/cluster.h>
#include <leat/nn.h>
#include <leat/variable.h>

/* ---- The global step: an int64 variable, one for each graph, that counts updates ---- */
#define LEAT_GLOBAL_STEP "global_step"
/* Found in the collection "global_step", or made there. */
#define leat_global_step(g) leat_global_step_at(LEAT_AT, g)
LEAT_API leat_out leat_global_step_at(leat_loc at, leat_graph *g);

typedef struct leat_moving_average leat_moving_average;

/* ---- Optimizers. One is made, used on any number of losses of one graph, freed; its slots are
 * variables of the graph and stay. ---- */
typedef struct leat_optimizer leat_optimizer;
LEAT_API void leat_optimizer_free(leat_optimizer *opt); /* of NULL does nothing */

/* A learning rate is a number or a scalar tensor, such as a schedule's. */
typedef struct leat_gradient_descent_options {
    double learning_rate;
    leat_out learning_rate_tensor;
    bool use_locking;
    const char *name; /* "GradientDescent" */
} leat_gradient_descent_options;
LEAT_API leat_optimizer *leat_gradient_descent_new(const leat_gradient_descent_options *o);
#define leat_gradient_descent(...)                                                                 \
    leat_gradient_descent_new(&(leat_gradient_descent_options){__VA_ARGS__})

typedef struct leat_momentum_options {
    double learning_rate, momentum;
    leat_out learning_rate_tensor, momentum_tensor;
    bool use_nesterov, use_locking;
    const char *name; /* "Momentum" */
} leat_momentum_options;
LEAT_API leat_optimizer *leat_momentum_new(const leat_momentum_options *o);
#define leat_momentum(...) leat_momentum_new(&(leat_momentum_options){__VA_ARGS__})

typedef struct leat_adam_options {
    double learning_rate;                 /* 0.001 */
    double beta1, beta2, epsilon;         /* 0.9, 0.999, 1e-8 */
    leat_out learning_rate_tensor;
    bool use_locking;
    const char *name; /* "Adam" */
} leat_adam_options;
LEAT_API leat_optimizer *leat_adam_new(const leat_adam_options *o);
#define leat_adam(...) leat_adam_new(&(leat_adam_options){__VA_ARGS__})

typedef struct leat_adagrad_options {
    double learning_rate;
    double initial_accumulator_value; /* 0.1 */
    leat_out learning_rate_tensor;
    bool use_locking;
    const char *name; /* "Adagrad" */
} leat_adagrad_options;
LEAT_API leat_optimizer *leat_adagrad_new(const leat_adagrad_options *o);
#define leat_adagrad(...) leat_adagrad_new(&(leat_adagrad_options){__VA_ARGS__})

typedef struct leat_rmsprop_options {
    double learning_rate;
    double decay, momentum, epsilon; /* 0.9, 0, 1e-10 */
    leat_out learning_rate_tensor;
    bool centered, use_locking;
    const char *name; /* "RMSProp" */
} leat_rmsprop_options;
LEAT_API leat_optimizer *leat_rmsprop_new(const leat_rmsprop_options *o);
#define leat_rmsprop(...) leat_rmsprop_new(&(leat_rmsprop_options){__VA_ARGS__})

/* ---- Minimizing: the op that does one update ---- */
typedef enum leat_gate {
    LEAT_GATE_OP,    /* all gradients of an op are ready before one is used */
    LEAT_GATE_NONE,  /* most parallel; results may differ from run to run */
    LEAT_GATE_GRAPH, /* all gradients are ready before one is used */
} leat_gate;
typedef struct leat_minimize_options {
    leat_out global_step;  /* counted up after the update; NULL node: none */
    const leat_out *vars;  /* NULL: the trainable ones */
    int n_vars;
    leat_gate gate;
    bool colocate;         /* gradients go with the ops that they are gradients of */
    leat_out grad_loss;    /* d(something)/d(loss); NULL node: 1 */
    const char *name;      /* of the update; the optimizer's */
} leat_minimize_options;
#define leat_minimize(opt, loss, ...)                                                              \
    leat_minimize_at(LEAT_AT, opt, loss, &(leat_minimize_options){__VA_ARGS__})
LEAT_API leat_out leat_minimize_at(leat_loc at, leat_optimizer *opt, leat_out loss,
                                   const leat_minimize_options *o);

/* The same in two steps, with something done to the gradients between. */
typedef struct leat_var_grad {
    leat_out var;         /* the variable's own output */
    leat_grad_value grad; /* value.node NULL: the loss does not depend on it */
} leat_var_grad;
/* Gives an array of *n_out, to be freed with free(); global_step and name do not count. */
#define leat_compute_gradients(opt, loss, n_out, ...)                                              \
    leat_compute_gradients_at(LEAT_AT, opt, loss, n_out, &(leat_minimize_options){__VA_ARGS__})
LEAT_API leat_var_grad *leat_compute_gradients_at(leat_loc at, leat_optimizer *opt, leat_out loss,
                                                  int *n_out, const leat_minimize_options *o);
/* Of the options, global_step and name count. */
#define leat_apply_gradients(opt, grads, n, ...)                                                   \
    leat_apply_gradients_at(LEAT_AT, opt, grads, n, &(leat_minimize_options){__VA_ARGS__})
LEAT_API leat_out leat_apply_gradients_at(leat_loc at, leat_optimizer *opt,
                                          const leat_var_grad *grads, int n,
                                          const leat_minimize_options *o);
/* The slot ("m", "v", "momentum", "accumulator", "rms", ...) that goes with a variable. */
LEAT_API leat_out leat_optimizer_slot(leat_optimizer *opt, leat_out var, const char *slot);

/* ---- Synchronous replicas: the gradients of several workers are averaged and applied once ----
 * The protocol is that of TensorFlow's SyncReplicasOptimizer. leat_monitored_open and
 * leat_supervisor_open find out by themselves that a graph has been built with it. The global step
 * counts rounds. */
typedef struct leat_sync_options {
    int replicas_to_aggregate; /* gradients in a mean */
    int total_num_replicas;    /* replicas_to_aggregate; more: backup workers, whose gradients are
                                  dropped if they come too late; fewer: a worker gives several */
    leat_moving_average *variable_averages; /* updated after each round; borrowed */
    const leat_out *variables_to_average;
    int n_variables_to_average;
    bool use_locking;
    double lease_secs; /* who is silent for so long is not waited for until it is back; 0: 10;
                          below 0: every replica is waited for always, as TensorFlow does */
    int replica;       /* which one this is, below total_num_replicas, if */
    bool has_replica;  /* that is set; else the task of the device that nodes of this worker get */
    const char *name;  /* "sync_replicas" */
} leat_sync_options;
/* Takes opt. */
LEAT_API leat_optimizer *leat_sync_replicas_new(leat_optimizer *opt, const leat_sync_options *o);
#define leat_sync_replicas(opt, ...)                                                               \
    leat_sync_replicas_new(opt, &(leat_sync_options){__VA_ARGS__})
/* How many gradients of this worker were dropped because they came too late, as last heard from
 * the parameter servers; -1 if those do not count them (TensorFlow's do not). */
LEAT_API int64_t leat_sync_dropped(const leat_graph *g);
/* On the chief: how many gradients the round under way waits for. */
LEAT_API int leat_sync_quorum(const leat_graph *g);

/* For towers: the gradients of each tower (n_vars of them) averaged, variable by variable; they
 * name the first tower's variables. Gives an array to be freed with free(). */
#define leat_average_gradients(towers, n_towers, n_vars)                                           \
    leat_average_gradients_at(LEAT_AT, towers, n_towers, n_vars)
LEAT_API leat_var_grad *leat_average_gradients_at(leat_loc at, leat_var_grad *const *towers,
                                                  int n_towers, int n_vars);

/* ---- Clipping ---- */
#define leat_clip_by_norm(x, norm) leat_clip_by_norm_at(LEAT_AT, x, norm)
LEAT_API leat_out leat_clip_by_norm_at(leat_loc at, leat_out x, double norm);
/* sqrt(sum of squares of all). Values without a node do not count. */
#define leat_global_norm(grads, n) leat_global_norm_at(LEAT_AT, grads, n)
LEAT_API leat_out leat_global_norm_at(leat_loc at, const leat_grad_value *grads, int n);
/* In place: all are scaled so that their global norm is at most `norm`. Gives the norm as it was.
 * With a norm that is not finite they all become NaN. */
#define leat_clip_by_global_norm(grads, n, norm) leat_clip_by_global_norm_at(LEAT_AT, grads, n, norm)
LEAT_API leat_out leat_clip_by_global_norm_at(leat_loc at, leat_grad_value *grads, int n,
                                              double norm);

/* ---- Learning rates that depend on the step, an integer scalar ---- */
typedef struct leat_decay_options {
    double learning_rate, decay_steps, decay_rate;
    bool staircase;           /* the exponent is whole */
    double end_learning_rate; /* polynomial: 0.0001 */
    double power;             /* polynomial: 1 */
    bool cycle;               /* polynomial: begins anew, longer, when it has ended */
    const char *name;
} leat_decay_options;
#define leat_exponential_decay(step, ...)                                                          \
    leat_exponential_decay_at(LEAT_AT, step, &(leat_decay_options){__VA_ARGS__})
LEAT_API leat_out leat_exponential_decay_at(leat_loc at, leat_out step, const leat_decay_options *o);
#define leat_natural_exp_decay(step, ...)                                                          \
    leat_natural_exp_decay_at(LEAT_AT, step, &(leat_decay_options){__VA_ARGS__})
LEAT_API leat_out leat_natural_exp_decay_at(leat_loc at, leat_out step, const leat_decay_options *o);
#define leat_inverse_time_decay(step, ...)                                                         \
    leat_inverse_time_decay_at(LEAT_AT, step, &(leat_decay_options){__VA_ARGS__})
LEAT_API leat_out leat_inverse_time_decay_at(leat_loc at, leat_out step,
                                             const leat_decay_options *o);
#define leat_polynomial_decay(step, ...)                                                           \
    leat_polynomial_decay_at(LEAT_AT, step, &(leat_decay_options){__VA_ARGS__})
LEAT_API leat_out leat_polynomial_decay_at(leat_loc at, leat_out step, const leat_decay_options *o);
/* values[0] up to and with boundaries[0], ..., values[n] beyond boundaries[n - 1]. */
#define leat_piecewise_constant(step, boundaries, values, n)                                       \
    leat_piecewise_constant_at(LEAT_AT, step, boundaries, values, n)
LEAT_API leat_out leat_piecewise_constant_at(leat_loc at, leat_out step, const double *boundaries,
                                             const double *values, int n);

/* ---- Moving averages of variables, in shadow variables "w/ExponentialMovingAverage" ---- */
typedef struct leat_moving_average_options {
    double decay;
    leat_out num_updates; /* if set, the decay is at most (1 + num_updates) / (10 + num_updates) */
    bool zero_debias;     /* averages of tensors, which begin at zero, are corrected for that */
    const char *name;     /* "ExponentialMovingAverage" */
} leat_moving_average_options;
LEAT_API leat_moving_average *leat_moving_average_make(const leat_moving_average_options *o);
#define leat_moving_average_new(...)                                                               \
    leat_moving_average_make(&(leat_moving_average_options){__VA_ARGS__})
LEAT_API void leat_moving_average_free(leat_moving_average *ema); /* of NULL does nothing */
/* The op that updates the averages of these (variables or other tensors); makes what is missing. */
#define leat_moving_average_apply(ema, xs, n) leat_moving_average_apply_at(LEAT_AT, ema, xs, n)
LEAT_API leat_out leat_moving_average_apply_at(leat_loc at, leat_moving_average *ema,
                                               const leat_out *xs, int n);
/* The value of x's average; a NULL node if it has none. */
LEAT_API leat_out leat_moving_average_of(leat_moving_average *ema, leat_out x);

/* ---- Where the nodes of a replica go: variables to the ps tasks, the rest to the worker, as by
 * tf.train.replica_device_setter. Devices that scopes inside ask for are kept. ---- */
typedef enum leat_ps_strategy {
    LEAT_PS_ROUND_ROBIN, /* one ps task after the other */
    LEAT_PS_GREEDY,      /* the one with the least load so far */
} leat_ps_strategy;
typedef struct leat_replica_options {
    const leat_cluster *cluster; /* its ps job says how many ps tasks there are; borrowed */
    int ps_tasks;                /* without a cluster */
    const char *ps_device;       /* "/job:ps"; "": no ps */
    const char *worker_device;   /* "/job:worker"; "": anywhere */
    bool no_merge;               /* nodes that have a device already keep it as it is */
    const char *const *ps_ops;   /* ops that go to a ps task, NULL-ended; NULL: variables, tables */
    leat_ps_strategy strategy;
    double (*load)(const leat_node *n); /* for LEAT_PS_GREEDY; leat_byte_size_load */
    int (*choose)(void *arg, const leat_node *n); /* gives a ps task; instead of the above */
    void *choose_arg;
} leat_replica_options;
typedef struct leat_device_setter leat_device_setter;
/* NULL, which sets nothing, if there is no ps task. Free with leat_device_setter_free. */
LEAT_API leat_device_setter *leat_replica_device_setter_new(const leat_replica_options *o);
LEAT_API void leat_device_setter_free(leat_device_setter *d); /* of NULL does nothing */
/* For this task of the job "worker", or with .worker_device: leat_replica_device_setter(cluster, 0,
 * .strategy = LEAT_PS_GREEDY) */
#define leat_replica_device_setter(cluster_, task, ...)                                            \
    leat_replica_device_setter_for(                                                                \
        task, &(leat_replica_options){.cluster = (cluster_), ##__VA_ARGS__})
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
/* The bytes of a variable, as its node declares it; -1 if it does not say. */
LEAT_API double leat_byte_size_load(const leat_node *n);

#endif
