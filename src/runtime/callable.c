/* callable.c -- the set of callables of a plan: finding them and compiling their bodies. */
#include "runtime/callable_int.h"

#include <stdlib.h>
#include <string.h>

#include "core/alloc.h"
#include "graph/function.h"
#include "graph/graphdef.h"
#include "proto/wire.h"

/* ---- The set ---- */

leat_status leat_callables_new(leat_graph *const *graphs, int n, const leat_plan_options *o,
                               leat_callables **out)
{
    leat_callables *s = leat_new(leat_callables);
    atomic_init(&s->refs, 1);
    pthread_mutex_init(&s->lock, NULL);
    s->library = leat_graph_new();
    s->options = *o;
    s->devices = leat_new_array(leat_device *, o->n_devices + 1);
    for (int i = 0; i < o->n_devices; i++)
        s->devices[i] = leat_device_ref(o->devices[i]);
    s->options.devices = s->devices;
    s->options.far = NULL; /* bodies run in this process */
    s->options.deadline_ns = 0;
    s->options.cancellation = NULL;
    s->options.callables = s;
    leat_status bad = NULL;
    for (int i = 0; i < n && !bad; i++)
        if (graphs[i])
            bad = leat_functions_gather(graphs[i], graphs[i], s->library);
    if (bad)
        leat_callables_unref(s);
    else
        *out = s;
    return bad;
}

void leat_callables_ref(leat_callables *s)
{
    atomic_fetch_add_explicit(&s->refs, 1, memory_order_relaxed);
}

void leat_callables_forget_nodes(leat_callables *s)
{
    if (!s)
        return;
    pthread_mutex_lock(&s->lock);
    leat_map_release(&s->by_node);
    s->by_node = (leat_map){0};
    pthread_mutex_unlock(&s->lock);
}

static void callable_free(leat_callable *c)
{
    while (c->bodies) {
        body *b = c->bodies;
        c->bodies = b->next;
        leat_plan_free(b->plan);
        for (int i = 0; i < c->n_args; i++)
            free(b->arg_devices[i]);
        free(b->arg_devices);
        free(b);
    }
    leat_attr_release(&c->f);
    leat_status_free(c->bad);
    pthread_mutex_destroy(&c->lock);
    leat_arena_release(&c->arena);
    free(c->arg_types);
    free(c->result_types);
    free(c);
}

void leat_callables_unref(leat_callables *s)
{
    if (!s || atomic_fetch_sub_explicit(&s->refs, 1, memory_order_acq_rel) != 1)
        return;
    while (s->all) {
        leat_callable *c = s->all;
        s->all = c->next;
        callable_free(c);
    }
    for (int i = 0; i < s->options.n_devices; i++)
        leat_device_unref(s->devices[i]);
    leat_map_release(&s->by_node);
    leat_map_release(&s->by_text);
    leat_graph_free(s->library);
    pthread_mutex_destroy(&s->lock);
    free(s->devices);
    free(s);
}

leat_status leat_callables_find_device(const leat_callables *s, const char *name, leat_device **out)
{
    leat_device_name asked;
    leat_strbuf all = {0};
    LEAT_TRY(leat_device_name_parse(name, &asked));
    for (int i = 0; i < s->options.n_devices; i++) {
        if (leat_device_name_fits(&s->devices[i]->parsed, &asked)) {
            leat_strbuf_release(&all);
            *out = s->devices[i];
            return NULL;
        }
        leat_strbuf_printf(&all, "%s%s", i ? ", " : "", s->devices[i]->name);
    }
    leat_status bad = leat_error(NOT_FOUND,
                                 "Functions are run on devices of this process alone: there is no "
                                 "%s among %s",
                                 name, leat_strbuf_text(&all));
    leat_strbuf_release(&all);
    return bad;
}

leat_callable *leat_callable_ref(leat_callable *c)
{
    leat_callables_ref(c->set);
    return c;
}

void leat_callable_unref(leat_callable *c)
{
    if (c)
        leat_callables_unref(c->set);
}

int leat_callable_args(const leat_callable *c, const leat_dtype **types_out)
{
    if (types_out)
        *types_out = c->arg_types;
    return c->n_args;
}

int leat_callable_results(const leat_callable *c, const leat_dtype **types_out)
{
    if (types_out)
        *types_out = c->result_types;
    return c->n_results;
}

