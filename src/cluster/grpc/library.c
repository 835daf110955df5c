/* library.c -- see library.h. */
#include "cluster/grpc/library.h"

#include <pthread.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>

#include "cluster/grpc/tuning.h"
#include "core/library.h"
#include "core/log.h"

leat_grpc_functions leat_grpc;

static pthread_once_t once = PTHREAD_ONCE_INIT;
static leat_status failure; /* Why the library could not be used; NULL if it was loaded. */

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

/* The libraries that libgrpc depends on (libgpr, OpenSSL) are loaded with it. */
static void load(void)
{
    const leat_library_function functions[] = {
#define X(name) {#name, &name}, /* The name is a macro: see library.h. */
#include "cluster/grpc/library.inc"
#undef X
    };
    void *library;
    failure = leat_library_load(LEAT_GRPC_SONAME, functions, sizeof functions / sizeof *functions,
                                &library);
    if (failure)
        return;
    gpr_set_log_function(write_log);
    leat_library_keep_openssl(library);
    leat_tuning_start();
}

leat_status leat_grpc_load(void)
{
    pthread_once(&once, load);
    LEAT_REQUIRE(!failure, NOT_FOUND,
                 "Clusters need gRPC, which cannot be loaded (%s): install the Debian "
                 "package " LEAT_GRPC_PACKAGE " or another with " LEAT_GRPC_SONAME,
                 leat_status_message(failure));
    return check_poll_strategy();
}
