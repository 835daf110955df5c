/* server_test.c -- servers of one process: sessions on them, graphs over several tasks. */
#include "test.h"

#include <leat/leat.h>
#include <pthread.h>
#include <stdatomic.h>
#include <time.h>

#include "cluster/pair.h"
#include "proto/wire.h"
#include "waiters.h"

static void one_task(void)
{
    leat_server *server;
    leat_session *s;
    leat_tensor *v;
    CHECK_OK(leat_server_start_local(&server));
    leat_graph *g = leat_graph_new();
    leat_out w = leat_variable(g, "w", leat_scalar(g, LEAT_FLOAT, 2.0));
    leat_out more = leat_assign_add(leat_variable_ref(w), leat_scalar(g, LEAT_FLOAT, 3.0));
    CHECK_OK(leat_session_open(g, &s, .target = leat_server_target(server)));
    CHECK_OK(leat_session_run(s, LEAT_NO_FEED, LEAT_NO_FETCH,
                              LEAT_TARGET(leat_global_variables_initializer(g))));
    CHECK_OK(leat_session_run(s, LEAT_NO_FEED, LEAT_FETCH({more, &v}), LEAT_NO_TARGET));
    CHECK(*(const float *)leat_tensor_data(v) == 5);
    leat_tensor_unref(v);
    leat_session_close(s);
    /* Variables stay on the server. */
    CHECK_OK(leat_session_open(g, &s, .target = leat_server_target(server)));
    CHECK_OK(leat_session_run(s, LEAT_NO_FEED, LEAT_FETCH({w, &v}), LEAT_NO_TARGET));
    CHECK(*(const float *)leat_tensor_data(v) == 5);
    leat_tensor_unref(v);
    leat_session_close(s);
    leat_graph_free(g);
    leat_server_free(server);
}

/* Random ops with seeds begin again in each session, and go on in it whatever else is fetched. */
static void seeds(void)
{
    leat_server *server;
    int64_t first[2] = {0};
    CHECK_OK(leat_server_start_local(&server));
    leat_graph *g = leat_graph_new();
    leat_tensor *t;
    CHECK_OK(leat_tensor_new(LEAT_INT32, leat_shape(0), &t));
    leat_out shape = leat_const(g, t);
    leat_out x =
        leat_op(g, "RandomUniformInt", leat_in(shape), leat_in(leat_scalar(g, LEAT_INT64, 0)),
                leat_in(leat_scalar(g, LEAT_INT64, 1 << 30)), leat_attr_int("seed", 1));
    leat_out fetches[2] = {x, leat_add(x, leat_scalar(g, LEAT_INT64, 0))};
    leat_tensor_unref(t);
    for (int i = 0; i < 4; i++) {
        leat_session *s;
        CHECK_OK(leat_session_open(g, &s, .target = leat_server_target(server)));
        for (int j = 0; j < 2; j++) {
            CHECK_OK(
                leat_session_run(s, LEAT_NO_FEED, LEAT_FETCH({fetches[j], &t}), LEAT_NO_TARGET));
            const int64_t got = *(const int64_t *)leat_tensor_data(t);
            first[j] = i ? first[j] : got;
            CHECK_INT(got, first[j]);
            leat_tensor_unref(t);
        }
        leat_session_close(s);
    }
    CHECK(first[0] != first[1]);
    leat_graph_free(g);
    leat_server_free(server);
}

static void two_tasks(void)
{
    pair p;
    leat_session *s;
    leat_tensor *v;
    pair_start(&p, NULL);
    leat_graph *g = leat_graph_new();
    leat_out w, y, train;
    leat_with_device(g, "/job:ps/task:0") w =
        leat_variable(g, "w", leat_scalar(g, LEAT_FLOAT, 2.0));
    leat_with_device(g, "/job:worker/task:0")
    {
        y = leat_mul(w, leat_scalar(g, LEAT_FLOAT, 10.0));
    }
    leat_with_device(g, "/job:ps/task:0") train = leat_assign_add(leat_variable_ref(w), y);
    CHECK_OK(leat_session_open(g, &s, .target = leat_server_target(p.worker), .timeout_ms = 10000));
    CHECK_OK(leat_session_run(s, LEAT_NO_FEED, LEAT_NO_FETCH,
                              LEAT_TARGET(leat_global_variables_initializer(g))));
    float want = 2;
    for (int i = 0; i < 20; i++) {
        want += 10 * want;
        CHECK_OK(leat_session_run(s, LEAT_NO_FEED, LEAT_FETCH({train, &v}), LEAT_NO_TARGET));
        CHECK(*(const float *)leat_tensor_data(v) == want);
        leat_tensor_unref(v);
    }
    leat_session_close(s);
    leat_graph_free(g);
    pair_stop(&p);
}

