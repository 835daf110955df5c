/* array.c -- conversions, sums of many tensors, and choices. */
#include <stdio.h>

#include "kernels/cpu/shapes.h"
#include "kernels/opencl/walk.h"

extern const leat_cl_text leat_cl_text_array;
static const leat_cl_text *const texts[] = {&leat_cl_text_array, NULL};

/* ---- Cast ---- */

static const char *type_name(leat_dtype t)
{
    return t == LEAT_FLOAT ? "float" : t == LEAT_INT64 ? "long" : t == LEAT_INT32 ? "int" : "uchar";
}

static leat_status cast(leat_kernel *k)
{
    const leat_tensor *x = leat_kernel_in(k, 0);
    const leat_dtype to = leat_kernel_out_dtype(k, 0);
    char name[32];
    leat_tensor *y;
    if (x->dtype == to) {
        leat_kernel_forward(k, 0, 0);
        return NULL;
    }
    LEAT_TRY(leat_kernel_out(k, 0, &x->shape, &y));
    if (!y->count)
        return NULL;
    snprintf(name, sizeof name, "%s_to_%s", type_name(x->dtype),
             to == LEAT_BOOL ? "truth" : type_name(to));
    leat_cl_launch l = leat_cl_begin(leat_cl_of(k), texts, "", name);
    leat_cl_tensor(&l, x);
    leat_cl_tensor(&l, y);
    leat_cl_int(&l, y->count);
    return leat_cl_each(&l, y->count, 1);
}

static leat_status differ(leat_kernel *k, const leat_shape *a, int i, const leat_shape *b)
{
    return leat_error(INVALID_ARGUMENT,
                      "Inputs to operation %s of type %s must have the same size and shape.  Input "
                      "0: %s != input %d: %s",
                      leat_node_name(leat_kernel_node(k)), leat_node_op(leat_kernel_node(k)),
                      leat_shape_show(a).s, i, leat_shape_show(b).s);
}

/* ---- AddN ---- */

static leat_status add_n(leat_kernel *k)
{
    const int n = leat_kernel_inputs(k);
    const leat_tensor *first = leat_kernel_in(k, 0);
    leat_tensor *y;
    for (int i = 1; i < n; i++)
        if (!leat_shape_equal(&leat_kernel_in(k, i)->shape, &first->shape))
            return differ(k, &first->shape, i, &leat_kernel_in(k, i)->shape);
    if (n == 1) {
        leat_kernel_forward(k, 0, 0);
        return NULL;
    }
    const void *sum = first->data; /* the output may take this memory */
    LEAT_TRY(leat_kernel_out_over(k, 0, 0, &first->shape, &y));
    for (int i = 1; i < n && y->count; i++) {
        LEAT_TRY(leat_cl_add(leat_cl_of(k), sum, leat_kernel_in(k, i)->data, y->data, y->count));
        sum = y->data;
    }
    return NULL;
}

/* ---- Select ---- */

static leat_status choose(leat_kernel *k)
{
    const leat_tensor *c = leat_kernel_in(k, 0), *x = leat_kernel_in(k, 1),
                      *y = leat_kernel_in(k, 2);
    const leat_shape *s = &x->shape;
    const bool same = leat_shape_equal(s, &c->shape), vector = !same && c->shape.rank == 1;
    if (!same && !vector && c->shape.rank != 0)
        return differ(k, &c->shape, 1, s);
    LEAT_REQUIRE(!vector || s->rank >= 1, INVALID_ARGUMENT,
                 "'then' must be at least a vector, but saw shape: %s", leat_shape_show(s).s);
    LEAT_REQUIRE(!vector || s->dim[0] == c->count, INVALID_ARGUMENT,
                 "Number of batches of 'then' must match size of 'cond', but saw: %lld vs. %lld",
                 (long long)s->dim[0], (long long)c->count);
    if (!leat_shape_equal(s, &y->shape))
        return differ(k, s, 2, &y->shape);
    leat_tensor *z;
    LEAT_TRY(leat_kernel_out(k, 0, s, &z));
    if (!z->count)
        return NULL;
    leat_cl_launch l = leat_cl_begin(leat_cl_of(k), texts, "", "choose");
    leat_cl_tensor(&l, c);
    leat_cl_tensor(&l, x);
    leat_cl_tensor(&l, y);
    leat_cl_tensor(&l, z);
    leat_cl_int(&l, z->count);
    leat_cl_int(&l, same ? 1 : z->count / c->count);
    return leat_cl_each(&l, z->count, 1);
}

/* ---- ZerosLike, OnesLike ---- */

static leat_status like(leat_kernel *k)
{
    const leat_tensor *x = leat_kernel_in(k, 0);
    const float one = 1;
    leat_tensor *y;
    LEAT_TRY(leat_kernel_out_over(k, 0, 0, &x->shape, &y));
    return leat_cl_fill(leat_cl_of(k), y->data, y->count, sizeof(float),
                        leat_node_op(leat_kernel_node(k))[0] == 'O' ? &one : NULL);
}

#define FLOAT LEAT_T(FLOAT)
#define CASTABLE (FLOAT | LEAT_T(INT32) | LEAT_T(INT64) | LEAT_T(BOOL))

const leat_kernel_def leat_opencl_array[] = {
    {.op = "Cast", .where = {{"SrcT", CASTABLE | LEAT_T(UINT8)}, {"DstT", CASTABLE}}, .run = cast},
    {.op = "AddN", .where = {{"T", FLOAT}}, .run = add_n},
    {.op = "AccumulateNV2", .where = {{"T", FLOAT}}, .run = add_n},
    {.op = "Select", .where = {{"T", FLOAT}}, .run = choose},
    {.op = "ZerosLike", .where = {{"T", FLOAT}}, .run = like},
    {.op = "OnesLike", .where = {{"T", FLOAT}}, .run = like},
    {0},
};
