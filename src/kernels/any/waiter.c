/* waiter.c -- see waiter.h. */
#include "kernels/any/waiter.h"

#include <stdlib.h>

#include "core/block.h"

static void cancelled(void *arg, leat_status why)
{
    leat_waiter *w = arg;
    w->ops->cancelled(w); /* may free w */
}

void *leat_waiter_new(const leat_waiter_ops *ops, leat_kernel *k, leat_resource *r)
{
    leat_waiter *w = leat_block_xalloc(ops->size);
    memset((void *)w, 0, ops->size);
    w->ops = ops;
    w->kernel = k;
    w->resource = r;
    w->cancel = (leat_cancel){.fn = cancelled, .arg = w};
    return w;
}

void leat_waiters_done(leat_waiters *l, leat_waiter *w)
{
    w->next = NULL;
    w->prev = l->last;
    if (l->last)
        l->last->next = w;
    else
        l->first = w;
    l->last = w;
}

void leat_waiters_add(leat_waiters *l, leat_waiter *w)
{
    leat_waiters_done(l, w);
    w->waiting = true;
}

void leat_waiters_remove(leat_waiters *l, leat_waiter *w)
{
    if (w->prev)
        w->prev->next = w->next;
    else
        l->first = w->next;
    if (w->next)
        w->next->prev = w->prev;
    else
        l->last = w->prev;
    w->waiting = false;
}

bool leat_waiter_watch(leat_waiter *w)
{
    w->watched = leat_step_on_cancel(w->kernel->step, &w->cancel);
    return w->watched;
}

void leat_waiters_finish(leat_waiters *finished)
{
    for (leat_waiter *w = finished->first, *next; w; w = next) {
        next = w->next;
        if (w->watched)
            leat_step_off_cancel(w->kernel->step, &w->cancel);
        w->ops->give(w);
        if (!w->ops->goes_on)
            leat_kernel_done(w->kernel, w->status);
        leat_resource_unref(w->resource);
        leat_block_free(w, w->ops->size);
    }
}
