/* plan_cache_test.c -- several threads that want the same new signatures at once. */
#include "test.h"

#include <leat/leat.h>
#include <pthread.h>
#include <stdatomic.h>

enum { THREADS = 4, SIGNATURES = 100 };

typedef struct work {
    leat_session *s;
    leat_out *y;
    pthread_barrier_t *together;
    bool fails;
} work;

static void *run_all(void *arg)
{
    work *w = arg;
    for (int i = 0; i < SIGNATURES; i++) {
        leat_tensor *t = NULL;
        pthread_barrier_wait(w->together);
        leat_status s =
            leat_session_run(w->s, LEAT_NO_FEED, LEAT_FETCH({w->y[i], &t}), LEAT_NO_TARGET);
        if (w->fails) {
            CHECK_ERROR(s, INVALID_ARGUMENT, "CPU:7");
        } else {
            CHECK_OK(s);
            CHECK_NEAR(t ? leat_tensor_at(t, 0) : -1, 2 * i, 0);
        }
        leat_tensor_unref(t);
    }
    return NULL;
}

static void run_together(bool fails)
{
    leat_graph *g = leat_graph_new();
    leat_out y[SIGNATURES];
    leat_session *s;
    pthread_t threads[THREADS];
    pthread_barrier_t together;
    for (int i = 0; i < SIGNATURES; i++) {
        leat_out x = leat_scalar(g, LEAT_FLOAT, i);
        leat_with_device(g, fails ? "/device:CPU:7" : "") y[i] = leat_add(x, x);
    }
    CHECK_OK(leat_session_open(g, &s));
    pthread_barrier_init(&together, NULL, THREADS);
    work w = {s, y, &together, fails};
    for (int i = 0; i < THREADS; i++)
        pthread_create(&threads[i], NULL, run_all, &w);
    for (int i = 0; i < THREADS; i++)
        pthread_join(threads[i], NULL);
    pthread_barrier_destroy(&together);
    leat_session_close(s);
    leat_graph_free(g);
}

static void same_signature(void)
{
    run_together(false);
}

/* A failed compilation is not kept: each run that needs the plan gets the error, now and later. */
static void same_failure(void)
{
    run_together(true);
}

int main(int argc, char **argv)
{
    return RUN(argc, argv, {"same_signature", same_signature}, {"same_failure", same_failure});
}
