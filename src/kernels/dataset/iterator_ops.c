/* iterator_ops.c -- iterators as resources: making them, getting elements, positions. */
#include <stdlib.h>

#include "core/alloc.h"
#include "core/variant.h"
#include "kernels/any/resource_op.h"
#include "kernels/dataset/handles.h"
#include "kernels/dataset/iteration.h"

typedef struct leat_iterator_resource {
    leat_resource base;
    leat_element_spec spec; /* does not change */
    pthread_mutex_t lock;   /* guards what follows */
    leat_iteration *in;     /* NULL until the iterator was initialised */
    leat_dataset *d;
} resource;

static void resource_free(void *object)
{
    resource *r = object;
    leat_iteration_unref(r->in);
    leat_dataset_unref(r->d);
    pthread_mutex_destroy(&r->lock);
    leat_element_spec_release(&r->spec);
    free(r);
}

static const leat_resource_type iterator_type = {"N10tensorflow4data16IteratorResourceE",
                                                 resource_free};

static resource *resource_new(const leat_node *n)
{
    resource *r = leat_new(resource);
    leat_resource_init(&r->base, &iterator_type);
    pthread_mutex_init(&r->lock, NULL);
    r->spec = leat_element_spec_of(n);
    return r;
}

static leat_status check(const leat_node *n, const leat_resource *base)
{
    return leat_element_spec_fits(&((const resource *)base)->spec, n);
}

/* ---- Making ---- */

static leat_status make(leat_kernel *k, const char *name, leat_resource **out)
{
    *out = &resource_new(leat_kernel_node(k))->base;
    return NULL;
}

static const leat_resource_maker maker = {
    .type = &iterator_type, .make = make, .check = check, .by_name = true};

static leat_status iterator_run(leat_kernel *k)
{
    return leat_resource_op_run(k, &maker);
}

static leat_status anonymous_run(leat_kernel *k)
{
    return leat_anonymous_handle(k, 0, "AnonymousIterator",
                                 &resource_new(leat_kernel_node(k))->base);
}

static leat_status delete_run(leat_kernel *k)
{
    leat_anonymous_delete(k, 0);
    return NULL;
}

/* The iterator behind input i; shared. */
static leat_status resource_of(leat_kernel *k, int i, resource **out)
{
    leat_resource *r;
    LEAT_TRY(leat_anonymous_resource(k, i, &iterator_type, &r));
    *out = (resource *)r;
    return NULL;
}

/* Takes in and d. */
static void replace(resource *r, leat_iteration *in, leat_dataset *d)
{
    pthread_mutex_lock(&r->lock);
    leat_iteration *old = r->in;
    leat_dataset *old_d = r->d;
    r->in = in;
    r->d = d;
    pthread_mutex_unlock(&r->lock);
    leat_iteration_unref(old);
    leat_dataset_unref(old_d);
}

static leat_status initialise(leat_kernel *k, resource *r, leat_dataset *d)
{
    leat_iteration *in;
    LEAT_TRY(leat_element_spec_fits_dataset(&r->spec, d));
    LEAT_TRY(leat_iteration_new(leat_kernel_device(k)->inter, NULL, d, &in));
    replace(r, in, leat_dataset_ref(d));
    return NULL;
}

static leat_status make_run(leat_kernel *k)
{
    leat_dataset *d;
    resource *r;
    LEAT_TRY(leat_dataset_in(leat_kernel_in(k, 0), &d));
    LEAT_TRY(resource_of(k, 1, &r));
    leat_status s = initialise(k, r, d);
    leat_resource_unref(&r->base);
    return s;
}

/* ---- OneShotIterator: made by a function when it is first used ---- */

typedef struct one_shot {
    leat_resource_op op;
    pthread_mutex_t lock; /* guards what follows */
    bool made;
} one_shot;

static leat_status one_shot_init(const leat_node *n, void *state)
{
    pthread_mutex_init(&((one_shot *)state)->lock, NULL);
    return NULL;
}

