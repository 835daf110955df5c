/* fractional_pool.c -- FractionalMaxPool, FractionalAvgPool and their gradients.
 *
 * A sequence of row numbers says where windows begin, and where the last one ends; another one does
 * so for columns. Windows that overlap share a row and a column with the next one. */
#include <inttypes.h>

#include "kernels/cpu/arith.h"
#include "kernels/cpu/distributions.h"
#include "kernels/cpu/random.h"

typedef struct fraction {
    const leat_tensor *x, *dy;
    leat_tensor *out;
    int64_t batch, in[2], size[2], channels; /* rows and columns of the image, and of windows */
    const int64_t *at[2];                    /* the sequences, of size + 1 elements */
    bool overlapping;
} fraction;

/* The rows or columns [from, to) of window i. */
static void window(const fraction *f, int d, int64_t i, int64_t *from, int64_t *to)
{
    const int64_t end = f->at[d][i + 1] + f->overlapping;
    *from = f->at[d][i];
    *to = end < f->in[d] ? end : f->in[d];
}

/* Runs the statement for each window, its pixels [r0, r1) and [c0, c1), and the element `small` of
 * the windows' tensor where its channels begin. */
#define EACH_WINDOW(f, begin, end)                                                                 \
    for (int64_t b = (begin), small = (begin) * (f)->size[0] * (f)->size[1] * (f)->channels;       \
         b < (end); b++)                                                                           \
        for (int64_t i = 0, r0, r1; i < (f)->size[0] && (window(f, 0, i, &r0, &r1), true); i++)    \
            for (int64_t j = 0, c0, c1; j < (f)->size[1] && (window(f, 1, j, &c0, &c1), true);     \
                 j++, small += (f)->channels)
#define EACH_PIXEL(f)                                                                              \
    for (int64_t r = r0; r < r1; r++)                                                              \
        for (int64_t c = c0, pixel = ((b * (f)->in[0] + r) * (f)->in[1] + c0) * (f)->channels;     \
             c < c1; c++, pixel += (f)->channels)

#define PARTS(T)                                                                                   \
    static void max_##T(void *arg, int64_t begin, int64_t end)                                     \
    {                                                                                              \
        const fraction *f = arg;                                                                   \
        EACH_WINDOW(f, begin, end)                                                                 \
        {                                                                                          \
            T *y = AT(T, f->out) + small;                                                          \
            const T *x = AT(const T, f->x);                                                        \
            memcpy(y, x + ((b * f->in[0] + r0) * f->in[1] + c0) * f->channels,                     \
                   (size_t)f->channels * sizeof(T));                                               \
            EACH_PIXEL(f)                                                                          \
            for (int64_t k = 0; k < f->channels; k++)                                              \
                y[k] = y[k] < x[pixel + k] ? x[pixel + k] : y[k];                                  \
        }                                                                                          \
    }                                                                                              \
    static void avg_##T(void *arg, int64_t begin, int64_t end)                                     \
    {                                                                                              \
        const fraction *f = arg;                                                                   \
        EACH_WINDOW(f, begin, end)                                                                 \
        {                                                                                          \
            T *y = AT(T, f->out) + small;                                                          \
            const T *x = AT(const T, f->x);                                                        \
            memset(y, 0, (size_t)f->channels * sizeof(T));                                         \
            EACH_PIXEL(f)                                                                          \
            for (int64_t k = 0; k < f->channels; k++)                                              \
                y[k] = (T)((LEAT_WIDE(T))y[k] + (LEAT_WIDE(T))x[pixel + k]);                       \
            for (int64_t k = 0; k < f->channels; k++)                                              \
                y[k] /= (T)((r1 - r0) * (c1 - c0));                                                \
        }                                                                                          \
    }                                                                                              \
    static void max_grad_##T(void *arg, int64_t begin, int64_t end)                                \
    {                                                                                              \
        const fraction *f = arg;                                                                   \
        EACH_WINDOW(f, begin, end)                                                                 \
        for (int64_t k = 0; k < f->channels; k++) {                                                \
            const T *x = AT(const T, f->x);                                                        \
            int64_t first = ((b * f->in[0] + r0) * f->in[1] + c0) * f->channels;                   \
            EACH_PIXEL(f)                                                                          \
            first = x[first + k] < x[pixel + k] ? pixel : first;                                   \
            T *dx = AT(T, f->out) + first + k;                                                     \
            *dx = (T)((LEAT_WIDE(T)) * dx + (LEAT_WIDE(T))AT(const T, f->dy)[small + k]);          \
        }                                                                                          \
    }                                                                                              \
    /* TensorFlow adds in double, whatever the type. */                                            \
    static void avg_grad_##T(void *arg, int64_t begin, int64_t end)                                \
    {                                                                                              \
        const fraction *f = arg;                                                                   \
        double *dx = (double *)f->x->data;                                                         \
        EACH_WINDOW(f, begin, end)                                                                 \
        EACH_PIXEL(f)                                                                              \
        for (int64_t k = 0; k < f->channels; k++)                                                  \
            dx[pixel + k] +=                                                                       \
                (double)AT(const T, f->dy)[small + k] / (double)((r1 - r0) * (c1 - c0));           \
        const int64_t size = f->in[0] * f->in[1] * f->channels;                                    \
        for (int64_t e = begin * size; e < end * size; e++)                                        \
            AT(T, f->out)[e] = (T)dx[e];                                                           \
    }
