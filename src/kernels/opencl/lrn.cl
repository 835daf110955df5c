/* lrn.cl -- local response normalisation over neighbouring channels: a row is a pixel's channels. */
enum { BLOCK = 64 };

DEVICE float power(float s, float beta)
{
    if (beta == 1.0f)
        return 1 / s;
    const float root = sqrt(s);
    if (beta == 0.5f)
        return 1 / root;
    if (beta == 0.75f)
        return 1 / (root * sqrt(root));
    return exp(-beta * log(s));
}

/* sums[i] = the sum of v, or of its squares, over the neighbours of channel c0 + i. */
DEVICE void neighbours(GLOBAL const float *v, bool squares, int depth, int c0, int n, int reach,
                       float *sums)
{
    for (int i = 0; i < BLOCK; i++)
        sums[i] = 0;
    for (int j = max(-reach, -(c0 + n)); j <= min(reach, depth); j++) {
        const int from = max(0, -(c0 + j)), to = min(n, depth - c0 - j);
        GLOBAL const float *x = v + c0 + j;
        if (squares) {
            VECTORS for (int i = from; i < to; i++) sums[i] += x[i] * x[i];
        } else {
            VECTORS for (int i = from; i < to; i++) sums[i] += x[i];
        }
    }
}

KERNEL lrn(TENSOR(x), TENSOR(y), int rows, int depth, int reach, float bias, float alpha,
           float beta)
{
    EACH_ROW(r, rows)
    {
        GLOBAL const float *x = OF(const float, x) + r * depth;
        GLOBAL float *y = OF(float, y) + r * depth;
        for (int c0 = 0; c0 < depth; c0 += BLOCK) {
            float sums[BLOCK];
            const int n = min((int)BLOCK, depth - c0);
            neighbours(x, true, depth, c0, n, reach, sums);
            VECTORS for (int i = 0; i < n; i++) y[c0 + i] =
                x[c0 + i] * power(bias + alpha * sums[i], beta);
        }
    }
}

/* ratio = dy * y / norm, dx = dy * norm ^ -beta. */
KERNEL lrn_ratio(TENSOR(x), TENSOR(y), TENSOR(dy), TENSOR(ratio), TENSOR(dx), int rows, int depth,
                 int reach, float bias, float alpha, float beta)
{
    EACH_ROW(r, rows)
    {
        const long at = r * depth;
        for (int c0 = 0; c0 < depth; c0 += BLOCK) {
            float sums[BLOCK];
            const int n = min((int)BLOCK, depth - c0);
            GLOBAL const float *y = OF(const float, y) + at + c0, *dy = OF(const float, dy) + at + c0;
            GLOBAL float *ratio = OF(float, ratio) + at + c0, *dx = OF(float, dx) + at + c0;
            neighbours(OF(const float, x) + at, true, depth, c0, n, reach, sums);
            VECTORS for (int i = 0; i < n; i++)
            {
                const float norm = bias + alpha * sums[i];
                ratio[i] = dy[i] * y[i] / norm;
                dx[i] = dy[i] * power(norm, beta);
            }
        }
    }
}

/* dx += factor * x * the sum of the ratios of the neighbours. */
KERNEL lrn_add(TENSOR(x), TENSOR(ratio), TENSOR(dx), int rows, int depth, int reach, float factor)
{
    EACH_ROW(r, rows)
    {
        GLOBAL const float *x = OF(const float, x) + r * depth;
        GLOBAL float *dx = OF(float, dx) + r * depth;
        for (int c0 = 0; c0 < depth; c0 += BLOCK) {
            float sums[BLOCK];
            const int n = min((int)BLOCK, depth - c0);
            neighbours(OF(const float, ratio) + r * depth, false, depth, c0, n, reach, sums);
            VECTORS for (int i = 0; i < n; i++) dx[c0 + i] += factor * x[c0 + i] * sums[i];
        }
    }
}
