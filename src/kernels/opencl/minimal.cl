/* minimal.cl -- the transforms of minimal filtering, F(4 x 4, 5 x 5); kernels/cpu/conv_minimal.c
 * explains the arithmetic. Between them are 64 products of matrices, one for each point (gemm.cl).
 *
 * A work item transforms a tile of some channels: LANES, a vector on a CPU, one on a GPU. */
enum { OUT = 4, WINDOW = 5, IN = 8 };

#ifdef LEAT_ON_CPU
enum { LANES = 16 };
typedef float16 vec;
#define LOADS(p) vload16(0, p)
#define STORES(v, p) vstore16(v, 0, p)
#else
enum { LANES = 1 };
typedef float vec;
#define LOADS(p) (*(p))
#define STORES(v, p) (*(p) = (v))
#endif

/* How tiles lie on images: tile t of an image begins at rows and columns t * OUT - before. */
typedef struct grid {
    int down, across;  /* tiles of an image */
    int rows, columns; /* of an image */
    int depth;         /* channels of the images */
    int before[2];
    int first, tiles; /* the tiles of this launch; they are counted through all images */
    /* Element (point, tile, channel) of the transformed tiles is at point * slot + (channel /
     * width) * tiles * width + tile * width + channel % width: where they are the right matrix of a
     * product, they are its panels. */
    int slot, width;
} grid;

DEVICE long place_of(const grid *g, int tile, int channel)
{
    const int panel = channel / g->width;
    return ((long)panel * g->tiles + tile) * g->width + (channel - panel * g->width);
}

/* B^T d */
DEVICE void wino_x(const vec d[IN], vec t[IN])
{
    const vec a = d[2] + d[6] - 4.25f * d[4], b = d[1] + d[5] - 4.25f * d[3];
    const vec e = d[6] + 0.25f * d[2] - 1.25f * d[4], o = 0.5f * d[1] - 2.5f * d[3] + 2.0f * d[5];
    const vec f = d[6] + 4.0f * d[2] - 5.0f * d[4], q = 2.0f * d[1] - 2.5f * d[3] + 0.5f * d[5];
    t[0] = d[0] - d[6] + 5.25f * (d[4] - d[2]);
    t[1] = a + b;
    t[2] = a - b;
    t[3] = e + o;
    t[4] = e - o;
    t[5] = f + q;
    t[6] = f - q;
    t[7] = d[7] - d[1] + 5.25f * (d[3] - d[5]);
}

/* G g, for n = WINDOW or OUT elements */
DEVICE void wino_w(const int n, const vec g[WINDOW], vec t[IN])
{
    const vec g4 = n == WINDOW ? g[4] : (vec)0;
    const vec even1 = g[0] + g[2] + g4, odd1 = g[1] + g[3];
    const vec even2 = g[0] + 4.0f * g[2] + 16.0f * g4, odd2 = 2.0f * g[1] + 8.0f * g[3];
    const vec even3 = g[0] + 0.25f * g[2] + 0.0625f * g4, odd3 = 0.5f * g[1] + 0.125f * g[3];
    t[0] = g[0];
    t[1] = (-2.0f / 9) * (even1 + odd1);
    t[2] = (-2.0f / 9) * (even1 - odd1);
    t[3] = (1.0f / 90) * (even2 + odd2);
    t[4] = (1.0f / 90) * (even2 - odd2);
    t[5] = (32.0f / 45) * (even3 + odd3);
    t[6] = (32.0f / 45) * (even3 - odd3);
    t[7] = g[n - 1];
}

/* A^T m, n = OUT or WINDOW elements */
DEVICE void wino_y(const int n, const vec m[IN], vec y[WINDOW])
{
    const vec s1 = m[1] + m[2], d1 = m[1] - m[2], s2 = m[3] + m[4], d2 = m[3] - m[4];
    const vec s3 = m[5] + m[6], d3 = m[5] - m[6];
    y[0] = m[0] + s1 + s2 + s3;
    y[1] = d1 + 2.0f * d2 + 0.5f * d3;
    y[2] = s1 + 4.0f * s2 + 0.25f * s3;
    y[3] = d1 + 8.0f * d2 + 0.125f * d3;
    if (n == WINDOW)
        y[4] = s1 + 16.0f * s2 + 0.0625f * s3;
    y[n - 1] += m[7];
}

/* The second dimension of a transform, and its result, whose points are `slot` apart. partly[j] is
 * column j after the first dimension. */
#define PUT_TRANSFORM(SIDE, WINO, to, slot)                                                        \
    for (int i = 0; i < IN; i++) {                                                                 \
        vec d[IN], t[IN];                                                                          \
        UNROLL for (int j = 0; j < SIDE; j++) d[j] = partly[j][i];                        \
        WINO;                                                                                      \
        UNROLL for (int j = 0; j < IN; j++) STORES(t[j], (to) + (long)(i * IN + j) * (slot)); \
    }

