/* partitioned.c -- variables cut into slices along one axis. Rules, names and error words are those
 * of TensorFlow's variable_scope.py and partitioned_variables.py.
 *
 * Keys of the graph's extras: "partitioned:NAME" is the whole variable, "partitions of:NODE" the
 * same by the node that concatenates the slices, "slice:PART" the description of a slice in
 * checkpoints. */
#include <inttypes.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "core/alloc.h"
#include "core/strbuf.h"
#include "graph/given.h"
#include "train/variable_scope.h"

typedef struct whole {
    leat_out value; /* the concatenated slices */
    leat_out *parts;
    int n, axis;
    leat_shape shape, slices;
    leat_dtype dtype;
} whole;

typedef struct slice {
    const char *of, *spec;
} slice;

/* ---- Partitioners ---- */

static leat_status check_axis(const leat_shape *s, const leat_partitioner *p)
{
    LEAT_REQUIRE(p->axis >= 0 && p->axis < s->rank, INVALID_ARGUMENT,
                 "Can not partition variable along axis %d when shape is only %s", p->axis,
                 leat_shape_show(s).s);
    return NULL;
}

static void slices_along(const leat_shape *s, int axis, int64_t n, leat_shape *out)
{
    *out = (leat_shape){.rank = s->rank};
    for (int i = 0; i < s->rank; i++)
        out->dim[i] = i == axis ? n : 1;
}

/* Options of partitioners, with their defaults. */
static int64_t bytes_per_string(const leat_partitioner *p)
{
    return leat_given_int_or(&p->given, "bytes_per_string", p->bytes_per_string, 16);
}

static int64_t most_slices(const leat_partitioner *p)
{
    return leat_given_int_or(&p->given, "n", p->n, INT64_MAX);
}

static int64_t least_bytes(const leat_partitioner *p)
{
    return leat_given_int_or(&p->given, "bytes", p->bytes, 256 << 10);
}

static double element_bytes(leat_dtype t, const leat_partitioner *p)
{
    return t == LEAT_STRING ? (double)bytes_per_string(p) : (double)leat_dtype_size(t);
}

leat_status leat_slices_fixed(const leat_shape *shape, leat_dtype t, const leat_partitioner *self,
                              leat_shape *out)
{
    (void)t;
    LEAT_TRY(check_axis(shape, self));
    int64_t most = shape->dim[self->axis];
    slices_along(shape, self->axis, self->n < most ? self->n : most, out);
    return NULL;
}

leat_status leat_slices_axis_size(const leat_shape *shape, leat_dtype t,
                                  const leat_partitioner *self, leat_shape *out)
{
    LEAT_TRY(check_axis(shape, self));
    LEAT_REQUIRE(self->bytes >= 1 && bytes_per_string(self) >= 1, INVALID_ARGUMENT,
                 "max_shard_bytes and .bytes_per_string must be positive: %" PRId64 ", %" PRId64,
                 self->bytes, bytes_per_string(self));
    LEAT_REQUIRE(most_slices(self) >= 1, INVALID_ARGUMENT,
                 "The most slices, .n, must be positive: %" PRId64, most_slices(self));
    double length = (double)shape->dim[self->axis], elements = (double)leat_shape_count(shape);
    double row = length > 0 ? elements / length * element_bytes(t, self) : 1;
    double rows = fmax(1, floor((double)self->bytes / fmax(1, row)));
    double n = fmax(1, ceil(length / rows));
    slices_along(shape, self->axis, (int64_t)fmin((double)most_slices(self), n), out);
    return NULL;
}

leat_status leat_slices_min_max(const leat_shape *shape, leat_dtype t, const leat_partitioner *self,
                                leat_shape *out)
{
    LEAT_TRY(check_axis(shape, self));
    LEAT_REQUIRE(least_bytes(self) >= 1 && bytes_per_string(self) >= 1, INVALID_ARGUMENT,
                 "The least bytes of a slice, .bytes, and .bytes_per_string must be positive: "
                 "%" PRId64 ", %" PRId64,
                 least_bytes(self), bytes_per_string(self));
    double bytes = (double)leat_shape_count(shape) * element_bytes(t, self);
    double n = ceil(bytes / (double)least_bytes(self));
    n = fmin(n, fmin((double)shape->dim[self->axis], (double)self->n));
    slices_along(shape, self->axis, (int64_t)fmax(1, n), out);
    return NULL;
}

