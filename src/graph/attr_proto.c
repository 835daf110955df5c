/* attr_proto.c -- attributes to AttrValue messages and back. */
#include <stdlib.h>
#include <string.h>

#include "core/alloc.h"
#include "core/buffer.h"
#include "graph/graphdef.h"
#include "proto/tensor_codec.h"
#include "proto/wire.h"

/* ---- From messages ---- */

static leat_status func_from(leat_arena *a, const Leat__NameAttrList *p, leat_func *f)
{
    f->name = leat_arena_strdup(a, p->name);
    f->attrs = leat_arena_array(a, leat_attr, p->n_attr);
    for (size_t i = 0; i < p->n_attr; i++) {
        LEAT_TRY(leat_attr_from_proto(a, p->attr[i]->key, p->attr[i]->value, &f->attrs[i]));
        f->n_attrs++;
    }
    return NULL;
}

static leat_status strings_from(leat_arena *a, const Leat__AttrValue__ListValue *l, leat_attr *v)
{
    const char **strings = leat_arena_array(a, const char *, l->n_s);
    int *sizes = leat_arena_array(a, int, l->n_s);
    for (size_t i = 0; i < l->n_s; i++) {
        strings[i] = leat_arena_strndup(a, (const char *)l->s[i].data, l->s[i].len);
        sizes[i] = (int)l->s[i].len;
    }
    *v = (leat_attr){.name = v->name,
                     .kind = LEAT_ARG_STRINGS,
                     .n = (int)l->n_s,
                     .strings = strings,
                     .sizes = sizes};
    return NULL;
}

static leat_status numbers_from(leat_arena *a, const Leat__AttrValue__ListValue *l, leat_attr *v)
{
    if (l->n_f) {
        double *f = leat_arena_array(a, double, l->n_f);
        for (size_t i = 0; i < l->n_f; i++)
            f[i] = l->f[i];
        v->kind = LEAT_ARG_FLOATS;
        v->n = (int)l->n_f;
        v->floats = f;
    } else if (l->n_b) {
        int64_t *b = leat_arena_array(a, int64_t, l->n_b);
        for (size_t i = 0; i < l->n_b; i++)
            b[i] = l->b[i];
        v->kind = LEAT_ARG_BOOLS;
        v->n = (int)l->n_b;
        v->ints = b;
    } else if (l->n_type) {
        leat_dtype *t = leat_arena_array(a, leat_dtype, l->n_type);
        for (size_t i = 0; i < l->n_type; i++)
            t[i] = (leat_dtype)l->type[i];
        v->kind = LEAT_ARG_TYPES;
        v->n = (int)l->n_type;
        v->types = t;
    } else { /* an empty list is of any kind */
        v->kind = LEAT_ARG_INTS;
        v->n = (int)l->n_i;
        v->ints = leat_arena_memdup(a, l->i, l->n_i * sizeof(*l->i));
    }
    return NULL;
}

static leat_status tensors_from(leat_arena *a, const Leat__AttrValue__ListValue *l, leat_attr *v)
{
    leat_tensor **t = leat_arena_array(a, leat_tensor *, l->n_tensor);
    *v = (leat_attr){.name = v->name, .kind = LEAT_ARG_TENSORS, .tensors = t};
    for (size_t i = 0; i < l->n_tensor; i++) {
        leat_status s = leat_tensor_from_proto(l->tensor[i], &t[i]);
        if (s) {
            leat_attr_release(v);
            return s;
        }
        v->n++;
    }
    return NULL;
}

static leat_status list_from(leat_arena *a, const Leat__AttrValue__ListValue *l, leat_attr *v)
{
    if (l->n_s)
        return strings_from(a, l, v);
    if (l->n_tensor)
        return tensors_from(a, l, v);
    if (l->n_shape) {
        leat_shape *s = leat_arena_array(a, leat_shape, l->n_shape);
        for (size_t i = 0; i < l->n_shape; i++)
            LEAT_TRY(leat_shape_from_proto(l->shape[i], &s[i]));
        *v = (leat_attr){
            .name = v->name, .kind = LEAT_ARG_SHAPES, .n = (int)l->n_shape, .shapes = s};
        return NULL;
    }
    if (l->n_func) {
        leat_func *f = leat_arena_array(a, leat_func, l->n_func);
        for (size_t i = 0; i < l->n_func; i++)
            LEAT_TRY(func_from(a, l->func[i], &f[i]));
        *v = (leat_attr){.name = v->name, .kind = LEAT_ARG_FUNCS, .n = (int)l->n_func, .funcs = f};
        return NULL;
    }
    return numbers_from(a, l, v);
}

