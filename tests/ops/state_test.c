/* Variables in sessions: what is shared and what is not, many threads on one variable, locks that
 * are taken in either order, temporary variables, and references to what is not there. */
#include <leat/nn.h>
#include <leat/session.h>
#include <pthread.h>

#include "test.h"

static leat_out variable(leat_graph *g, const char *name, leat_shape s)
{
    return leat_op(g, "VariableV2", leat_attr_shape("shape", s),
                   leat_attr_type("dtype", LEAT_FLOAT), leat_name(name));
}

static leat_out handle(leat_graph *g, const char *name, leat_dtype t)
{
    return leat_op(g, "VarHandleOp", leat_attr_shape("shape", leat_shape()),
                   leat_attr_type("dtype", t), leat_attr_string("shared_name", name));
}

static leat_out read_of(leat_graph *g, leat_out h, leat_dtype t)
{
    return leat_op(g, "ReadVariableOp", leat_in(h), leat_attr_type("dtype", t));
}

static leat_out one(leat_graph *g)
{
    return leat_scalar(g, LEAT_FLOAT, 1);
}

static leat_status run(leat_session *s, leat_out target)
{
    return leat_session_run(s, LEAT_NO_FEED, LEAT_NO_FETCH, LEAT_TARGET(target));
}

static leat_status fetch(leat_session *s, leat_out x, leat_tensor **out)
{
    return leat_session_run(s, LEAT_NO_FEED, LEAT_FETCH({x, out}), LEAT_NO_TARGET);
}

static double value(leat_session *s, leat_out x)
{
    leat_tensor *t = NULL;
    CHECK_OK(fetch(s, x, &t));
    double v = t ? leat_tensor_at(t, 0) : NAN;
    leat_tensor_unref(t);
    return v;
}

static void uninitialized(void)
{
    leat_graph *g = leat_graph_new();
    leat_out w = variable(g, "w", leat_shape()), h = handle(g, "h", LEAT_FLOAT);
    leat_out add = leat_assign_add(w, one(g)), read = read_of(g, h, LEAT_FLOAT);
    leat_out add_h = leat_op(g, "AssignAddVariableOp", leat_in(h), leat_in(one(g)));
    leat_out known = LEAT_OP1("IsVariableInitialized", w),
             known_h = LEAT_OP1("VarIsInitializedOp", h);
    leat_out set = leat_assign(w, one(g));
    leat_out set_h = leat_op(g, "AssignVariableOp", leat_in(h), leat_in(one(g)));
    leat_out destroy = leat_op(g, "DestroyResourceOp", leat_in(h));
    leat_out destroy_known =
        leat_op(g, "DestroyResourceOp", leat_in(h), leat_attr_bool("ignore_lookup_error", false));
    leat_session *s;
    leat_tensor *t;
    CHECK_OK(leat_session_open(g, &s));
    CHECK_ERROR(run(s, add), FAILED_PRECONDITION, "Attempting to use uninitialized value w");
    CHECK_ERROR(fetch(s, w, &t), FAILED_PRECONDITION, "Attempting to use uninitialized value w");
    CHECK_ERROR(fetch(s, read, &t), FAILED_PRECONDITION,
                "Error while reading resource variable h from Container: localhost. This could "
                "mean that the variable was uninitialized. Not found: ");
    CHECK_ERROR(run(s, add_h), NOT_FOUND, "does not exist");
    CHECK_NEAR(value(s, known), 0, 0);
    CHECK_NEAR(value(s, known_h), 0, 0);
    CHECK_OK(run(s, destroy));
    CHECK_ERROR(run(s, destroy_known), NOT_FOUND, "does not exist");
    CHECK_OK(run(s, set));
    CHECK_OK(run(s, set_h));
    CHECK_NEAR(value(s, known), 1, 0);
    CHECK_NEAR(value(s, known_h), 1, 0);
    CHECK_OK(run(s, destroy_known));
    CHECK_ERROR(fetch(s, read, &t), FAILED_PRECONDITION,
                "Resource localhost/h/Var does not exist.");
    leat_session_close(s);
    leat_graph_free(g);
}