/* A failure on one task ends the step on both. */
static void failing_task(void)
{
    pair p;
    leat_session *s;
    pair_start(&p, NULL);
    leat_graph *g = leat_graph_new();
    leat_out w, x, y;
    leat_with_device(g, "/job:ps/task:0") w =
        leat_variable(g, "w", leat_scalar(g, LEAT_FLOAT, 2.0));
    leat_with_device(g, "/job:worker/task:0") x = leat_neg(w);
    leat_with_device(g, "/job:ps/task:0") y = leat_neg(x);
    CHECK_OK(leat_session_open(g, &s, .target = leat_server_target(p.worker), .timeout_ms = 10000));
    for (int i = 0; i < 3; i++)
        CHECK_ERROR(leat_session_run(s, LEAT_NO_FEED, LEAT_NO_FETCH, LEAT_TARGET(y)),
                    FAILED_PRECONDITION, "uninitialized");
    leat_session_close(s);
    leat_graph_free(g);
    pair_stop(&p);
}

/* With a numeric address the server is not found in this process: it is called over the wire. */
static leat_status open_over_the_wire(leat_graph *g, const leat_server *server, leat_session **out)
{
    char target[64];
    snprintf(target, sizeof(target), "grpc://127.0.0.1%s",
             strrchr(leat_server_target(server), ':'));
    return leat_session_open(g, out, .target = target, .timeout_ms = 10000);
}

static leat_session *over_the_wire(leat_graph *g, const leat_server *server)
{
    leat_session *s = NULL;
    CHECK_OK(open_over_the_wire(g, server, &s));
    return s;
}

/* Requests beyond the limit of protobuf's messages, which the test lowers, are errors of the run
 * that needs them: the session goes on. */
static void requests_too_large(void)
{
    enum { ELEMENTS = 4096, FEW = 20, MOST = 10000 }; /* bytes, but for ELEMENTS */
    pair p;
    leat_session *s;
    leat_tensor *large, *v;
    leat_partial *partial;
    CHECK_OK(leat_tensor_new(LEAT_FLOAT, leat_shape(ELEMENTS), &large));
    for (int i = 0; i < ELEMENTS; i++)
        ((float *)leat_tensor_mutable(large))[i] = (float)i;
    pair_start(&p, NULL);
    leat_graph *g = leat_graph_new();
    leat_out x = leat_placeholder(g, LEAT_FLOAT, leat_shape()), y, z;
    leat_with_device(g, "/job:ps/task:0") y = leat_neg(leat_const(g, large));
    leat_with_device(g, "/job:ps/task:0") z = leat_neg(leat_scalar(g, LEAT_FLOAT, 2));
    CHECK_OK(leat_session_open(g, &s, .target = leat_server_target(p.worker), .timeout_ms = 10000));
    leat_proto_pack_max = MOST;
    CHECK_ERROR(leat_session_run(s, LEAT_NO_FEED, LEAT_NO_FETCH, LEAT_TARGET(y)),
                RESOURCE_EXHAUSTED,
                "RegisterGraph: Cannot serialize protocol buffer of type "
                "tensorflow.RegisterGraphRequest as the serialized size");
    CHECK_OK(leat_session_run(s, LEAT_NO_FEED, LEAT_FETCH({z, &v}), LEAT_NO_TARGET));
    leat_tensor_unref(v);
    leat_session_close(s);
    CHECK_ERROR(open_over_the_wire(g, p.worker, &s), RESOURCE_EXHAUSTED,
                "CreateSession: Cannot serialize");
    leat_proto_pack_max = LEAT_PROTO_MAX_SIZE;
    s = over_the_wire(g, p.worker);
    leat_proto_pack_max = FEW;
    CHECK_ERROR(leat_session_partial(s, &x, 1, &z, 1, NULL, 0, &partial), RESOURCE_EXHAUSTED,
                "PartialRunSetup: Cannot serialize");
    leat_neg(leat_const(g, large)); /* the graph has grown */
    leat_proto_pack_max = MOST;
    CHECK_ERROR(leat_session_run(s, LEAT_NO_FEED, LEAT_FETCH({z, &v}), LEAT_NO_TARGET),
                RESOURCE_EXHAUSTED, "ExtendSession: Cannot serialize");
    leat_proto_pack_max = LEAT_PROTO_MAX_SIZE;
    CHECK_OK(leat_session_run(s, LEAT_NO_FEED, LEAT_FETCH({z, &v}), LEAT_NO_TARGET));
    leat_tensor_unref(v);
    leat_session_close(s);
    leat_tensor_unref(large);
    leat_graph_free(g);
    pair_stop(&p);
}