static leat_status count_slices(const leat_partitioner *p, const leat_shape *shape, leat_dtype t,
                                leat_shape *slices, int *axis)
{
    LEAT_REQUIRE(leat_shape_known(shape), INVALID_ARGUMENT,
                 "Shape of a new partitioned variable must be fully defined, but instead was %s.",
                 leat_shape_show(shape).s);
    LEAT_REQUIRE(shape->rank >= 1, INVALID_ARGUMENT,
                 "A partitioned Variable must have rank at least 1, shape: %s",
                 leat_shape_show(shape).s);
    LEAT_TRY(p->slices(shape, t, p, slices));
    LEAT_REQUIRE(slices->rank == shape->rank, INVALID_ARGUMENT,
                 "Partitioner returned a partition list that does not match the Variable's rank: "
                 "%s vs. %s",
                 leat_shape_show(slices).s, leat_shape_show(shape).s);
    int cut = 0;
    *axis = 0;
    for (int i = slices->rank - 1; i >= 0; i--) {
        LEAT_REQUIRE(slices->dim[i] >= 1, INVALID_ARGUMENT,
                     "Partitioner returned zero partitions for some axes: %s.",
                     leat_shape_show(slices).s);
        cut += slices->dim[i] > 1;
        *axis = slices->dim[i] > 1 ? i : *axis;
    }
    LEAT_REQUIRE(cut <= 1, INVALID_ARGUMENT,
                 "Can only slice a variable along one dimension: shape: %s, partitioning: %s",
                 leat_shape_show(shape).s, leat_shape_show(slices).s);
    LEAT_REQUIRE(slices->dim[*axis] <= (shape->dim[*axis] > 1 ? shape->dim[*axis] : 1),
                 INVALID_ARGUMENT, "%s cannot be cut into %" PRId64 " slices along axis %d",
                 leat_shape_show(shape).s, slices->dim[*axis], *axis);
    return NULL;
}

/* ---- Variables ---- */

static void *extra(leat_graph *g, const char *kind, const char *name, size_t size)
{
    const char *key = leat_arena_printf(&g->arena, "%s:%s", kind, name);
    return size ? leat_graph_extra(g, key, size) : leat_map_get(&g->extras, key);
}

static leat_status check_shared(const leat_variable_wish *w, const whole *found,
                                const leat_shape *slices)
{
    LEAT_REQUIRE(w->reuse != LEAT_REUSE_INHERIT, ALREADY_EXISTS,
                 "Partitioned variable with name %s already exists. Did you mean to set .reuse = "
                 "LEAT_REUSE or LEAT_AUTO_REUSE in the variable scope?",
                 w->name);
    LEAT_REQUIRE(leat_shape_compatible(&w->spec.shape, &found->shape), INVALID_ARGUMENT,
                 "Trying to reuse partitioned variable %s, but specified shape %s and found shape "
                 "%s.",
                 w->name, leat_shape_show(&w->spec.shape).s, leat_shape_show(&found->shape).s);
    LEAT_REQUIRE(w->spec.dtype == found->dtype, INVALID_ARGUMENT,
                 "Trying to reuse partitioned variable %s, but specified dtype %s and found dtype "
                 "%s.",
                 w->name, leat_dtype_name(w->spec.dtype), leat_dtype_name(found->dtype));
    LEAT_REQUIRE(leat_shape_equal(slices, &found->slices), INVALID_ARGUMENT,
                 "Trying to reuse partitioned variable %s, but specified partitions %s and found "
                 "partitions %s.",
                 w->name, leat_shape_show(slices).s, leat_shape_show(&found->slices).s);
    return NULL;
}

static const char *spec_text(leat_graph *g, const leat_shape *of, const leat_shape *offset,
                             const leat_shape *shape)
{
    leat_strbuf b = {0};
    for (int i = 0; i < of->rank; i++)
        leat_strbuf_printf(&b, "%" PRId64 " ", of->dim[i]);
    for (int i = 0; i < of->rank; i++)
        leat_strbuf_printf(&b, "%s%" PRId64 ",%" PRId64, i ? ":" : "", offset->dim[i],
                           shape->dim[i]);
    const char *text = leat_arena_strdup(&g->arena, leat_strbuf_text(&b));
    leat_strbuf_release(&b);
    return text;
}

static leat_out ints(leat_graph *g, const leat_shape *s, const char *name)
{
    leat_tensor *t;
    leat_status bad = leat_tensor_new(LEAT_INT32, leat_shape(s->rank), &t);
    if (bad)
        return leat_graph_fail(g, (leat_loc){0}, bad);
    for (int i = 0; i < s->rank; i++)
        ((int32_t *)leat_tensor_mutable(t))[i] = (int32_t)s->dim[i];
    leat_out y = leat_op(g, "Const", leat_attr_tensor("value", t),
                         leat_attr_type("dtype", LEAT_INT32), leat_name(name));
    leat_tensor_unref(t);
    return y;
}

/* Slice i of the initial value. */
static leat_out initial_part(leat_graph *g, leat_out x, const char *part, const leat_shape *offset,
                             const leat_shape *shape)
{
    leat_out y = {0};
    leat_with_name(g, leat_arena_printf(&g->arena, "%s/PartitionedInitializer/", part))
    {
        leat_with_name(g, "Slice")
        {
            leat_out begin = ints(g, offset, "begin"), size = ints(g, shape, "size");
            y = LEAT_OP3("Slice", x, begin, size, leat_name(leat_name_scope(g)));
        }
    }
    return y;
}

