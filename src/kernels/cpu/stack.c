/* stack.c -- StackV2, StackPushV2, StackPopV2, StackCloseV2. The handle itself owns the stack, so a
 * stack is freed with the last tensor of its step that holds the handle. */
#include <pthread.h>
#include <stdlib.h>

#include "core/alloc.h"
#include "core/strbuf.h"
#include "kernels/cpu/cpu.h"

typedef struct stack {
    leat_resource base;
    pthread_mutex_t lock; /* guards the following fields; no other lock is taken under it */
    leat_tensor **items;  /* owned */
    int64_t n, cap, max;
    bool closed;
    leat_dtype dtype; /* dtype and name never change and need no lock */
    char *name;
} stack;

static void clear(stack *s)
{
    for (int64_t i = 0; i < s->n; i++)
        leat_tensor_unref(s->items[i]);
    free(s->items);
    s->items = NULL;
    s->n = s->cap = 0;
}

static void stack_free(void *resource)
{
    stack *s = resource;
    clear(s);
    pthread_mutex_destroy(&s->lock);
    free(s->name);
    free(s);
}

static const leat_resource_type stack_type = {.name = "N10tensorflow5StackE", .free = stack_free};

static void release(void *object)
{
    leat_resource_unref(object);
}

static leat_status stack_new(leat_kernel *k)
{
    static atomic_llong made;
    const leat_node *n = leat_kernel_node(k);
    const leat_tensor *max = leat_kernel_in(k, 0);
    LEAT_REQUIRE(max->shape.rank == 0, INVALID_ARGUMENT,
                 "Stack size must be a scalar, but had shape: %s", leat_shape_show(&max->shape).s);
    leat_shape scalar = {0};
    leat_tensor *y;
    LEAT_TRY(leat_kernel_out(k, 0, &scalar, &y));

    const char *name = leat_node_string(n, "stack_name");
    leat_strbuf unique = {0};
    leat_strbuf_printf(&unique, "%s_%lld", *name ? name : leat_node_name(n),
                       (long long)atomic_fetch_add(&made, 1));
    stack *s = leat_new(stack);
    leat_resource_init(&s->base, &stack_type);
    pthread_mutex_init(&s->lock, NULL);
    s->dtype = leat_node_type(n, "elem_type");
    s->max = AT(int32_t, max)[0] >= 0 ? AT(int32_t, max)[0] : INT32_MAX;
    s->name = leat_strbuf_take(&unique);

    leat_handle *h =
        leat_handle_new(leat_kernel_device(k)->name, "_stacks", s->name, stack_type.name, 0);
    h->object = s;
    h->object_unref = release;
    leat_handle_unref(AT(leat_handle *, y)[0]);
    AT(leat_handle *, y)[0] = h;
    return NULL;
}

/* The stack behind input 0; borrowed. */
static leat_status stack_of(leat_kernel *k, stack **out)
{
    const leat_tensor *t = leat_kernel_in(k, 0);
    LEAT_REQUIRE(t->count == 1, INVALID_ARGUMENT,
                 "Stack handle must have one element, but had shape: %s",
                 leat_shape_show(&t->shape).s);
    leat_handle *h = AT(leat_handle *, t)[0];
    stack *s = h ? h->object : NULL;
    LEAT_REQUIRE(s && s->base.type == &stack_type, NOT_FOUND, "Resource %s/%s/%s does not exist.",
                 h ? h->container : "", h ? h->name : "", stack_type.name);
    *out = s;
    return NULL;
}

static leat_status push_locked(stack *s, const leat_tensor *x)
{
    LEAT_REQUIRE(!s->closed, INVALID_ARGUMENT, "Stack[%s] has already been closed.", s->name);
    LEAT_REQUIRE(s->n < s->max, INVALID_ARGUMENT, "Stack[%s] overflowed its max_size (%lld)",
                 s->name, (long long)s->max);
    leat_grow(s->items, s->n, s->cap);
    s->items[s->n++] = leat_tensor_ref(x);
    return NULL;
}

static leat_status push(leat_kernel *k)
{
    const leat_tensor *x = leat_kernel_in(k, 1);
    stack *s;
    LEAT_TRY(stack_of(k, &s));
    LEAT_REQUIRE(x->dtype == s->dtype, INVALID_ARGUMENT, "Must have type %s but got %s",
                 leat_dtype_name(s->dtype), leat_dtype_name(x->dtype));
    pthread_mutex_lock(&s->lock);
    leat_status status = push_locked(s, x);
    pthread_mutex_unlock(&s->lock);
    LEAT_TRY(status);
    leat_kernel_forward(k, 0, 1);
    return NULL;
}

static leat_status pop_locked(stack *s, leat_dtype t, leat_tensor **out)
{
    LEAT_REQUIRE(!s->closed, INVALID_ARGUMENT, "Stack[%s] has already been closed.", s->name);
    LEAT_REQUIRE(s->n > 0, INVALID_ARGUMENT, "Stack[%s] is empty when calling Pop().", s->name);
    LEAT_REQUIRE(t == s->dtype, INVALID_ARGUMENT, "Must have type %s but got %s",
                 leat_dtype_name(s->dtype), leat_dtype_name(t));
    *out = s->items[--s->n];
    return NULL;
}

static leat_status pop(leat_kernel *k)
{
    stack *s;
    leat_tensor *x = NULL;
    LEAT_TRY(stack_of(k, &s));
    pthread_mutex_lock(&s->lock);
    leat_status status = pop_locked(s, leat_kernel_out_dtype(k, 0), &x);
    pthread_mutex_unlock(&s->lock);
    LEAT_TRY(status);
    leat_kernel_set(k, 0, x);
    return NULL;
}

static leat_status stack_close(leat_kernel *k)
{
    stack *s;
    LEAT_TRY(stack_of(k, &s));
    pthread_mutex_lock(&s->lock);
    clear(s);
    s->closed = true;
    pthread_mutex_unlock(&s->lock);
    return NULL;
}

const leat_kernel_def leat_cpu_stack[] = {
    {.op = "StackV2", .run = stack_new},
    {.op = "StackPushV2", .run = push},
    {.op = "StackPopV2", .run = pop},
    {.op = "StackCloseV2", .run = stack_close},
    {0},
};