/* Devices of a server by its spec, and no more of them than a client wants; over the wire, too. */
static void device_counts(void)
{
    leat_server *server = NULL;
    leat_cluster *c = leat_cluster_new();
    leat_session *s;
    leat_tensor *v;
    char target[64];
    CHECK_OK(leat_cluster_add(c, "local", "localhost:0"));
    CHECK_ERROR(
        leat_server_start(c, "local", 0, &(leat_server_options){.devices = "cpu:1,npu:1"}, &server),
        INVALID_ARGUMENT, "there are no devices of kind NPU");
    CHECK_OK(leat_server_start(c, "local", 0, &(leat_server_options){.devices = "cpu:3"}, &server));
    leat_graph *g = leat_graph_new();
    leat_out x = leat_scalar(g, LEAT_FLOAT, 3), y = leat_add(x, x, leat_on("/cpu:2"));
    snprintf(target, sizeof(target), "grpc://127.0.0.1%s",
             strrchr(leat_server_target(server), ':'));
    const char *targets[] = {target, leat_server_target(server)};
    for (int i = 0; i < 2; i++) {
        CHECK_OK(leat_session_open(g, &s, .target = targets[i], .devices = "gpu:0,cpu"));
        CHECK_OK(leat_session_run(s, LEAT_NO_FEED, LEAT_FETCH({y, &v}), LEAT_NO_TARGET));
        CHECK(*(const float *)leat_tensor_data(v) == 6);
        leat_tensor_unref(v);
        leat_session_close(s);
        CHECK_OK(leat_session_open(g, &s, .target = targets[i], .devices = "cpu:2"));
        CHECK_ERROR(leat_session_run(s, LEAT_NO_FEED, LEAT_FETCH({y, &v}), LEAT_NO_TARGET),
                    INVALID_ARGUMENT, "Cannot assign a device for operation");
        leat_session_close(s);
        CHECK_ERROR(leat_session_open(g, &s, .target = targets[i], .devices = "cpu:x"),
                    INVALID_ARGUMENT, "\"cpu:x\" has no number");
    }
    leat_graph_free(g);
    leat_server_free(server);
    leat_cluster_free(c);
}

