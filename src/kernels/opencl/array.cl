/* array.cl -- conversions and choices. */
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
