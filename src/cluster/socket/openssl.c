/* openssl.c -- see openssl.h. */
#include "cluster/socket/openssl.h"

#include <pthread.h>

#include "core/library.h"

leat_openssl_functions leat_openssl;

static pthread_once_t once = PTHREAD_ONCE_INIT;
static leat_status failure; /* Why the library could not be used; NULL if it was loaded. */

static void load(void)
{
    const leat_library_function functions[] = {
#define X(name) {#name, &name}, /* The name is a macro: see openssl.h. */
#include "cluster/socket/openssl.inc"
#undef X
    };
    void *library;
    failure = leat_library_load(LEAT_OPENSSL_SONAME, functions,
                                sizeof functions / sizeof *functions, &library);
    if (!failure)
        leat_library_keep_openssl(library);
}

leat_status leat_openssl_load(void)
{
    pthread_once(&once, load);
    LEAT_REQUIRE(!failure, NOT_FOUND,
                 "TLS needs OpenSSL, which cannot be loaded (%s): install the Debian "
                 "package " LEAT_OPENSSL_PACKAGE " or another with " LEAT_OPENSSL_SONAME,
                 leat_status_message(failure));
    return NULL;
}
