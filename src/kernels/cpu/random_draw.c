/* random_draw.c -- samples of distributions with parameters, in TensorFlow's sequences: RandomGamma
 * (Marsaglia and Tsang, 2000), RandomPoisson, RandomPoissonV2 (Knuth; Hoermann, 1993), Multinomial.
 *
 * Every sample uses a part of the stream of its own, so that it does not depend on the other
 * samples. */
#include "kernels/cpu/distributions.h"
#include "kernels/cpu/random.h"
#include "kernels/cpu/shapes.h"
#include "kernels/cpu/special_fn.h"

enum { EACH = 256 }; /* numbers of the stream that a sample may use */

/* Uniform and normal numbers; they are made two at a time, and the second is used first. */
typedef struct source {
    leat_philox gen;
    double uniform[2], normal[2];
    int uniforms, normals; /* numbers that are left */
} source;

static source source_at(const leat_philox *p, int64_t output)
{
    source s = {.gen = *p};
    leat_philox_skip(&s.gen, (uint64_t)output * EACH);
    return s;
}

static double uniform(source *s)
{
    if (s->uniforms == 0) {
        uint32_t x[4];
        leat_philox_next(&s->gen, x);
        s->uniform[0] = leat_uniform_double(x[0], x[1]);
        s->uniform[1] = leat_uniform_double(x[2], x[3]);
        s->uniforms = 2;
    }
    return s->uniform[--s->uniforms];
}

static double normal(source *s)
{
    if (s->normals == 0) {
        uint32_t x[4];
        leat_philox_next(&s->gen, x);
        leat_box_muller_double(x, s->normal);
        s->normals = 2;
    }
    return s->normal[--s->normals];
}

static double gamma_of(source *s, double alpha, double most)
{
    (void)most;
    if (alpha == 1)
        return -log(1 - uniform(s));
    const bool small = alpha < 1; /* drawn for alpha + 1, then scaled */
    const double d = alpha + (small ? 2.0 / 3 : -1.0 / 3), c = 1.0 / 3 / sqrt(d);
    for (int tries = 0; tries < 1000; tries++) {
        const double x = normal(s);
        double v = 1 + c * x;
        if (v <= 0)
            continue;
        v = v * v * v;
        const double u = uniform(s);
        if (u < 1 - 0.0331 * (x * x) * (x * x) || log(u) < 0.5 * x * x + d * (1 - v + log(v)))
            return small ? d * v * pow(uniform(s), 1 / alpha) : d * v;
    }
    return NAN; /* alpha is not a number above 0 */
}

static double poisson_large(source *s, double rate, double most)
{
    const double log_rate = log(rate), b = 0.931 + 2.53 * sqrt(rate), a = -0.059 + 0.02483 * b;
    const double inverse = 1.1239 + 1.1328 / (b - 3.4);
    for (int tries = 0; tries < 1000; tries++) {
        const double u = uniform(s) - 0.5, v = uniform(s), shifted = 0.5 - fabs(u);
        const double k = floor((2 * a / shifted + b) * u + rate + 0.43);
        if (k > most)
            continue;
        if (shifted >= 0.07 && v <= 0.9277 - 3.6224 / (b - 2))
            return k;
        if (k < 0 || (shifted < 0.013 && v > shifted))
            continue;
        if (log(v * inverse / (a / (shifted * shifted) + b)) <=
            -rate + k * log_rate - leat_log_gamma(k + 1))
            return k;
    }
    return NAN;
}

static double poisson_of(source *s, double rate, double most)
{
    if (!(rate >= 0) || isinf(rate))
        return NAN;
    if (rate >= 10)
        return poisson_large(s, rate, most);
    const double least = exp(-rate);
    double product = uniform(s), x = 0;
    for (; product > least; x++)
        product *= uniform(s);
    return x;
}

static void put(leat_tensor *y, int64_t i, double v)
{
    switch (y->dtype) {
    case LEAT_HALF:
        AT(leat_half, y)[i] = leat_half_from_float((float)v);
        break;
    case LEAT_FLOAT:
        AT(float, y)[i] = (float)v;
        break;
    case LEAT_DOUBLE:
        AT(double, y)[i] = v;
        break;
    case LEAT_INT32:
        AT(int32_t, y)[i] = v >= INT32_MIN && v <= INT32_MAX ? (int32_t)v : 0;
        break;
    default:
        AT(int64_t, y)[i] = v > -9e18 && v < 9e18 ? (int64_t)v : 0;
    }
}

