/* wav.c -- see wav.h. */
#include "io/wav.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

static uint8_t *put(uint8_t *p, uint32_t v, int bytes)
{
    for (int i = 0; i < bytes; i++)
        *p++ = (uint8_t)(v >> 8 * i);
    return p;
}

static uint8_t *put_name(uint8_t *p, const char *name)
{
    memcpy(p, name, 4);
    return p + 4;
}

leat_status leat_wav_encode(const float *samples, int64_t rate, int64_t channels, int64_t frames,
                            void **bytes_out, size_t *size_out)
{
    enum { HEADER = 44, SAMPLE = 2, PCM = 1 };
    LEAT_REQUIRE(rate > 0 && rate <= UINT32_MAX, INVALID_ARGUMENT,
                 "sample_rate must be in (0, 2^32), got: %lld", (long long)rate);
    LEAT_REQUIRE(channels > 0 && channels <= UINT16_MAX, INVALID_ARGUMENT,
                 "num_channels must be in (0, 2^16), got: %lld", (long long)channels);
    LEAT_REQUIRE(frames > 0, INVALID_ARGUMENT, "num_frames must be positive.");
    LEAT_REQUIRE(frames <= (UINT32_MAX - HEADER) / (SAMPLE * channels), INVALID_ARGUMENT,
                 "Provided channels and frames cannot be encoded as a WAV.");
    const size_t data = (size_t)(SAMPLE * channels * frames), size = HEADER + data;
    uint8_t *bytes = malloc(size), *p = bytes;
    LEAT_REQUIRE(bytes, RESOURCE_EXHAUSTED, "no memory for a WAV file of %zu bytes", size);
    p = put(put_name(p, "RIFF"), (uint32_t)(size - 8), 4);
    p = put(put_name(put_name(p, "WAVE"), "fmt "), 16, 4);
    p = put(put(p, PCM, 2), (uint32_t)channels, 2);
    p = put(p, (uint32_t)rate, 4);
    p = put(p, (uint32_t)(rate * SAMPLE * channels), 4);
    p = put(put(p, (uint32_t)(SAMPLE * channels), 2), 8 * SAMPLE, 2);
    p = put(put_name(p, "data"), (uint32_t)data, 4);
    for (int64_t i = 0; i < channels * frames; i++) {
        const float v = roundf(samples[i] * 32768.0f);
        const int sample = v >= INT16_MAX ? INT16_MAX : v > INT16_MIN ? (int)v : INT16_MIN;
        p = put(p, (uint32_t)sample, SAMPLE);
    }
    *bytes_out = bytes;
    *size_out = size;
    return NULL;
}
