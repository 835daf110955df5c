/* common_records.h -- images and labels as Examples in TFRecord files, with the features of
 * TensorFlow's convert_to_records: height, width, depth, label (int64) and image_raw (bytes). */
#ifndef COMMON_RECORDS_H
#define COMMON_RECORDS_H

#include <leat/leat.h>

/* Writes the images, uint8 (n, height, width) or (n, height, width, depth), and as many labels to
 * the file, which appears complete or not at all. */
leat_status records_write(const char *path, leat_record_form form, const leat_tensor *images,
                          const leat_tensor *labels) LEAT_MUST_CHECK;
/* Gives the path of a set of MNIST in dir; writes the file if it is not there. dir NULL: data_dir,
 * or else the cache of data sets. Free with free(). */
leat_status records_of_mnist(const leat_mnist *data, leat_mnist_set set, const char *dir,
                             const char *data_dir, char **path_out) LEAT_MUST_CHECK;
/* The same for the training set of CIFAR-10. */
leat_status records_of_cifar10(const leat_cifar10 *data, const char *dir, const char *data_dir,
                               char **path_out) LEAT_MUST_CHECK;
/* Nodes that parse an Example: image, uint8 of the leat_shape that arg points to, and label, an
 * int64 scalar; a body for leat_map_dataset. */
void records_parse(leat_graph *body, void *arg, const leat_out *in, leat_out *out);

#endif
