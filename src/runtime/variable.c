/* variable.c -- variables' values: shared by readers, copied by a writer when somebody reads. */
#include "runtime/variable.h"

#include <stdlib.h>

#include "core/alloc.h"

void leat_variable_free(void *resource)
{
    leat_variable *v = resource;
    leat_tensor_unref(v->value);
    pthread_mutex_destroy(&v->lock);
    free(v->name);
    free(v);
}

const leat_resource_type leat_variable_type = {"Var", leat_variable_free};
const leat_resource_type leat_ref_type = {"LegacyVar", leat_variable_free};

leat_variable *leat_variable_new(const leat_resource_type *type, const char *name, leat_dtype t,
                                 const leat_shape *shape)
{
    leat_variable *v = leat_new(leat_variable);
    leat_resource_init(&v->base, type);
    pthread_mutex_init(&v->lock, NULL);
    v->dtype = t;
    v->shape = *shape;
    v->name = leat_xstrdup(name);
    return v;
}

static leat_status uninitialized(const leat_variable *v)
{
    if (v->base.type == &leat_variable_type)
        return leat_error(FAILED_PRECONDITION,
                          "Error while reading resource variable %s: this could mean that the "
                          "variable was uninitialized.",
                          v->name);
    return leat_error(FAILED_PRECONDITION, "Attempting to use uninitialized value %s", v->name);
}

leat_status leat_variable_read(leat_variable *v, leat_tensor **out)
{
    leat_variable_lock(v);
    leat_tensor *t = leat_tensor_ref(v->value);
    leat_variable_unlock(v);
    if (!t)
        return uninitialized(v);
    *out = t;
    return NULL;
}

leat_status leat_variable_writable(leat_variable *v, int own, leat_tensor **out)
{
    if (!v->value)
        return uninitialized(v);
    if (!leat_tensor_held_by(v->value, 1 + own)) {
        leat_buffer *b = v->value->buffer;
        leat_tensor *copy;
        LEAT_TRY(leat_tensor_clone(b ? b->allocator : NULL, v->value, &copy));
        leat_tensor_unref(v->value);
        v->value = copy;
    }
    *out = v->value;
    return NULL;
}

void leat_variable_set(leat_variable *v, leat_tensor *t)
{
    leat_tensor *old = v->value;
    v->value = leat_tensor_ref(t);
    leat_tensor_unref(old);
}
