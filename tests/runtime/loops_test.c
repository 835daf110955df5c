/* loops_test.c -- loops that several devices run. Graphs are built twice: on one device, and with
 * nodes scattered over three; what they compute, and their gradients, must be the same. */
#include <leat/leat.h>
#include <time.h>

#include "graph/graph_int.h"
#include "test.h"

enum { DEVICES = 3, SEEDS = 12 };

/* Flow nodes ask for devices, too; handles must stay where they are. */
static const char *scatter(void *arg, const leat_node *n)
{
    static const char *const names[DEVICES] = {"/cpu:0", "/cpu:1", "/cpu:2"};
    uint32_t *x = arg;
    if (!*x)
        return "";
    for (int i = 0; i < n->n_in; i++)
        if (leat_dtype_base(leat_out_dtype(n->in[i])) == LEAT_RESOURCE)
            return "";
    *x = *x * 1664525 + 1013904223;
    return *x >> 30 ? names[(*x >> 16) % DEVICES] : "";
}

static leat_out number(leat_graph *g, double v)
{
    return leat_scalar(g, LEAT_DOUBLE, v);
}

typedef struct shared {
    leat_out x, limit;
} shared;

static leat_out below(leat_graph *g, void *arg, const leat_out *v)
{
    return leat_less(v[0], ((shared *)arg)->limit);
}

static void grow(leat_graph *g, void *arg, const leat_out *v, leat_out *next)
{
    shared *s = arg;
    next[0] = leat_add(v[0], number(g, 1));
    next[1] = leat_add(leat_mul(v[1], s->x), leat_sqrt(v[0]));
}

static void less(leat_graph *g, void *arg, leat_out *outs)
{
    leat_out *v = arg;
    outs[0] = leat_mul(*v, number(g, 0.5));
}

static void more(leat_graph *g, void *arg, leat_out *outs)
{
    leat_out *v = arg;
    outs[0] = leat_add(leat_exp(leat_neg(*v)), *v);
}

static void choose(leat_graph *g, void *arg, const leat_out *v, leat_out *next)
{
    leat_out now = v[1];
    next[0] = leat_add(v[0], number(g, 1));
    leat_cond(leat_less(v[1], ((shared *)arg)->x), more, less, &now, &next[1], 1);
}

/* A loop in a loop, which does not go round the first time. */
static void nested(leat_graph *g, void *arg, const leat_out *v, leat_out *next)
{
    shared inner = {.x = ((shared *)arg)->x, .limit = v[0]};
    leat_out in[2] = {number(g, 0), v[1]};
    leat_while_loop(below, grow, &inner, in, 2, in);
    next[0] = leat_add(v[0], number(g, 1));
    next[1] = leat_mul(in[1], leat_scalar(g, LEAT_DOUBLE, 0.9));
}

typedef struct loop_args {
    shared s;
    leat_loop_body_fn body;
    leat_out start;
} loop_args;

static void run_loop(leat_graph *g, void *arg, leat_out *outs)
{
    loop_args *a = arg;
    leat_out v[2] = {number(g, 0), a->start};
    leat_while_loop(below, a->body, &a->s, v, 2, v);
    outs[0] = v[1];
}

static void no_loop(leat_graph *g, void *arg, leat_out *outs)
{
    outs[0] = leat_neg(((loop_args *)arg)->start);
}

