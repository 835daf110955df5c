/* image_scale.c -- ScaleAndTranslate and ScaleAndTranslateGrad: an output pixel is a weighted sum
 * of the input pixels around it, in rows first and then in columns.
 *
 * A span is the input pixels that one output pixel is made of, with their weights. The gradient
 * works in the same way, with spans that say for each input pixel to which output pixels it
 * went. */
#include "kernels/cpu/image_resize.h"

/* ---- The kernels that images are sampled with ---- */

static const float pi = 3.14159265359f;

static float lanczos(float x, float radius)
{
    if (x > radius)
        return 0;
    if (x <= 1e-3)
        return 1; /* the limit of sin(x) / x */
    return radius * sinf(pi * x) * sinf(pi * x / radius) / (pi * pi * x * x);
}

static float gaussian(float x, float radius)
{
    const float sigma = radius / 3.0f;
    return x >= radius ? 0 : (float)exp((double)(-x * x) / (2.0 * sigma * sigma));
}

static float box(float x, float radius)
{
    (void)radius;
    return x < 0.5f ? 1.0f : x == 0.5f ? 0.5f : 0.0f;
}

static float triangle(float x, float radius)
{
    (void)radius;
    return x < 1.0f ? 1.0f - x : 0.0f;
}

static float keys_cubic(float x, float radius)
{
    if (x >= radius)
        return 0;
    return x >= 1.0f ? ((-0.5f * x + 2.5f) * x - 4.0f) * x + 2.0f
                     : ((1.5f * x - 2.5f) * x) * x + 1.0f;
}

static float mitchell_cubic(float x, float radius)
{
    if (x >= radius)
        return 0;
    return x >= 1.0f ? (((-7.0f / 18.0f) * x + 2.0f) * x - 10.0f / 3.0f) * x + 16.0f / 9.0f
                     : (((7.0f / 6.0f) * x - 2.0f) * x) * x + 8.0f / 9.0f;
}

typedef struct sampling {
    const char *name;
    float (*at)(float x, float radius);
    float radius;
} sampling;

static const sampling samplings[] = {
    {"lanczos1", lanczos, 1},
    {"lanczos3", lanczos, 3},
    {"lanczos5", lanczos, 5},
    {"gaussian", gaussian, 1.5f},
    {"box", box, 1},
    {"triangle", triangle, 1},
    {"keyscubic", keys_cubic, 2},
    {"mitchellcubic", mitchell_cubic, 2},
};

static leat_status find_sampling(const leat_node *n, sampling *out)
{
    const char *name = leat_node_string(n, "kernel_type");
    for (size_t i = 0; i < sizeof(samplings) / sizeof(*samplings); i++)
        if (!strcmp(samplings[i].name, name)) {
            *out = samplings[i];
            return NULL;
        }
    return leat_error(INVALID_ARGUMENT, "Unrecognized kernel type: %s", name);
}

/* ---- Spans ---- */

typedef struct spans {
    int64_t size;    /* the largest number of pixels in a span */
    int32_t *starts; /* (pixels) */
    float *weights;  /* (pixels, size); 0 where a span is shorter */
} spans;

static leat_status spans_alloc(leat_kernel *k, int64_t pixels, spans *s)
{
    int64_t n;
    LEAT_REQUIRE(leat_mul_ok(pixels, s->size, &n), RESOURCE_EXHAUSTED,
                 "no memory for the weights of %lld pixels", (long long)pixels);
    LEAT_TRY(leat_resize_temp(k, pixels, sizeof(*s->starts), &s->starts));
    LEAT_TRY(leat_resize_temp(k, n, sizeof(*s->weights), &s->weights));
    memset(s->starts, 0, (size_t)pixels * sizeof(*s->starts));
    memset(s->weights, 0, (size_t)n * sizeof(*s->weights));
    return NULL;
}

