/* variable_lock.c -- finding and locking the variables that a kernel writes to. */
#include "runtime/variable_lock.h"

#include <stdio.h>
#include <string.h>

leat_status leat_kernel_variable_of(leat_kernel *k, int i, leat_dtype t, leat_variable **out)
{
    leat_variable *v;
    LEAT_TRY(leat_kernel_variable(k, i, &v));
    LEAT_REQUIRE(v->dtype == t, INVALID_ARGUMENT,
                 "Trying to update variable %s with wrong dtype. Expected %s got %s", v->name,
                 leat_dtype_name(v->dtype), leat_dtype_name(t));
    *out = v;
    return NULL;
}

/* Sorts by address and removes duplicates; gives the number left. */
static int in_order(const leat_locked *l, leat_variable **sorted)
{
    int n = 0;
    for (int i = 0; i < l->n; i++) {
        int at = n;
        while (at > 0 && (uintptr_t)sorted[at - 1] > (uintptr_t)l->var[i])
            at--;
        if (at > 0 && sorted[at - 1] == l->var[i])
            continue;
        memmove(sorted + at + 1, sorted + at, sizeof(*sorted) * (size_t)(n - at));
        sorted[at] = l->var[i];
        n++;
    }
    return n;
}

/* The number of references to t that the kernel holds by its inputs from `first` on. */
static int own_references(const leat_kernel *k, const leat_tensor *t, int first)
{
    int n = 0;
    for (int i = first; i < k->n_in; i++)
        n += k->in[i].tensor == t;
    return n;
}

leat_status leat_kernel_lock(leat_kernel *k, int n, leat_dtype t, int seen, leat_locked *out)
{
    leat_locked l = {.n = n};
    for (int i = 0; i < n; i++)
        LEAT_TRY(leat_kernel_variable_of(k, i, t, &l.var[i]));
    leat_variable *sorted[4];
    int locks = in_order(&l, sorted);
    for (int i = 0; i < locks; i++)
        leat_variable_lock(sorted[i]);
    leat_status s = NULL;
    for (int i = 0; i < n && !s; i++)
        s = leat_variable_writable(l.var[i], own_references(k, l.var[i]->value, seen), &l.value[i]);
    *out = l;
    if (s)
        leat_kernel_unlock(&l);
    return s;
}

void leat_kernel_unlock(leat_locked *l)
{
    leat_variable *sorted[4];
    for (int i = in_order(l, sorted) - 1; i >= 0; i--)
        leat_variable_unlock(sorted[i]);
}

leat_text leat_index_show(const leat_shape *s, int64_t flat)
{
    leat_text text = {""};
    int64_t at[LEAT_MAX_RANK];
    for (int d = s->rank - 1; d >= 0; d--) {
        at[d] = s->dim[d] ? flat % s->dim[d] : 0;
        flat = s->dim[d] ? flat / s->dim[d] : 0;
    }
    size_t n = 0;
    for (int d = 0; d < s->rank && n < sizeof(text.s) - 24; d++)
        n += (size_t)snprintf(text.s + n, sizeof(text.s) - n, "%s%lld", d ? "," : "[",
                              (long long)at[d]);
    if (s->rank > 0)
        snprintf(text.s + n, sizeof(text.s) - n, "]");
    return text;
}

leat_status leat_update_check(const leat_shape *variable, const leat_shape *u, bool ref)
{
    if (leat_shape_equal(variable, u))
        return NULL;
    if (ref)
        return leat_error(INVALID_ARGUMENT, "Parameters and update must be the same size");
    return leat_error(INVALID_ARGUMENT,
                      "Cannot update variable with shape %s using a Tensor with shape %s, "
                      "shapes must be equal.",
                      leat_shape_show(variable).s, leat_shape_show(u).s);
}
