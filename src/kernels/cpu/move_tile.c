/* move_tile.c -- the transpose of a matrix, tile by tile: whole cache lines are read and written,
 * and tiles of 8x8 (4 bytes) and 4x4 (8 bytes) are transposed in registers. */
#include "kernels/cpu/move.h"

typedef uint32_t v8 __attribute__((vector_size(32)));
typedef uint64_t v4 __attribute__((vector_size(32)));

#define SHUFFLE __builtin_shufflevector

static inline void turn_8x8(leat_m4 *restrict to, int64_t ts, const leat_m4 *restrict from,
                            int64_t fs)
{
    v8 r[8], s[8];
    for (int i = 0; i < 8; i++)
        memcpy(&r[i], from + i * fs, sizeof r[i]);
    for (int i = 0; i < 8; i += 2) { /* pairs of rows: a0 b0 a1 b1 | a4 b4 a5 b5 */
        s[i] = SHUFFLE(r[i], r[i + 1], 0, 8, 1, 9, 4, 12, 5, 13);
        s[i + 1] = SHUFFLE(r[i], r[i + 1], 2, 10, 3, 11, 6, 14, 7, 15);
    }
    for (int i = 0; i < 8; i += 4) { /* fours: a0 b0 c0 d0 | a4 b4 c4 d4 */
        r[i] = SHUFFLE(s[i], s[i + 2], 0, 1, 8, 9, 4, 5, 12, 13);
        r[i + 1] = SHUFFLE(s[i], s[i + 2], 2, 3, 10, 11, 6, 7, 14, 15);
        r[i + 2] = SHUFFLE(s[i + 1], s[i + 3], 0, 1, 8, 9, 4, 5, 12, 13);
        r[i + 3] = SHUFFLE(s[i + 1], s[i + 3], 2, 3, 10, 11, 6, 7, 14, 15);
    }
    for (int i = 0; i < 4; i++) {
        s[i] = SHUFFLE(r[i], r[i + 4], 0, 1, 2, 3, 8, 9, 10, 11);
        s[i + 4] = SHUFFLE(r[i], r[i + 4], 4, 5, 6, 7, 12, 13, 14, 15);
    }
    for (int i = 0; i < 8; i++)
        memcpy(to + i * ts, &s[i], sizeof s[i]);
}

static inline void turn_4x4(leat_m8 *restrict to, int64_t ts, const leat_m8 *restrict from,
                            int64_t fs)
{
    v4 r[4], s[4];
    for (int i = 0; i < 4; i++)
        memcpy(&r[i], from + i * fs, sizeof r[i]);
    for (int i = 0; i < 4; i += 2) {
        s[i] = SHUFFLE(r[i], r[i + 1], 0, 4, 2, 6);
        s[i + 1] = SHUFFLE(r[i], r[i + 1], 1, 5, 3, 7);
    }
    for (int i = 0; i < 2; i++) {
        r[i] = SHUFFLE(s[i], s[i + 2], 0, 1, 4, 5);
        r[i + 2] = SHUFFLE(s[i], s[i + 2], 2, 3, 6, 7);
    }
    for (int i = 0; i < 4; i++)
        memcpy(to + i * ts, &r[i], sizeof r[i]);
}

#define EDGES(T)                                                                                   \
    static void edge_##T(T *restrict to, int64_t ts, const T *restrict from, int64_t fs,           \
                         int64_t rows, int64_t cols)                                               \
    {                                                                                              \
        for (int64_t a = 0; a < rows; a++)                                                         \
            for (int64_t b = 0; b < cols; b++)                                                     \
                to[a * ts + b] = from[b * fs + a];                                                 \
    }
EDGES(leat_m1)
EDGES(leat_m2)
EDGES(leat_m4)
EDGES(leat_m8)
EDGES(leat_m16)

/* Goes down strips of the source that are a cache line wide; N is the side of a tile. */
#define CROSSED(T, N, turn)                                                                        \
    static void crossed_##T(T *to, int64_t ts, const T *from, int64_t fs, int64_t rows,            \
                            int64_t cols)                                                          \
    {                                                                                              \
        int64_t strip = 64 / (int64_t)sizeof(T);                                                   \
        for (int64_t a0 = 0; a0 < rows; a0 += strip) {                                             \
            int64_t a_end = a0 + strip < rows ? a0 + strip : rows;                                 \
            for (int64_t b = 0; b < cols; b += N)                                                  \
                for (int64_t a = a0; a < a_end; a += N) {                                          \
                    int64_t na = a_end - a < N ? a_end - a : N, nb = cols - b < N ? cols - b : N;  \
                    if (na == N && nb == N)                                                        \
                        turn(to + a * ts + b, ts, from + b * fs + a, fs);                          \
                    else                                                                           \
                        edge_##T(to + a * ts + b, ts, from + b * fs + a, fs, na, nb);              \
                }                                                                                  \
        }                                                                                          \
    }
#define WHOLE(T, N)                                                                                \
    static inline void whole_##T(T *to, int64_t ts, const T *from, int64_t fs)                     \
    {                                                                                              \
        edge_##T(to, ts, from, fs, N, N);                                                          \
    }
WHOLE(leat_m1, 16)
WHOLE(leat_m2, 16)
WHOLE(leat_m16, 4)
CROSSED(leat_m1, 16, whole_leat_m1)
CROSSED(leat_m2, 16, whole_leat_m2)
CROSSED(leat_m4, 8, turn_8x8)
CROSSED(leat_m8, 4, turn_4x4)
CROSSED(leat_m16, 4, whole_leat_m16)

void leat_move_crossed(size_t size, void *to, int64_t ts, const void *from, int64_t fs,
                       int64_t rows, int64_t cols)
{
    switch (size) {
    case 1:
        crossed_leat_m1(to, ts, from, fs, rows, cols);
        break;
    case 2:
        crossed_leat_m2(to, ts, from, fs, rows, cols);
        break;
    case 4:
        crossed_leat_m4(to, ts, from, fs, rows, cols);
        break;
    case 8:
        crossed_leat_m8(to, ts, from, fs, rows, cols);
        break;
    default:
        crossed_leat_m16(to, ts, from, fs, rows, cols);
    }
}
