/* cifar10.c -- CIFAR-10 from its binary batches, or drawn images instead. A record is a label and
 * the planes red, green and blue, 32x32 bytes each. */
#include "data/cifar10.h"

#include <leat/data.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "core/alloc.h"
#include "core/buffer.h"
#include "core/object.h"
#include "data/random.h"
#include "data/tar.h"
#include "io/file.h"
#include "io/stream.h"

enum {
    SIDE = 32,
    PLANE = SIDE * SIDE,
    RECORD = 1 + 3 * PLANE,
    CLASSES = 10,
    IN_FILE = 10000,
    TRAIN_FILES = 5
};

typedef struct image_set {
    leat_strbuf records;
    int64_t n;
} image_set;

struct leat_cifar10 {
    leat_object object;
    image_set sets[2];
    char *source;
    bool drawn;
};

static const char *const classes[CLASSES] = {"airplane", "automobile", "bird",  "cat",  "deer",
                                             "dog",      "frog",       "horse", "ship", "truck"};

/* ---- Files ---- */

#define ARCHIVE "cifar-10-binary.tar.gz", 170052171, "c32a1d4ab5d03f1284b67883e8d87530"
static const leat_data_file files[] = {
    {"data_batch_1.bin", ARCHIVE}, {"data_batch_2.bin", ARCHIVE}, {"data_batch_3.bin", ARCHIVE},
    {"data_batch_4.bin", ARCHIVE}, {"data_batch_5.bin", ARCHIVE}, {"test_batch.bin", ARCHIVE},
};

static leat_status write_batches(const char *dir, leat_tar *t)
{
    char name[101];
    const char *bytes;
    size_t n;
    bool more;
    for (;;) {
        LEAT_TRY(leat_tar_next(t, name, &bytes, &n, &more));
        if (!more)
            return NULL;
        for (size_t i = 0; i < sizeof(files) / sizeof(*files); i++) {
            if (strcmp(leat_path_base(name), files[i].name) != 0)
                continue;
            char *path = leat_path_join(dir, files[i].name);
            leat_status s = leat_file_write(path, bytes, n);
            free(path);
            LEAT_TRY(s);
        }
    }
}

leat_status leat_cifar10_unpack(const char *dir, const leat_data_file *f, const char *bytes,
                                size_t n)
{
    leat_stream *in;
    leat_strbuf tar = {.checked = true};
    const size_t most = (size_t)RECORD * IN_FILE * (TRAIN_FILES + 1) + (1 << 20);
    LEAT_TRY(leat_stream_over(bytes, n, LEAT_RECORD_GZIP, &in));
    leat_status s = leat_stream_read(in, most, &tar);
    leat_stream_close(in);
    if (!s)
        s = leat_strbuf_check(&tar);
    if (!s)
        s = write_batches(dir, &(leat_tar){.bytes = tar.s, .n = tar.n});
    leat_strbuf_release(&tar);
    return leat_status_prefix(s, "%s: ", f->remote);
}

static const leat_data_set cifar10 = {
    .name = "cifar10",
    .title = "CIFAR-10",
    .url = "https://www.cs.toronto.edu/~kriz",
    .files = files,
    .n = TRAIN_FILES + 1,
    .unpack = leat_cifar10_unpack,
};

/* Adds the records of a file. */
static leat_status read_batch(image_set *d, const char *dir, const char *name)
{
    const size_t begin = d->records.n;
    LEAT_TRY(leat_data_read(dir, name, (size_t)RECORD * IN_FILE, &d->records));
    const size_t n = d->records.n - begin;
    LEAT_REQUIRE(n > 0 && n % RECORD == 0, DATA_LOSS,
                 "%s/%s has %zu bytes, which are no records of %d bytes", dir, name, n, RECORD);
    for (size_t i = 0; i < n / RECORD; i++) {
        const unsigned label = (unsigned char)d->records.s[begin + i * RECORD];
        LEAT_REQUIRE(label < CLASSES, DATA_LOSS, "%s/%s: label %zu is %u", dir, name, i, label);
    }
    d->n += (int64_t)(n / RECORD);
    return NULL;
}

static leat_status read_sets(leat_cifar10 *c, const char *dir)
{
    for (int i = 0; i <= TRAIN_FILES; i++)
        LEAT_TRY(read_batch(&c->sets[i == TRAIN_FILES], dir, files[i].name));
    leat_strbuf b = {0};
    leat_strbuf_printf(&b, "CIFAR-10 from %s", dir);
    c->source = leat_strbuf_take(&b);
    return NULL;
}

/* ---- Drawn images: a class is a figure, in a random colour and place, before a noisy ground ----
 */

static bool inside(int label, float x, float y)
{
    const float ax = fabsf(x), ay = fabsf(y), r = sqrtf(x * x + y * y);
    switch (label) {
    case 0:
        return r < 1;
    case 1:
        return ax < 0.9f && ay < 0.9f;
    case 2:
        return ax + ay < 1;
    case 3:
        return r < 1 && r > 0.6f;
    case 4:
        return (ax < 0.25f || ay < 0.25f) && r < 1;
    case 5:
        return ay < 0.3f && ax < 1;
    case 6:
        return ax < 0.3f && ay < 1;
    case 7:
        return y > -0.8f && y < 0.8f - 1.6f * ax;
    case 8:
        return fabsf(x - y) < 0.4f && r < 1;
    default:
        return ax < 0.9f && ay < 0.9f && (ax > 0.55f || ay > 0.55f);
    }
}

