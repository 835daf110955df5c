/* array.cl -- conversions, choices and positions. */
#define CAST(from, to)                                                                             \
    KERNEL from##_to_##to(TENSOR(x), TENSOR(y), int n)                                             \
    {                                                                                              \
        GLOBAL const from *x = OF(const from, x);                                                  \
        GLOBAL to *y = OF(to, y);                                                                  \
        EACH(i, n) y[i] = (to)x[i];                                                                \
    }
#define TRUTH(from)                                                                                \
    KERNEL from##_to_truth(TENSOR(x), TENSOR(y), int n)                                            \
    {                                                                                              \
        GLOBAL const from *x = OF(const from, x);                                                  \
        GLOBAL uchar *y = OF(uchar, y);                                                            \
        EACH(i, n) y[i] = x[i] != 0;                                                               \
    }
CAST(float, int)
CAST(float, long)
CAST(float, uchar)
CAST(int, float)
CAST(int, long)
CAST(long, float)
CAST(long, int)
CAST(uchar, float)
CAST(uchar, int)
CAST(uchar, long)
TRUTH(float)
TRUTH(int)
TRUTH(long)
TRUTH(uchar)

/* One condition for `inner` elements, or one for all of them. */
KERNEL choose(TENSOR(c), TENSOR(x), TENSOR(y), TENSOR(z), int n, int inner)
{
    GLOBAL const uchar *c = OF(const uchar, c);
    GLOBAL const float *x = OF(const float, x), *y = OF(const float, y);
    GLOBAL float *z = OF(float, z);
    if (inner == 1) {
        EACH(i, n) z[i] = c[i] ? x[i] : y[i];
    } else {
        EACH(i, n) z[i] = c[i / inner] ? x[i] : y[i];
    }
}

/* Rows of x (outer, rows, inner) at indices: (outer, n, inner). A row that does not exist is zero, as
 * on all GPUs. */
#define GATHER(INDEX)                                                                              \
    KERNEL gather_##INDEX(TENSOR(x), TENSOR(at), TENSOR(y), int outer, int rows, int n, int inner) \
    {                                                                                              \
        EACH_ROW(r, (long)outer * n)                                                               \
        {                                                                                          \
            const long o = r / n, row = OF(const INDEX, at)[r - o * n];                            \
            const bool in = row >= 0 && row < rows;                                                \
            GLOBAL const float *x = OF(const float, x) + (o * rows + (in ? row : 0)) * inner;      \
            GLOBAL float *y = OF(float, y) + r * inner;                                            \
            VECTORS for (int i = 0; i < inner; i++) y[i] = in ? x[i] : 0;                          \
        }                                                                                          \
    }                                                                                              \
    /* Adds n rows of x to rows of y, in order; a row that does not exist is left out. */          \
    KERNEL add_rows_##INDEX(TENSOR(x), TENSOR(at), TENSOR(y), int rows, int n, int inner)          \
    {                                                                                              \
        EACH_ROW(c, inner)                                                                         \
        for (int i = 0; i < n; i++)                                                                \
        {                                                                                          \
            const long row = OF(const INDEX, at)[i];                                               \
            if (row >= 0 && row < rows)                                                            \
                OF(float, y)[row * inner + c] += OF(const float, x)[(long)i * inner + c];          \
        }                                                                                          \
    }
GATHER(int)
GATHER(long)
