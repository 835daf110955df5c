/* fingerprint.h -- hashes of bytes that TensorFlow's files and ops depend on, so they never change.
 */
#ifndef LEAT_CORE_FINGERPRINT_H
#define LEAT_CORE_FINGERPRINT_H

#include <stddef.h>
#include <stdint.h>

uint64_t leat_fingerprint64(const void *bytes, size_t n); /* FarmHash's Fingerprint64 */
uint64_t leat_hash64(const void *bytes, size_t n);        /* TensorFlow's own Hash64 */
uint64_t leat_hash64_with(const void *bytes, size_t n, uint64_t seed); /* with another seed */
uint64_t leat_siphash(const uint64_t key[2], const void *bytes, size_t n); /* SipHash-2-4 */

#endif
