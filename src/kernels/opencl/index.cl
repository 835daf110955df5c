/* index.cl -- rows that indices select: gathered, scattered, summed; one hot. INDEX is the type of
 * the indices, T that of the elements. An index that selects no row is passed over, as on all GPUs:
 * what is gathered there is zero.
 *
 * Rows are changed in the order of the indices, of which one may occur twice: a work item changes
 * some columns of all rows. */
/* x is (batch, outer, dim, inner), at (batch, picks), y (batch, outer, picks, inner). */
KERNEL gather(TENSOR(x), TENSOR(at), TENSOR(y), int blocks, int outer, int dim, int picks, int inner)
{
    GLOBAL const INDEX *at = OF(const INDEX, at);
#ifdef LEAT_ON_CPU
    EACH_ROW(r, (long)blocks * picks)
    {
        const long block = r / picks, row = at[block / outer * picks + (r - block * picks)];
        const bool in = row >= 0 && row < dim;
        GLOBAL const T *x = OF(const T, x) + (block * dim + (in ? row : 0)) * inner;
        GLOBAL T *y = OF(T, y) + r * inner;
        VECTORS for (int i = 0; i < inner; i++) y[i] = in ? x[i] : 0;
    }
#else
    EACH(i, (long)blocks * picks * inner)
    {
        const long r = i / inner, block = r / picks;
        const long row = at[block / outer * picks + (r - block * picks)];
        OF(T, y)[i] = row >= 0 && row < dim
                          ? OF(const T, x)[(block * dim + row) * inner + (i - r * inner)]
                          : 0;
    }
#endif
}

/* at is (before, after), y (before, depth, after). */
KERNEL one_hot(TENSOR(at), TENSOR(on), TENSOR(off), TENSOR(y), int before, int depth, int after)
{
    const T on = *OF(const T, on), off = *OF(const T, off);
    EACH_ROW(r, (long)before * depth)
    {
        const long b = r / depth, here = r - b * depth;
        GLOBAL const INDEX *at = OF(const INDEX, at) + b * after;
        GLOBAL T *y = OF(T, y) + r * after;
        VECTORS for (int i = 0; i < after; i++) y[i] = at[i] == here ? on : off;
    }
}

#ifdef COMBINE
#define ASSIGN(a, b) (b)
#define ADD(a, b) ((a) + (b))
#define SUB(a, b) ((a) - (b))
#define MUL(a, b) ((a) * (b))
#define DIV(a, b) ((a) / (b))
#define MIN(a, b) ((b) < (a) ? (b) : (a))
#define MAX(a, b) ((a) < (b) ? (b) : (a))

/* Rows of y (rows, inner) are combined with n rows of x, or with its one element if step is 0. */
KERNEL scatter(TENSOR(x), TENSOR(at), TENSOR(y), int rows, int n, int inner, int step)
{
#ifdef LEAT_ON_CPU
    for (int i = 0; i < n; i++) {
        const long row = OF(const INDEX, at)[i];
        GLOBAL const T *x = OF(const T, x) + (step ? (long)i * inner : 0);
        GLOBAL T *y = OF(T, y) + row * inner;
        if (row < 0 || row >= rows)
            continue;
        if (step) {
            EACH(c, inner) y[c] = COMBINE(y[c], x[c]);
        } else {
            const T one = x[0];
            EACH(c, inner) y[c] = COMBINE(y[c], one);
        }
    }
#else
    EACH(c, inner)
    {
        for (int i = 0; i < n; i++) {
            const long row = OF(const INDEX, at)[i];
            if (row >= 0 && row < rows) {
                GLOBAL T *y = OF(T, y) + row * inner + c;
                *y = COMBINE(*y, OF(const T, x)[step ? (long)i * inner + c : 0]);
            }
        }
    }
#endif
}
#endif
