/* queue_test.c -- queues: what comes out and in what order, the words of errors, who waits and how
 * that ends. Orders of shuffling and priority queues are TensorFlow 1.15's. */
#include <leat/leat.h>
#include <pthread.h>
#include <unistd.h>

#include "core/buffer.h"
#include "test.h"

typedef struct fixture {
    leat_graph *g;
    leat_session *s;
} fixture;

static fixture begin(void)
{
    return (fixture){.g = leat_graph_new()};
}

static void open_session(fixture *f)
{
    CHECK_OK(leat_graph_status(f->g));
    CHECK_OK(leat_session_open(f->g, &f->s));
}

static void end(fixture *f)
{
    leat_session_close(f->s);
    leat_graph_free(f->g);
}

static leat_status run(leat_session *s, leat_out target)
{
    return leat_session_run(s, LEAT_NO_FEED, LEAT_NO_FETCH, LEAT_TARGET(target));
}

/* A run that must not wait. */
static leat_status try_run(leat_session *s, leat_out target)
{
    leat_run_options o = {.timeout_ms = 30};
    return leat_session_run_with(s, &o, LEAT_NO_FEED, LEAT_NO_FETCH, LEAT_TARGET(target));
}

static void check_values(leat_session *s, leat_out x, const char *want)
{
    leat_tensor *t = NULL;
    CHECK_OK(leat_session_run(s, LEAT_NO_FEED, LEAT_FETCH({x, &t}), LEAT_NO_TARGET));
    char *text = t ? leat_tensor_text(t, -1) : NULL;
    CHECK_STR(text, want);
    free(text);
    leat_tensor_unref(t);
}

static leat_status fetch(leat_session *s, leat_out x)
{
    leat_tensor *t = NULL;
    leat_status st = leat_session_run(s, LEAT_NO_FEED, LEAT_FETCH({x, &t}), LEAT_NO_TARGET);
    leat_tensor_unref(t);
    return st;
}

static leat_out ints(leat_graph *g, int n, const int *v)
{
    int64_t wide[32];
    for (int i = 0; i < n; i++)
        wide[i] = v[i];
    return leat_int_vector_at(LEAT_AT, g, LEAT_INT32, wide, n);
}
#define INTS(g, ...)                                                                               \
    ints(g, (int)(sizeof((int[]){__VA_ARGS__}) / sizeof(int)), (int[]){__VA_ARGS__})
#define SCALARS LEAT_COMPONENTS({LEAT_INT32, leat_shape()})

/* ---- Values ---- */

static void fifo(void)
{
    fixture f = begin();
    leat_out q = leat_fifo_queue(
        f.g, 10, LEAT_COMPONENTS({LEAT_INT32, leat_shape()}, {LEAT_INT32, leat_shape(2)}));
    leat_out put = leat_enqueue(q, leat_scalar(f.g, LEAT_INT32, 7), INTS(f.g, 1, 2));
    leat_out rows = leat_reshape_to(INTS(f.g, 10, 11, 20, 21, 30, 31), leat_shape(3, 2));
    leat_out puts = leat_enqueue_many(q, INTS(f.g, 1, 2, 3), rows);
    leat_out one = leat_dequeue(q), two = leat_dequeue_many(q, 2), none = leat_dequeue_many(q, 0);
    leat_out size = leat_queue_size(q), closed = leat_queue_is_closed(q);
    leat_out close = leat_queue_close(q), rest = leat_dequeue_up_to(q, 5);
    CHECK_INT(leat_out_shape(leat_output(two, 1)).dim[0], 2);
    CHECK_INT(leat_out_shape(leat_output(rest, 1)).dim[0], -1);
    CHECK_INT(leat_out_shape(leat_output(one, 1)).rank, 1);
    open_session(&f);
    check_values(f.s, size, "0");
    CHECK_OK(run(f.s, put));
    CHECK_OK(run(f.s, puts));
    check_values(f.s, size, "4");
    leat_tensor *a = NULL, *b = NULL;
    CHECK_OK(leat_session_run(f.s, LEAT_NO_FEED, LEAT_FETCH({one, &a}, {leat_output(one, 1), &b}),
                              LEAT_NO_TARGET));
    CHECK_NEAR(leat_tensor_at(a, 0), 7, 0);
    CHECK_NEAR(leat_tensor_at(b, 1), 2, 0);
    leat_tensor_unref(a);
    leat_tensor_unref(b);
    check_values(f.s, leat_output(two, 1), "[[10 11][20 21]]");
    check_values(f.s, leat_output(none, 1), "[]");
    check_values(f.s, closed, "0");
    CHECK_OK(run(f.s, close));
    check_values(f.s, closed, "1");
    CHECK_ERROR(run(f.s, two), OUT_OF_RANGE,
                "FIFOQueue 'fifo_queue' is closed and has insufficient elements (requested 2, "
                "current size 1)");
    check_values(f.s, leat_output(rest, 1), "[[30 31]]");
    CHECK_ERROR(run(f.s, rest), OUT_OF_RANGE, "(requested 5, current size 0)");
    CHECK_ERROR(run(f.s, one), OUT_OF_RANGE, "(requested 1, current size 0)");
    CHECK_ERROR(run(f.s, put), CANCELLED, "FIFOQueue 'fifo_queue' is closed.");
    CHECK_ERROR(run(f.s, puts), CANCELLED, "FIFOQueue 'fifo_queue' is closed.");
    CHECK_ERROR(run(f.s, close), CANCELLED, "Queue 'fifo_queue' is already closed.");
    end(&f);
}

