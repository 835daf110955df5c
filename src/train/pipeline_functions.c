/* pipeline_functions.c -- datasets in graphs (leat/pipeline.h): those with functions, iterators,
 * Examples. */
#include <leat/ops.h>
#include <stdio.h>
#include <stdlib.h>

#include "core/alloc.h"
#include "graph/function.h"
#include "train/pipeline.h"
#include "train/train_int.h"

#define OP(g, op, ...)                                                                             \
    leat_op_at(at, g, op, (leat_arg[]){__VA_ARGS__, leat_arg_new(LEAT_ARG_END, NULL)})

/* ---- Functions ---- */

typedef struct body {
    leat_function_fn fn;
    void *arg;
    const leat_elements_of *in; /* the arguments */
    int n_out;
    /* What the results are; if the function gives a dataset, what that dataset's elements are. */
    bool gives_dataset;
    leat_elements_of out;
} body;

static void build_body(leat_graph *g, void *arg, const leat_out *in, leat_out *out)
{
    body *b = arg;
    for (int i = 0; i < b->in->n; i++)
        in[i].node->out_shapes[0] = b->in->shapes[i];
    b->fn(g, b->arg, in, out);
    if (b->gives_dataset) {
        b->out = leat_elements_of_new(out[0]);
        return;
    }
    leat_dtype *types = leat_new_array(leat_dtype, b->n_out + 1);
    leat_shape *shapes = leat_new_array(leat_shape, b->n_out + 1);
    for (int i = 0; i < b->n_out; i++) {
        const bool ok = leat_out_ok(out[i]);
        types[i] = ok ? leat_dtype_base(leat_out_dtype(out[i])) : LEAT_FLOAT;
        shapes[i] = ok ? leat_out_shape(out[i]) : leat_shape_unknown();
    }
    b->out = leat_elements_of_make(b->n_out, types, shapes);
    free(types);
    free(shapes);
}

/* Defines a function with a name that the graph does not have yet: "Dataset_map_2". */
static void define(leat_loc at, leat_graph *g, const char *kind, body *b, char name[64])
{
    int i = 0;
    do
        snprintf(name, 64, "Dataset_%s_%d", kind, i++);
    while (leat_function_find(g, name));
    leat_function_define_at(at, g, name, build_body, b, b->n_out, b->in->types, b->in->n);
    if (!b->out.types) /* the graph had a mistake already */
        b->out = leat_elements_of_make(0, NULL, NULL);
}

/* The arguments of a function of d's elements. */
static leat_elements_of arguments(leat_out d, const leat_map_options *o)
{
    leat_elements_of e = leat_elements_of_new(d);
    const int n = e.n + o->captured.n;
    e.types = leat_xrealloc(e.types, sizeof(*e.types) * (size_t)(n + 1));
    e.shapes = leat_xrealloc(e.shapes, sizeof(*e.shapes) * (size_t)(n + 1));
    for (int i = 0; i < o->captured.n; i++, e.n++) {
        e.types[e.n] = leat_dtype_base(leat_out_dtype(o->captured.v[i]));
        e.shapes[e.n] = leat_out_shape(o->captured.v[i]);
    }
    return e;
}

leat_out leat_map_dataset_at(leat_loc at, leat_out d, leat_function_fn fn, void *arg, int n_out,
                             const leat_map_options *o)
{
    if (!leat_out_ok(d))
        return d;
    leat_graph *g = leat_graph_of(d);
    char name[64];
    leat_elements_of in = arguments(d, o);
    body b = {.fn = fn, .arg = arg, .in = &in, .n_out = n_out};
    define(at, g, "map", &b, name);
    leat_out y =
        o->parallel_calls
            ? OP(g, "ParallelMapDataset", leat_in(d), leat_ins(o->captured.v, o->captured.n),
                 leat_in(leat_scalar_at(at, g, LEAT_INT32, (double)o->parallel_calls)),
                 leat_attr_func("f", name), LEAT_ELEMENT_ATTRS(&b.out))
            : OP(g, "MapDataset", leat_in(d), leat_ins(o->captured.v, o->captured.n),
                 leat_attr_func("f", name), LEAT_ELEMENT_ATTRS(&b.out));
    leat_elements_of_release(&in);
    leat_elements_of_release(&b.out);
    return y;
}

leat_out leat_filter_dataset_at(leat_loc at, leat_out d, leat_function_fn fn, void *arg,
                                const leat_map_options *o)
{
    if (!leat_out_ok(d))
        return d;
    leat_graph *g = leat_graph_of(d);
    char name[64];
    leat_elements_of in = arguments(d, o), e = leat_elements_of_new(d);
    body b = {.fn = fn, .arg = arg, .in = &in, .n_out = 1};
    define(at, g, "filter", &b, name);
    leat_out y = OP(g, "FilterDataset", leat_in(d), leat_ins(o->captured.v, o->captured.n),
                    leat_attr_func("predicate", name), LEAT_ELEMENT_ATTRS(&e));
    leat_elements_of_release(&in);
    leat_elements_of_release(&e);
    leat_elements_of_release(&b.out);
    return y;
}

