/* later.h -- what a thread puts off while it has more to do at once: waking somebody who might take
 * the CPU from it, only to find half of what it is to be told.
 *
 * A thread that holds back does what it put off when it stops holding back, and before whatever may
 * take long: it waits (leat_event_wait, leat_pool_wait and leat_futex_wait see to that), blocks, or
 * runs an expensive kernel.
 */
#ifndef LEAT_CORE_LATER_H
#define LEAT_CORE_LATER_H

#include <stdbool.h>

void leat_later_begin(void); /* holds back; may be nested */
void leat_later_end(void);
void leat_later_now(void); /* does what was put off; goes on holding back */
/* False if the thread does not hold back, or has put off too much, or this too often: do it now.
 * True: it will be done; *again_out says whether the same was put off before, and is done once. */
bool leat_later_put(void (*fn)(void *arg), void *arg, bool *again_out);

#endif
