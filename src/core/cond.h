/* cond.h -- condition variables whose waits end by a time of CLOCK_MONOTONIC: a change of the
 * machine's wall clock neither ends nor prolongs a wait. */
#ifndef LEAT_CORE_COND_H
#define LEAT_CORE_COND_H

#include <pthread.h>
#include <stdbool.h>
#include <stdint.h>

void leat_cond_init(pthread_cond_t *c); /* free with pthread_cond_destroy */
/* Waits as pthread_cond_wait does. False once deadline_ns, a time of leat_now_ns, has passed.
 * INT64_MAX never passes. */
bool leat_cond_wait_until(pthread_cond_t *c, pthread_mutex_t *lock, int64_t deadline_ns);

#endif
