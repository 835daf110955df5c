/* ahead.c -- see ahead.h. */
#include "kernels/dataset/ahead.h"

#include <stdlib.h>

#include "core/alloc.h"
#include "core/cond.h"
#include "kernels/dataset/state.h"
#include "kernels/dataset/stats.h"

/* A result, or a place for one. */
typedef struct slot {
    struct slot *next;
    leat_ahead *stage;
    leat_element element; /* the function's arguments until the call has ended */
    leat_status status;
    bool end;  /* the function has said that the data end here */
    bool done; /* the result is there */
} slot;

enum {
    MOST_CHUNK = 32,
    CHUNK_NS = 50 * 1000, /* how long a chunk should take */
    /* Results of a function are kept beyond the limit while they are small and few: */
    MOST_SMALL = 256,
    SMALL_BYTES = 1024 * 1024,
};

/* Slots that one thread calls the function for, one after the other. */
typedef struct chunk {
    leat_ahead *stage;
    slot *v[MOST_CHUNK];
    int n, at;
    atomic_int turns; /* who has come to the end of a call: see called() */
    bool waited;      /* A call has not ended at once. */
    int64_t started;
    int64_t call_started; /* set if times are reported */
} chunk;

struct leat_ahead {
    atomic_int refs;
    leat_iteration *in;
    leat_dataset *d; /* a reference */
    leat_iterator *input;
    leat_ahead_options o;

    pthread_mutex_t lock; /* Guards what follows. */
    pthread_cond_t idle;  /* nothing is under way */
    slot *first, *last;
    slot *unused;    /* slots whose results were given, linked by next */
    int64_t n;       /* slots */
    bool job;        /* a job pulls, or is about to */
    chunk *gathered; /* by the job, to be called for; or NULL */
    int chunk;       /* slots that a chunk should have */
    int callers;     /* chunks whose calls are under way */
    int calls;       /* that have not ended, or not begun */
    size_t largest;  /* bytes of the largest result so far; 0: none was seen */
    bool ended;      /* the input has */
    bool paused;     /* the position is being saved */
    bool closed;     /* the iterator was freed */
    leat_pull pull;  /* of the input */
    leat_pull *waiter;
};

static void free_slots(slot *s);

static void hold(leat_ahead *a)
{
    atomic_fetch_add_explicit(&a->refs, 1, memory_order_relaxed);
    leat_iteration_busy(a->in);
}

static void unref(leat_ahead *a)
{
    if (atomic_fetch_sub_explicit(&a->refs, 1, memory_order_acq_rel) != 1)
        return;
    free_slots(a->first);
    free_slots(a->unused);
    leat_iterator_free(a->input);
    leat_pull_release(&a->pull);
    leat_stats_unref(a->o.stats);
    leat_dataset_unref(a->d);
    pthread_cond_destroy(&a->idle);
    pthread_mutex_destroy(&a->lock);
    free(a);
}

static void drop(leat_ahead *a)
{
    leat_iteration *in = a->in;
    unref(a);
    leat_iteration_idle(in);
}

/* ---- With the lock held ---- */

static bool small(const leat_ahead *a, int64_t n)
{
    return a->largest && n < MOST_SMALL && (uint64_t)n * a->largest < SMALL_BYTES;
}

static bool wanted(const leat_ahead *a)
{
    return !a->closed && !a->paused && !a->ended && (a->n < a->o.limit || small(a, a->n)) &&
           !(a->o.fn && a->callers >= a->o.limit) && !leat_iteration_closed(a->in);
}

/* The slot whose result is the next one to give, or NULL; *before is the one before it. */
static slot *ready(leat_ahead *a, slot **before)
{
    *before = NULL;
    if (a->first && a->first->done)
        return a->first;
    for (slot *s = a->first; a->o.any_order && s && s->next; s = s->next)
        if (s->next->done && !s->next->end) {
            *before = s;
            return s->next;
        }
    return NULL;
}

static bool over(const leat_ahead *a)
{
    return !a->first && (a->ended || (!a->job && a->callers == 0 && !wanted(a)));
}

