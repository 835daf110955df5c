/* service_test.c -- many clients of one server at once: sessions are created, extended, run,
 * closed and reset by several threads, with partial runs and callables. Every call must end.
 * LEAT_ROUNDS=10000 makes it long; ThreadSanitizer and AddressSanitizer see more than the checks
 * here do. */
#include "test.h"

#include <leat/leat.h>
#include <pthread.h>
#include <stdatomic.h>

#include "cluster/server.h"
#include "cluster/service_int.h"
#include "cluster/wire_client.h"
#include "race.h"
#include "waiters.h"

typedef char tensor_name[128];

/* x -> y; `wait` is an element of a queue that stays empty. */
typedef struct model {
    leat_graph *g;
    tensor_name x, y, one, wait;
} model;

static void name_of(leat_out o, tensor_name out)
{
    snprintf(out, sizeof(tensor_name), "%s:%d", o.node->name, o.index);
}

static model make_model(void)
{
    model m = {.g = leat_graph_new()};
    leat_out x = leat_placeholder(m.g, LEAT_FLOAT, leat_shape());
    leat_out q = leat_fifo_queue(m.g, -1, LEAT_COMPONENTS({LEAT_FLOAT, leat_shape()}));
    name_of(x, m.x);
    name_of(leat_add(x, x), m.y);
    name_of(leat_scalar(m.g, LEAT_FLOAT, 1), m.one);
    name_of(leat_dequeue(q), m.wait);
    CHECK_OK(leat_graph_status(m.g));
    return m;
}

static void free_model(model *m)
{
    leat_graph_free(m->g);
}

/* ---- A PartialRunSetup that meets CloseSession ---- */

typedef struct setup_call {
    leat_channel *c;
    const model *m;
    wire_handle session;
    pthread_barrier_t *begin;
} setup_call;

static void *set_up(void *arg)
{
    setup_call *k = arg;
    wire_handle partial;
    leat_status s = NULL;
    pthread_barrier_wait(k->begin);
    while (!s)
        s = wire_setup(k->c, k->session, k->m->x, k->m->y, partial);
    leat_status_free(s);
    return NULL;
}

/* Partial runs that are set up while their session is being closed do not keep CloseSession, or
 * Reset in every other round, from ending. */
static void partial_run_and_close(void)
{
    enum { THREADS = 3 };
    leat_server *server;
    CHECK_OK(leat_server_start_local(&server));
    model m = make_model();
    leat_channel *c[THREADS + 1];
    for (int i = 0; i <= THREADS; i++)
        c[i] = wire_connect(leat_server_target(server));
    for (int i = race_rounds(300); i > 0 && !test_failures; i--) {
        pthread_barrier_t begin;
        pthread_t threads[THREADS];
        setup_call calls[THREADS] = {0};
        wire_handle session;
        pthread_barrier_init(&begin, NULL, THREADS + 1);
        CHECK_OK(wire_create(c[THREADS], m.g, session));
        for (int k = 0; k < THREADS; k++) {
            calls[k] = (setup_call){.c = c[k], .m = &m, .begin = &begin};
            memcpy(calls[k].session, session, sizeof(session));
            pthread_create(&threads[k], NULL, set_up, &calls[k]);
        }
        pthread_barrier_wait(&begin);
        usleep(1000);
        CHECK_OK(i % 2 ? wire_close(c[THREADS], session) : wire_reset(c[THREADS]));
        for (int k = 0; k < THREADS; k++)
            pthread_join(threads[k], NULL);
        pthread_barrier_destroy(&begin);
    }
    for (int i = 0; i <= THREADS; i++)
        leat_channel_free(c[i]);
    free_model(&m);
    leat_server_free(server);
}

/* ---- A callable that is released while it runs ---- */

typedef struct callable_call {
    leat_channel *c;
    const char *session;
    int64_t callable;
    tensor_name fetch;
    leat_status status;
} callable_call;

static void *run_it(void *arg)
{
    callable_call *k = arg;
    k->status = wire_run_callable(k->c, k->session, k->callable);
    return NULL;
}

