/* special_fn.c -- series, continued fractions and asymptotic expansions, as in the handbooks
 * (Abramowitz and Stegun; NIST DLMF). The derivative of igamma with respect to a is computed term
 * by term along with the series. */
#include "kernels/cpu/special_fn.h"

#include <float.h>
#include <math.h>
#include <stdbool.h>

enum { MOST_TERMS = 2000 };

double leat_log_gamma(double x)
{
    int sign;
    return lgamma_r(x, &sign);
}

double leat_digamma(double x)
{
    if (x <= 0) {
        if (x == floor(x))
            return INFINITY;
        return leat_digamma(1 - x) - M_PI / tan(M_PI * x); /* reflection */
    }
    if (isinf(x))
        return x;
    double shift = 0;
    for (; x < 10; x++)
        shift -= 1 / x;
    /* log(x) - 1/2x - sum of B_2k / (2k x^2k) */
    const double y = 1 / (x * x);
    const double tail =
        y * (1.0 / 12 -
             y * (1.0 / 120 -
                  y * (1.0 / 252 -
                       y * (1.0 / 240 - y * (1.0 / 132 - y * (691.0 / 32760 - y * (1.0 / 12)))))));
    return log(x) - 0.5 / x - tail + shift;
}

/* Euler and Maclaurin: the first terms one by one, then the integral and its corrections. */
double leat_zeta(double x, double q)
{
    /* (2k)! / B_2k */
    static const double b[] = {12,
                               -720,
                               30240,
                               -1209600,
                               47900160,
                               -1307674368000.0 / 691,
                               74724249600.0,
                               -10670622842880000.0 / 3617,
                               5109094217170944000.0 / 43867,
                               -802857662698291200000.0 / 174611,
                               155112100433309859840000.0 / 854513,
                               -1693824136731743669452800000.0 / 236364091};
    if (x == 1)
        return INFINITY;
    if (!(x > 1) || isnan(q))
        return NAN;
    if (q <= 0) {
        if (q == floor(q))
            return INFINITY;
        if (x != floor(x))
            return NAN; /* a negative number to a power that is not whole */
    }
    double s = pow(q, -x), a = q, term = 0;
    for (int i = 0; i < 9 || a <= 9; i++) {
        a += 1;
        term = pow(a, -x);
        s += term;
        if (fabs(term / s) < DBL_EPSILON)
            return s;
    }
    s += term * a / (x - 1) - 0.5 * term;
    double factor = 1, k = 0;
    for (int i = 0; i < 12; i++) {
        factor *= x + k;
        term /= a;
        const double t = factor * term / b[i];
        s += t;
        if (fabs(t / s) < DBL_EPSILON)
            break;
        factor *= x + k + 1;
        term /= a;
        k += 2;
    }
    return s;
}

double leat_polygamma(double n, double x)
{
    if (n == 0)
        return leat_digamma(x);
    if (!(n > 0) || n != floor(n))
        return NAN;
    const double v = exp(leat_log_gamma(n + 1)) * leat_zeta(n + 1, x);
    return fmod(n, 2) == 0 ? -v : v;
}

/* ---- Incomplete gamma ---- */
typedef struct dual {
    double v, d; /* a value and its derivative with respect to a */
} dual;

/* x^a e^-x / gamma(b), b being a or a + 1 */
static dual front(double a, double x, double b)
{
    const double v = exp(a * log(x) - x - leat_log_gamma(b));
    return (dual){v, v * (log(x) - leat_digamma(b))};
}

static dual times(dual x, dual y)
{
    return (dual){x.v * y.v, x.d * y.v + x.v * y.d};
}

/* The lower one: front * (1 + x/(a+1) + x^2/(a+1)(a+2) + ...). For x up to 1 or a. */
static dual lower(double a, double x)
{
    dual sum = {1, 0}, term = {1, 0};
    double r = a;
    for (int i = 0; i < MOST_TERMS; i++) {
        r += 1;
        term = times(term, (dual){x / r, -x / (r * r)});
        sum.v += term.v;
        sum.d += term.d;
        if (fabs(term.v) <= DBL_EPSILON * sum.v && fabs(term.d) <= DBL_EPSILON * fabs(sum.d))
            break;
    }
    return times(sum, front(a, x, a + 1));
}