/* The ops of old, with references to [container, name]. */
static void by_reference(void)
{
    fixture f = begin();
    leat_dtype types[] = {LEAT_INT32};
    leat_shape shapes[] = {leat_shape()};
    leat_out q = leat_op(f.g, "FIFOQueue", leat_attr_types("component_types", types, 1),
                         leat_attr_shapes("shapes", shapes, 1),
                         leat_attr_string("shared_name", "s"), leat_attr_string("container", "c"));
    leat_out x = INTS(f.g, 4, 5, 6);
    leat_out puts = leat_op(f.g, "QueueEnqueueMany", leat_in(q), leat_ins(&x, 1));
    leat_out n = leat_scalar(f.g, LEAT_INT32, 2);
    leat_out take = leat_op(f.g, "QueueDequeueMany", leat_in(q), leat_in(n),
                            leat_attr_types("component_types", types, 1));
    leat_out one =
        leat_op(f.g, "QueueDequeue", leat_in(q), leat_attr_types("component_types", types, 1));
    leat_out again =
        leat_op(f.g, "QueueDequeue", leat_in(q), leat_attr_types("component_types", types, 1));
    leat_out size = leat_op(f.g, "QueueSize", leat_in(q));
    open_session(&f);
    check_values(f.s, q, "[c s]");
    CHECK_OK(run(f.s, puts));
    check_values(f.s, take, "[4 5]");
    check_values(f.s, size, "1");
    CHECK_OK(run(f.s, puts));
    leat_tensor *a = NULL, *b = NULL; /* two ops that look the same take two elements */
    CHECK_OK(
        leat_session_run(f.s, LEAT_NO_FEED, LEAT_FETCH({one, &a}, {again, &b}), LEAT_NO_TARGET));
    CHECK_NEAR(leat_tensor_at(a, 0) + leat_tensor_at(b, 0), 6 + 4, 0);
    leat_tensor_unref(a);
    leat_tensor_unref(b);
    end(&f);
}

static void strings(void)
{
    fixture f = begin();
    leat_out q = leat_fifo_queue(f.g, 0, LEAT_COMPONENTS({LEAT_STRING, leat_shape()}));
    leat_tensor *t = NULL;
    CHECK_OK(leat_tensor_new(LEAT_STRING, leat_shape(3), &t));
    for (int i = 0; i < 3; i++)
        CHECK(leat_string_set(&((leat_string *)leat_tensor_mutable(t))[i], "abc", (size_t)i + 1));
    leat_out puts = leat_enqueue_many(q, leat_const(f.g, t));
    leat_tensor_unref(t);
    leat_out one = leat_dequeue(q), two = leat_dequeue_many(q, 2);
    open_session(&f);
    CHECK_OK(run(f.s, puts));
    check_values(f.s, one, "a");
    check_values(f.s, two, "[ab abc]");
    end(&f);
}