static leat_status spans_find(leat_kernel *k, const sampling *sample, bool antialias, int64_t out,
                              int64_t in, float scale, float translate, spans *s)
{
    const float inverse = (float)(1.0 / scale), shift = -inverse * translate;
    const float stretch = antialias && inverse > 1.0f ? inverse : 1.0f;
    const float reach = sample->radius * stretch, one_over_stretch = 1.0f / stretch;
    const float widest = 2 * ceilf(reach) + 1;
    s->size = widest < (float)in ? (int64_t)widest : in;
    LEAT_TRY(spans_alloc(k, out, s));
    for (int64_t x = 0; x < out; x++) {
        const float at = ((float)x + 0.5f) * inverse + shift;
        if (!(at >= 0 && at <= (float)in))
            continue; /* outside of the image */
        const float low = ceilf(at - reach - 0.5f), high = floorf(at + reach - 0.5f);
        const int64_t begin = low < 0 ? 0 : low > (float)(in - 1) ? in - 1 : (int64_t)low;
        int64_t end = high < 0 ? 0 : high > (float)(in - 1) ? in - 1 : (int64_t)high;
        if (++end - begin > s->size)
            return leat_error(INTERNAL, "Span is too large: %lld vs %lld.",
                              (long long)(end - begin), (long long)s->size);
        float *weights = s->weights + x * s->size, sum = 0;
        for (int64_t i = begin; i < end; i++) {
            const float distance = (float)i + 0.5f - at;
            weights[i - begin] = sample->at(fabsf(distance * one_over_stretch), sample->radius);
            sum += weights[i - begin];
        }
        const bool zero = !(fabsf(sum) >= 1000.0f * 1.17549435e-38f);
        const float one_over_sum = 1.0f / sum;
        for (int64_t i = 0; i < end - begin; i++)
            weights[i] = zero ? 0 : weights[i] * one_over_sum;
        s->starts[x] = (int32_t)begin;
    }
    return NULL;
}

/* From the spans of `out` output pixels those of the `in` input pixels. */
static leat_status spans_reverse(leat_kernel *k, const spans *s, int64_t out, int64_t in, spans *to)
{
    int32_t *first, *last; /* the output pixels that an input pixel went to; first > last if none */
    LEAT_TRY(leat_resize_temp(k, in, sizeof(*first), &first));
    LEAT_TRY(leat_resize_temp(k, in, sizeof(*last), &last));
    for (int64_t i = 0; i < in; i++) {
        first[i] = INT32_MAX;
        last[i] = -1;
    }
    to->size = 0;
    for (int64_t x = 0; x < out; x++)
        for (int64_t j = 0; j < s->size; j++) {
            const int64_t i = s->starts[x] + j;
            if (s->weights[x * s->size + j] == 0 || i >= in)
                continue;
            if (first[i] > x)
                first[i] = (int32_t)x;
            last[i] = (int32_t)x;
            if (last[i] - first[i] + 1 > to->size)
                to->size = last[i] - first[i] + 1;
        }
    LEAT_TRY(spans_alloc(k, in, to));
    for (int64_t i = 0; i < in; i++)
        to->starts[i] = last[i] < 0 ? 0 : first[i];
    for (int64_t x = 0; x < out; x++)
        for (int64_t j = 0; j < s->size; j++) {
            const int64_t i = s->starts[x] + j;
            const float w = s->weights[x * s->size + j];
            if (w != 0 && i < in)
                to->weights[i * to->size + x - first[i]] += w;
        }
    return NULL;
}

/* ---- Sums ---- */

typedef struct gather {
    const leat_tensor *x;
    float *between; /* (batch, out_height, in_width, channels): rows are summed up, columns not */
    float *y;       /* (batch, out_height, out_width, channels) */
    int64_t in_height, in_width, out_height, out_width, channels;
    spans rows, columns;
} gather;

/* The number of pixels of a span that lie inside. */
static int64_t inside(const spans *s, int64_t i, int64_t in)
{
    return s->starts[i] + s->size < in ? s->size : in - s->starts[i];
}

#define ROW(dtype, T)                                                                              \
    static void rows_##T(void *arg, int64_t begin, int64_t end)                                    \
    {                                                                                              \
        const gather *g = arg;                                                                     \
        const int64_t width = g->in_width * g->channels;                                           \
        for (int64_t i = begin; i < end; i++) {                                                    \
            const int64_t row = i % g->out_height;                                                 \
            const T *x = AT(const T, g->x) +                                                       \
                         (i / g->out_height * g->in_height + g->rows.starts[row]) * width;         \
            float *to = g->between + i * width;                                                    \
            memset(to, 0, (size_t)width * sizeof(*to));                                            \
            const int64_t n = inside(&g->rows, row, g->in_height);                                 \
            for (int64_t j = 0; j < n; j++, x += width) {                                          \
                const float w = g->rows.weights[row * g->rows.size + j];                           \
                LEAT_SIMD                                                                          \
                for (int64_t e = 0; e < width; e++)                                                \
                    to[e] += w * (float)x[e];                                                      \
            }                                                                                      \
        }                                                                                          \
    }
