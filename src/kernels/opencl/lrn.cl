/* lrn.cl -- local response normalisation over neighbouring channels: a row is a pixel's channels. */
enum { BLOCK = 64, REACH = 16 };

DEVICE lanes power(lanes s, float beta)
{
    if (beta == 1.0f)
        return 1 / s;
    const lanes root = sqrt(s);
    if (beta == 0.5f)
        return 1 / root;
    if (beta == 0.75f)
        return 1 / (root * sqrt(root));
    return exp(-beta * log(s));
}

DEVICE lanes lanes_at(const float *x)
{
#ifdef LEAT_ON_CPU
    return vload16(0, x);
#else
    return *x;
#endif
}

DEVICE void set_lanes(float *x, lanes v)
{
#ifdef LEAT_ON_CPU
    vstore16(v, 0, x);
#else
    *x = v;
#endif
}

/* The same for any reach, one neighbour after another. */
DEVICE void far_neighbours(GLOBAL const float *v, bool squares, int depth, int c0, int n, int reach,
                           float *sums)
{
    for (int i = 0; i < BLOCK; i++)
        sums[i] = 0;
    for (int j = max(-reach, -(c0 + n)); j <= min(reach, depth); j++) {
        const int from = max(0, -(c0 + j)), to = min(n, depth - c0 - j);
        GLOBAL const float *x = v + c0 + j;
        for (int i = from; i < to; i++)
            sums[i] += squares ? x[i] * x[i] : x[i];
    }
}

/* sums[i] = the sum of v, or of its squares, over the neighbours of channel c0 + i. */
DEVICE void neighbours(GLOBAL const float *v, bool squares, int depth, int c0, int n, int reach,
                       float *sums)
{
    if (reach > REACH) {
        far_neighbours(v, squares, depth, c0, n, reach, sums);
        return;
    }
    float line[REACH + BLOCK + REACH + 16]; /* channels from c0 - reach on; zeros where there are none */
    const int first = max(0, reach - c0), last = min(n + 2 * reach, depth - c0 + reach);
    GLOBAL const float *x = v + c0 - reach;
    for (int i = 0; i < first; i++)
        line[i] = 0;
    if (squares) {
        VECTORS for (int i = first; i < last; i++) line[i] = x[i] * x[i];
    } else {
        VECTORS for (int i = first; i < last; i++) line[i] = x[i];
    }
    for (int i = last; i < n + 2 * reach + LANES; i++)
        line[i] = 0;
    for (int i = 0; i < n; i += LANES) {
        lanes sum = lanes_at(line + i);
        for (int j = 1; j <= 2 * reach; j++)
            sum += lanes_at(line + i + j);
        set_lanes(sums + i, sum);
    }
}

/* Goes through the blocks of channels of all rows: `sums` for the n channels from c0 on, and LANES of
 * them at a time, of which m are left, at place `at`. */
#define EACH_LANES(v, squares, ...)                                                                \
    EACH_ROW(r, rows)                                                                              \
    {                                                                                              \
        for (int c0 = 0; c0 < depth; c0 += BLOCK) {                                                \
            float sums[BLOCK];                                                                     \
            const int n = min((int)BLOCK, depth - c0);                                             \
            neighbours(OF(const float, v) + r * depth, squares, depth, c0, n, reach, sums);        \
            for (int i = 0; i < n; i += LANES) {                                                   \
                const int m = min((int)LANES, n - i);                                              \
                const long at = r * depth + c0 + i;                                                \
                const lanes sum = lanes_at(sums + i);                                              \
                __VA_ARGS__                                                                        \
            }                                                                                      \
        }                                                                                          \
    }

KERNEL lrn(TENSOR(x), TENSOR(y), int rows, int depth, int reach, float bias, float alpha,
           float beta)
{
    EACH_LANES(x, true, {
        const lanes scale = power(bias + alpha * sum, beta);
        put(OF(float, y) + at, m, get(OF(const float, x) + at, m) * scale);
    })
}

/* ratio = dy * y / norm, dx = dy * norm ^ -beta. */
KERNEL lrn_ratio(TENSOR(x), TENSOR(y), TENSOR(dy), TENSOR(ratio), TENSOR(dx), int rows, int depth,
                 int reach, float bias, float alpha, float beta)
{
    EACH_LANES(x, true, {
        const lanes norm = bias + alpha * sum, dy = get(OF(const float, dy) + at, m);
        put(OF(float, ratio) + at, m, dy * get(OF(const float, y) + at, m) / norm);
        put(OF(float, dx) + at, m, dy * power(norm, beta));
    })
}

/* dx += factor * x * the sum of the ratios of the neighbours. */
KERNEL lrn_add(TENSOR(x), TENSOR(ratio), TENSOR(dx), int rows, int depth, int reach, float factor)
{
    EACH_LANES(ratio, false, {
        const lanes more = factor * get(OF(const float, x) + at, m) * sum;
        put(OF(float, dx) + at, m, get(OF(const float, dx) + at, m) + more);
    })
}
