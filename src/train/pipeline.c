/* pipeline.c -- datasets in graphs (leat/pipeline.h): sources, and what needs no functions. */
#include "train/pipeline.h"

#include <leat/ops.h>
#include <stdlib.h>

#include "core/alloc.h"
#include "graph/given.h"
#include "train/train_int.h"

/* ---- What elements are ---- */

leat_elements_of leat_elements_of_make(int n, const leat_dtype *types, const leat_shape *shapes)
{
    leat_elements_of e = {n, leat_new_array(leat_dtype, n + 1), leat_new_array(leat_shape, n + 1)};
    for (int i = 0; i < n; i++) {
        e.types[i] = types[i];
        e.shapes[i] = shapes[i];
    }
    return e;
}

leat_elements_of leat_elements_of_new(leat_out d)
{
    static const leat_dtype string = LEAT_STRING;
    const leat_shape scalar = leat_shape();
    if (!leat_out_ok(d))
        return leat_elements_of_make(1, &string, &scalar);
    const char *attr = leat_node_has(d.node, "output_types") ? "output_types" : "Toutput_types";
    if (!leat_node_has(d.node, attr)) /* records and lines of files */
        return leat_elements_of_make(1, &string, &scalar);
    int n, n_shapes;
    const leat_dtype *types = leat_node_types(d.node, attr, &n);
    const leat_shape *shapes = leat_node_shapes(d.node, "output_shapes", &n_shapes);
    return leat_elements_of_make(n < n_shapes ? n : n_shapes, types, shapes);
}

void leat_elements_of_release(leat_elements_of *e)
{
    free(e->types);
    free(e->shapes);
    *e = (leat_elements_of){0};
}

leat_out leat_int64_at(leat_loc at, leat_graph *g, int64_t v)
{
    leat_tensor *t = NULL;
    leat_status s = leat_tensor_copy_of(LEAT_INT64, leat_shape(), &v, &t);
    leat_out x = s ? leat_graph_fail(g, at, s) : leat_const_at(at, g, t);
    leat_tensor_unref(t);
    return x;
}

leat_out leat_true_at(leat_loc at, leat_graph *g, bool v)
{
    return leat_scalar_at(at, g, LEAT_BOOL, v);
}

/* The shape of a batch of tensors, or, with rows -1, of any number of them. */
static leat_shape batch_of(const leat_shape *s, int64_t rows)
{
    if (s->rank < 0 || s->rank == LEAT_MAX_RANK)
        return leat_shape_unknown();
    leat_shape b = {.rank = s->rank + 1, .dim = {rows}};
    memcpy(b.dim + 1, s->dim, sizeof(*s->dim) * (size_t)s->rank);
    return b;
}

/* ---- Sources ---- */

leat_out leat_tensor_dataset_at(leat_loc at, leat_outs xs, bool rows)
{
    if (xs.n < 1)
        return (leat_out){0};
    leat_graph *g = leat_node_graph(xs.v[0].node);
    leat_shape *shapes = leat_new_array(leat_shape, xs.n);
    for (int i = 0; i < xs.n; i++) {
        if (!leat_out_ok(xs.v[i])) {
            free(shapes);
            return xs.v[i];
        }
        shapes[i] = leat_out_shape(xs.v[i]);
        if (rows && shapes[i].rank > 0)
            shapes[i] = leat_shape_make(shapes[i].rank - 1, shapes[i].dim + 1);
    }
    leat_out d = leat_op_at(at, g, rows ? "TensorSliceDataset" : "TensorDataset",
                            (leat_arg[]){leat_ins(xs.v, xs.n),
                                         leat_attr_shapes("output_shapes", shapes, xs.n),
                                         leat_arg_new(LEAT_ARG_END, NULL)});
    free(shapes);
    return d;
}

/* leat_op with the caller's place. */
#define OP(g, op, ...)                                                                             \
    leat_op_at(at, g, op, (leat_arg[]){__VA_ARGS__, leat_arg_new(LEAT_ARG_END, NULL)})

