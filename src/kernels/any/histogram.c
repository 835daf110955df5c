/* histogram.c -- see histogram.h. */
#include "kernels/any/histogram.h"

#include <float.h>
#include <pthread.h>

/* ---- Buckets whose limits grow by a tenth from 1e-12 to 1e20, and the negatives of these ---- */
static double limits[LEAT_HISTOGRAM_BUCKETS];
static int n_limits;
static pthread_once_t limits_once = PTHREAD_ONCE_INIT;

static void make_limits(void)
{
    double up[LEAT_HISTOGRAM_BUCKETS / 2];
    int n = 0;
    for (double v = 1.0e-12; v < 1.0e20; v *= 1.1)
        up[n++] = v;
    up[n++] = DBL_MAX;
    for (int i = 0; i < n; i++) {
        limits[n - 1 - i] = -up[i];
        limits[n + 1 + i] = up[i];
    }
    limits[n] = 0;
    n_limits = 2 * n + 1;
}

/* The first bucket whose limit is above v. */
static int bucket_of(double v)
{
    int low = 0, high = n_limits - 1;
    while (low < high) {
        int mid = (low + high) / 2;
        if (v < limits[mid])
            high = mid;
        else
            low = mid + 1;
    }
    return low;
}

void leat_histogram_init(leat_histogram *h)
{
    pthread_once(&limits_once, make_limits);
    *h = (leat_histogram){.min = DBL_MAX, .max = -DBL_MAX};
}

void leat_histogram_add(leat_histogram *h, double v)
{
    h->counts[bucket_of(v)] += 1;
    h->min = v < h->min ? v : h->min;
    h->max = v > h->max ? v : h->max;
    h->num += 1;
    h->sum += v;
    h->sum_squares += v * v;
}

void leat_histogram_encode(const leat_histogram *h, leat_histogram_message *m)
{
    size_t n = 0;
    for (int i = 0; i < n_limits;) {
        double end = limits[i], count = h->counts[i];
        i++;
        for (; count <= 0 && i < n_limits && h->counts[i] <= 0; i++)
            end = limits[i];
        m->limits[n] = end;
        m->counts[n++] = count;
    }
    leat__histogram_proto__init(&m->proto);
    m->proto.min = h->min;
    m->proto.max = h->max;
    m->proto.num = h->num;
    m->proto.sum = h->sum;
    m->proto.sum_squares = h->sum_squares;
    m->proto.n_bucket_limit = m->proto.n_bucket = n;
    m->proto.bucket_limit = m->limits;
    m->proto.bucket = m->counts;
}
