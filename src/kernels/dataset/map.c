/* map.c -- datasets that call a function for each element of their input, one at a time: Map,
 * Filter, TakeWhile, Scan. */
#include "kernels/dataset/map.h"

#include <stdlib.h>

#include "core/alloc.h"
#include "kernels/dataset/program.h"
#include "kernels/dataset/pull.h"
#include "kernels/dataset/state.h"
#include "kernels/dataset/stats.h"

/* ---- What they share ---- */

typedef struct mapped {
    leat_dataset base;
    bool keeps_count;     /* preserve_cardinality: OUT_OF_RANGE is an error, not the end */
    leat_element initial; /* Scan: the state at first */
} mapped;

typedef struct mapper {
    leat_iterator base;
    leat_element args, state;
    int64_t dropped; /* Filter: elements that were left out */
} mapper;

static void mapper_close(leat_iterator *it)
{
    leat_element_clear(&((mapper *)it)->args);
    leat_element_clear(&((mapper *)it)->state);
}

leat_next leat_map_failed(leat_pull *p, bool keeps_count)
{
    if (leat_status_code(p->status) != LEAT_OUT_OF_RANGE)
        return LEAT_NEXT_FAILED;
    leat_status s = p->status;
    p->status = NULL;
    if (keeps_count)
        p->status = leat_error(INVALID_ARGUMENT, "Function invocation produced OutOfRangeError: %s",
                               leat_status_message(s));
    leat_status_free(s);
    return keeps_count ? LEAT_NEXT_FAILED : LEAT_NEXT_END;
}

static int64_t same_cardinality(const leat_dataset *d)
{
    return leat_dataset_cardinality(d->in[0]);
}

/* ---- Map ---- */

leat_status leat_map_make(leat_kernel *k, leat_dataset *d)
{
    LEAT_TRY(leat_data_fn_get(k, "f", 1, leat_data_count(k, "Targuments"), &d->fn[0]));
    return leat_data_fn_check(&d->fn[0], "f", d->in[0]->types, d->in[0]->n, d->types, d->n);
}

static leat_status map_make(leat_kernel *k, leat_dataset *d)
{
    ((mapped *)d)->keeps_count = leat_node_bool(leat_kernel_node(k), "preserve_cardinality");
    return leat_map_make(k, d);
}

static leat_next map_next(leat_iterator *it, leat_pull *p)
{
    mapper *m = (mapper *)it;
    if (p->why == LEAT_WHY_START)
        return leat_pull_from(p, it->input);
    if (p->why == LEAT_WHY_PULLED) {
        if (p->end)
            return LEAT_NEXT_END;
        m->args = leat_element_take(&p->element);
        return leat_pull_call(p, &it->d->fn[0], &m->args);
    }
    leat_element_clear(&m->args);
    return p->status ? leat_map_failed(p, ((const mapped *)it->d)->keeps_count) : LEAT_NEXT_ELEMENT;
}

static const leat_dataset_kind map_kind = {
    .size = sizeof(mapped),
    .iterator_size = sizeof(mapper),
    .inputs = 1,
    .own_types = true,
    .make = map_make,
    .cardinality = same_cardinality,
    .next = map_next,
    .close = mapper_close,
};
LEAT_DATASET_RUN(map_kind)

leat_status leat_dataset_mapped(leat_dataset *in, leat_program_fn *fn, leat_dataset **out)
{
    return leat_program_over(&map_kind, "MapDataset", "map", in, fn, out);
}

/* ---- Filter, TakeWhile: the function says whether an element is given ---- */

static leat_status predicate_make(leat_kernel *k, leat_dataset *d)
{
    LEAT_TRY(leat_data_fn_get(k, "predicate", 1, leat_data_count(k, "Targuments"), &d->fn[0]));
    LEAT_REQUIRE(leat_callable_results(d->fn[0].f, NULL) == 1, INVALID_ARGUMENT,
                 "predicate function has more than one return value.");
    return leat_data_fn_check(&d->fn[0], "predicate", d->in[0]->types, d->in[0]->n, NULL, -1);
}

static bool truth(const leat_element *e, bool *out)
{
    if (e->n != 1 || e->v[0]->dtype != LEAT_BOOL || e->v[0]->count != 1)
        return false;
    *out = AT(bool, e->v[0])[0];
    return true;
}