/* Whether a pull waits that need not wait any more. */
static bool must_wake(leat_ahead *a)
{
    slot *before;
    return a->waiter && (ready(a, &before) || over(a));
}

/* The pull that waits, if it need not wait any more. */
static leat_pull *take_waiter(leat_ahead *a)
{
    leat_pull *w = a->waiter;
    if (!must_wake(a))
        return NULL;
    a->waiter = NULL;
    w->why = LEAT_WHY_AGAIN;
    return w;
}

static slot *add_slot(leat_ahead *a)
{
    slot *s = a->unused;
    if (s)
        a->unused = s->next;
    else
        s = leat_new(slot);
    *s = (slot){.stage = a};
    if (a->last)
        a->last->next = s;
    else
        a->first = s;
    a->last = s;
    a->n++;
    return s;
}

static void remove_slot(leat_ahead *a, slot *s, slot *before)
{
    if (before)
        before->next = s->next;
    else
        a->first = s->next;
    if (a->last == s)
        a->last = before;
    a->n--;
    s->next = a->unused;
    a->unused = s;
}

static void free_slots(slot *s)
{
    for (slot *next; s; s = next) {
        next = s->next;
        leat_element_clear(&s->element);
        leat_status_free(s->status);
        free(s);
    }
}

static void work_job(void *arg);

/* There is to be a job: the caller calls submit when it has released the lock, because a pool that
 * has no thread runs the job at once. */
static bool new_job(leat_ahead *a)
{
    a->job = true;
    hold(a);
    return true;
}

static void submit(leat_ahead *a)
{
    leat_pool_submit(a->in->pool, work_job, a);
}

/* Results beyond the limit are replaced when half of them were given, many at once. */
static bool kick(leat_ahead *a)
{
    return !a->job && wanted(a) && (a->n < a->o.limit || small(a, 2 * a->n)) && new_job(a);
}

static void tell_idle(leat_ahead *a)
{
    if (!a->job && a->calls == 0)
        pthread_cond_broadcast(&a->idle);
}

/* ---- Calls ---- */

static void put_result(slot *s, leat_status status, leat_tensor **results, int n)
{
    leat_ahead *a = s->stage;
    leat_element args = leat_element_take(&s->element);
    leat_element_clear(&args);
    leat_element e = leat_element_new(n);
    size_t bytes = 0;
    for (int i = 0; i < n; i++) {
        e.v[i] = results[i];
        bytes += leat_tensor_bytes(results[i]) + sizeof(leat_tensor);
    }
    bool end = leat_status_code(status) == LEAT_OUT_OF_RANGE && !a->o.keeps_count;
    if (leat_status_code(status) == LEAT_OUT_OF_RANGE) {
        leat_status s =
            end ? NULL
                : leat_error(INVALID_ARGUMENT, "Function invocation produced OutOfRangeError: %s",
                             leat_status_message(status));
        leat_status_free(status);
        status = s;
    }
    pthread_mutex_lock(&a->lock);
    s->element = e;
    s->status = status;
    s->end = end;
    s->done = true;
    a->calls--;
    a->largest = bytes > a->largest ? bytes : a->largest;
    pthread_mutex_unlock(&a->lock);
}

/* Chunks grow while a call takes a few microseconds, so that threads take turns less often. */
static void tune(leat_ahead *a, const chunk *c)
{
    const int64_t took = leat_now_ns() - c->started;
    if (c->waited || took > 2 * CHUNK_NS)
        a->chunk = a->chunk > 1 && !c->waited ? a->chunk / 2 : 1;
    else if (c->n == a->chunk && 2 * took < CHUNK_NS && a->chunk < MOST_CHUNK)
        a->chunk *= 2;
}

static void end_chunk(chunk *c)
{
    leat_ahead *a = c->stage;
    pthread_mutex_lock(&a->lock);
    tune(a, c);
    a->callers--;
    const bool more = kick(a);
    leat_pull *w = take_waiter(a);
    tell_idle(a);
    pthread_mutex_unlock(&a->lock);
    free(c);
    if (more)
        submit(a);
    drop(a);
    if (w)
        leat_pull_resume(w);
}