PARTS(float)
PARTS(double)
PARTS(int32_t)
PARTS(int64_t)

typedef void (*part_fn)(void *, int64_t, int64_t);
#define TABLE(name)                                                                                \
    static const part_fn name##_parts[] = {[LEAT_FLOAT] = name##_float,                            \
                                           [LEAT_DOUBLE] = name##_double,                          \
                                           [LEAT_INT32] = name##_int32_t,                          \
                                           [LEAT_INT64] = name##_int64_t}
TABLE(max);
TABLE(avg);
TABLE(max_grad);
TABLE(avg_grad);

static void work(leat_kernel *k, fraction *f, const part_fn *parts)
{
    leat_kernel_for(k, f->batch, (double)(f->in[0] * f->in[1] * f->channels), parts[f->out->dtype],
                    f);
}

/* ---- Sequences ---- */

/* Sizes that add up to `in`, each in / n or one more, become a sequence of n + 1 numbers. The
 * numbers drawn are TensorFlow's. */
static void draw_sequence(leat_philox *stream, bool pseudo, int64_t in, int64_t n, int64_t *seq)
{
    leat_philox own = *stream;
    leat_philox_single random = {.gen = &own, .used = 4};
    const int64_t each = in / n;
    int64_t *sizes = seq + 1;
    if (pseudo) {
        leat_philox_skip(stream, 1);
        const double alpha = (double)in / (double)n;
        const double most1 = (double)(each + 2) / alpha - 1;
        const double most2 = (double)(in + 1 - each) / alpha - (double)(n - 1);
        const uint32_t x0 = leat_philox_one(&random), x1 = leat_philox_one(&random);
        const double u = leat_uniform_double(x0, x1) * (most1 < most2 ? most1 : most2);
        int64_t before = 1;
        for (int64_t i = 0; i < n; i++) {
            int64_t next = i + 1 < n ? (int64_t)ceil(alpha * ((double)(i + 1) + u)) : in + 1;
            sizes[i] = next - before;
            before = next;
        }
    } else {
        leat_philox_skip(stream, (uint64_t)(n + 3) / 4);
        for (int64_t i = 0; i < n; i++)
            sizes[i] = each + (i < in % n);
        for (int64_t i = 0; i + 1 < n; i++) {
            const int64_t j = i + (int64_t)(leat_philox_one(&random) % (uint32_t)(n - i));
            const int64_t kept = sizes[i];
            sizes[i] = sizes[j];
            sizes[j] = kept;
        }
    }
    seq[0] = 0;
    for (int64_t i = 1; i <= n; i++)
        seq[i] += seq[i - 1];
}

static leat_status stream_of(const leat_node *n, leat_philox *out)
{
    uint64_t seed = (uint64_t)leat_node_int(n, "seed");
    uint64_t seed2 = (uint64_t)leat_node_int(n, "seed2");
    LEAT_REQUIRE(leat_node_bool(n, "deterministic") || (seed == 0 && seed2 == 0), INVALID_ARGUMENT,
                 "Both seed and seed2 should be 0 if deterministic is false.");
    if (seed == 0 && seed2 == 0) {
        seed = leat_random_by_chance();
        seed2 = leat_random_by_chance();
    }
    *out = leat_philox_of(seed, seed2);
    return NULL;
}

