/* mnist.c -- MNIST from files, or drawn digits instead; shuffled batches. Images are kept as bytes,
 * a quarter of the size of floats, and are converted when a batch is made. */
#include <leat/data.h>

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#ifdef __SSE2__
#include <emmintrin.h>
#endif

#include "core/alloc.h"
#include "core/buffer.h"
#include "core/object.h"
#include "core/strbuf.h"
#include "core/threadpool.h"
#include "data/digits.h"
#include "data/files.h"
#include "data/preparer.h"
#include "data/random.h"

enum { PIXELS = 784, CLASSES = 10, KEPT = 4, AHEAD = 3 };

/* Tensors of a batch: floats (n, 784) and (n, 10). */
typedef struct batch {
    leat_tensor *images, *labels;
} batch;

typedef struct digit_set {
    leat_tensor *images, *labels; /* uint8 (n, 28, 28) and (n) */
    int64_t n, next;              /* next: index into order */
    int32_t *order;               /* a permutation; NULL until the first batch */
    /* Tensors of earlier batches are used again when the caller has freed them. */
    leat_tensor *kept_images[KEPT], *kept_labels[KEPT];
    /* The thread fills `coming` from `next` on, while the caller uses the batch before it. Until
     * it has been waited for, only the thread uses `coming`; `next` and `order` do not change. */
    leat_preparer *ahead; /* NULL until two batches in a row have the same size */
    batch coming;         /* NULLs: none */
    int64_t last_size;    /* of the batch that was returned last */
} digit_set;

struct leat_mnist {
    leat_object object;
    digit_set sets[2];
    leat_rng rng;
    char *source;
    bool drawn;
};

static const char *const names[2][2] = {
    {"train-images-idx3-ubyte", "train-labels-idx1-ubyte"},
    {"t10k-images-idx3-ubyte", "t10k-labels-idx1-ubyte"},
};

static const leat_data_file files[] = {
    {"train-images-idx3-ubyte", "train-images-idx3-ubyte.gz", 9912422,
     "f68b3c2dcbeaaa9fbdd348bbdeb94873"},
    {"train-labels-idx1-ubyte", "train-labels-idx1-ubyte.gz", 28881,
     "d53e105ee54ea40749a09fcbcd1e9432"},
    {"t10k-images-idx3-ubyte", "t10k-images-idx3-ubyte.gz", 1648877,
     "9fb629c4189551a2d022fa330f9573f3"},
    {"t10k-labels-idx1-ubyte", "t10k-labels-idx1-ubyte.gz", 4542,
     "ec29112dd5afa0611ce80d1b7f02629c"},
};

static const leat_data_set mnist = {
    .name = "mnist",
    .title = "MNIST",
    .url = "https://storage.googleapis.com/cvdf-datasets/mnist",
    .files = files,
    .n = 4,
};

/* ---- Files ---- */

static leat_status read_file(const char *dir, const char *name, leat_tensor **out)
{
    char *path;
    LEAT_TRY(leat_data_path(dir, name, &path));
    leat_status s = leat_idx_read(path, out);
    free(path);
    return s;
}

static leat_status check_set(const digit_set *d, const char *dir, const char *const *files)
{
    LEAT_REQUIRE(d->images->dtype == LEAT_UINT8 && d->images->shape.rank == 3 &&
                     d->images->count == d->images->shape.dim[0] * PIXELS,
                 DATA_LOSS, "%s/%s: images are %s %s, want uint8 [n,28,28]", dir, files[0],
                 leat_dtype_name(d->images->dtype), leat_shape_show(&d->images->shape).s);
    LEAT_REQUIRE(d->labels->dtype == LEAT_UINT8 && d->labels->shape.rank == 1, DATA_LOSS,
                 "%s/%s: labels are %s %s, want uint8 [n]", dir, files[1],
                 leat_dtype_name(d->labels->dtype), leat_shape_show(&d->labels->shape).s);
    LEAT_REQUIRE(d->labels->count == d->images->shape.dim[0] && d->labels->count > 0, DATA_LOSS,
                 "%s: %lld images but %lld labels", dir, (long long)d->images->shape.dim[0],
                 (long long)d->labels->count);
    for (int64_t i = 0; i < d->labels->count; i++) {
        int label = ((const unsigned char *)d->labels->data)[i];
        LEAT_REQUIRE(label < CLASSES, DATA_LOSS, "%s/%s: label %lld is %d", dir, files[1],
                     (long long)i, label);
    }
    return NULL;
}

