/* accumulator_test.c -- accumulators: means and sums, dense and of rows, dropped gradients, takers
 * that wait, messages of errors. Values are TensorFlow 1.15's. */
#include <leat/leat.h>
#include <pthread.h>

#include "core/buffer.h"
#include "test.h"
#include "waiters.h"

typedef struct fixture {
    leat_graph *g;
    leat_session *s;
    leat_out acc, x, step, apply, take1, take3, count, dropped, set, accepted;
} fixture;

static leat_out number(fixture *f, int n)
{
    return leat_scalar(f->g, LEAT_INT32, n);
}

/* ref: the form with references. */
static fixture begin(leat_dtype t, leat_shape shape, bool sum, bool ref)
{
    fixture f = {.g = leat_graph_new()};
    leat_accumulator_options o = {.sum = sum};
    f.acc = leat_accumulator_at(LEAT_AT, f.g,
                                ref ? "ConditionalAccumulator" : "ResourceConditionalAccumulator",
                                t, shape, &o);
    f.x = leat_placeholder(f.g, t, leat_shape_unknown());
    f.step = leat_placeholder(f.g, LEAT_INT64, leat_shape_unknown());
    f.apply = leat_accumulator_apply(f.acc, f.x, f.step);
    f.accepted = leat_accumulator_try_apply(f.acc, f.x, f.step);
    f.take1 = leat_accumulator_take(f.acc, number(&f, 1));
    f.take3 = leat_accumulator_take(f.acc, number(&f, 3));
    f.count = leat_accumulator_num_accumulated(f.acc);
    f.dropped = leat_accumulator_num_dropped(f.acc);
    f.set = leat_accumulator_set_global_step(f.acc, f.step);
    CHECK_OK(leat_graph_status(f.g));
    CHECK_OK(leat_session_open(f.g, &f.s));
    return f;
}

static void end(fixture *f)
{
    leat_session_close(f->s);
    leat_graph_free(f->g);
}

static leat_tensor *vector(leat_dtype t, int n, const double *v)
{
    leat_tensor *x = NULL;
    CHECK_OK(leat_tensor_new(t, leat_shape(n), &x));
    void *p = leat_tensor_mutable(x);
    for (int i = 0; i < n; i++) {
        if (t == LEAT_DOUBLE)
            ((double *)p)[i] = v[i];
        else if (t == LEAT_HALF)
            ((leat_half *)p)[i] = leat_half_from_float((float)v[i]);
        else if (t == LEAT_INT64)
            ((int64_t *)p)[i] = (int64_t)v[i];
        else
            ((float *)p)[i] = (float)v[i];
    }
    return x;
}
#define V(...)                                                                                     \
    (int)(sizeof((double[]){__VA_ARGS__}) / sizeof(double)), (double[])                            \
    {                                                                                              \
        __VA_ARGS__                                                                                \
    }

static leat_status apply(fixture *f, int64_t step, int n, const double *v)
{
    leat_tensor *x = vector(leat_out_dtype(f->x), n, v), *at = leat_scalar_int64(step);
    leat_status s = leat_session_run(f->s, LEAT_FEED({f->x, x}, {f->step, at}), LEAT_NO_FETCH,
                                     LEAT_TARGET(f->apply));
    leat_tensor_unref(x);
    leat_tensor_unref(at);
    return s;
}

static leat_status fetch(leat_session *s, leat_out x, char **text_out)
{
    leat_tensor *t = NULL;
    leat_run_options o = {.timeout_ms = 30};
    leat_status bad =
        leat_session_run_with(s, &o, LEAT_NO_FEED, LEAT_FETCH({x, &t}), LEAT_NO_TARGET);
    *text_out = t ? leat_tensor_text(t, -1) : NULL;
    leat_tensor_unref(t);
    return bad;
}

static void check_values(leat_session *s, leat_out x, const char *want)
{
    char *text;
    CHECK_OK(fetch(s, x, &text));
    CHECK_STR(text, want);
    free(text);
}

