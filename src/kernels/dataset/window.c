/* window.c -- Window, whose elements are datasets of the input's elements, and SlidingWindow, which
 * gives such windows as batches. */
#include "kernels/dataset/window.h"

#include <stdlib.h>

#include "core/alloc.h"
#include "kernels/dataset/batch.h"
#include "kernels/dataset/iteration.h"
#include "kernels/dataset/state.h"

/* ---- A dataset of elements that are there ---- */

typedef struct held {
    leat_dataset base;
    leat_elements all;
} held;

typedef struct at {
    leat_iterator base;
    int64_t i;
} at;

static void held_release(leat_dataset *d)
{
    leat_elements_clear(&((held *)d)->all);
}

static int64_t held_cardinality(const leat_dataset *d)
{
    return ((const held *)d)->all.n;
}

static leat_next held_next(leat_iterator *it, leat_pull *p)
{
    at *a = (at *)it;
    const held *d = (const held *)it->d;
    if (a->i >= d->all.n)
        return LEAT_NEXT_END;
    return leat_pull_give(p, leat_element_copy(&d->all.v[a->i++]));
}

static leat_status at_save(leat_iterator *it, leat_state_writer *w)
{
    leat_state_put_int(w, ((at *)it)->i);
    return NULL;
}

static leat_status at_restore(leat_iterator *it, leat_state_reader *r)
{
    return leat_state_get_within(r, 0, INT64_MAX, &((at *)it)->i);
}

static const leat_dataset_kind held_kind = {
    .size = sizeof(held),
    .iterator_size = sizeof(at),
    .release = held_release,
    .cardinality = held_cardinality,
    .next = held_next,
    .save = at_save,
    .restore = at_restore,
};

leat_status leat_dataset_of_window(leat_elements *l, int c, int n, const leat_dtype *types,
                                   const leat_shape *shapes, leat_tensor **out)
{
    leat_dataset *d;
    LEAT_TRY(leat_dataset_over(&held_kind, "WindowDataset", "window", NULL, 0, &d));
    held *h = (held *)d;
    if (c < 0) {
        leat_dataset_types(d, n, types, shapes);
        h->all = *l;
        *l = (leat_elements){0};
        return leat_dataset_tensor(d, out);
    }
    leat_dataset_types(d, 1, types + c, shapes + c);
    for (int64_t i = 0; i < l->n; i++) {
        leat_element e = leat_element_new(1);
        e.v[0] = leat_tensor_ref(l->v[i].v[c]);
        leat_elements_add(&h->all, &e);
    }
    return leat_dataset_tensor(d, out);
}

/* ---- Window ---- */

typedef struct window {
    leat_dataset base;
    int64_t size, shift, stride;
    bool drop_remainder;
} window;

/* An element that failed: the windows that have it fail. */
typedef struct failure {
    struct failure *next;
    int64_t i; /* its place in the buffer */
    leat_status status;
} failure;

typedef struct windower {
    leat_iterator base;
    leat_elements
        buffer; /* elements of the input that the next windows have; failed ones are empty */
    failure *failures, *last_failure; /* in the order of the buffer */
    int64_t to_skip;                  /* elements of the input that no window has */
    bool input_over;
} windower;

static leat_status check_sizes(const window *w)
{
    LEAT_REQUIRE(w->size > 0, INVALID_ARGUMENT, "Window size must be greater than zero.");
    LEAT_REQUIRE(w->shift > 0, INVALID_ARGUMENT, "Window shift must be greater than zero.");
    return NULL;
}

static leat_status read_sizes(leat_kernel *k, window *w, const char *size, const char *shift,
                              const char *stride)
{
    LEAT_TRY(leat_data_int(k, 1, size, &w->size));
    LEAT_TRY(leat_data_int(k, 2, shift, &w->shift));
    LEAT_TRY(leat_data_int(k, 3, stride, &w->stride));
    return check_sizes(w);
}

/* How many elements of the input a window covers. */
static int64_t target(const window *w)
{
    int64_t n;
    if (!leat_mul_ok(w->size - 1, w->stride, &n) || !leat_add_ok(n, 1, &n))
        return INT64_MAX;
    return n;
}

static leat_status check_window(leat_dataset *d)
{
    const window *w = (const window *)d;
    LEAT_REQUIRE(w->stride > 0, INVALID_ARGUMENT, "Window stride must be greater than zero.");
    for (int i = 0; i < d->n; i++) {
        d->types[i] = LEAT_VARIANT;
        d->shapes[i] = leat_shape();
    }
    return NULL;
}

static leat_status window_make(leat_kernel *k, leat_dataset *d)
{
    window *w = (window *)d;
    LEAT_TRY(read_sizes(k, w, "size", "shift", "stride"));
    LEAT_TRY(leat_data_bool(k, 4, "drop_remainder", &w->drop_remainder));
    return check_window(d);
}

