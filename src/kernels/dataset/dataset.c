/* dataset.c -- making, sharing and freeing datasets, elements and iterators. */
#include "kernels/dataset/dataset.h"

#include <stdlib.h>

#include "core/alloc.h"
#include "core/map.h"
#include "kernels/dataset/auto_shard.h"
#include "kernels/dataset/optional.h"
#include "kernels/dataset/origin.h"
#include "kernels/dataset/program.h"
#include "kernels/dataset/stats.h"

/* ---- Elements ---- */

/* Not by calloc, which does not use the C library's cache of the thread. */
leat_element leat_element_new(int n)
{
    leat_element e = {n, n ? leat_xmalloc(sizeof(*e.v) * (size_t)n) : NULL};
    for (int i = 0; i < n; i++)
        e.v[i] = NULL;
    return e;
}

void leat_element_clear(leat_element *e)
{
    for (int i = 0; i < e->n; i++)
        leat_tensor_unref(e->v[i]);
    free(e->v);
    *e = (leat_element){0};
}

leat_element leat_element_copy(const leat_element *e)
{
    leat_element x = leat_element_new(e->n);
    for (int i = 0; i < e->n; i++)
        x.v[i] = leat_tensor_ref(e->v[i]);
    return x;
}

void leat_elements_add(leat_elements *l, leat_element *e)
{
    leat_grow(l->v, l->n, l->cap);
    l->v[l->n++] = leat_element_take(e);
}

void leat_elements_empty(leat_elements *l)
{
    for (int64_t i = 0; i < l->n; i++)
        leat_element_clear(&l->v[i]);
    l->n = 0;
}

void leat_elements_clear(leat_elements *l)
{
    leat_elements_empty(l);
    free(l->v);
    *l = (leat_elements){0};
}

/* ---- Datasets ---- */

leat_dataset *leat_dataset_ref(leat_dataset *d)
{
    atomic_fetch_add_explicit(&d->refs, 1, memory_order_relaxed);
    return d;
}

static void fn_release(leat_data_fn *fn)
{
    for (int i = 0; i < fn->n_captured; i++)
        leat_tensor_unref(fn->captured[i]);
    free(fn->captured);
    free(fn->name);
    leat_callable_unref(fn->f);
    leat_program_free(fn->program);
}

void leat_dataset_unref(leat_dataset *d)
{
    if (!d || atomic_fetch_sub_explicit(&d->refs, 1, memory_order_acq_rel) != 1)
        return;
    if (d->kind->release)
        d->kind->release(d);
    for (size_t i = 0; i < sizeof(d->fn) / sizeof(*d->fn); i++)
        fn_release(&d->fn[i]);
    for (int i = 0; i < d->n_in; i++)
        leat_dataset_unref(d->in[i]);
    leat_origin_free(d->origin);
    free(d->in);
    free(d->types);
    free(d->shapes);
    free(d->name);
    leat_object_free(&d->object);
}

static void variant_ref(void *object)
{
    leat_dataset_ref(object);
}

static void variant_unref(void *object)
{
    leat_dataset_unref(object);
}

static const leat_variant_type dataset_type = {
    .name = "tensorflow::DatasetVariantWrapper", .ref = variant_ref, .unref = variant_unref};

leat_status leat_dataset_in(const leat_tensor *t, leat_dataset **out)
{
    LEAT_REQUIRE(t->dtype == LEAT_VARIANT && t->shape.rank == 0, INVALID_ARGUMENT,
                 "Dataset tensor must be a scalar of dtype DT_VARIANT.");
    const leat_variant *v = AT(leat_variant, t);
    LEAT_REQUIRE(v->type == &dataset_type, INVALID_ARGUMENT, "Tensor must be a Dataset object.");
    *out = v->object;
    return NULL;
}

leat_status leat_dataset_tensor(leat_dataset *d, leat_tensor **out)
{
    leat_tensor *t;
    leat_status s = leat_tensor_new(LEAT_VARIANT, leat_shape(), &t);
    if (s) {
        leat_dataset_unref(d);
        return s;
    }
    *AT(leat_variant, t) = (leat_variant){&dataset_type, d};
    *out = t;
    return NULL;
}

int64_t leat_dataset_cardinality(const leat_dataset *d)
{
    return d->kind->cardinality ? d->kind->cardinality(d) : LEAT_CARDINALITY_UNKNOWN;
}

void leat_dataset_types(leat_dataset *d, int n, const leat_dtype *types, const leat_shape *shapes)
{
    free(d->types);
    free(d->shapes);
    d->n = n;
    d->types = leat_new_array(leat_dtype, n + 1);
    d->shapes = leat_new_array(leat_shape, n + 1);
    for (int i = 0; i < n; i++) {
        d->types[i] = types[i];
        d->shapes[i] = shapes ? shapes[i] : leat_shape_unknown();
    }
}

