/* mnist_infer.c -- classifies digits by what mnist_towers has trained: images in files, or rows of
 * the test set. */
#include <leat/leat.h>

#include <ctype.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "common_flags.h"
#include "common_layers.h"

enum { SIDE = 28, PIXELS = SIDE * SIDE };

static const char *log_dir, *data_dir, *images;
static int64_t row = 0, rows = 10;

static const flag flags[] = {
    {"log_dir", FLAG_STRING, &log_dir, 0, "where mnist_towers writes its checkpoints; required"},
    {"images", FLAG_STRING, &images, 0, "files, with commas: PGM or idx, 28x28, light on dark"},
    {"row", FLAG_INT, &row, 0, "first row of the test set, if no --images are given"},
    {"rows", FLAG_INT, &rows, 1, "number of rows"},
    {"data_dir", FLAG_STRING, &data_dir, 0, "where MNIST's files are"},
    {0},
};

/* Prints a line for each image of x, (n, 784). labels may be NULL. */
static leat_status classify(const trained *t, const leat_tensor *x, const leat_tensor *labels,
                            const char *name, int64_t first)
{
    leat_tensor *p = NULL;
    LEAT_TRY(leat_session_run(t->s, LEAT_FEED({t->x, (leat_tensor *)x}),
                              LEAT_FETCH({t->probabilities, &p}), LEAT_NO_TARGET));
    for (int64_t i = 0; i < leat_tensor_dim(p, 0); i++) {
        int best = 0, label = 0;
        for (int c = 1; c < 10; c++)
            if (leat_tensor_at(p, i * 10 + c) > leat_tensor_at(p, i * 10 + best))
                best = c;
        printf("%s %lld: %d, probability %.4f", name, (long long)(first + i), best,
               leat_tensor_at(p, i * 10 + best));
        if (labels) {
            while (leat_tensor_at(labels, i * 10 + label) != 1)
                label++;
            printf(", label %d%s", label, label == best ? "" : " (wrong)");
        }
        printf("\n");
    }
    leat_tensor_unref(p);
    return NULL;
}

/* ---- Files ---- */

/* The next number of a PGM file's header; -1 if there is none. */
static int pgm_number(FILE *f)
{
    int c = fgetc(f), n = 0, digits = 0;
    while (c == '#' || isspace(c)) {
        if (c == '#')
            while (c != '\n' && c != EOF)
                c = fgetc(f);
        c = fgetc(f);
    }
    for (; isdigit(c) && digits < 6; digits++, c = fgetc(f))
        n = 10 * n + c - '0';
    return digits ? n : -1;
}

/* A PGM file ("P5", a byte for each pixel), as (1, 784) floats. */
static leat_status read_pgm(const char *path, FILE *f, leat_tensor **out)
{
    unsigned char pixels[PIXELS];
    float values[PIXELS];
    const int width = pgm_number(f), height = pgm_number(f), most = pgm_number(f);
    LEAT_REQUIRE(
        width == SIDE && height == SIDE && most > 0 && most < 256, INVALID_ARGUMENT,
        "%s: a PGM file of 28x28 pixels with values up to 255 is wanted, not %dx%d with %d", path,
        width, height, most);
    LEAT_REQUIRE(fread(pixels, 1, PIXELS, f) == PIXELS, DATA_LOSS, "%s is cut off", path);
    for (int i = 0; i < PIXELS; i++)
        values[i] = (float)pixels[i] / (float)most;
    return leat_tensor_copy_of(LEAT_FLOAT, leat_shape(1, PIXELS), values, out);
}

/* An idx file, as (n, 784) floats. */
static leat_status read_idx(const char *path, leat_tensor **out)
{
    leat_tensor *raw, *x;
    LEAT_TRY(leat_idx_read(path, &raw));
    const int64_t n = leat_tensor_count(raw) / PIXELS;
    leat_status s = NULL;
    if (leat_tensor_dtype(raw) != LEAT_UINT8 || leat_tensor_rank(raw) != 3 ||
        leat_tensor_dim(raw, 1) != SIDE || leat_tensor_dim(raw, 2) != SIDE)
        s = leat_error(INVALID_ARGUMENT, "%s: an idx file of 28x28 pixels is wanted", path);
    if (!s && !(s = leat_tensor_new(LEAT_FLOAT, leat_shape(n, PIXELS), &x))) {
        const unsigned char *from = leat_tensor_data(raw);
        float *to = leat_tensor_mutable(x);
        for (int64_t i = 0; i < n * PIXELS; i++)
            to[i] = (float)from[i] / 255;
        *out = x;
    }
    leat_tensor_unref(raw);
    return s;
}

static leat_status classify_file(const trained *t, const char *path)
{
    leat_tensor *x;
    FILE *f = fopen(path, "rb");
    LEAT_REQUIRE(f, NOT_FOUND, "%s: cannot be opened", path);
    const bool pgm = fgetc(f) == 'P' && fgetc(f) == '5';
    leat_status s = pgm ? read_pgm(path, f, &x) : read_idx(path, &x);
    fclose(f);
    if (s)
        return s;
    s = classify(t, x, NULL, path, 0);
    leat_tensor_unref(x);
    return s;
}

static leat_status classify_files(const trained *t)
{
    char *list = strdup(images), *rest = list, *path;
    leat_status s = NULL;
    while (!s && (path = strsep(&rest, ",")))
        s = classify_file(t, path);
    free(list);
    return s;
}

/* ---- Rows ---- */

static leat_status classify_rows(const trained *t)
{
    leat_mnist *data;
    leat_tensor *x, *labels;
    LEAT_TRY(leat_mnist_open(data_dir, 1, &data));
    printf("%s\n", leat_mnist_source(data));
    leat_status s = leat_mnist_rows(data, LEAT_MNIST_TEST, row, row + rows, &x, &labels);
    if (!s) {
        s = classify(t, x, labels, "row", row);
        leat_tensor_unref(x);
        leat_tensor_unref(labels);
    }
    leat_mnist_close(data);
    return s;
}

int main(int argc, char **argv)
{
    int done = flags_parse(argc, argv, "classifies digits by what mnist_towers has trained", flags);
    if (done >= 0)
        return done;
    if (!log_dir) {
        fprintf(stderr, "mnist_infer: --log_dir is required (--help lists the flags)\n");
        return 2;
    }
    trained t = {0};
    leat_status s = trained_restore(&t, log_dir);
    if (!s)
        s = images ? classify_files(&t) : classify_rows(&t);
    trained_release(&t);
    LEAT_DIE_ON_ERROR(s);
    return 0;
}