/* ReleaseCallable does not wait for the steps of its session. */
static void callable_released_while_it_runs(void)
{
    leat_server *server;
    CHECK_OK(leat_server_start_local(&server));
    model m = make_model();
    leat_channel *c = wire_connect(leat_server_target(server)),
                 *d = wire_connect(leat_server_target(server));
    wire_handle session;
    callable_call k = {.c = d, .session = session};
    pthread_t thread;
    CHECK_OK(wire_create(c, m.g, session));
    CHECK_OK(wire_make_callable(c, session, m.wait, &k.callable));
    pthread_create(&thread, NULL, run_it, &k);
    usleep(200000); /* Most runs have begun to wait then; the others get INVALID_ARGUMENT. */
    CHECK_OK(wire_release_callable(c, session, k.callable));
    CHECK_OK(wire_close(c, session));
    pthread_join(thread, NULL);
    CHECK(leat_status_code(k.status) == LEAT_CANCELLED ||
          leat_status_code(k.status) == LEAT_ABORTED ||
          leat_status_code(k.status) == LEAT_INVALID_ARGUMENT);
    leat_status_free(k.status);
    leat_channel_free(c);
    leat_channel_free(d);
    free_model(&m);
    leat_server_free(server);
}

/* ---- A server that stops ---- */

static void *run_step(void *arg)
{
    callable_call *k = arg;
    k->status = wire_run(k->c, k->session, NULL, k->fetch, 0);
    return NULL;
}

/* The runs under way of the server's only client. */
static int runs_of_client(leat_server *server)
{
    leat_service *s = leat_server_service(server);
    size_t i = 0;
    const char *key;
    void *c;
    pthread_mutex_lock(&s->lock);
    int n = leat_map_next(&s->clients, &i, &key, &c) ? runs_of(((leat_client *)c)->session) : 0;
    pthread_mutex_unlock(&s->lock);
    return n;
}

/* Runs that a stopping server ends get UNAVAILABLE, upon which a monitored session tries again;
 * CANCELLED would mean that the client had closed its session. */
static void server_stops(void)
{
    leat_server *server;
    CHECK_OK(leat_server_start_local(&server));
    model m = make_model();
    leat_channel *c = wire_connect(leat_server_target(server));
    wire_handle session;
    callable_call step = {.c = c, .session = session}, callable = step;
    pthread_t threads[2];
    CHECK_OK(wire_create(c, m.g, session));
    CHECK_OK(wire_make_callable(c, session, m.wait, &callable.callable));
    snprintf(step.fetch, sizeof(step.fetch), "%s", m.wait);
    pthread_create(&threads[0], NULL, run_step, &step);
    pthread_create(&threads[1], NULL, run_it, &callable);
    CHECK_SOON(runs_of_client(server) == 2);
    leat_server_stop(server, 0);
    for (int i = 0; i < 2; i++)
        pthread_join(threads[i], NULL);
    CHECK_ERROR(step.status, UNAVAILABLE, "/job:local/replica:0/task:0 is stopping");
    CHECK_ERROR(callable.status, UNAVAILABLE, "/job:local/replica:0/task:0 is stopping");
    leat_channel_free(c);
    free_model(&m);
    leat_server_free(server);
}

/* ---- Everything at once ---- */

enum { SLOTS = 6 };

typedef struct crowd {
    const char *target;
    const model *m;
    int rounds;
    pthread_mutex_t lock; /* Guards sessions. */
    wire_handle sessions[SLOTS];
    atomic_int opened, ran;
} crowd;

typedef struct member {
    crowd *all;
    leat_channel *c;
    uint64_t random;
} member;

static int pick(member *k, int n)
{
    k->random = k->random * UINT64_C(6364136223846793005) + UINT64_C(1442695040888963407);
    return (int)((k->random >> 33) % (uint64_t)n);
}

static void swap_session(crowd *a, int slot, wire_handle session)
{
    wire_handle was;
    pthread_mutex_lock(&a->lock);
    memcpy(was, a->sessions[slot], sizeof(was));
    memcpy(a->sessions[slot], session, sizeof(was));
    memcpy(session, was, sizeof(was));
    pthread_mutex_unlock(&a->lock);
}

/* A session that another client may have closed, or may close now, gives one of these. */
static bool expected(leat_status s)
{
    leat_code code = leat_status_code(s);
    bool ok = !s || code == LEAT_ABORTED || code == LEAT_CANCELLED ||
              code == LEAT_INVALID_ARGUMENT || code == LEAT_DEADLINE_EXCEEDED;
    if (ok && s && strstr(leat_status_message(s), "did not answer"))
        ok = false;
    if (ok)
        leat_status_free(s);
    else
        CHECK_OK(s);
    return ok;
}

