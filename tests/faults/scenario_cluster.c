/* scenario_cluster.c -- servers of this process, and sessions over them by each transport, also
 * with TLS. */
#define _GNU_SOURCE
#include <stdio.h>
#include <unistd.h>

#include "cluster/certificates.h"
#include "faults/inject.h"
#include "faults/scenarios.h"

enum { TIMEOUT_MS = 4000, LINK_MS = 10 };

typedef struct pair {
    leat_server *ps, *worker;
    char target[64];
} pair;

static leat_status pair_start(pair *p, const char *transports, const leat_security *security)
{
    leat_cluster *c = leat_cluster_new();
    const leat_server_options o = {.transports = transports,
                                   .security = security ? *security : (leat_security){0}};
    char address[2][32];
    for (int i = 0; i < 2; i++)
        snprintf(address[i], sizeof(address[i]), "127.0.0.1:%d", scenario_port(i));
    /* With another name of the address, the server is not found in this process: it is called. */
    snprintf(p->target, sizeof(p->target), "grpc://localhost:%d", scenario_port(1));
    leat_status e = leat_cluster_add(c, "ps", address[0]);
    THEN(e, leat_cluster_add(c, "worker", address[1]));
    THEN(e, leat_server_start(c, "ps", 0, &o, &p->ps));
    THEN(e, leat_server_start(c, "worker", 0, &o, &p->worker));
    leat_cluster_free(c);
    return e;
}

/* A variable on the ps, used by the worker: small and large tensors go both ways, and a message of
 * many. */
static leat_status steps(const char *transports, const leat_security *security)
{
    enum { LARGE = 200000, MANY = 10 };
    pair p = {0};
    leat_out many[MANY];
    leat_graph *g = leat_graph_new();
    leat_session *s = NULL;
    leat_out w, y, train, sum;
    leat_with_device(g, "/job:ps/task:0")
    {
        w = leat_variable(g, "w", leat_full(g, LEAT_FLOAT, leat_shape(LARGE), 1));
        leat_out v = leat_split(leat_scalar(g, LEAT_INT32, 0), w, MANY);
        for (int i = 0; i < MANY; i++)
            many[i] = leat_output(v, i);
    }
    leat_with_device(g, "/job:worker/task:0")
    {
        y = leat_mul(leat_concat(many, MANY, leat_scalar(g, LEAT_INT32, 0)),
                     leat_scalar(g, LEAT_FLOAT, 2));
    }
    leat_with_device(g, "/job:ps/task:0")
    {
        train = leat_assign_add(leat_variable_ref(w), y);
        sum = leat_reduce_mean(train);
    }
    leat_out init = leat_global_variables_initializer(g);
    leat_status e = pair_start(&p, transports, security);
    THEN(e, leat_session_open(g, &s, .target = p.target, .timeout_ms = TIMEOUT_MS,
                              .security = security));
    usleep(e ? 0 : LINK_MS * 1000); /* Calls go by gRPC until the other link is open. */
    THEN(e, leat_session_run(s, LEAT_NO_FEED, LEAT_NO_FETCH, LEAT_TARGET(init)));
    double want = 1;
    for (int i = 0; i < 3 && !e; i++) {
        leat_tensor *v = NULL;
        e = leat_session_run(s, LEAT_NO_FEED, LEAT_FETCH({sum, &v}), LEAT_NO_TARGET);
        want *= 3;
        if (!e)
            EXPECT(leat_tensor_at(v, 0) == want);
        leat_tensor_unref(v);
    }
    leat_session_close(s);
    leat_graph_free(g);
    leat_server_free(p.worker);
    leat_server_free(p.ps);
    return e;
}

leat_status scenario_server(const char *dir)
{
    leat_server *server = NULL;
    leat_graph *g = leat_graph_new();
    leat_session *s = NULL;
    leat_tensor *v = NULL;
    leat_out w = leat_variable(g, "w", leat_scalar(g, LEAT_FLOAT, 2));
    leat_out init = leat_global_variables_initializer(g);
    leat_status e = leat_server_start_local(&server);
    THEN(e,
         leat_session_open(g, &s, .target = leat_server_target(server), .timeout_ms = TIMEOUT_MS));
    THEN(e, leat_session_run(s, LEAT_NO_FEED, LEAT_NO_FETCH, LEAT_TARGET(init)));
    THEN(e, leat_session_run(s, LEAT_NO_FEED, LEAT_FETCH({w, &v}), LEAT_NO_TARGET));
    if (!e)
        EXPECT(leat_tensor_at(v, 0) == 2);
    leat_tensor_unref(v);
    leat_session_close(s);
    leat_graph_free(g);
    leat_server_free(server);
    return e;
}

leat_status scenario_grpc(const char *dir)
{
    return steps("grpc", NULL);
}

leat_status scenario_socket(const char *dir)
{
    return steps("grpc,socket", NULL);
}

leat_status scenario_shm(const char *dir)
{
    return steps("grpc,shm", NULL);
}

leat_status scenario_local(const char *dir)
{
    return steps("grpc,local", NULL);
}

/* ---- With certificates ---- */
bool scenario_begin(void)
{
    snprintf(certificates, sizeof(certificates), "/tmp/leat-certificates-XXXXXX");
    return certificates_make();
}

void scenario_end(void)
{
    certificates_remove();
}

static leat_status steps_with_tls(const char *transports)
{
    const leat_security s = {.certificate = file("task.pem"),
                             .key = file("task.key"),
                             .authority = file("ca.pem"),
                             .mutual = true,
                             .token = "a token"};
    inject_machine_unknown = true;
    leat_status e = steps(transports, &s);
    inject_machine_unknown = false;
    return e;
}

leat_status scenario_tls_grpc(const char *dir)
{
    return steps_with_tls("grpc");
}

leat_status scenario_tls_socket(const char *dir)
{
    return steps_with_tls("grpc,socket");
}
