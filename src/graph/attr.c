/* attr.c -- attributes as values: copying, comparing, releasing. */
#include <string.h>

#include "core/buffer.h"
#include "graph/graph_int.h"

static leat_func func_copy(leat_arena *a, const leat_func *f)
{
    leat_func c = {leat_arena_strdup(a, f->name), leat_arena_array(a, leat_attr, f->n_attrs),
                   f->n_attrs};
    for (int i = 0; i < f->n_attrs; i++)
        c.attrs[i] = leat_attr_copy(a, &f->attrs[i]);
    return c;
}

/* All but the name. */
static leat_attr value_copy(leat_arena *a, const leat_attr *v)
{
    leat_attr c = *v;
    size_t n = v->n > 0 ? (size_t)v->n : 0;
    switch (v->kind) {
    case LEAT_ARG_STRING:
    case LEAT_ARG_PLACEHOLDER:
        c.s = leat_arena_strndup(a, v->s ? v->s : "", n);
        break;
    case LEAT_ARG_SHAPE:
        c.shape = leat_arena_memdup(a, v->shape, sizeof(*v->shape));
        break;
    case LEAT_ARG_TENSOR:
        c.tensor = leat_tensor_ref(v->tensor);
        break;
    case LEAT_ARG_FUNC: {
        leat_func *f = leat_arena_new(a, leat_func);
        *f = func_copy(a, v->func);
        c.func = f;
        break;
    }
    case LEAT_ARG_INTS:
    case LEAT_ARG_BOOLS:
        c.ints = leat_arena_memdup(a, v->ints, n * sizeof(*v->ints));
        break;
    case LEAT_ARG_FLOATS:
        c.floats = leat_arena_memdup(a, v->floats, n * sizeof(*v->floats));
        break;
    case LEAT_ARG_TYPES:
        c.types = leat_arena_memdup(a, v->types, n * sizeof(*v->types));
        break;
    case LEAT_ARG_SHAPES:
        c.shapes = leat_arena_memdup(a, v->shapes, n * sizeof(*v->shapes));
        break;
    case LEAT_ARG_STRINGS: {
        const char **s = leat_arena_array(a, const char *, n);
        int *sizes = leat_arena_array(a, int, n);
        for (size_t i = 0; i < n; i++) {
            sizes[i] = v->sizes ? v->sizes[i] : (int)strlen(v->strings[i]);
            s[i] = leat_arena_strndup(a, v->strings[i], (size_t)sizes[i]);
        }
        c.strings = s;
        c.sizes = sizes;
        break;
    }
    case LEAT_ARG_TENSORS:
        c.tensors = leat_arena_memdup(a, v->tensors, n * sizeof(*v->tensors));
        for (size_t i = 0; i < n; i++)
            leat_tensor_ref(c.tensors[i]);
        break;
    case LEAT_ARG_FUNCS: {
        leat_func *f = leat_arena_array(a, leat_func, n);
        for (size_t i = 0; i < n; i++)
            f[i] = func_copy(a, &v->funcs[i]);
        c.funcs = f;
        break;
    }
    default:
        break;
    }
    return c;
}

leat_attr leat_attr_copy(leat_arena *a, const leat_attr *v)
{
    leat_attr c = value_copy(a, v);
    c.name = leat_arena_strdup(a, v->name);
    return c;
}

leat_attr leat_attr_copy_of(leat_arena *a, const leat_op_info *op, int i, const leat_attr *v)
{
    leat_attr c = value_copy(a, v);
    const bool declared = i < op->n_attrs && strcmp(op->attrs[i].name, v->name) == 0;
    c.name = declared ? op->attrs[i].name : leat_arena_strdup(a, v->name);
    return c;
}

static void func_release(const leat_func *f)
{
    for (int i = 0; i < f->n_attrs; i++)
        leat_attr_release(&f->attrs[i]);
}

void leat_attr_release(leat_attr *a)
{
    if (a->kind == LEAT_ARG_TENSOR) {
        leat_tensor_unref(a->tensor);
    } else if (a->kind == LEAT_ARG_TENSORS) {
        for (int i = 0; i < a->n; i++)
            leat_tensor_unref(a->tensors[i]);
    } else if (a->kind == LEAT_ARG_FUNC && a->func) {
        func_release(a->func);
    } else if (a->kind == LEAT_ARG_FUNCS) {
        for (int i = 0; i < a->n; i++)
            func_release(&a->funcs[i]);
    }
    a->kind = LEAT_ARG_END;
}