static leat_status add_input(leat_dataset *d, leat_dataset *in)
{
    LEAT_REQUIRE(in->depth < LEAT_MOST_DATASETS, RESOURCE_EXHAUSTED,
                 "Dataset %s (%s) would be the %dth of a chain of datasets, of which there may be "
                 "%d",
                 d->name, d->op, in->depth + 1, LEAT_MOST_DATASETS);
    d->in[d->n_in++] = leat_dataset_ref(in);
    d->nodes += in->nodes;
    if (d->depth <= in->depth)
        d->depth = in->depth + 1;
    return NULL;
}

static leat_dataset *dataset_new(const leat_dataset_kind *kind, const char *op, const char *name,
                                 int most_inputs)
{
    leat_dataset *d = leat_object_new(kind->size, LEAT_OBJECT_DATASET);
    atomic_init(&d->refs, 1);
    d->kind = kind;
    d->op = op;
    d->name = leat_xstrdup(name);
    d->depth = 1;
    d->nodes = 1;
    d->in = leat_new_array(leat_dataset *, most_inputs + 1);
    return d;
}

leat_status leat_dataset_over(const leat_dataset_kind *kind, const char *op, const char *name,
                              leat_dataset *const *inputs, int n, leat_dataset **out)
{
    leat_dataset *d = dataset_new(kind, op, name, n);
    leat_status s = NULL;
    for (int i = 0; i < n && !s; i++)
        s = add_input(d, inputs[i]);
    if (s) {
        leat_dataset_unref(d);
        return s;
    }
    if (n)
        leat_dataset_types(d, inputs[0]->n, inputs[0]->types, inputs[0]->shapes);
    *out = d;
    return NULL;
}

/* The node's attributes say what elements are: output_types, or Toutput_types. */
static leat_status types_of_node(leat_dataset *d, const leat_node *node)
{
    int n = 0, n_shapes = 0;
    const char *attr = leat_node_has(node, "output_types") ? "output_types" : "Toutput_types";
    if (!leat_node_has(node, attr))
        return NULL;
    const leat_dtype *types = leat_node_types(node, attr, &n);
    const leat_shape *shapes = leat_node_has(node, "output_shapes")
                                   ? leat_node_shapes(node, "output_shapes", &n_shapes)
                                   : NULL;
    LEAT_REQUIRE(!shapes || n_shapes == n, INVALID_ARGUMENT,
                 "`output_shapes` must be the same length as `%s` (%d vs. %d)", attr, n_shapes, n);
    leat_dataset_types(d, n, types, shapes);
    return NULL;
}

static leat_status fill(leat_kernel *k, const leat_dataset_kind *kind, int n_in, leat_dataset *d)
{
    for (int i = 0; i < n_in; i++) {
        leat_dataset *in;
        LEAT_TRY(leat_dataset_in(leat_kernel_in(k, i), &in));
        LEAT_TRY(add_input(d, in));
    }
    if (n_in && !kind->own_types)
        leat_dataset_types(d, d->in[0]->n, d->in[0]->types, d->in[0]->shapes);
    else
        LEAT_TRY(types_of_node(d, leat_kernel_node(k)));
    return kind->make ? kind->make(k, d) : NULL;
}

leat_status leat_dataset_make(leat_kernel *k, const leat_dataset_kind *kind, leat_dataset **out)
{
    const leat_node *node = leat_kernel_node(k);
    int n_in = kind->inputs < 0 ? leat_kernel_inputs(k) : kind->inputs;
    leat_dataset *d = dataset_new(kind, leat_node_op(node), leat_node_name(node), n_in);
    d->nodes += (uint64_t)(leat_kernel_inputs(k) - n_in);
    leat_status s = fill(k, kind, n_in, d);
    if (s)
        leat_dataset_unref(d);
    else
        *out = d;
    return s;
}

/* Whether d is a dataset that the node was given, and hands through. */
static bool is_input(leat_kernel *k, const leat_dataset *d)
{
    for (int i = 0; i < leat_kernel_inputs(k); i++) {
        const leat_tensor *t = leat_kernel_in(k, i);
        if (t && t->dtype == LEAT_VARIANT && t->shape.rank == 0 && AT(leat_variant, t)->object == d)
            return true;
    }
    return false;
}

leat_status leat_dataset_give(leat_kernel *k, int i, leat_dataset *d)
{
    if (!d->origin && !is_input(k, d))
        d->origin = leat_origin_new(k);
    return leat_variant_give(k, i, (leat_variant){&dataset_type, d});
}

leat_status leat_dataset_run(leat_kernel *k, const leat_dataset_kind *kind)
{
    leat_dataset *d;
    LEAT_TRY(leat_dataset_make(k, kind, &d));
    return leat_dataset_give(k, 0, d);
}

/* ---- What nodes give ---- */

static leat_status scalar(leat_kernel *k, int i, const char *name, const leat_tensor **out)
{
    const leat_tensor *t = leat_kernel_in(k, i);
    LEAT_REQUIRE(t->shape.rank == 0, INVALID_ARGUMENT, "%s must be a scalar", name);
    *out = t;
    return NULL;
}

leat_status leat_data_int(leat_kernel *k, int i, const char *name, int64_t *out)
{
    const leat_tensor *t = NULL;
    LEAT_TRY(scalar(k, i, name, &t));
    *out = leat_index_at(t, 0);
    return NULL;
}

