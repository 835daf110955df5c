/* common_bench.c -- see common_bench.h. */
#include "common_bench.h"

#include <stdio.h>
#include <stdlib.h>
#include <sys/resource.h>
#include <time.h>

double bench_now(void)
{
    struct timespec t;
    clock_gettime(CLOCK_MONOTONIC, &t);
    return (double)t.tv_sec + (double)t.tv_nsec * 1e-9;
}

double bench_cpu(void)
{
    struct timespec t;
    clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &t);
    return (double)t.tv_sec + (double)t.tv_nsec * 1e-9;
}

double bench_uniform(void)
{
    static uint32_t x = 123456789;
    x ^= x << 13;
    x ^= x >> 17;
    x ^= x << 5;
    return (double)(x >> 8) / 16777216.0;
}

/* A tensor of random numbers. */
static leat_tensor *drawn(leat_shape s)
{
    leat_tensor *t;
    LEAT_DIE_ON_ERROR(leat_tensor_new(LEAT_FLOAT, s, &t));
    float *v = leat_tensor_mutable(t);
    for (int64_t i = 0; i < leat_tensor_count(t); i++)
        v[i] = (float)bench_uniform();
    return t;
}

/* The seconds of the fastest run of the op on two operands of this shape. */
static double fastest(const char *op, leat_shape s, double seconds)
{
    leat_graph *g = leat_graph_new();
    leat_session *session;
    leat_tensor *left = drawn(s), *right = drawn(s);
    leat_out a = leat_placeholder(g, LEAT_FLOAT, s), b = leat_placeholder(g, LEAT_FLOAT, s);
    leat_out c = leat_done(LEAT_OP2(op, a, b));
    LEAT_DIE_ON_ERROR(leat_session_open(g, &session));
    double best = 0;
    for (double start = bench_now(), from = start; from - start < seconds;) {
        LEAT_DIE_ON_ERROR(leat_session_run(session, LEAT_FEED({a, left}, {b, right}), LEAT_NO_FETCH,
                                           LEAT_TARGET(c)));
        const double to = bench_now();
        if (best == 0 || to - from < best)
            best = to - from;
        from = to;
    }
    leat_session_close(session);
    leat_graph_free(g);
    leat_tensor_unref(left);
    leat_tensor_unref(right);
    return best;
}

void bench_product_roof(double seconds)
{
    enum { SIZE = 768 };
    const double best = fastest("MatMul", leat_shape(SIZE, SIZE), seconds);
    printf("product_gflops %.1f\n", 2.0 * SIZE * SIZE * SIZE / best * 1e-9);
}

void bench_memory_roof(double seconds, int64_t count)
{
    const double best = fastest("Add", leat_shape(count), seconds);
    printf("memory_gb_per_s %.2f\n", 12.0 * (double)count / best * 1e-9);
}

void bench_trace_steps(leat_session *s, leat_feeds feeds, leat_out target, double seconds,
                       const char *path)
{
    FILE *f = fopen(path, "w");
    if (!f) {
        perror(path);
        exit(1);
    }
    for (double start = bench_now(); bench_now() - start < seconds;) {
        leat_metadata *m = NULL;
        char *json = NULL;
        const leat_run_options traced = {.metadata_out = &m};
        LEAT_DIE_ON_ERROR(
            leat_session_run_with(s, &traced, feeds, LEAT_NO_FETCH, LEAT_TARGET(target)));
        LEAT_DIE_ON_ERROR(leat_metadata_to_chrome(m, &json));
        for (const char *c = json; *c; c++) /* a trace is one line */
            fputc(*c == '\n' ? ' ' : *c, f);
        fputc('\n', f);
        free(json);
        leat_metadata_free(m);
    }
    fclose(f);
}

void bench_print_peak(void)
{
    struct rusage u;
    getrusage(RUSAGE_SELF, &u);
    printf("peak_mb %.1f\n", (double)u.ru_maxrss / 1024);
}