/* y and dy/dx, with nodes scattered by seed, or, if it is 0, not. */
static void compute(leat_loop_body_fn body, double limit, bool in_cond, int parallel, uint32_t seed,
                    double out[2])
{
    leat_graph *g = leat_graph_new();
    leat_out x = leat_placeholder(g, LEAT_DOUBLE, leat_shape()), v[2];
    leat_grad_value dx = {0};
    leat_with_device_fn(g, scatter, &seed)
    {
        loop_args a = {{x, number(g, limit)}, body, number(g, 1.5)};
        if (in_cond) {
            leat_cond(leat_less(x, number(g, 2)), run_loop, no_loop, &a, &v[1], 1);
        } else {
            v[0] = number(g, 0);
            v[1] = a.start;
            leat_while_loop(below, body, &a.s, v, 2, v, .parallel_iterations = parallel);
        }
        v[1] = leat_mul(v[1], x);
        CHECK_OK(leat_gradients(&v[1], 1, &x, 1, &dx));
    }
    leat_session *s;
    CHECK_OK(leat_session_open(g, &s, .cpu_devices = DEVICES, .allow_soft_placement = true));
    double half = 0.6;
    leat_tensor *fed = NULL, *y = NULL, *d = NULL;
    CHECK_OK(leat_tensor_copy_of(LEAT_DOUBLE, leat_shape(), &half, &fed));
    for (int i = 0; i < 3; i++) {
        CHECK_OK(leat_session_run_with(s, &(leat_run_options){.timeout_ms = 20000},
                                       LEAT_FEED({x, fed}), LEAT_FETCH({v[1], &y}, {dx.value, &d}),
                                       LEAT_NO_TARGET));
        out[0] = y ? leat_tensor_at(y, 0) : NAN;
        out[1] = d ? leat_tensor_at(d, 0) : NAN;
        leat_tensor_unref(y);
        leat_tensor_unref(d);
        y = d = NULL;
    }
    leat_tensor_unref(fed);
    leat_session_close(s);
    leat_graph_free(g);
}

static void each(leat_loop_body_fn body, double limit, bool in_cond)
{
    double want[2], got[2];
    compute(body, limit, in_cond, 10, 0, want);
    for (uint32_t seed = 1; seed <= SEEDS; seed++) {
        compute(body, limit, in_cond, seed % 2 ? 10 : 1, seed * 7919, got);
        CHECK_NEAR(got[0], want[0], 1e-12);
        CHECK_NEAR(got[1], want[1], 1e-12);
    }
}

static void simple(void)
{
    each(grow, 7, false);
}

static void never(void)
{
    each(grow, 0, false);
}

static void with_cond(void)
{
    each(choose, 9, false);
}

static void loop_in_loop(void)
{
    each(nested, 5, false);
}

static void in_a_cond(void)
{
    each(grow, 4, true);
    each(nested, 4, true);
}

/* Many iterations leave nothing behind in the rendezvous, and can be ended. */
static void many(void)
{
    leat_graph *g = leat_graph_new();
    leat_out v[2] = {number(g, 0), number(g, 1)};
    shared s = {number(g, 0.999), leat_placeholder(g, LEAT_DOUBLE, leat_shape())};
    uint32_t seed = 12345;
    leat_with_device_fn(g, scatter, &seed) leat_while_loop(below, grow, &s, v, 2, v);
    leat_session *session;
    CHECK_OK(leat_session_open(g, &session, .cpu_devices = DEVICES, .allow_soft_placement = true));
    for (int i = 0; i < 2; i++) {
        double limit = i ? 1e12 : 3000;
        leat_tensor *fed = NULL, *y = NULL;
        CHECK_OK(leat_tensor_copy_of(LEAT_DOUBLE, leat_shape(), &limit, &fed));
        leat_status status = leat_session_run_with(
            session, &(leat_run_options){.timeout_ms = i ? 200 : 60000}, LEAT_FEED({s.limit, fed}),
            LEAT_FETCH({v[0], &y}), LEAT_NO_TARGET);
        if (i)
            CHECK_ERROR(status, DEADLINE_EXCEEDED, "Timed out");
        else
            CHECK_OK(status);
        if (y)
            CHECK_NEAR(leat_tensor_at(y, 0), limit, 0);
        leat_tensor_unref(y);
        leat_tensor_unref(fed);
    }
    leat_session_close(session);
    leat_graph_free(g);
}

/* ---- Many loops ---- */

/* The seconds that the first run of a graph with n frames takes, one after the other. */
static double run_frames(int n)
{
    leat_graph *g = leat_graph_new();
    leat_session *s;
    leat_out x = leat_random_uniform(g, leat_shape()); /* No constant, to be folded. */
    for (int i = 0; i < n; i++) {
        char name[32];
        snprintf(name, sizeof(name), "frame_%d", i);
        x = LEAT_OP1("Exit", LEAT_OP1("Enter", x, leat_attr_string("frame_name", name)));
    }
    CHECK_OK(leat_session_open(g, &s));
    struct timespec a, b;
    clock_gettime(CLOCK_THREAD_CPUTIME_ID, &a);
    CHECK_OK(leat_session_run(s, LEAT_NO_FEED, LEAT_NO_FETCH, LEAT_TARGET(x)));
    clock_gettime(CLOCK_THREAD_CPUTIME_ID, &b);
    leat_session_close(s);
    leat_graph_free(g);
    return (double)(b.tv_sec - a.tv_sec) + (double)(b.tv_nsec - a.tv_nsec) / 1e9;
}

