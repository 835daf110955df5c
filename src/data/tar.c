/* tar.c -- see tar.h. A file is a header of 512 bytes, then its bytes, filled up to a multiple of
 * 512. The archive ends with a header of zeros, or where its bytes end. */
#include "data/tar.h"

#include <string.h>

enum { BLOCK = 512, NAME = 0, NAME_SIZE = 100, SIZE = 124, SIZE_SIZE = 12, SUM = 148, TYPE = 156 };

/* A number in octal digits; false if it is none. */
static bool octal(const char *p, int n, size_t *out)
{
    size_t x = 0;
    int i = 0, digits = 0;
    while (i < n && p[i] == ' ')
        i++;
    for (; i < n && p[i] >= '0' && p[i] <= '7'; i++, digits++)
        x = x * 8 + (size_t)(p[i] - '0');
    *out = x;
    return digits > 0 && (i == n || p[i] == 0 || p[i] == ' ');
}

/* The sum of the header's bytes, in which the sum itself counts as spaces. */
static bool sum_fits(const char *h)
{
    size_t sum = 0, want;
    for (int i = 0; i < BLOCK; i++)
        sum += i >= SUM && i < SUM + 8 ? ' ' : (unsigned char)h[i];
    return octal(h + SUM, 8, &want) && want == sum;
}

static bool all_zero(const char *h)
{
    for (int i = 0; i < BLOCK; i++)
        if (h[i])
            return false;
    return true;
}

leat_status leat_tar_next(leat_tar *t, char name[101], const char **bytes, size_t *n, bool *more)
{
    for (;;) {
        const char *h = t->bytes + t->at;
        *more = false;
        if (t->at == t->n)
            return NULL;
        LEAT_REQUIRE(t->n - t->at >= BLOCK, DATA_LOSS, "The tar archive is cut off at byte %zu",
                     t->n);
        if (all_zero(h))
            return NULL;
        size_t size;
        LEAT_REQUIRE(sum_fits(h) && octal(h + SIZE, SIZE_SIZE, &size), DATA_LOSS,
                     "The tar archive is damaged at byte %zu", t->at);
        LEAT_REQUIRE(size <= t->n - t->at - BLOCK, DATA_LOSS,
                     "The tar archive is cut off: the file at byte %zu has %zu bytes", t->at, size);
        const size_t left = t->n - t->at - BLOCK, padded = (size + BLOCK - 1) / BLOCK * BLOCK;
        t->at += BLOCK + (padded < left ? padded : left);
        if (h[TYPE] != '0' && h[TYPE] != 0)
            continue; /* a directory, or a header of its own kind */
        memcpy(name, h + NAME, NAME_SIZE);
        name[NAME_SIZE] = 0;
        *bytes = h + BLOCK;
        *n = size;
        *more = true;
        return NULL;
    }
}
