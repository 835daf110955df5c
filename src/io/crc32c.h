/* crc32c.h -- CRC-32C (Castagnoli), the checksum of records, tables and tensors on disk. */
#ifndef LEAT_IO_CRC32C_H
#define LEAT_IO_CRC32C_H

#include <stddef.h>
#include <stdint.h>

/* The CRC of bytes that follow others with the CRC `crc`; 0 if there are none before. */
uint32_t leat_crc32c_extend(uint32_t crc, const void *bytes, size_t n);
static inline uint32_t leat_crc32c(const void *bytes, size_t n)
{
    return leat_crc32c_extend(0, bytes, n);
}
/* The CRC of two adjacent pieces, from the CRC of each and the second's size. */
uint32_t leat_crc32c_join(uint32_t first, uint32_t second, uint64_t n_second);

/* Files hold CRCs in masked form, because the CRC of bytes that contain their own CRC is weak. */
static inline uint32_t leat_crc32c_mask(uint32_t crc)
{
    return (crc >> 15 | crc << 17) + 0xa282ead8u;
}
static inline uint32_t leat_crc32c_unmask(uint32_t masked)
{
    uint32_t r = masked - 0xa282ead8u;
    return r >> 17 | r << 15;
}

/* The form without CRC instructions; for tests, and for processors that have none. */
uint32_t leat_crc32c_portable(uint32_t crc, const void *bytes, size_t n);

#endif