static void one_shot_release(void *state)
{
    pthread_mutex_destroy(&((one_shot *)state)->lock);
    leat_resource_op_release(state);
}

static leat_status factory_result(leat_kernel *k, leat_tensor **results, int n)
{
    leat_dataset *d;
    leat_resource *r;
    LEAT_REQUIRE(n == 1 && results[0]->dtype == LEAT_VARIANT && results[0]->shape.rank == 0,
                 INVALID_ARGUMENT,
                 "The `dataset_factory` function must return a single scalar of dtype "
                 "DT_VARIANT.");
    LEAT_TRY(leat_dataset_in(results[0], &d));
    LEAT_TRY(leat_resource_op_run(k, &maker));
    const leat_handle *h = *AT(leat_handle *, k->out[0].tensor);
    LEAT_TRY(leat_handle_find(k, h, &iterator_type, &r));
    resource *x = (resource *)r;
    pthread_mutex_lock(&x->lock);
    bool there = x->in != NULL;
    pthread_mutex_unlock(&x->lock);
    leat_status s = there ? NULL : initialise(k, x, d);
    leat_resource_unref(r);
    return s;
}

/* Steps that run the node at the same time may each call the function: the first dataset is
 * used. */
static void factory_called(void *arg, leat_status s, leat_tensor **results, int n)
{
    leat_kernel *k = arg;
    one_shot *x = leat_kernel_state(k);
    pthread_mutex_lock(&x->lock);
    if (!s && !x->made) {
        s = factory_result(k, results, n);
        x->made = !s;
    } else if (!s) {
        s = leat_resource_op_run(k, &maker);
    }
    pthread_mutex_unlock(&x->lock);
    for (int i = 0; i < n; i++)
        leat_tensor_unref(results[i]);
    leat_kernel_done(k, s);
}

static void one_shot_run(leat_kernel *k)
{
    one_shot *x = leat_kernel_state(k);
    leat_callable *f;
    pthread_mutex_lock(&x->lock);
    bool made = x->made;
    pthread_mutex_unlock(&x->lock);
    leat_status s =
        made ? leat_resource_op_run(k, &maker) : leat_kernel_function(k, "dataset_factory", 0, &f);
    if (made || s)
        leat_kernel_done(k, s);
    else
        leat_callable_start(f, NULL, 0, &(leat_callable_options){.kernel = k}, factory_called, k);
}

/* ---- Elements ---- */

/* A reference to what the iterator behind input 0 goes through; `what` is what it is wanted for. */
static leat_status iteration_of(leat_kernel *k, const char *function, const char *what,
                                leat_iteration **out)
{
    resource *r;
    LEAT_TRY(resource_of(k, 0, &r));
    pthread_mutex_lock(&r->lock);
    leat_iteration *in = r->in;
    if (in)
        leat_resource_ref(&in->base);
    pthread_mutex_unlock(&r->lock);
    leat_resource_unref(&r->base);
    LEAT_REQUIRE(in, FAILED_PRECONDITION,
                 "%s() failed because the iterator has not been initialized. Ensure that you have "
                 "run the initializer operation for this iterator before %s.",
                 function, what);
    *out = in;
    return NULL;
}

static void get(leat_kernel *k, bool optional)
{
    leat_iteration *in;
    leat_status s = iteration_of(k, "GetNext", "getting the next element", &in);
    if (s)
        leat_kernel_done(k, s);
    else
        leat_iteration_get(in, k, optional);
}

static void get_next_run(leat_kernel *k)
{
    get(k, false);
}

static void get_optional_run(leat_kernel *k)
{
    get(k, true);
}

/* ---- Positions ---- */

static void serialize_run(leat_kernel *k)
{
    leat_iteration *in;
    leat_status s = iteration_of(k, "Save", "saving it", &in);
    if (s)
        leat_kernel_done(k, s);
    else
        leat_iteration_save(in, k);
}

