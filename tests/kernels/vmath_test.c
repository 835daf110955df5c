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
        const float x = leat_vfloat((uint32_t)bits);
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

static double logistic(double x)
{
    return 1 / (1 + exp(-x));
}
static float vexp(float x)
{
    return leat_vexp(x);
}
static float vexpm1(float x)
{
    return leat_vexpm1(x);
}
static float vlog(float x)
{
    return leat_vlog(x);
}
static float vlog1p(float x)
{
    return leat_vlog1p(x);
}
static float vtanh(float x)
{
    return leat_vtanh(x);
}
static float vsigmoid(float x)
{
    return leat_vsigmoid(x);
}

static void errors(void)
{
    walk("exp", vexp, exp, 1);
    walk("expm1", vexpm1, expm1, 1.5);
    walk("log", vlog, log, 1);
    walk("log1p", vlog1p, log1p, 1.5);
    walk("tanh", vtanh, tanh, 2.5);
    walk("sigmoid", vsigmoid, logistic, 2.5);
}

static void ends(void)
{
    CHECK(leat_vexp(0) == 1);
    CHECK(leat_vexp(-INFINITY) == 0);
    CHECK(leat_vexp(INFINITY) == INFINITY);
    CHECK(isnan(leat_vexp(NAN)));
    CHECK(leat_vexp(-103) > 0); /* a denormal number */
    CHECK(leat_vexpm1(-INFINITY) == -1);
    CHECK(signbit(leat_vexpm1(-0.0f)));
    CHECK(leat_vlog(1) == 0);
    CHECK(leat_vlog(0) == -INFINITY);
    CHECK(leat_vlog(-0.0f) == -INFINITY);
    CHECK(isnan(leat_vlog(-1)));
    CHECK(leat_vlog(INFINITY) == INFINITY);
    CHECK(leat_vlog1p(-1) == -INFINITY);
    CHECK(leat_vlog1p(INFINITY) == INFINITY);
    CHECK(isnan(leat_vlog1p(-2)));
    CHECK(leat_vtanh(INFINITY) == 1);
    CHECK(leat_vtanh(-INFINITY) == -1);
    CHECK(isnan(leat_vtanh(NAN)));
    CHECK(leat_vsigmoid(-INFINITY) == 0);
    CHECK(leat_vsigmoid(INFINITY) == 1);
    CHECK(leat_vsigmoid(0) == 0.5f);
    CHECK(isnan(leat_vsigmoid(NAN)));
}

int main(int argc, char **argv)
{
    return RUN(argc, argv, {"errors", errors}, {"ends", ends});
}