static void draw(leat_rng *r, unsigned char *record)
{
    const int label = (int)leat_rng_below(r, CLASSES);
    const float size = leat_rng_uniform(r, 7, 13), cx = leat_rng_uniform(r, 12, 20),
                cy = leat_rng_uniform(r, 12, 20);
    record[0] = (unsigned char)label;
    for (int plane = 0; plane < 3; plane++) {
        const float fore = leat_rng_uniform(r, 150, 230), back = leat_rng_uniform(r, 20, 100);
        for (int i = 0; i < PLANE; i++) {
            const float x = ((float)(i % SIDE) - cx) / size, y = ((float)(i / SIDE) - cy) / size;
            const float v = (inside(label, x, y) ? fore : back) + leat_rng_uniform(r, -20, 20);
            record[1 + plane * PLANE + i] = (unsigned char)v;
        }
    }
}

static leat_status draw_sets(leat_cifar10 *c, const char *why)
{
    for (int i = 0; i < 2; i++) {
        image_set *d = &c->sets[i];
        leat_rng r;
        leat_rng_init(&r, (uint64_t)i + 1);
        d->n = i == 0 ? TRAIN_FILES * IN_FILE : IN_FILE;
        LEAT_TRY(leat_strbuf_reserve(&d->records, (size_t)d->n * RECORD));
        for (int64_t k = 0; k < d->n; k++) {
            unsigned char record[RECORD];
            draw(&r, record);
            leat_strbuf_add(&d->records, record, RECORD);
        }
    }
    leat_strbuf b = {0};
    leat_strbuf_printf(&b, "%s; training on images that this program draws itself", why);
    c->source = leat_strbuf_take(&b);
    return NULL;
}

/* ---- The interface ---- */

static leat_status load(leat_cifar10 *c, const char *data_dir)
{
    char *dir, *why;
    LEAT_TRY(leat_data_find(&cifar10, data_dir, &dir, &why));
    c->drawn = !dir;
    leat_status s = dir ? read_sets(c, dir) : draw_sets(c, why);
    free(dir);
    free(why);
    return s;
}

leat_status leat_cifar10_open(const char *data_dir, leat_cifar10 **out)
{
    leat_cifar10 *c = leat_new_object(leat_cifar10, CIFAR10);
    c->sets[0].records.checked = c->sets[1].records.checked = true;
    leat_status s = load(c, data_dir && *data_dir ? data_dir : NULL);
    if (s)
        leat_cifar10_close(c);
    else
        *out = c;
    return s;
}

void leat_cifar10_close(leat_cifar10 *c)
{
    if (!c || !LEAT_USABLE(CIFAR10, c))
        return;
    leat_strbuf_release(&c->sets[0].records);
    leat_strbuf_release(&c->sets[1].records);
    free(c->source);
    leat_object_free(&c->object);
}

const char *leat_cifar10_source(const leat_cifar10 *c)
{
    return LEAT_USABLE(CIFAR10, c) ? c->source : "";
}

bool leat_cifar10_is_drawn(const leat_cifar10 *c)
{
    return LEAT_USABLE(CIFAR10, c) && c->drawn;
}

int64_t leat_cifar10_count(const leat_cifar10 *c, leat_cifar10_set set)
{
    return LEAT_USABLE(CIFAR10, c) ? c->sets[set == LEAT_CIFAR10_TEST].n : 0;
}

const char *leat_cifar10_class(int label)
{
    return label >= 0 && label < CLASSES ? classes[label] : NULL;
}

leat_status leat_cifar10_rows(const leat_cifar10 *c, leat_cifar10_set set, int64_t begin,
                              int64_t end, leat_tensor **images_out, leat_tensor **labels_out)
{
    LEAT_CHECK(CIFAR10, c);
    const image_set *d = &c->sets[set == LEAT_CIFAR10_TEST];
    LEAT_REQUIRE(begin >= 0 && begin <= end && end <= d->n, INVALID_ARGUMENT,
                 "rows [%lld, %lld) of %lld", (long long)begin, (long long)end, (long long)d->n);
    const leat_shape wide = leat_shape(end - begin, SIDE, SIDE, 3),
                     narrow = leat_shape(end - begin);
    leat_tensor *images, *labels;
    LEAT_TRY(leat_tensor_alloc(NULL, LEAT_UINT8, &wide, &images));
    leat_status s = leat_tensor_alloc(NULL, LEAT_INT32, &narrow, &labels);
    if (s) {
        leat_tensor_unref(images);
        return s;
    }
    for (int64_t i = begin; i < end; i++) {
        const unsigned char *record = (const unsigned char *)d->records.s + i * RECORD;
        unsigned char *to = (unsigned char *)images->data + (i - begin) * 3 * PLANE;
        ((int32_t *)labels->data)[i - begin] = record[0];
        for (int k = 0; k < PLANE; k++)
            for (int plane = 0; plane < 3; plane++)
                to[3 * k + plane] = record[1 + plane * PLANE + k];
    }
    *images_out = images;
    *labels_out = labels;
    return NULL;
}
