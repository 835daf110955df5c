/* stage_test.c -- staging areas: order, limits, and how waiting ends. */
#include <pthread.h>

#include "ops/runner.h"
#include "ops/queue_fixture.h"
#include "waiters.h"

#define AREA(n)                                                                                    \
    leat_attr_types("dtypes", (leat_dtype[]){LEAT_INT32, LEAT_STRING}, n),                         \
        leat_attr_string("shared_name", "area")

static leat_out put_op(fixture *f, int number, int64_t capacity, int64_t limit)
{
    leat_out x[] = {leat_scalar(f->g, LEAT_INT32, number), leat_string_const(f->g, "text")};
    return leat_op(f->g, "Stage", leat_ins(x, 2), leat_attr_int("capacity", capacity),
                   leat_attr_int("memory_limit", limit), leat_attr_string("shared_name", "area"));
}

static leat_out size_op(fixture *f)
{
    return LEAT_OP0(f->g, "StageSize", AREA(2));
}

static leat_out peek_op(fixture *f, int index)
{
    return leat_op(f->g, "StagePeek", leat_in(leat_scalar(f->g, LEAT_INT32, index)), AREA(2));
}

static void order(void)
{
    fixture f = begin();
    leat_out first = put_op(&f, 1, 0, 0), second = put_op(&f, 2, 0, 0);
    leat_out take = LEAT_OP0(f.g, "Unstage", AREA(2)), clear = LEAT_OP0(f.g, "StageClear", AREA(2));
    open_session(&f);
    CHECK_OK(run(f.s, first));
    CHECK_OK(run(f.s, second));
    check_values(f.s, size_op(&f), "2");
    check_values(f.s, peek_op(&f, 1), "2");
    check_values(f.s, take, "1");
    check_values(f.s, leat_output(take, 1), "text");
    check_values(f.s, size_op(&f), "0");
    CHECK_OK(run(f.s, first));
    CHECK_OK(run(f.s, clear));
    check_values(f.s, size_op(&f), "0");
    end(&f);
}

/* Starts n runs of target, and waits until all are under way. */
static void start(runner *r, int n, leat_session *s, leat_out target)
{
    for (int i = 0; i < n; i++) {
        r[i] = (runner){.s = s, .target = target, .cancel = leat_cancellation_new()};
        pthread_create(&r[i].thread, NULL, runner_main, &r[i]);
    }
    CHECK_SOON(runs_of(s) == n);
}

static leat_status stop(runner *r)
{
    pthread_join(r->thread, NULL);
    leat_cancellation_free(r->cancel);
    return r->status;
}

static void waits(void)
{
    fixture f = begin();
    leat_out put = put_op(&f, 1, 2, 0), take = leat_done(LEAT_OP0(f.g, "Unstage", AREA(2)));
    leat_out peek = leat_done(peek_op(&f, 1)), clear = LEAT_OP0(f.g, "StageClear", AREA(2));
    runner r[3];
    open_session(&f);
    CHECK_OK(run(f.s, put)); /* makes the area, with room for two */
    CHECK_OK(run(f.s, take));
    CHECK_ERROR(try_run(f.s, take), DEADLINE_EXCEEDED, "Unstage");
    start(r, 2, f.s, take);
    leat_cancel_runs(r[0].cancel);
    CHECK_ERROR(stop(&r[0]), CANCELLED, "was cancelled");
    CHECK_OK(run(f.s, put));
    CHECK_OK(stop(&r[1]));
    CHECK_OK(run(f.s, put));
    CHECK_ERROR(try_run(f.s, peek), DEADLINE_EXCEEDED, "StagePeek");
    CHECK_OK(run(f.s, put));
    CHECK_OK(run(f.s, peek));
    CHECK_ERROR(try_run(f.s, put), DEADLINE_EXCEEDED, "Stage");
    start(r, 3, f.s, put);
    CHECK_OK(run(f.s, take));
    CHECK_OK(run(f.s, clear));
    CHECK_OK(run(f.s, clear));
    for (int i = 0; i < 3; i++)
        CHECK_OK(stop(&r[i]));
    end(&f);
}

static void session_closes(void)
{
    fixture f = begin();
    leat_out take = leat_done(LEAT_OP0(f.g, "Unstage", AREA(2)));
    runner r[3];
    open_session(&f);
    start(r, 3, f.s, take);
    leat_session_close(f.s);
    for (int i = 0; i < 3; i++)
        CHECK_ERROR(stop(&r[i]), CANCELLED, "cancelled");
    leat_graph_free(f.g);
}

static void refused(void)
{
    fixture f = begin();
    leat_out put = put_op(&f, 1, 0, 30), one = LEAT_OP0(f.g, "Unstage", AREA(1));
    leat_out floats = LEAT_OP0(
        f.g, "Unstage", leat_attr_types("dtypes", (leat_dtype[]){LEAT_FLOAT, LEAT_STRING}, 2),
        leat_attr_string("shared_name", "area"));
    leat_tensor *t = NULL;
    CHECK_OK(leat_tensor_new(LEAT_FLOAT, leat_shape(100), &t));
    leat_out large = leat_const(f.g, t);
    leat_tensor_unref(t);
    leat_out too_large =
        leat_op(f.g, "Stage", leat_ins(&large, 1), leat_attr_int("memory_limit", 30),
                leat_attr_string("shared_name", "area"));
    open_session(&f);
    CHECK_OK(run(f.s, put));
    CHECK_ERROR(try_run(f.s, put), DEADLINE_EXCEEDED, "Stage"); /* the limit is reached */
    CHECK_ERROR(run(f.s, too_large), RESOURCE_EXHAUSTED,
                "Attempted to insert tensors with combined size of '400' bytes into Staging Area "
                "with a memory limit of '30'.");
    CHECK_ERROR(run(f.s, one), INVALID_ARGUMENT, "Mismatch stage/unstage: 2 vs. 1");
    CHECK_OK(run(f.s, put));
    CHECK_ERROR(run(f.s, floats), INVALID_ARGUMENT,
                "Mismatch stage/unstage: tensor 0 is int32, not float");
    CHECK_ERROR(run(f.s, peek_op(&f, -1)), INVALID_ARGUMENT,
                "index must be a scalar that is not negative");
    end(&f);
}

int main(int argc, char **argv)
{
    return RUN(argc, argv, {"order", order}, {"waits", waits}, {"session_closes", session_closes},
               {"refused", refused});
}
