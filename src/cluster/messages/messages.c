/* messages.c -- lists of names and of tensors, which the codecs share. */
#include "cluster/messages/messages.h"

#include <stdlib.h>

#include "core/alloc.h"

leat_status leat_names_add(leat_names *names, const leat_wire_field *f)
{
    leat_grow(names->v, names->n, names->cap);
    LEAT_TRY(leat_get_text(f, &names->v[names->n]));
    names->n++;
    return NULL;
}

leat_status leat_named_tensors_add(leat_named_tensors *t, const leat_wire_field *f)
{
    int cap = t->cap;
    leat_grow(t->name, t->n, t->cap);
    leat_grow(t->tensor, t->n, cap);
    LEAT_TRY(leat_get_named(f, &t->name[t->n], &t->tensor[t->n]));
    t->n++;
    return NULL;
}

void leat_names_release(leat_names *names)
{
    for (int i = 0; i < names->n; i++)
        free(names->v[i]);
    free(names->v);
    *names = (leat_names){0};
}

void leat_named_tensors_release(leat_named_tensors *t)
{
    for (int i = 0; i < t->n; i++) {
        free(t->name[i]);
        leat_tensor_unref(t->tensor[i]);
    }
    free(t->name);
    free(t->tensor);
    *t = (leat_named_tensors){0};
}