/* What was fetched, fed or is a constant stays as it is when the variable changes. */
static void values_are_not_shared_with_writers(void)
{
    leat_graph *g = leat_graph_new();
    leat_out w = variable(g, "w", leat_shape()), c = leat_scalar(g, LEAT_FLOAT, 5);
    leat_out fed = leat_placeholder(g, LEAT_FLOAT, leat_shape());
    leat_out set_const = leat_assign(w, c), set_fed = leat_assign(w, fed);
    leat_out add = leat_assign_add(w, one(g));
    leat_session *s;
    leat_tensor *before = NULL, *feed = leat_scalar_float(7);
    CHECK_OK(leat_session_open(g, &s));
    CHECK_OK(run(s, set_const));
    CHECK_OK(fetch(s, w, &before));
    CHECK_OK(run(s, add));
    CHECK_NEAR(leat_tensor_at(before, 0), 5, 0);
    CHECK_NEAR(value(s, w), 6, 0);
    CHECK_NEAR(value(s, c), 5, 0);
    for (int i = 0; i < 2; i++) {
        CHECK_OK(leat_session_run(s, LEAT_FEED({fed, feed}), LEAT_NO_FETCH, LEAT_TARGET(set_fed)));
        CHECK_OK(run(s, add));
        CHECK_NEAR(leat_tensor_at(feed, 0), 7, 0);
        CHECK_NEAR(value(s, w), 8, 0);
    }
    leat_tensor_unref(before);
    leat_tensor_unref(feed);
    leat_session_close(s);
    leat_graph_free(g);
}

enum { THREADS = 4, ROUNDS = 300 };

typedef struct worker {
    leat_session *s;
    leat_out target;
    int failures;
} worker;

static void *work(void *arg)
{
    worker *w = arg;
    for (int i = 0; i < ROUNDS; i++) {
        leat_status s = run(w->s, w->target);
        w->failures += s != NULL;
        leat_status_free(s);
    }
    return NULL;
}

static void run_in_threads(leat_session *s, const leat_out *targets, int n)
{
    pthread_t threads[THREADS];
    worker workers[THREADS];
    for (int i = 0; i < THREADS; i++) {
        workers[i] = (worker){s, targets[i % n], 0};
        pthread_create(&threads[i], NULL, work, &workers[i]);
    }
    for (int i = 0; i < THREADS; i++) {
        pthread_join(threads[i], NULL);
        CHECK_INT(workers[i].failures, 0);
    }
}

static void every_update_counts(void)
{
    leat_graph *g = leat_graph_new();
    leat_out w = variable(g, "w", leat_shape()), h = handle(g, "h", LEAT_FLOAT);
    leat_out add = leat_assign_add(w, one(g));
    leat_out add_h = leat_op(g, "AssignAddVariableOp", leat_in(h), leat_in(one(g)));
    leat_out zero = leat_scalar(g, LEAT_FLOAT, 0);
    leat_out set = leat_assign(w, zero);
    leat_out set_h = leat_op(g, "AssignVariableOp", leat_in(h), leat_in(zero));
    leat_session *s;
    CHECK_OK(leat_session_open(g, &s));
    CHECK_OK(run(s, set));
    CHECK_OK(run(s, set_h));
    run_in_threads(s, (leat_out[]){add, add_h}, 2);
    CHECK_NEAR(value(s, w), THREADS / 2 * ROUNDS, 0);
    CHECK_NEAR(value(s, read_of(g, h, LEAT_FLOAT)), THREADS / 2 * ROUNDS, 0);
    leat_session_close(s);
    leat_graph_free(g);
}

/* Variables that are taken in either order, and one that is taken twice. */
static void locks_in_any_order(void)
{
    leat_graph *g = leat_graph_new();
    leat_out a = variable(g, "a", leat_shape()), b = variable(g, "b", leat_shape());
    leat_out zero = leat_scalar(g, LEAT_FLOAT, 0);
    leat_out set = leat_group(g, leat_assign(a, zero), leat_assign(b, zero));
#define MOMENTUM(var, accum)                                                                       \
    leat_op(g, "ApplyMomentum", leat_in(var), leat_in(accum), leat_in(zero), leat_in(zero),        \
            leat_in(zero))
    leat_out targets[] = {MOMENTUM(a, b), MOMENTUM(b, a), MOMENTUM(a, a)};
    leat_session *s;
    CHECK_OK(leat_session_open(g, &s));
    CHECK_OK(run(s, set));
    run_in_threads(s, targets, 3);
    CHECK_NEAR(value(s, a), 0, 0);
    leat_session_close(s);
    leat_graph_free(g);
}