leat_status leat_attr_from_proto(leat_arena *a, const char *name, const Leat__AttrValue *p,
                                 leat_attr *out)
{
    leat_attr v = {.name = leat_arena_strdup(a, name)};
    switch (p ? p->value_case : LEAT__ATTR_VALUE__VALUE__NOT_SET) {
    case LEAT__ATTR_VALUE__VALUE_LIST:
        LEAT_TRY(list_from(a, p->list, &v));
        break;
    case LEAT__ATTR_VALUE__VALUE_S:
        v.kind = LEAT_ARG_STRING;
        v.s = leat_arena_strndup(a, (const char *)p->s.data, p->s.len);
        v.n = (int)p->s.len;
        break;
    case LEAT__ATTR_VALUE__VALUE_I:
        v.kind = LEAT_ARG_INT;
        v.i = p->i;
        break;
    case LEAT__ATTR_VALUE__VALUE_F:
        v.kind = LEAT_ARG_FLOAT;
        v.f = p->f;
        break;
    case LEAT__ATTR_VALUE__VALUE_B:
        v.kind = LEAT_ARG_BOOL;
        v.i = p->b;
        break;
    case LEAT__ATTR_VALUE__VALUE_TYPE:
        v.kind = LEAT_ARG_TYPE;
        v.i = p->type;
        break;
    case LEAT__ATTR_VALUE__VALUE_SHAPE: {
        leat_shape *s = leat_arena_new(a, leat_shape);
        LEAT_TRY(leat_shape_from_proto(p->shape, s));
        v.kind = LEAT_ARG_SHAPE;
        v.shape = s;
        break;
    }
    case LEAT__ATTR_VALUE__VALUE_TENSOR:
        LEAT_TRY(leat_tensor_from_proto(p->tensor, &v.tensor));
        v.kind = LEAT_ARG_TENSOR;
        break;
    case LEAT__ATTR_VALUE__VALUE_PLACEHOLDER:
        v.kind = LEAT_ARG_PLACEHOLDER;
        v.s = leat_arena_strdup(a, p->placeholder);
        v.n = (int)strlen(v.s);
        break;
    case LEAT__ATTR_VALUE__VALUE_FUNC: {
        leat_func *f = leat_arena_new(a, leat_func);
        LEAT_TRY(func_from(a, p->func, f));
        v.kind = LEAT_ARG_FUNC;
        v.func = f;
        break;
    }
    default:
        return leat_error(INVALID_ARGUMENT, "AttrValue of attr '%s' had no value set", name);
    }
    *out = v;
    return NULL;
}

/* ---- To messages. Whatever is in a message was malloc'ed, as protobuf-c frees it. ---- */

static void bytes_to(ProtobufCBinaryData *b, const char *s, size_t n)
{
    b->len = n;
    b->data = leat_xmalloc(n ? n : 1);
    if (n)
        memcpy(b->data, s, n);
}

static leat_status func_to(const leat_func *f, Leat__NameAttrList **out)
{
    Leat__NameAttrList *p = leat_xmalloc(sizeof(*p));
    leat__name_attr_list__init(p);
    p->name = leat_xstrdup(f->name);
    p->attr = leat_new_array(Leat__NameAttrList__AttrEntry *, f->n_attrs + 1);
    leat_status s = NULL;
    for (int i = 0; i < f->n_attrs && !s; i++) {
        Leat__NameAttrList__AttrEntry *e = leat_xmalloc(sizeof(*e));
        leat__name_attr_list__attr_entry__init(e);
        e->key = leat_xstrdup(f->attrs[i].name);
        p->attr[p->n_attr++] = e;
        s = leat_attr_to_proto(&f->attrs[i], &e->value);
    }
    if (s)
        leat_proto_free(p);
    else
        *out = p;
    return s;
}