LEAT_X_IMAGE(ROW)

static void columns_part(void *arg, int64_t begin, int64_t end)
{
    const gather *g = arg;
    const int64_t channels = g->channels;
    for (int64_t i = begin; i < end; i++) {
        const float *row = g->between + i * g->in_width * channels;
        float *y = g->y + i * g->out_width * channels;
        for (int64_t x = 0; x < g->out_width; x++, y += channels) {
            const float *from = row + g->columns.starts[x] * channels;
            const float *weights = g->columns.weights + x * g->columns.size;
            const int64_t n = inside(&g->columns, x, g->in_width);
            memset(y, 0, (size_t)channels * sizeof(*y));
            for (int64_t j = 0; j < n; j++, from += channels)
                for (int64_t c = 0; c < channels; c++)
                    y[c] += weights[j] * from[c];
        }
    }
}

static leat_status gather_run(leat_kernel *k, gather *g, int64_t batch)
{
    leat_tensor *between;
    static void (*const rows[])(void *, int64_t, int64_t) = {
#define ENTRY(dtype, T) [LEAT_##dtype] = rows_##T,
        LEAT_X_IMAGE(ENTRY)};
    LEAT_TRY(leat_kernel_temp(k, LEAT_FLOAT,
                              &(leat_shape){4, {batch, g->out_height, g->in_width, g->channels}},
                              &between));
    g->between = AT(float, between);
    leat_kernel_for(k, batch * g->out_height,
                    0.3 * (double)(g->rows.size * g->in_width * g->channels), rows[g->x->dtype], g);
    leat_kernel_for(k, batch * g->out_height,
                    (double)(g->columns.size * g->out_width * g->channels), columns_part, g);
    return NULL;
}

/* ---- The ops ---- */

/* Two numbers, for rows and columns. */
static leat_status read_pair(leat_kernel *k, int i, float out[2])
{
    const leat_tensor *t = leat_kernel_in(k, i);
    LEAT_REQUIRE(t->shape.rank == 1, INVALID_ARGUMENT, "t must be 1-dimensional%s",
                 leat_shape_show(&t->shape).s);
    LEAT_REQUIRE(t->count == 2, INVALID_ARGUMENT, "t must have two elements%s",
                 leat_shape_show(&t->shape).s);
    out[0] = AT(float, t)[0];
    out[1] = AT(float, t)[1];
    return NULL;
}

static leat_status read_scales(leat_kernel *k, float scale[2], float translation[2])
{
    LEAT_TRY(read_pair(k, 2, scale));
    LEAT_REQUIRE(scale[0] > 0 && scale[1] > 0, INVALID_ARGUMENT,
                 "Scale must be greater than zero.");
    return read_pair(k, 3, translation);
}

