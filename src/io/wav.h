/* wav.h -- writes WAV files of 16-bit samples. */
#ifndef LEAT_IO_WAV_H
#define LEAT_IO_WAV_H

#include <leat/status.h>
#include <stdint.h>

/* Encodes frames of `channels` samples each, from -1 to 1; others are clipped. Gives the bytes of a
 * file; free with free(). */
leat_status leat_wav_encode(const float *samples, int64_t rate, int64_t channels, int64_t frames,
                            void **bytes_out, size_t *size_out) LEAT_MUST_CHECK;

#endif