static double largest(leat_dtype t)
{
    return t == LEAT_HALF ? 65504 : t == LEAT_INT32 ? INT32_MAX : t == LEAT_INT64 ? 9.2e18 : 3e38;
}

typedef struct draw {
    const leat_tensor *parameter;
    leat_tensor *y;
    leat_philox stream;
    int64_t samples; /* for each parameter */
    double (*of)(source *s, double parameter, double most);
} draw;

static void draw_part(void *arg, int64_t begin, int64_t end)
{
    draw *d = arg;
    const double most = largest(d->y->dtype);
    for (int64_t i = begin; i < end; i++) {
        const int64_t p = i / d->samples, sample = i % d->samples;
        source s = source_at(&d->stream, i);
        put(d->y, sample * d->parameter->count + p,
            d->of(&s, leat_tensor_at(d->parameter, p), most));
    }
}

/* A tensor of this many samples of each parameter: (shape..., parameter's shape...). */
static leat_status draw_all(leat_kernel *k, draw *d)
{
    const leat_tensor *shape = leat_kernel_in(k, 0);
    leat_shape s, all;
    d->parameter = leat_kernel_in(k, 1);
    LEAT_REQUIRE(shape->shape.rank == 1, INVALID_ARGUMENT,
                 "shape must be a vector of {int32,int64}, got shape %s",
                 leat_shape_show(&shape->shape).s);
    LEAT_TRY(leat_shape_from_tensor(shape, &s));
    LEAT_TRY(leat_shape_join(&s, &d->parameter->shape, 0, &all));
    LEAT_TRY(leat_kernel_out(k, 0, &all, &d->y));
    d->samples = leat_shape_count(&s);
    if (d->y->count == 0)
        return NULL;
    LEAT_TRY(leat_random_reserve(k, (uint64_t)d->y->count * EACH, &d->stream));
    leat_kernel_for(k, d->y->count, 100, draw_part, d);
    return NULL;
}

static leat_status gamma_run(leat_kernel *k)
{
    return draw_all(k, &(draw){.of = gamma_of});
}

static leat_status poisson_run(leat_kernel *k)
{
    return draw_all(k, &(draw){.of = poisson_of});
}

/* ---- RandomGammaGrad: the derivative of a sample with respect to alpha, -(dP/da) / (dP/dx)
 * ---- */

static double gamma_moves(double alpha, double x)
{
    if (x == 0)
        return 0;
    if (!(alpha > 0) || !(x > 0))
        return NAN;
    const double log_density = (alpha - 1) * log(x) - x - leat_log_gamma(alpha);
    return -leat_igamma_grad_a(alpha, x) / exp(log_density);
}

static leat_status gamma_grad_run(leat_kernel *k)
{
    const leat_tensor *a = leat_kernel_in(k, 0), *x = leat_kernel_in(k, 1);
    leat_shape s;
    leat_status bad = leat_shape_broadcast(&a->shape, &x->shape, &s);
    leat_status_free(bad);
    LEAT_REQUIRE(!bad, INVALID_ARGUMENT, "Incompatible shapes: %s vs. %s",
                 leat_shape_show(&a->shape).s, leat_shape_show(&x->shape).s);
    leat_tensor *y;
    LEAT_TRY(leat_kernel_out(k, 0, &s, &y));
    for (int64_t i = 0; i < y->count; i++)
        put(y, i,
            gamma_moves(leat_tensor_at(a, leat_broadcast_at(&s, &a->shape, i)),
                        leat_tensor_at(x, leat_broadcast_at(&s, &x->shape, i))));
    return NULL;
}

/* ---- Multinomial: classes by their log-probabilities ---- */

