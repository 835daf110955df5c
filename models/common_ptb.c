/* common_ptb.c -- see common_ptb.h. */
#include "common_ptb.h"

#include <stdlib.h>
#include <string.h>

/* ---- Configurations ---- */

#define NET(hidden, layers, steps, keep)                                                           \
    {                                                                                              \
        .hidden_size = (hidden), .num_layers = (layers), .num_steps = (steps),                     \
        .keep_prob = (keep), .batch_size = 20, .rnn_mode = "block"                                 \
    }
static const ptb_config configs[] = {
    {"small", 0.1, 1, 5, 0.5, 4, 13, NET(200, 2, 20, 1)},
    {"medium", 0.05, 1, 5, 0.8, 6, 39, NET(650, 2, 35, 0.5)},
    {"large", 0.04, 1, 10, 1 / 1.15, 14, 55, NET(1500, 2, 35, 0.35)},
    {"test", 0.1, 1, 1, 0.5, 1, 1, NET(2, 1, 2, 1)},
};

leat_status ptb_config_find(const char *name, ptb_config *c_out)
{
    for (size_t i = 0; i < sizeof(configs) / sizeof(*configs); i++) {
        if (strcmp(configs[i].name, name) == 0) {
            *c_out = configs[i];
            return NULL;
        }
    }
    return leat_error(INVALID_ARGUMENT, "--model is small, medium, large or test, not %s", name);
}

/* ---- Training ---- */

/* Where a tower's nodes are; variables are at home. */
typedef struct place {
    const char *home, *tower;
} place;

static const char *place_of(void *arg, const leat_node *n)
{
    const place *p = arg;
    const char *op = leat_node_op(n);
    return strncmp(op, "Variable", 8) == 0 || strcmp(op, "VarHandleOp") == 0 ? p->home : p->tower;
}

static leat_var_grad *build_tower(ptb_graph *b, const ptb_config *c, int i, leat_optimizer *opt,
                                  int *n)
{
    leat_var_grad *grads = NULL;
    PTB_MODEL(b->g, c, i ? LEAT_REUSE : LEAT_REUSE_INHERIT)
    {
        lm_build(b->g, &c->lm, true, &b->train[i]);
        grads = leat_compute_gradients(opt, b->train[i].cost, n);
    }
    return grads;
}

/* Writes the gradients of all towers; gives the number of variables. */
static int build_towers(ptb_graph *b, const ptb_config *c, const towers_devices *devices,
                        leat_optimizer *opt, leat_var_grad **grads)
{
    leat_out costs[TOWERS_MOST];
    int n = 0;
    for (int i = 0; i < b->towers; i++) {
        place p = {devices ? devices->home : NULL, devices ? devices->name[i] : NULL};
        if (devices)
            leat_with_device_fn(b->g, place_of, &p) grads[i] = build_tower(b, c, i, opt, &n);
        else
            grads[i] = build_tower(b, c, i, opt, &n);
        costs[i] = b->train[i].cost;
    }
    b->cost = b->towers == 1 ? costs[0]
                             : leat_div(leat_add_n(costs, b->towers),
                                        leat_scalar(b->g, LEAT_FLOAT, b->towers));
    return n;
}

/* Checks of all that losses and gradients need. */
static leat_out build_checks(ptb_graph *b, leat_var_grad *const *grads, int n)
{
    leat_out *all = malloc(sizeof(*all) * (size_t)(b->towers * (n + 1)));
    int count = 0;
    for (int i = 0; i < b->towers; i++) {
        all[count++] = b->train[i].cost;
        for (int k = 0; k < n; k++)
            all[count++] = grads[i][k].grad.value;
    }
    leat_out checks = leat_add_check_numerics(all, count);
    free(all);
    return checks;
}

/* Gradients are clipped and applied, unless the loss or one of them is not finite. */
static leat_out apply(ptb_graph *b, const ptb_config *c, leat_optimizer *opt, leat_var_grad *grads,
                      int n)
{
    leat_grad_value *values = malloc(sizeof(*values) * (size_t)(n + 1));
    leat_out applied = {0};
    for (int i = 0; i < n; i++)
        values[i] = grads[i].grad;
    leat_out norm = leat_clip_by_global_norm(values, n, c->max_grad_norm);
    for (int i = 0; i < n; i++)
        grads[i].grad = values[i];
    free(values);
    leat_out finite = leat_group(b->g, leat_check_numerics(b->cost, "cost"),
                                 leat_check_numerics(norm, "global norm of the gradients"));
    leat_with_control(b->g, finite) applied =
        leat_apply_gradients(opt, grads, n, .global_step = b->step);
    return applied;
}

/* With the names that TensorFlow's program gives them. */
static void build_counters(ptb_graph *b, const ptb_config *c)
{
    static const char *const collections[] = {LEAT_GLOBAL_VARIABLES, LEAT_GLOBAL_STEP, NULL};
    PTB_MODEL(b->g, c, LEAT_REUSE_INHERIT)
    {
        b->lr = leat_variable(b->g, "Variable", leat_scalar(b->g, LEAT_FLOAT, 0),
                              .not_trainable = true);
        b->step = leat_get_variable(b->g, "global_step", leat_shape(), .dtype = LEAT_INT64,
                                    .initializer = leat_zeros_initializer(), .not_trainable = true,
                                    .collections = collections);
    }
    b->new_lr = leat_placeholder(b->g, LEAT_FLOAT, leat_shape(), leat_name("new_learning_rate"));
    b->lr_update = leat_variable_assign(b->lr, b->new_lr);
}

static void build_training(ptb_graph *b, const ptb_config *c, const towers_devices *devices)
{
    leat_var_grad *towers[TOWERS_MOST] = {0};
    build_counters(b, c);
    leat_optimizer *opt = leat_gradient_descent(.learning_rate_tensor = b->lr);
    const int n = build_towers(b, c, devices, opt, towers);
    leat_var_grad *grads =
        b->towers == 1 ? towers[0] : leat_average_gradients(towers, b->towers, n);
    b->checks = build_checks(b, towers, n);
    b->train_op = apply(b, c, opt, grads, n);
    const leat_out summaries[] = {leat_scalar_summary("Training_Loss", b->cost),
                                  leat_scalar_summary("Learning_Rate", b->lr)};
    b->summary = leat_merge_summaries(b->g, summaries, 2);
    if (b->towers > 1)
        free(grads);
    for (int i = 0; i < b->towers; i++)
        free(towers[i]);
    leat_optimizer_free(opt);
}

static void build_all(ptb_graph *b, const ptb_config *c, const towers_devices *devices,
                      bool measured)
{
    lm_config one = c->lm;
    one.batch_size = one.num_steps = 1;
    leat_with_name(b->g, "Train") build_training(b, c, devices);
    if (!measured)
        return;
    leat_with_name(b->g, "Valid") PTB_MODEL(b->g, c, LEAT_REUSE)
        lm_build(b->g, &c->lm, false, &b->valid);
    leat_with_name(b->g, "Test") PTB_MODEL(b->g, c, LEAT_REUSE)
        lm_build(b->g, &one, false, &b->test);
}

void ptb_build(ptb_graph *b, const ptb_config *c, const towers_devices *devices, bool measured)
{
    b->towers = devices ? devices->n : 1;
    if (devices)
        leat_with_device(b->g, devices->home) build_all(b, c, devices, measured);
    else
        build_all(b, c, NULL, measured);
}
