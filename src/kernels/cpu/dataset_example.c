/* dataset_example.c -- ParseExampleDataset: each element, a batch of serialized Examples, becomes
 * their features, in the order of the keys; sparse ones as variants. Elements are parsed ahead, in
 * the background. */
#include <stdlib.h>

#include "core/alloc.h"
#include "kernels/cpu/example.h"
#include "kernels/dataset/ahead_kinds.h"
#include "kernels/dataset/pull.h"
#include "kernels/dataset/serialize_sparse.h"

typedef struct examples {
    leat_dataset base;
    leat_wanted wanted;
    char **keys;            /* of the sparse features, then of the dense ones */
    leat_tensor **defaults; /* of dense features */
    int *place;             /* of each feature of `wanted`: its index in an element */
    int n_sparse, n_dense;
} examples;

/* ---- Elements ---- */

/* The strings of all components, one after the other. */
static leat_status messages_of(const leat_element *e, leat_string **out, int64_t *n)
{
    int64_t total = 0;
    for (int i = 0; i < e->n; i++) {
        LEAT_REQUIRE(e->v[i]->dtype == LEAT_STRING, INVALID_ARGUMENT,
                     "An element to be parsed is %s; serialized Examples are strings",
                     leat_dtype_name(e->v[i]->dtype));
        LEAT_REQUIRE(leat_add_ok(total, e->v[i]->count, &total), INVALID_ARGUMENT,
                     "An element has too many Examples");
    }
    LEAT_TRY(leat_try_array(total + 1, out));
    *n = 0;
    for (int i = 0; i < e->n; i++)
        for (int64_t j = 0; j < e->v[i]->count; j++)
            (*out)[(*n)++] = AT(leat_string, e->v[i])[j]; /* borrowed */
    return NULL;
}

/* Puts the outputs of ParseExample where they belong in an element. Takes the outputs. */
static leat_status arrange(const examples *d, leat_tensor **outputs, leat_element *e)
{
    leat_status s = NULL;
    for (int i = 0; i < d->n_sparse && !s; i++) {
        leat_tensor *three[] = {outputs[i], outputs[d->n_sparse + i], outputs[2 * d->n_sparse + i]};
        s = leat_sparse_variants(&(leat_element){3, three}, &e->v[d->place[i]]);
    }
    for (int i = 0; i < d->n_dense && !s; i++)
        e->v[d->place[d->n_sparse + i]] = leat_tensor_ref(outputs[3 * d->n_sparse + i]);
    for (int i = 0; i < 3 * d->n_sparse + d->n_dense; i++)
        leat_tensor_unref(outputs[i]);
    return s;
}

static leat_status parse(const examples *d, const leat_element *in, leat_element *out)
{
    leat_string *messages;
    int64_t n = 0;
    LEAT_TRY(messages_of(in, &messages, &n));
    leat_tensor **outputs = leat_new_array(leat_tensor *, 3 * d->n_sparse + d->n_dense + 1);
    leat_status s = leat_wanted_parse(&d->wanted, d->n_sparse, d->n_dense, messages, n, outputs);
    leat_element e = leat_element_new(d->base.n);
    if (!s)
        s = arrange(d, outputs, &e);
    free(outputs);
    free(messages);
    if (s)
        leat_element_clear(&e);
    else
        *out = e;
    return s;
}

static leat_next examples_next(leat_iterator *it, leat_pull *p)
{
    leat_element e;
    if (p->why == LEAT_WHY_START)
        return leat_pull_from(p, it->input);
    if (p->end)
        return LEAT_NEXT_END;
    leat_status s = parse((const examples *)it->d, &p->element, &e);
    return s ? leat_pull_fail(p, s) : leat_pull_give(p, e);
}

/* ---- The dataset ---- */

static void examples_release(leat_dataset *base)
{
    examples *d = (examples *)base;
    leat_wanted_release(&d->wanted);
    for (int i = 0; d->keys && i < d->n_sparse + d->n_dense; i++)
        free(d->keys[i]);
    for (int i = 0; d->defaults && i < d->n_dense; i++)
        leat_tensor_unref(d->defaults[i]);
    free(d->keys);
    free(d->defaults);
    free(d->place);
}

static leat_status want_dense(leat_kernel *k, examples *d, int i)
{
    int n_types, n_shapes;
    const leat_node *node = leat_kernel_node(k);
    const leat_dtype *types = leat_node_types(node, "Tdense", &n_types);
    const leat_shape *shapes = leat_node_shapes(node, "dense_shapes", &n_shapes);
    const char *key = d->keys[d->n_sparse + i];
    LEAT_REQUIRE(i < n_types && i < n_shapes, INVALID_ARGUMENT,
                 "There are %d dense_keys, %d types and %d dense_shapes", d->n_dense, n_types,
                 n_shapes);
    leat_feature *f =
        leat_wanted_add(&d->wanted, key, strlen(key), LEAT_FEATURE_DENSE, types[i], i);
    LEAT_TRY(leat_feature_set_shape(f, i, &shapes[i]));
    return leat_feature_set_default(f, i, d->defaults[i]);
}

