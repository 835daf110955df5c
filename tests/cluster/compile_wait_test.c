/* compile_wait_test.c -- a run whose graph is being registered at a stopped task delays nothing
 * else: other signatures run, and deadlines, cancellation and the end of the session end the run.
 */
#include "test.h"

#include <leat/leat.h>
#include <pthread.h>
#include <stdatomic.h>
#include <time.h>

#include "cluster/pair.h"
#include "waiters.h"

enum { OUTS = 8, SOON_MS = 60000 }; /* SOON_MS: far less than what RegisterGraph would wait */

typedef struct fixture {
    leat_cluster *c;
    leat_server *worker;
    task ps;
    leat_graph *g;
    leat_out there[OUTS], here[OUTS]; /* on the ps, on the worker; a signature each */
    leat_session *s;
} fixture;

static int64_t now_ms(void)
{
    struct timespec t;
    clock_gettime(CLOCK_MONOTONIC, &t);
    return (int64_t)t.tv_sec * 1000 + t.tv_nsec / 1000000;
}

static fixture begin(void)
{
    fixture f = {.c = pair_cluster(), .g = leat_graph_new()};
    f.ps = pair_start_ps(f.c);
    CHECK_OK(leat_server_start(f.c, "worker", 0, NULL, &f.worker));
    for (int i = 0; i < OUTS; i++) {
        leat_out x = {0};
        leat_with_device(f.g, "/job:worker/task:0")
        {
            x = leat_scalar(f.g, LEAT_FLOAT, i);
            f.here[i] = leat_add(x, x);
        }
        leat_with_device(f.g, "/job:ps/task:0") f.there[i] = leat_variable(f.g, NULL, x);
    }
    CHECK_OK(leat_session_open(f.g, &f.s, .target = leat_server_target(f.worker)));
    CHECK_OK(leat_session_run(f.s, LEAT_NO_FEED, LEAT_NO_FETCH,
                              LEAT_TARGET(leat_global_variables_initializer(f.g))));
    task_pause(&f.ps);
    return f;
}

static void end(fixture *f)
{
    kill(f->ps.pid, SIGCONT);
    leat_session_close(f->s);
    leat_server_free(f->worker);
    task_end(&f->ps);
    leat_cluster_free(f->c);
    leat_graph_free(f->g);
}

static leat_status run(leat_session *s, leat_out y, const leat_run_options *o)
{
    leat_tensor *t = NULL;
    leat_status status =
        leat_session_run_with(s, o, LEAT_NO_FEED, LEAT_FETCH({y, &t}), LEAT_NO_TARGET);
    leat_tensor_unref(t);
    return status;
}

/* A run in a thread of its own. */
typedef struct runner {
    leat_session *s;
    leat_out y;
    leat_run_options o;
    leat_status status;
    int64_t end_ms;
    atomic_bool ended;
    pthread_t thread;
} runner;

static void *runner_main(void *arg)
{
    runner *r = arg;
    r->status = run(r->s, r->y, &r->o);
    r->end_ms = now_ms();
    atomic_store(&r->ended, true);
    return NULL;
}

/* Returns when the run has begun. */
static void start(runner *r, fixture *f, leat_out y)
{
    int before = runs_of(f->s);
    r->s = f->s;
    r->y = y;
    pthread_create(&r->thread, NULL, runner_main, r);
    CHECK_SOON(runs_of(f->s) > before || atomic_load(&r->ended));
}

static size_t signatures(leat_session *s)
{
    pthread_mutex_lock(&s->plans.lock);
    size_t n = s->plans.entries.n;
    pthread_mutex_unlock(&s->plans.lock);
    return n;
}

/* Returns when the run compiles the graph of y, whose signature is new. */
static void start_compiling(runner *r, fixture *f, leat_out y)
{
    size_t before = signatures(f->s);
    start(r, f, y);
    CHECK_SOON(signatures(f->s) > before || atomic_load(&r->ended));
}

static leat_status join(runner *r)
{
    pthread_join(r->thread, NULL);
    return r->status;
}

static void others_go_on(void)
{
    fixture f = begin();
    runner first = {0}, second = {.o.cancellation = leat_cancellation_new()};
    int64_t begin_ms = now_ms();
    start_compiling(&first, &f, f.there[0]);
    CHECK_OK(run(f.s, f.here[0], NULL));
    CHECK_ERROR(run(f.s, f.there[0], &(leat_run_options){.timeout_ms = 100}), DEADLINE_EXCEEDED,
                "Timed out waiting for another run, which compiles the same graph");
    start(&second, &f, f.there[0]);
    leat_cancel_runs(second.o.cancellation);
    CHECK_ERROR(join(&second), CANCELLED,
                "The run was cancelled while another one compiled its graph");
    CHECK_OK(run(f.s, f.here[1], NULL));
    CHECK(now_ms() - begin_ms < SOON_MS);
    kill(f.ps.pid, SIGCONT);
    CHECK_OK(join(&first)); /* it has waited for the ps, and for nothing else */
    CHECK_OK(run(f.s, f.there[0], NULL));
    leat_cancellation_free(second.o.cancellation);
    end(&f);
}

/* A run that registers its graph ends by its deadline and its cancellation; a run that waited for
 * the same plan then compiles it itself. */
static void ends_of_compiling(void)
{
    fixture f = begin();
    runner late = {.o.timeout_ms = 500}, other = {0}, next = {0};
    int64_t begin_ms = now_ms();
    start_compiling(&late, &f, f.there[0]);
    start(&next, &f, f.there[0]);
    CHECK_ERROR(join(&late), DEADLINE_EXCEEDED, "/job:ps/");
    other.o.cancellation = leat_cancellation_new();
    start(&other, &f, f.there[1]);
    leat_cancel_runs(other.o.cancellation);
    CHECK_ERROR(join(&other), CANCELLED, "");
    CHECK(now_ms() - begin_ms < SOON_MS);
    kill(f.ps.pid, SIGCONT);
    CHECK_OK(join(&next));
    CHECK_OK(run(f.s, f.there[1], NULL)); /* nothing of the failure is kept */
    leat_cancellation_free(other.o.cancellation);
    end(&f);
}

static void *close_main(void *arg)
{
    leat_session_close(arg);
    return NULL;
}

static void session_closes(void)
{
    fixture f = begin();
    runner first = {0}, second = {0};
    pthread_t closing;
    start_compiling(&first, &f, f.there[0]);
    start(&second, &f, f.there[0]);
    int64_t begin_ms = now_ms();
    pthread_create(&closing, NULL, close_main, f.s);
    CHECK_ERROR(join(&first), CANCELLED, "`Session::Close()`");
    CHECK_ERROR(join(&second), CANCELLED, "`Session::Close()`");
    CHECK(first.end_ms - begin_ms < SOON_MS && second.end_ms - begin_ms < SOON_MS);
    kill(f.ps.pid, SIGCONT);
    pthread_join(closing, NULL);
    f.s = NULL;
    end(&f);
}

int main(int argc, char **argv)
{
    if (argc == 4 && strcmp(argv[1], "--role") == 0)
        return pair_be_ps(argv[3]);
    return RUN(argc, argv, {"others_go_on", others_go_on}, {"ends_of_compiling", ends_of_compiling},
               {"session_closes", session_closes});
}