/* ---- Bodies ---- */

static leat_status instantiate(leat_callable *c, leat_body *out)
{
    leat_graph *library = c->set->library;
    LEAT_TRY(c->gradient ? leat_function_instantiate_grad(library, NULL, c->f.func, out)
                         : leat_function_instantiate(library, NULL, c->f.func, out));
    for (int i = 0; i < out->g->n_nodes; i++)
        if (!out->g->nodes[i]->device[0])
            out->g->nodes[i]->device = c->device->name;
    return NULL;
}

/* The signature, which is that of the body. */
static void read_signature(leat_callable *c, const leat_body *b)
{
    c->arg_types = leat_new_array(leat_dtype, b->n_args + 1);
    c->result_types = leat_new_array(leat_dtype, b->n_results + 1);
    c->n_args = b->n_args;
    c->n_results = b->n_results;
    for (int i = 0; i < b->n_args; i++)
        c->arg_types[i] = leat_dtype_base(b->args[i]->out_types[0]);
    for (int i = 0; i < b->n_results; i++)
        c->result_types[i] = leat_dtype_base(leat_out_dtype(b->results[i]));
}

static leat_status compile(leat_callable *c, leat_body *b, const char *const *arg_devices)
{
    leat_out *targets = leat_new_array(leat_out, b->n_to_run + 1);
    for (int i = 0; i < b->n_to_run; i++)
        targets[i] = (leat_out){b->to_run[i], -1};
    for (int i = 0; i < b->n_args; i++)
        if (arg_devices[i])
            b->args[i]->device = arg_devices[i];
    leat_request q = {.fetches = b->results,
                      .n_fetches = b->n_results,
                      .targets = targets,
                      .n_targets = b->n_to_run};
    leat_plan *plan;
    leat_status s = leat_plan_new(b->g, &q, &c->set->options, &plan);
    free(targets);
    if (s)
        return leat_status_prefix(s, "Function '%s': ", c->f.func->name);
    body *x = leat_new(body);
    x->plan = plan;
    x->arg_devices = leat_new_array(char *, b->n_args + 1);
    for (int i = 0; i < b->n_args; i++)
        if (arg_devices[i])
            x->arg_devices[i] = leat_xstrdup(arg_devices[i]);
    x->next = c->bodies;
    c->bodies = x;
    return NULL;
}

/* The device of the resource that argument t is a handle of; NULL if t is no handle, or if that
 * device is c->device. */
static const char *arg_device(const leat_callable *c, const leat_tensor *t)
{
    if (t->dtype != LEAT_RESOURCE || t->count != 1 || !*(leat_handle **)t->data)
        return NULL;
    const char *name = (*(leat_handle **)t->data)->device;
    return name && name[0] && strcmp(name, c->device->name) != 0 ? name : NULL;
}

static bool fits(const body *b, const char *const *arg_devices, int n)
{
    for (int i = 0; i < n; i++)
        if (!b->arg_devices[i] != !arg_devices[i] ||
            (arg_devices[i] && strcmp(b->arg_devices[i], arg_devices[i]) != 0))
            return false;
    return true;
}

/* With c's lock held. */
static leat_status compile_for(leat_callable *c, const char *const *arg_devices)
{
    leat_body b;
    for (int i = 0; i < c->n_args; i++) {
        bool here = !arg_devices[i];
        for (int k = 0; k < c->set->options.n_devices && !here; k++)
            here = strcmp(c->set->devices[k]->name, arg_devices[i]) == 0;
        LEAT_REQUIRE(here, INVALID_ARGUMENT,
                     "Argument %d of function %s is a resource on %s: functions are run on devices "
                     "of this process alone",
                     i, c->f.func->name, arg_devices[i]);
    }
    LEAT_TRY(instantiate(c, &b));
    leat_status s = compile(c, &b, arg_devices);
    leat_body_free(&b);
    return s;
}

leat_status leat_callable_plan(leat_callable *c, leat_tensor *const *args, leat_plan **out)
{
    enum { FEW = 32 };
    const char *few[FEW],
        **devices = c->n_args <= FEW ? few : leat_new_array(const char *, c->n_args);
    for (int i = 0; i < c->n_args; i++)
        devices[i] = arg_device(c, args[i]);
    pthread_mutex_lock(&c->lock);
    body *b = c->bodies;
    while (b && !fits(b, devices, c->n_args))
        b = b->next;
    leat_status s = NULL;
    if (!b) {
        s = compile_for(c, devices);
        b = s ? NULL : c->bodies;
    }
    pthread_mutex_unlock(&c->lock);
    if (devices != few)
        free(devices);
    if (b)
        *out = b->plan;
    return s;
}

