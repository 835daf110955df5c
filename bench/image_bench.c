/* image_bench.c -- how fast images are decoded, for Leat; bench/images calls this program and
 * bench/peers/tensorflow_images.py in turn.
 *
 *     image_bench make HEIGHT WIDTH FILE    draws an image and writes it as JPEG, quality 90
 *     image_bench decode FILE SECONDS       images of DecodeJpeg, fed with the file's bytes, for
 *                                           each second that a processor works for the program
 */
#include <leat/leat.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

/* Time of all threads, so that others on the machine do not count. */
static double now(void)
{
    struct timespec t;
    clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &t);
    return (double)t.tv_sec + (double)t.tv_nsec * 1e-9;
}

/* Smooth surfaces, edges and some noise: about as many bytes a pixel as photos have. */
static int draw(int height, int width, const char *path)
{
    leat_tensor *image;
    void *bytes;
    size_t n;
    LEAT_DIE_ON_ERROR(leat_tensor_new(LEAT_UINT8, leat_shape(height, width, 3), &image));
    uint8_t *p = leat_tensor_mutable(image);
    uint32_t random = 123456789;
    for (int y = 0; y < height; y++)
        for (int x = 0; x < width; x++)
            for (int c = 0; c < 3; c++) {
                random = random * 1664525 + 1013904223;
                const double wave = sin(x / (23.0 + 5 * c)) * cos(y / (31.0 - 4 * c));
                *p++ = (uint8_t)(110 + 60 * wave + ((x / 40 + y / 30) % 3) * 20 + (random >> 27));
            }
    LEAT_DIE_ON_ERROR(leat_image_encode_jpeg(image, 90, &bytes, &n));
    FILE *f = fopen(path, "wb");
    const int ok = f && fwrite(bytes, 1, n, f) == n && fclose(f) == 0;
    printf("bytes %zu\n", n);
    return ok ? 0 : 1;
}

static int decode(const char *path, double seconds)
{
    enum { WARM = 20, ROUND = 16 };
    leat_graph *g = leat_graph_new();
    leat_session *s;
    leat_tensor *file = NULL;
    leat_out x = leat_placeholder(g, LEAT_STRING, leat_shape());
    leat_out image = leat_decode_jpeg(x);
    LEAT_DIE_ON_ERROR(leat_session_open(g, &s));
    LEAT_DIE_ON_ERROR(leat_session_run(
        s, LEAT_NO_FEED, LEAT_FETCH({LEAT_OP1("ReadFile", leat_string_const(g, path)), &file}),
        LEAT_NO_TARGET));
    double start = 0;
    long runs = -WARM;
    for (; runs < ROUND || runs % ROUND || now() - start < seconds; runs++) {
        if (runs == 0)
            start = now();
        LEAT_DIE_ON_ERROR(leat_session_run(s, LEAT_FEED({x, file}), LEAT_NO_FETCH,
                                           LEAT_TARGET(leat_done(image))));
    }
    printf("images_per_cpu_s %.1f\n", (double)runs / (now() - start));
    return 0;
}

int main(int argc, char **argv)
{
    if (argc == 5 && strcmp(argv[1], "make") == 0)
        return draw(atoi(argv[2]), atoi(argv[3]), argv[4]);
    if (argc == 4 && strcmp(argv[1], "decode") == 0)
        return decode(argv[2], atof(argv[3]));
    fprintf(stderr, "usage: image_bench make HEIGHT WIDTH FILE | decode FILE SECONDS\n");
    return 2;
}