static void run_chunk(chunk *c);

/* Two threads come to the end of a call, as in pull.c: the second of them goes on with the chunk.
 */
static void called(void *arg, leat_status status, leat_tensor **results, int n)
{
    chunk *c = arg;
    if (c->stage->o.stats)
        leat_stats_called(c->stage->o.stats, c->stage->d, leat_now_ns() - c->call_started);
    put_result(c->v[c->at], status, results, n);
    if (atomic_fetch_add(&c->turns, 1) == 1) {
        c->waited = true;
        c->at++;
        run_chunk(c);
    }
}

/* Calls the function for the rest of a chunk, for one slot after the other. Takes c, and the
 * reference to the stage. */
static void run_chunk(chunk *c)
{
    for (; c->at < c->n; c->at++) {
        leat_ahead *a = c->stage;
        atomic_store(&c->turns, 0);
        if (a->o.stats)
            c->call_started = leat_now_ns();
        leat_data_call_start(a->in, a->o.fn, &c->v[c->at]->element, called, c);
        if (atomic_fetch_add(&c->turns, 1) != 1)
            return;
    }
    end_chunk(c);
}

/* With the lock held: takes the slots that were gathered. Gives NULL if there are none. */
static chunk *take_chunk(leat_ahead *a)
{
    chunk *c = a->gathered;
    a->gathered = NULL;
    if (c)
        a->callers++;
    return c;
}

/* ---- Pulls ---- */

static void gather(leat_ahead *a, slot *s)
{
    chunk *c = a->gathered;
    if (!c) {
        c = a->gathered = leat_new(chunk);
        c->stage = a;
        c->started = leat_now_ns();
    }
    c->v[c->n++] = s;
    a->calls++;
}

/* With the lock held: the pull of the input has ended. */
static void settle(leat_ahead *a)
{
    leat_pull *p = &a->pull;
    if (p->end) {
        a->ended = true;
        return;
    }
    slot *s = add_slot(a);
    s->status = p->status;
    p->status = NULL;
    s->element = leat_element_take(&p->element);
    s->done = s->status || !a->o.fn;
    if (!s->done)
        gather(a, s);
}

/* A chunk is complete when it has enough slots, or when these took long to come. */
static bool complete(const leat_ahead *a)
{
    const chunk *c = a->gathered;
    return c && (c->n >= a->chunk || leat_now_ns() - c->started > CHUNK_NS);
}

/* With the lock held, which is released: the end of a job that does not pull any more. Runs the
 * chunk that was gathered, if there is one, and another job pulls if `more`. */
static void leave(leat_ahead *a, bool more)
{
    chunk *c = take_chunk(a);
    leat_pull *w = take_waiter(a);
    a->job = false;
    const bool again = (c ? wanted(a) : more) && new_job(a);
    tell_idle(a);
    pthread_mutex_unlock(&a->lock);
    if (again)
        submit(a);
    if (!c) {
        drop(a);
        if (w)
            leat_pull_resume(w);
        return;
    }
    if (w)
        leat_pull_resume_later(w);
    c->started = leat_now_ns();
    run_chunk(c); /* with this job's reference */
}

/* The pull of a job goes on elsewhere, maybe for long: what was gathered before it does not wait.
 * Takes a reference. */
static void run_gathered(leat_ahead *a)
{
    pthread_mutex_lock(&a->lock);
    chunk *c = take_chunk(a);
    pthread_mutex_unlock(&a->lock);
    if (c)
        run_chunk(c);
    else
        drop(a);
}

static void chunk_job(void *arg)
{
    chunk *c = arg;
    c->started = leat_now_ns();
    run_chunk(c);
}

/* With the lock held, which is released meanwhile: another thread calls the function for what was
 * gathered, and this one goes on pulling: the input's memory is in the cache of its processor. */
static void hand_over(leat_ahead *a)
{
    chunk *c = take_chunk(a);
    leat_pull *w = take_waiter(a);
    hold(a);
    pthread_mutex_unlock(&a->lock);
    leat_pool_submit(a->in->pool, chunk_job, c);
    if (w)
        leat_pull_resume_later(w);
    pthread_mutex_lock(&a->lock);
}

