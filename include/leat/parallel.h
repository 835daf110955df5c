/* parallel.h -- nets whose layers are on several devices, trained as a pipeline.
 *
 *     leat_stage stages[] = {{"/gpu:0", bottom}, {"/gpu:1", top}};
 *     leat_out batch[] = {images, labels}, loss;
 *     leat_var_grad *grads =
 *         leat_pipeline_gradients(stages, 2, batch, 2, &loss, &n, .micro_batches = 8);
 *     leat_out train = leat_apply_gradients(opt, grads, n);
 *
 * A stage is a run of layers on one device. With one micro-batch the devices take turns. With more,
 * a device works at one micro-batch while the others work at the ones before and after it. What a
 * step computes is the same however many are in flight: the gradients of micro-batches are added in
 * their order. The graph has TensorFlow's ops alone.
 */
#ifndef LEAT_PARALLEL_H
#define LEAT_PARALLEL_H

#include <leat/train.h>

typedef struct leat_stage {
    const char *device; /* "/gpu:0"; NULL: that of the open device scope */
    /* Adds the stage's nodes for one micro-batch. batch: the micro-batch's part of each tensor of
     * the batch. in: what the stage before has given; nothing for the first stage. Writes n_out
     * tensors to out; the last stage writes one, the loss: a scalar, the mean over the
     * micro-batch. Called for each micro-batch, in a variable scope in which leat_get_variable
     * finds the variables of the first one again. */
    void (*build)(leat_graph *g, void *arg, const leat_out *batch, const leat_out *in,
                  leat_out *out);
    void *arg;
    int n_out; /* 0: one */
} leat_stage;

typedef struct leat_pipeline_options {
    int micro_batches; /* how many parts the batch is cut into; must divide its size. Default 1 */
    /* How many micro-batches may be between the first stage's start on them and the end of their
     * gradients there, which bounds what is kept for gradients; default: the number of stages. */
    int in_flight;
    const leat_out *vars; /* NULL: all trainable variables */
    int n_vars;
    const char *name; /* of the scope; "pipeline" */
} leat_pipeline_options;

/* Builds the net of all stages, and its gradients: of the mean of the micro-batches' losses, which
 * is *loss_out, by the variables. batch: n_batch tensors (at most 16) with the same dimension 0.
 * Gradients that are rows stay rows. Gives an array of *n_out, to be freed with free(). */
#define leat_pipeline_gradients(stages, n_stages, batch, n_batch, loss_out, n_out, ...)            \
    leat_pipeline_gradients_at(LEAT_AT, stages, n_stages, batch, n_batch,                          \
                               LEAT_OPTIONS(leat_pipeline_options, __VA_ARGS__), loss_out, n_out)
LEAT_API leat_var_grad *leat_pipeline_gradients_at(leat_loc at, const leat_stage *stages,
                                                   int n_stages, const leat_out *batch, int n_batch,
                                                   const leat_pipeline_options *o,
                                                   leat_out *loss_out, int *n_out);

#endif
