/* embedding.c -- lookup of rows by id, in one table or in a table of several parts. */
#include <leat/nn.h>

#include <stdlib.h>

#include "core/alloc.h"
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

/* The position of row `id` in parts of consecutive rows: the first `longer` parts have rows + 1
 * rows, the others `rows`. */
static leat_status find_in_blocks(leat_graph *g, const leat_out *params, int n, leat_out id,
                                  leat_out *part, leat_out *row)
{
    leat_dtype t = leat_dtype_base(leat_out_dtype(id));
    int64_t all = 0;
    for (int p = 0; p < n; p++) {
        leat_shape s = leat_out_shape(params[p]);
        LEAT_REQUIRE(s.rank >= 1 && s.dim[0] >= 0, INVALID_ARGUMENT,
                     "The rows of part %d of an embedding in blocks are not known: %s", p,
                     leat_shape_show(&s).s);
        all += s.dim[0];
    }
    LEAT_REQUIRE(all >= n, INVALID_ARGUMENT, "%lld rows cannot be in %d parts", (long long)all, n);
    leat_out rows = leat_scalar(g, t, (double)(all / n)),
             longer = leat_scalar(g, t, (double)(all % n)),
             one_more = leat_scalar(g, t, (double)(all / n + 1));
    leat_out rest = leat_sub(id, longer);
    *part = leat_maximum(leat_floor_div(id, one_more), leat_floor_div(rest, rows));
    *row = leat_select(leat_less(*part, longer), leat_floor_mod(id, one_more),
                       leat_floor_mod(rest, rows));
    return NULL;
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
        leat_status s = find_in_blocks(g, params, n, flat, &part, &row);
        if (s)
            return leat_graph_fail(g, (leat_loc){0}, s);
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

leat_out leat_embedding_lookup_at(leat_loc at, const leat_out *params, int n, leat_out ids,
                                  const leat_embedding_options *o)
{
    if (n < 1 || !params[0].node || !leat_out_ok(params[0]))
        return n < 1 ? (leat_out){0} : params[0];
    leat_graph *g = leat_graph_of(params[0]);
    leat_loc outer = leat_at_enter(g, at);
    leat_out y = {0};
    leat_with_name(g, "embedding_lookup") y =
        n > 1 ? from_parts(g, params, n, ids, o)
              : leat_identity(rows_of(g, params[0], ids, leat_name_scope(g)));
    leat_at_leave(g, outer);
    return y;
}