static void padding(void)
{
    fixture f = begin();
    leat_out q = leat_padding_fifo_queue(
        f.g, 10, LEAT_COMPONENTS({LEAT_INT32, leat_shape(-1, 2)}, {LEAT_INT32, leat_shape(-1)}));
    leat_out none = INTS(f.g, 1), sizes[] = {INTS(f.g, 1, 2), INTS(f.g, 1, 2, 3, 4, 5, 6)};
    leat_out empty = leat_slice(none, INTS(f.g, 0), INTS(f.g, 0));
    leat_out puts[] = {
        leat_enqueue(q, leat_reshape_to(sizes[0], leat_shape(1, 2)), INTS(f.g, 8, 9)),
        leat_enqueue(q, leat_reshape_to(sizes[1], leat_shape(3, 2)), empty),
        leat_enqueue(q, leat_reshape_to(sizes[0], leat_shape(1, 2)), INTS(f.g, 7))};
    leat_out batch = leat_dequeue_many(q, 3), zero = leat_dequeue_many(q, 0);
    leat_out fed = leat_placeholder(f.g, LEAT_INT32, leat_shape_unknown());
    leat_out bad = leat_enqueue(q, fed, fed);
    open_session(&f);
    for (int i = 0; i < 3; i++)
        CHECK_OK(run(f.s, puts[i]));
    leat_tensor *a = NULL, *b = NULL;
    CHECK_OK(leat_session_run(
        f.s, LEAT_NO_FEED, LEAT_FETCH({batch, &a}, {leat_output(batch, 1), &b}), LEAT_NO_TARGET));
    char *text = leat_tensor_text(a, -1), *text2 = leat_tensor_text(b, -1);
    CHECK_STR(text, "[[[1 2][0 0][0 0]][[1 2][3 4][5 6]][[1 2][0 0][0 0]]]");
    CHECK_STR(text2, "[[8 9][0 0][7 0]]");
    free(text);
    free(text2);
    leat_tensor_unref(a);
    leat_tensor_unref(b);
    CHECK_OK(leat_session_run(f.s, LEAT_NO_FEED, LEAT_FETCH({zero, &a}), LEAT_NO_TARGET));
    CHECK_INT(leat_tensor_dim(a, 1), 0);
    CHECK_INT(leat_tensor_dim(a, 2), 2);
    leat_tensor_unref(a);
    CHECK_OK(leat_tensor_new(LEAT_INT32, leat_shape(2, 3), &a));
    CHECK_ERROR(leat_session_run(f.s, LEAT_FEED({fed, a}), LEAT_NO_FETCH, LEAT_TARGET(bad)),
                INVALID_ARGUMENT, "Shape mismatch in tuple component 0. Expected [?,2], got [2,3]");
    leat_tensor_unref(a);
    end(&f);
}

static void priority(void)
{
    fixture f = begin();
    int64_t order[] = {3, 1, 2, 3, 1, 2, 0, 3, 1, 0, 2, 0};
    leat_out q = leat_priority_queue(f.g, 100, SCALARS);
    leat_out puts = leat_enqueue_many(q, leat_int_vector_at(LEAT_AT, f.g, LEAT_INT64, order, 12),
                                      INTS(f.g, 0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11));
    leat_out one = leat_output(leat_dequeue(q), 1), five = leat_dequeue_many(q, 5);
    leat_out many = leat_dequeue_up_to(q, 50), close = leat_queue_close(q);
    open_session(&f);
    CHECK_OK(run(f.s, puts));
    const char *want[] = {"6", "11", "9", "1", "4", "8", "2"};
    for (int i = 0; i < 7; i++)
        check_values(f.s, one, want[i]);
    check_values(f.s, leat_output(five, 1), "[5 10 0 7 3]");
    CHECK_OK(run(f.s, puts));
    CHECK_OK(run(f.s, close));
    check_values(f.s, many, "[0 0 0 1 1 1 2 2 2 3 3 3]");
    CHECK_ERROR(run(f.s, many), OUT_OF_RANGE, "PriorityQueue 'priority_queue' is closed and has");
    end(&f);
}