/* Time grows with the number of loops, not with its square: eight times as many loops take less
 * than 48 times as long. */
static void time_of_many_loops(void)
{
    double few = 1e9, all = 1e9;
    for (int i = 0; i < 3; i++) {
        double t = run_frames(4000);
        few = t < few ? t : few;
    }
    for (int i = 0; i < 3 && all > 48 * few; i++)
        all = run_frames(32000);
    printf("4000 loops: %.3f s, 32000: %.3f s\n", few, all);
    CHECK(all < 48 * few);
}

/* A loop whose body has n values that go from one device to the other. */
static void cross(leat_graph *g, void *arg, const leat_out *v, leat_out *next)
{
    int n = *(const int *)arg;
    leat_out *many = malloc(sizeof(*many) * (size_t)n);
    leat_with_device(g, "/cpu:1") for (int i = 0; i < n; i++) many[i] =
        LEAT_OP1("RandomUniform", v[1], leat_attr_type("dtype", LEAT_DOUBLE));
    leat_with_device(g, "/cpu:0")
    {
        next[0] = leat_add(v[0], number(g, 1));
        next[1] = leat_identity(v[1]);
    }
    leat_with_device(g, "/cpu:1") next[2] = leat_add_n(many, n);
    free(many);
}

static leat_out below_two(leat_graph *g, void *arg, const leat_out *v)
{
    return leat_less(v[0], number(g, 2));
}

/* As run_frames. Loops follow each other, with n crossings in all. */
static double run_crossings(int loops, int n)
{
    leat_graph *g = leat_graph_new();
    leat_session *s;
    int each = n / loops;
    leat_out shape = leat_placeholder(g, LEAT_INT32, leat_shape(0)), x = number(g, 0);
    for (int i = 0; i < loops; i++)
        leat_with_device(g, "/cpu:0")
        {
            leat_out v[] = {number(g, 0), shape, x};
            leat_while_loop(below_two, cross, &each, v, 3, v);
            x = v[2];
        }
    leat_tensor *fed;
    CHECK_OK(leat_tensor_copy_of(LEAT_INT32, leat_shape(0), "", &fed));
    CHECK_OK(leat_session_open(g, &s, .devices = "cpu:2"));
    struct timespec a, b;
    clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &a);
    CHECK_OK(leat_session_run(s, LEAT_FEED({shape, fed}), LEAT_NO_FETCH, LEAT_TARGET(x)));
    clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &b);
    leat_tensor_unref(fed);
    leat_session_close(s);
    leat_graph_free(g);
    return (double)(b.tv_sec - a.tv_sec) + (double)(b.tv_nsec - a.tv_nsec) / 1e9;
}

/* Both for many crossings of one loop, and for many loops with a crossing each. */
static void time_of_crossings(void)
{
    for (int k = 0; k < 2; k++) {
        double few = 1e9, all = 1e9;
        for (int i = 0; i < 3; i++) {
            double t = run_crossings(k ? 500 : 1, k ? 500 : 4000);
            few = t < few ? t : few;
        }
        for (int i = 0; i < 3 && all > 24 * few; i++)
            all = run_crossings(k ? 4000 : 1, k ? 4000 : 32000);
        printf("%s: %.3f s, eight times as many: %.3f s\n",
               k ? "500 loops with a crossing each" : "a loop with 4000 crossings", few, all);
        CHECK(all < 24 * few);
    }
}

int main(int argc, char **argv)
{
    return RUN(argc, argv, {"simple", simple}, {"never", never}, {"with_cond", with_cond},
               {"loop_in_loop", loop_in_loop}, {"in_a_cond", in_a_cond}, {"many", many},
               {"time_of_many_loops", time_of_many_loops},
               {"time_of_crossings", time_of_crossings});
}