static leat_status read_sets(leat_mnist *m, const char *dir)
{
    for (int i = 0; i < 2; i++) {
        digit_set *d = &m->sets[i];
        LEAT_TRY(read_file(dir, names[i][0], &d->images));
        LEAT_TRY(read_file(dir, names[i][1], &d->labels));
        LEAT_TRY(check_set(d, dir, names[i]));
    }
    leat_strbuf b = {0};
    leat_strbuf_printf(&b, "MNIST from %s", dir);
    m->source = leat_strbuf_take(&b);
    return NULL;
}

static leat_status draw_sets(leat_mnist *m, const char *why)
{
    LEAT_TRY(leat_digits_draw(1, 60000, &m->sets[0].images, &m->sets[0].labels));
    LEAT_TRY(leat_digits_draw(2, 10000, &m->sets[1].images, &m->sets[1].labels));
    leat_strbuf b = {0};
    leat_strbuf_printf(&b, "%s; training on digits that this program draws itself", why);
    m->source = leat_strbuf_take(&b);
    return NULL;
}

static leat_status load(leat_mnist *m, const char *data_dir)
{
    char *dir, *why;
    LEAT_TRY(leat_data_find(&mnist, data_dir, &dir, &why));
    m->drawn = !dir;
    leat_status s = dir ? read_sets(m, dir) : draw_sets(m, why);
    free(dir);
    free(why);
    return s;
}

leat_status leat_mnist_open(const char *data_dir, uint64_t seed, leat_mnist **mnist_out)
{
    leat_mnist *m = leat_new_object(leat_mnist, MNIST);
    leat_status s = load(m, data_dir && data_dir[0] ? data_dir : NULL);
    if (s) {
        leat_mnist_close(m);
        return s;
    }
    for (int i = 0; i < 2; i++)
        m->sets[i].n = m->sets[i].labels->count;
    leat_rng_init(&m->rng, seed);
    *mnist_out = m;
    return NULL;
}

static void batch_unref(batch *b)
{
    leat_tensor_unref(b->images);
    leat_tensor_unref(b->labels);
    *b = (batch){0};
}

static void drop_coming(digit_set *d)
{
    if (!d->coming.images)
        return;
    leat_preparer_wait(d->ahead);
    batch_unref(&d->coming);
}

void leat_mnist_close(leat_mnist *m)
{
    if (!m)
        return;
    if (!LEAT_USABLE(MNIST, m))
        return;
    for (int i = 0; i < 2; i++) {
        digit_set *d = &m->sets[i];
        drop_coming(d);
        leat_preparer_free(d->ahead);
        leat_tensor_unref(d->images);
        leat_tensor_unref(d->labels);
        for (int k = 0; k < KEPT; k++) {
            leat_tensor_unref(d->kept_images[k]);
            leat_tensor_unref(d->kept_labels[k]);
        }
        free(d->order);
    }
    free(m->source);
    leat_object_free(&m->object);
}

const char *leat_mnist_source(const leat_mnist *m)
{
    if (!LEAT_USABLE(MNIST, m))
        return "";
    return m->source;
}

bool leat_mnist_is_drawn(const leat_mnist *m)
{
    return LEAT_USABLE(MNIST, m) && m->drawn;
}

int64_t leat_mnist_count(const leat_mnist *m, leat_mnist_set set)
{
    if (!LEAT_USABLE(MNIST, m))
        return 0;
    return m->sets[set == LEAT_MNIST_TEST].n;
}