static void shuffled(void)
{
    fixture f = begin();
    leat_out q = leat_random_shuffle_queue(f.g, 20, 5, SCALARS, .seed = 7);
    leat_out puts =
        leat_enqueue_many(q, INTS(f.g, 0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15));
    leat_out one = leat_dequeue(q), four = leat_dequeue_many(q, 4), rest = leat_dequeue_up_to(q, 9);
    leat_out close = leat_queue_close(q);
    open_session(&f);
    CHECK_OK(run(f.s, puts));
    const char *want[] = {"7", "15", "9", "4", "12"};
    for (int i = 0; i < 5; i++)
        check_values(f.s, one, want[i]);
    check_values(f.s, four, "[3 0 6 11]");
    CHECK_OK(run(f.s, one));
    CHECK_OK(run(f.s, one));
    CHECK_ERROR(try_run(f.s, one), DEADLINE_EXCEEDED, "random_shuffle_queue_Dequeue");
    CHECK_OK(run(f.s, close));
    check_values(f.s, leat_queue_size(q), "5");
    CHECK_OK(run(f.s, rest));
    end(&f);
}

/* ---- Errors ---- */

static leat_status feed(leat_session *s, leat_out x, leat_tensor *t, leat_out target)
{
    leat_status st = leat_session_run(s, LEAT_FEED({x, t}), LEAT_NO_FETCH, LEAT_TARGET(target));
    leat_tensor_unref(t);
    return st;
}

static leat_tensor *tensor_of(leat_dtype t, leat_shape s)
{
    leat_tensor *x = NULL;
    CHECK_OK(leat_tensor_new(t, s, &x));
    return x;
}

static void bad_shapes(void)
{
    fixture f = begin();
    leat_out q = leat_fifo_queue(f.g, 10, LEAT_COMPONENTS({LEAT_INT32, leat_shape(3, 3)}));
    leat_out any = leat_fifo_queue(f.g, 10, LEAT_COMPONENTS({LEAT_INT32, leat_shape_unknown()}));
    leat_out x = leat_placeholder(f.g, LEAT_INT32, leat_shape_unknown());
    leat_out put = leat_enqueue(q, x), puts = leat_enqueue_many(q, x);
    leat_out n = leat_placeholder(f.g, LEAT_INT32, leat_shape_unknown());
    leat_dtype types[] = {LEAT_INT32, LEAT_FLOAT};
    leat_out take = leat_op(f.g, "QueueDequeueManyV2", leat_in(q), leat_in(n),
                            leat_attr_types("component_types", types, 1));
    leat_out up_to = leat_op(f.g, "QueueDequeueUpToV2", leat_in(q), leat_in(n),
                             leat_attr_types("component_types", types, 1));
    leat_out other =
        leat_op(f.g, "QueueDequeueV2", leat_in(q), leat_attr_types("component_types", types, 2));
    leat_out two[] = {x, leat_scalar(f.g, LEAT_FLOAT, 1)};
    leat_out put2 = leat_op(f.g, "QueueEnqueueV2", leat_in(q), leat_ins(two, 2));
    leat_out timed = leat_op(f.g, "QueueDequeueV2", leat_in(q), leat_attr_int("timeout_ms", 5),
                             leat_attr_types("component_types", types, 1));
    leat_out batch_of_any = leat_dequeue_many(any, 2), many_any = leat_enqueue_many(any, x);
    open_session(&f);
    CHECK_ERROR(feed(f.s, x, tensor_of(LEAT_INT32, leat_shape(3, 4)), put), INVALID_ARGUMENT,
                "Shape mismatch in tuple component 0. Expected [3,3], got [3,4]");
    CHECK_ERROR(feed(f.s, x, tensor_of(LEAT_INT32, leat_shape(2, 3, 4)), puts), INVALID_ARGUMENT,
                "Shape mismatch in tuple component 0. Expected [2,3,3], got [2,3,4]");
    CHECK_ERROR(feed(f.s, x, tensor_of(LEAT_INT32, leat_shape()), puts), INVALID_ARGUMENT,
                "Shape mismatch in tuple component 0.");
    CHECK_ERROR(feed(f.s, x, tensor_of(LEAT_INT32, leat_shape()), many_any), INVALID_ARGUMENT,
                "must have a 0th dimension");
    CHECK_OK(feed(f.s, x, tensor_of(LEAT_INT32, leat_shape(0, 3, 3)), puts));
    CHECK_ERROR(feed(f.s, n, leat_scalar_int32(-3), take), INVALID_ARGUMENT,
                "DequeueManyOp requested -3 < 0 elements");
    CHECK_ERROR(feed(f.s, n, leat_scalar_int32(-3), up_to), INVALID_ARGUMENT,
                "DequeueUpToOp requested -3 < 0 elements");
    CHECK_ERROR(run(f.s, other), INVALID_ARGUMENT,
                "Signature mismatch, have: resource->int32, float expected: resource->int32");
    CHECK_ERROR(feed(f.s, x, tensor_of(LEAT_INT32, leat_shape(3, 3)), put2), INVALID_ARGUMENT,
                "Signature mismatch, have: resource, int32, float-> expected: resource, int32->");
    CHECK_ERROR(run(f.s, timed), INVALID_ARGUMENT, "Timeout not supported yet.");
    CHECK_ERROR(run(f.s, batch_of_any), INVALID_ARGUMENT,
                "FIFOQueue's DequeueMany and DequeueUpTo require the components to have specified "
                "shapes.");
    end(&f);
}