static leat_status restore(leat_kernel *k)
{
    resource *r;
    leat_iteration *in;
    const leat_tensor *t = leat_kernel_in(k, 1);
    LEAT_REQUIRE(t->count == 1, INVALID_ARGUMENT,
                 "DeserializeIteratorOp: Unable to parse variant tensor.");
    size_t n;
    const void *bytes = leat_position_variant_bytes(AT(leat_variant, t), &n);
    LEAT_REQUIRE(bytes, INVALID_ARGUMENT, "DeserializeIteratorOp: Unable to parse variant tensor.");
    LEAT_TRY(resource_of(k, 0, &r));
    pthread_mutex_lock(&r->lock);
    leat_dataset *d = r->d ? leat_dataset_ref(r->d) : NULL;
    pthread_mutex_unlock(&r->lock);
    leat_status s = NULL;
    if (!d)
        s = leat_error(FAILED_PRECONDITION,
                       "Restore() failed because the iterator has not been initialized. Ensure "
                       "that you have run the initializer operation for this iterator before "
                       "restoring it.");
    if (!s)
        s = leat_iteration_restore(leat_kernel_device(k)->inter, d, bytes, n, &in);
    if (s)
        leat_dataset_unref(d);
    else
        replace(r, in, d);
    leat_resource_unref(&r->base);
    return s;
}

static void restore_job(void *arg)
{
    leat_status s = restore(arg);
    leat_kernel_done(arg, s);
}

/* Restoring may call functions and read files. */
static void deserialize_run(leat_kernel *k)
{
    leat_pool_submit_blocking(leat_kernel_device(k)->inter, restore_job, k);
}

/* ---- Handles as strings ---- */

static leat_status to_string_run(leat_kernel *k)
{
    return leat_handle_to_string(k, &iterator_type);
}

static leat_status from_string_run(leat_kernel *k)
{
    return leat_handle_from_string(k, &iterator_type, check);
}

static leat_status device_run(leat_kernel *k)
{
    leat_tensor *y;
    const char *name = leat_kernel_device(k)->name;
    LEAT_TRY(leat_tensor_of_string(name, strlen(name), &y));
    leat_kernel_set(k, 0, y);
    return NULL;
}

#define STATE .state_size = sizeof(leat_resource_op), .release = leat_resource_op_release
const leat_kernel_def leat_data_kernels_iterator_ops[] = {
    {.op = "Iterator", .run = iterator_run, STATE},
    {.op = "IteratorV2", .run = iterator_run, STATE},
    {.op = "AnonymousIterator", .run = anonymous_run},
    {.op = "AnonymousIteratorV2", .run = anonymous_run},
    {.op = "DeleteIterator", .run = delete_run},
    {.op = "MakeIterator", .run = make_run, .flags = LEAT_KERNEL_EXPENSIVE},
    {.op = "OneShotIterator",
     .run_async = one_shot_run,
     .state_size = sizeof(one_shot),
     .init = one_shot_init,
     .release = one_shot_release,
     .flags = LEAT_KERNEL_EXPENSIVE},
    {.op = "IteratorGetNext", .run_async = get_next_run, .flags = LEAT_KERNEL_EXPENSIVE},
    {.op = "IteratorGetNextSync", .run_async = get_next_run, .flags = LEAT_KERNEL_EXPENSIVE},
    {.op = "IteratorGetNextAsOptional",
     .run_async = get_optional_run,
     .flags = LEAT_KERNEL_EXPENSIVE},
    {.op = "IteratorToStringHandle", .run = to_string_run},
    {.op = "IteratorFromStringHandle", .run = from_string_run},
    {.op = "IteratorFromStringHandleV2", .run = from_string_run},
    {.op = "SerializeIterator", .run_async = serialize_run},
    {.op = "DeserializeIterator", .run_async = deserialize_run},
    {.op = "IteratorGetDevice", .run = device_run},
    {.op = "ExperimentalIteratorGetDevice", .run = device_run},
    {0},
};
