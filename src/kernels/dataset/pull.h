/* pull.h -- the request for one element of an iterator.
 *
 * 1. leat_pull_start returns true if the pull ended in the call: its status, end or element is the
 *    result. Else p->done is called when it has ended, in any thread.
 * 2. In `next`, p->why says why it is called. After PULLED, p->end or p->element is what the other
 *    iterator gave (p->status, too, for kinds that catch errors). After CALLED, p->status or
 *    p->element is what the function gave.
 * 3. A `next` that returns LEAT_NEXT_WAIT has handed the pull to somebody who will call
 *    leat_pull_resume, maybe before `next` has returned: it does not touch the pull afterwards.
 * 4. An iterator that is pulled by leat_pull_packed may give its element as one block of memory, in
 *    p->packed in place of p->element. Those who keep elements for long, or copy them, do so; all
 *    others never see such a block.
 */
#ifndef LEAT_PULL_H
#define LEAT_PULL_H

#include "kernels/dataset/packed.h"

struct leat_pull {
    leat_iteration *iteration;
    leat_iterator *at; /* whose next is called next */
    enum { LEAT_WHY_START, LEAT_WHY_PULLED, LEAT_WHY_CALLED, LEAT_WHY_AGAIN } why;
    leat_status status;
    bool end;
    leat_element element;
    leat_packed *packed;     /* set in place of element: see rule 4 */
    leat_spares spares;      /* blocks for packed elements */
    leat_iterator *from;     /* for LEAT_NEXT_PULL, */
    bool packs;              /* and whether it may give its element packed */
    const leat_data_fn *fn;  /* for LEAT_NEXT_CALL: the function, */
    const leat_element *arg; /* and its first arguments, which stay until it has ended */
    atomic_int turns;        /* who has come to the end of a call: see call() */
    void (*done)(leat_pull *p);
    void *done_arg;
};

bool leat_pull_start(leat_pull *p, leat_iterator *it);
/* Frees what a pull that is not under way has: element, status, memory. */
void leat_pull_release(leat_pull *p);
void leat_pull_resume(leat_pull *p);
/* The same on a thread of the pool. */
void leat_pull_resume_later(leat_pull *p);
/* Whether this thread was started for jobs that may block. Such a thread should not compute for
 * long: the pool already has one thread for each processor. */
bool leat_pull_may_block(void);

static inline leat_next leat_pull_from(leat_pull *p, leat_iterator *it)
{
    p->from = it;
    p->packs = false;
    return LEAT_NEXT_PULL;
}
/* The same for those who also take a packed element. */
static inline leat_next leat_pull_packed(leat_pull *p, leat_iterator *it)
{
    p->from = it;
    p->packs = true;
    return LEAT_NEXT_PULL;
}
/* For an iterator that gives its input's elements as they come: pulls its input. */
static inline leat_next leat_pull_through(leat_pull *p, const leat_iterator *it)
{
    p->from = it->input;
    p->packs = it->packs;
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
/* Drops the element that the pull has, if it has one. */
static inline void leat_pull_drop(leat_pull *p)
{
    leat_element_clear(&p->element);
    leat_packed_free(p->packed);
    p->packed = NULL;
}
static inline leat_next leat_pull_give(leat_pull *p, leat_element e) /* takes e */
{
    leat_pull_drop(p);
    p->element = e;
    return LEAT_NEXT_ELEMENT;
}
/* For an iterator with `packs`. Takes e. */
static inline leat_next leat_pull_give_packed(leat_pull *p, leat_packed *e)
{
    leat_pull_drop(p);
    p->packed = e;
    return LEAT_NEXT_ELEMENT;
}
/* The pull's packed element, which is the caller's then; or NULL. */
static inline leat_packed *leat_pull_take_packed(leat_pull *p)
{
    leat_packed *e = p->packed;
    p->packed = NULL;
    return e;
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
