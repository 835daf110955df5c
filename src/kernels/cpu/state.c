/* state.c -- temporary variables, and updates of variables behind references. */
#include <pthread.h>
#include <stdatomic.h>

#include "core/alloc.h"
#include "core/element.h"
#include "kernels/any/variable.h"
#include "kernels/cpu/update.h"

/* ---- Temporary variables: they live as long as references to them, within one step, in which
 * their names are unique ---- */

static struct {
    pthread_mutex_t lock; /* guards the other fields */
    struct {
        const leat_step *step;
        leat_variable *var; /* not counted: the entry is removed when the variable is freed */
    } * v;
    int n, cap;
} temporaries = {PTHREAD_MUTEX_INITIALIZER};

static bool forget_temporary(const leat_variable *v)
{
    bool found = false;
    pthread_mutex_lock(&temporaries.lock);
    for (int i = 0; i < temporaries.n && !found; i++) {
        found = temporaries.v[i].var == v;
        if (found)
            temporaries.v[i] = temporaries.v[--temporaries.n];
    }
    pthread_mutex_unlock(&temporaries.lock);
    return found;
}

static void temporary_free(void *resource)
{
    forget_temporary(resource);
    leat_variable_free(resource);
}
static const leat_resource_type temporary_type = {"TmpVar", temporary_free};

static bool add_temporary(const leat_step *step, leat_variable *v)
{
    bool taken = false;
    pthread_mutex_lock(&temporaries.lock);
    for (int i = 0; i < temporaries.n; i++)
        taken |= temporaries.v[i].step == step && strcmp(temporaries.v[i].var->name, v->name) == 0;
    if (!taken) {
        leat_grow(temporaries.v, temporaries.n, temporaries.cap);
        temporaries.v[temporaries.n].step = step;
        temporaries.v[temporaries.n++].var = v;
    }
    pthread_mutex_unlock(&temporaries.lock);
    return !taken;
}

static leat_status temporary_run(leat_kernel *k)
{
    const leat_node *n = leat_kernel_node(k);
    const char *name = leat_node_string(n, "var_name");
    leat_shape s = leat_node_shape(n, "shape");
    leat_tensor *value;
    LEAT_TRY(leat_tensor_new(leat_node_type(n, "dtype"), s, &value));
    leat_variable *v = leat_variable_new(&temporary_type, *name ? name : leat_node_name(n),
                                         leat_node_type(n, "dtype"), &s);
    v->value = value;
    leat_status status = NULL;
    if (add_temporary(k->step, v))
        leat_kernel_set_ref(k, 0, v);
    else
        status =
            leat_error(ALREADY_EXISTS, "Resource %s/TmpVar already exists in this step", v->name);
    leat_resource_unref(&v->base);
    return status;
}

static leat_status destroy_temporary_run(leat_kernel *k)
{
    leat_variable *v;
    leat_tensor *value;
    LEAT_TRY(leat_kernel_variable(k, 0, &v));
    LEAT_TRY(leat_variable_read(v, &value));
    leat_kernel_set(k, 0, value);
    const char *name = leat_node_string(leat_kernel_node(k), "var_name");
    LEAT_REQUIRE(strcmp(name, v->name) == 0 && forget_temporary(v), NOT_FOUND,
                 "Resource %s/TmpVar does not exist.", name);
    return NULL;
}

/* ---- Updates ---- */

typedef struct update_args {
    char *p;
    const char *u;
    size_t size;
    leat_update_fn fn;
} update_args;

static void update_part(void *arg, int64_t begin, int64_t end)
{
    update_args *a = arg;
    size_t at = (size_t)begin * a->size;
    a->fn(a->p + at, a->u + at, end - begin, 1);
}