leat_out leat_interleave_dataset_at(leat_loc at, leat_out d, leat_function_fn fn, void *arg,
                                    int64_t cycle, int64_t block, const leat_map_options *o)
{
    if (!leat_out_ok(d))
        return d;
    leat_graph *g = leat_graph_of(d);
    char name[64];
    leat_elements_of in = arguments(d, o);
    body b = {.fn = fn, .arg = arg, .in = &in, .n_out = 1, .gives_dataset = true};
    const leat_arg captured = leat_ins(o->captured.v, o->captured.n);
    define(at, g, cycle ? "interleave" : "flat_map", &b, name);
    leat_out y = {0};
    if (!cycle)
        y = OP(g, "FlatMapDataset", leat_in(d), captured, leat_attr_func("f", name),
               LEAT_ELEMENT_ATTRS(&b.out));
    else if (!o->parallel_calls)
        y = OP(g, "InterleaveDataset", leat_in(d), captured, LEAT_INT64_SCALAR(g, cycle),
               LEAT_INT64_SCALAR(g, block), leat_attr_func("f", name), LEAT_ELEMENT_ATTRS(&b.out));
    else
        y = OP(g, "ParallelInterleaveDatasetV2", leat_in(d), captured, LEAT_INT64_SCALAR(g, cycle),
               LEAT_INT64_SCALAR(g, block), LEAT_INT64_SCALAR(g, o->parallel_calls),
               leat_attr_func("f", name), LEAT_ELEMENT_ATTRS(&b.out));
    leat_elements_of_release(&in);
    leat_elements_of_release(&b.out);
    return y;
}

/* ---- Iterators ---- */

leat_out leat_one_shot_iterator_at(leat_loc at, leat_graph *g, leat_function_fn fn, void *arg)
{
    char name[64];
    leat_elements_of none = leat_elements_of_make(0, NULL, NULL);
    body b = {.fn = fn, .arg = arg, .in = &none, .n_out = 1, .gives_dataset = true};
    define(at, g, "factory", &b, name);
    leat_out it = OP(g, "OneShotIterator", leat_attr_func("dataset_factory", name),
                     LEAT_ELEMENT_ATTRS(&b.out));
    leat_elements_of_release(&none);
    leat_elements_of_release(&b.out);
    return it;
}

leat_out leat_initializable_iterator_at(leat_loc at, leat_out d, leat_out *initializer)
{
    *initializer = d;
    if (!leat_out_ok(d))
        return d;
    leat_graph *g = leat_graph_of(d);
    leat_elements_of e = leat_elements_of_new(d);
    leat_out it = OP(g, "IteratorV2", leat_attr_string("shared_name", ""),
                     leat_attr_string("container", ""), LEAT_ELEMENT_ATTRS(&e));
    leat_elements_of_release(&e);
    *initializer = leat_done(OP(g, "MakeIterator", leat_in(d), leat_in(it)));
    return it;
}

void leat_iterator_next_at(leat_loc at, leat_out iterator, leat_out *outs, int n)
{
    for (int i = 0; i < n; i++)
        outs[i] = iterator;
    if (!leat_out_ok(iterator))
        return;
    leat_graph *g = leat_graph_of(iterator);
    leat_elements_of e = leat_elements_of_new(iterator);
    if (e.n != n) {
        leat_out none = leat_graph_fail(
            g, at,
            leat_error(INVALID_ARGUMENT, "The elements of iterator '%s' have %d tensors, not %d",
                       leat_node_name(iterator.node), e.n, n));
        for (int i = 0; i < n; i++)
            outs[i] = none;
    } else {
        leat_out x = OP(g, "IteratorGetNext", leat_in(iterator), LEAT_ELEMENT_ATTRS(&e));
        for (int i = 0; i < n; i++)
            outs[i] = leat_out_ok(x) ? leat_output(x, i) : x;
    }
    leat_elements_of_release(&e);
}

/* ---- Examples ---- */

/* The default of a feature, or a tensor without elements, which stands for none. */
static leat_out default_of(leat_loc at, leat_graph *g, const leat_feature_spec *f)
{
    if (f->value)
        return leat_const_at(at, g, f->value);
    leat_tensor *none = NULL;
    leat_status s = leat_tensor_new(f->dtype, leat_shape(0), &none);
    if (s)
        return leat_graph_fail(g, at, s);
    leat_out x = leat_const_at(at, g, none);
    leat_tensor_unref(none);
    return x;
}

void leat_parse_single_example_at(leat_loc at, leat_out serialized,
                                  const leat_feature_spec *features, int n, leat_out *outs)
{
    for (int i = 0; i < n; i++)
        outs[i] = serialized;
    if (!leat_out_ok(serialized))
        return;
    leat_graph *g = leat_graph_of(serialized);
    const char **keys = leat_new_array(const char *, n + 1);
    leat_shape *shapes = leat_new_array(leat_shape, n + 1);
    leat_out *defaults = leat_new_array(leat_out, n + 1);
    for (int i = 0; i < n; i++) {
        keys[i] = features[i].key;
        shapes[i] = features[i].shape;
        defaults[i] = default_of(at, g, &features[i]);
    }
    leat_out x =
        OP(g, "ParseSingleExample", leat_in(serialized), leat_ins(defaults, n),
           leat_attr_int("num_sparse", 0), leat_attr_strings("sparse_keys", NULL, 0),
           leat_attr_strings("dense_keys", keys, n), leat_attr_types("sparse_types", NULL, 0),
           leat_attr_shapes("dense_shapes", shapes, n));
    for (int i = 0; i < n; i++)
        outs[i] = leat_out_ok(x) ? leat_output(x, i) : x;
    free(keys);
    free(shapes);
    free(defaults);
}