/* The state keeps the seeds of a node, so that a deterministic one without seeds draws the same in
 * every run. */
static leat_status forward_init(const leat_node *n, void *state)
{
    return stream_of(n, state);
}

static leat_status forward(leat_kernel *k, const part_fn *parts)
{
    const leat_node *n = leat_kernel_node(k);
    fraction f = {.x = leat_kernel_in(k, 0), .overlapping = leat_node_bool(n, "overlapping")};
    int count;
    const double *ratio = leat_node_floats(n, "pooling_ratio", &count);
    leat_shape y = f.x->shape;
    LEAT_REQUIRE(count == 4, INVALID_ARGUMENT, "pooling_ratio field must specify 4 dimensions");
    for (int i = 0; i < 4; i++)
        LEAT_REQUIRE(ratio[i] >= 1, INVALID_ARGUMENT,
                     "pooling_ratio cannot be smaller than 1, got: %g", ratio[i]);
    LEAT_REQUIRE(ratio[0] == 1 && ratio[3] == 1, UNIMPLEMENTED,
                 "Fractional pooling is not yet supported on the batch nor channel dimension.");
    LEAT_REQUIRE(y.rank == 4, INVALID_ARGUMENT, "tensor_in must be 4-dimensional");
    for (int i = 0; i < 4; i++) {
        LEAT_REQUIRE((double)y.dim[i] >= ratio[i] && y.dim[i] < INT32_MAX, INVALID_ARGUMENT,
                     "Pooling ratio is higher than input dimension size for dimension %d. Input "
                     "dim size: %" PRId64 " pooling ratio: %g",
                     i, y.dim[i], ratio[i]);
        y.dim[i] = (int64_t)floorf((float)y.dim[i] / (float)ratio[i]);
        LEAT_REQUIRE(y.dim[i] > 0 && y.dim[i] <= f.x->shape.dim[i], INVALID_ARGUMENT,
                     "Pooling ratio %g leaves nothing of dimension %d", ratio[i], i);
    }
    leat_philox stream = *(const leat_philox *)leat_kernel_state(k);
    if (!leat_node_bool(n, "deterministic"))
        LEAT_TRY(stream_of(n, &stream));
    LEAT_TRY(leat_kernel_out(k, 0, &y, &f.out));
    f.batch = y.dim[0];
    f.channels = y.dim[3];
    for (int d = 0; d < 2; d++) {
        leat_tensor *seq;
        f.in[d] = f.x->shape.dim[1 + d];
        f.size[d] = y.dim[1 + d];
        LEAT_TRY(leat_kernel_out(k, 1 + d, &(leat_shape){1, {f.size[d] + 1}}, &seq));
        draw_sequence(&stream, leat_node_bool(n, "pseudo_random"), f.in[d], f.size[d], seq->data);
        f.at[d] = seq->data;
    }
    work(k, &f, parts);
    return NULL;
}

static leat_status max_run(leat_kernel *k)
{
    return forward(k, max_parts);
}

static leat_status avg_run(leat_kernel *k)
{
    return forward(k, avg_parts);
}

/* ---- Gradients ---- */

/* Checks that the sequences, inputs `first` and the next one, are windows of images of shape x that
 * belong to dy. */