static void remote_session(void)
{
    pair p;
    leat_tensor *v, *feed;
    pair_start(&p, NULL);
    leat_graph *g = leat_graph_new();
    leat_out w, x = leat_placeholder(g, LEAT_FLOAT, leat_shape(-1)), y;
    leat_with_device(g, "/job:ps/task:0") w = leat_variable(g, "w", leat_scalar(g, LEAT_FLOAT, 2));
    leat_with_device(g, "/job:worker/task:0") y = leat_mul(w, x);
    leat_session *s = over_the_wire(g, p.worker);
    CHECK_OK(leat_session_run(s, LEAT_NO_FEED, LEAT_NO_FETCH,
                              LEAT_TARGET(leat_global_variables_initializer(g))));
    CHECK_OK(leat_tensor_new(LEAT_FLOAT, leat_shape(1000), &feed));
    float *f = leat_tensor_mutable(feed);
    for (int i = 0; i < 1000; i++)
        f[i] = (float)i;
    CHECK_OK(leat_session_run(s, LEAT_FEED({x, feed}), LEAT_FETCH({y, &v}), LEAT_NO_TARGET));
    CHECK(((const float *)leat_tensor_data(v))[999] == 1998);
    leat_tensor_unref(v);
    leat_metadata *m;
    CHECK_OK(leat_session_run_with(s, &(leat_run_options){.metadata_out = &m}, LEAT_FEED({x, feed}),
                                   LEAT_NO_FETCH, LEAT_TARGET(y)));
    char *json;
    CHECK_OK(leat_metadata_to_chrome(m, &json));
    CHECK(strstr(json, "/job:ps/") && strstr(json, "/job:worker/"));
    free(json);
    leat_metadata_free(m);
    leat_out z = leat_neg(y), parts[] = {y, z}; /* the graph has grown */
    leat_partial *partial;
    CHECK_OK(leat_session_partial(s, &x, 1, parts, 2, NULL, 0, &partial));
    CHECK_OK(leat_partial_run(partial, LEAT_FEED({x, feed}), LEAT_FETCH({z, &v})));
    CHECK(((const float *)leat_tensor_data(v))[1] == -2);
    leat_tensor_unref(v);
    leat_partial_free(partial);
    CHECK_ERROR(leat_session_run(s, LEAT_NO_FEED, LEAT_NO_FETCH, LEAT_TARGET(y)), INVALID_ARGUMENT,
                "You must feed a value for placeholder");
    leat_tensor_unref(feed);
    leat_session_close(s);
    leat_graph_free(g);
    pair_stop(&p);
}

static leat_out below(leat_graph *g, void *arg, const leat_out *v)
{
    return leat_less(v[0], *(leat_out *)arg);
}

/* The loop's counter is on the worker, the sum on the ps. */
static void add_up(leat_graph *g, void *arg, const leat_out *v, leat_out *next)
{
    leat_with_device(g, "/job:worker/task:0") next[0] =
        leat_add(v[0], leat_scalar(g, LEAT_FLOAT, 1));
    leat_with_device(g, "/job:ps/task:0") next[1] = leat_add(v[1], leat_mul(v[0], v[0]));
}

static void loop_over_tasks(void)
{
    pair p;
    leat_session *s;
    pair_start(&p, NULL);
    leat_graph *g = leat_graph_new();
    leat_out limit = leat_placeholder(g, LEAT_FLOAT, leat_shape()), v[2];
    leat_with_device(g, "/job:worker/task:0")
    {
        v[0] = leat_scalar(g, LEAT_FLOAT, 0);
        v[1] = leat_scalar(g, LEAT_FLOAT, 0);
        leat_while_loop(below, add_up, &limit, v, 2, v);
    }
    CHECK_OK(leat_session_open(g, &s, .target = leat_server_target(p.worker), .timeout_ms = 20000));
    for (int n = 0; n <= 20; n += 10) {
        leat_tensor *fed = leat_scalar_float((float)n), *sum = NULL;
        CHECK_OK(
            leat_session_run(s, LEAT_FEED({limit, fed}), LEAT_FETCH({v[1], &sum}), LEAT_NO_TARGET));
        if (sum)
            CHECK_NEAR(leat_tensor_at(sum, 0), (n - 1) * n * (2 * n - 1) / 6, 0);
        leat_tensor_unref(sum);
        leat_tensor_unref(fed);
    }
    leat_session_close(s);
    leat_graph_free(g);
    pair_stop(&p);
}

/* ---- Threads that wait for steps read what comes for them ---- */

typedef struct counting {
    leat_session *s;
    leat_out more;
    int steps;
} counting;

static void *count(void *arg)
{
    counting *c = arg;
    for (int i = 0; i < c->steps; i++) {
        leat_tensor *v = NULL;
        CHECK_OK(leat_session_run(c->s, LEAT_NO_FEED, LEAT_FETCH({c->more, &v}), LEAT_NO_TARGET));
        leat_tensor_unref(v);
    }
    return NULL;
}