static bool tensor_equal(const leat_tensor *a, const leat_tensor *b)
{
    if (a == b)
        return true;
    if (!a || !b || a->dtype != b->dtype || !leat_shape_equal(&a->shape, &b->shape))
        return false;
    if (a->dtype == LEAT_RESOURCE || a->dtype == LEAT_VARIANT)
        return false;
    if (a->dtype != LEAT_STRING)
        return a->count == 0 || memcmp(a->data, b->data, leat_tensor_bytes(a)) == 0;
    const leat_string *x = a->data, *y = b->data;
    for (int64_t i = 0; i < a->count; i++)
        if (x[i].size != y[i].size || (x[i].size && memcmp(x[i].data, y[i].data, x[i].size) != 0))
            return false;
    return true;
}

static bool func_equal(const leat_func *a, const leat_func *b)
{
    if (strcmp(a->name, b->name) != 0 || a->n_attrs != b->n_attrs)
        return false;
    for (int i = 0; i < a->n_attrs; i++)
        if (strcmp(a->attrs[i].name, b->attrs[i].name) != 0 ||
            !leat_attr_equal(&a->attrs[i], &b->attrs[i]))
            return false;
    return true;
}

bool leat_attr_equal(const leat_attr *a, const leat_attr *b)
{
    if (a->kind != b->kind || a->n != b->n)
        return false;
    size_t n = a->n > 0 ? (size_t)a->n : 0;
    switch (a->kind) {
    case LEAT_ARG_INT:
    case LEAT_ARG_BOOL:
    case LEAT_ARG_TYPE:
        return a->i == b->i;
    case LEAT_ARG_FLOAT:
        return memcmp(&a->f, &b->f, sizeof(a->f)) == 0;
    case LEAT_ARG_STRING:
    case LEAT_ARG_PLACEHOLDER:
        return memcmp(a->s, b->s, n) == 0;
    case LEAT_ARG_SHAPE:
        return leat_shape_equal(a->shape, b->shape);
    case LEAT_ARG_TENSOR:
        return tensor_equal(a->tensor, b->tensor);
    case LEAT_ARG_FUNC:
        return func_equal(a->func, b->func);
    case LEAT_ARG_INTS:
    case LEAT_ARG_BOOLS:
        return n == 0 || memcmp(a->ints, b->ints, n * sizeof(*a->ints)) == 0;
    case LEAT_ARG_FLOATS:
        return n == 0 || memcmp(a->floats, b->floats, n * sizeof(*a->floats)) == 0;
    case LEAT_ARG_TYPES:
        return n == 0 || memcmp(a->types, b->types, n * sizeof(*a->types)) == 0;
    default:
        break;
    }
    for (size_t i = 0; i < n; i++) {
        if (a->kind == LEAT_ARG_SHAPES && !leat_shape_equal(&a->shapes[i], &b->shapes[i]))
            return false;
        if (a->kind == LEAT_ARG_STRINGS &&
            (a->sizes[i] != b->sizes[i] ||
             memcmp(a->strings[i], b->strings[i], (size_t)a->sizes[i]) != 0))
            return false;
        if (a->kind == LEAT_ARG_TENSORS && !tensor_equal(a->tensors[i], b->tensors[i]))
            return false;
        if (a->kind == LEAT_ARG_FUNCS && !func_equal(&a->funcs[i], &b->funcs[i]))
            return false;
    }
    return true;
}

void leat_node_set_attr(leat_node *n, const leat_attr *a)
{
    leat_attr *old = leat_node_attr(n, a->name);
    leat_attr copy = leat_attr_copy(&n->graph->arena, a);
    if (old) {
        leat_attr_release(old);
        *old = copy;
        return;
    }
    leat_attr *attrs = leat_arena_array(&n->graph->arena, leat_attr, n->n_attrs + 1);
    if (n->n_attrs)
        memcpy(attrs, n->attrs, sizeof(*attrs) * (size_t)n->n_attrs);
    attrs[n->n_attrs++] = copy;
    n->attrs = attrs;
}
