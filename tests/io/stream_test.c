/* stream_test.c -- the window of a stream: leat_stream_extend adds what the system has in its
 * cache, keeps what was there, and reads no byte twice. */
#include "io/stream.h"

#include <stdio.h>
#include <unistd.h>

#include "test.h"

enum { SIZE = 700 * 1000 };

static unsigned char byte(size_t i)
{
    return (unsigned char)(i * 2654435761u >> 24);
}

static void extend(void)
{
    char path[128];
    snprintf(path, sizeof(path), "/tmp/leat_stream_%d", (int)getpid());
    FILE *f = fopen(path, "wb");
    CHECK(f);
    for (size_t i = 0; i < SIZE; i++)
        fputc(byte(i), f);
    fclose(f);
    leat_stream *s;
    const unsigned char *p;
    CHECK_OK(leat_stream_open(path, LEAT_RECORD_PLAIN, &s));
    CHECK_INT(leat_stream_window(s, &p), 0);
    size_t at = 0;
    bool extended = false;
    while (at < SIZE) {
        const size_t before = leat_stream_window(s, &p);
        const bool more = leat_stream_extend(s);
        size_t n = leat_stream_window(s, &p);
        extended |= more;
        CHECK(more ? n > before : n == before);
        if (!n)
            CHECK_OK(leat_stream_peek(s, &p, &n)); /* The system has dropped the file. */
        for (size_t i = 0; i < n; i++)
            if (p[i] != byte(at + i))
                CHECK_INT(p[i], byte(at + i));
        const size_t step = n > 1000 ? n - 7 : n; /* The rest is moved to the window's beginning. */
        leat_stream_advance(s, step);
        at += step;
    }
    CHECK(extended); /* The file has just been written. */
    CHECK_INT(at, SIZE);
    CHECK(!leat_stream_extend(s));
    leat_stream_close(s);
    unlink(path);

    const unsigned char few[] = {1, 2, 3};
    CHECK_OK(leat_stream_over(few, sizeof(few), LEAT_RECORD_PLAIN, &s));
    CHECK(!leat_stream_extend(s)); /* There is no file. */
    leat_stream_close(s);
}

int main(int argc, char **argv)
{
    return RUN(argc, argv, {"extend", extend});
}
