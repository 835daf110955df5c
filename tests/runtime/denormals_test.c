/* denormals_test.c -- kernels compute without denormal numbers in all threads, as TensorFlow's do on
 * x86, and the caller's own arithmetic keeps them. */
#include "test.h"

#include <leat/leat.h>
#include <float.h>

#include "core/denormals.h"

/* What FLT_MIN / 2, which is denormal, is to a kernel. */
#if defined(__SSE__)
static const float half_of_least = 0;
#else
static const float half_of_least = FLT_MIN / 2;
#endif

/* n products FLT_MIN * 0.5. They are compared by their bits: to a thread without denormals one is
 * equal to zero. */
static void products(int64_t n, int threads)
{
    leat_graph *g = leat_graph_new();
    leat_session *s;
    leat_tensor *in, *out = NULL;
    leat_out x = leat_placeholder(g, LEAT_FLOAT, leat_shape(-1));
    leat_out y = leat_mul(x, leat_scalar(g, LEAT_FLOAT, 0.5));
    float *v = malloc(sizeof(float) * (size_t)n);
    CHECK(v);
    for (int64_t i = 0; i < n; i++)
        v[i] = FLT_MIN;
    CHECK_OK(leat_tensor_copy_of(LEAT_FLOAT, leat_shape(n), v, &in));
    CHECK_OK(leat_session_open(g, &s, .intra_op_threads = threads, .inter_op_threads = threads));
    CHECK_OK(leat_session_run(s, LEAT_FEED({x, in}), LEAT_FETCH({y, &out}), LEAT_NO_TARGET));
    const float *got = leat_tensor_data(out);
    int64_t wrong = 0;
    for (int64_t i = 0; i < n; i++)
        wrong += memcmp(&got[i], &half_of_least, sizeof(float)) != 0;
    CHECK(wrong == 0);
    leat_tensor_unref(in);
    leat_tensor_unref(out);
    leat_session_close(s);
    leat_graph_free(g);
    free(v);
}

static void in_one_thread(void)
{
    products(5, 1);
}

static void in_several_threads(void)
{
    for (int i = 0; i < 20; i++)
        products(1 << 20, 4);
}

/* What is computed while a graph is compiled is computed in the same way. */
static void folded(void)
{
    leat_graph *g = leat_graph_new();
    leat_session *s;
    leat_tensor *out = NULL;
    leat_out y = leat_mul(leat_scalar(g, LEAT_FLOAT, FLT_MIN), leat_scalar(g, LEAT_FLOAT, 0.5));
    CHECK_OK(leat_session_open(g, &s));
    CHECK_OK(leat_session_run(s, LEAT_NO_FEED, LEAT_FETCH({y, &out}), LEAT_NO_TARGET));
    CHECK(memcmp(leat_tensor_data(out), &half_of_least, sizeof(float)) == 0);
    leat_tensor_unref(out);
    leat_session_close(s);
    leat_graph_free(g);
}

static void callers_own(void)
{
    products(5, 1);
    products(1 << 20, 2);
    volatile float x = FLT_MIN;
    x *= 0.5f;
    CHECK(x > 0);
    unsigned before = leat_denormals_off();
    x = FLT_MIN;
    x *= 0.5f;
    CHECK(x == half_of_least);
    leat_denormals_restore(before);
    x = FLT_MIN;
    x *= 0.5f;
    CHECK(x > 0);
}

int main(int argc, char **argv)
{
    return RUN(argc, argv, {"in_one_thread", in_one_thread},
               {"in_several_threads", in_several_threads}, {"folded", folded},
               {"callers_own", callers_own});
}