static void pick(const leat_tensor *logits, int64_t row, int64_t samples, leat_philox_single *s,
                 double *sums, leat_tensor *y)
{
    const int64_t classes = logits->shape.dim[1];
    double most = -INFINITY, total = 0;
    for (int64_t j = 0; j < classes; j++) {
        const double v = leat_tensor_at(logits, row * classes + j);
        most = isfinite(v) && v > most ? v : most;
    }
    for (int64_t j = 0; j < classes; j++) {
        const double v = leat_tensor_at(logits, row * classes + j);
        total += isfinite(v) ? exp(v - most) : 0;
        sums[j] = total;
    }
    for (int64_t i = 0; i < samples; i++) {
        const uint32_t x0 = leat_philox_one(s), x1 = leat_philox_one(s);
        const double find = leat_uniform_double(x0, x1) * total;
        int64_t low = 0, high = classes; /* the first sum that is above */
        while (low < high) {
            const int64_t mid = low + (high - low) / 2;
            if (sums[mid] > find)
                high = mid;
            else
                low = mid + 1;
        }
        put(y, row * samples + i, (double)low);
    }
}

static leat_status multinomial(leat_kernel *k, const leat_tensor *seed)
{
    const leat_tensor *logits = leat_kernel_in(k, 0), *n = leat_kernel_in(k, 1);
    LEAT_REQUIRE(logits->shape.rank == 2, INVALID_ARGUMENT,
                 "logits should be a matrix, got shape %s", leat_shape_show(&logits->shape).s);
    LEAT_REQUIRE(n->shape.rank == 0, INVALID_ARGUMENT,
                 "num_samples should be a scalar, got shape %s", leat_shape_show(&n->shape).s);
    const int64_t samples = AT(int32_t, n)[0], rows = logits->shape.dim[0];
    LEAT_REQUIRE(samples >= 0, INVALID_ARGUMENT, "num_samples should be nonnegative, got %lld",
                 (long long)samples);
    const int64_t classes = logits->shape.dim[1];
    LEAT_REQUIRE(classes > 0, INVALID_ARGUMENT, "num_classes should be positive, got %lld",
                 (long long)classes);
    leat_tensor *y, *sums;
    LEAT_TRY(leat_kernel_out(k, 0, &(leat_shape){.rank = 2, .dim = {rows, samples}}, &y));
    if (y->count == 0)
        return NULL;
    LEAT_TRY(leat_kernel_temp(k, LEAT_DOUBLE, &(leat_shape){.rank = 1, .dim = {classes}}, &sums));
    leat_philox p;
    const uint64_t drawn = (uint64_t)rows * (uint64_t)((samples + 3) / 4 * 4 * 2);
    if (seed)
        p = leat_random_seeded(seed);
    else
        LEAT_TRY(leat_random_reserve(k, drawn * EACH, &p));
    leat_philox_single s = {.gen = &p, .used = 4};
    for (int64_t r = 0; r < rows; r++)
        pick(logits, r, samples, &s, sums->data, y);
    return NULL;
}

static leat_status multinomial_run(leat_kernel *k)
{
    return multinomial(k, NULL);
}

static leat_status stateless_multinomial_run(leat_kernel *k)
{
    const leat_tensor *seed = leat_kernel_in(k, 2);
    LEAT_REQUIRE(seed->shape.rank == 1 && seed->count == 2, INVALID_ARGUMENT,
                 "seed must have shape [2], not %s", leat_shape_show(&seed->shape).s);
    return multinomial(k, seed);
}

#define DRAW(name, attr, types, fn)                                                                \
    {                                                                                              \
        .op = name, .where = {{attr, types}}, .run = fn, .state_size = LEAT_RANDOM_STATE,          \
        .release = leat_random_release                                                             \
    }
#define FLOATS (LEAT_T(HALF) | LEAT_T(FLOAT) | LEAT_T(DOUBLE))

const leat_kernel_def leat_cpu_random_draw[] = {
    DRAW("RandomGamma", "T", FLOATS, gamma_run),
    DRAW("RandomPoisson", "dtype", FLOATS, poisson_run),
    DRAW("RandomPoissonV2", "dtype", FLOATS | LEAT_TYPES_INDEX, poisson_run),
    DRAW("Multinomial", "T", LEAT_TYPES_REAL, multinomial_run),
    {.op = "StatelessMultinomial",
     .where = {{"T", LEAT_TYPES_REAL}},
     .run = stateless_multinomial_run},
    {.op = "RandomGammaGrad",
     .where = {{"T", LEAT_T(FLOAT) | LEAT_T(DOUBLE)}},
     .run = gamma_grad_run},
    {0},
};