leat_status leat_mnist_bytes(const leat_mnist *m, leat_mnist_set set, leat_tensor **images_out,
                             leat_tensor **labels_out)
{
    LEAT_CHECK(MNIST, m);
    const digit_set *d = &m->sets[set == LEAT_MNIST_TEST];
    *images_out = leat_tensor_ref(d->images);
    *labels_out = leat_tensor_ref(d->labels);
    return NULL;
}

/* ---- Batches ---- */

/* Converts pixels from 0 .. 255 to 0 .. 1. */
static void convert(const unsigned char *restrict pixel, float *restrict image)
{
    const float scale = 1.0f / 255;
    int i = 0;
#ifdef __SSE2__
    const __m128i zero = _mm_setzero_si128();
    const __m128 scales = _mm_set1_ps(scale);
    for (; i + 16 <= PIXELS; i += 16) {
        const __m128i bytes = _mm_loadu_si128((const __m128i_u *)(pixel + i));
        const __m128i words[2] = {_mm_unpacklo_epi8(bytes, zero), _mm_unpackhi_epi8(bytes, zero)};
        for (int k = 0; k < 2; k++) {
            const __m128i low = _mm_unpacklo_epi16(words[k], zero);
            const __m128i high = _mm_unpackhi_epi16(words[k], zero);
            _mm_storeu_ps(image + i + 8 * k, _mm_mul_ps(_mm_cvtepi32_ps(low), scales));
            _mm_storeu_ps(image + i + 8 * k + 4, _mm_mul_ps(_mm_cvtepi32_ps(high), scales));
        }
    }
#endif
    for (; i < PIXELS; i++)
        image[i] = (float)pixel[i] * scale;
}

/* Converts row `from` of the set to row `to` of a batch. */
static void deal(const digit_set *d, int64_t from, float *restrict image, float *restrict label)
{
    convert((const unsigned char *)d->images->data + from * PIXELS, image);
    memset(label, 0, sizeof(float) * CLASSES);
    label[((const unsigned char *)d->labels->data)[from]] = 1;
}

/* Rows are read in random order: prefetches those that come next. */
static void announce(const digit_set *d, int64_t row)
{
    const char *image = (const char *)d->images->data + row * PIXELS;
    for (int i = 0; i < PIXELS; i += 64)
        __builtin_prefetch(image + i);
    __builtin_prefetch((const char *)d->labels->data + row);
}

static void shuffle(leat_mnist *m, digit_set *d)
{
    if (!d->order) {
        d->order = leat_new_array(int32_t, d->n);
        for (int64_t i = 0; i < d->n; i++)
            d->order[i] = (int32_t)i;
    }
    for (int64_t i = d->n - 1; i > 0; i--) {
        int64_t k = leat_rng_below(&m->rng, i + 1);
        int32_t t = d->order[i];
        d->order[i] = d->order[k];
        d->order[k] = t;
    }
    d->next = 0;
}

/* A kept tensor that has no other owner, or a new one that replaces a kept one. Shares it. */
static leat_status batch_tensor(leat_tensor **kept, int64_t n, int64_t width, leat_tensor **out)
{
    leat_shape shape = leat_shape(n, width);
    for (int i = 0; i < KEPT; i++)
        if (kept[i] && leat_tensor_sole(kept[i]) && kept[i]->shape.dim[0] == n) {
            *out = leat_tensor_ref(kept[i]);
            return NULL;
        }
    LEAT_TRY(leat_tensor_alloc(NULL, LEAT_FLOAT, &shape, out));
    leat_tensor_unref(kept[KEPT - 1]);
    memmove(kept + 1, kept, sizeof(*kept) * (KEPT - 1));
    kept[0] = leat_tensor_ref(*out);
    return NULL;
}