static leat_status scale_run(leat_kernel *k)
{
    const leat_tensor *x = leat_kernel_in(k, 0), *size = leat_kernel_in(k, 1);
    sampling sample;
    float scale[2], translation[2];
    LEAT_TRY(find_sampling(leat_kernel_node(k), &sample));
    LEAT_REQUIRE(x->shape.rank == 4, INVALID_ARGUMENT, "input must be 4-dimensional%s",
                 leat_shape_show(&x->shape).s);
    LEAT_REQUIRE(size->shape.rank == 1, INVALID_ARGUMENT, "output_shape_t must be 1-dimensional%s",
                 leat_shape_show(&size->shape).s);
    LEAT_REQUIRE(size->count == 2, INVALID_ARGUMENT, "output_shape_t must have two elements%s",
                 leat_shape_show(&size->shape).s);
    gather g = {.x = x,
                .in_height = x->shape.dim[1],
                .in_width = x->shape.dim[2],
                .channels = x->shape.dim[3],
                .out_height = AT(int32_t, size)[0],
                .out_width = AT(int32_t, size)[1]};
    LEAT_REQUIRE(g.in_height < INT32_MAX && g.in_width < INT32_MAX, INVALID_ARGUMENT,
                 "input sizes must be between 0 and max int32");
    LEAT_REQUIRE(g.out_height > 0 && g.out_width > 0, INVALID_ARGUMENT,
                 "output dimensions must be positive");
    LEAT_REQUIRE(g.channels > 0, INVALID_ARGUMENT, "image must have at least one channel");
    LEAT_REQUIRE(g.in_height > 0 && g.in_width > 0, INVALID_ARGUMENT,
                 "input image must be of non-zero size");
    LEAT_TRY(read_scales(k, scale, translation));
    leat_tensor *y;
    const int64_t batch = x->shape.dim[0];
    LEAT_TRY(leat_kernel_out(k, 0, &(leat_shape){4, {batch, g.out_height, g.out_width, g.channels}},
                             &y));
    if (y->count == 0)
        return NULL;
    g.y = AT(float, y);
    const bool antialias = leat_node_bool(leat_kernel_node(k), "antialias");
    LEAT_TRY(spans_find(k, &sample, antialias, g.out_width, g.in_width, scale[1], translation[1],
                        &g.columns));
    LEAT_TRY(spans_find(k, &sample, antialias, g.out_height, g.in_height, scale[0], translation[0],
                        &g.rows));
    return gather_run(k, &g, batch);
}

static leat_status scale_grad_run(leat_kernel *k)
{
    const leat_tensor *dy = leat_kernel_in(k, 0), *original = leat_kernel_in(k, 1);
    sampling sample;
    float scale[2], translation[2];
    LEAT_TRY(find_sampling(leat_kernel_node(k), &sample));
    LEAT_REQUIRE(dy->shape.rank == 4, INVALID_ARGUMENT, "input_grad must be 4-dimensional%s",
                 leat_shape_show(&dy->shape).s);
    LEAT_REQUIRE(original->shape.rank == 4, INVALID_ARGUMENT,
                 "original_image must be 4-dimensional%s", leat_shape_show(&original->shape).s);
    /* "in" is dy, "out" the gradient, which has the size of the original image. */
    gather g = {.x = dy,
                .in_height = dy->shape.dim[1],
                .in_width = dy->shape.dim[2],
                .channels = dy->shape.dim[3],
                .out_height = original->shape.dim[1],
                .out_width = original->shape.dim[2]};
    LEAT_REQUIRE(g.out_height < INT32_MAX && g.out_width < INT32_MAX, INVALID_ARGUMENT,
                 "original sizes must be between 0 and max int32");
    LEAT_REQUIRE(g.in_height < INT32_MAX && g.in_width < INT32_MAX, INVALID_ARGUMENT,
                 "gradient sizes must be between 0 and max int32");
    LEAT_TRY(read_scales(k, scale, translation));
    leat_tensor *y;
    const int64_t batch = dy->shape.dim[0];
    LEAT_TRY(leat_kernel_out(k, 0, &(leat_shape){4, {batch, g.out_height, g.out_width, g.channels}},
                             &y));
    if (y->count == 0)
        return NULL;
    g.y = AT(float, y);
    const bool antialias = leat_node_bool(leat_kernel_node(k), "antialias");
    spans forward;
    LEAT_TRY(spans_find(k, &sample, antialias, g.in_width, g.out_width, scale[1], translation[1],
                        &forward));
    LEAT_TRY(spans_reverse(k, &forward, g.in_width, g.out_width, &g.columns));
    LEAT_TRY(spans_find(k, &sample, antialias, g.in_height, g.out_height, scale[0], translation[0],
                        &forward));
    LEAT_TRY(spans_reverse(k, &forward, g.in_height, g.out_height, &g.rows));
    return gather_run(k, &g, batch);
}

const leat_kernel_def leat_cpu_image_scale[] = {
    {.op = "ScaleAndTranslate",
     .where = {{"T", LEAT_TYPES_IMAGE}},
     .run = scale_run,
     .flags = LEAT_KERNEL_VIA_FLOAT},
    {.op = "ScaleAndTranslateGrad", .where = {{"T", LEAT_T(FLOAT)}}, .run = scale_grad_run},
    {0},
};