static leat_status set_step(fixture *f, int64_t step)
{
    leat_tensor *at = leat_scalar_int64(step);
    leat_status s =
        leat_session_run(f->s, LEAT_FEED({f->step, at}), LEAT_NO_FETCH, LEAT_TARGET(f->set));
    leat_tensor_unref(at);
    return s;
}

static void means(void)
{
    for (int ref = 0; ref < 2; ref++) {
        fixture f = begin(LEAT_FLOAT, leat_shape(-1), false, ref);
        CHECK_OK(apply(&f, 0, V(1, 2)));
        CHECK_ERROR(apply(&f, 0, V(1, 2, 3)), INVALID_ARGUMENT,
                    "Shape mismatch: expected [2], got [3]");
        CHECK_OK(apply(&f, 5, V(3, 2)));
        CHECK_OK(apply(&f, 5, V(4, 4)));
        check_values(f.s, f.count, "3");
        check_values(f.s, f.take1, "[2.66666675 2.66666675]");
        check_values(f.s, f.count, "0");
        CHECK_OK(apply(&f, 0, V(1))); /* the accumulator is at step 1 now */
        check_values(f.s, f.count, "0");
        check_values(f.s, f.dropped, "1");
        CHECK_OK(apply(&f, 1, V(8)));
        check_values(f.s, f.take1, "[8]");
        CHECK_OK(set_step(&f, 100));
        CHECK_OK(apply(&f, 99, V(1)));
        check_values(f.s, f.dropped, "2");
        CHECK_OK(apply(&f, 100, V(5)));
        check_values(f.s, f.take1, "[5]");
        end(&f);
    }
}

static void sums_of_types(void)
{
    static const leat_dtype types[] = {LEAT_FLOAT, LEAT_DOUBLE, LEAT_HALF};
    for (int t = 0; t < 3; t++) {
        fixture f = begin(types[t], leat_shape(2), true, false);
        for (int i = 0; i < 3; i++)
            CHECK_OK(apply(&f, 0, V(i, 10 * i)));
        check_values(f.s, f.take3, "[3 30]");
        end(&f);
        f = begin(types[t], leat_shape(2), false, false);
        for (int i = 0; i < 4; i++)
            CHECK_OK(apply(&f, 0, V(i, 10 * i)));
        check_values(f.s, f.take3, "[1.5 15]");
        end(&f);
    }
}

/* What was applied and what was taken stays as it is. */
static void nothing_is_shared_with_writers(void)
{
    fixture f = begin(LEAT_FLOAT, leat_shape(2), false, false);
    leat_tensor *x = vector(LEAT_FLOAT, V(1, 2)), *step = leat_scalar_int64(0), *mean = NULL;
    for (int i = 0; i < 3; i++)
        CHECK_OK(leat_session_run(f.s, LEAT_FEED({f.x, x}, {f.step, step}), LEAT_NO_FETCH,
                                  LEAT_TARGET(f.apply)));
    CHECK_OK(leat_session_run(f.s, LEAT_NO_FEED, LEAT_FETCH({f.take3, &mean}), LEAT_NO_TARGET));
    CHECK_OK(apply(&f, 1, V(5, 5)));
    CHECK_OK(apply(&f, 1, V(7, 7)));
    CHECK_NEAR(leat_tensor_at(x, 0), 1, 0);
    CHECK_NEAR(leat_tensor_at(mean, 1), 2, 0);
    leat_tensor_unref(x);
    leat_tensor_unref(step);
    leat_tensor_unref(mean);
    end(&f);
}

