/* plot.c -- curves and histograms in the terminal. */
#include <math.h>
#include <stdio.h>
#include <string.h>

#include "cli.h"

enum { WIDTH = 64, HEIGHT = 8 };

/* The mean of the points of each column; NAN: it has none. */
static void means(const double *x, const double *y, long long n, double *mean)
{
    long long count[WIDTH] = {0};
    memset(mean, 0, sizeof(*mean) * WIDTH);
    const double first = x[0], span = x[n - 1] > first ? x[n - 1] - first : 1;
    for (long long i = 0; i < n; i++) {
        const double place = (x[i] - first) / span * (WIDTH - 1);
        if (!isfinite(y[i]) || !(place >= 0 && place <= WIDTH - 1))
            continue;
        mean[(int)(place + 0.5)] += y[i];
        count[(int)(place + 0.5)]++;
    }
    for (int i = 0; i < WIDTH; i++)
        mean[i] = count[i] ? mean[i] / (double)count[i] : NAN;
}

void cli_plot(const double *x, const double *y, long long n)
{
    double mean[WIDTH], low = INFINITY, high = -INFINITY;
    if (n < 2)
        return;
    means(x, y, n, mean);
    for (int i = 0; i < WIDTH; i++)
        if (isfinite(mean[i])) {
            low = fmin(low, mean[i]);
            high = fmax(high, mean[i]);
        }
    if (!isfinite(low))
        return;
    /* A curve that falls by orders of magnitude is shown by its logarithm. */
    const bool by_log = low > 0 && high / low > 100;
    const double base = by_log ? log(low) : low;
    const double top = by_log ? log(high) : high, span = top > base ? top - base : 1;
    for (int row = HEIGHT - 1; row >= 0; row--) {
        char line[WIDTH + 1];
        memset(line, ' ', WIDTH);
        for (int i = 0; i < WIDTH; i++) {
            const double y_at = by_log ? log(mean[i]) : mean[i];
            if (isfinite(y_at) && (int)((y_at - base) / span * (HEIGHT - 1) + 0.5) == row)
                line[i] = '*';
        }
        int end = WIDTH;
        while (end > 0 && line[end - 1] == ' ')
            end--;
        line[end] = 0;
        if (row == HEIGHT - 1 || row == 0)
            printf("  %10.4g |%s\n", row ? high : low, line);
        else
            printf("  %10s |%s\n", "", line);
    }
    printf("  %10s  %-*.0f%*.0f\n", by_log ? "log, step" : "step", WIDTH / 2, x[0], WIDTH / 2,
           x[n - 1]);
}

enum { BARS = 12, LONGEST = 48 };

/* Divides the count of a bucket from low to high among bins of equal width between min and max. */
static void spread(const leat_summary_value *v, double low, double high, double count, double *bins)
{
    const double width = (v->max - v->min) / BARS;
    low = fmax(low, v->min);
    high = fmin(high, v->max);
    if (!(width > 0) || !(high > low)) {
        const double at = width > 0 ? (low - v->min) / width : 0;
        bins[at >= BARS - 1 ? BARS - 1 : at > 0 ? (int)at : 0] += count;
        return;
    }
    for (int i = 0; i < BARS; i++) {
        const double begin = v->min + i * width, end = i + 1 < BARS ? begin + width : v->max;
        const double common = fmin(high, end) - fmax(low, begin);
        if (common > 0)
            bins[i] += count * common / (high - low);
    }
}

/* Bars for values between the least and the greatest, as TensorBoard shows them: buckets, which are
 * narrow around 0 and wide elsewhere, are divided among bars of equal width. */
void cli_bars(const leat_summary_value *v)
{
    double bins[BARS] = {0}, most = 0;
    if (!(v->num > 0) || !isfinite(v->min) || !isfinite(v->max) || !isfinite(v->max - v->min))
        return;
    for (int i = 0; i < v->n_buckets; i++)
        if (v->counts[i] > 0)
            spread(v, i ? v->limits[i - 1] : v->min, v->limits[i], v->counts[i], bins);
    const int n = v->max > v->min ? BARS : 1;
    for (int i = 0; i < n; i++)
        most = fmax(most, bins[i]);
    for (int i = 0; i < n && most > 0; i++) {
        char bar[LONGEST + 1];
        const int length = (int)ceil(bins[i] / most * LONGEST);
        memset(bar, '#', (size_t)length);
        bar[length] = 0;
        printf("  %10.4g |%-*s %.0f\n", v->min + i * (v->max - v->min) / BARS, LONGEST, bar,
               bins[i]);
    }
    if (n > 1)
        printf("  %10.4g |\n", v->max);
}