static leat_next predicate_next(leat_iterator *it, leat_pull *p, leat_next *if_false,
                                const char *error)
{
    mapper *m = (mapper *)it;
    bool yes;
    *if_false = LEAT_NEXT_END;
    if (p->why == LEAT_WHY_START)
        return leat_pull_from(p, it->input);
    if (p->why == LEAT_WHY_PULLED) {
        if (p->end)
            return LEAT_NEXT_END;
        leat_element_clear(&m->args);
        m->args = leat_element_take(&p->element);
        return leat_pull_call(p, &it->d->fn[0], &m->args);
    }
    if (p->status)
        return LEAT_NEXT_FAILED;
    if (!truth(&p->element, &yes))
        return leat_pull_fail(p, leat_error(INVALID_ARGUMENT, "%s", error));
    if (yes)
        return leat_pull_give(p, leat_element_take(&m->args));
    *if_false = LEAT_NEXT_PULL;
    return LEAT_NEXT_END;
}

static leat_next filter_next(leat_iterator *it, leat_pull *p)
{
    leat_next if_false;
    leat_next n =
        predicate_next(it, p, &if_false, "Filter predicate `f` must return a scalar bool.");
    if (n == LEAT_NEXT_ELEMENT)
        leat_stats_set_of(it->stats, it->d, "filtered_elements", (float)(it->count + 1));
    if (n != LEAT_NEXT_END || if_false != LEAT_NEXT_PULL)
        return n;
    leat_stats_set_of(it->stats, it->d, "dropped_elements", (float)++((mapper *)it)->dropped);
    return leat_pull_from(p, it->input);
}

static leat_next while_next(leat_iterator *it, leat_pull *p)
{
    leat_next if_false;
    return predicate_next(it, p, &if_false, "`predicate` must returns a scalar bool tensor.");
}

#define PREDICATE_KIND                                                                             \
    .size = sizeof(mapped), .iterator_size = sizeof(mapper), .inputs = 1, .make = predicate_make,  \
    .close = mapper_close
static const leat_dataset_kind filter_kind = {PREDICATE_KIND, .next = filter_next};
LEAT_DATASET_RUN(filter_kind)
leat_status leat_dataset_filtered(leat_dataset *in, leat_program_fn *fn, leat_dataset **out)
{
    return leat_program_over(&filter_kind, "FilterDataset", "filter", in, fn, out);
}

static const leat_dataset_kind while_kind = {PREDICATE_KIND, .next = while_next};
LEAT_DATASET_RUN(while_kind)

/* The last tensor of an element says whether the others are given. */
static leat_status last_make(leat_kernel *k, leat_dataset *d)
{
    const leat_dataset *in = d->in[0];
    LEAT_REQUIRE(in->n > 0 && in->types[in->n - 1] == LEAT_BOOL &&
                     leat_shape_compatible(&in->shapes[in->n - 1], &(leat_shape){0}),
                 INVALID_ARGUMENT, "last component must be a bool scalar.");
    leat_dataset_types(d, in->n - 1, in->types, in->shapes);
    return NULL;
}

static leat_next last_next(leat_iterator *it, leat_pull *p)
{
    if (p->why == LEAT_WHY_PULLED) {
        leat_element *e = &p->element;
        if (p->end)
            return LEAT_NEXT_END;
        leat_tensor *last = e->n ? e->v[e->n - 1] : NULL;
        if (!last || last->dtype != LEAT_BOOL || last->shape.rank != 0)
            return leat_pull_fail(
                p, leat_error(INVALID_ARGUMENT, "Last component must be a bool scalar."));
        bool yes = AT(bool, last)[0];
        leat_tensor_unref(last);
        e->n--;
        if (yes)
            return LEAT_NEXT_ELEMENT;
    }
    return leat_pull_from(p, it->input);
}

static const leat_dataset_kind last_kind = {
    .size = sizeof(leat_dataset),
    .iterator_size = sizeof(leat_iterator),
    .inputs = 1,
    .make = last_make,
    .next = last_next,
};
LEAT_DATASET_RUN(last_kind)

/* ---- Scan: f(state, element) gives the next state and an element ---- */

static leat_status scan_make(leat_kernel *k, leat_dataset *d)
{
    mapped *m = (mapped *)d;
    const leat_dataset *in = d->in[0];
    const int n = leat_data_count(k, "Tstate"), n_args = n + in->n, n_results = n + d->n;
    leat_dtype *types = leat_new_array(leat_dtype, n_args + 1);
    leat_dtype *results = leat_new_array(leat_dtype, n_results + 1);
    m->keeps_count = leat_node_bool(leat_kernel_node(k), "preserve_cardinality");
    m->initial = leat_element_new(n);
    for (int i = 0; i < n; i++) {
        m->initial.v[i] = leat_tensor_ref(leat_kernel_in(k, 1 + i));
        types[i] = results[i] = m->initial.v[i]->dtype;
    }
    for (int i = 0; i < in->n; i++)
        types[n + i] = in->types[i];
    for (int i = 0; i < d->n; i++)
        results[n + i] = d->types[i];
    leat_status s = leat_data_fn_get(k, "f", 1 + n, leat_data_count(k, "Targuments"), &d->fn[0]);
    if (!s)
        s = leat_data_fn_check(&d->fn[0], "f", types, n_args, results, n_results);
    free(types);
    free(results);
    return s;
}

