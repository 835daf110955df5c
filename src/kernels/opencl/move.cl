/* move.cl -- moves elements of type T between places with strides, and sets them. */
KERNEL move(TENSOR(to), TENSOR(from), const walk w, int n)
{
    GLOBAL T *to = OF(T, to);
    GLOBAL const T *from = OF(const T, from);
#ifdef LEAT_ON_CPU
    const int m = w.dim[w.rank - 1], a = w.a[w.rank - 1], b = w.b[w.rank - 1];
    EACH_ROW(r, n / m)
    {
        const int2 at = walk_at(&w, (int)r, 1);
        GLOBAL T *y = to + at.x;
        GLOBAL const T *x = from + at.y;
        if (a == 1 && b == 1) {
            VECTORS for (int i = 0; i < m; i++) y[i] = x[i];
        } else if (a == 1 && b == 0) {
            const T value = x[0];
            VECTORS for (int i = 0; i < m; i++) y[i] = value;
        } else {
            for (int i = 0; i < m; i++)
                y[i * a] = x[i * b];
        }
    }
#else
    EACH(i, n)
    {
        const int2 at = walk_at(&w, (int)i, 0);
        to[at.x] = from[at.y];
    }
#endif
}

KERNEL fill(TENSOR(to), T value, int n)
{
    GLOBAL T *to = OF(T, to);
    EACH(i, n) to[i] = value;
}
