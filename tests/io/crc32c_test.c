/* crc32c_test.c -- the checksum, both ways of taking it, and Snappy. */
#include "io/crc32c.h"

#include "io/snappy.h"
#include "test.h"

static void known(void)
{
    unsigned char zeros[32] = {0}, ones[32], up[32];
    memset(ones, 255, 32);
    for (int i = 0; i < 32; i++)
        up[i] = (unsigned char)i;
    CHECK_INT(leat_crc32c(zeros, 32), 0x8a9136aa); /* RFC 3720, B.4 */
    CHECK_INT(leat_crc32c(ones, 32), 0x62a8ab43);
    CHECK_INT(leat_crc32c(up, 32), 0x46dd794e);
    CHECK_INT(leat_crc32c("123456789", 9), 0xe3069283);
    CHECK_INT(leat_crc32c("", 0), 0);
    CHECK_INT(leat_crc32c_unmask(leat_crc32c_mask(0x12345678)), 0x12345678);
}

static void alike(void)
{
    static unsigned char bytes[50000];
    uint32_t x = 1;
    for (size_t i = 0; i < sizeof(bytes); i++)
        bytes[i] = (unsigned char)((x = x * 1664525 + 1013904223) >> 24);
    for (size_t n = 0; n < sizeof(bytes); n = n * 5 / 4 + 1) {
        size_t at = n % 13;
        if (at + n > sizeof(bytes))
            break;
        uint32_t want = leat_crc32c_portable(7, bytes + at, n);
        CHECK_INT(leat_crc32c_extend(7, bytes + at, n), want);
        size_t first = n / 3;
        uint32_t a = leat_crc32c_extend(7, bytes + at, first);
        uint32_t b = leat_crc32c(bytes + at + first, n - first);
        CHECK_INT(leat_crc32c_join(a, b, n - first), want);
        CHECK_INT(leat_crc32c_extend(a, bytes + at + first, n - first), want);
    }
}

static void snappy(void)
{
    /* "abcabcabcabcX" and 70 of 'y': literals, a copy that overlaps itself, and a long one */
    static const unsigned char stream[] = {83, 2 << 2, 'a',         'b', 'c', 5 << 2 | 1, 3, 0, 'X',
                                           0,  'y',    63 << 2 | 2, 1,   0,   4 << 2 | 3, 1, 0, 0,
                                           0};
    char out[83], want[84];
    snprintf(want, sizeof(want), "abcabcabcabcX%070d", 0);
    memset(want + 13, 'y', 70);
    size_t n;
    CHECK(leat_snappy_size(stream, sizeof(stream), &n));
    CHECK_INT(n, 83);
    CHECK(leat_snappy_decode(stream, sizeof(stream), out, 83));
    CHECK(memcmp(out, want, 83) == 0);
    for (size_t cut = 0; cut < sizeof(stream); cut++)
        CHECK(!leat_snappy_decode(stream, cut, out, 83));
    static const unsigned char before[] = {4, 0, 'a', 1, 2}; /* a copy of what was before it */
    CHECK(!leat_snappy_decode(before, sizeof(before), out, 4));
    CHECK(!leat_snappy_decode(stream, sizeof(stream), out, 82));
}

int main(int argc, char **argv)
{
    return RUN(argc, argv, {"known", known}, {"alike", alike}, {"snappy", snappy});
}
