/* queue_test.c -- queues: what comes out and in what order, the words of errors. Orders of
 * shuffling and priority queues are TensorFlow 1.15's. */
#include "ops/queue_fixture.h"

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

/* A dequeue with so many outputs that their list is larger than a block (core/block.h). */
static void wide(void)
{
    enum { WIDE = 3000 };
    fixture f = begin();
    leat_component *c = calloc(WIDE, sizeof(*c));
    leat_out *x = calloc(WIDE, sizeof(*x)), one = leat_scalar(f.g, LEAT_INT32, 1);
    for (int i = 0; i < WIDE; i++) {
        c[i] = (leat_component){LEAT_INT32, leat_shape()};
        x[i] = one;
    }
    leat_out q = leat_fifo_queue(f.g, 10, ((leat_components){c, WIDE}));
    leat_out put = leat_enqueue_at(LEAT_AT, q, x, WIDE, false), take = leat_dequeue(q);
    open_session(&f);
    CHECK_OK(run(f.s, put));
    check_values(f.s, leat_output(take, WIDE - 1), "1");
    end(&f);
    free(x);
    free(c);
}

int main(int argc, char **argv)
{
    return RUN(argc, argv, {"fifo", fifo}, {"by_reference", by_reference}, {"strings", strings},
               {"padding", padding}, {"priority", priority}, {"shuffled", shuffled},
               {"bad_shapes", bad_shapes}, {"mistakes", mistakes}, {"shared", shared},
               {"chosen", chosen}, {"wide", wide});
}