/* Transforms tiles of images: those of x have IN by IN pixels, those of dy have OUT by OUT. */
#define TILES(name, SIDE, WINO)                                                                    \
    KERNEL name(TENSOR(x), TENSOR(to), const grid g)                                               \
    {                                                                                              \
        const int parts = g.depth / LANES;                                                         \
        EACH_ROW(r, (long)g.tiles * parts)                                                         \
        {                                                                                          \
            const int tile = (int)(r / parts), channel = (int)(r - (long)tile * parts) * LANES;    \
            const int at = g.first + tile, line = at / g.across, n = line / g.down;                \
            const int row = (line - n * g.down) * OUT - g.before[0];                               \
            const int col = (at - line * g.across) * OUT - g.before[1];                            \
            GLOBAL const float *image =                                                            \
                OF(const float, x) + (long)n * g.rows * g.columns * g.depth + channel;             \
            GLOBAL float *to = OF(float, to) + place_of(&g, tile, channel);                        \
            vec partly[SIDE][IN];                                                                    \
            for (int j = 0; j < SIDE; j++) {                                                       \
                vec d[IN], t[IN];                                                                  \
                const int c = col + j;                                                             \
                const bool in = c >= 0 && c < g.columns;                                           \
                UNROLL for (int i = 0; i < SIDE; i++)                                   \
                {                                                                                  \
                    const int l = row + i;                                                         \
                    d[i] = in && l >= 0 && l < g.rows                                              \
                               ? LOADS(image + ((long)l * g.columns + c) * g.depth)                \
                               : (vec)0;                                                           \
                }                                                                                  \
                WINO;                                                                              \
                UNROLL for (int i = 0; i < IN; i++) partly[j][i] = t[i];                  \
            }                                                                                      \
            PUT_TRANSFORM(SIDE, WINO, to, g.slot)                                                  \
        }                                                                                          \
    }
TILES(tiles_x, IN, wino_x(d, t))
TILES(tiles_dy, OUT, wino_w(OUT, d, t))

/* Transforms a filter (row, column, channel, unit) to (point, panel, channel, unit of the panel). */
KERNEL filter(TENSOR(w), TENSOR(to), int channels, int units, int slot, int width)
{
    const int parts = units / LANES;
    EACH_ROW(r, (long)channels * parts)
    {
        const int ch = (int)(r / parts), u = (int)(r - (long)ch * parts) * LANES, panel = u / width;
        GLOBAL const float *w = OF(const float, w) + (long)ch * units + u;
        GLOBAL float *to =
            OF(float, to) + ((long)panel * channels + ch) * width + (u - panel * width);
        vec partly[WINDOW][IN];
        for (int j = 0; j < WINDOW; j++) {
            vec d[IN], t[IN];
            UNROLL for (int i = 0; i < WINDOW; i++) d[i] =
                LOADS(w + (long)(i * WINDOW + j) * channels * units);
            wino_w(WINDOW, d, t);
            UNROLL for (int i = 0; i < IN; i++) partly[j][i] = t[i];
        }
        PUT_TRANSFORM(WINDOW, wino_w(WINDOW, d, t), to, slot)
    }
}

/* y[i][j] = A^T m A of a vector of channels, whose points are `slot` apart. */
#define INVERSE(N, m, slot)                                                                        \
    vec partly[N][IN];                                                                               \
    for (int j = 0; j < IN; j++) {                                                                 \
        vec d[IN], t[WINDOW];                                                                      \
        UNROLL for (int i = 0; i < IN; i++) d[i] = LOADS((m) + (long)(i * IN + j) * (slot)); \
        wino_y(N, d, t);                                                                           \
        UNROLL for (int i = 0; i < N; i++) partly[i][j] = t[i];                           \
    }

#ifdef ACT
#define BIAS_TENSOR , TENSOR(bias)
DEVICE float act(float x)
{
    return ACT(x);
}
#else
#define BIAS_TENSOR
#endif

/* Images from the products of their tiles, (point, tile, channel). */
KERNEL untile(TENSOR(m), TENSOR(y), const grid g BIAS_TENSOR)
{
    const int parts = g.depth / LANES;
    EACH_ROW(r, (long)g.tiles * parts)
    {
        const int tile = (int)(r / parts), channel = (int)(r - (long)tile * parts) * LANES;
        const int at = g.first + tile, line = at / g.across, n = line / g.down;
        const int row = (line - n * g.down) * OUT, col = (at - line * g.across) * OUT;
        GLOBAL const float *m = OF(const float, m) + place_of(&g, tile, channel);
        GLOBAL float *y = OF(float, y) +
                          (((long)n * g.rows + row) * g.columns + col) * g.depth + channel;
        INVERSE(OUT, m, g.slot)
#ifdef ACT
        const vec bias = LOADS(OF(const float, bias) + channel);
#endif
        for (int i = 0; i < OUT && row + i < g.rows; i++) {
            vec t[WINDOW];
            wino_y(OUT, partly[i], t);
#ifdef ACT
            for (int j = 0; j < OUT; j++) {
                t[j] += bias;
                float *one = (float *)&t[j];
                VECTORS for (int l = 0; l < LANES; l++) one[l] = act(one[l]);
            }
#endif
            for (int j = 0; j < OUT && col + j < g.columns; j++)
                STORES(t[j], y + ((long)i * g.columns + j) * g.depth);
        }
    }
}

/* The gradient of a filter from the sums (point, channel, unit). */
KERNEL unfilter(TENSOR(m), TENSOR(dw), int channels, int units, int slot)
{
    const int parts = units / LANES;
    EACH_ROW(r, (long)channels * parts)
    {
        const long at = r * LANES; /* of (channel, unit) */
        GLOBAL float *dw = OF(float, dw) + at;
        INVERSE(WINDOW, OF(const float, m) + at, slot)
        for (int i = 0; i < WINDOW; i++) {
            vec t[WINDOW];
            wino_y(WINDOW, partly[i], t);
            for (int j = 0; j < WINDOW; j++)
                STORES(t[j], dw + (long)(i * WINDOW + j) * channels * units);
        }
    }
}
