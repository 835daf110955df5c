/* late.h -- feeds that come, and fetches that are taken, while a step is under way (partial runs).
 * Kernels of _Arg and _Retval are on one side, the client's calls on the other. */
#ifndef LEAT_LATE_H
#define LEAT_LATE_H

#include "runtime/kernel_int.h"
#include "runtime/step.h"

typedef struct leat_late leat_late;

leat_late *leat_late_new(int n_feeds, int n_fetches);
void leat_late_free(leat_late *l);
/* For _Arg: sets output 0 of k to feed `index` and ends k, at once or when the feed comes. */
void leat_late_wait(leat_late *l, int index, leat_kernel *k);
/* For _Retval: fetch `index` is t. Takes t. */
void leat_late_fetched(leat_late *l, int index, leat_tensor *t);
bool leat_late_was_fed(leat_late *l, int index);
/* For the client: feed `index` is t. Shares t. INVALID_ARGUMENT if it was fed before. */
leat_status leat_late_feed(leat_late *l, int index, leat_tensor *t) LEAT_MUST_CHECK;
/* For the client: waits for fetch `index`, and gives it; NULL if the step ended first. */
leat_tensor *leat_late_fetch(leat_late *l, int index);
/* The step has ended or was cancelled: ends all waits, those of kernels with s. Borrows s. */
void leat_late_end(leat_late *l, leat_status s);

#endif
