/* gemm.cl -- products of matrices, C = A B, also those that convolutions and their gradients are.
 *
 * Element (i, k) of A is at rows(i) + parts(s) + l * by, where k = s * len + l: rows and parts are
 * numbers of up to three digits, each with its stride. So a row may be a matrix's row or column,
 * or the window around a pixel of an image, none of which is copied.
 *
 * B is copied first, to panels of WIDTH columns: (panel, k, column), with zeros behind the last
 * column. On a CPU a work item computes tiles of MR rows and a panel's columns, held in registers;
 * MR, VW (the vector's width) and NV (vectors in a panel) are options. On a GPU a group computes a
 * tile of TILE by TILE, whose operands it shares in local memory.
 */
typedef struct digits {
    int dim1, dim2; /* sizes of the last two digits */
    int stride[3];
} digits;

typedef struct left {
    digits rows, parts;
    int len, by;
} left;

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
enum { TILE = 64, DEPTH = 16, PER = 4, WIDTH = TILE };
#endif

/* Element (k, j) of B is at k * down + j * right. */
KERNEL pack(TENSOR(b), TENSOR(to), int down, int right, int depth, int n)
{
    GLOBAL const float *b = OF(const float, b);
    GLOBAL float *to = OF(float, to);
    const int panels = (n + WIDTH - 1) / WIDTH;
    EACH_ROW(r, (long)panels * depth)
    {
        const int p = (int)(r / depth), k = (int)(r - (long)p * depth);
        GLOBAL const float *x = b + (long)k * down + (long)p * WIDTH * right;
        GLOBAL float *y = to + r * WIDTH;
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

#ifdef LEAT_ON_CPU
/* Parts [s0, s1) and elements [l0, l1) of each of them are added to tile (tile, panel) of C. */
DEVICE void multiply(GLOBAL const float *a, const left *w, GLOBAL const float *b, GLOBAL float *c,
                     int ldc, int i0, int m, int j0, int n, int s0, int s1, int l0, int l1,
                     bool first)
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
    if (i0 + MR <= m && j0 + WIDTH <= n) {
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
    const int rows = min((int)MR, m - i0), columns = min((int)WIDTH, n - j0);
    for (int r = 0; r < rows; r++)
        for (int j = 0; j < columns; j++)
            to[(long)r * ldc + j] = first ? edge[r][j] : edge[r][j] + to[(long)r * ldc + j];
}

/* Depth is cut into blocks of about this many, so that a block of a panel stays in the cache. */
#ifndef BLOCK
#define BLOCK 512
#endif

KERNEL gemm(TENSOR(a), TENSOR(b), TENSOR(c), const left w, int m, int n, int parts, int ldc,
            int clear)
{
    const int tiles = (m + MR - 1) / MR, depth = parts * w.len;
    const int first = (int)run_begin(tiles), last = (int)run_end(tiles);
    const int some = w.len >= BLOCK ? 1 : BLOCK / w.len, most = w.len > BLOCK ? BLOCK : w.len;
    for (int s = 0; s < parts; s += some)
        for (int l = 0; l < w.len; l += most)
            for (int j = 0; j < n; j += WIDTH)
                for (int t = first; t < last; t++)
                    multiply(OF(const float, a), &w, OF(const float, b) + (long)j * depth,
                             OF(float, c), ldc, t * MR, m, j, n, s, min(s + some, parts), l,
                             min(l + most, w.len), clear && s == 0 && l == 0);
}
#else
KERNEL gemm(TENSOR(a), TENSOR(b), TENSOR(c), const left w, int m, int n, int parts, int ldc,
            int clear)
{
    LOCAL float left_tile[DEPTH][TILE], right_tile[DEPTH][TILE];
    const int x = ITEM(0), y = ITEM(1), me = y * 16 + x, j0 = GROUP(0) * TILE, i0 = GROUP(1) * TILE;
    const int depth = parts * w.len;
    GLOBAL const float *a = OF(const float, a), *b = OF(const float, b) + (long)j0 * depth;
    GLOBAL float *c = OF(float, c);
    const long row = place_of(&w.rows, min(i0 + me % TILE, m - 1));
    float sum[PER][PER];
    for (int r = 0; r < PER; r++)
        for (int v = 0; v < PER; v++)
            sum[r][v] = 0;
    for (int k0 = 0; k0 < depth; k0 += DEPTH) {
        for (int d = me / TILE; d < DEPTH; d += 256 / TILE) {
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
                    sum[r][v] = fma(left_tile[d][y + r * 16], right_tile[d][x + v * 16], sum[r][v]);
        BARRIER;
    }
    for (int r = 0; r < PER; r++)
        for (int v = 0; v < PER; v++) {
            const int i = i0 + y + r * 16, j = j0 + x + v * 16;
            if (i < m && j < n)
                c[(long)i * ldc + j] = clear ? sum[r][v] : sum[r][v] + c[(long)i * ldc + j];
        }
}
#endif