static void mistakes(void)
{
    static const struct {
        int what;
        const char *words;
    } cases[] = {{0, "Type mismatch in tuple component 0. Expected int32, got float"},
                 {1, "Wrong number of components in tuple. Expected 1, got 2"},
                 {2, "Shape mismatch in tuple component 0. Expected [], got [2]"},
                 {3, "Input 'n' must be >= 0, but is -1"},
                 {4, "is not a queue"}};
    for (int i = 0; i < 5; i++) {
        leat_graph *g = leat_graph_new();
        leat_out q = leat_fifo_queue(g, 10, SCALARS), one = leat_scalar(g, LEAT_INT32, 1);
        if (cases[i].what == 0)
            leat_enqueue(q, leat_scalar(g, LEAT_FLOAT, 1));
        else if (cases[i].what == 1)
            leat_enqueue(q, one, one);
        else if (cases[i].what == 2)
            leat_enqueue(q, INTS(g, 1, 2));
        else if (cases[i].what == 3)
            leat_dequeue_many(q, -1);
        else
            leat_dequeue(one);
        CHECK_ERROR(leat_graph_status(g), INVALID_ARGUMENT, cases[i].words);
        leat_graph_free(g);
    }
}

/* Two nodes with one shared_name must agree. */
static void shared(void)
{
    fixture f = begin();
    leat_components c = SCALARS;
    leat_components pairs = LEAT_COMPONENTS({LEAT_INT32, leat_shape()}, {LEAT_INT32, leat_shape()});
    leat_out a = leat_fifo_queue(f.g, 10, c, .shared_name = "q");
    leat_out b = leat_fifo_queue(f.g, 10, c, .shared_name = "q");
    leat_out shape =
        leat_fifo_queue(f.g, 10, LEAT_COMPONENTS({LEAT_INT32, leat_shape(2)}), .shared_name = "q");
    leat_out capacity = leat_fifo_queue(f.g, 9, c, .shared_name = "q");
    leat_out types = leat_fifo_queue(f.g, 10, pairs, .shared_name = "q");
    leat_out kind = leat_priority_queue(f.g, 10, c, .shared_name = "q");
    leat_out s1 = leat_random_shuffle_queue(f.g, 10, 5, c, .shared_name = "s", .seed = 98765432);
    leat_out s2 = leat_random_shuffle_queue(f.g, 10, 6, c, .shared_name = "s");
    leat_out s3 = leat_random_shuffle_queue(f.g, 10, 5, c, .shared_name = "s", .seed = 3);
    leat_out s4 = leat_random_shuffle_queue(f.g, 10, 10, c, .shared_name = "t");
    leat_out name = leat_fifo_queue(f.g, 10, c, .shared_name = "_q");
    leat_out put = leat_enqueue(a, leat_scalar(f.g, LEAT_INT32, 5)), take = leat_dequeue(b);
    open_session(&f);
    CHECK_OK(run(f.s, put));
    check_values(f.s, take, "5");
    CHECK_ERROR(run(f.s, shape), INVALID_ARGUMENT,
                "Shared queue 'q' has component shapes [[]] but requested component shapes were "
                "[[2]]");
    CHECK_ERROR(run(f.s, capacity), INVALID_ARGUMENT,
                "Shared queue 'q' has capacity 10 but requested capacity was 9");
    CHECK_ERROR(run(f.s, types), INVALID_ARGUMENT,
                "Shared queue 'q' has component types int32 but requested component types were "
                "int32, int32");
    CHECK_ERROR(run(f.s, kind), INVALID_ARGUMENT, "Expected FIFOQueue, found PriorityQueueV2");
    CHECK_OK(run(f.s, s1));
    CHECK_ERROR(run(f.s, s2), INVALID_ARGUMENT,
                "Shared queue 's' has min_after_dequeue 5 but requested min_after_dequeue was 6.");
    CHECK_ERROR(run(f.s, s3), INVALID_ARGUMENT, "Shared queue 's' has random seeds (");
    CHECK_ERROR(run(f.s, s4), INVALID_ARGUMENT, "min_after_dequeue 10 must be < capacity 10");
    CHECK_ERROR(run(f.s, name), INVALID_ARGUMENT, "shared_name cannot start with '_'");
    end(&f);
}