static leat_status make_part(leat_graph *g, const leat_variable_wish *w, whole *v, int i,
                             leat_shape *offset)
{
    int64_t length = v->shape.dim[v->axis];
    leat_shape shape = v->shape;
    shape.dim[v->axis] = length / v->n + (i < length % v->n);
    leat_initializer init = w->spec.initializer ? *w->spec.initializer : (leat_initializer){0};
    init.whole = &v->shape;
    leat_variable_wish part = *w;
    part.name = leat_arena_printf(&g->arena, "%s/part_%d", w->name, i);
    part.spec.shape = shape;
    if (w->spec.initializer) {
        part.spec.initializer = &init;
    } else {
        part.spec.initial = initial_part(g, w->spec.initial, part.name, offset, &shape);
        part.spec.shape = leat_shape_unknown();
    }
    LEAT_TRY(leat_get_single(g, &part, &v->parts[i]));
    slice *s = extra(g, "slice", part.name, sizeof(slice));
    *s = (slice){leat_arena_strdup(&g->arena, w->name), spec_text(g, &v->shape, offset, &shape)};
    offset->dim[v->axis] += shape.dim[v->axis];
    return NULL;
}

/* Reads the slices and concatenates them, under the name of the whole variable. */
static leat_out joined(leat_graph *g, const char *name, const whole *v)
{
    leat_out y = v->parts[0];
    leat_name_scope_enter(g, NULL);
    if (v->n > 1)
        leat_with_name(g, leat_arena_printf(&g->arena, "%s/ConcatPartitions/", name))
        {
            leat_with_name(g, "concat")
            {
                leat_out axis = leat_py_number(g, LEAT_INT32, v->axis, "axis");
                y = leat_op(g, "ConcatV2", leat_ins(v->parts, v->n), leat_in(axis),
                            leat_name(leat_name_scope(g)));
            }
        }
    y = leat_identity(y, leat_name(name));
    leat_name_scope_leave(g);
    return y;
}

leat_status leat_get_partitioned(leat_graph *g, const leat_variable_wish *w,
                                 const leat_partitioner *p, leat_out *out)
{
    LEAT_REQUIRE(!leat_single_exists(g, w->name), INVALID_ARGUMENT,
                 "A partitioner was provided, but an unpartitioned version of the variable was "
                 "found: %s.  Perhaps a variable of the same name was already created without "
                 "partitioning?",
                 w->name);
    whole made = {.shape = w->spec.initializer ? w->spec.shape : leat_out_shape(w->spec.initial),
                  .dtype = w->spec.dtype};
    LEAT_TRY(count_slices(p, &made.shape, w->spec.dtype, &made.slices, &made.axis));
    whole *found = extra(g, "partitioned", w->name, 0);
    if (found) {
        LEAT_TRY(check_shared(w, found, &made.slices));
        *out = found->value;
        return NULL;
    }
    LEAT_REQUIRE(w->reuse != LEAT_REUSE, NOT_FOUND,
                 "PartitionedVariable %s does not exist, or was not created with "
                 "leat_get_variable. Did you mean to set .reuse = LEAT_AUTO_REUSE in the variable "
                 "scope?",
                 w->name);
    made.n = (int)made.slices.dim[made.axis];
    made.parts = leat_arena_array(&g->arena, leat_out, made.n);
    leat_shape offset = {.rank = made.shape.rank};
    leat_name_scope_enter(g, NULL);
    leat_status s = NULL;
    for (int i = 0; i < made.n && !s && !g->status; i++)
        s = make_part(g, w, &made, i, &offset);
    leat_name_scope_leave(g);
    if (s)
        return s;
    if (g->status) {
        *out = (leat_out){g->poison, 0};
        return NULL;
    }
    made.value = joined(g, w->name, &made);
    *(whole *)extra(g, "partitioned", w->name, sizeof(whole)) = made;
    *(whole *)extra(g, "partitions of", made.value.node->name, sizeof(whole)) = made;
    *out = made.value;
    return NULL;
}

leat_out *leat_variable_parts(leat_out v, int *count_out)
{
    const whole *w = extra(leat_graph_of(v), "partitions of", v.node->name, 0);
    *count_out = w ? w->n : 1;
    leat_out *parts = leat_new_array(leat_out, *count_out);
    memcpy(parts, w ? w->parts : &v, sizeof(*parts) * (size_t)*count_out);
    return parts;
}

const char *leat_variable_slice(leat_out v, const char **name_out)
{
    const slice *s = extra(leat_graph_of(v), "slice", leat_variable_name(v), 0);
    if (s && name_out)
        *name_out = s->of;
    return s ? s->spec : NULL;
}
