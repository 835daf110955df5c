/* idx files, whole and damaged; MNIST's batches; digits that are drawn. */
#include <leat/data.h>

#include <sys/stat.h>
#include <unistd.h>
#include <zlib.h>

#include "core/thread.h"
#include "data/digits.h"
#include "test.h"

static char dir[64];

static const char *in_dir(const char *name)
{
    static char path[256];
    snprintf(path, sizeof(path), "%s/%s", dir, name);
    return path;
}

static void make_dir(void)
{
    strcpy(dir, "/tmp/leat-mnist-XXXXXX");
    CHECK(mkdtemp(dir) != NULL);
}

static void remove_dir(void)
{
    static const char *const names[] = {"a", "train-images-idx3-ubyte.gz",
                                        "train-labels-idx1-ubyte", "t10k-images-idx3-ubyte",
                                        "t10k-labels-idx1-ubyte"};
    for (size_t i = 0; i < sizeof(names) / sizeof(*names); i++)
        unlink(in_dir(names[i]));
    rmdir(dir);
}

static void write_file(const char *path, const void *bytes, size_t n)
{
    FILE *f = fopen(path, "wb");
    CHECK(f && fwrite(bytes, 1, n, f) == n);
    if (f)
        fclose(f);
}

/* n digits as idx files: images of the value of their number, labels i % classes. */
/* Pixel k of image i; pixel 0 is i. */
static unsigned char pixel(int i, int k)
{
    return (unsigned char)(i + k * 7);
}

static void write_idx(const char *name, int n, bool images, int classes, bool zipped)
{
    unsigned char *b = calloc(1, 16 + (size_t)n * 784);
    size_t size = images ? 16 + (size_t)n * 784 : 8 + (size_t)n;
    b[2] = 8;
    b[3] = images ? 3 : 1;
    b[6] = (unsigned char)(n >> 8);
    b[7] = (unsigned char)n;
    if (images)
        b[11] = b[15] = 28;
    for (int i = 0; i < n; i++) {
        for (int k = 0; images && k < 784; k++)
            b[16 + (size_t)i * 784 + (size_t)k] = pixel(i, k);
        if (!images)
            b[8 + i] = (unsigned char)(i % classes);
    }
    if (zipped) {
        gzFile f = gzopen(in_dir(name), "wb");
        gzwrite(f, b, (unsigned)size);
        gzclose(f);
    } else {
        write_file(in_dir(name), b, size);
    }
    free(b);
}

static void write_mnist(int n_train, int n_test, int classes)
{
    write_idx("train-images-idx3-ubyte.gz", n_train, true, 0, true);
    write_idx("train-labels-idx1-ubyte", n_train, false, classes, false);
    write_idx("t10k-images-idx3-ubyte", n_test, true, 0, false);
    write_idx("t10k-labels-idx1-ubyte", n_test, false, classes, false);
}

static void idx_types(void)
{
    make_dir();
    static const unsigned char floats[] = {0,    0,    0x0d, 1, 0,    0, 0, 2,
                                           0x3f, 0x80, 0,    0, 0xc0, 0, 0, 0};
    leat_tensor *t = NULL;
    write_file(in_dir("a"), floats, sizeof(floats));
    CHECK_OK(leat_idx_read(in_dir("a"), &t));
    CHECK_INT(leat_tensor_dtype(t), LEAT_FLOAT);
    CHECK_INT(leat_tensor_count(t), 2);
    CHECK_NEAR(leat_tensor_at(t, 0), 1, 0);
    CHECK_NEAR(leat_tensor_at(t, 1), -2, 0);
    leat_tensor_unref(t);
    remove_dir();
}

