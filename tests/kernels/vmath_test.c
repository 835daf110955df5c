/* vmath_test.c -- the largest error of each function against the C library in double, over floats
 * of every size, and the values at the ends. */
#include "kernels/cpu/vmath.h"
#include "test.h"

/* How far is from want, in units of the last place of want as a float. */
static double ulps(float is, double want)
{
    const float rounded = (float)want;
    if (isnan(want) || isnan(is))
        return isnan(want) && isnan(is) ? 0 : INFINITY;
    if (isinf(rounded) || isinf(is))
        return rounded == is ? 0 : INFINITY;
    int e;
    frexp(want, &e);
    return fabs((double)is - want) / ldexp(1, (e < -125 ? -125 : e) - 24);
}

/* Walks through the floats of both signs by their bits. */
static void walk(const char *name, float (*fn)(float), double (*exact)(double), double most)
{
    double worst = 0;
    float at = 0;
    for (uint64_t bits = 0; bits <= UINT32_MAX; bits += 5077) {
        const uint32_t u = (uint32_t)bits;
        float x;
        memcpy(&x, &u, sizeof x);
        const double d = ulps(fn(x), exact((double)x));
        if (!(d <= worst)) {
            worst = d;
            at = x;
        }
    }
    if (!(worst <= most)) {
        test_failures++;
        printf("%s is off by %.3g units at %.9g: %.9g, want %.9g\n", name, worst, (double)at,
               (double)fn(at), exact((double)at));
    }
}

static float vexp(float x)
{
    return leat_expf(x);
}
static float vlog(float x)
{
    return leat_logf(x);
}
static float vtanh(float x)
{
    return leat_tanhf(x);
}

static void errors(void)
{
    walk("exp", vexp, exp, 1.01);
    walk("log", vlog, log, 1);
    walk("tanh", vtanh, tanh, 1.5);
}

static void ends(void)
{
    CHECK(leat_expf(0) == 1);
    CHECK(leat_expf(-INFINITY) == 0);
    CHECK(leat_expf(INFINITY) == INFINITY);
    CHECK(isnan(leat_expf(NAN)));
    CHECK(leat_logf(1) == 0);
    CHECK(leat_logf(0) == -INFINITY);
    CHECK(leat_logf(-0.0f) == -INFINITY);
    CHECK(isnan(leat_logf(-1)));
    CHECK(leat_logf(INFINITY) == INFINITY);
    CHECK(leat_tanhf(INFINITY) == 1);
    CHECK(leat_tanhf(-INFINITY) == -1);
    CHECK(isnan(leat_tanhf(NAN)));
}

int main(int argc, char **argv)
{
    return RUN(argc, argv, {"errors", errors}, {"ends", ends});
}
