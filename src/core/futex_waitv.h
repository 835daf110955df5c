/* futex_waitv.h -- futex_waitv(2), which Linux has since 5.16, for building with the headers of
 * older systems as well (Debian 11 has those of 5.10). A kernel without it answers ENOSYS. */
#ifndef LEAT_CORE_FUTEX_WAITV_H
#define LEAT_CORE_FUTEX_WAITV_H

#include <linux/futex.h>
#include <stdint.h>
#include <sys/syscall.h>

#ifndef SYS_futex_waitv
#define SYS_futex_waitv 449 /* on all architectures */
#endif
#ifndef FUTEX_32
#define FUTEX_32 2
struct futex_waitv {
    uint64_t val, uaddr;
    uint32_t flags, __reserved;
};
#endif

#endif