static void idx_bad(void)
{
    make_dir();
    static const unsigned char cut[] = {0, 0, 8, 1, 0, 0, 0, 9, 1, 2}, odd[] = "GIF89a--------",
                               huge[] = {0,   0,   8,   3,   255, 255, 255, 255,
                                         255, 255, 255, 255, 0,   0,   0,   9},
                               more[] = {0, 0, 8, 1, 0, 0, 0, 1, 1, 2};
    leat_tensor *t = NULL;
    CHECK_ERROR(leat_idx_read(in_dir("a"), &t), NOT_FOUND, "No such file");
    write_file(in_dir("a"), cut, sizeof(cut));
    CHECK_ERROR(leat_idx_read(in_dir("a"), &t), DATA_LOSS, "is cut: 7 bytes");
    write_file(in_dir("a"), cut, 3);
    CHECK_ERROR(leat_idx_read(in_dir("a"), &t), DATA_LOSS, "is cut");
    write_file(in_dir("a"), "", 0);
    CHECK_ERROR(leat_idx_read(in_dir("a"), &t), DATA_LOSS, "is cut");
    write_file(in_dir("a"), odd, sizeof(odd));
    CHECK_ERROR(leat_idx_read(in_dir("a"), &t), DATA_LOSS, "is not an idx file");
    write_file(in_dir("a"), huge, sizeof(huge));
    CHECK_ERROR(leat_idx_read(in_dir("a"), &t), DATA_LOSS, "its header says");
    write_file(in_dir("a"), more, sizeof(more));
    CHECK_ERROR(leat_idx_read(in_dir("a"), &t), DATA_LOSS, "more bytes");
    remove_dir();
}

/* A gzip file cut anywhere, or with any byte changed, is either read whole or refused. */
static void idx_damaged_gzip(void)
{
    make_dir();
    write_idx("train-images-idx3-ubyte.gz", 3, true, 0, true);
    FILE *f = fopen(in_dir("train-images-idx3-ubyte.gz"), "rb");
    unsigned char good[4096], bad[4096];
    size_t n = fread(good, 1, sizeof(good), f);
    fclose(f);
    for (size_t i = 0; i < n; i++) {
        leat_tensor *t = NULL;
        write_file(in_dir("a"), good, i);
        leat_status s = leat_idx_read(in_dir("a"), &t);
        CHECK_INT(leat_status_code(s), LEAT_DATA_LOSS);
        leat_status_free(s);
        memcpy(bad, good, n);
        bad[i] ^= 0x55;
        write_file(in_dir("a"), bad, n);
        s = leat_idx_read(in_dir("a"), &t);
        CHECK(s == NULL || leat_status_code(s) == LEAT_DATA_LOSS);
        leat_status_free(s);
        leat_tensor_unref(t);
    }
    remove_dir();
}

static void batches(void)
{
    make_dir();
    write_mnist(50, 20, 10);
    leat_mnist *m = NULL;
    CHECK_OK(leat_mnist_open(dir, 7, &m));
    CHECK(strstr(leat_mnist_source(m), dir) != NULL);
    CHECK_INT(leat_mnist_count(m, LEAT_MNIST_TRAIN), 50);
    CHECK_INT(leat_mnist_count(m, LEAT_MNIST_TEST), 20);
    for (int epoch = 0; epoch < 2; epoch++) {
        int seen[50] = {0}, in_order = 0;
        for (int i = 0; i < 5; i++) {
            leat_tensor *x, *y;
            CHECK_OK(leat_mnist_next_batch(m, LEAT_MNIST_TRAIN, 10, &x, &y));
            for (int r = 0; r < 10; r++) {
                int which = (int)lround(leat_tensor_at(x, r * 784) * 255);
                seen[which]++;
                in_order += which == i * 10 + r;
                CHECK_NEAR(leat_tensor_at(y, r * 10 + which % 10), 1, 0);
            }
            leat_tensor_unref(x);
            leat_tensor_unref(y);
        }
        for (int i = 0; i < 50; i++)
            CHECK_INT(seen[i], 1);
        CHECK(in_order < 25);
    }
    leat_tensor *x, *y;
    CHECK_OK(leat_mnist_rows(m, LEAT_MNIST_TEST, 5, 8, &x, &y));
    CHECK_INT(leat_tensor_dim(x, 0), 3);
    for (int k = 0; k < 3 * 784; k++)
        CHECK_NEAR(leat_tensor_at(x, k), (float)pixel(5 + k / 784, k % 784) * (1.0f / 255), 0);
    CHECK_NEAR(leat_tensor_at(y, 2 * 10 + 7), 1, 0);
    leat_tensor_unref(x);
    leat_tensor_unref(y);
    CHECK_ERROR(leat_mnist_rows(m, LEAT_MNIST_TEST, 5, 21, &x, &y), INVALID_ARGUMENT, "of 20");
    CHECK_ERROR(leat_mnist_next_batch(m, LEAT_MNIST_TRAIN, 0, &x, &y), INVALID_ARGUMENT, "batch");
    leat_mnist_close(m);
    remove_dir();
}

