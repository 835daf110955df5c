/* crc32c.c -- three streams of the processor's CRC instruction at a time, because a single stream
 * has a latency of three cycles for each 8 bytes; the three CRCs are combined by tables for the
 * multiplication by x^(8 n) modulo the polynomial. Without the instruction: eight tables, 8 bytes a
 * step. */
#include "io/crc32c.h"

#include <pthread.h>
#include <string.h>

enum { LONG = 4096, SHORT = 256 }; /* bytes of a stream */

static const uint32_t polynomial = 0x82f63b78u; /* bits reflected: the highest is x^0 */

static uint32_t step[8][256]; /* step[k][b]: the CRC of byte b followed by k zero bytes */
static uint32_t skip_long[4][256], skip_short[4][256]; /* indexed by a byte of a CRC */
static uint32_t power[64];                             /* x^(8 * 2^i) */
static pthread_once_t once = PTHREAD_ONCE_INIT;

/* a * b modulo the polynomial. */
static uint32_t multiply(uint32_t a, uint32_t b)
{
    uint32_t sum = 0;
    for (uint32_t bit = 0x80000000u; bit; bit >>= 1) {
        if (a & bit)
            sum ^= b;
        b = b & 1 ? b >> 1 ^ polynomial : b >> 1;
    }
    return sum;
}

/* x^(8 n), n in bytes. */
static uint32_t shift(uint64_t n)
{
    uint32_t p = 0x80000000u; /* 1 */
    for (int i = 0; n; i++, n >>= 1)
        if (n & 1)
            p = multiply(p, power[i]);
    return p;
}

static void make_skip(uint32_t table[4][256], uint64_t n)
{
    uint32_t by = shift(n);
    for (int k = 0; k < 4; k++)
        for (uint32_t b = 0; b < 256; b++)
            table[k][b] = multiply(b << 8 * k, by);
}

static void make_tables(void)
{
    for (uint32_t b = 0; b < 256; b++) {
        uint32_t c = b;
        for (int i = 0; i < 8; i++)
            c = c & 1 ? c >> 1 ^ polynomial : c >> 1;
        step[0][b] = c;
    }
    for (int k = 1; k < 8; k++)
        for (int b = 0; b < 256; b++)
            step[k][b] = step[k - 1][b] >> 8 ^ step[0][step[k - 1][b] & 255];
    power[0] = 0x00800000u; /* x^8 */
    for (int i = 1; i < 64; i++)
        power[i] = multiply(power[i - 1], power[i - 1]);
    make_skip(skip_long, LONG);
    make_skip(skip_short, SHORT);
}

uint32_t leat_crc32c_portable(uint32_t crc, const void *bytes, size_t n)
{
    pthread_once(&once, make_tables);
    const unsigned char *p = bytes;
    uint32_t c = ~crc;
    for (; n >= 8; n -= 8, p += 8) {
        c ^= (uint32_t)p[0] | (uint32_t)p[1] << 8 | (uint32_t)p[2] << 16 | (uint32_t)p[3] << 24;
        c = step[7][c & 255] ^ step[6][c >> 8 & 255] ^ step[5][c >> 16 & 255] ^ step[4][c >> 24] ^
            step[3][p[4]] ^ step[2][p[5]] ^ step[1][p[6]] ^ step[0][p[7]];
    }
    for (; n; n--, p++)
        c = c >> 8 ^ step[0][(c ^ *p) & 255];
    return ~c;
}

uint32_t leat_crc32c_join(uint32_t first, uint32_t second, uint64_t n_second)
{
    pthread_once(&once, make_tables);
    return multiply(first, shift(n_second)) ^ second;
}

#if defined(__x86_64__)
static inline uint64_t skip(uint32_t table[4][256], uint64_t c)
{
    return table[0][c & 255] ^ table[1][c >> 8 & 255] ^ table[2][c >> 16 & 255] ^
           table[3][c >> 24 & 255];
}

static inline uint64_t load(const unsigned char *p)
{
    uint64_t v;
    memcpy(&v, p, 8);
    return v;
}

__attribute__((target("sse4.2"))) static uint64_t triple(uint64_t c, const unsigned char *p,
                                                         size_t stream, uint32_t table[4][256])
{
    uint64_t c1 = 0, c2 = 0;
    for (size_t i = 0; i < stream; i += 8) {
        c = __builtin_ia32_crc32di(c, load(p + i));
        c1 = __builtin_ia32_crc32di(c1, load(p + stream + i));
        c2 = __builtin_ia32_crc32di(c2, load(p + 2 * stream + i));
    }
    return skip(table, skip(table, c) ^ c1) ^ c2;
}

__attribute__((target("sse4.2"))) static uint32_t extend_sse42(uint32_t crc, const void *bytes,
                                                               size_t n)
{
    const unsigned char *p = bytes;
    uint64_t c = ~crc;
    for (; n >= 3 * LONG; n -= 3 * LONG, p += 3 * LONG)
        c = triple(c, p, LONG, skip_long);
    for (; n >= 3 * SHORT; n -= 3 * SHORT, p += 3 * SHORT)
        c = triple(c, p, SHORT, skip_short);
    for (; n >= 8; n -= 8, p += 8)
        c = __builtin_ia32_crc32di(c, load(p));
    for (; n; n--, p++)
        c = __builtin_ia32_crc32qi((uint32_t)c, *p);
    return ~(uint32_t)c;
}
#endif

uint32_t leat_crc32c_extend(uint32_t crc, const void *bytes, size_t n)
{
#if defined(__x86_64__)
    if (__builtin_cpu_supports("sse4.2")) {
        pthread_once(&once, make_tables);
        return extend_sse42(crc, bytes, n);
    }
#endif
    return leat_crc32c_portable(crc, bytes, n);
}