/* Goes on with the job that pulls; `pulled` says that a pull has just ended. */
static void work(leat_ahead *a, bool pulled)
{
    bool held = false; /* This thread has a reference besides that of the job. */
    pthread_mutex_lock(&a->lock);
    for (;;) {
        if (pulled)
            settle(a);
        const bool more = wanted(a);
        a->job = more;
        if (more && complete(a) && a->callers + 1 < a->o.limit) {
            if (held)
                drop(a);
            held = false;
            hand_over(a);
            pulled = false;
            continue;
        }
        if (!more || complete(a) || (!a->gathered && must_wake(a))) {
            if (held)
                drop(a);
            leave(a, more);
            return;
        }
        if (a->gathered && !held) {
            hold(a);
            held = true;
        }
        pthread_mutex_unlock(&a->lock);
        if (!leat_pull_start(&a->pull, a->input)) {
            if (held)
                run_gathered(a);
            return;
        }
        pulled = true;
        pthread_mutex_lock(&a->lock);
    }
}

static void work_job(void *arg)
{
    work(arg, false);
}

static void pulled(leat_pull *p)
{
    leat_ahead *a = p->done_arg;
    if (!leat_pull_may_block()) {
        work(a, true);
        return;
    }
    pthread_mutex_lock(&a->lock);
    settle(a);
    leave(a, wanted(a)); /* A thread of the pool goes on. */
}

/* ---- The stage ---- */

leat_ahead *leat_ahead_new(leat_iteration *in, leat_dataset *d, leat_iterator *input,
                           const leat_ahead_options *o)
{
    leat_ahead *a = leat_new(leat_ahead);
    atomic_init(&a->refs, 1);
    a->in = in;
    a->d = leat_dataset_ref(d);
    a->input = input;
    a->o = *o;
    a->o.stats = leat_stats_ref(o->stats);
    a->chunk = 1;
    a->pull = (leat_pull){.iteration = in, .done = pulled, .done_arg = a};
    pthread_mutex_init(&a->lock, NULL);
    leat_cond_init(&a->idle);
    return a;
}

void leat_ahead_start(leat_ahead *a)
{
    pthread_mutex_lock(&a->lock);
    const bool more = kick(a);
    pthread_mutex_unlock(&a->lock);
    if (more)
        submit(a);
}

void leat_ahead_close(leat_ahead *a)
{
    if (!a)
        return;
    pthread_mutex_lock(&a->lock);
    a->closed = true;
    pthread_mutex_unlock(&a->lock);
    unref(a);
}

/* Reports how full the stage is, with n results, of which one is about to be given. */
static void report(const leat_ahead *a, int64_t n, int64_t limit, int callers)
{
    leat_stats *to = a->o.stats;
    if (a->o.fn) {
        leat_stats_set_of(to, a->d, "thread_utilization", (float)callers / (float)limit);
    } else {
        leat_stats_add_of(to, a->d, "buffer_utilization", (double)((float)n / (float)limit));
        leat_stats_set_of(to, a->d, "buffer_size", (float)n);
        leat_stats_set_of(to, a->d, "buffer_capacity", (float)limit);
    }
}

leat_next leat_ahead_next(leat_ahead *a, leat_pull *p)
{
    slot *before;
    pthread_mutex_lock(&a->lock);
    if (kick(a)) {
        pthread_mutex_unlock(&a->lock);
        submit(a);
        pthread_mutex_lock(&a->lock);
    }
    slot *s = ready(a, &before);
    if (!s && over(a)) {
        bool ended = a->ended;
        pthread_mutex_unlock(&a->lock);
        return ended ? LEAT_NEXT_END
                     : leat_pull_fail(p, leat_error(CANCELLED, "The iterator was closed"));
    }
    if (!s) {
        if (a->o.limit < a->o.grows_to)
            a->o.limit = 2 * a->o.limit < a->o.grows_to ? 2 * a->o.limit : a->o.grows_to;
        a->waiter = p;
        pthread_mutex_unlock(&a->lock);
        return LEAT_NEXT_WAIT;
    }
    leat_element e = leat_element_take(&s->element);
    leat_status status = s->status;
    bool end = s->end;
    s->status = NULL;
    const int64_t n = a->n, limit = a->o.limit;
    const int callers = a->callers;
    remove_slot(a, s, before);
    const bool more = kick(a);
    pthread_mutex_unlock(&a->lock);
    if (a->o.stats)
        report(a, n, limit, callers);
    if (more)
        submit(a);
    if (status || end)
        leat_element_clear(&e); /* A position that was damaged may have both. */
    if (status)
        return leat_pull_fail(p, status);
    return end ? LEAT_NEXT_END : leat_pull_give(p, e);
}