static void *close_soon(void *session)
{
    CHECK_SOON(runs_of(session) == 1);
    leat_session_close(session);
    return NULL;
}

static void waiting_threads(void)
{
    enum { THREADS = 4, LONE = 200, EACH = 50 };
    pair p;
    leat_session *s;
    leat_tensor *v;
    pthread_t threads[THREADS];
    pair_start(&p, NULL);
    leat_graph *g = leat_graph_new();
    leat_out w, y, more, never, unset, fails;
    leat_with_device(g, "/job:ps/task:0")
    {
        unset = leat_variable(g, "unset", leat_scalar(g, LEAT_FLOAT, 0));
        w = leat_variable(g, "w", leat_zeros(g, LEAT_FLOAT, leat_shape(1000)));
        never = leat_dequeue(leat_fifo_queue(g, 10, LEAT_COMPONENTS({LEAT_FLOAT, leat_shape()})));
    }
    leat_with_device(g, "/job:worker/task:0") y =
        leat_add(leat_mul(w, leat_scalar(g, LEAT_FLOAT, 0)), leat_scalar(g, LEAT_FLOAT, 1));
    leat_with_device(g, "/job:ps/task:0") more = leat_assign_add(leat_variable_ref(w), y);
    leat_with_device(g, "/job:worker/task:0") fails = leat_neg(unset);
    CHECK_OK(leat_session_open(g, &s, .target = leat_server_target(p.worker), .timeout_ms = 60000));
    CHECK_OK(leat_session_run(s, LEAT_NO_FEED, LEAT_NO_FETCH,
                              LEAT_TARGET(leat_variable_initializer(w))));
    counting c = {s, more, LONE}, each = {s, more, EACH};
    int want = 0;
    for (int round = 0; round < 3; round++) { /* alone, then together, and again */
        count(&c);
        for (int i = 0; i < THREADS; i++)
            pthread_create(&threads[i], NULL, count, &each);
        for (int i = 0; i < THREADS; i++)
            pthread_join(threads[i], NULL);
        want += LONE + THREADS * EACH;
    }
    CHECK_OK(leat_session_run(s, LEAT_NO_FEED, LEAT_FETCH({w, &v}), LEAT_NO_TARGET));
    CHECK(((const float *)leat_tensor_data(v))[999] == (float)want);
    leat_tensor_unref(v);
    /* A step that fails ends at once: its calls to other tasks are cancelled. */
    for (int i = 0; i < 20; i++) {
        count(&(counting){s, more, 10});
        CHECK_ERROR(leat_session_run_with(s, &(leat_run_options){.timeout_ms = 5000}, LEAT_NO_FEED,
                                          LEAT_NO_FETCH, LEAT_TARGET(fails)),
                    FAILED_PRECONDITION, "uninitialized");
    }
    /* A step that waits for a tensor that never comes ends by its deadline, and by the end of the
     * session. */
    count(&c);
    CHECK_ERROR(leat_session_run_with(s, &(leat_run_options){.timeout_ms = 50}, LEAT_NO_FEED,
                                      LEAT_NO_FETCH, LEAT_TARGET(never)),
                DEADLINE_EXCEEDED, "");
    count(&c);
    pthread_create(&threads[0], NULL, close_soon, s);
    CHECK_ERROR(leat_session_run(s, LEAT_NO_FEED, LEAT_NO_FETCH, LEAT_TARGET(never)), CANCELLED,
                "");
    pthread_join(threads[0], NULL);
    leat_graph_free(g);
    pair_stop(&p);
}

static void *cancel_soon(void *cancellation)
{
    nanosleep(&(struct timespec){.tv_nsec = 100000000}, NULL);
    leat_cancel_runs(cancellation);
    return NULL;
}

/* A cancellation ends the wait for a task that is not there: of a session on a server of this
 * process, of one in another process, and of monitored sessions. */
