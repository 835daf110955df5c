/* group.c -- datasets that gather elements by a key that a function gives: GroupByWindow, whose
 * groups become datasets when they are full, and GroupByReducer, whose groups are reduced. */
#include <stdio.h>
#include <stdlib.h>

#include "core/alloc.h"
#include "kernels/dataset/pull.h"
#include "kernels/dataset/state.h"
#include "kernels/dataset/window.h"

/* A group; groups are in the order of their keys. */
typedef struct group {
    int64_t key, size;      /* GroupByWindow: elements of a full group */
    leat_elements elements; /* GroupByReducer: the state, as one element */
} group;

typedef struct grouper {
    leat_iterator base;
    group *v;
    int64_t n, cap;
    leat_element element; /* the one whose key is asked for */
    leat_element args;
    int64_t key;
    bool input_over;
    enum { KEY, SIZE, INIT, REDUCE, FINALIZE } called;
    leat_iterator *flushed; /* GroupByWindow: goes through the dataset of a group */
    leat_element window;    /* what that dataset was made of: key and dataset of elements */
    leat_elements members;  /* the elements of the window */
    int64_t next;           /* GroupByReducer: the next group to give */
} grouper;

/* The index of the group with this key, or of the first one with a greater key. */
static int64_t find(const grouper *g, int64_t key)
{
    int64_t low = 0, high = g->n;
    while (low < high) {
        int64_t middle = low + (high - low) / 2;
        if (g->v[middle].key < key)
            low = middle + 1;
        else
            high = middle;
    }
    return low;
}

static group *get(grouper *g, int64_t key)
{
    int64_t i = find(g, key);
    return i < g->n && g->v[i].key == key ? &g->v[i] : NULL;
}

static group *add(grouper *g, int64_t key)
{
    int64_t i = find(g, key);
    leat_grow(g->v, g->n, g->cap);
    memmove(g->v + i + 1, g->v + i, sizeof(group) * (size_t)(g->n++ - i));
    g->v[i] = (group){.key = key};
    return &g->v[i];
}

static void group_close(leat_iterator *it)
{
    grouper *g = (grouper *)it;
    for (int64_t i = 0; i < g->n; i++)
        leat_elements_clear(&g->v[i].elements);
    free(g->v);
    leat_element_clear(&g->element);
    leat_element_clear(&g->args);
    leat_element_clear(&g->window);
    leat_elements_clear(&g->members);
    leat_iterator_free(g->flushed);
}

static bool int_of(const leat_element *e, int64_t *out)
{
    if (e->n != 1 || e->v[0]->dtype != LEAT_INT64 || e->v[0]->count != 1)
        return false;
    *out = AT(int64_t, e->v[0])[0];
    return true;
}

/* The arguments of the functions of a key. */
static leat_status key_args(int64_t key, leat_element *out)
{
    leat_element_clear(out);
    *out = leat_element_new(1);
    return leat_tensor_copy_of(LEAT_INT64, leat_shape(), &key, &out->v[0]);
}

static leat_next call(grouper *g, leat_pull *p, int which, int fn, const leat_element *args)
{
    g->called = which;
    return leat_pull_call(p, &g->base.d->fn[fn], args);
}

/* Functions of a node are in its attributes, and captured tensors in its inputs, in this order. */
static leat_status read_functions(leat_kernel *k, leat_dataset *d, const char *const *names, int n)
{
    int at = 1;
    for (int i = 0; i < n; i++) {
        char types[64];
        snprintf(types, sizeof(types), "T%s_other_arguments", names[i]);
        int captured = leat_data_count(k, types);
        LEAT_TRY(leat_data_fn_get(k, names[i], at, captured, &d->fn[i]));
        at += captured;
    }
    return leat_data_fn_check(&d->fn[0], names[0], d->in[0]->types, d->in[0]->n, NULL, -1);
}

static const leat_dtype key_type[] = {LEAT_INT64, LEAT_VARIANT};

/* ---- GroupByWindow ---- */

enum { KEY_FN, REDUCE_FN, SIZE_FN };

