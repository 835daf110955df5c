/* reduce.cl -- reductions of the middle dimension of (outer, along, inner), in parts: the result is
 * (outer, parts, inner), where a part is at most `chunk` elements along. A second pass reduces the
 * parts. Lanes of a vector add for themselves, so that sums are near to those of a tree. */
#define ADD(a, b) ((a) + (b))
#define MULTIPLY(a, b) ((a) * (b))
#define LARGER(a, b) ((a) < (b) ? (b) : (a))
#define SMALLER(a, b) ((b) < (a) ? (b) : (a))
#define SAME(x) (x)
#define SQUARE(x) ((x) * (x))

#ifdef LEAT_ON_CPU
#define REDUCE(name, T, START, COMBINE, MAP)                                                       \
    DEVICE T name##_run(GLOBAL const T *x, int n)                                                  \
    {                                                                                              \
        T##16 lanes = START;                                                                       \
        int i = 0;                                                                                 \
        for (; i + 16 <= n; i += 16) {                                                             \
            const T##16 v = vload16(0, x + i);                                                     \
            lanes = COMBINE(lanes, MAP(v));                                                        \
        }                                                                                          \
        const T##8 a = COMBINE(lanes.lo, lanes.hi);                                                \
        const T##4 b = COMBINE(a.lo, a.hi);                                                        \
        const T##2 c = COMBINE(b.lo, b.hi);                                                        \
        T y = COMBINE(c.x, c.y);                                                                   \
        for (; i < n; i++)                                                                         \
            y = COMBINE(y, MAP(x[i]));                                                             \
        return y;                                                                                  \
    }                                                                                              \
    KERNEL name(TENSOR(x), TENSOR(y), int outer, int along, int inner, int parts, int chunk,       \
                float divide)                                                                      \
    {                                                                                              \
        EACH_ROW(r, (long)outer * parts)                                                           \
        {                                                                                          \
            const long o = r / parts, first = (r - o * parts) * chunk;                             \
            const int n = (int)min((long)chunk, along - first);                                    \
            GLOBAL const T *x = OF(const T, x) + (o * along + first) * inner;                      \
            GLOBAL T *y = OF(T, y) + r * inner;                                                    \
            if (inner == 1) {                                                                      \
                y[0] = (T)(name##_run(x, n) / (divide));                                           \
                continue;                                                                          \
            }                                                                                      \
            int j = 0;                                                                             \
            for (; j + 16 <= inner; j += 16) {                                                     \
                T##16 sum = START;                                                                 \
                GLOBAL const T *at = x + j;                                                        \
                for (int i = 0; i < n; i++, at += inner) {                                         \
                    const T##16 v = vload16(0, at);                                                \
                    sum = COMBINE(sum, MAP(v));                                                    \
                }                                                                                  \
                for (int l = 0; l < 16; l++)                                                       \
                    y[j + l] = (T)(((T *)&sum)[l] / (divide));                                     \
            }                                                                                      \
            for (; j < inner; j++) {                                                               \
                T sum = START;                                                                     \
                for (int i = 0; i < n; i++)                                                        \
                    sum = COMBINE(sum, MAP(x[(long)i * inner + j]));                               \
                y[j] = (T)(sum / (divide));                                                        \
            }                                                                                      \
        }                                                                                          \
    }
#else
#define REDUCE(name, T, START, COMBINE, MAP)                                                       \
    KERNEL name(TENSOR(x), TENSOR(y), int outer, int along, int inner, int parts, int chunk,       \
                float divide)                                                                      \
    {                                                                                              \
        EACH(c, (long)outer * parts * inner)                                                       \
        {                                                                                          \
            const long r = c / inner, o = r / parts, first = (r - o * parts) * chunk;              \
            const int n = (int)min((long)chunk, along - first);                                    \
            GLOBAL const T *x = OF(const T, x) + (o * along + first) * inner + (c - r * inner);    \
            T sum = START;                                                                         \
            for (int i = 0; i < n; i++) {                                                          \
                const T v = x[(long)i * inner];                                                    \
                sum = COMBINE(sum, MAP(v));                                                        \
            }                                                                                      \
            OF(T, y)[c] = (T)(sum / (divide));                                                     \
        }                                                                                          \
    }
#endif
REDUCE(sum, float, 0, ADD, SAME)
REDUCE(sum_squares, float, 0, ADD, SQUARE)
REDUCE(product, float, 1, MULTIPLY, SAME)
REDUCE(largest, float, -INFINITY, LARGER, SAME)
REDUCE(smallest, float, INFINITY, SMALLER, SAME)
#undef REDUCE
/* Bools: all, any. */
#define BOOLS(name, START, OP)                                                                     \
    KERNEL name(TENSOR(x), TENSOR(y), int outer, int along, int inner, int parts, int chunk,       \
                float divide)                                                                      \
    {                                                                                              \
        EACH_ROW(c, (long)outer * parts * inner)                                                   \
        {                                                                                          \
            const long r = c / inner, o = r / parts, first = (r - o * parts) * chunk;              \
            const int n = (int)min((long)chunk, along - first);                                    \
            GLOBAL const uchar *x = OF(const uchar, x) + (o * along + first) * inner + c - r * inner; \
            uchar y = START;                                                                       \
            for (int i = 0; i < n; i++)                                                            \
                y = y OP x[(long)i * inner];                                                       \
            OF(uchar, y)[c] = y;                                                                   \
        }                                                                                          \
    }
BOOLS(all_of, 1, &)
BOOLS(any_of, 0, |)

/* The place of the largest (sign 1) or smallest (sign -1) element along, the first of several. */
#define PLACE(name, Z)                                                                             \
    KERNEL name(TENSOR(x), TENSOR(y), int outer, int along, int inner, float sign)                 \
    {                                                                                              \
        EACH_ROW(c, (long)outer * inner)                                                           \
        {                                                                                          \
            const long o = c / inner;                                                              \
            GLOBAL const float *x = OF(const float, x) + o * along * inner + (c - o * inner);      \
            float best = sign * x[0];                                                              \
            int at = 0;                                                                            \
            for (int i = 1; i < along; i++) {                                                      \
                const float v = sign * x[(long)i * inner];                                         \
                at = v > best ? i : at;                                                            \
                best = v > best ? v : best;                                                        \
            }                                                                                      \
            OF(Z, y)[c] = at;                                                                      \
        }                                                                                          \
    }
PLACE(place_int, int)
PLACE(place_long, long)