static leat_status dense_update(leat_kernel *k, leat_update_op op, bool ref)
{
    const leat_tensor *u = leat_kernel_in(k, 1);
    leat_locked l;
    LEAT_TRY(leat_kernel_lock(k, 1, u->dtype, k->n_in, &l));
    leat_tensor *p = l.value[0];
    leat_status s = leat_update_check(&p->shape, &u->shape, ref);
    if (!s) {
        update_args a = {p->data, u->data, leat_element_size(u->dtype),
                         leat_update_of(u->dtype, op)};
        leat_kernel_for(k, u->count, 0.1 * (double)a.size, update_part, &a);
    }
    leat_kernel_unlock(&l);
    if (!s && ref)
        leat_kernel_forward(k, 0, 0);
    return s;
}

static leat_status assign_add(leat_kernel *k)
{
    return dense_update(k, LEAT_UPDATE_ADD, true);
}

static leat_status assign_sub(leat_kernel *k)
{
    return dense_update(k, LEAT_UPDATE_SUB, true);
}

static leat_status resource_add(leat_kernel *k)
{
    return dense_update(k, LEAT_UPDATE_ADD, false);
}

static leat_status resource_sub(leat_kernel *k)
{
    return dense_update(k, LEAT_UPDATE_SUB, false);
}

/* Outputs the count and increments it, up to a limit. */
static leat_status count_up_to(leat_kernel *k)
{
    const leat_node *n = leat_kernel_node(k);
    int64_t limit = leat_node_int(n, "limit");
    leat_tensor *y;
    leat_shape scalar = {0};
    LEAT_TRY(leat_kernel_out(k, 0, &scalar, &y));
    leat_locked l;
    LEAT_TRY(leat_kernel_lock(k, 1, leat_node_type(n, "T"), k->n_in, &l));
    leat_tensor *p = l.value[0];
    leat_status s = NULL;
    if (p->shape.rank != 0) {
        s = leat_error(INVALID_ARGUMENT, "input is not a scalar: %s", leat_shape_show(&p->shape).s);
    } else if (leat_index_at(p, 0) >= limit) {
        s = leat_error(OUT_OF_RANGE, "Reached limit of %lld", (long long)limit);
    } else {
        memcpy(y->data, p->data, leat_element_size(p->dtype));
        leat_update_of(p->dtype, LEAT_UPDATE_ADD)(
            p->data, p->dtype == LEAT_INT32 ? (void *)&(int32_t){1} : (void *)&(int64_t){1}, 1, 1);
    }
    leat_kernel_unlock(&l);
    return s;
}

#define NUMBERS (LEAT_TYPES_REAL | LEAT_TYPES_COMPLEX)

const leat_kernel_def leat_cpu_state[] = {
    LEAT_VARIABLE_KERNEL("VariableV2", LEAT_TYPES_ANY),
    LEAT_VARIABLE_KERNEL("Variable", LEAT_TYPES_ANY),
    {.op = "TemporaryVariable", .run = temporary_run},
    {.op = "DestroyTemporaryVariable", .run = destroy_temporary_run},
    {.op = "IsVariableInitialized", .run = leat_is_initialized_run},
    {.op = "Assign", .run = leat_assign_run},
    {.op = "AssignAdd",
     .where = {{"T", NUMBERS}},
     .run = assign_add,
     .rule = &leat_rule_assign_add},
    {.op = "AssignSub",
     .where = {{"T", NUMBERS}},
     .run = assign_sub,
     .rule = &leat_rule_assign_sub},
    {.op = "AssignAddVariableOp",
     .where = {{"dtype", NUMBERS}},
     .run = resource_add,
     .rule = &leat_rule_assign_add},
    {.op = "AssignSubVariableOp",
     .where = {{"dtype", NUMBERS}},
     .run = resource_sub,
     .rule = &leat_rule_assign_sub},
    {.op = "CountUpTo", .where = {{"T", LEAT_TYPES_INDEX}}, .run = count_up_to},
    {.op = "ResourceCountUpTo", .where = {{"T", LEAT_TYPES_INDEX}}, .run = count_up_to},
    {0},
};
