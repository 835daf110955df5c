/* resource_variable.c -- VarHandleOp, and reading and assigning behind a handle. A variable is made
 * by its first assignment. */
#include <stdatomic.h>
#include <stdlib.h>

#include "kernels/cpu/cpu.h"

typedef struct handle_state {
    _Atomic(leat_tensor *) handle; /* made on the first run */
} handle_state;

static void handle_release(void *state)
{
    leat_tensor_unref(atomic_load(&((handle_state *)state)->handle));
}

static leat_status handle_make(leat_kernel *k, leat_tensor **out)
{
    const leat_node *n = leat_kernel_node(k);
    const char *container = leat_node_string(n, "container");
    const char *name = leat_node_string(n, "shared_name");
    leat_tensor *t;
    LEAT_TRY(leat_tensor_new(LEAT_RESOURCE, leat_shape(), &t));
    leat_handle *h =
        leat_handle_new(leat_kernel_device(k)->name, *container ? container : "localhost",
                        *name ? name : leat_node_name(n), leat_variable_type.name, 0);
    h->dtypes = malloc(sizeof(*h->dtypes));
    h->shapes = malloc(sizeof(*h->shapes));
    if (h->dtypes && h->shapes) {
        h->dtypes[0] = leat_node_type(n, "dtype");
        h->shapes[0] = leat_node_shape(n, "shape");
        h->n_dtypes = 1;
    }
    AT(leat_handle *, t)[0] = h;
    *out = t;
    return NULL;
}

static leat_status handle_run(leat_kernel *k)
{
    handle_state *state = leat_kernel_state(k);
    leat_tensor *t = atomic_load_explicit(&state->handle, memory_order_acquire), *none = NULL;
    if (!t) {
        LEAT_TRY(handle_make(k, &t));
        if (!atomic_compare_exchange_strong(&state->handle, &none, t)) {
            leat_tensor_unref(t); /* another step has made it meanwhile */
            t = none;
        }
    }
    leat_kernel_set(k, 0, leat_tensor_ref(t));
    return NULL;
}

static leat_status read_run(leat_kernel *k)
{
    const leat_handle *h;
    leat_variable *v;
    leat_tensor *t;
    LEAT_TRY(leat_kernel_handle(k, 0, &h));
    leat_status s = leat_kernel_variable(k, 0, &v);
    if (!s)
        s = leat_variable_read(v, &t);
    if (s) {
        leat_status why = leat_error(FAILED_PRECONDITION,
                                     "Error while reading resource variable %s from Container: "
                                     "%s. This could mean that the variable was uninitialized. "
                                     "%s%s",
                                     h->name, h->container,
                                     leat_status_code(s) == LEAT_NOT_FOUND ? "Not found: " : "",
                                     leat_status_message(s));
        leat_status_free(s);
        return why;
    }
    leat_dtype want = leat_kernel_out_dtype(k, 0);
    if (t->dtype != want) {
        s = leat_error(INVALID_ARGUMENT,
                       "Trying to read variable with wrong dtype. Expected %s got %s",
                       leat_dtype_name(want), leat_dtype_name(t->dtype));
        leat_tensor_unref(t);
        return s;
    }
    leat_kernel_set(k, 0, t);
    return NULL;
}

typedef struct make_args {
    const leat_handle *handle;
    const leat_tensor *value;
} make_args;

static leat_status variable_make(void *arg, leat_resource **out)
{
    make_args *m = arg;
    leat_shape any = leat_shape_unknown();
    leat_variable *v = leat_variable_new(&leat_variable_type, m->handle->name, m->value->dtype,
                                         m->handle->n_dtypes == 1 ? &m->handle->shapes[0] : &any);
    v->value = leat_tensor_ref(m->value);
    *out = &v->base;
    return NULL;
}

/* The value is shared, not copied: the next writer copies it if it has other owners then. */
static leat_status assign_run(leat_kernel *k)
{
    const leat_handle *h;
    LEAT_TRY(leat_kernel_handle(k, 0, &h));
    make_args m = {h, leat_kernel_in(k, 1)};
    leat_resource *r;
    LEAT_TRY(leat_resources_find_or_make(leat_kernel_resources(k), h->container, h->name,
                                         &leat_variable_type, variable_make, &m, &r));
    leat_variable *v = (leat_variable *)r;
    leat_status s = NULL;
    leat_variable_lock(v);
    if (v->dtype == m.value->dtype)
        leat_variable_set(v, (leat_tensor *)m.value);
    else
        s = leat_error(INVALID_ARGUMENT,
                       "Trying to assign variable with wrong dtype. Expected %s got %s",
                       leat_dtype_name(v->dtype), leat_dtype_name(m.value->dtype));
    leat_variable_unlock(v);
    leat_resource_unref(r);
    return s;
}

static leat_status is_initialized(leat_kernel *k)
{
    const leat_handle *h;
    leat_resource *r;
    leat_tensor *y;
    leat_shape scalar = {0};
    LEAT_TRY(leat_kernel_handle(k, 0, &h));
    LEAT_TRY(leat_kernel_out(k, 0, &scalar, &y));
    AT(bool, y)[0] = false;
    leat_status s = leat_resources_find(leat_kernel_resources(k), h->container, h->name,
                                        &leat_variable_type, &r);
    if (s) {
        leat_status_free(s);
        return NULL;
    }
    leat_variable *v = (leat_variable *)r;
    leat_variable_lock(v);
    AT(bool, y)[0] = v->value != NULL;
    leat_variable_unlock(v);
    leat_resource_unref(r);
    return NULL;
}

static leat_status shape_run(leat_kernel *k)
{
    leat_variable *v;
    leat_tensor *value, *y;
    LEAT_TRY(leat_kernel_variable(k, 0, &v));
    LEAT_TRY(leat_variable_read(v, &value));
    leat_shape s = value->shape, vector = {.rank = 1, .dim = {value->shape.rank}};
    leat_tensor_unref(value);
    LEAT_TRY(leat_kernel_out(k, 0, &vector, &y));
    for (int i = 0; i < s.rank; i++) {
        if (y->dtype == LEAT_INT64)
            AT(int64_t, y)[i] = s.dim[i];
        else
            AT(int32_t, y)[i] = (int32_t)s.dim[i];
    }
    return NULL;
}

static leat_status destroy_run(leat_kernel *k)
{
    const leat_handle *h;
    LEAT_TRY(leat_kernel_handle(k, 0, &h));
    leat_resource_type any = {.name = h->type_name}; /* not only variables */
    leat_resources *own = leat_kernel_device(k)->own; /* what belongs to the session */
    leat_status s = own ? leat_resources_remove(own, h->container, h->name, &any) : NULL;
    if (own && leat_status_code(s) != LEAT_NOT_FOUND)
        return s;
    leat_status_free(s);
    s = leat_resources_remove(leat_kernel_resources(k), h->container, h->name, &any);
    if (leat_status_code(s) == LEAT_NOT_FOUND &&
        leat_node_bool(leat_kernel_node(k), "ignore_lookup_error")) {
        leat_status_free(s);
        return NULL;
    }
    return s;
}

const leat_kernel_def leat_any_resource_variable[] = {
    {.op = "VarHandleOp",
     .run = handle_run,
     .state_size = sizeof(handle_state),
     .release = handle_release},
    {.op = "ReadVariableOp", .run = read_run},
    {.op = "AssignVariableOp", .run = assign_run},
    {.op = "VarIsInitializedOp", .run = is_initialized, .host = "is_initialized"},
    {.op = "VariableShape", .run = shape_run, .host = "output"},
    {.op = "DestroyResourceOp", .run = destroy_run},
    {0},
};
