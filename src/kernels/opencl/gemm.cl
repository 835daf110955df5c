/* gemm.cl -- products of matrices, C = A B, also those that convolutions and their gradients are.
 *
 * Element (i, k) of A is at rows(i) + parts(s) + l * by, where k = s * len + l: rows and parts are
 * numbers of up to three digits, each with its stride. So a row may be a matrix's row or column,
 * or the window around a pixel of an image, none of which is copied.
 *
 * B is copied first, to panels of WIDTH columns: (panel, k, column), with zeros behind the last
 * column. On a CPU a work item computes tiles of MR rows and a panel's columns, held in registers;
 * MR, VW (the vector's width) and NV (vectors in a panel) are options. On a GPU a group of SIDE by
 * SIDE items computes a tile of TILE by TILE, of which an item has PER by PER elements, and shares
 * the operands in local memory; PER is an option.
 *
 * A launch computes `batch` products, whose matrices are a_step, b_step and c_step elements apart.
 * With the option ACT, a bias is added to the rows of C, and ACT is applied to the sum.
 */
typedef struct digits {
    int dim1, dim2; /* sizes of the last two digits */
    int stride[3];
} digits;

typedef struct left {
    digits rows, parts;
    int len, by;
} left;

typedef struct steps {
    int batch, a, b, c;
} steps;

DEVICE long place_of(const digits *d, int i)
{
    const int q = i / d->dim2, r = i - q * d->dim2, p = q / d->dim1;
    return (long)p * d->stride[0] + (long)(q - p * d->dim1) * d->stride[1] + (long)r * d->stride[2];
}

#define JOIN_(a, b) a##b
#define JOIN(a, b) JOIN_(a, b)
#define VEC JOIN(float, VW)
#define LOAD JOIN(vload, VW)
#define STORE JOIN(vstore, VW)
#ifdef LEAT_ON_CPU
enum { WIDTH = VW * NV };
#else
enum { SIDE = 16, ITEMS = SIDE * SIDE, TILE = SIDE * PER, DEPTH = 16, WIDTH = TILE };
#endif

#ifdef ACT
#define BIAS_TENSOR , TENSOR(bias)
#define BIAS OF(const float, bias)
DEVICE float finished(float x, GLOBAL const float *bias, int j)
{
    const float sum = x + bias[j];
    return ACT(sum);
}
#else
#define BIAS_TENSOR
#define BIAS 0
#define finished(x, bias, j) (x)
#endif

/* Element (k, j) of B is at k * down + j * right. */
KERNEL pack(TENSOR(b), TENSOR(to), int down, int right, int depth, int n, int batch, int step)
{
    const int panels = (n + WIDTH - 1) / WIDTH;
    EACH_ROW(r, (long)batch * panels * depth)
    {
        const int q = (int)(r / depth), k = (int)(r - (long)q * depth), p = q % panels;
        GLOBAL const float *x = OF(const float, b) + (long)(q / panels) * step + (long)k * down +
                                (long)p * WIDTH * right;
        GLOBAL float *y = OF(float, to) + r * WIDTH;
        const int m = min((int)WIDTH, n - p * WIDTH);
        if (right == 1) {
            VECTORS for (int j = 0; j < m; j++) y[j] = x[j];
        } else {
            for (int j = 0; j < m; j++)
                y[j] = x[(long)j * right];
        }
        for (int j = m; j < WIDTH; j++)
            y[j] = 0;
    }
}

#ifdef ACT
/* The bias and ACT, for products of no terms, whose C is zero. */
KERNEL finish(TENSOR(c), TENSOR(bias), int m, int n, int ldc)
{
    EACH_ROW(r, m)
    {
        GLOBAL float *c = OF(float, c) + r * ldc;
        for (int j = 0; j < n; j++)
            c[j] = finished(c[j], BIAS, j);
    }
}
#endif

#ifdef LEAT_ON_CPU
/* Writes a tile that has the bias, or is at an edge of C. */
DEVICE void put_tile(const float edge[MR][WIDTH], GLOBAL float *to, int ldc, int rows, int columns,
                     bool first, bool last, GLOBAL const float *bias)
{
    for (int r = 0; r < rows; r++) {
        GLOBAL float *z = to + (long)r * ldc;
        if (!last) {
            VECTORS for (int j = 0; j < columns; j++) z[j] = first ? edge[r][j] : edge[r][j] + z[j];
        } else {
            VECTORS for (int j = 0; j < columns; j++) z[j] =
                finished(first ? edge[r][j] : edge[r][j] + z[j], bias, j);
        }
    }
}

/* Parts [s0, s1) and elements [l0, l1) of each of them are added to tile (tile, panel) of C, which
 * is complete then if `last`. */