static void scan_release(leat_dataset *d)
{
    leat_element_clear(&((mapped *)d)->initial);
}

static leat_status scan_open(leat_iterator *it)
{
    ((mapper *)it)->state = leat_element_copy(&((const mapped *)it->d)->initial);
    return NULL;
}

static leat_next scan_result(leat_iterator *it, leat_pull *p)
{
    mapper *m = (mapper *)it;
    const int n = m->state.n;
    leat_element out = leat_element_new(p->element.n - n), state = leat_element_new(n);
    for (int i = 0; i < p->element.n; i++)
        *(i < n ? &state.v[i] : &out.v[i - n]) = leat_tensor_ref(p->element.v[i]);
    leat_element_clear(&m->state);
    m->state = state;
    for (int i = 0; i < out.n && i < it->d->n; i++)
        if (!leat_shape_compatible(&it->d->shapes[i], &out.v[i]->shape)) {
            leat_status s = leat_error(INVALID_ARGUMENT,
                                       "Got wrong shape for scan_func return value %d (expected "
                                       "%s, got %s).",
                                       n + i, leat_shape_show(&it->d->shapes[i]).s,
                                       leat_shape_show(&out.v[i]->shape).s);
            leat_element_clear(&out);
            return leat_pull_fail(p, s);
        }
    return leat_pull_give(p, out);
}

static leat_next scan_next(leat_iterator *it, leat_pull *p)
{
    mapper *m = (mapper *)it;
    if (p->why == LEAT_WHY_START)
        return leat_pull_from(p, it->input);
    if (p->why == LEAT_WHY_PULLED) {
        if (p->end)
            return LEAT_NEXT_END;
        leat_element_clear(&m->args);
        m->args = leat_element_new(m->state.n + p->element.n);
        for (int i = 0; i < m->args.n; i++)
            m->args.v[i] =
                leat_tensor_ref(i < m->state.n ? m->state.v[i] : p->element.v[i - m->state.n]);
        return leat_pull_call(p, &it->d->fn[0], &m->args);
    }
    leat_element_clear(&m->args);
    return p->status ? leat_map_failed(p, ((const mapped *)it->d)->keeps_count)
                     : scan_result(it, p);
}

static leat_status scan_save(leat_iterator *it, leat_state_writer *w)
{
    return leat_state_put_element(w, &((mapper *)it)->state);
}

static leat_status scan_restore(leat_iterator *it, leat_state_reader *r)
{
    mapper *m = (mapper *)it;
    const leat_element *want = &((const mapped *)it->d)->initial;
    LEAT_TRY(leat_state_get_element(r, &m->state));
    bool same = m->state.n == want->n;
    for (int i = 0; same && i < want->n; i++)
        same = m->state.v[i]->dtype == want->v[i]->dtype;
    LEAT_REQUIRE(same, DATA_LOSS, "The position has a state of other types than that of %s",
                 it->d->name);
    return NULL;
}

static const leat_dataset_kind scan_kind = {
    .size = sizeof(mapped),
    .iterator_size = sizeof(mapper),
    .inputs = 1,
    .own_types = true,
    .make = scan_make,
    .release = scan_release,
    .cardinality = same_cardinality,
    .open = scan_open,
    .next = scan_next,
    .close = mapper_close,
    .save = scan_save,
    .restore = scan_restore,
};
LEAT_DATASET_RUN(scan_kind)

const leat_kernel_def leat_data_kernels_map[] = {
    {.op = "MapDataset", .run = map_kind_run},
    {.op = "ExperimentalMapDataset", .run = map_kind_run},
    {.op = "FilterDataset", .run = filter_kind_run},
    {.op = "FilterByLastComponentDataset", .run = last_kind_run},
    {.op = "TakeWhileDataset", .run = while_kind_run},
    {.op = "ExperimentalTakeWhileDataset", .run = while_kind_run},
    {.op = "ScanDataset", .run = scan_kind_run},
    {.op = "ExperimentalScanDataset", .run = scan_kind_run},
    {0},
};
