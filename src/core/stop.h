/* stop.h -- when work on behalf of somebody has to end: a deadline, and a way to learn that nobody
 * waits for it any more. */
#ifndef LEAT_CORE_STOP_H
#define LEAT_CORE_STOP_H

#include <leat/status.h>

#include <stdbool.h>
#include <stdint.h>

typedef struct leat_stop {
    int64_t deadline_ns;          /* CLOCK_MONOTONIC; 0: none */
    bool (*cancelled)(void *arg); /* NULL: never */
    void *arg;
} leat_stop;

/* NULL while the work may go on; else CANCELLED or DEADLINE_EXCEEDED, without a message that says
 * what the work was. s may be NULL. */
leat_status leat_stop_check(const leat_stop *s) LEAT_MUST_CHECK;

#endif
