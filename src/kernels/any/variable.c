/* variable.c -- VariableV2, Assign and IsVariableInitialized, for devices of all kinds. They are
 * not in this folder's list: a kind says for which dtypes it has variables. */
#include "kernels/any/variable.h"

#include <stdatomic.h>

#include "core/element.h"
#include "kernels/cpu/cpu.h"
#include "runtime/variable_lock.h"

/* ---- Variable, VariableV2: found on the first run, kept for the later ones ---- */

typedef struct variable_state {
    _Atomic(leat_variable *) var;
} variable_state;
_Static_assert(sizeof(variable_state) == LEAT_VARIABLE_STATE, "kernels' state holds a variable");

void leat_variable_kernel_release(void *state)
{
    leat_variable *v = atomic_load(&((variable_state *)state)->var);
    if (v)
        leat_resource_unref(&v->base);
}

static const char *variable_name(const leat_node *n)
{
    const char *shared = leat_node_string(n, "shared_name");
    return *shared ? shared : leat_node_name(n);
}

static leat_status variable_make(void *arg, leat_resource **out)
{
    const leat_node *n = arg;
    leat_shape s = leat_node_shape(n, "shape");
    *out =
        &leat_variable_new(&leat_ref_type, variable_name(n), leat_node_type(n, "dtype"), &s)->base;
    return NULL;
}

static leat_status variable_find(leat_kernel *k, variable_state *state, leat_variable **out)
{
    const leat_node *n = leat_kernel_node(k);
    leat_resource *r;
    LEAT_TRY(leat_resources_find_or_make(leat_kernel_resources(k), leat_node_string(n, "container"),
                                         variable_name(n), &leat_ref_type, variable_make, (void *)n,
                                         &r));
    leat_variable *v = (leat_variable *)r, *none = NULL;
    if (v->dtype != leat_node_type(n, "dtype")) {
        leat_status s =
            leat_error(INVALID_ARGUMENT, "Variable %s is of type %s, not %s", v->name,
                       leat_dtype_name(v->dtype), leat_dtype_name(leat_node_type(n, "dtype")));
        leat_resource_unref(r);
        return s;
    }
    if (!atomic_compare_exchange_strong(&state->var, &none, v)) {
        leat_resource_unref(r); /* another step has made it meanwhile */
        v = none;
    }
    *out = v;
    return NULL;
}

leat_status leat_variable_kernel_run(leat_kernel *k)
{
    variable_state *state = leat_kernel_state(k);
    leat_variable *v = atomic_load_explicit(&state->var, memory_order_acquire);
    if (!v)
        LEAT_TRY(variable_find(k, state, &v));
    leat_kernel_set_ref(k, 0, v);
    return NULL;
}

/* ---- Assignments ---- */

leat_status leat_is_initialized_run(leat_kernel *k)
{
    leat_variable *v;
    leat_tensor *y;
    leat_shape scalar = {0};
    LEAT_TRY(leat_kernel_variable(k, 0, &v));
    LEAT_TRY(leat_kernel_out(k, 0, &scalar, &y));
    leat_variable_lock(v);
    AT(bool, y)[0] = v->value != NULL;
    leat_variable_unlock(v);
    return NULL;
}

typedef struct copy_args {
    char *dst;
    const char *src;
} copy_args;

static void copy_part(void *arg, int64_t begin, int64_t end)
{
    copy_args *c = arg;
    memcpy(c->dst + begin, c->src + begin, (size_t)(end - begin));
}

/* The lock of v is held. The value is shared: its other owners keep it, since the next writer will
 * copy it. It is copied now only if v already has memory for it. */
static leat_status assign(leat_kernel *k, leat_variable *v, leat_tensor *value, bool validate)
{
    const leat_shape *old = v->value ? &v->value->shape : &v->shape;
    bool same = leat_shape_equal(old, &value->shape);
    LEAT_REQUIRE(!validate || same || (!v->value && leat_shape_compatible(old, &value->shape)),
                 INVALID_ARGUMENT,
                 "Assign requires shapes of both tensors to match. lhs shape= %s rhs shape= %s",
                 leat_shape_show(old).s, leat_shape_show(&value->shape).s);
    if (leat_tensor_sole(value) || !v->value || !same || !leat_tensor_sole(v->value) ||
        leat_is_managed(v->dtype)) {
        leat_variable_set(v, value);
        return NULL;
    }
    const int64_t bytes = value->count * (int64_t)leat_element_size(v->dtype);
    leat_allocator *memory = leat_tensor_memory(value);
    if (memory)
        return memory->copy(memory, v->value->data, value->data, (size_t)bytes);
    copy_args c = {v->value->data, value->data};
    leat_kernel_for(k, bytes, 0.1, copy_part, &c);
    return NULL;
}

leat_status leat_assign_run(leat_kernel *k)
{
    leat_variable *v;
    leat_tensor *value = (leat_tensor *)leat_kernel_in(k, 1);
    LEAT_TRY(leat_kernel_variable_of(k, 0, value->dtype, &v));
    leat_variable_lock(v);
    leat_status s = assign(k, v, value, leat_node_bool(leat_kernel_node(k), "validate_shape"));
    leat_variable_unlock(v);
    if (!s)
        leat_kernel_forward(k, 0, 0);
    return s;
}
