/* library.c -- see library.h. */
#include "cluster/grpc/library.h"

#include <dlfcn.h>
#include <pthread.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>

#include "cluster/grpc/tuning.h"
#include "core/alloc.h"
#include "core/log.h"

leat_grpc_functions leat_grpc;

static pthread_once_t once = PTHREAD_ONCE_INIT;
static char *failure; /* Why the library could not be used; NULL if it was loaded. */

/* gRPC chooses its way of polling by a list of names in this variable, and aborts if it knows none
 * of them. */
static leat_status check_poll_strategy(void)
{
    const char *list = getenv("GRPC_POLL_STRATEGY"), *p = list;
    bool known = !list;
    while (p && !known) {
        size_t n = strcspn(p, ",");
        known = (n == 6 && strncmp(p, "epoll1", n) == 0) ||
                (n == 4 && strncmp(p, "poll", n) == 0) || (n == 3 && strncmp(p, "all", n) == 0);
        p = p[n] ? p + n + 1 : NULL;
    }
    LEAT_REQUIRE(
        known, INVALID_ARGUMENT,
        "The environment variable GRPC_POLL_STRATEGY is \"%s\", which gRPC would abort on: "
        "unset it, or set it to epoll1, poll or all",
        list);
    return NULL;
}

static void write_log(gpr_log_func_args *args)
{
    if (leat_log_wanted(LEAT_LOG_INFO))
        leat_log_write(LEAT_LOG_INFO, args->file, args->line, "gRPC: %s", args->message);
}

/* When a process exits, OpenSSL frees all that it holds, by a function that it gave to atexit. A
 * thread of gRPC that is in the middle of a TLS handshake then crashes. The first use of OpenSSL in
 * a process may say that nothing is to be freed at exit, when the memory goes anyway. */
static void keep_openssl(void *library)
{
    enum { NO_ATEXIT = 0x80000 }; /* OPENSSL_INIT_NO_ATEXIT */
    int (*init)(uint64_t options, const void *settings);
    *(void **)&init = dlsym(library, "OPENSSL_init_crypto");
    if (init) /* BoringSSL, with which gRPC may also be built, frees nothing at exit. */
        init(NO_ATEXIT, NULL);
}

/* dlopen also loads the libraries that libgrpc depends on (libgpr, OpenSSL), and dlsym finds their
 * functions. */
static void load(void)
{
    void *library = dlopen(LEAT_GRPC_SONAME, RTLD_LAZY | RTLD_LOCAL);
    if (!library) {
        failure = leat_xstrdup(dlerror());
        return;
    }
    const struct {
        const char *name;
        void *to; /* a member of leat_grpc */
    } functions[] = {
#define X(name) {#name, &name}, /* The name is a macro: see library.h. */
#include "cluster/grpc/library.inc"
#undef X
    };
    for (size_t i = 0; i < sizeof functions / sizeof *functions; i++) {
        void *f = dlsym(library, functions[i].name);
        if (!f) {
            failure = leat_xstrdup(dlerror());
            return;
        }
        *(void **)functions[i].to = f;
    }
    gpr_set_log_function(write_log);
    keep_openssl(library);
    leat_tuning_start();
}

leat_status leat_grpc_load(void)
{
    pthread_once(&once, load);
    LEAT_REQUIRE(!failure, NOT_FOUND,
                 "Clusters need gRPC, which cannot be loaded (%s): install the Debian "
                 "package " LEAT_GRPC_PACKAGE " or another with " LEAT_GRPC_SONAME,
                 failure);
    return check_poll_strategy();
}