/* ---- Finding ---- */

/* The key of a callable in by_text. */
static leat_status key_of(const leat_func *f, bool gradient, const leat_device *device,
                          leat_strbuf *out)
{
    Leat__AttrValue *v;
    const leat_attr a = {.name = "f", .kind = LEAT_ARG_FUNC, .func = f};
    LEAT_TRY(leat_attr_to_proto(&a, &v));
    leat_strbuf_printf(out, "%s;%d;", device->name, gradient);
    leat_status s = leat_proto_pack(v, out);
    leat_proto_free(v);
    return s;
}

/* With the set's lock held. */
static leat_callable *add(leat_callables *s, const leat_func *f, bool gradient, leat_device *device)
{
    leat_callable *c = leat_new(leat_callable);
    const leat_attr a = {.name = "f", .kind = LEAT_ARG_FUNC, .func = f};
    leat_arena_init(&c->arena);
    pthread_mutex_init(&c->lock, NULL);
    c->set = s;
    c->f = leat_attr_copy(&c->arena, &a);
    c->gradient = gradient;
    c->device = device;
    c->next = s->all;
    s->all = c;
    return c;
}

/* Reads the signature once. If it cannot be read, this and all later calls fail. */
static leat_status make_ready(leat_callable *c)
{
    pthread_mutex_lock(&c->lock);
    if (!c->ready) {
        leat_body b;
        c->bad = instantiate(c, &b);
        if (!c->bad) {
            read_signature(c, &b);
            leat_body_free(&b);
        }
        c->ready = true;
    }
    leat_status s = leat_status_copy(c->bad);
    pthread_mutex_unlock(&c->lock);
    return s;
}

leat_status leat_callables_get(leat_callables *s, const leat_func *f, bool gradient,
                               leat_device *device, leat_callable **out)
{
    const struct {
        const void *f, *device;
    } node_key = {f, device};
    pthread_mutex_lock(&s->lock);
    leat_callable *c = leat_map_get_n(&s->by_node, &node_key, sizeof(node_key));
    leat_status bad = NULL;
    if (!c) {
        leat_strbuf key = {0};
        bad = key_of(f, gradient, device, &key);
        if (!bad)
            c = leat_map_get_n(&s->by_text, leat_strbuf_text(&key), key.n);
        if (!bad && !c) {
            c = add(s, f, gradient, device);
            leat_map_put_n(&s->by_text, leat_strbuf_text(&key), key.n, c);
        }
        if (!bad)
            leat_map_put_n(&s->by_node, &node_key, sizeof(node_key), c);
        leat_strbuf_release(&key);
    }
    pthread_mutex_unlock(&s->lock);
    LEAT_TRY(bad);
    LEAT_TRY(make_ready(c));
    *out = c;
    return NULL;
}

leat_callables *leat_kernel_callables(leat_kernel *k)
{
    return k->bound->callables;
}

leat_status leat_kernel_function(leat_kernel *k, const char *attr, int i, leat_callable **out)
{
    const leat_node *n = k->bound->node;
    const leat_attr *a = leat_node_attr(n, attr);
    LEAT_REQUIRE(a && (a->kind == LEAT_ARG_FUNC || a->kind == LEAT_ARG_FUNCS), INVALID_ARGUMENT,
                 "Node %s has no attribute '%s' that names a function", n->name, attr);
    int count = a->kind == LEAT_ARG_FUNC ? 1 : a->n;
    LEAT_REQUIRE(i >= 0 && i < count, INVALID_ARGUMENT, "Attribute '%s' of %s has no function %d",
                 attr, n->name, i);
    LEAT_REQUIRE(k->bound->callables, FAILED_PRECONDITION,
                 "Node %s is run without a plan: it cannot call functions", n->name);
    return leat_callables_get(k->bound->callables,
                              a->kind == LEAT_ARG_FUNC ? a->func : &a->funcs[i], false, k->device,
                              out);
}
