/* variant.c -- see variant.h. The objects are counted and never change. */
#include "core/variant.h"

#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>

#include "core/alloc.h"

typedef struct number {
    atomic_int refs;
    union {
        int32_t i;
        float f;
        double d;
        bool b;
    } v;
} number;

static void number_ref(void *object)
{
    atomic_fetch_add_explicit(&((number *)object)->refs, 1, memory_order_relaxed);
}

static void number_unref(void *object)
{
    if (atomic_fetch_sub_explicit(&((number *)object)->refs, 1, memory_order_acq_rel) == 1)
        free(object);
}

enum { INT, FLOAT, DOUBLE, BOOL, KINDS };
static const leat_variant_type types[KINDS] = {
    [INT] = {"int", number_ref, number_unref},
    [FLOAT] = {"float", number_ref, number_unref},
    [DOUBLE] = {"double", number_ref, number_unref},
    [BOOL] = {"bool", number_ref, number_unref},
};
static const size_t sizes[KINDS] = {
    [INT] = sizeof(int32_t), [FLOAT] = sizeof(float), [DOUBLE] = sizeof(double), [BOOL] = 1};

static number *number_new(int kind, leat_variant *out)
{
    number *x = leat_new(number);
    atomic_init(&x->refs, 1);
    *out = (leat_variant){&types[kind], x};
    return x;
}

static int kind_of(const leat_variant *v)
{
    int kind = 0;
    while (kind < KINDS && v->type != &types[kind])
        kind++;
    return kind;
}

bool leat_number_variant(const char *type_name, const void *bytes, size_t n, leat_variant *out)
{
    for (int kind = 0; kind < KINDS; kind++) {
        if (strcmp(type_name, types[kind].name) != 0 || n != sizes[kind])
            continue;
        number *x = number_new(kind, out);
        if (kind == BOOL)
            x->v.b = *(const uint8_t *)bytes != 0;
        else
            memcpy(&x->v, bytes, n);
        return true;
    }
    return false;
}

const void *leat_number_variant_bytes(const leat_variant *v, size_t *n_out)
{
    int kind = kind_of(v);
    if (kind == KINDS)
        return NULL;
    *n_out = sizes[kind];
    return &((const number *)v->object)->v;
}

bool leat_number_variant_add(const leat_variant *a, const leat_variant *b, leat_variant *out)
{
    int kind = kind_of(a);
    if (kind == KINDS || a->type != b->type)
        return false;
    const number *x = a->object, *y = b->object;
    number *sum = number_new(kind, out);
    if (kind == INT)
        sum->v.i = (int32_t)((uint32_t)x->v.i + (uint32_t)y->v.i);
    else if (kind == FLOAT)
        sum->v.f = x->v.f + y->v.f;
    else if (kind == DOUBLE)
        sum->v.d = x->v.d + y->v.d;
    else
        sum->v.b = x->v.b || y->v.b;
    return true;
}

/* ---- Positions of iterators ---- */

typedef struct position {
    atomic_int refs;
    size_t n;
    char bytes[];
} position;

static void position_ref(void *object)
{
    atomic_fetch_add_explicit(&((position *)object)->refs, 1, memory_order_relaxed);
}

static void position_unref(void *object)
{
    if (atomic_fetch_sub_explicit(&((position *)object)->refs, 1, memory_order_acq_rel) == 1)
        free(object);
}

static const leat_variant_type position_type = {"tensorflow::Iterator", position_ref,
                                                position_unref};

bool leat_position_variant(const void *bytes, size_t n, leat_variant *out)
{
    position *p = malloc(sizeof(position) + n);
    if (!p)
        return false;
    atomic_init(&p->refs, 1);
    p->n = n;
    if (n)
        memcpy(p->bytes, bytes, n);
    *out = (leat_variant){&position_type, p};
    return true;
}

const void *leat_position_variant_bytes(const leat_variant *v, size_t *n_out)
{
    if (v->type != &position_type)
        return NULL;
    const position *p = v->object;
    *n_out = p->n;
    return p->bytes;
}

/* ---- All of them ---- */

bool leat_variant_decode(const char *type_name, const void *bytes, size_t n, leat_variant *out)
{
    if (strcmp(type_name, position_type.name) != 0)
        return leat_number_variant(type_name, bytes, n, out);
    return leat_position_variant(bytes, n, out);
}

const void *leat_variant_encode(const leat_variant *v, size_t *n_out)
{
    const void *bytes = leat_number_variant_bytes(v, n_out);
    return bytes ? bytes : leat_position_variant_bytes(v, n_out);
}
