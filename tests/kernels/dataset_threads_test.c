/* dataset_threads_test.c -- iterators under load: many threads, steps that are cancelled or late,
 * sessions that are closed while stages work ahead, positions saved meanwhile. */
#include "dataset_graph.h"

#include <unistd.h>

static void twice(leat_graph *g, void *arg, const leat_out *in, leat_out *out)
{
    out[0] = leat_mul(in[0], number(g, 2));
}

/* Waits for an element of a queue that gets none until somebody puts one. */
static leat_out queue_of(leat_graph *g)
{
    return leat_op(g, "FIFOQueueV2", leat_attr_types("component_types", int64_type, 1),
                   leat_attr_string("shared_name", "input"));
}

static void waits(leat_graph *g, void *arg, const leat_out *in, leat_out *out)
{
    leat_out x = leat_op(g, "QueueDequeueV2", leat_in(queue_of(g)),
                         leat_attr_types("component_types", int64_type, 1));
    out[0] = leat_add(x, in[0]);
}

static void up_to_100(leat_graph *g, void *arg, const leat_out *in, leat_out *out)
{
    out[0] = map(g, range(g, 100), "Twice");
}

static leat_graph *graph(void)
{
    leat_graph *g = leat_graph_new();
    leat_function_define(g, "Twice", twice, NULL, 1, LEAT_INT64);
    leat_function_define(g, "Waits", waits, NULL, 1, LEAT_INT64);
    leat_function_define(g, "UpTo100", up_to_100, NULL, 1, LEAT_INT64);
    return g;
}

/* A pipeline with all that works ahead. */
static leat_out busy_dataset(leat_graph *g)
{
    leat_out d = DATASET("ParallelInterleaveDatasetV2", leat_in(range(g, 20)), leat_ins(NULL, 0),
                         leat_in(number(g, 4)), leat_in(number(g, 3)), leat_in(number(g, 4)),
                         leat_attr_func("f", "UpTo100"));
    d = parallel_map(g, d, "Twice", 8);
    d = counted(g, "RepeatDataset", counted(g, "PrefetchDataset", d, 5), -1);
    return counted(g, "PrefetchDataset", d, -1);
}

/* ---- Many threads ---- */

typedef struct reading {
    const elements *e;
    int64_t sum, n;
} reading;

static void *read_all(void *arg)
{
    reading *r = arg;
    for (;;) {
        leat_tensor *t = NULL;
        leat_status s = get(r->e, &t);
        if (s) {
            CHECK_INT(leat_status_code(s), LEAT_OUT_OF_RANGE);
            leat_status_free(s);
            return NULL;
        }
        r->sum += *(const int64_t *)leat_tensor_data(t);
        r->n++;
        leat_tensor_unref(t);
    }
}

static void many_threads(void)
{
    enum { THREADS = 4, N = 500 };
    leat_graph *g = graph();
    elements e =
        elements_of(g, counted(g, "PrefetchDataset", parallel_map(g, range(g, N), "Twice", 4), 3));
    CHECK_OK(begin(&e));
    pthread_t threads[THREADS];
    reading r[THREADS] = {{0}};
    int64_t sum = 0, n = 0;
    for (int i = 0; i < THREADS; i++) {
        r[i].e = &e;
        pthread_create(&threads[i], NULL, read_all, &r[i]);
    }
    for (int i = 0; i < THREADS; i++) {
        pthread_join(threads[i], NULL);
        sum += r[i].sum;
        n += r[i].n;
    }
    CHECK_INT((int)n, N);
    CHECK_INT((int)sum, N * (N - 1));
    close_elements(&e);
}

/* ---- Steps that end before their element is there ---- */

static leat_status put(const elements *e, leat_out enqueue)
{
    return leat_session_run(e->s, LEAT_NO_FEED, LEAT_NO_FETCH, LEAT_TARGET(enqueue));
}

/* The step ends at its deadline; the element comes to the next step that asks. */
static void late(leat_out (*wrap)(leat_graph *g, leat_out d))
{
    leat_graph *g = graph();
    leat_out value = number(g, 50);
    leat_out enqueue = leat_op(g, "QueueEnqueueV2", leat_in(queue_of(g)), leat_ins(&value, 1));
    elements e = elements_of(g, wrap(g, map(g, range(g, 3), "Waits")));
    leat_tensor *t = NULL;
    CHECK_OK(begin(&e));
    CHECK_ERROR(leat_session_run_with(e.s, &(leat_run_options){.timeout_ms = 30}, LEAT_NO_FEED,
                                      LEAT_FETCH({e.next, &t}), LEAT_NO_TARGET),
                DEADLINE_EXCEEDED, "");
    char text[64] = "";
    CHECK_OK(put(&e, enqueue));
    CHECK_OK(put(&e, enqueue));
    read_some(&e, 2, text, sizeof(text));
    CHECK_STR(text, "50 51");
    close_elements(&e); /* while nothing, or with a stage the third call, is under way */
}