static leat_status read_keys(leat_kernel *k, examples *d)
{
    const leat_node *node = leat_kernel_node(k);
    int n_sparse, n_dense, n_types;
    const char *const *sparse = leat_node_strings(node, "sparse_keys", &n_sparse);
    const char *const *dense = leat_node_strings(node, "dense_keys", &n_dense);
    const leat_dtype *types = leat_node_types(node, "sparse_types", &n_types);
    int n_ragged = 0;
    if (leat_node_has(node, "ragged_keys"))
        leat_node_strings(node, "ragged_keys", &n_ragged);
    LEAT_REQUIRE(!n_ragged, UNIMPLEMENTED,
                 "ParseExampleDatasetV2 has no ragged features here: parse in a map, by "
                 "parse_example");
    LEAT_REQUIRE(n_types == n_sparse, INVALID_ARGUMENT, "len(sparse_keys) != len(sparse_types)");
    LEAT_REQUIRE(leat_kernel_inputs(k) == 2 + n_dense, INVALID_ARGUMENT,
                 "Expected len(dense_defaults) == len(dense_keys) but got: %d vs. %d",
                 leat_kernel_inputs(k) - 2, n_dense);
    LEAT_REQUIRE(d->base.n == n_sparse + n_dense, INVALID_ARGUMENT,
                 "There are %d output_types for %d features", d->base.n, n_sparse + n_dense);
    d->keys = leat_new_array(char *, n_sparse + n_dense + 1);
    d->defaults = leat_new_array(leat_tensor *, n_dense + 1);
    d->n_sparse = n_sparse;
    d->n_dense = n_dense;
    for (int i = 0; i < n_sparse + n_dense; i++)
        d->keys[i] = leat_xstrdup(i < n_sparse ? sparse[i] : dense[i - n_sparse]);
    for (int i = 0; i < n_dense; i++)
        d->defaults[i] = leat_tensor_ref((leat_tensor *)leat_kernel_in(k, 2 + i));
    for (int i = 0; i < n_sparse; i++)
        leat_wanted_add(&d->wanted, d->keys[i], strlen(d->keys[i]), LEAT_FEATURE_SPARSE, types[i],
                        i);
    for (int i = 0; i < n_dense; i++)
        LEAT_TRY(want_dense(k, d, i));
    return leat_wanted_index(&d->wanted);
}

/* An element's tensors are in the order of the keys, and of the types that the node says. */
static leat_status find_places(examples *d)
{
    const int n = d->n_sparse + d->n_dense;
    d->place = leat_new_array(int, n + 1);
    for (int i = 0; i < n; i++) {
        for (int j = 0; j < n; j++)
            d->place[i] += strcmp(d->keys[j], d->keys[i]) < 0;
        const leat_dtype t = i < d->n_sparse ? LEAT_VARIANT : d->wanted.v[i].dtype;
        LEAT_REQUIRE(d->base.types[d->place[i]] == t, INVALID_ARGUMENT,
                     "output_types[%d] is %s, but feature %s is %s", d->place[i],
                     leat_dtype_name(d->base.types[d->place[i]]), d->keys[i], leat_dtype_name(t));
    }
    return NULL;
}

static leat_status examples_make(leat_kernel *k, leat_dataset *base)
{
    LEAT_TRY(read_keys(k, (examples *)base));
    return find_places((examples *)base);
}

static int64_t same_cardinality(const leat_dataset *d)
{
    return leat_dataset_cardinality(d->in[0]);
}

static const leat_dataset_kind examples_kind = {
    .size = sizeof(examples),
    .iterator_size = sizeof(leat_iterator),
    .inputs = 1,
    .own_types = true,
    .make = examples_make,
    .release = examples_release,
    .cardinality = same_cardinality,
    .next = examples_next,
};

static leat_status examples_run(leat_kernel *k)
{
    leat_dataset *d, *ahead;
    int64_t calls;
    LEAT_TRY(leat_data_int(k, 1, "num_parallel_calls", &calls));
    LEAT_REQUIRE(calls > 0 || calls == LEAT_AUTOTUNE, INVALID_ARGUMENT,
                 "num_parallel_calls must be greater than zero.");
    LEAT_TRY(leat_dataset_make(k, &examples_kind, &d));
    leat_status s = leat_dataset_prefetched(d, leat_node_name(leat_kernel_node(k)), calls, &ahead);
    leat_dataset_unref(d);
    return s ? s : leat_dataset_give(k, 0, ahead);
}

const leat_kernel_def leat_cpu_dataset_example[] = {
    {.op = "ParseExampleDataset", .run = examples_run},
    {.op = "ExperimentalParseExampleDataset", .run = examples_run},
    {.op = "ParseExampleDatasetV2", .run = examples_run},
    {0},
};
