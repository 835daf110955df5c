/* md5.c -- see md5.h. Names are those of RFC 1321. */
#include "core/md5.h"

#include <math.h>
#include <string.h>

static uint32_t rotate(uint32_t x, int by)
{
    return x << by | x >> (32 - by);
}

/* One block of 64 bytes. */
static void transform(uint32_t state[4], const uint8_t *block)
{
    static const int shifts[4][4] = {
        {7, 12, 17, 22}, {5, 9, 14, 20}, {4, 11, 16, 23}, {6, 10, 15, 21}};
    uint32_t a = state[0], b = state[1], c = state[2], d = state[3], x[16];
    for (int i = 0; i < 16; i++)
        x[i] = (uint32_t)block[4 * i] | (uint32_t)block[4 * i + 1] << 8 |
               (uint32_t)block[4 * i + 2] << 16 | (uint32_t)block[4 * i + 3] << 24;
    for (int i = 0; i < 64; i++) {
        int round = i / 16, k = round == 0   ? i
                                : round == 1 ? 5 * i + 1
                                : round == 2 ? 3 * i + 5
                                             : 7 * i;
        uint32_t f = round == 0   ? (b & c) | (~b & d)
                     : round == 1 ? (d & b) | (~d & c)
                     : round == 2 ? b ^ c ^ d
                                  : c ^ (b | ~d);
        uint32_t t = (uint32_t)(int64_t)floor(fabs(sin(i + 1)) * 4294967296.0);
        uint32_t next = b + rotate(a + f + t + x[k % 16], shifts[round][i % 4]);
        a = d;
        d = c;
        c = b;
        b = next;
    }
    state[0] += a;
    state[1] += b;
    state[2] += c;
    state[3] += d;
}

void leat_md5(const void *bytes, size_t n, uint8_t digest_out[16])
{
    uint32_t state[4] = {0x67452301u, 0xefcdab89u, 0x98badcfeu, 0x10325476u};
    const uint8_t *p = bytes;
    size_t left = n;
    for (; left >= 64; left -= 64, p += 64)
        transform(state, p);
    uint8_t last[128] = {0}; /* the remaining bytes, a one bit, zeros, the number of bits */
    if (left)
        memcpy(last, p, left);
    last[left] = 0x80;
    size_t size = left < 56 ? 64 : 128;
    for (int i = 0; i < 8; i++)
        last[size - 8 + (size_t)i] = (uint8_t)((uint64_t)n * 8 >> 8 * i);
    for (size_t at = 0; at < size; at += 64)
        transform(state, last + at);
    for (int i = 0; i < 16; i++)
        digest_out[i] = (uint8_t)(state[i / 4] >> 8 * (i % 4));
}
