/* multi_device_test.c -- MultiDeviceIterator: elements dealt out to shards, incarnations, errors,
 * kernels that wait; and iterators that are found by strings alone. */
#include "dataset_graph.h"

#include <unistd.h>

static void fails_at_3(leat_graph *g, void *arg, const leat_out *in, leat_out *out)
{
    /* 0 for 3, else 1 */
    leat_out differs =
        leat_cast(leat_op(g, "NotEqual", leat_in(in[0]), leat_in(number(g, 3))), LEAT_INT64);
    out[0] = leat_op(g, "FloorDiv", leat_in(in[0]), leat_in(differs));
}

static leat_out queue_of(leat_graph *g)
{
    return leat_op(g, "FIFOQueueV2", leat_attr_types("component_types", int64_type, 1),
                   leat_attr_string("shared_name", "input"));
}

/* Waits for an element of a queue that gets none. */
static void waits(leat_graph *g, void *arg, const leat_out *in, leat_out *out)
{
    leat_out x = leat_op(g, "QueueDequeueV2", leat_in(queue_of(g)),
                         leat_attr_types("component_types", int64_type, 1));
    out[0] = leat_add(x, in[0]);
}

/* A multi-device iterator of `shards` shards, in a session. */
typedef struct dealt {
    leat_graph *g;
    leat_session *s;
    leat_out most, init, shard, id, next;
    int64_t now; /* the incarnation that begin has made */
} dealt;

static leat_graph *graph(void)
{
    leat_graph *g = leat_graph_new();
    leat_function_define(g, "FailsAt3", fails_at_3, NULL, 1, LEAT_INT64);
    leat_function_define(g, "Waits", waits, NULL, 1, LEAT_INT64);
    return g;
}

static dealt dealt_of(leat_graph *g, leat_out dataset, int shards)
{
    static const char *const devices[] = {"/cpu:0", "/cpu:0", "/cpu:0", "/cpu:0"};
    dealt e = {.g = g};
    leat_out handle = leat_op(g, "MultiDeviceIterator", leat_attr_string("shared_name", ""),
                              leat_attr_string("container", ""),
                              leat_attr_strings("devices", devices, shards), ELEMENTS);
    e.most = leat_placeholder(g, LEAT_INT64, leat_shape());
    e.init =
        leat_op(g, "MultiDeviceIteratorInit", leat_in(dataset), leat_in(handle), leat_in(e.most));
    e.shard = leat_placeholder(g, LEAT_INT32, leat_shape());
    e.id = leat_placeholder(g, LEAT_INT64, leat_shape());
    leat_out text = leat_op(g, "MultiDeviceIteratorToStringHandle", leat_in(handle));
    leat_out again = leat_op(g, "MultiDeviceIteratorFromStringHandle", leat_in(text), ELEMENTS);
    e.next = leat_op(g, "MultiDeviceIteratorGetNextFromShard", leat_in(again), leat_in(e.shard),
                     leat_in(e.id), ELEMENTS);
    CHECK_OK(leat_graph_status(g));
    CHECK_OK(leat_session_open(g, &e.s));
    return e;
}

static leat_status deal(dealt *e, int64_t most)
{
    leat_tensor *m = leat_scalar_int64(most), *id = NULL;
    leat_status s =
        leat_session_run(e->s, LEAT_FEED({e->most, m}), LEAT_FETCH({e->init, &id}), LEAT_NO_TARGET);
    if (!s)
        e->now = *(const int64_t *)leat_tensor_data(id);
    leat_tensor_unref(m);
    leat_tensor_unref(id);
    return s;
}

static leat_status get_of(const dealt *e, int shard, int64_t id, int timeout_ms, leat_tensor **out)
{
    leat_tensor *n = leat_scalar_int32(shard), *i = leat_scalar_int64(id);
    leat_status s = leat_session_run_with(e->s, &(leat_run_options){.timeout_ms = timeout_ms},
                                          LEAT_FEED({e->shard, n}, {e->id, i}),
                                          LEAT_FETCH({e->next, out}), LEAT_NO_TARGET);
    leat_tensor_unref(n);
    leat_tensor_unref(i);
    return s;
}

/* The next element of a shard; -1 at the end, -2 after an error. */
static int64_t value_of(const dealt *e, int shard)
{
    leat_tensor *t = NULL;
    leat_status s = get_of(e, shard, e->now, 0, &t);
    int64_t x = s ? leat_status_code(s) == LEAT_OUT_OF_RANGE ? -1 : -2
                  : *(const int64_t *)leat_tensor_data(t);
    leat_status_free(s);
    leat_tensor_unref(t);
    return x;
}

static void close_dealt(dealt *e)
{
    leat_session_close(e->s);
    leat_graph_free(e->g);
}

/* ---- Cases ---- */