/* Who still holds a batch keeps it as it was. */
static void held_batches(void)
{
    make_dir();
    write_mnist(50, 20, 10);
    leat_mnist *m = NULL;
    leat_tensor *x[8], *y[8];
    double first[8];
    CHECK_OK(leat_mnist_open(dir, 7, &m));
    for (int i = 0; i < 8; i++) {
        CHECK_OK(leat_mnist_next_batch(m, LEAT_MNIST_TRAIN, 3, &x[i], &y[i]));
        first[i] = leat_tensor_at(x[i], 0);
    }
    leat_mnist_close(m);
    for (int i = 0; i < 8; i++) {
        CHECK_NEAR(leat_tensor_at(x[i], 0), first[i], 0);
        leat_tensor_unref(x[i]);
        leat_tensor_unref(y[i]);
    }
    remove_dir();
}

/* Batches are the same, of whatever sizes, whether a thread prepares them ahead or none can be
 * had. */
static void batches_ahead(void)
{
    static const int64_t sizes[] = {5, 5, 5, 7, 7, 2, 2, 2, 60, 60, 60, 1, 50, 50, 5, 5};
    make_dir();
    write_mnist(50, 20, 10);
    leat_mnist *ahead = NULL, *alone = NULL;
    CHECK_OK(leat_mnist_open(dir, 7, &ahead));
    CHECK_OK(leat_mnist_open(dir, 7, &alone));
    for (size_t i = 0; i < sizeof(sizes) / sizeof(*sizes); i++) {
        const leat_mnist_set set = i % 5 == 4 ? LEAT_MNIST_TEST : LEAT_MNIST_TRAIN;
        leat_tensor *x, *y, *x2, *y2;
        CHECK_OK(leat_mnist_next_batch(ahead, set, sizes[i], &x, &y));
        __atomic_store_n(&leat_threads_refused, 1, __ATOMIC_RELAXED);
        CHECK_OK(leat_mnist_next_batch(alone, set, sizes[i], &x2, &y2));
        __atomic_store_n(&leat_threads_refused, 0, __ATOMIC_RELAXED);
        CHECK(memcmp(leat_tensor_data(x), leat_tensor_data(x2), leat_tensor_bytes(x)) == 0);
        CHECK(memcmp(leat_tensor_data(y), leat_tensor_data(y2), leat_tensor_bytes(y)) == 0);
        leat_tensor_unref(x);
        leat_tensor_unref(y);
        leat_tensor_unref(x2);
        leat_tensor_unref(y2);
    }
    leat_mnist_close(ahead);
    leat_mnist_close(alone);
    remove_dir();
}

static void bad_sets(void)
{
    make_dir();
    leat_mnist *m = NULL;
    write_mnist(50, 20, 11);
    CHECK_ERROR(leat_mnist_open(dir, 1, &m), DATA_LOSS, "label 10 is 10");
    write_idx("train-labels-idx1-ubyte", 49, false, 10, false);
    CHECK_ERROR(leat_mnist_open(dir, 1, &m), DATA_LOSS, "50 images but 49 labels");
    write_idx("train-labels-idx1-ubyte", 2, true, 10, false);
    CHECK_ERROR(leat_mnist_open(dir, 1, &m), DATA_LOSS, "labels are uint8 [2,28,28]");
    remove_dir();
}

static void drawn(void)
{
    leat_tensor *x, *y, *x2, *y2;
    CHECK_OK(leat_digits_draw(3, 200, &x, &y));
    CHECK_OK(leat_digits_draw(3, 200, &x2, &y2));
    CHECK(memcmp(leat_tensor_data(x), leat_tensor_data(x2), leat_tensor_bytes(x)) == 0);
    int seen[10] = {0};
    for (int i = 0; i < 200; i++) {
        int64_t ink = 0;
        seen[(int)leat_tensor_at(y, i)]++;
        for (int p = 0; p < 784; p++)
            ink += ((const unsigned char *)leat_tensor_data(x))[i * 784 + p] > 128;
        CHECK(ink > 15 && ink < 350);
    }
    for (int d = 0; d < 10; d++)
        CHECK(seen[d] > 5);
    leat_tensor_unref(x);
    leat_tensor_unref(y);
    leat_tensor_unref(x2);
    leat_tensor_unref(y2);
}

int main(int argc, char **argv)
{
    return RUN(argc, argv, {"idx_types", idx_types}, {"idx_bad", idx_bad},
               {"idx_damaged_gzip", idx_damaged_gzip}, {"batches", batches},
               {"held_batches", held_batches}, {"batches_ahead", batches_ahead},
               {"bad_sets", bad_sets}, {"drawn", drawn});
}