/* The upper one: front times a continued fraction. For x above 1 and a. */
static dual upper(double a, double x)
{
    const double big = 0x1p52;
    double y = 1 - a, z = x + y + 1;
    dual p2 = {1, 0}, q2 = {x, 0}, p1 = {x + 1, 0}, q1 = {z * x, -x};
    dual f = {p1.v / q1.v, -p1.v * q1.d / (q1.v * q1.v)};
    for (int c = 1; c <= MOST_TERMS; c++) {
        y += 1;
        z += 2;
        const dual zz = {z, -1}, yc = {y * c, -c};
        dual p = times(p1, zz), q = times(q1, zz), s = times(p2, yc), t = times(q2, yc);
        p = (dual){p.v - s.v, p.d - s.d};
        q = (dual){q.v - t.v, q.d - t.d};
        bool close = false;
        if (q.v != 0) {
            const double v = p.v / q.v, d = (p.d - v * q.d) / q.v;
            close = fabs(f.v - v) <= DBL_EPSILON * fabs(v) && fabs(f.d - d) <= 1e-14 * fabs(d);
            f = (dual){v, d};
        }
        p2 = p1, p1 = p, q2 = q1, q1 = q;
        if (fabs(p.v) > big) {
            dual *all[] = {&p2, &p1, &q2, &q1};
            for (int i = 0; i < 4; i++)
                *all[i] = (dual){all[i]->v / big, all[i]->d / big};
        }
        if (close)
            break;
    }
    return times(f, front(a, x, a));
}

double leat_igamma(double a, double x)
{
    if (x == 0 && a > 0)
        return 0;
    if (!(a > 0) || !(x >= 0))
        return NAN;
    if (isinf(x))
        return isinf(a) ? NAN : 1;
    return x > 1 && x > a ? 1 - upper(a, x).v : lower(a, x).v;
}

double leat_igammac(double a, double x)
{
    if (!(a > 0) || !(x >= 0))
        return NAN;
    if (x == 0)
        return 1;
    if (isinf(x))
        return isinf(a) ? NAN : 0;
    return x < 1 || x < a ? 1 - lower(a, x).v : upper(a, x).v;
}

double leat_igamma_grad_a(double a, double x)
{
    if (x == 0 && a > 0)
        return 0;
    if (!(a > 0) || !(x >= 0))
        return NAN;
    if (isinf(x))
        return isinf(a) ? NAN : 0;
    return x > 1 && x > a ? -upper(a, x).d : lower(a, x).d;
}

/* ---- Incomplete beta: the continued fraction of DLMF 8.17.22, by Lentz's method ---- */
static double beta_fraction(double a, double b, double x)
{
    const double tiny = 1e-300;
    double c = 1, d = 1 - (a + b) * x / (a + 1);
    d = 1 / (fabs(d) < tiny ? tiny : d);
    double f = d;
    for (int m = 1; m <= 10 * MOST_TERMS; m++) {
        const double even = m * (b - m) * x / ((a + 2 * m - 1) * (a + 2 * m));
        const double odd = -(a + m) * (a + b + m) * x / ((a + 2 * m) * (a + 2 * m + 1));
        double step = 1;
        for (int i = 0; i < 2; i++) {
            const double t = i ? odd : even;
            d = 1 + t * d;
            c = 1 + t / c;
            d = 1 / (fabs(d) < tiny ? tiny : d);
            c = fabs(c) < tiny ? tiny : c;
            step = c * d;
            f *= step;
        }
        if (fabs(step - 1) < DBL_EPSILON)
            break;
    }
    return f;
}

double leat_betainc(double a, double b, double x)
{
    if (!(a > 0) || !(b > 0) || !(x >= 0) || !(x <= 1))
        return NAN;
    if (x == 0 || x == 1)
        return x;
    const double log_beta = leat_log_gamma(a) + leat_log_gamma(b) - leat_log_gamma(a + b);
    const double front = exp(a * log(x) + b * log1p(-x) - log_beta);
    if (x < (a + 1) / (a + b + 2))
        return front * beta_fraction(a, b, x) / a;
    return 1 - front * beta_fraction(b, a, 1 - x) / b;
}

/* ---- Bessel: the power series, whose terms are all positive, and for large x the expansion in
 * 1/x (DLMF 10.40.1) ---- */
static double bessel_ie(int order, double x)
{
    const double mu = 4.0 * order * order;
    double term = 1, sum = 1;
    if (x <= 30) {
        const double y = x * x / 4;
        term = sum = order ? x / 2 : 1;
        for (int k = 1; k < MOST_TERMS && term > DBL_EPSILON * sum; k++)
            sum += term *= y / ((double)k * (k + order));
        return exp(-x) * sum;
    }
    for (int k = 1; k < 30 && fabs(term) > DBL_EPSILON * sum; k++) {
        const double odd = 2 * k - 1;
        term *= -(mu - odd * odd) / (k * 8 * x);
        sum += term;
    }
    return sum / sqrt(2 * M_PI * x);
}

double leat_bessel_i0e(double x)
{
    return bessel_ie(0, fabs(x));
}

double leat_bessel_i1e(double x)
{
    const double v = bessel_ie(1, fabs(x));
    return x < 0 ? -v : v;
}