static void values(void)
{
    leat_graph *g = graph();
    dealt e = dealt_of(g, range(g, 11), 3);
    for (int round = 1; round <= 2; round++) {
        CHECK_OK(deal(&e, 1));
        CHECK_INT(e.now, round);
        for (int i = 0; i < 11; i++)
            CHECK_INT(value_of(&e, i % 3), i);
        for (int i = 0; i < 6; i++)
            CHECK_INT(value_of(&e, i % 3), -1);
    }
    close_dealt(&e);
}

/* A shard may be that many elements ahead of the others, and no more. */
static void ahead(void)
{
    leat_graph *g = graph();
    dealt e = dealt_of(g, range(g, 100), 2);
    leat_tensor *t = NULL;
    CHECK_OK(deal(&e, 4));
    for (int i = 0; i < 5; i++)
        CHECK_INT(value_of(&e, 0), 2 * i);
    CHECK_ERROR(get_of(&e, 0, e.now, 30, &t), DEADLINE_EXCEEDED, "");
    for (int i = 0; i < 6; i++)
        CHECK_INT(value_of(&e, 1), 2 * i + 1);
    CHECK_INT(value_of(&e, 0), 10); /* The step that was too late has lost nothing. */
    close_dealt(&e);
}

/* An element that fails belongs to its shard; the others go on. */
static void errors(void)
{
    leat_graph *g = graph();
    dealt e = dealt_of(g, map(g, range(g, 6), "FailsAt3"), 2);
    static const int64_t want[] = {0, 1, 2, -2, 4, 5, -1, -1};
    CHECK_OK(deal(&e, 2));
    for (int i = 0; i < 8; i++)
        CHECK_INT(value_of(&e, i % 2), want[i]);
    CHECK_OK(deal(&e, 2));
    leat_tensor *t = NULL;
    CHECK_INT(value_of(&e, 1), 1);
    CHECK_ERROR(get_of(&e, 1, e.now, 0, &t), INVALID_ARGUMENT, "element 3]]");
    close_dealt(&e);
}

static void refused(void)
{
    leat_graph *g = graph();
    dealt e = dealt_of(g, range(g, 6), 2);
    leat_tensor *t = NULL;
    CHECK_ERROR(get_of(&e, 0, 1, 0, &t), FAILED_PRECONDITION, "has not been initialized");
    CHECK_ERROR(deal(&e, 0), INVALID_ARGUMENT, "max_buffer_size is 0, must be at least 1");
    CHECK_ERROR(deal(&e, -1), INVALID_ARGUMENT, "max_buffer_size is -1, must be at least 1");
    CHECK_OK(deal(&e, INT64_MAX));
    CHECK_ERROR(get_of(&e, 2, e.now, 0, &t), INVALID_ARGUMENT,
                "shard_num is 2, but the iterator has 2 devices");
    CHECK_ERROR(get_of(&e, -1, e.now, 0, &t), INVALID_ARGUMENT,
                "shard_num is -1, but the iterator has 2 devices");
    CHECK_ERROR(get_of(&e, 0, 7, 0, &t), INVALID_ARGUMENT,
                "Invalid incarnation id. Provided: 7; Expected: 1");
    CHECK_INT(value_of(&e, 1), 1);
    leat_session_close(e.s);
    leat_graph_free(g);

    /* The dataset has other elements than the iterator. */
    g = graph();
    leat_out truth = yes(g, true);
    leat_out bools = leat_op(g, "TensorDataset", leat_ins(&truth, 1),
                             leat_attr_shapes("output_shapes", (leat_shape[]){leat_shape()}, 1));
    e = dealt_of(g, bools, 2);
    CHECK_ERROR(deal(&e, 1), INVALID_ARGUMENT,
                "Data type mismatch at component 0: expected int64 but got bool.");
    close_dealt(&e);
}

/* ---- Threads ---- */

typedef struct waiting {
    const dealt *e;
    int shard;
    int64_t id, sum;
    leat_status s;
} waiting;

static void *wait_for_element(void *arg)
{
    waiting *w = arg;
    leat_tensor *t = NULL;
    w->s = get_of(w->e, w->shard, w->id, 0, &t);
    leat_tensor_unref(t);
    return NULL;
}

/* Kernels that wait end when the iterator is initialised again, or the session is closed. */
static void ended_while_waiting(bool close)
{
    leat_graph *g = graph();
    dealt e = dealt_of(g, map(g, range(g, 6), "Waits"), 2);
    CHECK_OK(deal(&e, 1));
    waiting w[2] = {{&e, 0, e.now, 0, NULL}, {&e, 1, e.now, 0, NULL}};
    pthread_t threads[2];
    for (int i = 0; i < 2; i++)
        pthread_create(&threads[i], NULL, wait_for_element, &w[i]);
    usleep(20000);
    if (close)
        leat_session_close(e.s);
    else
        CHECK_OK(deal(&e, 1));
    for (int i = 0; i < 2; i++) {
        pthread_join(threads[i], NULL);
        /* One that came late has the id of the incarnation before. */
        if (leat_status_code(w[i].s) == LEAT_INVALID_ARGUMENT && !close)
            leat_status_free(w[i].s);
        else
            CHECK_ERROR(w[i].s, CANCELLED, "");
    }
    if (!close)
        leat_session_close(e.s);
    leat_graph_free(g);
}