static void told(void)
{
    for (int ref = 0; ref < 2; ref++) {
        fixture f = begin(LEAT_FLOAT, leat_shape(1), false, ref);
        leat_tensor *x = vector(LEAT_FLOAT, V(1)), *step = leat_scalar_int64(0), *y = NULL;
        for (int i = 0; i < 2; i++) {
            CHECK_OK(leat_session_run(f.s, LEAT_FEED({f.x, x}, {f.step, step}),
                                      LEAT_FETCH({f.accepted, &y}), LEAT_NO_TARGET));
            CHECK_NEAR(leat_tensor_at(y, 0), i == 0, 0);
            leat_tensor_unref(y);
            CHECK_OK(set_step(&f, 1));
        }
        leat_tensor_unref(x);
        leat_tensor_unref(step);
        end(&f);
    }
}

static void errors(void)
{
    fixture f = begin(LEAT_FLOAT, leat_shape(2, -1), false, false);
    leat_out zero = leat_accumulator_take(f.acc, number(&f, 0));
    leat_out other = LEAT_OP2("ResourceAccumulatorTakeGradient", f.acc, number(&f, 1),
                              leat_attr_type("dtype", LEAT_DOUBLE));
    leat_tensor *bad = vector(LEAT_INT64, V(1)), *x = vector(LEAT_FLOAT, V(1));
    char *text;
    CHECK_ERROR(apply(&f, 0, V(1)), INVALID_ARGUMENT, "Shape mismatch: expected [2,?], got [1]");
    CHECK_ERROR(fetch(f.s, zero, &text), INVALID_ARGUMENT,
                "Argument num_required must be positive, but was 0");
    CHECK_ERROR(fetch(f.s, other, &text), INVALID_ARGUMENT,
                "Signature mismatch, have: resource, int32->double expected: resource, "
                "int32->float");
    CHECK_ERROR(leat_session_run(f.s, LEAT_FEED({f.x, x}, {f.step, bad}), LEAT_NO_FETCH,
                                 LEAT_TARGET(f.apply)),
                INVALID_ARGUMENT, "Argument local_step must be scalar, but had bad shape [1]");
    leat_tensor_unref(bad);
    leat_tensor_unref(x);
    end(&f);
}

/* ---- Rows ---- */

typedef struct rows {
    leat_graph *g;
    leat_session *s;
    leat_out acc, indices, values, shape, apply;
    leat_grad_value taken;
} rows;

static rows begin_rows(leat_shape shape, bool sum)
{
    rows r = {.g = leat_graph_new()};
    r.acc = leat_sparse_accumulator(r.g, LEAT_FLOAT, shape, .sum = sum);
    r.indices = leat_placeholder(r.g, LEAT_INT64, leat_shape_unknown());
    r.values = leat_placeholder(r.g, LEAT_FLOAT, leat_shape_unknown());
    r.shape = leat_placeholder(r.g, LEAT_INT64, leat_shape_unknown());
    leat_grad_value v = {r.values, r.indices, r.shape};
    r.apply = leat_accumulator_apply_rows(r.acc, v, leat_scalar(r.g, LEAT_INT64, 0));
    r.taken = leat_accumulator_take_rows(r.acc, leat_scalar(r.g, LEAT_INT32, 1));
    CHECK_OK(leat_graph_status(r.g));
    CHECK_OK(leat_session_open(r.g, &r.s));
    return r;
}

static void end_rows(rows *r)
{
    leat_session_close(r->s);
    leat_graph_free(r->g);
}

/* Values of any shape s, from a flat list. */
static leat_status apply_rows(rows *r, leat_tensor *indices, leat_shape s, int n, const double *v,
                              leat_tensor *shape)
{
    leat_tensor *flat = vector(LEAT_FLOAT, n, v), *values = NULL;
    CHECK_OK(leat_tensor_reshape(flat, s, &values));
    leat_status bad = leat_session_run(
        r->s, LEAT_FEED({r->indices, indices}, {r->values, values}, {r->shape, shape}),
        LEAT_NO_FETCH, LEAT_TARGET(r->apply));
    leat_tensor_unref(flat);
    leat_tensor_unref(values);
    leat_tensor_unref(indices);
    leat_tensor_unref(shape);
    return bad;
}
#define I(...) vector(LEAT_INT64, V(__VA_ARGS__))

