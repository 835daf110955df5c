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

/* One bar for each bucket between the first and the last that is not empty, or for several, if
 * there are many. */
void cli_bars(const double *limits, const double *counts, int n)
{
    enum { MOST = 16, LONGEST = 48 };
    int begin = 0, end = n;
    while (begin < n && !(counts[begin] > 0))
        begin++;
    while (end > begin && !(counts[end - 1] > 0))
        end--;
    if (begin == end)
        return;
    const int each = (end - begin + MOST - 1) / MOST;
    double most = 0;
    for (int i = begin; i < end; i += each) {
        double sum = 0;
        for (int k = i; k < i + each && k < end; k++)
            sum += counts[k];
        most = fmax(most, sum);
    }
    for (int i = begin; i < end; i += each) {
        double sum = 0;
        const int last = i + each < end ? i + each : end;
        for (int k = i; k < last; k++)
            sum += counts[k];
        char bar[LONGEST + 1];
        const int length = (int)ceil(sum / most * LONGEST);
        memset(bar, '#', (size_t)length);
        bar[length] = 0;
        printf("  %s %-10.4g %8.0f %s\n", "below", limits[last - 1], sum, bar);
    }
}
