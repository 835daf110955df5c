/* embedding.c -- lookup of rows by id, in one table or in a table of several parts. */
#include <leat/nn.h>

#include <stdlib.h>

#include "core/alloc.h"
#include "graph/given.h"
#include "train/train_int.h"

static leat_out rows_of(leat_graph *g, leat_out params, leat_out ids, const char *name)
{
    leat_out rows = {0};
    leat_with_colocate(g, params)
    {
        if (leat_variable_is_resource(params)) {
            rows = LEAT_OP2("ResourceGather", leat_variable_ref(params), ids, leat_name(name),
                            leat_attr_type("dtype", leat_variable_dtype(params)));
        } else {
            leat_out axis = leat_py_number(g, LEAT_INT32, 0, "axis");
            rows = leat_gather(params, ids, axis, leat_name(name));
        }
    }
    return rows;
}

/* The shape of a row: that of params without its first dimension. */
static leat_out row_shape(leat_graph *g, leat_out params)
{
    leat_shape s = leat_out_shape(params), row = {.rank = s.rank - 1};
    for (int i = 1; i < s.rank; i++)
        row.dim[i - 1] = s.dim[i];
    if (s.rank >= 1 && leat_shape_known(&row))
        return leat_shape_const(g, row);
    return leat_strided_slice(leat_shape_of(params), leat_ints(g, 1), leat_ints(g, 0),
                              leat_ints(g, 1), leat_attr_int("end_mask", 1));
}

/* The number of rows of all parts, of dtype t. */
static leat_out count_rows(leat_graph *g, const leat_out *params, int n, leat_dtype t)
{
    int64_t all = 0;
    bool known = true;
    for (int p = 0; p < n; p++) {
        leat_shape s = leat_out_shape(params[p]);
        known &= s.rank >= 1 && s.dim[0] >= 0;
        all += known ? s.dim[0] : 0;
    }
    if (known && all < n)
        return leat_graph_fail(
            g, (leat_loc){0},
            leat_error(INVALID_ARGUMENT, "%lld rows cannot be in %d parts", (long long)all, n));
    if (known)
        return leat_scalar(g, t, (double)all);
    leat_out *rows = leat_new_array(leat_out, n), zero = leat_scalar(g, LEAT_INT32, 0);
    for (int p = 0; p < n; p++)
        leat_with_colocate(g, params[p]) rows[p] =
            leat_gather(leat_shape_of(params[p]), zero, zero);
    leat_out sum = leat_add_n(rows, n);
    free(rows);
    return leat_cast(sum, t);
}

/* The position of row `id` in parts of consecutive rows: the first `longer` parts have rows + 1
 * rows, the others `rows`. */
static void find_in_blocks(leat_graph *g, const leat_out *params, int n, leat_out id,
                           leat_out *part, leat_out *row)
{
    leat_dtype t = leat_dtype_base(leat_out_dtype(id));
    leat_out all = count_rows(g, params, n, t), parts = leat_scalar(g, t, n);
    leat_out rows = leat_floor_div(all, parts), longer = leat_floor_mod(all, parts);
    leat_out one_more = leat_add(rows, leat_scalar(g, t, 1)), rest = leat_sub(id, longer);
    *part = leat_maximum(leat_floor_div(id, one_more), leat_floor_div(rest, rows));
    *row = leat_select(leat_less(*part, longer), leat_floor_mod(id, one_more),
                       leat_floor_mod(rest, rows));
}

/* Ids are partitioned by part, looked up there, and the rows put back in order. */
static leat_out from_parts(leat_graph *g, const leat_out *params, int n, leat_out ids,
                           const leat_embedding_options *o)
{
    leat_dtype t = leat_dtype_base(leat_out_dtype(ids));
    leat_out zero = leat_scalar(g, LEAT_INT32, 0), one = leat_scalar(g, LEAT_INT32, 1);
    leat_out flat = leat_reshape(ids, leat_ints(g, -1));
    leat_out places = leat_range(zero, leat_size_of(flat), one);
    leat_out part, row;
    if (o->in_blocks) {
        find_in_blocks(g, params, n, flat, &part, &row);
    } else {
        part = leat_floor_mod(flat, leat_scalar(g, t, n));
        row = leat_floor_div(flat, leat_scalar(g, t, n));
    }
    part = leat_cast(part, LEAT_INT32);
    leat_out rows = LEAT_OP2("DynamicPartition", row, part, leat_attr_int("num_partitions", n));
    leat_out where = LEAT_OP2("DynamicPartition", places, part, leat_attr_int("num_partitions", n));
    leat_out *at = leat_new_array(leat_out, n), *found = leat_new_array(leat_out, n);
    for (int p = 0; p < n; p++) {
        at[p] = leat_output(where, p);
        found[p] = rows_of(g, params[p], leat_output(rows, p), NULL);
    }
    leat_out stitched = leat_op(g, "ParallelDynamicStitch", leat_ins(at, n), leat_ins(found, n),
                                leat_name(leat_name_scope(g)));
    free(at);
    free(found);
    const leat_out shape[2] = {leat_shape_of(ids), row_shape(g, params[0])};
    return leat_reshape(stitched, leat_concat(shape, 2, zero));
}

/* Rows that are not to be clipped are unchanged. */
static leat_out clipped(leat_out rows, leat_out ids, const leat_embedding_options *o)
{
    return leat_is_given(&o->given, "max_norm", o->max_norm)
               ? leat_clip_rows_by_norm(rows, o->max_norm, ids)
               : rows;
}

static leat_out from_one(leat_graph *g, leat_out params, leat_out ids,
                         const leat_embedding_options *o)
{
    leat_out rows = rows_of(g, params, ids, leat_name_scope(g));
    leat_with_colocate(g, params) rows = clipped(rows, ids, o);
    return leat_identity(rows);
}

leat_out leat_embedding_lookup_at(leat_loc at, const leat_out *params, int n, leat_out ids,
                                  const leat_embedding_options *o)
{
    if (n < 1 || !params[0].node || !leat_out_ok(params[0]))
        return n < 1 ? (leat_out){0} : params[0];
    leat_graph *g = leat_graph_of(params[0]);
    leat_loc outer = leat_at_enter(g, at);
    leat_out y = {0};
    leat_with_name(g, "embedding_lookup") y =
        n > 1 ? clipped(from_parts(g, params, n, ids, o), ids, o) : from_one(g, params[0], ids, o);
    leat_at_leave(g, outer);
    return y;
}