static leat_status window_make(leat_kernel *k, leat_dataset *d)
{
    static const char *const names[] = {"key_func", "reduce_func", "window_size_func"};
    LEAT_TRY(read_functions(k, d, names, 3));
    LEAT_TRY(leat_data_fn_check(&d->fn[REDUCE_FN], names[1], key_type, 2, NULL, -1));
    return leat_data_fn_check(&d->fn[SIZE_FN], names[2], key_type, 1, NULL, -1);
}

/* Makes the arguments of reduce_func: the key and a dataset of the members, which stay. */
static leat_status make_window(grouper *g, int64_t key)
{
    const leat_dataset *in = g->base.d->in[0];
    leat_elements copy = {0};
    leat_element_clear(&g->window);
    g->window = leat_element_new(2);
    LEAT_TRY(leat_tensor_copy_of(LEAT_INT64, leat_shape(), &key, &g->window.v[0]));
    for (int64_t i = 0; i < g->members.n; i++) {
        leat_element e = leat_element_copy(&g->members.v[i]);
        leat_elements_add(&copy, &e);
    }
    leat_status s =
        leat_dataset_of_window(&copy, -1, in->n, in->types, in->shapes, &g->window.v[1]);
    leat_elements_clear(&copy);
    return s;
}

static leat_next flush(grouper *g, leat_pull *p, group *x)
{
    leat_elements_clear(&g->members);
    g->members = x->elements;
    x->elements = (leat_elements){0};
    g->key = x->key;
    leat_status s = make_window(g, x->key);
    return s ? leat_pull_fail(p, s) : call(g, p, REDUCE, REDUCE_FN, &g->window);
}

static leat_status open_flushed(grouper *g, const leat_element *result)
{
    leat_dataset *d;
    LEAT_REQUIRE(
        result->n == 1 && result->v[0]->dtype == LEAT_VARIANT && result->v[0]->shape.rank == 0,
        INVALID_ARGUMENT, "`reduce_func` must return a single scalar of dtype DT_VARIANT.");
    LEAT_TRY(leat_dataset_in(result->v[0], &d));
    return leat_iterator_new(g->base.iteration, d, &g->base, 1, &g->flushed);
}

/* Adds the element to its group; a full group is flushed. True: *out is to be returned. */
static bool join(grouper *g, leat_pull *p, group *x, leat_next *out)
{
    leat_elements_add(&x->elements, &g->element);
    if (x->elements.n < x->size)
        return false;
    *out = flush(g, p, x);
    return true;
}

/* What a function has given. True: *out is to be returned. */
static bool window_called(grouper *g, leat_pull *p, leat_next *out)
{
    int64_t n;
    *out = LEAT_NEXT_FAILED;
    if (p->status)
        return true;
    if (g->called == REDUCE) {
        p->status = open_flushed(g, &p->element);
        return p->status != NULL;
    }
    if (!int_of(&p->element, &n)) {
        p->status = leat_error(INVALID_ARGUMENT, "`%s` must return a scalar int64.",
                               g->called == KEY ? "key_func" : "window_size_func");
        return true;
    }
    if (g->called == KEY) {
        g->key = n;
        group *x = get(g, n);
        if (x)
            return join(g, p, x, out);
        p->status = key_args(n, &g->args);
        if (!p->status)
            *out = call(g, p, SIZE, SIZE_FN, &g->args);
        return true;
    }
    if (n <= 0) {
        p->status = leat_error(
            INVALID_ARGUMENT, "Window size must be greater than zero, but got %lld.", (long long)n);
        return true;
    }
    group *x = add(g, g->key);
    x->size = n;
    return join(g, p, x, out);
}

static void drop_flushed(grouper *g)
{
    leat_iterator_free(g->flushed);
    g->flushed = NULL;
    leat_element_clear(&g->window);
    leat_elements_clear(&g->members);
}

static leat_next window_next(leat_iterator *it, leat_pull *p)
{
    grouper *g = (grouper *)it;
    leat_next n;
    if (p->why == LEAT_WHY_CALLED) {
        if (window_called(g, p, &n))
            return n;
    } else if (p->why == LEAT_WHY_PULLED && g->flushed) {
        if (!p->end)
            return LEAT_NEXT_ELEMENT;
        drop_flushed(g);
    } else if (p->why == LEAT_WHY_PULLED) {
        g->input_over = p->end;
        if (!p->end) {
            leat_element_clear(&g->element);
            g->element = leat_element_take(&p->element);
            return call(g, p, KEY, KEY_FN, &g->element);
        }
    }
    if (g->flushed)
        return leat_pull_from(p, g->flushed);
    if (!g->input_over)
        return leat_pull_from(p, it->input);
    for (int64_t i = 0; i < g->n; i++)
        if (g->v[i].elements.n > 0)
            return flush(g, p, &g->v[i]);
    return LEAT_NEXT_END;
}