static leat_status extend(member *k, const char *session)
{
    Leat__ExtendSessionRequest q = LEAT__EXTEND_SESSION_REQUEST__INIT;
    Leat__NodeDef node = LEAT__NODE_DEF__INIT, *nodes[] = {&node};
    Leat__GraphDef def = LEAT__GRAPH_DEF__INIT;
    char name[32];
    snprintf(name, sizeof(name), "more_%d", pick(k, 1000000000));
    node.name = name;
    node.op = (char *)"NoOp";
    def.node = nodes;
    def.n_node = 1;
    q.session_handle = (char *)session;
    q.graph_def = &def;
    q.current_graph_version = pick(k, 3);
    return wire_send(k->c, LEAT_METHOD_EXTEND_SESSION, &q, NULL, NULL);
}

static leat_status run_partial(member *k, const char *session)
{
    const model *m = k->all->m;
    wire_handle partial;
    LEAT_TRY(wire_setup(k->c, session, m->x, m->y, partial));
    if (pick(k, 2))
        return NULL; /* The rest is never run. */
    LEAT_TRY(wire_run_partial(k->c, session, partial, m->x, NULL, 0));
    return wire_run_partial(k->c, session, partial, NULL, m->y, 0);
}

static leat_status run_callable(member *k, const char *session)
{
    int64_t callable;
    LEAT_TRY(wire_make_callable(k->c, session, k->all->m->one, &callable));
    LEAT_TRY(wire_run_callable(k->c, session, callable));
    return wire_release_callable(k->c, session, callable);
}

static void act(member *k)
{
    crowd *a = k->all;
    const model *m = a->m;
    wire_handle session = "";
    int slot = pick(k, SLOTS), what = pick(k, 100);
    if (what < 20) {
        CHECK_OK(wire_create(k->c, m->g, session));
        atomic_fetch_add(&a->opened, 1);
        swap_session(a, slot, session);
        if (session[0])
            expected(wire_close(k->c, session));
        return;
    }
    if (what == 20) {
        CHECK_OK(wire_reset(k->c));
        return;
    }
    pthread_mutex_lock(&a->lock);
    memcpy(session, a->sessions[slot], sizeof(session));
    pthread_mutex_unlock(&a->lock);
    if (what < 30)
        expected(wire_close(k->c, session));
    else if (what < 40)
        expected(extend(k, session));
    else if (what < 60)
        expected(run_partial(k, session));
    else if (what < 75)
        expected(run_callable(k, session));
    else if (what < 80)
        expected(wire_run(k->c, session, NULL, m->wait, 5));
    else if (expected(wire_run(k->c, session, m->x, m->y, 0)))
        atomic_fetch_add(&a->ran, 1);
}

static void *take_part(void *arg)
{
    member *k = arg;
    for (int i = 0; i < k->all->rounds && !test_failures; i++)
        act(k);
    return NULL;
}

static void crowded(void)
{
    enum { CLIENTS = 6 };
    leat_server *server;
    CHECK_OK(leat_server_start_local(&server));
    model m = make_model();
    crowd a = {.target = leat_server_target(server),
               .m = &m,
               .rounds = race_rounds(300),
               .lock = PTHREAD_MUTEX_INITIALIZER};
    pthread_t threads[CLIENTS];
    member v[CLIENTS];
    for (int i = 0; i < CLIENTS; i++) {
        v[i] = (member){.all = &a, .c = wire_connect(a.target), .random = 77 + (uint64_t)i};
        pthread_create(&threads[i], NULL, take_part, &v[i]);
    }
    for (int i = 0; i < CLIENTS; i++) {
        pthread_join(threads[i], NULL);
        leat_channel_free(v[i].c);
    }
    CHECK(atomic_load(&a.opened) > 0 && atomic_load(&a.ran) > 0);
    free_model(&m);
    leat_server_free(server);
}

int main(int argc, char **argv)
{
    return RUN(argc, argv, {"partial_run_and_close", partial_run_and_close},
               {"callable_released_while_it_runs", callable_released_while_it_runs},
               {"server_stops", server_stops}, {"crowded", crowded});
}
