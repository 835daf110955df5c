/* far.c -- reference counting and closing of a leat_far. */
#include "runtime/far.h"

#include "runtime/callable.h"

void leat_far_init(leat_far *f, const leat_far_ops *ops)
{
    f->ops = ops;
    atomic_init(&f->refs, 1);
    pthread_mutex_init(&f->lock, NULL);
}

leat_far *leat_far_ref(leat_far *f)
{
    atomic_fetch_add_explicit(&f->refs, 1, memory_order_relaxed);
    return f;
}

void leat_far_unref(leat_far *f)
{
    if (!f || atomic_fetch_sub_explicit(&f->refs, 1, memory_order_acq_rel) != 1)
        return;
    pthread_mutex_destroy(&f->lock);
    f->ops->free(f);
}

void leat_far_close(leat_far *f)
{
    pthread_mutex_lock(&f->lock);
    leat_callables *callables = f->callables;
    f->callables = NULL;
    atomic_store(&f->closed, true);
    pthread_mutex_unlock(&f->lock);
    leat_callables_unref(callables); /* The set holds a reference to f, which this releases. */
    f->ops->close(f);
}
