/* futex_waitv_test.c -- what futex_waitv.h defines where the system's headers are old is what newer
 * ones define. */
#include <linux/futex.h>
#include <stddef.h>
#include <sys/syscall.h>

#if defined(FUTEX_32) && defined(SYS_futex_waitv)
#define KNOWN 1
enum { NUMBER = SYS_futex_waitv, SIZE = sizeof(struct futex_waitv), BITS_32 = FUTEX_32 };
enum {
    ADDRESS_AT = offsetof(struct futex_waitv, uaddr),
    FLAGS_AT = offsetof(struct futex_waitv, flags)
};
#endif
#undef FUTEX_32
#undef SYS_futex_waitv
#define futex_waitv futex_waitv_of_ours
#include "core/futex_waitv.h"
#include "test.h"

static void same(void)
{
#ifdef KNOWN
    CHECK_INT(SYS_futex_waitv, NUMBER);
    CHECK_INT(FUTEX_32, BITS_32);
    CHECK_INT(sizeof(struct futex_waitv), SIZE);
    CHECK_INT(offsetof(struct futex_waitv, uaddr), ADDRESS_AT);
    CHECK_INT(offsetof(struct futex_waitv, flags), FLAGS_AT);
#else
    SKIP("this system's headers are too old to compare with");
#endif
}

int main(int argc, char **argv)
{
    return RUN(argc, argv, {"same", same});
}