/* A handle chosen by an index while the step runs, as Queue.from_list does. */
static void chosen(void)
{
    fixture f = begin();
    leat_out q[] = {leat_fifo_queue(f.g, 10, SCALARS), leat_fifo_queue(f.g, 15, SCALARS)};
    leat_out which = leat_placeholder(f.g, LEAT_INT32, leat_shape());
    leat_out handles = leat_op(f.g, "Pack", leat_ins(q, 2));
    leat_out h = leat_op(f.g, "GatherV2", leat_in(handles), leat_in(which),
                         leat_in(leat_scalar(f.g, LEAT_INT32, 0)));
    leat_out x = leat_scalar(f.g, LEAT_INT32, 3);
    leat_out put = leat_op(f.g, "QueueEnqueueV2", leat_in(h), leat_ins(&x, 1));
    leat_out sizes[] = {leat_queue_size(q[0]), leat_queue_size(q[1])};
    open_session(&f);
    CHECK_OK(feed(f.s, which, leat_scalar_int32(1), put));
    check_values(f.s, sizes[0], "0");
    check_values(f.s, sizes[1], "1");
    CHECK_ERROR(feed(f.s, which, leat_scalar_int32(2), put), INVALID_ARGUMENT, "is not in");
    end(&f);
}

/* ---- Waiting ---- */

typedef struct runner {
    leat_session *s;
    leat_out target;
    leat_cancellation *cancel;
    int times;
    leat_status status;
    pthread_t thread;
} runner;

static void *runner_main(void *arg)
{
    runner *r = arg;
    leat_run_options o = {.cancellation = r->cancel};
    for (int i = 0; i < r->times && !r->status; i++)
        r->status =
            leat_session_run_with(r->s, &o, LEAT_NO_FEED, LEAT_NO_FETCH, LEAT_TARGET(r->target));
    return NULL;
}

static void start(runner *r, leat_session *s, leat_out target, int times)
{
    r->s = s;
    r->target = target;
    r->times = times;
    pthread_create(&r->thread, NULL, runner_main, r);
}

static leat_status stop(runner *r)
{
    pthread_join(r->thread, NULL);
    return r->status;
}

static void a_moment(void)
{
    usleep(20 * 1000);
}

static void ends_of_waiting(void)
{
    fixture f = begin();
    leat_out full = leat_fifo_queue(f.g, 1, SCALARS), empty = leat_fifo_queue(f.g, 1, SCALARS);
    leat_out put = leat_enqueue(full, leat_scalar(f.g, LEAT_INT32, 1));
    leat_out take = leat_dequeue(empty), take3 = leat_dequeue_many(full, 3);
    leat_out close = leat_queue_close(empty), size = leat_queue_size(full);
    leat_out cancel_all = leat_queue_close(full, .cancel_pending_enqueues = true);
    open_session(&f);
    CHECK_OK(run(f.s, put));
    CHECK_ERROR(try_run(f.s, put), DEADLINE_EXCEEDED, "fifo_queue_enqueue");

    runner r = {.cancel = leat_cancellation_new()};
    start(&r, f.s, take, 1);
    a_moment();
    leat_cancel_runs(r.cancel);
    CHECK_ERROR(stop(&r), CANCELLED, "was cancelled");
    leat_cancellation_free(r.cancel);

    CHECK_ERROR(try_run(f.s, take3), DEADLINE_EXCEEDED, "fifo_queue_DequeueMany");
    check_values(f.s, size, "1"); /* what it had taken is back */

    runner closed = {0}, waits = {0};
    start(&closed, f.s, take, 1);
    start(&waits, f.s, put, 1);
    a_moment();
    CHECK_OK(run(f.s, close));
    CHECK_OK(run(f.s, cancel_all));
    CHECK_ERROR(stop(&closed), OUT_OF_RANGE, "is closed and has insufficient elements");
    CHECK_ERROR(stop(&waits), CANCELLED, "Enqueue operation was cancelled");
    end(&f);
}