DEVICE void multiply(GLOBAL const float *a, const left *w, GLOBAL const float *b, GLOBAL float *c,
                     int ldc, int i0, int m, int j0, int n, int s0, int s1, int l0, int l1,
                     bool first, bool last, GLOBAL const float *bias)
{
    VEC sum[MR][NV];
    long row[MR];
#pragma unroll
    for (int r = 0; r < MR; r++) {
        row[r] = place_of(&w->rows, min(i0 + r, m - 1));
#pragma unroll
        for (int v = 0; v < NV; v++)
            sum[r][v] = 0;
    }
    const int by = w->by, len = w->len;
    for (int s = s0; s < s1; s++) {
        GLOBAL const float *x = a + place_of(&w->parts, s) + (long)l0 * by;
        GLOBAL const float *y = b + ((long)s * len + l0) * WIDTH;
        for (int l = l0; l < l1; l++) {
            VEC right[NV];
#pragma unroll
            for (int v = 0; v < NV; v++)
                right[v] = LOAD(v, y);
#pragma unroll
            for (int r = 0; r < MR; r++) {
                const float one = x[row[r]];
#pragma unroll
                for (int v = 0; v < NV; v++)
                    sum[r][v] = fma((VEC)one, right[v], sum[r][v]);
            }
            x += by;
            y += WIDTH;
        }
    }
    GLOBAL float *to = c + (long)i0 * ldc + j0;
#ifdef ACT
    const bool plain = !last;
#else
    const bool plain = true;
#endif
    if (plain && i0 + MR <= m && j0 + WIDTH <= n) {
#pragma unroll
        for (int r = 0; r < MR; r++)
#pragma unroll
            for (int v = 0; v < NV; v++) {
                GLOBAL float *z = to + (long)r * ldc + v * VW;
                STORE(first ? sum[r][v] : sum[r][v] + LOAD(0, z), 0, z);
            }
        return;
    }
    float edge[MR][WIDTH];
#pragma unroll
    for (int r = 0; r < MR; r++)
#pragma unroll
        for (int v = 0; v < NV; v++)
            STORE(sum[r][v], v, edge[r]);
    put_tile(edge, to, ldc, min((int)MR, m - i0), min((int)WIDTH, n - j0), first, last, bias + j0);
}

/* Depth is cut into blocks of about this many, so that a block of a panel stays in the cache. */
#ifndef BLOCK
#define BLOCK 512
#endif

/* Tiles [first, last) of rows of one product. */
DEVICE void product(GLOBAL const float *a, GLOBAL const float *b, GLOBAL float *c, const left *w,
                    int first, int last, int m, int n, int parts, int ldc, bool clear,
                    GLOBAL const float *bias)
{
    const int depth = parts * w->len;
    const int some = w->len >= BLOCK ? 1 : BLOCK / w->len, most = w->len > BLOCK ? BLOCK : w->len;
    for (int s = 0; s < parts; s += some)
        for (int l = 0; l < w->len; l += most)
            for (int j = 0; j < n; j += WIDTH)
                for (int t = first; t < last; t++)
                    multiply(a, w, b + (long)j * depth, c, ldc, t * MR, m, j, n, s,
                             min(s + some, parts), l, min(l + most, w->len),
                             clear && s == 0 && l == 0, s + some >= parts && l + most >= w->len,
                             bias);
}

KERNEL gemm(TENSOR(a), TENSOR(b), TENSOR(c), const left w, const steps by, int m, int n, int parts,
            int ldc, int clear BIAS_TENSOR)
{
    const int tiles = (m + MR - 1) / MR;
    const long end = run_end((long)by.batch * tiles);
    for (long t = run_begin((long)by.batch * tiles); t < end;) {
        const long p = t / tiles;
        const int from = (int)(t - p * tiles), to = (int)min((long)tiles, from + (end - t));
        product(OF(const float, a) + p * by.a, OF(const float, b) + p * by.b,
                OF(float, c) + p * by.c, &w, from, to, m, n, parts, ldc, clear, BIAS);
        t += to - from;
    }
}
#else
KERNEL gemm(TENSOR(a), TENSOR(b), TENSOR(c), const left w, const steps by, int m, int n, int parts,
            int ldc, int clear BIAS_TENSOR)
{
    LOCAL float left_tile[DEPTH][TILE], right_tile[DEPTH][TILE];
    const int x = ITEM(0), y = ITEM(1), me = y * SIDE + x, tiles = (m + TILE - 1) / TILE;
    const int p = GROUP(1) / tiles, j0 = GROUP(0) * TILE, i0 = (GROUP(1) - p * tiles) * TILE;
    const int depth = parts * w.len;
    GLOBAL const float *a = OF(const float, a) + (long)p * by.a;
    GLOBAL const float *b = OF(const float, b) + (long)p * by.b + (long)j0 * depth;
    GLOBAL float *c = OF(float, c) + (long)p * by.c;
    const long row = place_of(&w.rows, min(i0 + me % TILE, m - 1));
    float sum[PER][PER];
    for (int r = 0; r < PER; r++)
        for (int v = 0; v < PER; v++)
            sum[r][v] = 0;
    for (int k0 = 0; k0 < depth; k0 += DEPTH) {
        for (int d = me / TILE; d < DEPTH; d += ITEMS / TILE) {
            const int k = k0 + d, s = k / w.len;
            const bool in = k < depth;
            left_tile[d][me % TILE] =
                in ? a[row + place_of(&w.parts, s) + (long)(k - s * w.len) * w.by] : 0;
            right_tile[d][me % TILE] = in ? b[(long)k * WIDTH + me % TILE] : 0;
        }
        BARRIER;
        for (int d = 0; d < DEPTH; d++)
            for (int r = 0; r < PER; r++)
                for (int v = 0; v < PER; v++)
                    sum[r][v] = fma(left_tile[d][y + r * SIDE], right_tile[d][x + v * SIDE], sum[r][v]);
        BARRIER;
    }
    for (int r = 0; r < PER; r++)
        for (int v = 0; v < PER; v++) {
            const int i = i0 + y + r * SIDE, j = j0 + x + v * SIDE;
            if (i >= m || j >= n)
                continue;
            GLOBAL float *z = &c[(long)i * ldc + j];
            *z = finished(clear ? sum[r][v] : sum[r][v] + *z, BIAS, j);
        }
}
#endif
