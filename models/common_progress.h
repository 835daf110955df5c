/* common_progress.h -- prints the progress of training about once a second: rewritten in place on a
 * terminal, line by line elsewhere. */
#ifndef COMMON_PROGRESS_H
#define COMMON_PROGRESS_H

#include <stdbool.h>
#include <stdint.h>

typedef struct progress {
    double started, last; /* seconds */
    int64_t examples, last_examples;
    int64_t steps; /* steps in all; 0: not known; set it after progress_begin to see the time left */
    int64_t first; /* the step of the first line */
    double first_at;
    bool tty, drawn;
    const char *unit; /* "examples"; may be set after progress_begin */
} progress;

double progress_clock(void); /* seconds of a monotonic clock */
void progress_begin(progress *p);
/* Counts examples; returns true if a line is due. */
bool progress_add(progress *p, int64_t examples);
/* "step 500 of 6000  epoch 0.83  loss 0.2311  120000 examples/s  0:12 left" */
void progress_line(progress *p, int64_t step, double epoch, double loss);
/* Ends the line; gives the seconds since the start. */
double progress_end(progress *p);

#endif
