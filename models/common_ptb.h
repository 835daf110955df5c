/* common_ptb.h -- the configurations and the graph of TensorFlow's PTB tutorial: a model that is
 * trained, by one tower or several, and two that share its variables and are only measured. */
#ifndef COMMON_PTB_H
#define COMMON_PTB_H

#include <leat/leat.h>

#include "common_lm.h"
#include "common_towers.h"

typedef struct ptb_config {
    const char *name; /* "small" */
    double init_scale, learning_rate, max_grad_norm, lr_decay;
    int64_t max_epoch, max_max_epoch; /* epochs before the learning rate decays; epochs in all */
    lm_config lm;                     /* without vocab_size, which the text determines */
} ptb_config;

/* The configuration of this name: small, medium, large or test. */
leat_status ptb_config_find(const char *name, ptb_config *c_out) LEAT_MUST_CHECK;

typedef struct ptb_graph {
    leat_graph *g;
    lm_model train[TOWERS_MOST]; /* of `towers` devices */
    lm_model valid, test;        /* test has batches of one word */
    int towers;
    leat_out cost;     /* of a step, the mean of the towers */
    leat_out train_op; /* a step; updates nothing unless loss and gradients are finite */
    leat_out lr, new_lr, lr_update; /* the learning rate; a placeholder, and the op that sets it */
    leat_out step, summary;
    leat_out checks; /* for lm_name_op */
} ptb_graph;

/* The variable scope of the model. */
#define PTB_MODEL(g, c, reuse_)                                                                    \
    leat_with_variable_scope(                                                                      \
        g, "Model", .reuse = (reuse_),                                                             \
        .initializer = leat_random_uniform_initializer(-(c)->init_scale, (c)->init_scale))

/* Adds the graph to b->g. devices: one for each tower; NULL: one tower, and the open device scopes
 * place all nodes. measured: valid and test are built, too. */
void ptb_build(ptb_graph *b, const ptb_config *c, const towers_devices *devices, bool measured);

#endif
