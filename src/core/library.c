/* library.c -- see library.h. */
#include "core/library.h"

#include <dlfcn.h>
#include <stdint.h>

leat_status leat_library_load(const char *soname, const leat_library_function *functions, size_t n,
                              void **library_out)
{
    void *library = dlopen(soname, RTLD_LAZY | RTLD_LOCAL);
    LEAT_REQUIRE(library, NOT_FOUND, "%s", dlerror());
    for (size_t i = 0; i < n; i++) {
        void *f = dlsym(library, functions[i].name);
        LEAT_REQUIRE(f, NOT_FOUND, "%s", dlerror());
        *(void **)functions[i].to = f;
    }
    *library_out = library;
    return NULL;
}

void leat_library_keep_openssl(void *library)
{
    enum { NO_ATEXIT = 0x80000 }; /* OPENSSL_INIT_NO_ATEXIT */
    int (*init)(uint64_t options, const void *settings);
    *(void **)&init = dlsym(library, "OPENSSL_init_crypto");
    if (init) /* NULL for BoringSSL, which gRPC may use instead and which frees nothing at exit. */
        init(NO_ATEXIT, NULL);
}
