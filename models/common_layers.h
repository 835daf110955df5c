/* common_layers.h -- the 784-500-10 net that mnist_towers trains, mnist_eval tests and mnist_infer
 * uses. */
#ifndef COMMON_LAYERS_H
#define COMMON_LAYERS_H

#include <leat/leat.h>

typedef struct layers {
    leat_out w1, b1, w2, b2;
} layers;

/* The variables layer1/weights ..., on /cpu:0; made by the first call in a graph. */
layers layers_get(leat_graph *g, int64_t hidden);
/* (batch, 10) for x, (batch, 784). */
leat_out layers_logits(leat_out x, const layers *w);

/* A graph with the net and a saver that gives its variables the moving averages of a checkpoint. */
typedef struct trained {
    leat_graph *g;
    leat_session *s;
    leat_saver *saver;
    leat_out x, y_; /* placeholders: (batch, 784), (batch, 10) */
    leat_out probabilities, accuracy;
    int64_t step; /* of the checkpoint that was restored last */
} trained;
/* Restores the newest checkpoint in dir; builds the net when it is called first, for the hidden
 * units that the checkpoint has. NOT_FOUND: dir has no checkpoint. *t is {0} before the first call.
 */
leat_status trained_restore(trained *t, const char *dir) LEAT_MUST_CHECK;
void trained_release(trained *t);

#endif