/* ---- Positions ---- */

/* Waits, with the lock held, until nothing is under way. */
static leat_status pause(leat_ahead *a, leat_kernel *k)
{
    a->paused = true;
    while (a->job || a->calls > 0) {
        LEAT_REQUIRE(!(k && leat_kernel_cancelled(k)) && !leat_iteration_closed(a->in), CANCELLED,
                     "The step was cancelled while the position of an iterator was saved");
        leat_cond_wait_until(&a->idle, &a->lock, leat_now_ns() + 20 * INT64_C(1000000));
    }
    return NULL;
}

static leat_status save_slots(leat_ahead *a, leat_state_writer *w)
{
    leat_state_put_int(w, a->o.limit);
    leat_state_put_int(w, a->ended);
    leat_state_put_int(w, a->n);
    for (const slot *s = a->first; s; s = s->next) {
        leat_state_put_int(w, s->end);
        leat_state_put_int(w, leat_status_code(s->status));
        if (s->status)
            leat_state_put_text(w, leat_status_message(s->status));
        LEAT_TRY(leat_state_put_element(w, &s->element));
    }
    return leat_state_put_iterator(w, a->input);
}

leat_status leat_ahead_save(leat_ahead *a, leat_state_writer *w)
{
    pthread_mutex_lock(&a->lock);
    leat_status s = pause(a, w->kernel);
    pthread_mutex_unlock(&a->lock);
    if (!s)
        s = save_slots(a, w); /* Slots do not change while the stage is paused. */
    pthread_mutex_lock(&a->lock);
    a->paused = false;
    pthread_mutex_unlock(&a->lock);
    return s;
}

static leat_status restore_slot(leat_ahead *a, leat_state_reader *r)
{
    slot *s = add_slot(a);
    int64_t code;
    s->done = true;
    LEAT_TRY(leat_state_get_bool(r, &s->end));
    LEAT_TRY(leat_state_get_within(r, 0, LEAT_UNAUTHENTICATED, &code));
    if (code) {
        char *text;
        LEAT_TRY(leat_state_get_text(r, &text));
        s->status = leat_status_new((leat_code)code, __FILE__, __LINE__, "%s", text);
        free(text);
    }
    return s->end || s->status ? leat_state_get_element(r, &s->element)
                               : leat_state_get_element_of(r, a->d->n, a->d->types, &s->element);
}

leat_status leat_ahead_restore(leat_ahead *a, leat_dataset *of, const leat_iterator *parent,
                               leat_state_reader *r)
{
    const int64_t most = a->o.limit > a->o.grows_to ? a->o.limit : a->o.grows_to;
    int64_t n;
    LEAT_TRY(leat_state_get_within(r, 1, INT64_MAX, &a->o.limit));
    if (a->o.limit > most)
        a->o.limit = most;
    LEAT_TRY(leat_state_get_bool(r, &a->ended));
    LEAT_TRY(leat_state_get_within(r, 0, (int64_t)((r->n - r->at) / 9), &n));
    for (int64_t i = 0; i < n; i++)
        LEAT_TRY(restore_slot(a, r));
    LEAT_TRY(leat_state_get_iterator(r, a->in, of, parent, 0, &a->input));
    LEAT_REQUIRE(a->input || a->ended, DATA_LOSS, "The saved position is damaged: %s has no input",
                 a->d->name);
    return NULL;
}