static leat_status read_windows(leat_kernel *k, int first, const leat_shape *x, fraction *f)
{
    static const char *const names[] = {"Row", "Column"};
    const leat_shape *dy = &f->dy->shape;
    LEAT_REQUIRE(dy->rank == 4 && dy->dim[0] == x->dim[0] && dy->dim[3] == x->dim[3],
                 INVALID_ARGUMENT, "out_backprop must be a pooled %s, got %s", leat_shape_show(x).s,
                 leat_shape_show(dy).s);
    f->overlapping = leat_node_bool(leat_kernel_node(k), "overlapping");
    f->batch = x->dim[0];
    f->channels = x->dim[3];
    for (int d = 0; d < 2; d++) {
        const leat_tensor *t = leat_kernel_in(k, first + d);
        const int64_t *v = t->data;
        f->in[d] = x->dim[1 + d];
        f->size[d] = dy->dim[1 + d];
        f->at[d] = v;
        LEAT_REQUIRE(t->shape.rank == 1 && t->count == f->size[d] + 1, INVALID_ARGUMENT,
                     "%s sequence tensor must have %" PRId64 " elements, got %s", names[d],
                     f->size[d] + 1, leat_shape_show(&t->shape).s);
    }
    for (int d = 0; d < 2; d++)
        for (int64_t i = 0; i <= f->size[d]; i++)
            LEAT_REQUIRE(f->at[d][i] >= 0, INVALID_ARGUMENT,
                         "%s sequence tensor values must not be negative, got %" PRId64, names[d],
                         f->at[d][i]);
    for (int d = 0; d < 2; d++)
        for (int64_t i = 0; i <= f->size[d]; i++)
            LEAT_REQUIRE((i == 0 || f->at[d][i] > f->at[d][i - 1]) && f->at[d][i] <= f->in[d],
                         INVALID_ARGUMENT,
                         "%s sequence tensor values must increase and end at %" PRId64
                         ", element %" PRId64 " is %" PRId64,
                         names[d], f->in[d], i, f->at[d][i]);
    return NULL;
}

static leat_status max_grad_run(leat_kernel *k)
{
    const leat_tensor *y = leat_kernel_in(k, 1);
    fraction f = {.x = leat_kernel_in(k, 0), .dy = leat_kernel_in(k, 2)};
    LEAT_REQUIRE(f.x->shape.rank == 4, INVALID_ARGUMENT, "orig_input must be 4-dimensional");
    LEAT_REQUIRE(leat_shape_equal(&y->shape, &f.dy->shape), INVALID_ARGUMENT,
                 "orig_output and out_backprop must have one shape, got %s and %s",
                 leat_shape_show(&y->shape).s, leat_shape_show(&f.dy->shape).s);
    LEAT_TRY(read_windows(k, 3, &f.x->shape, &f));
    LEAT_TRY(leat_kernel_out(k, 0, &f.x->shape, &f.out));
    if (f.out->count == 0)
        return NULL;
    memset(f.out->data, 0, (size_t)f.out->count * leat_dtype_size(f.out->dtype));
    work(k, &f, max_grad_parts);
    return NULL;
}

static leat_status avg_grad_run(leat_kernel *k)
{
    const leat_tensor *shape = leat_kernel_in(k, 0);
    leat_tensor *sums;
    fraction f = {.dy = leat_kernel_in(k, 1)};
    leat_shape s = {.rank = 4};
    LEAT_REQUIRE(shape->shape.rank == 1 && shape->count == 4, INVALID_ARGUMENT,
                 "original input tensor shape must be 1-dimensional and 4 elements");
    for (int i = 0; i < 4; i++) {
        s.dim[i] = AT(int64_t, shape)[i];
        LEAT_REQUIRE(s.dim[i] > 0, INVALID_ARGUMENT,
                     "Dimension %d of input must be positive, got %" PRId64, i, s.dim[i]);
    }
    LEAT_TRY(read_windows(k, 2, &s, &f));
    LEAT_TRY(leat_kernel_out(k, 0, &s, &f.out));
    LEAT_TRY(leat_kernel_temp(k, LEAT_DOUBLE, &s, &sums));
    memset(sums->data, 0, (size_t)sums->count * sizeof(double));
    f.x = sums;
    work(k, &f, avg_grad_parts);
    return NULL;
}

#define TYPES (LEAT_ROW_FLOAT | LEAT_ROW_INDEX)
#define FORWARD(op_, fn)                                                                           \
    {                                                                                              \
        .op = op_, .where = {{"T", TYPES}}, .run = fn, .state_size = sizeof(leat_philox),          \
        .init = forward_init, .host = "row_pooling_sequence, col_pooling_sequence"                 \
    }

const leat_kernel_def leat_cpu_fractional_pool[] = {
    FORWARD("FractionalMaxPool", max_run),
    FORWARD("FractionalAvgPool", avg_run),
    {.op = "FractionalMaxPoolGrad",
     .where = {{"T", TYPES}},
     .run = max_grad_run,
     .host = "row_pooling_sequence, col_pooling_sequence"},
    {.op = "FractionalAvgPoolGrad",
     .where = {{"T", TYPES}},
     .run = avg_grad_run,
     .host = "orig_input_tensor_shape, row_pooling_sequence, col_pooling_sequence"},
    {0},
};
