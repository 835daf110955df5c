/* pull.h -- the request for one element of an iterator.
 *
 * 1. leat_pull_start returns true if the pull ended in the call: its status, end or element is the
 *    result. Else p->done is called when it has ended, in any thread.
 * 2. In `next`, p->why says why it is called. After PULLED, p->end or p->element is what the other
 *    iterator gave (p->status, too, for kinds that catch errors). After CALLED, p->status or
 *    p->element is what the function gave.
 * 3. A `next` that returns LEAT_NEXT_WAIT has handed the pull to somebody who will call
 *    leat_pull_resume, maybe before `next` has returned: it does not touch the pull afterwards.
 */
#ifndef LEAT_PULL_H
#define LEAT_PULL_H

#include "kernels/dataset/dataset.h"

struct leat_pull {
    leat_iteration *iteration;
    leat_iterator *at; /* whose next is called next */
    enum { LEAT_WHY_START, LEAT_WHY_PULLED, LEAT_WHY_CALLED, LEAT_WHY_AGAIN } why;
    leat_status status;
    bool end;
    leat_element element;
    leat_iterator *from;     /* for LEAT_NEXT_PULL */
    const leat_data_fn *fn;  /* for LEAT_NEXT_CALL: the function, */
    const leat_element *arg; /* and its first arguments, which stay until it has ended */
    atomic_int turns;        /* who has come to the end of a call: see call() */
    void (*done)(leat_pull *p);
    void *done_arg;
};

bool leat_pull_start(leat_pull *p, leat_iterator *it);
void leat_pull_resume(leat_pull *p);
/* The same on a thread of the pool. */
void leat_pull_resume_later(leat_pull *p);
/* Whether this thread was started for jobs that may block. Such a thread should not compute for
 * long: the pool already has one thread for each processor. */
bool leat_pull_may_block(void);

static inline leat_next leat_pull_from(leat_pull *p, leat_iterator *it)
{
    p->from = it;
    return LEAT_NEXT_PULL;
}
/* Borrows fn and arg until the function has ended. arg may be NULL. */
static inline leat_next leat_pull_call(leat_pull *p, const leat_data_fn *fn,
                                       const leat_element *arg)
{
    p->fn = fn;
    p->arg = arg;
    return LEAT_NEXT_CALL;
}
static inline leat_next leat_pull_fail(leat_pull *p, leat_status s)
{
    p->status = s;
    return LEAT_NEXT_FAILED;
}
static inline leat_next leat_pull_give(leat_pull *p, leat_element e) /* takes e */
{
    leat_element_clear(&p->element);
    p->element = e;
    return LEAT_NEXT_ELEMENT;
}

/* Calls a function and waits for its end, for code that may block. *result is empty on failure. */
leat_status leat_data_call(leat_iteration *in, const leat_data_fn *fn, const leat_element *arg,
                           leat_element *result) LEAT_MUST_CHECK;
/* Starts a call; fn(arg, status, results, n) as leat_callable_start. */
void leat_data_call_start(leat_iteration *in, const leat_data_fn *fn, const leat_element *element,
                          leat_callable_fn done, void *arg);
/* Adds the name of the dataset and the number of the element to an error, unless another dataset
 * has done so. Takes s. */
leat_status leat_data_error(const leat_iterator *it, leat_status s) LEAT_MUST_CHECK;

#endif
