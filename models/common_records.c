/* common_records.c -- see common_records.h. */
#include "common_records.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

/* ---- Writing ---- */

static leat_status write_one(leat_record_writer *w, const unsigned char *pixels,
                             const int64_t size[3], int64_t label)
{
    static const char *const names[] = {"height", "width", "depth"};
    void *bytes;
    size_t n;
    leat_example *e = leat_example_new();
    leat_status s = NULL;
    for (int i = 0; i < 3 && !s; i++)
        s = leat_example_add_ints(e, names[i], &size[i], 1);
    if (!s)
        s = leat_example_add_ints(e, "label", &label, 1);
    if (!s)
        s = leat_example_add_bytes(e, "image_raw", pixels, (size_t)(size[0] * size[1] * size[2]));
    if (!s)
        s = leat_example_encode(e, &bytes, &n);
    leat_example_free(e);
    if (s)
        return s;
    s = leat_record_write(w, bytes, n);
    free(bytes);
    return s;
}

static leat_status write_all(leat_record_writer *w, const leat_tensor *images,
                             const leat_tensor *labels)
{
    const int64_t size[3] = {leat_tensor_dim(images, 1), leat_tensor_dim(images, 2),
                             leat_tensor_rank(images) > 3 ? leat_tensor_dim(images, 3) : 1};
    const unsigned char *pixels = leat_tensor_data(images);
    for (int64_t i = 0; i < leat_tensor_dim(images, 0); i++)
        LEAT_TRY(write_one(w, pixels + i * size[0] * size[1] * size[2], size,
                           (int64_t)leat_tensor_at(labels, i)));
    return NULL;
}

leat_status records_write(const char *path, leat_record_form form, const leat_tensor *images,
                          const leat_tensor *labels)
{
    leat_record_writer *w;
    char temporary[4096];
    snprintf(temporary, sizeof(temporary), "%s.%d", path, (int)getpid());
    LEAT_TRY(leat_record_writer_open(temporary, form, &w));
    leat_status s = write_all(w, images, labels);
    s = leat_status_first(s, leat_record_writer_close(w));
    if (!s && rename(temporary, path) != 0)
        s = leat_error(UNKNOWN, "%s; %s", path, strerror(errno));
    if (s)
        unlink(temporary);
    return s;
}

/* ---- Data sets ---- */

/* The path of a file in dir, or else in data_dir if it can be written to, or in the cache of the
 * data set `name`. */
static char *path_of(const char *file, const char *name, const char *dir, const char *data_dir)
{
    char path[4096], *cache = NULL;
    if (!dir)
        dir = data_dir && access(data_dir, W_OK) == 0 ? data_dir
                                                      : (cache = leat_data_cache_dir(name));
    snprintf(path, sizeof(path), "%s/%s.tfrecords", dir ? dir : ".", file);
    free(cache);
    return strdup(path);
}

/* Writes the images and labels, whose references it takes, unless s is an error. */
static leat_status write_set(leat_status s, const char *path, leat_tensor *images,
                             leat_tensor *labels)
{
    if (s)
        return s;
    printf("writing %s\n", path);
    s = records_write(path, LEAT_RECORD_PLAIN, images, labels);
    leat_tensor_unref(images);
    leat_tensor_unref(labels);
    return s;
}

static leat_status give(leat_status s, char *path, char **path_out)
{
    *path_out = path;
    if (s)
        free(path);
    return s;
}

leat_status records_of_mnist(const leat_mnist *data, leat_mnist_set set, const char *dir,
                             const char *data_dir, char **path_out)
{
    char file[64];
    leat_tensor *images, *labels;
    leat_status s = NULL;
    snprintf(file, sizeof(file), "%s_%s", leat_mnist_is_drawn(data) ? "digits" : "mnist",
             set == LEAT_MNIST_TEST ? "test" : "train");
    char *path = path_of(file, "mnist", dir, data_dir);
    if (access(path, F_OK) != 0) {
        s = leat_mnist_bytes(data, set, &images, &labels);
        s = write_set(s, path, images, labels);
    }
    return give(s, path, path_out);
}

leat_status records_of_cifar10(const leat_cifar10 *data, const char *dir, const char *data_dir,
                               char **path_out)
{
    leat_tensor *images, *labels;
    leat_status s = NULL;
    char *path = path_of(leat_cifar10_is_drawn(data) ? "shapes_train" : "cifar10_train", "cifar10",
                         dir, data_dir);
    if (access(path, F_OK) != 0) {
        s = leat_cifar10_rows(data, LEAT_CIFAR10_TRAIN, 0,
                              leat_cifar10_count(data, LEAT_CIFAR10_TRAIN), &images, &labels);
        s = write_set(s, path, images, labels);
    }
    return give(s, path, path_out);
}

void records_parse(leat_graph *body, void *arg, const leat_out *in, leat_out *out)
{
    const leat_shape *shape = arg;
    const leat_feature_spec features[] = {{"image_raw", LEAT_STRING, leat_shape(), NULL},
                                          {"label", LEAT_INT64, leat_shape(), NULL}};
    leat_out x[2];
    leat_parse_single_example(in[0], features, 2, x);
    out[0] = leat_reshape_to(leat_decode_raw(x[0], LEAT_UINT8), *shape);
    out[1] = x[1];
}
