/* openssl_library_test.c -- where OpenSSL cannot be loaded for the socket, tasks with TLS talk by
 * gRPC, and their log says why. */
#define _GNU_SOURCE
#include <dlfcn.h>

#include "cluster/certificates.h"
#include "cluster/pair.h"
#include "cluster/socket/tls.h"

/* In place of the C library's, for this whole program: OpenSSL cannot be found by its name. gRPC
 * brings it as its own part. */
void *dlopen(const char *name, int flags)
{
    void *(*real)(const char *, int);
    *(void **)&real = dlsym(RTLD_NEXT, "dlopen");
    return real(name && strncmp(name, "libssl", 6) == 0 ? "libssl-is-not-here.so" : name, flags);
}

static bool made;
static int told; /* atomic */

static void on_log(void *arg, leat_log_level level, const char *from, int line, const char *message)
{
    if (strstr(message, "No socket is offered to tasks of other machines: TLS needs OpenSSL") &&
        strstr(message, "install the Debian package libssl"))
        __atomic_fetch_add(&told, 1, __ATOMIC_SEQ_CST);
}

static void by_grpc(void)
{
    if (!made)
        SKIP("the openssl command is not there");
    leat_server_options o = {.security = {.certificate = file("task.pem"),
                                          .key = file("task.key"),
                                          .authority = file("ca.pem"),
                                          .mutual = true}};
    pair p;
    leat_log_set_sink(on_log, NULL, LEAT_LOG_INFO);
    pair_start(&p, &o);
    leat_log_set_sink(NULL, NULL, LEAT_LOG_INFO);
    CHECK_INT(__atomic_load_n(&told, __ATOMIC_SEQ_CST), 2);
    leat_graph *g = leat_graph_new();
    leat_out x = {0};
    leat_with_device(g, "/job:ps/task:0") x = leat_ones(g, LEAT_FLOAT, leat_shape(1000));
    leat_with_device(g, "/job:worker/task:0") x = leat_reduce_sum(x);
    leat_session *s;
    leat_tensor *value = NULL;
    CHECK_OK(
        leat_session_open(g, &s, .target = leat_server_target(p.worker), .security = &o.security));
    CHECK_OK(leat_session_run(s, LEAT_NO_FEED, LEAT_FETCH({x, &value}), LEAT_NO_TARGET));
    CHECK(value && leat_tensor_at(value, 0) == 1000);
    leat_tensor_unref(value);
    leat_session_close(s);
    leat_graph_free(g);
    pair_stop(&p);
}

static void errors(void)
{
    leat_tls_context *c;
    leat_security s = {.certificate = "c.pem", .key = "c.key", .authority = "a.pem"};
    CHECK_ERROR(leat_tls_server(&s, &c), NOT_FOUND, "TLS needs OpenSSL, which cannot be loaded");
    CHECK_ERROR(leat_tls_client(&s, &c), NOT_FOUND, "install the Debian package libssl");
}

int main(int argc, char **argv)
{
    made = certificates_make();
    int rc = RUN(argc, argv, {"by_grpc", by_grpc}, {"errors", errors});
    certificates_remove();
    return rc;
}