static void check_rows(rows *r, const char *indices, const char *values, const char *shape)
{
    leat_tensor *t[3] = {NULL};
    CHECK_OK(leat_session_run(r->s, LEAT_NO_FEED,
                              LEAT_FETCH({r->taken.indices, &t[0]}, {r->taken.value, &t[1]},
                                         {r->taken.dense_shape, &t[2]}),
                              LEAT_NO_TARGET));
    const char *want[] = {indices, values, shape};
    for (int i = 0; i < 3; i++) {
        char *text = t[i] ? leat_tensor_text(t[i], -1) : NULL;
        CHECK_STR(text, want[i]);
        free(text);
        leat_tensor_unref(t[i]);
    }
}

static void sparse(void)
{
    rows r = begin_rows(leat_shape(5, -1), false);
    CHECK_OK(apply_rows(&r, I(0, 2), leat_shape(2, 2), V(0, 1, 3, 0), I(5, 2)));
    CHECK_OK(apply_rows(&r, I(1, 2), leat_shape(2, 2), V(0, 5, 1, 4), I(5, 2)));
    CHECK_OK(apply_rows(&r, I(3, 1, 3), leat_shape(3, 2), V(1, 1, 2, 2, 3, 3), I(5, 2)));
    CHECK_ERROR(apply_rows(&r, I(5), leat_shape(1, 2), V(1, 1), I(5, 2)), INVALID_ARGUMENT,
                "Shape mismatch: index of slice 0 exceeded limits of shape; index is 5 exceeded 5");
    CHECK_ERROR(apply_rows(&r, I(1), leat_shape(1, 3), V(1, 1, 1), I(5, 2)), INVALID_ARGUMENT,
                "Shape mismatch: expected values dim 1 to be 2, got 3");
    CHECK_ERROR(apply_rows(&r, I(1), leat_shape(1), V(1), I(5, 2)), INVALID_ARGUMENT,
                "Shape mismatch: expected values rank 2, got 1");
    CHECK_ERROR(apply_rows(&r, leat_scalar_int64(1), leat_shape(1, 2), V(1, 1), I(5, 2)),
                INVALID_ARGUMENT, "Input indices should be vector but received shape: []");
    CHECK_ERROR(apply_rows(&r, I(1), leat_shape(), V(1), I(5, 2)), INVALID_ARGUMENT,
                "Values cannot be 0-dimensional.");
    CHECK_ERROR(apply_rows(&r, I(1, 2), leat_shape(1, 2), V(1, 1), I(5, 2)), INVALID_ARGUMENT,
                "Expected 2 non-empty input values, got 1");
    CHECK_ERROR(apply_rows(&r, I(1), leat_shape(1, 2), V(1, 1), I(5)), INVALID_ARGUMENT,
                "Shape mismatch: expected shape rank at least 2, got 1");
    CHECK_ERROR(apply_rows(&r, I(1), leat_shape(1, 2), V(1, 1), I(4, 2)), INVALID_ARGUMENT,
                "Shape mismatch: expected shape dim 0 to be 5, got 4");
    check_rows(&r, "[0 1 2 3 1 3]", "[[0 1][0 5][2 2][1 1][2 2][3 3]]", "[5 2]");
    end_rows(&r);
}

static void sparse_sum(void)
{
    rows r = begin_rows(leat_shape_unknown(), true);
    CHECK_OK(apply_rows(&r, I(1, 4), leat_shape(2, 1), V(1, 2), I(9, 1)));
    CHECK_OK(apply_rows(&r, I(1, 4), leat_shape(2, 1), V(10, 20), I(9, 1))); /* in place */
    CHECK_OK(apply_rows(&r, I(2), leat_shape(1, 1), V(7), I(9, 1)));
    check_rows(&r, "[1 2 4]", "[[11][7][22]]", "[-1 1]");
    end_rows(&r);
}

/* ---- Waiting ---- */

typedef struct taker {
    fixture *f;
    leat_out x;
    leat_cancellation *cancel;
    double value;
    leat_status status;
    pthread_t thread;
} taker;

