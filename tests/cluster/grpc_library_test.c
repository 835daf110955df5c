/* grpc_library_test.c -- gRPC is loaded only by programs that use a cluster; where it cannot be
 * loaded, or Leat was built without clusters, an error says what to do. */
#define _GNU_SOURCE
#include "test.h"

#include <dlfcn.h>
#include <stdio.h>

#include <leat/leat.h>

/* In place of the C library's, for this whole program: gRPC cannot be found. */
void *dlopen(const char *name, int flags)
{
    void *(*real)(const char *, int);
    *(void **)&real = dlsym(RTLD_NEXT, "dlopen");
    return real(name && strncmp(name, "libgrpc", 7) == 0 ? "libgrpc-is-not-here.so" : name, flags);
}

static bool is_loaded(const char *library)
{
    FILE *f = fopen("/proc/self/maps", "r");
    char line[512];
    bool found = false;
    while (f && fgets(line, sizeof line, f))
        found |= strstr(line, library) != NULL;
    CHECK(f);
    if (f)
        fclose(f);
    return found;
}

/* A session of this process needs neither gRPC nor the libraries that gRPC needs. */
static void single_process(void)
{
    leat_graph *g = leat_graph_new();
    leat_out y = leat_square(leat_ones(g, LEAT_FLOAT, leat_shape(1)));
    leat_session *s;
    leat_tensor *value = NULL;
    CHECK_OK(leat_session_open(g, &s));
    CHECK_OK(leat_session_run(s, LEAT_NO_FEED, LEAT_FETCH({y, &value}), LEAT_NO_TARGET));
    CHECK(value && leat_tensor_at(value, 0) == 1);
    leat_tensor_unref(value);
    leat_session_close(s);
    leat_graph_free(g);
    CHECK(is_loaded("libprotobuf-c")); /* so that the next checks are not trivial */
#if !defined(__SANITIZE_ADDRESS__) && !defined(__SANITIZE_THREAD__) /* see cmake/loaded.cmake */
    CHECK(!is_loaded("libgrpc"));
    CHECK(!is_loaded("libgpr"));
    CHECK(!is_loaded("libcrypto"));
#endif
}

static void without_grpc(void)
{
    leat_server *server;
    leat_session *session;
    leat_graph *g = leat_graph_new();
#if LEAT_CLUSTER
    const char *what = "install the Debian package libgrpc";
    CHECK_ERROR(leat_server_start_local(&server), NOT_FOUND, what);
    CHECK_ERROR(leat_session_open(g, &session, .target = "grpc://localhost:1"), NOT_FOUND, what);
#else
    const char *what = "built without clusters: build it with -DLEAT_CLUSTER=ON";
    CHECK_ERROR(leat_server_start_local(&server), UNIMPLEMENTED, what);
    CHECK_ERROR(leat_session_open(g, &session, .target = "grpc://a:1"), UNIMPLEMENTED, what);
#endif
    leat_graph_free(g);
}

int main(int argc, char **argv)
{
    return RUN(argc, argv, {"single_process", single_process}, {"without_grpc", without_grpc});
}