static leat_status list_to(const leat_attr *a, Leat__AttrValue__ListValue *l)
{
    size_t n = (size_t)a->n;
    switch (a->kind) {
    case LEAT_ARG_STRINGS:
        l->s = leat_new_array(ProtobufCBinaryData, n + 1);
        for (size_t i = 0; i < n; i++)
            bytes_to(&l->s[l->n_s++], a->strings[i], (size_t)a->sizes[i]);
        return NULL;
    case LEAT_ARG_INTS:
        l->i = leat_new_array(int64_t, n + 1);
        for (size_t i = 0; i < n; i++)
            l->i[l->n_i++] = a->ints[i];
        return NULL;
    case LEAT_ARG_BOOLS:
        l->b = leat_new_array(protobuf_c_boolean, n + 1);
        for (size_t i = 0; i < n; i++)
            l->b[l->n_b++] = a->ints[i] != 0;
        return NULL;
    case LEAT_ARG_FLOATS:
        l->f = leat_new_array(float, n + 1);
        for (size_t i = 0; i < n; i++)
            l->f[l->n_f++] = (float)a->floats[i];
        return NULL;
    case LEAT_ARG_TYPES:
        l->type = leat_new_array(Leat__DataType, n + 1);
        for (size_t i = 0; i < n; i++)
            l->type[l->n_type++] = (Leat__DataType)a->types[i];
        return NULL;
    case LEAT_ARG_SHAPES:
        l->shape = leat_new_array(Leat__TensorShapeProto *, n + 1);
        for (size_t i = 0; i < n; i++)
            l->shape[l->n_shape++] = leat_shape_to_proto(&a->shapes[i]);
        return NULL;
    case LEAT_ARG_TENSORS:
        l->tensor = leat_new_array(Leat__TensorProto *, n + 1);
        for (size_t i = 0; i < n; i++, l->n_tensor++)
            LEAT_TRY(leat_tensor_to_proto(a->tensors[i], LEAT_TENSOR_CONSTANT, &l->tensor[i]));
        return NULL;
    default:
        l->func = leat_new_array(Leat__NameAttrList *, n + 1);
        for (size_t i = 0; i < n; i++, l->n_func++)
            LEAT_TRY(func_to(&a->funcs[i], &l->func[i]));
        return NULL;
    }
}

static leat_status fill(const leat_attr *a, Leat__AttrValue *p)
{
    switch (a->kind) {
    case LEAT_ARG_INT:
        p->value_case = LEAT__ATTR_VALUE__VALUE_I;
        p->i = a->i;
        return NULL;
    case LEAT_ARG_BOOL:
        p->value_case = LEAT__ATTR_VALUE__VALUE_B;
        p->b = a->i != 0;
        return NULL;
    case LEAT_ARG_FLOAT:
        p->value_case = LEAT__ATTR_VALUE__VALUE_F;
        p->f = (float)a->f;
        return NULL;
    case LEAT_ARG_TYPE:
        p->value_case = LEAT__ATTR_VALUE__VALUE_TYPE;
        p->type = (Leat__DataType)a->i;
        return NULL;
    case LEAT_ARG_STRING:
        p->value_case = LEAT__ATTR_VALUE__VALUE_S;
        bytes_to(&p->s, a->s, (size_t)a->n);
        return NULL;
    case LEAT_ARG_PLACEHOLDER:
        p->value_case = LEAT__ATTR_VALUE__VALUE_PLACEHOLDER;
        p->placeholder = leat_xstrdup(a->s);
        return NULL;
    case LEAT_ARG_SHAPE:
        p->value_case = LEAT__ATTR_VALUE__VALUE_SHAPE;
        p->shape = leat_shape_to_proto(a->shape);
        return NULL;
    case LEAT_ARG_TENSOR:
        LEAT_TRY(leat_tensor_to_proto(a->tensor, LEAT_TENSOR_CONSTANT, &p->tensor));
        p->value_case = LEAT__ATTR_VALUE__VALUE_TENSOR;
        return NULL;
    case LEAT_ARG_FUNC:
        LEAT_TRY(func_to(a->func, &p->func));
        p->value_case = LEAT__ATTR_VALUE__VALUE_FUNC;
        return NULL;
    default:
        p->list = leat_xmalloc(sizeof(*p->list));
        leat__attr_value__list_value__init(p->list);
        p->value_case = LEAT__ATTR_VALUE__VALUE_LIST;
        return list_to(a, p->list);
    }
}

leat_status leat_attr_to_proto(const leat_attr *a, Leat__AttrValue **out)
{
    Leat__AttrValue *p = leat_xmalloc(sizeof(*p));
    leat__attr_value__init(p);
    leat_status s = fill(a, p);
    if (s)
        leat_proto_free(p);
    else
        *out = p;
    return s;
}