static void *taker_main(void *arg)
{
    taker *t = arg;
    leat_tensor *y = NULL;
    leat_run_options o = {.cancellation = t->cancel};
    t->status =
        leat_session_run_with(t->f->s, &o, LEAT_NO_FEED, LEAT_FETCH({t->x, &y}), LEAT_NO_TARGET);
    t->value = leat_tensor_at(y, 0);
    leat_tensor_unref(y);
    return NULL;
}

static void start(taker *t, fixture *f, leat_out x)
{
    int before = waiters_at_accumulator(f->s, leat_node_name(f->acc.node));
    t->f = f;
    t->x = x;
    pthread_create(&t->thread, NULL, taker_main, t);
    CHECK_SOON(waiters_at_accumulator(f->s, leat_node_name(f->acc.node)) == before + 1);
}

static void waiting(void)
{
    fixture f = begin(LEAT_FLOAT, leat_shape(1), false, true);
    taker a = {0}, b = {0}, c = {.cancel = leat_cancellation_new()}, d = {0};
    start(&a, &f, f.take3);
    start(&b, &f, f.take1); /* waits behind it */
    CHECK_OK(apply(&f, 0, V(1)));
    CHECK_OK(apply(&f, 0, V(2)));
    CHECK_OK(apply(&f, 0, V(6)));
    pthread_join(a.thread, NULL);
    CHECK_OK(a.status);
    CHECK_NEAR(a.value, 3, 0);
    CHECK_OK(apply(&f, 0, V(5))); /* of the step that is over */
    CHECK_OK(apply(&f, 1, V(4)));
    pthread_join(b.thread, NULL);
    CHECK_OK(b.status);
    CHECK_NEAR(b.value, 4, 0);
    char *text;
    CHECK_ERROR(fetch(f.s, f.take1, &text), DEADLINE_EXCEEDED, "AccumulatorTakeGradient");
    start(&c, &f, f.take3);
    start(&d, &f, f.take1);
    CHECK_OK(apply(&f, 2, V(9)));
    leat_cancel_runs(c.cancel); /* the taker behind it is served */
    pthread_join(c.thread, NULL);
    pthread_join(d.thread, NULL);
    CHECK_ERROR(c.status, CANCELLED, "was cancelled");
    CHECK_OK(d.status);
    CHECK_NEAR(d.value, 9, 0);
    leat_cancellation_free(c.cancel);
    end(&f);
}

enum { THREADS = 4, ROUNDS = 100 };

static void *applier_main(void *arg)
{
    fixture *f = arg;
    for (int i = 0; i < ROUNDS; i++)
        CHECK_OK(apply(f, 1 << 20, V(1, 2)));
    return NULL;
}

static void crowd(void)
{
    fixture f = begin(LEAT_FLOAT, leat_shape(2), true, false);
    pthread_t t[THREADS];
    for (int i = 0; i < THREADS; i++)
        pthread_create(&t[i], NULL, applier_main, &f);
    double sum = 0;
    while (sum < THREADS * ROUNDS) {
        leat_tensor *y = NULL;
        CHECK_OK(leat_session_run(f.s, LEAT_NO_FEED, LEAT_FETCH({f.take1, &y}), LEAT_NO_TARGET));
        sum += leat_tensor_at(y, 0);
        leat_tensor_unref(y);
    }
    CHECK_NEAR(sum, THREADS * ROUNDS, 0);
    for (int i = 0; i < THREADS; i++)
        pthread_join(t[i], NULL);
    end(&f);
}

int main(int argc, char **argv)
{
    return RUN(argc, argv, {"means", means}, {"sums_of_types", sums_of_types},
               {"nothing_is_shared_with_writers", nothing_is_shared_with_writers}, {"told", told},
               {"errors", errors}, {"sparse", sparse}, {"sparse_sum", sparse_sum},
               {"waiting", waiting}, {"crowd", crowd});
}
