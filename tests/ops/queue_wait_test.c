/* queue_wait_test.c -- enqueues and dequeues that wait: their order, and how waiting ends; many
 * threads with one queue; memory does not grow. */
#include <pthread.h>

#include "core/buffer.h"
#include "ops/queue_fixture.h"
#include "waiters.h"

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

/* Returns when n runs wait at the queue. */
static void await(leat_session *s, leat_out queue, int n)
{
    CHECK_SOON(waiters_at_queue(s, leat_node_name(queue.node)) == n);
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
    await(f.s, empty, 1);
    leat_cancel_runs(r.cancel);
    CHECK_ERROR(stop(&r), CANCELLED, "was cancelled");
    leat_cancellation_free(r.cancel);

    CHECK_ERROR(try_run(f.s, take3), DEADLINE_EXCEEDED, "fifo_queue_DequeueMany");
    check_values(f.s, size, "1"); /* what it had taken is back */

    runner closed = {0}, waits = {0};
    start(&closed, f.s, take, 1);
    start(&waits, f.s, put, 1);
    await(f.s, empty, 1);
    await(f.s, full, 1);
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
    await(f.s, q, 3);
    leat_session_close(f.s);
    for (int i = 0; i < 3; i++)
        CHECK_ERROR(stop(&r[i]), CANCELLED, "was cancelled");
    leat_graph_free(f.g);
}

/* Waiters are served in their order; a batch may be larger than the queue's capacity. */
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
    await(f.s, q, 1);
    start(&b, f.s, six, 1);
    await(f.s, q, 2);
    start(&c, f.s, close, 1);
    await(f.s, q, 3);
    start(&d, f.s, six, 1); /* behind the close */
    await(f.s, q, 4);
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
    await(f.s, q, 1);
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

/* Runs that are cancelled while others enqueue and dequeue: only elements that a cancelled run had
 * dequeued are lost. */
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
    return RUN(argc, argv, {"ends_of_waiting", ends_of_waiting}, {"session_closes", session_closes},
               {"in_line", in_line}, {"unfinished_batch", unfinished_batch}, {"crowd", crowd},
               {"cancelled_crowd", cancelled_crowd}, {"flat_memory", flat_memory});
}
