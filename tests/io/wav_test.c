/* wav_test.c -- WAV files: samples as 16 bits, and what cannot be encoded. */
#include "io/wav.h"

#include "test.h"

static void wav(void)
{
    static const float samples[] = {0, 0.5f, -0.5f, 1, -1, 7};
    static const int16_t want[] = {0, 16384, -16384, 32767, -32768, 32767};
    void *bytes = NULL;
    size_t n = 0;
    CHECK_OK(leat_wav_encode(samples, 8000, 2, 3, &bytes, &n));
    CHECK_INT(n, 44 + 12);
    CHECK(memcmp((char *)bytes + 44, want, 12) == 0);
    free(bytes);
    CHECK_ERROR(leat_wav_encode(samples, 0, 2, 3, &bytes, &n), INVALID_ARGUMENT, "sample_rate");
    CHECK_ERROR(leat_wav_encode(samples, 8, 0, 3, &bytes, &n), INVALID_ARGUMENT, "num_channels");
    CHECK_ERROR(leat_wav_encode(samples, 8, 2, 0, &bytes, &n), INVALID_ARGUMENT, "num_frames");
    CHECK_ERROR(leat_wav_encode(samples, 8, 9, (int64_t)1 << 60, &bytes, &n), INVALID_ARGUMENT,
                "cannot be encoded");
}

int main(int argc, char **argv)
{
    return RUN(argc, argv, {"wav", wav});
}
