/* library.h -- loads a shared library when its functions are first needed, so that programs that
 * never call them run where the library is not installed. */
#ifndef LEAT_CORE_LIBRARY_H
#define LEAT_CORE_LIBRARY_H

#include <leat/status.h>
#include <stddef.h>

typedef struct leat_library_function {
    const char *name;
    void *to; /* Address of the function pointer to set. */
} leat_library_function;

/* Loads the library and sets all function pointers. The functions may also be those of libraries
 * that it depends on. NOT_FOUND if the library or one of the functions is missing. The library is
 * never unloaded. */
leat_status leat_library_load(const char *soname, const leat_library_function *functions, size_t n,
                              void **library_out) LEAT_MUST_CHECK;

/* Makes OpenSSL free nothing when the process exits. By default OpenSSL registers a function with
 * atexit that frees its memory, and a thread that is in the middle of a TLS handshake then crashes.
 * The option takes effect only in the first use of OpenSSL in a process, so call this function
 * before any other use. library is OpenSSL or a library that depends on it; for any other library
 * the function does nothing. */
void leat_library_keep_openssl(void *library);

#endif
