/* preparer.h -- a thread that prepares the program's next batch while the program trains on the
 * last one. The training step waits for other tasks now and then; its process uses that time for
 * this.
 */
#ifndef LEAT_DATA_PREPARER_H
#define LEAT_DATA_PREPARER_H

typedef struct leat_preparer leat_preparer;

/* fn(arg) prepares one batch. NULL if no thread can be had: the caller then prepares its batches
 * itself. */
leat_preparer *leat_preparer_new(void (*fn)(void *arg), void *arg);
/* The thread calls fn once. To be called only if it has not begun, or has been waited for. */
void leat_preparer_begin(leat_preparer *a);
/* Returns when fn has returned. To be called once after each leat_preparer_begin. */
void leat_preparer_wait(leat_preparer *a);
/* Ends the thread. Of NULL does nothing. To be called only if nothing has begun. */
void leat_preparer_free(leat_preparer *a);

#endif