static void session_closes(void)
{
    fixture f = begin();
    leat_out q = leat_fifo_queue(f.g, 1, SCALARS);
    leat_out take = leat_dequeue(q);
    open_session(&f);
    runner r[3] = {{0}};
    for (int i = 0; i < 3; i++)
        start(&r[i], f.s, take, 1);
    a_moment();
    leat_session_close(f.s);
    for (int i = 0; i < 3; i++)
        CHECK_ERROR(stop(&r[i]), CANCELLED, "was cancelled");
    leat_graph_free(f.g);
}

/* Who came first is served first; a batch larger than the queue goes through it. */
static void in_line(void)
{
    fixture f = begin();
    leat_out q = leat_fifo_queue(f.g, 2, SCALARS);
    leat_out many = leat_enqueue_many(q, INTS(f.g, 1, 2, 3, 4, 5)), close = leat_queue_close(q);
    leat_out six = leat_enqueue(q, leat_scalar(f.g, LEAT_INT32, 6));
    leat_out five = leat_dequeue_many(q, 5), rest = leat_dequeue_up_to(q, 4);
    open_session(&f);
    runner a = {0}, b = {0}, c = {0}, d = {0};
    start(&a, f.s, many, 1);
    a_moment();
    start(&b, f.s, six, 1);
    a_moment();
    start(&c, f.s, close, 1);
    a_moment();
    start(&d, f.s, six, 1); /* behind the close */
    a_moment();
    check_values(f.s, five, "[1 2 3 4 5]");
    CHECK_OK(stop(&a));
    CHECK_OK(stop(&b));
    CHECK_OK(stop(&c));
    CHECK_ERROR(stop(&d), CANCELLED, "is closed.");
    check_values(f.s, rest, "[6]");
    end(&f);
}

/* A queue that is closed gives back what an unfinished batch had taken. */
static void unfinished_batch(void)
{
    fixture f = begin();
    leat_out q = leat_fifo_queue(f.g, 10, SCALARS);
    leat_out puts = leat_enqueue_many(q, INTS(f.g, 1, 2, 3)), close = leat_queue_close(q);
    leat_out four = leat_dequeue_many(q, 4), rest = leat_dequeue_up_to(q, 4);
    open_session(&f);
    CHECK_OK(run(f.s, puts));
    runner r = {0};
    start(&r, f.s, four, 1);
    a_moment();
    check_values(f.s, leat_queue_size(q), "0");
    CHECK_OK(run(f.s, close));
    CHECK_ERROR(stop(&r), OUT_OF_RANGE, "(requested 1, current size 0)");
    check_values(f.s, rest, "[1 2 3]");
    end(&f);
}

/* ---- Many threads, flat memory ---- */

enum { THREADS = 4, ROUNDS = 200 };