static leat_status batch_new(digit_set *d, int64_t n, batch *out)
{
    batch b = {0};
    leat_status s = batch_tensor(d->kept_images, n, PIXELS, &b.images);
    if (!s)
        s = batch_tensor(d->kept_labels, n, CLASSES, &b.labels);
    if (s)
        batch_unref(&b);
    *out = b;
    return s;
}

/* Fills rows [begin, end) of a batch from order[next] on, as far as the order goes. Returns the
 * first row that was not filled. */
static int64_t fill(const digit_set *d, int64_t next, const batch *b, int64_t begin, int64_t end)
{
    for (; begin < end && next < d->n; begin++, next++) {
        if (next + AHEAD < d->n)
            announce(d, d->order[next + AHEAD]);
        deal(d, d->order[next], (float *)b->images->data + begin * PIXELS,
             (float *)b->labels->data + begin * CLASSES);
    }
    return begin;
}

static void fill_coming(void *set)
{
    const digit_set *d = set;
    fill(d, d->next, &d->coming, 0, d->coming.images->shape.dim[0]);
}

/* Lets the thread prepare the next batch, if it is likely to have n rows and to come from the
 * present order. Where that fails, the next call prepares its batch itself; and always in a process
 * that is to use one thread, because its CPU's cache then has the batch that the step reads. */
static void prepare_coming(digit_set *d, int64_t n)
{
    const bool again = n == d->last_size;
    d->last_size = n;
    if (!again || d->next + n > d->n || leat_default_threads() < 2)
        return;
    if (!d->ahead && !(d->ahead = leat_preparer_new(fill_coming, d)))
        return;
    leat_status s = batch_new(d, n, &d->coming);
    if (s)
        leat_status_free(s);
    else
        leat_preparer_begin(d->ahead);
}

leat_status leat_mnist_next_batch(leat_mnist *m, leat_mnist_set set, int64_t n,
                                  leat_tensor **images_out, leat_tensor **labels_out)
{
    LEAT_CHECK(MNIST, m);
    digit_set *d = &m->sets[set == LEAT_MNIST_TEST];
    LEAT_REQUIRE(n > 0, INVALID_ARGUMENT, "a batch of %lld examples", (long long)n);
    batch b;
    if (d->coming.images && d->coming.images->shape.dim[0] == n) {
        leat_preparer_wait(d->ahead);
        b = d->coming;
        d->coming = (batch){0};
        d->next += n;
    } else {
        drop_coming(d);
        LEAT_TRY(batch_new(d, n, &b));
        for (int64_t i = 0; i < n;) {
            if (!d->order || d->next == d->n)
                shuffle(m, d);
            const int64_t filled = fill(d, d->next, &b, i, n);
            d->next += filled - i;
            i = filled;
        }
    }
    prepare_coming(d, n);
    *images_out = b.images;
    *labels_out = b.labels;
    return NULL;
}

leat_status leat_mnist_rows(const leat_mnist *m, leat_mnist_set set, int64_t begin, int64_t end,
                            leat_tensor **images_out, leat_tensor **labels_out)
{
    LEAT_CHECK(MNIST, m);
    const digit_set *d = &m->sets[set == LEAT_MNIST_TEST];
    LEAT_REQUIRE(begin >= 0 && begin <= end && end <= d->n, INVALID_ARGUMENT,
                 "rows [%lld, %lld) of %lld", (long long)begin, (long long)end, (long long)d->n);
    leat_shape wide = leat_shape(end - begin, PIXELS), narrow = leat_shape(end - begin, CLASSES);
    leat_tensor *images, *labels;
    LEAT_TRY(leat_tensor_alloc(NULL, LEAT_FLOAT, &wide, &images));
    leat_status s = leat_tensor_alloc(NULL, LEAT_FLOAT, &narrow, &labels);
    if (s) {
        leat_tensor_unref(images);
        return s;
    }
    for (int64_t i = begin; i < end; i++)
        deal(d, i, (float *)images->data + (i - begin) * PIXELS,
             (float *)labels->data + (i - begin) * CLASSES);
    *images_out = images;
    *labels_out = labels;
    return NULL;
}
