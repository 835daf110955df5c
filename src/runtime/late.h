/* late.h -- feeds that come, and fetches that are taken, while a step is under way (partial runs).
 */
#ifndef LEAT_LATE_H
#define LEAT_LATE_H

#include "runtime/kernel_int.h"
#include "runtime/step.h"

typedef struct leat_late leat_late;

leat_late *leat_late_new(int n_feeds, int n_fetches);
void leat_late_free(leat_late *l);
/* Of kernels: output 0 becomes feed `index` now or when it comes; an entry for fetch `index`. */
void leat_late_wait(leat_late *l, int index, leat_kernel *k);
void leat_late_fetched(leat_late *l, int index, leat_tensor *t); /* takes t */
bool leat_late_was_fed(leat_late *l, int index);
/* Of the caller: feed `index` is t (shared). INVALID_ARGUMENT if it was fed before. */
leat_status leat_late_feed(leat_late *l, int index, leat_tensor *t) LEAT_MUST_CHECK;
/* Waits until fetch `index` has come, and takes it; NULL if the step ended first. */
leat_tensor *leat_late_fetch(leat_late *l, int index);
/* The step ended, or was cancelled: whoever waits gets this status. Borrows s. */
void leat_late_end(leat_late *l, leat_status s);

#endif