leat_out leat_range_dataset_at(leat_loc at, leat_graph *g, int64_t start, int64_t stop,
                               int64_t step)
{
    const leat_dtype type = LEAT_INT64;
    const leat_shape shape = leat_shape();
    return OP(g, "RangeDataset", LEAT_INT64_SCALAR(g, start), LEAT_INT64_SCALAR(g, stop),
              LEAT_INT64_SCALAR(g, step), leat_attr_types("output_types", &type, 1),
              leat_attr_shapes("output_shapes", &shape, 1));
}

leat_out leat_file_dataset_at(leat_loc at, const char *op, leat_out files, const char *compression)
{
    if (!leat_out_ok(files))
        return files;
    leat_graph *g = leat_graph_of(files);
    return OP(g, op, leat_in(files), leat_in(leat_string_at(at, g, compression)),
              LEAT_INT64_SCALAR(g, 0));
}

leat_out leat_fixed_length_dataset_at(leat_loc at, leat_out files, int64_t header, int64_t record,
                                      int64_t footer)
{
    if (!leat_out_ok(files))
        return files;
    leat_graph *g = leat_graph_of(files);
    return OP(g, "FixedLengthRecordDataset", leat_in(files), LEAT_INT64_SCALAR(g, header),
              LEAT_INT64_SCALAR(g, record), LEAT_INT64_SCALAR(g, footer), LEAT_INT64_SCALAR(g, 0));
}

/* ---- Which elements, and in which order ---- */

leat_out leat_counted_dataset_at(leat_loc at, const char *op, leat_out d, int64_t count)
{
    if (!leat_out_ok(d))
        return d;
    leat_graph *g = leat_graph_of(d);
    leat_elements_of e = leat_elements_of_new(d);
    leat_out y = OP(g, op, leat_in(d), LEAT_INT64_SCALAR(g, count), LEAT_ELEMENT_ATTRS(&e));
    leat_elements_of_release(&e);
    return y;
}

leat_out leat_shard_dataset_at(leat_loc at, leat_out d, int64_t shards, int64_t index)
{
    if (!leat_out_ok(d))
        return d;
    leat_graph *g = leat_graph_of(d);
    leat_elements_of e = leat_elements_of_new(d);
    leat_out y = OP(g, "ShardDataset", leat_in(d), LEAT_INT64_SCALAR(g, shards),
                    LEAT_INT64_SCALAR(g, index), LEAT_ELEMENT_ATTRS(&e));
    leat_elements_of_release(&e);
    return y;
}

leat_out leat_shuffle_dataset_at(leat_loc at, leat_out d, int64_t buffer_size,
                                 const leat_shuffle_options *o)
{
    if (!leat_out_ok(d))
        return d;
    leat_graph *g = leat_graph_of(d);
    int64_t seed, seed2;
    leat_graph_seeds(g, leat_is_given(&o->given, "seed", (double)o->seed) ? &o->seed : NULL, &seed,
                     &seed2);
    leat_elements_of e = leat_elements_of_new(d);
    leat_out y =
        OP(g, "ShuffleDataset", leat_in(d), LEAT_INT64_SCALAR(g, buffer_size),
           LEAT_INT64_SCALAR(g, seed), LEAT_INT64_SCALAR(g, seed2),
           leat_attr_bool("reshuffle_each_iteration", !o->same_order), LEAT_ELEMENT_ATTRS(&e));
    leat_elements_of_release(&e);
    return y;
}

/* padded_shapes and padding_values of PaddedBatchDatasetV2: zeros and empty strings. */
static leat_out padded_batch(leat_loc at, leat_out d, int64_t size, const leat_batching_options *o,
                             const leat_elements_of *elements, const leat_elements_of *batches)
{
    leat_graph *g = leat_graph_of(d);
    const int n = elements->n;
    leat_out *shapes = leat_new_array(leat_out, n), *zeros = leat_new_array(leat_out, n);
    for (int i = 0; i < n; i++) {
        leat_tensor *t = NULL, *zero = NULL;
        const leat_shape *s = &o->padded_shapes[i];
        leat_status bad =
            leat_tensor_copy_of(LEAT_INT64, leat_shape(s->rank < 0 ? 0 : s->rank), s->dim, &t);
        if (!bad)
            bad = leat_tensor_new(elements->types[i], leat_shape(), &zero);
        if (bad)
            leat_graph_fail(g, at, bad);
        shapes[i] = leat_const_at(at, g, t);
        zeros[i] = leat_const_at(at, g, zero);
        leat_tensor_unref(t);
        leat_tensor_unref(zero);
    }
    leat_out y =
        OP(g, "PaddedBatchDatasetV2", leat_in(d), LEAT_INT64_SCALAR(g, size), leat_ins(shapes, n),
           leat_ins(zeros, n), leat_in(leat_true_at(at, g, o->drop_remainder)),
           leat_attr_shapes("output_shapes", batches->shapes, n));
    free(shapes);
    free(zeros);
    return y;
}