/* ---- GroupByReducer ---- */

enum { INIT_FN = 1, REDUCER_FN, FINALIZE_FN };

static leat_status reducer_make(leat_kernel *k, leat_dataset *d)
{
    static const char *const names[] = {"key_func", "init_func", "reduce_func", "finalize_func"};
    const leat_dtype *state, *results;
    LEAT_TRY(read_functions(k, d, names, 4));
    LEAT_TRY(leat_data_fn_check(&d->fn[INIT_FN], names[1], key_type, 1, NULL, -1));
    const int n = leat_callable_results(d->fn[INIT_FN].f, &state), n_in = d->in[0]->n;
    leat_dtype *types = leat_new_array(leat_dtype, n + n_in + 1);
    for (int i = 0; i < n + n_in; i++)
        types[i] = i < n ? state[i] : d->in[0]->types[i - n];
    leat_status s = leat_data_fn_check(&d->fn[REDUCER_FN], names[2], types, n + n_in, types, n);
    free(types);
    LEAT_TRY(s);
    leat_callable_results(d->fn[REDUCER_FN].f, &results);
    return leat_data_fn_check(&d->fn[FINALIZE_FN], names[3], results, n, d->types, d->n);
}

static leat_next reduce(grouper *g, leat_pull *p, const leat_element *state)
{
    leat_element_clear(&g->args);
    g->args = leat_element_new(state->n + g->element.n);
    for (int i = 0; i < g->args.n; i++)
        g->args.v[i] = leat_tensor_ref(i < state->n ? state->v[i] : g->element.v[i - state->n]);
    return call(g, p, REDUCE, REDUCER_FN, &g->args);
}

static leat_next reducer_called(grouper *g, leat_pull *p)
{
    if (p->status)
        return LEAT_NEXT_FAILED;
    if (g->called == FINALIZE)
        return LEAT_NEXT_ELEMENT;
    if (g->called == KEY) {
        if (!int_of(&p->element, &g->key))
            return leat_pull_fail(
                p, leat_error(INVALID_ARGUMENT, "`key_func` must return a scalar int64."));
        group *x = get(g, g->key);
        if (x)
            return reduce(g, p, &x->elements.v[0]);
        leat_status s = key_args(g->key, &g->args);
        return s ? leat_pull_fail(p, s) : call(g, p, INIT, INIT_FN, &g->args);
    }
    if (g->called == INIT) {
        group *x = add(g, g->key);
        leat_elements_add(&x->elements, &p->element);
        return reduce(g, p, &x->elements.v[0]);
    }
    group *x = get(g, g->key);
    leat_elements_clear(&x->elements);
    leat_elements_add(&x->elements, &p->element);
    return leat_pull_from(p, g->base.input);
}

static leat_next reducer_next(leat_iterator *it, leat_pull *p)
{
    grouper *g = (grouper *)it;
    if (p->why == LEAT_WHY_CALLED)
        return reducer_called(g, p);
    if (p->why == LEAT_WHY_PULLED) {
        g->input_over = p->end;
        if (!p->end) {
            leat_element_clear(&g->element);
            g->element = leat_element_take(&p->element);
            return call(g, p, KEY, KEY_FN, &g->element);
        }
    }
    if (!g->input_over)
        return leat_pull_from(p, it->input);
    if (g->next >= g->n)
        return LEAT_NEXT_END;
    return call(g, p, FINALIZE, FINALIZE_FN, &g->v[g->next++].elements.v[0]);
}

/* ---- Positions ---- */