static int64_t window_cardinality(const leat_dataset *d)
{
    const window *w = (const window *)d;
    int64_t n = leat_dataset_cardinality(d->in[0]);
    if (n < 0)
        return n;
    if (!w->drop_remainder)
        return n / w->shift + (n % w->shift != 0);
    return n < target(w) ? 0 : (n - target(w)) / w->shift + 1;
}

static void add_failure(windower *x, int64_t i, leat_status s)
{
    failure *f = leat_new(failure);
    *f = (failure){NULL, i, s};
    if (x->failures)
        x->last_failure->next = f;
    else
        x->failures = f;
    x->last_failure = f;
}

/* Removes the failures of the first n elements. */
static void drop_failures(windower *x, int64_t n)
{
    while (x->failures && x->failures->i < n) {
        failure *f = x->failures;
        x->failures = f->next;
        leat_status_free(f->status);
        free(f);
    }
    for (failure *f = x->failures; f; f = f->next)
        f->i -= n;
}

/* Removes the elements that the next window does not have. */
static void shift(windower *x)
{
    const window *w = (const window *)x->base.d;
    int64_t n = w->shift < x->buffer.n ? w->shift : x->buffer.n;
    x->to_skip = w->shift - n;
    drop_failures(x, n);
    for (int64_t i = 0; i < n; i++)
        leat_element_clear(&x->buffer.v[i]);
    memmove(x->buffer.v, x->buffer.v + n, (size_t)(x->buffer.n - n) * sizeof(*x->buffer.v));
    x->buffer.n -= n;
}

/* The first error among the elements of the window. */
static leat_status failed(const windower *x)
{
    for (const failure *f = x->failures; f; f = f->next)
        if (f->i % ((const window *)x->base.d)->stride == 0)
            return leat_status_copy(f->status);
    return NULL;
}

/* Copies the elements of the window out of the buffer. */
static leat_elements chosen(const windower *x)
{
    const window *w = (const window *)x->base.d;
    leat_elements l = {0};
    for (int64_t i = 0; i < x->buffer.n;) {
        leat_element e = leat_element_copy(&x->buffer.v[i]);
        leat_elements_add(&l, &e);
        if (!leat_add_ok(i, w->stride, &i))
            break;
    }
    return l;
}

static leat_status windows(const leat_iterator *it, leat_elements *l, leat_element *out)
{
    const leat_dataset *in = it->d->in[0];
    for (int64_t i = 0; i < l->n; i++)
        LEAT_REQUIRE(l->v[i].n == in->n, INVALID_ARGUMENT, "An element has %d components, not %d",
                     l->v[i].n, in->n);
    leat_element e = leat_element_new(in->n);
    leat_status s = NULL;
    for (int c = 0; c < e.n && !s; c++)
        s = leat_dataset_of_window(l, c, in->n, in->types, in->shapes, &e.v[c]);
    if (s)
        leat_element_clear(&e);
    else
        *out = e;
    return s;
}

/* Pulls until the buffer has a window. True: *out is to be returned. */
static bool gather(leat_iterator *it, leat_pull *p, bool drop_remainder, leat_next *out)
{
    windower *x = (windower *)it;
    const window *w = (const window *)it->d;
    if (p->why == LEAT_WHY_PULLED) {
        x->input_over |= p->end;
        if (p->status && leat_iteration_closed(it->iteration)) {
            *out = LEAT_NEXT_FAILED;
            return true;
        }
        if (!p->end && x->to_skip > 0) {
            x->to_skip--;
            leat_status_free(p->status);
        } else if (!p->end) {
            if (p->status)
                add_failure(x, x->buffer.n, p->status);
            leat_elements_add(&x->buffer, &p->element);
        }
        p->status = NULL;
    }
    if (!x->input_over && (x->to_skip > 0 || x->buffer.n < target(w))) {
        *out = leat_pull_from(p, it->input);
        return true;
    }
    *out = LEAT_NEXT_END;
    return x->buffer.n == 0 || (drop_remainder && x->buffer.n < target(w));
}

static leat_next window_next(leat_iterator *it, leat_pull *p)
{
    leat_next n;
    leat_element e = {0};
    if (gather(it, p, ((const window *)it->d)->drop_remainder, &n))
        return n;
    leat_status s = failed((windower *)it);
    leat_elements l = {0};
    if (!s)
        l = chosen((windower *)it);
    shift((windower *)it);
    if (!s)
        s = windows(it, &l, &e);
    leat_elements_clear(&l);
    return s ? leat_pull_fail(p, s) : leat_pull_give(p, e);
}

static void window_close(leat_iterator *it)
{
    leat_elements_clear(&((windower *)it)->buffer);
    drop_failures((windower *)it, INT64_MAX);
}