leat_out leat_batch_dataset_at(leat_loc at, leat_out d, int64_t size,
                               const leat_batching_options *o)
{
    if (!leat_out_ok(d))
        return d;
    leat_graph *g = leat_graph_of(d);
    leat_elements_of e = leat_elements_of_new(d), b = leat_elements_of_new(d);
    for (int i = 0; i < b.n; i++)
        b.shapes[i] = batch_of(o->padded_shapes ? &o->padded_shapes[i] : &e.shapes[i],
                               o->drop_remainder ? size : -1);
    leat_out y = o->padded_shapes
                     ? padded_batch(at, d, size, o, &e, &b)
                     : OP(g, "BatchDatasetV2", leat_in(d), LEAT_INT64_SCALAR(g, size),
                          leat_in(leat_true_at(at, g, o->drop_remainder)), LEAT_ELEMENT_ATTRS(&b));
    leat_elements_of_release(&e);
    leat_elements_of_release(&b);
    return y;
}

leat_out leat_cache_dataset_at(leat_loc at, leat_out d, const char *path)
{
    if (!leat_out_ok(d))
        return d;
    leat_graph *g = leat_graph_of(d);
    leat_elements_of e = leat_elements_of_new(d);
    leat_out y = OP(g, "CacheDataset", leat_in(d), leat_in(leat_string_at(at, g, path)),
                    LEAT_ELEMENT_ATTRS(&e));
    leat_elements_of_release(&e);
    return y;
}

leat_out leat_zip_dataset_at(leat_loc at, leat_outs ds)
{
    leat_elements_of all = {0};
    int n = 0;
    if (ds.n < 1)
        return (leat_out){0};
    for (int i = 0; i < ds.n; i++) {
        if (!leat_out_ok(ds.v[i])) {
            leat_elements_of_release(&all);
            return ds.v[i];
        }
        leat_elements_of e = leat_elements_of_new(ds.v[i]);
        all.types = leat_xrealloc(all.types, sizeof(*all.types) * (size_t)(n + e.n + 1));
        all.shapes = leat_xrealloc(all.shapes, sizeof(*all.shapes) * (size_t)(n + e.n + 1));
        for (int c = 0; c < e.n; c++, n++) {
            all.types[n] = e.types[c];
            all.shapes[n] = e.shapes[c];
        }
        leat_elements_of_release(&e);
    }
    all.n = n;
    leat_out y =
        OP(leat_graph_of(ds.v[0]), "ZipDataset", leat_ins(ds.v, ds.n), LEAT_ELEMENT_ATTRS(&all));
    leat_elements_of_release(&all);
    return y;
}

leat_out leat_concatenate_dataset_at(leat_loc at, leat_out d, leat_out next)
{
    if (!leat_out_ok(d) || !leat_out_ok(next))
        return leat_out_ok(d) ? next : d;
    leat_elements_of e = leat_elements_of_new(d), f = leat_elements_of_new(next);
    for (int i = 0; i < e.n && i < f.n; i++) {
        if (e.shapes[i].rank != f.shapes[i].rank)
            e.shapes[i] = leat_shape_unknown();
        for (int k = 0; k < e.shapes[i].rank; k++)
            if (e.shapes[i].dim[k] != f.shapes[i].dim[k])
                e.shapes[i].dim[k] = -1;
    }
    leat_out y = OP(leat_graph_of(d), "ConcatenateDataset", leat_in(d), leat_in(next),
                    LEAT_ELEMENT_ATTRS(&e));
    leat_elements_of_release(&e);
    leat_elements_of_release(&f);
    return y;
}