static void cancellation(void)
{
    ended_while_waiting(false);
    ended_while_waiting(true);
}

static void *read_shard(void *arg)
{
    waiting *w = arg;
    for (int64_t x; (x = value_of(w->e, w->shard)) >= 0;) {
        CHECK_INT(x % 4, w->shard);
        w->sum += x;
    }
    return NULL;
}

/* All shards are read at once; the input works ahead, too. */
static void many_threads(void)
{
    enum { N = 400, SHARDS = 4 };
    leat_graph *g = graph();
    dealt e = dealt_of(g, counted(g, "PrefetchDataset", range(g, N), 3), SHARDS);
    for (int64_t most = 1; most < 4; most++) {
        waiting w[SHARDS] = {{0}};
        pthread_t threads[SHARDS];
        int64_t sum = 0;
        CHECK_OK(deal(&e, most));
        for (int i = 0; i < SHARDS; i++) {
            w[i] = (waiting){.e = &e, .shard = i};
            pthread_create(&threads[i], NULL, read_shard, &w[i]);
        }
        for (int i = 0; i < SHARDS; i++) {
            pthread_join(threads[i], NULL);
            sum += w[i].sum;
        }
        CHECK_INT(sum, N * (N - 1) / 2);
    }
    close_dealt(&e);
}

/* Sessions and incarnations end while the background works. */
static void closing(void)
{
    for (int i = 0; i < 20; i++) {
        leat_graph *g = graph();
        leat_out d = counted(g, "PrefetchDataset", map(g, range(g, 1000), "FailsAt3"), 2);
        dealt e = dealt_of(g, d, 2);
        for (int round = 0; round < 3; round++) {
            CHECK_OK(deal(&e, 100));
            CHECK_INT(value_of(&e, i % 2), i % 2);
        }
        close_dealt(&e);
    }
}

/* ---- Iterators that are found by strings alone ---- */

/* The string of an anonymous iterator over 0 1 2 is all that the steps after the first one have. */
static void by_string(void)
{
    leat_graph *g = graph();
    leat_session *s;
    leat_out handle = leat_op(g, "AnonymousIterator", ELEMENTS);
    leat_out init = leat_op(g, "MakeIterator", leat_in(range(g, 3)), leat_in(handle));
    leat_out text = leat_op(g, "IteratorToStringHandle", leat_in(handle));
    leat_out given = leat_placeholder(g, LEAT_STRING, leat_shape());
    leat_out again = leat_op(g, "IteratorFromStringHandleV2", leat_in(given), ELEMENTS);
    leat_out next = leat_op(g, "IteratorGetNext", leat_in(again), ELEMENTS);
    leat_out destroy = leat_op(g, "DestroyResourceOp", leat_in(again),
                               leat_attr_bool("ignore_lookup_error", false));
    leat_tensor *string[2] = {NULL}, *t = NULL;
    CHECK_OK(leat_graph_status(g));
    CHECK_OK(leat_session_open(g, &s));
    for (int i = 0; i < 2; i++)
        CHECK_OK(
            leat_session_run(s, LEAT_NO_FEED, LEAT_FETCH({text, &string[i]}), LEAT_TARGET(init)));
    for (int64_t x = 0; x < 3; x++)
        for (int i = 0; i < 2; i++) {
            CHECK_OK(leat_session_run(s, LEAT_FEED({given, string[i]}), LEAT_FETCH({next, &t}),
                                      LEAT_NO_TARGET));
            CHECK_INT(*(const int64_t *)leat_tensor_data(t), x);
            leat_tensor_unref(t);
        }
    CHECK_OK(
        leat_session_run(s, LEAT_FEED({given, string[0]}), LEAT_NO_FETCH, LEAT_TARGET(destroy)));
    CHECK_ERROR(
        leat_session_run(s, LEAT_FEED({given, string[0]}), LEAT_FETCH({next, &t}), LEAT_NO_TARGET),
        NOT_FOUND, "does not exist");
    leat_tensor_unref(string[0]);
    leat_tensor_unref(string[1]);
    leat_session_close(s); /* ends the iterator that was not destroyed */
    leat_graph_free(g);
}

int main(int argc, char **argv)
{
    return RUN(argc, argv, {"values", values}, {"ahead", ahead}, {"errors", errors},
               {"refused", refused}, {"cancellation", cancellation}, {"many_threads", many_threads},
               {"closing", closing}, {"by_string", by_string});
}