leat_status leat_data_bool(leat_kernel *k, int i, const char *name, bool *out)
{
    const leat_tensor *t = NULL;
    LEAT_TRY(scalar(k, i, name, &t));
    *out = AT(bool, t)[0];
    return NULL;
}

leat_status leat_data_string(leat_kernel *k, int i, const char *name, char **out)
{
    const leat_tensor *t = NULL;
    LEAT_TRY(scalar(k, i, name, &t));
    const leat_string *x = AT(leat_string, t);
    LEAT_REQUIRE(!x->size || !memchr(x->data, 0, x->size), INVALID_ARGUMENT,
                 "%s must be a text without NULs", name);
    *out = leat_xstrndup(x->data ? x->data : "", x->size);
    return NULL;
}

int leat_data_count(leat_kernel *k, const char *attr)
{
    int n = 0;
    leat_node_types(leat_kernel_node(k), attr, &n);
    return n;
}

leat_status leat_data_fn_get(leat_kernel *k, const char *attr, int first, int n, leat_data_fn *fn)
{
    leat_callable *f;
    LEAT_TRY(leat_kernel_function(k, attr, 0, &f));
    fn->f = leat_callable_ref(f);
    fn->name = leat_xstrdup(leat_node_func(leat_kernel_node(k), attr));
    fn->captured = leat_new_array(leat_tensor *, n + 1);
    fn->n_captured = n;
    for (int i = 0; i < n; i++)
        fn->captured[i] = leat_tensor_ref(leat_kernel_in(k, first + i));
    return NULL;
}

leat_status leat_data_fn_check(const leat_data_fn *fn, const char *what, const leat_dtype *args,
                               int n_args, const leat_dtype *results, int n_results)
{
    const leat_dtype *types, *gives;
    int n = leat_callable_args(fn->f, &types), n_gives = leat_callable_results(fn->f, &gives);
    LEAT_REQUIRE(n == n_args + fn->n_captured, INVALID_ARGUMENT,
                 "The function in `%s` takes %d arguments; it would be given an element's %d "
                 "tensors and %d captured tensors",
                 what, n, n_args, fn->n_captured);
    for (int i = 0; i < n; i++) {
        leat_dtype t = i < n_args ? args[i] : fn->captured[i - n_args]->dtype;
        LEAT_REQUIRE(types[i] == t, INVALID_ARGUMENT,
                     "Argument %d of the function in `%s` is %s; it would be given %s", i, what,
                     leat_dtype_name(types[i]), leat_dtype_name(t));
    }
    LEAT_REQUIRE(n_results < 0 || n_gives == n_results, INVALID_ARGUMENT,
                 "The function in `%s` has %d results, not %d", what, n_gives, n_results);
    for (int i = 0; i < n_results; i++)
        LEAT_REQUIRE(gives[i] == results[i], INVALID_ARGUMENT,
                     "Result %d of the function in `%s` is %s, not %s", i, what,
                     leat_dtype_name(gives[i]), leat_dtype_name(results[i]));
    return NULL;
}

/* ---- Iterators ---- */

leat_status leat_iterator_new(leat_iteration *in, leat_dataset *d, const leat_iterator *parent,
                              int64_t i, leat_iterator **out)
{
    const int depth = parent ? parent->depth + 1 : 0;
    const uint64_t place[2] = {parent ? parent->path : 0, (uint64_t)i};
    LEAT_REQUIRE(depth < LEAT_MOST_DATASETS, RESOURCE_EXHAUSTED,
                 "Dataset %s (%s): %d iterators are inside each other, the most there may be: does "
                 "a function return a dataset that calls the function without end?",
                 d->name, d->op, LEAT_MOST_DATASETS);
    const leat_dataset *shard = parent ? parent->auto_shard : NULL;
    if (shard)
        d = leat_auto_shard_instead(shard, parent->d, d);
    leat_iterator *it = leat_xcalloc(1, d->kind->iterator_size);
    it->auto_shard = leat_is_auto_shard(d) ? d : shard;
    it->stats = parent ? leat_stats_ref(parent->stats) : NULL;
    it->d = leat_dataset_ref(d);
    it->iteration = in;
    it->depth = depth;
    it->path = leat_hash(place, sizeof(place), 0);
    leat_status s = NULL;
    if (d->n_in && !d->kind->no_input)
        s = leat_iterator_reopen(it, 0);
    if (!s && d->kind->open)
        s = d->kind->open(it);
    if (s)
        leat_iterator_free(it);
    else
        *out = it;
    return s;
}

void leat_iterator_free(leat_iterator *it)
{
    if (!it)
        return;
    if (it->d->kind->close)
        it->d->kind->close(it);
    leat_iterator_free(it->input);
    leat_stats_unref(it->stats);
    leat_dataset_unref(it->d);
    free(it);
}

leat_status leat_iterator_reopen(leat_iterator *it, int which)
{
    leat_iterator_free(it->input);
    it->input = NULL;
    it->which = which;
    return leat_iterator_new(it->iteration, it->d->in[which], it, which, &it->input);
}