static void temporary_variables(void)
{
    leat_graph *g = leat_graph_new();
#define TEMPORARY(name)                                                                            \
    leat_op(g, "TemporaryVariable", leat_attr_shape("shape", leat_shape()),                        \
            leat_attr_type("dtype", LEAT_FLOAT), leat_attr_string("var_name", name))
#define DESTROY(ref, name)                                                                         \
    leat_op(g, "DestroyTemporaryVariable", leat_in(ref), leat_attr_string("var_name", name))
    leat_out good = DESTROY(leat_assign(TEMPORARY("good"), one(g)), "good");
    leat_out a = leat_assign(TEMPORARY("dup"), one(g)), b = leat_assign(TEMPORARY("dup"), one(g));
    leat_out both = leat_add(a, b), wrong = DESTROY(TEMPORARY("x"), "y");
    leat_session *s;
    leat_tensor *t;
    CHECK_OK(leat_session_open(g, &s));
    for (int i = 0; i < 2; i++)
        CHECK_NEAR(value(s, good), 1, 0);
    CHECK_ERROR(fetch(s, wrong, &t), NOT_FOUND, "does not exist");
    leat_status twice = fetch(s, both, &t); /* unless the first was done with before */
    if (!twice)
        leat_tensor_unref(t);
    else
        CHECK_INT(leat_status_code(twice), LEAT_ALREADY_EXISTS);
    leat_status_free(twice);
    leat_session_close(s);
    leat_graph_free(g);
}

static void shapes_and_dtypes(void)
{
    leat_graph *g = leat_graph_new();
    leat_out w = variable(g, "w", leat_shape()),
             v = leat_placeholder(g, LEAT_FLOAT, leat_shape_unknown());
    leat_out set = leat_assign(w, v);
    leat_out grow = leat_assign(w, v, leat_attr_bool("validate_shape", false));
    leat_out as_float = handle(g, "h", LEAT_FLOAT), as_int = handle(g, "h", LEAT_INT32);
    leat_out set_float = leat_op(g, "AssignVariableOp", leat_in(as_float), leat_in(one(g)));
    leat_out set_int =
        leat_op(g, "AssignVariableOp", leat_in(as_int), leat_in(leat_scalar(g, LEAT_INT32, 1)));
    leat_out add_int =
        leat_op(g, "AssignAddVariableOp", leat_in(as_int), leat_in(leat_scalar(g, LEAT_INT32, 1)));
    leat_out read_int = read_of(g, as_int, LEAT_INT32);
    leat_session *s;
    leat_tensor *t, *two = NULL;
    CHECK_OK(leat_tensor_new(LEAT_FLOAT, leat_shape(2), &two));
    CHECK_OK(leat_session_open(g, &s));
    CHECK_ERROR(leat_session_run(s, LEAT_FEED({v, two}), LEAT_NO_FETCH, LEAT_TARGET(set)),
                INVALID_ARGUMENT,
                "Assign requires shapes of both tensors to match. lhs shape= [] rhs shape= [2]");
    CHECK_OK(leat_session_run(s, LEAT_FEED({v, two}), LEAT_NO_FETCH, LEAT_TARGET(grow)));
    CHECK_OK(fetch(s, w, &t));
    CHECK_INT(leat_tensor_count(t), 2);
    leat_tensor_unref(t);
    CHECK_OK(run(s, set_float));
    CHECK_ERROR(run(s, set_int), INVALID_ARGUMENT,
                "Trying to assign variable with wrong dtype. Expected float got int32");
    CHECK_ERROR(run(s, add_int), INVALID_ARGUMENT, "wrong dtype");
    CHECK_ERROR(fetch(s, read_int, &t), INVALID_ARGUMENT,
                "Trying to read variable with wrong dtype. Expected int32 got float");
    leat_tensor_unref(two);
    leat_session_close(s);
    leat_graph_free(g);
}

int main(int argc, char **argv)
{
    return RUN(
        argc, argv, {"uninitialized", uninitialized},
        {"values_are_not_shared_with_writers", values_are_not_shared_with_writers},
        {"every_update_counts", every_update_counts}, {"locks_in_any_order", locks_in_any_order},
        {"temporary_variables", temporary_variables}, {"shapes_and_dtypes", shapes_and_dtypes});
}
