/* ahead.h -- a stage that works ahead: it pulls an iterator in the background, calls a function on
 * each element if it has one, and keeps a bounded number of results in the order of the input.
 *
 * 1. One job of the pool pulls at a time. It gathers a chunk of elements, one if calls take long,
 *    hands it to a job that calls the function for each of them in turn, and goes on pulling. When
 *    as many chunks as the limit allows would be under way, it calls the function itself.
 * 2. Jobs and calls hold a reference to the stage and count as busy in its iteration. The iterator
 *    that has the stage may be freed before they have ended: the last of them frees the stage.
 * 3. A thread that resumes the waiting pull does so last, after it has dropped its reference.
 */
#ifndef LEAT_AHEAD_H
#define LEAT_AHEAD_H

#include "kernels/dataset/iteration.h"

typedef struct leat_ahead leat_ahead;

typedef struct leat_ahead_options {
    /* Results, ready or under way; at least 1. With a function: chunks whose calls are under way;
     * more results are kept while they are small. */
    int64_t limit;
    int64_t grows_to;       /* The limit doubles up to this when a pull has to wait; 0: never. */
    const leat_data_fn *fn; /* borrowed from d; NULL: none */
    bool keeps_count;       /* OUT_OF_RANGE of the function is an error, not the end */
    bool any_order;         /* results are given as they become ready */
    leat_stats *stats;      /* the iterator's; borrowed from it, the stage has a reference */
} leat_ahead_options;

/* Takes input. d is the dataset whose iterator has the stage. */
leat_ahead *leat_ahead_new(leat_iteration *in, leat_dataset *d, leat_iterator *input,
                           const leat_ahead_options *o);
void leat_ahead_close(leat_ahead *a); /* of NULL does nothing */
/* The `next` of an iterator that has the stage. */
leat_next leat_ahead_next(leat_ahead *a, leat_pull *p);
/* Save waits until nothing is under way, or until w's kernel is cancelled. Results that are ready
 * are part of the position. */
leat_status leat_ahead_save(leat_ahead *a, leat_state_writer *w) LEAT_MUST_CHECK;
/* For a stage that was not pulled yet. `of` is the dataset of its input. */
leat_status leat_ahead_restore(leat_ahead *a, leat_dataset *of, const leat_iterator *parent,
                               leat_state_reader *r) LEAT_MUST_CHECK;
/* Begins to work before the first pull. */
void leat_ahead_start(leat_ahead *a);

#endif
