/* convert_to_records.c -- writes MNIST or CIFAR-10 as TFRecord files of Examples, which
 * TensorFlow's programs and Leat's read. */
#include <leat/leat.h>

#include <stdio.h>
#include <string.h>

#include "common_flags.h"
#include "common_records.h"

static const char *data = "mnist", *data_dir, *output_dir = ".", *compression = "";

static const flag flags[] = {
    {"data", FLAG_STRING, &data, 0, "mnist or cifar10"},
    {"data_dir", FLAG_STRING, &data_dir, 0, "where its files are"},
    {"output_dir", FLAG_STRING, &output_dir, 0, "where to write NAME_train.tfrecords and _test"},
    {"compression", FLAG_STRING, &compression, 0,
     "GZIP or ZLIB, files end in .gz or .zlib then; nothing: none"},
    {0},
};

/* Takes the tensors. */
static leat_status write_set(const char *set, leat_record_form form, leat_tensor *images,
                             leat_tensor *labels)
{
    char path[4096];
    snprintf(path, sizeof(path), "%s/%s_%s.tfrecords%s", output_dir, data, set,
             form == LEAT_RECORD_GZIP   ? ".gz"
             : form == LEAT_RECORD_ZLIB ? ".zlib"
                                        : "");
    leat_status s = records_write(path, form, images, labels);
    if (!s)
        printf("%s: %lld examples\n", path, (long long)leat_tensor_dim(images, 0));
    leat_tensor_unref(images);
    leat_tensor_unref(labels);
    return s;
}

static leat_status convert_mnist(leat_record_form form)
{
    leat_mnist *m;
    leat_tensor *images, *labels;
    LEAT_TRY(leat_mnist_open(data_dir, 1, &m));
    printf("%s\n", leat_mnist_source(m));
    leat_status s = NULL;
    for (int i = 0; i < 2 && !s; i++)
        if (!(s = leat_mnist_bytes(m, i ? LEAT_MNIST_TEST : LEAT_MNIST_TRAIN, &images, &labels)))
            s = write_set(i ? "test" : "train", form, images, labels);
    leat_mnist_close(m);
    return s;
}

static leat_status convert_cifar10(leat_record_form form)
{
    leat_cifar10 *c;
    leat_tensor *images, *labels;
    LEAT_TRY(leat_cifar10_open(data_dir, &c));
    printf("%s\n", leat_cifar10_source(c));
    leat_status s = NULL;
    for (int i = 0; i < 2 && !s; i++) {
        const leat_cifar10_set set = i ? LEAT_CIFAR10_TEST : LEAT_CIFAR10_TRAIN;
        s = leat_cifar10_rows(c, set, 0, leat_cifar10_count(c, set), &images, &labels);
        if (!s)
            s = write_set(i ? "test" : "train", form, images, labels);
    }
    leat_cifar10_close(c);
    return s;
}

int main(int argc, char **argv)
{
    int done = flags_parse(argc, argv, "writes MNIST or CIFAR-10 as TFRecord files", flags);
    if (done >= 0)
        return done;
    const bool gzip = strcmp(compression, "GZIP") == 0, zlib = strcmp(compression, "ZLIB") == 0;
    const bool cifar10 = strcmp(data, "cifar10") == 0;
    if (!cifar10 && strcmp(data, "mnist") != 0) {
        fprintf(stderr, "convert_to_records: --data is mnist or cifar10, not %s\n", data);
        return 2;
    }
    if (*compression && !gzip && !zlib) {
        fprintf(stderr, "convert_to_records: --compression is GZIP or ZLIB, not %s\n", compression);
        return 2;
    }
    const leat_record_form form = gzip   ? LEAT_RECORD_GZIP
                                  : zlib ? LEAT_RECORD_ZLIB
                                         : LEAT_RECORD_PLAIN;
    setvbuf(stdout, NULL, _IOLBF, 0);
    LEAT_DIE_ON_ERROR(cifar10 ? convert_cifar10(form) : convert_mnist(form));
    return 0;
}
