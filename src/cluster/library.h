/* library.h -- functions of a shared library that is loaded when it is first needed, so that
 * programs that do not need it neither have nor load it. */
#ifndef LEAT_CLUSTER_LIBRARY_H
#define LEAT_CLUSTER_LIBRARY_H

#include <leat/status.h>
#include <stddef.h>

typedef struct leat_library_function {
    const char *name;
    void *to; /* the pointer to a function that is set */
} leat_library_function;

/* Loads the library and sets all functions, which may also be of libraries that it depends on.
 * NOT_FOUND if it, or one of them, is not there. It is never unloaded. */
leat_status leat_library_load(const char *soname, const leat_library_function *functions, size_t n,
                              void **library_out) LEAT_MUST_CHECK;

/* When a process exits, OpenSSL frees all that it holds, by a function that it gave to atexit. A
 * thread that is in the middle of a TLS handshake then crashes. The first use of OpenSSL in a
 * process may say that nothing is to be freed at exit, when the memory goes anyway: this is that
 * use. library depends on OpenSSL or is a part of it; if neither, nothing is done. */
void leat_library_keep_openssl(void *library);

#endif
