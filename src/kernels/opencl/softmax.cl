/* softmax.cl -- softmax and cross entropy, row by row of (batch, classes). */
DEVICE float row_largest(GLOBAL const float *x, int n, int step)
{
    float most = -INFINITY;
    for (int i = 0; i < n; i++)
        most = fmax(most, x[i * step]);
    return most;
}

KERNEL softmax(TENSOR(x), TENSOR(y), int batch, int n, int logarithm)
{
    EACH_ROW(r, batch)
    {
        GLOBAL const float *x = OF(const float, x) + r * n;
        GLOBAL float *y = OF(float, y) + r * n;
        const float most = row_largest(x, n, 1);
        float sum = 0;
        if (logarithm) {
            for (int i = 0; i < n; i++)
                sum += exp(x[i] - most);
            const float low = log(sum);
            VECTORS for (int i = 0; i < n; i++) y[i] = x[i] - most - low;
            continue;
        }
        for (int i = 0; i < n; i++) {
            const float e = exp(x[i] - most);
            y[i] = e;
            sum += e;
        }
        VECTORS for (int i = 0; i < n; i++) y[i] = y[i] / sum;
    }
}

/* Rows of logits and labels are `_row` elements apart, their elements `_step`; 0 where one is
 * broadcast. */
KERNEL xent(TENSOR(x), TENSOR(labels), TENSOR(loss), TENSOR(back), int batch, int n, int x_row,
            int x_step, int label_row, int label_step)
{
    EACH_ROW(r, batch)
    {
        GLOBAL const float *x = OF(const float, x) + r * x_row;
        GLOBAL const float *p = OF(const float, labels) + r * label_row;
        GLOBAL float *d = OF(float, back) + r * n;
        const float most = row_largest(x, n, x_step);
        float sum = 0, loss = 0;
        for (int i = 0; i < n; i++)
            sum += exp(x[i * x_step] - most);
        const float low = log(sum);
        for (int i = 0; i < n; i++) {
            const float l = p[i * label_step], z = x[i * x_step] - most;
            loss += l == 0 ? 0 : l * (low - z);
            d[i] = exp(z) / sum - l;
        }
        OF(float, loss)[r] = loss;
    }
}

/* A label that is none makes its row NaN, as on all GPUs. */
#define SPARSE(name, INDEX)                                                                        \
    KERNEL name(TENSOR(x), TENSOR(labels), TENSOR(loss), TENSOR(back), int batch, int n)           \
    {                                                                                              \
        EACH_ROW(r, batch)                                                                         \
        {                                                                                          \
            GLOBAL const float *x = OF(const float, x) + r * n;                                    \
            GLOBAL float *d = OF(float, back) + r * n;                                             \
            const long label = OF(const INDEX, labels)[r];                                         \
            const bool good = label >= 0 && label < n;                                             \
            const float most = row_largest(x, n, 1);                                               \
            float sum = 0;                                                                         \
            for (int i = 0; i < n; i++) {                                                          \
                const float e = exp(x[i] - most);                                                  \
                d[i] = e;                                                                          \
                sum += e;                                                                          \
            }                                                                                      \
            const float scale = good ? 1 / sum : NAN;                                              \
            for (int i = 0; i < n; i++)                                                            \
                d[i] = d[i] * scale - (i == label ? 1 : 0);                                        \
            OF(float, loss)[r] = good ? log(sum) - (x[label] - most) : NAN;                        \
        }                                                                                          \
    }
SPARSE(sparse_int, int)
SPARSE(sparse_long, long)
