/* md5.h -- MD5 (RFC 1321); only for numbers that TensorFlow's client derives from it, and for
 * transfers of files whose MD5 sums are published; never for security. */
#ifndef LEAT_CORE_MD5_H
#define LEAT_CORE_MD5_H

#include <stddef.h>
#include <stdint.h>

void leat_md5(const void *bytes, size_t n, uint8_t digest_out[16]);

#endif