static leat_status window_save(leat_iterator *it, leat_state_writer *w)
{
    windower *x = (windower *)it;
    leat_state_put_int(w, x->to_skip);
    leat_state_put_int(w, x->input_over);
    for (const failure *f = x->failures; f; f = f->next) {
        leat_state_put_int(w, f->i);
        leat_state_put_int(w, leat_status_code(f->status));
        leat_state_put_text(w, leat_status_message(f->status));
    }
    leat_state_put_int(w, -1); /* no more failures */
    return leat_state_put_elements(w, &x->buffer);
}

/* Elements that failed are empty. */
static leat_status restore_buffer(windower *x, leat_state_reader *r)
{
    const leat_dataset *in = x->base.d->in[0];
    const failure *f = x->failures;
    int64_t n;
    LEAT_TRY(leat_state_get_within(r, 0, (int64_t)((r->n - r->at) / 9), &n));
    for (int64_t i = 0; i < n; i++) {
        const bool failed = f && f->i == i;
        leat_element e = {0};
        LEAT_TRY(leat_state_get_element_of(r, failed ? 0 : in->n, in->types, &e));
        leat_elements_add(&x->buffer, &e);
        f = failed ? f->next : f;
    }
    LEAT_REQUIRE(!f, DATA_LOSS, "A window lacks the element of an error");
    return NULL;
}

static leat_status window_restore(leat_iterator *it, leat_state_reader *r)
{
    windower *x = (windower *)it;
    LEAT_TRY(leat_state_get_within(r, 0, INT64_MAX, &x->to_skip));
    LEAT_TRY(leat_state_get_bool(r, &x->input_over));
    for (int64_t i, code, after = -1;; after = i) {
        char *message;
        LEAT_TRY(leat_state_get_within(r, -1, INT64_MAX, &i));
        if (i < 0)
            break;
        LEAT_REQUIRE(i > after, DATA_LOSS, "Errors of a window are not in order");
        LEAT_TRY(leat_state_get_within(r, 1, LEAT_UNAUTHENTICATED, &code));
        LEAT_TRY(leat_state_get_text(r, &message));
        add_failure(x, i, leat_status_new((leat_code)code, __FILE__, __LINE__, "%s", message));
        free(message);
    }
    return restore_buffer(x, r);
}

#define WINDOW_KIND                                                                                \
    .size = sizeof(window), .iterator_size = sizeof(windower), .inputs = 1, .close = window_close, \
    .save = window_save, .restore = window_restore
static const leat_dataset_kind window_kind = {
    WINDOW_KIND,         .catches = true, .make = window_make, .cardinality = window_cardinality,
    .next = window_next,
};
LEAT_DATASET_RUN(window_kind)

leat_status leat_dataset_windowed(leat_dataset *in, const leat_window_sizes *sizes,
                                  bool drop_remainder, leat_dataset **out)
{
    leat_dataset *d;
    LEAT_TRY(leat_dataset_over(&window_kind, "WindowDataset", "window", &in, 1, &d));
    window *w = (window *)d;
    w->size = sizes->size;
    w->shift = sizes->shift;
    w->stride = sizes->stride;
    w->drop_remainder = drop_remainder;
    leat_status s = check_sizes(w);
    if (!s)
        s = check_window(d);
    if (s)
        leat_dataset_unref(d);
    else
        *out = d;
    return s;
}

/* ---- SlidingWindow ---- */

static leat_status sliding_make(leat_kernel *k, leat_dataset *d)
{
    window *w = (window *)d;
    LEAT_TRY(read_sizes(k, w, "window_size", "window_shift", "window_stride"));
    LEAT_REQUIRE(w->stride > 0, INVALID_ARGUMENT, "window_stride must be greater than zero.");
    w->drop_remainder = true;
    for (int i = 0; i < d->n; i++) {
        leat_shape *s = &d->shapes[i];
        if (s->rank < 0 || s->rank == LEAT_MAX_RANK) {
            *s = leat_shape_unknown();
            continue;
        }
        memmove(s->dim + 1, s->dim, (size_t)s->rank++ * sizeof(*s->dim));
        s->dim[0] = -1;
    }
    return NULL;
}

static leat_next sliding_next(leat_iterator *it, leat_pull *p)
{
    leat_next n;
    leat_element e = {0};
    if (gather(it, p, true, &n))
        return n;
    leat_elements l = chosen((windower *)it);
    shift((windower *)it);
    leat_status s = leat_batch_elements(&l, &e);
    leat_elements_clear(&l);
    return s ? leat_pull_fail(p, s) : leat_pull_give(p, e);
}

static const leat_dataset_kind sliding_kind = {
    WINDOW_KIND,
    .make = sliding_make,
    .cardinality = window_cardinality,
    .next = sliding_next,
};
LEAT_DATASET_RUN(sliding_kind)

const leat_kernel_def leat_data_kernels_window[] = {
    {.op = "WindowDataset", .run = window_kind_run},
    {.op = "SlidingWindowDataset", .run = sliding_kind_run},
    {.op = "ExperimentalSlidingWindowDataset", .run = sliding_kind_run},
    {0},
};
