/* special_fn.h -- functions that the C library does not have, in double. */
#ifndef LEAT_KERNELS_CPU_SPECIAL_FN_H
#define LEAT_KERNELS_CPU_SPECIAL_FN_H

double leat_log_gamma(double x); /* log |gamma(x)|; does not set signgam, so threads may call it */
double leat_digamma(double x);   /* d/dx of the above; inf at 0, -1, -2 ... */
/* Sum of (q + i)^-x over i >= 0. */
double leat_zeta(double x, double q);
/* The n-th derivative of digamma; n is a whole number. */
double leat_polygamma(double n, double x);
/* The incomplete gamma functions, regularised: lower and upper; the lower one's derivative with
 * respect to a. */
double leat_igamma(double a, double x);
double leat_igammac(double a, double x);
double leat_igamma_grad_a(double a, double x);
/* The incomplete beta function, regularised. */
double leat_betainc(double a, double b, double x);
/* exp(-|x|) times the modified Bessel functions of the first kind of order 0 and 1. */
double leat_bessel_i0e(double x);
double leat_bessel_i1e(double x);

#endif