static leat_status group_save(leat_iterator *it, leat_state_writer *w)
{
    grouper *g = (grouper *)it;
    leat_state_put_int(w, g->input_over);
    leat_state_put_int(w, g->next);
    leat_state_put_int(w, g->n);
    for (int64_t i = 0; i < g->n; i++) {
        leat_state_put_int(w, g->v[i].key);
        leat_state_put_int(w, g->v[i].size);
        LEAT_TRY(leat_state_put_elements(w, &g->v[i].elements));
    }
    leat_state_put_int(w, g->flushed != NULL);
    if (!g->flushed)
        return NULL;
    leat_state_put_int(w, g->key);
    LEAT_TRY(leat_state_put_elements(w, &g->members));
    return leat_state_put_iterator(w, g->flushed);
}

static leat_status restore_flushed(grouper *g, leat_state_reader *r)
{
    leat_iterator *it = &g->base;
    const leat_dataset *in = it->d->in[0];
    leat_element result = {0};
    LEAT_TRY(leat_state_get_int(r, &g->key));
    LEAT_TRY(leat_state_get_elements_of(r, in->n, in->types, &g->members));
    LEAT_TRY(make_window(g, g->key));
    leat_status s = leat_data_call(it->iteration, &it->d->fn[REDUCE_FN], &g->window, &result);
    if (!s)
        s = open_flushed(g, &result);
    leat_element_clear(&result);
    LEAT_TRY(s);
    LEAT_TRY(leat_state_get_iterator(r, it->iteration, g->flushed->d, it, 1, &g->flushed));
    LEAT_REQUIRE(g->flushed, DATA_LOSS, "The position lacks the iterator of a group of %s",
                 it->d->name);
    return NULL;
}

/* The elements of a group, or its state, which is one element, have n components of these types. */
static leat_status restore_groups(grouper *g, leat_state_reader *r, bool states, int n,
                                  const leat_dtype *types)
{
    int64_t count;
    LEAT_TRY(leat_state_get_bool(r, &g->input_over));
    LEAT_TRY(leat_state_get_within(r, 0, INT64_MAX, &g->next));
    LEAT_TRY(leat_state_get_within(r, 0, (int64_t)(r->n / 9), &count));
    for (int64_t i = 0; i < count; i++) {
        int64_t key;
        LEAT_TRY(leat_state_get_int(r, &key));
        LEAT_REQUIRE(!get(g, key), DATA_LOSS, "The position has two groups of one key");
        group *x = add(g, key);
        LEAT_TRY(leat_state_get_within(r, states ? 0 : 1, INT64_MAX, &x->size));
        LEAT_TRY(leat_state_get_elements_of(r, n, types, &x->elements));
        LEAT_REQUIRE(!states || x->elements.n == 1, DATA_LOSS,
                     "The position has a group without a state");
    }
    return NULL;
}

static leat_status window_restore(leat_iterator *it, leat_state_reader *r)
{
    const leat_dataset *in = it->d->in[0];
    bool flushed;
    LEAT_TRY(restore_groups((grouper *)it, r, false, in->n, in->types));
    LEAT_TRY(leat_state_get_bool(r, &flushed));
    return flushed ? restore_flushed((grouper *)it, r) : NULL;
}

static leat_status reducer_restore(leat_iterator *it, leat_state_reader *r)
{
    const leat_dtype *types;
    const int n = leat_callable_results(it->d->fn[REDUCER_FN].f, &types);
    int64_t flushed;
    LEAT_TRY(restore_groups((grouper *)it, r, true, n, types));
    return leat_state_get_within(r, 0, 0, &flushed);
}

#define GROUP_KIND                                                                                 \
    .size = sizeof(leat_dataset), .iterator_size = sizeof(grouper), .inputs = 1,                   \
    .own_types = true, .close = group_close, .save = group_save
static const leat_dataset_kind window_kind = {GROUP_KIND, .make = window_make, .next = window_next,
                                              .restore = window_restore};
LEAT_DATASET_RUN(window_kind)
static const leat_dataset_kind reducer_kind = {GROUP_KIND, .make = reducer_make,
                                               .next = reducer_next, .restore = reducer_restore};
LEAT_DATASET_RUN(reducer_kind)

const leat_kernel_def leat_data_kernels_group[] = {
    {.op = "GroupByWindowDataset", .run = window_kind_run},
    {.op = "ExperimentalGroupByWindowDataset", .run = window_kind_run},
    {.op = "GroupByReducerDataset", .run = reducer_kind_run},
    {.op = "ExperimentalGroupByReducerDataset", .run = reducer_kind_run},
    {0},
};