static void stops_waiting(void)
{
    pair p;
    pair_start(&p, NULL);
    char there[64], gone[64];
    snprintf(there, sizeof(there), "%s", leat_server_target(p.worker));
    snprintf(gone, sizeof(gone), "%s", leat_server_target(p.ps));
    leat_server_free(p.ps);
    leat_graph *g = leat_graph_new();
    leat_out w;
    leat_with_device(g, "/job:ps/task:0") w = leat_variable(g, "w", leat_scalar(g, LEAT_FLOAT, 2));
    CHECK(w.node && leat_global_step(g).node);
    for (int i = 0; i < 5; i++) {
        leat_cancellation *stop = leat_cancellation_new();
        pthread_t thread;
        leat_session *s = NULL;
        leat_monitored *ms = NULL;
        leat_supervisor *sv = NULL;
        pthread_create(&thread, NULL, cancel_soon, stop);
        if (i < 2) {
            CHECK_ERROR(leat_session_open(g, &s, .target = i ? gone : there, .cancellation = stop),
                        CANCELLED, "");
        } else if (i < 4) {
            CHECK_ERROR(
                leat_monitored_open(g, &ms, .master = there, .is_chief = i == 2, .stop = stop),
                CANCELLED, gone + strlen("grpc://"));
        } else {
            CHECK_OK(leat_supervisor_open(g, &sv, .is_chief = true, .stop = stop));
            CHECK_ERROR(leat_supervisor_session(sv, there, &s), CANCELLED,
                        "Asked to stop, after the chief on grpc://");
            CHECK_OK(leat_supervisor_close(sv));
        }
        pthread_join(thread, NULL);
        leat_cancellation_free(stop);
    }
    leat_graph_free(g);
    leat_server_free(p.worker);
}

typedef struct opening {
    leat_graph *g;
    char target[64];
    leat_status status;
    atomic_bool ended;
} opening;

static void *open_session(void *arg)
{
    opening *o = arg;
    leat_session *s = NULL;
    o->status = leat_session_open(o->g, &s, .target = o->target);
    atomic_store(&o->ended, true);
    if (!o->status)
        leat_session_close(s);
    return NULL;
}

/* A server is freed while sessions are being opened on it, in this process and by calls, which wait
 * for a task that is not there: they end, and the server lives until they have. */
static void stops_while_sessions_open(void)
{
    enum { THREADS = 3 };
    pair p;
    pair_start(&p, NULL);
    opening o = {.g = leat_graph_new()}, all[THREADS];
    pthread_t threads[THREADS];
    snprintf(o.target, sizeof(o.target), "%s", leat_server_target(p.worker));
    leat_server_free(p.ps);
    for (int i = 0; i < THREADS; i++) {
        all[i] = o;
        if (i == 0) /* Another name for the same address: the session is a client's. */
            snprintf(all[i].target, sizeof(o.target), "grpc://127.0.0.1%s", strrchr(o.target, ':'));
        pthread_create(&threads[i], NULL, open_session, &all[i]);
    }
    usleep(200000);
    for (int i = 0; i < THREADS; i++)
        CHECK(!atomic_load(&all[i].ended));
    int64_t began = leat_now_ns();
    leat_server_free(p.worker);
    CHECK(leat_now_ns() - began < INT64_C(10000000000));
    for (int i = 0; i < THREADS; i++) {
        CHECK(i == 0 || atomic_load(&all[i].ended));
        pthread_join(threads[i], NULL);
        CHECK_ERROR(all[i].status, UNAVAILABLE,
                    "/job:worker/replica:0/task:0 is stopping: no session can be opened on it");
    }
    leat_graph_free(o.g);
}

int main(int argc, char **argv)
{
    return RUN(argc, argv, {"one_task", one_task}, {"seeds", seeds}, {"two_tasks", two_tasks},
               {"loop_over_tasks", loop_over_tasks}, {"failing_task", failing_task},
               {"remote_session", remote_session}, {"requests_too_large", requests_too_large},
               {"device_counts", device_counts}, {"waiting_threads", waiting_threads},
               {"stops_waiting", stops_waiting},
               {"stops_while_sessions_open", stops_while_sessions_open});
}
