/* common_cifar10.h -- the net of TensorFlow's CIFAR-10 tutorial, which cifar10_towers trains and
 * cifar10_eval tests, and the images that it takes. */
#ifndef COMMON_CIFAR10_H
#define COMMON_CIFAR10_H

#include <leat/leat.h>

enum { CIFAR10_SIDE = 24, CIFAR10_CLASSES = 10, CIFAR10_MOST_VARS = 10 };

/* A part of 24 x 24 of a uint8 image (32, 32, 3), distorted at random, and standardised. */
leat_out cifar10_distorted(leat_out image);
/* The middle of each of the images (batch, 32, 32, 3), standardised. */
leat_out cifar10_middle(leat_out images);

/* Batches of distorted images, float (batch, 24, 24, 3), and labels, int64, for ever: a function
 * for leat_one_shot_iterator, whose arg is a cifar10_input. */
typedef struct cifar10_input {
    char *records; /* a TFRecord file, see common_records.h */
    int64_t batch, seed;
    int ready; /* batches that are kept ready */
} cifar10_input;
void cifar10_batches(leat_graph *body, void *arg, const leat_out *in, leat_out *out);

/* What each layer gives is in this collection, in the name scope of the net. */
#define CIFAR10_ACTIVATIONS "activations"

/* Logits (batch, 10) of images (batch, 24, 24, 3). Variables are on the device `home`; the first
 * call makes them. The weights' decay is collected in "losses". */
leat_out cifar10_logits(leat_graph *g, const char *home, leat_out images);
/* The mean cross entropy, and the losses that were collected in the current name scope. labels is
 * (batch) of int64. *parts_out: the n losses of the sum; free with free(). */
leat_out cifar10_loss(leat_graph *g, leat_out logits, leat_out labels, leat_out **parts_out,
                      int *n_out);

#endif