static void crowd(void)
{
    for (int kind = 0; kind < 2; kind++) {
        fixture f = begin();
        leat_out q =
            kind ? leat_random_shuffle_queue(f.g, 8, 2, SCALARS) : leat_fifo_queue(f.g, 3, SCALARS);
        leat_out one = leat_scalar(f.g, LEAT_INT32, 1);
        leat_out put = leat_enqueue(q, one), puts = leat_enqueue_many(q, INTS(f.g, 1, 1, 1, 1));
        leat_out sum = leat_op(f.g, "VariableV2", leat_attr_shape("shape", leat_shape()),
                               leat_attr_type("dtype", LEAT_INT32));
        leat_out init = leat_assign(sum, leat_scalar(f.g, LEAT_INT32, 0));
        leat_out add = leat_assign_add(sum, leat_dequeue(q));
        leat_out add4 = leat_assign_add(sum, leat_reduce_sum(leat_dequeue_many(q, 4)));
        leat_out close = leat_queue_close(q);
        open_session(&f);
        CHECK_OK(run(f.s, init));
        runner in[THREADS] = {{0}}, out[THREADS] = {{0}};
        for (int i = 0; i < THREADS; i++) {
            start(&in[i], f.s, i % 2 ? puts : put, i % 2 ? ROUNDS : ROUNDS * 4);
            start(&out[i], f.s, i % 2 ? add4 : add, 1 << 30);
        }
        for (int i = 0; i < THREADS; i++)
            CHECK_OK(stop(&in[i]));
        CHECK_OK(run(f.s, close));
        for (int i = 0; i < THREADS; i++)
            CHECK_ERROR(stop(&out[i]), OUT_OF_RANGE, "is closed and has insufficient elements");
        leat_tensor *t = NULL;
        CHECK_OK(leat_session_run(f.s, LEAT_NO_FEED, LEAT_FETCH({sum, &t}), LEAT_NO_TARGET));
        double left = THREADS * ROUNDS * 4 - leat_tensor_at(t, 0);
        CHECK(left >= 0 && left < 4); /* what no batch was made of */
        leat_tensor_unref(t);
        end(&f);
    }
}

/* Runs that are cancelled while others put and take: nothing is lost but with who took it. */
static void cancelled_crowd(void)
{
    fixture f = begin();
    leat_out q = leat_fifo_queue(f.g, 4, SCALARS);
    leat_out put = leat_enqueue(q, leat_scalar(f.g, LEAT_INT32, 1)), take = leat_dequeue(q);
    leat_out many = leat_dequeue_many(q, 3);
    open_session(&f);
    for (int round = 0; round < 30; round++) {
        runner r[THREADS] = {{0}};
        leat_cancellation *c = leat_cancellation_new();
        for (int i = 0; i < THREADS; i++) {
            r[i].cancel = c;
            start(&r[i], f.s, i < 2 ? put : i < 3 ? take : many, 1 << 30);
        }
        usleep(500);
        leat_cancel_runs(c);
        for (int i = 0; i < THREADS; i++)
            CHECK_ERROR(stop(&r[i]), CANCELLED, "was cancelled");
        leat_cancellation_free(c);
    }
    end(&f);
}

static void flat_memory(void)
{
    fixture f = begin();
    leat_out q = leat_fifo_queue(f.g, 10, LEAT_COMPONENTS({LEAT_FLOAT, leat_shape(4096)}));
    leat_out x = leat_zeros(f.g, LEAT_FLOAT, leat_shape(4096));
    leat_out put = leat_enqueue(q, leat_add(x, leat_random_uniform(f.g, leat_shape(4096))));
    leat_out take = leat_dequeue(q), late = leat_dequeue_many(q, 4);
    open_session(&f);
    size_t before = 0;
    for (int i = 0; i < 300; i++) {
        for (int k = 0; k < 3; k++)
            CHECK_OK(run(f.s, put));
        if (i % 50 == 0)
            CHECK_ERROR(try_run(f.s, late), DEADLINE_EXCEEDED, "DequeueMany");
        for (int k = 0; k < 3; k++)
            CHECK_OK(fetch(f.s, take));
        if (i == 60)
            before = atomic_load(&leat_cpu_memory.in_use);
    }
    CHECK(atomic_load(&leat_cpu_memory.in_use) <= before + 4 * 4096 * sizeof(float));
    end(&f);
}

int main(int argc, char **argv)
{
    return RUN(argc, argv, {"fifo", fifo}, {"by_reference", by_reference}, {"strings", strings},
               {"padding", padding}, {"priority", priority}, {"shuffled", shuffled},
               {"bad_shapes", bad_shapes}, {"mistakes", mistakes}, {"shared", shared},
               {"chosen", chosen}, {"ends_of_waiting", ends_of_waiting},
               {"session_closes", session_closes}, {"in_line", in_line},
               {"unfinished_batch", unfinished_batch}, {"crowd", crowd},
               {"cancelled_crowd", cancelled_crowd}, {"flat_memory", flat_memory});
}
