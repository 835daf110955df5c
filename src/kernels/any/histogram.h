/* histogram.h -- TensorFlow's histograms of numbers, as summaries have them. */
#ifndef LEAT_ANY_HISTOGRAM_H
#define LEAT_ANY_HISTOGRAM_H

#include "proto/event.pb-c.h"

enum { LEAT_HISTOGRAM_BUCKETS = 1600 }; /* at most */

typedef struct leat_histogram {
    double num, sum, sum_squares, min, max;
    double counts[LEAT_HISTOGRAM_BUCKETS]; /* of the values in each bucket */
} leat_histogram;

/* The memory of a message that was made of a histogram. */
typedef struct leat_histogram_message {
    Leat__HistogramProto proto;
    double limits[LEAT_HISTOGRAM_BUCKETS], counts[LEAT_HISTOGRAM_BUCKETS];
} leat_histogram_message;

void leat_histogram_init(leat_histogram *h);
void leat_histogram_add(leat_histogram *h, double v); /* v is finite */
/* m->proto is the message, in which adjacent empty buckets are merged. */
void leat_histogram_encode(const leat_histogram *h, leat_histogram_message *m);

#endif
