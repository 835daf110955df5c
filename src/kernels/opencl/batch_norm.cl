/* batch_norm.cl -- batch normalisation of x, (outer, channels, inner).
 *
 * Sums over a channel are made in parts, (part, 2, channel), which reduce.cl adds: with inner = 1 a
 * part is `chunk` rows of channels, else it is one of `outer`. */
#define FOR_CHANNELS VECTORS for (int c = 0; c < channels; c++)

/* The sums of dy and of dy * (x - mean); with the option FIRST those of x alone, with the option
 * SQUARES those of x - mean and of its square. */
#if defined FIRST
#define TERMS(i, center)                                                                           \
    const float one = x[i], two = 0;
#elif defined SQUARES
#define TERMS(i, center)                                                                           \
    const float one = x[i] - (center), two = one * one;
#else
#define TERMS(i, center)                                                                           \
    const float one = dy[i], two = one * (x[i] - (center));
#endif

KERNEL sums(TENSOR(x), TENSOR(dy), TENSOR(mean), TENSOR(to), int outer, int channels, int inner,
            int chunk)
{
    GLOBAL const float *mean = OF(const float, mean);
    if (inner != 1) {
        EACH_ROW(r, (long)outer * channels)
        {
            const long o = r / channels, c = r - o * channels;
            GLOBAL const float *x = OF(const float, x) + r * inner, *dy = OF(const float, dy) + r * inner;
            GLOBAL float *to = OF(float, to) + o * 2 * channels + c;
            const float center = mean[c];
            /* Lanes add for themselves, so that sums are near to those of a tree. */
            float s[16] = {0}, q[16] = {0};
            int i = 0;
            for (; i + 16 <= inner; i += 16) {
                VECTORS for (int l = 0; l < 16; l++)
                {
                    TERMS(i + l, center)
                    s[l] += one;
                    q[l] += two;
                }
            }
            for (; i < inner; i++) {
                TERMS(i, center)
                s[0] += one;
                q[0] += two;
            }
            for (int l = 1; l < 16; l++) {
                s[0] += s[l];
                q[0] += q[l];
            }
            to[0] = s[0];
            to[channels] = q[0];
        }
        return;
    }
    const int parts = (outer + chunk - 1) / chunk;
#ifdef LEAT_ON_CPU
    EACH_ROW(p, parts)
    {
        GLOBAL float *to = OF(float, to) + p * 2 * channels;
        const long end = min((p + 1) * chunk, (long)outer);
        for (int c = 0; c < 2 * channels; c++)
            to[c] = 0;
        for (long r = p * chunk; r < end; r++) {
            GLOBAL const float *x = OF(const float, x) + r * channels;
            GLOBAL const float *dy = OF(const float, dy) + r * channels;
            FOR_CHANNELS
            {
                TERMS(c, mean[c])
                to[c] += one;
                to[channels + c] += two;
            }
        }
    }
#else
    EACH(i, (long)parts * channels)
    {
        const long p = i / channels, c = i - p * channels, end = min((p + 1) * chunk, (long)outer);
        float s = 0, q = 0;
        for (long r = p * chunk; r < end; r++) {
            GLOBAL const float *x = OF(const float, x) + r * channels;
            GLOBAL const float *dy = OF(const float, dy) + r * channels;
            TERMS(c, mean[c])
            s += one;
            q += two;
        }
        OF(float, to)[p * 2 * channels + c] = s;
        OF(float, to)[(p * 2 + 1) * channels + c] = q;
    }
#endif
}

/* From the sums of x - near and of its square, where `near` is nearly the mean of `count` elements:
 * mean, variance with Bessel's correction, variance. */
KERNEL statistics(TENSOR(sums), TENSOR(near), TENSOR(mean), TENSOR(unbiased), TENSOR(var), int channels,
                  float count)
{
    EACH(c, channels)
    {
        const float off = OF(const float, sums)[c] / count;
        const float v = OF(const float, sums)[channels + c] / count - off * off;
        OF(float, mean)[c] = OF(const float, near)[c] + off;
        OF(float, var)[c] = v;
        OF(float, unbiased)[c] = count > 1 ? v * (count / (count - 1)) : v;
    }
}

/* x goes through rows of channels, or through planes of `inner` elements of a channel c. */
#define EACH_ELEMENT(...)                                                                          \
    if (inner == 1) {                                                                              \
        EACH_ROW(r, outer)                                                                         \
        {                                                                                          \
            const long at = r * channels;                                                          \
            FOR_CHANNELS                                                                           \
            {                                                                                      \
                const long i = at + c;                                                             \
                __VA_ARGS__                                                                        \
            }                                                                                      \
        }                                                                                          \
    } else {                                                                                       \
        EACH_ROW(r, (long)outer * channels)                                                        \
        {                                                                                          \
            const int c = (int)(r % channels);                                                     \
            VECTORS for (long i = r * inner; i < (r + 1) * inner; i++)                             \
            {                                                                                      \
                __VA_ARGS__                                                                        \
            }                                                                                      \
        }                                                                                          \
    }

/* y = (x - mean) * scale / sqrt(var + epsilon) + offset; factor has room for the factors. */
KERNEL factors(TENSOR(scale), TENSOR(var), TENSOR(factor), int channels, float epsilon)
{
    EACH(c, channels)
    OF(float, factor)[c] = OF(const float, scale)[c] / sqrt(OF(const float, var)[c] + epsilon);
}

KERNEL normalized(TENSOR(x), TENSOR(mean), TENSOR(factor), TENSOR(offset), TENSOR(y), int outer,
                 int channels, int inner)
{
    GLOBAL const float *x = OF(const float, x), *mean = OF(const float, mean);
    GLOBAL const float *factor = OF(const float, factor), *offset = OF(const float, offset);
    GLOBAL float *y = OF(float, y);
    EACH_ELEMENT(y[i] = (x[i] - mean[c]) * factor[c] + offset[c];)
}

/* The gradients of scale and offset, and the factors (3, channels) of that of x; without `training`
 * mean and variance are constants. */
KERNEL grad_factors(TENSOR(sums), TENSOR(scale), TENSOR(var), TENSOR(dscale), TENSOR(doffset),
                    TENSOR(factor), int channels, float epsilon, float count, int training)
{
    EACH(c, channels)
    {
        const float sum = OF(const float, sums)[c], dot = OF(const float, sums)[channels + c];
        const float wide = OF(const float, var)[c] + epsilon, root = sqrt(wide);
        GLOBAL float *factor = OF(float, factor) + c;
        OF(float, dscale)[c] = dot / root;
        OF(float, doffset)[c] = sum;
        factor[0] = OF(const float, scale)[c] / root;
        factor[channels] = training ? sum / count : 0;
        factor[2 * channels] = training ? dot / count / wide : 0;
    }
}

/* dx = a * (dy - b - (x - mean) * d), where a, b and d are the factors. */
KERNEL backward(TENSOR(x), TENSOR(dy), TENSOR(mean), TENSOR(factor), TENSOR(dx), int outer,
                int channels, int inner)
{
    GLOBAL const float *x = OF(const float, x), *dy = OF(const float, dy);
    GLOBAL const float *mean = OF(const float, mean), *a = OF(const float, factor);
    GLOBAL const float *b = a + channels, *d = b + channels;
    GLOBAL float *dx = OF(float, dx);
    EACH_ELEMENT(dx[i] = a[c] * (dy[i] - b[c] - (x[i] - mean[c]) * d[c]);)
}