static leat_out as_it_is(leat_graph *g, leat_out d)
{
    return d;
}

static leat_out prefetched(leat_graph *g, leat_out d)
{
    return counted(g, "PrefetchDataset", d, 2);
}

static void deadlines(void)
{
    late(as_it_is);
    late(prefetched);
}

typedef struct waiting {
    const elements *e;
    leat_cancellation *c;
    leat_status s;
} waiting;

static void *wait_for_element(void *arg)
{
    waiting *w = arg;
    leat_tensor *t = NULL;
    w->s = leat_session_run_with(w->e->s, &(leat_run_options){.cancellation = w->c}, LEAT_NO_FEED,
                                 LEAT_FETCH({w->e->next, &t}), LEAT_NO_TARGET);
    leat_tensor_unref(t);
    return NULL;
}

/* A function is in the middle of its call: cancelling the step, or closing the session, ends it. */
static void cancelled_in_map(bool close)
{
    leat_graph *g = graph();
    elements e = elements_of(g, parallel_map(g, range(g, 9), "Waits", 3));
    waiting w = {&e, leat_cancellation_new(), NULL};
    pthread_t thread;
    CHECK_OK(begin(&e));
    pthread_create(&thread, NULL, wait_for_element, &w);
    usleep(20000);
    if (close) {
        leat_session_close(e.s);
        pthread_join(thread, NULL);
    } else {
        leat_cancel_runs(w.c);
        pthread_join(thread, NULL);
        leat_session_close(e.s);
    }
    CHECK_ERROR(w.s, CANCELLED, "");
    leat_cancellation_free(w.c);
    leat_graph_free(g);
}

static void cancellation(void)
{
    cancelled_in_map(false);
    cancelled_in_map(true);
}

static void cancelled_whole(void)
{
    leat_graph *g = graph();
    leat_out one = leat_op(g, "DatasetToSingleElement",
                           leat_in(parallel_map(g, range(g, 9), "Waits", 2)), ELEMENTS);
    leat_session *s;
    leat_tensor *t = NULL;
    CHECK_OK(leat_session_open(g, &s));
    CHECK_ERROR(leat_session_run_with(s, &(leat_run_options){.timeout_ms = 30}, LEAT_NO_FEED,
                                      LEAT_FETCH({one, &t}), LEAT_NO_TARGET),
                DEADLINE_EXCEEDED, "");
    leat_session_close(s);
    leat_graph_free(g);
}

/* ---- Closing while stages work ---- */

static void closing(void)
{
    for (int i = 0; i < 20; i++) {
        leat_graph *g = graph();
        elements e = elements_of(g, busy_dataset(g));
        char text[4096] = "";
        CHECK_OK(begin(&e));
        read_some(&e, i * 3, text, sizeof(text));
        if (i % 3 == 0)
            CHECK_OK(begin(&e)); /* The first iteration is closed by the second. */
        close_elements(&e);
    }
}

/* A stage is dropped in the middle of its work: its input has been taken from. */
static void dropped(void)
{
    leat_graph *g = graph();
    leat_out d = counted(g, "PrefetchDataset", parallel_map(g, range(g, 1000), "Twice", 4), 10);
    elements e = elements_of(g, counted(g, "RepeatDataset", counted(g, "TakeDataset", d, 2), 50));
    char text[2048] = "", want[2048] = "";
    for (int i = 0; i < 50; i++)
        strcat(want, "0 2 ");
    strcat(want, "END");
    CHECK_OK(begin(&e));
    read_some(&e, 200, text, sizeof(text));
    CHECK_STR(text, want);
    close_elements(&e);
}

/* ---- Positions while stages work ---- */

static void saving(void)
{
    leat_graph *g = graph();
    elements e = elements_of(g, busy_dataset(g)), plain = elements_of(g, busy_dataset(g));
    CHECK_OK(begin(&e));
    CHECK_OK(begin(&plain));
    for (int i = 0; i < 15; i++) {
        leat_tensor *position = NULL;
        char text[512] = "", want[512] = "";
        CHECK_OK(leat_session_run(e.s, LEAT_NO_FEED, LEAT_FETCH({e.position, &position}),
                                  LEAT_NO_TARGET));
        read_some(&e, 4, text, sizeof(text)); /* lost: */
        CHECK_OK(leat_session_run(e.s, LEAT_FEED({e.saved, position}), LEAT_NO_FETCH,
                                  LEAT_TARGET(e.restore)));
        text[0] = 0;
        read_some(&e, 40, text, sizeof(text));
        read_some(&plain, 40, want, sizeof(want));
        CHECK_STR(text, want);
        leat_tensor_unref(position);
    }
    leat_session_close(plain.s);
    close_elements(&e);
}

int main(int argc, char **argv)
{
    return RUN(argc, argv, {"many_threads", many_threads}, {"deadlines", deadlines},
               {"cancellation", cancellation}, {"cancelled_whole", cancelled_whole},
               {"closing", closing}, {"dropped", dropped}, {"saving", saving});
}
