/* callable.c -- sets of callables, and how callables are found in them. callable_body.c compiles
 * the bodies. */
#include "runtime/callable_int.h"

#include <stdlib.h>
#include <string.h>

#include "core/alloc.h"
#include "graph/function.h"
#include "graph/graphdef.h"
#include "proto/wire.h"

/* ---- The set ---- */

/* The caller sets the library. */
static leat_callables *set_new_without(const leat_plan_options *o)
{
    leat_callables *s = leat_new(leat_callables);
    atomic_init(&s->refs, 1);
    pthread_mutex_init(&s->lock, NULL);
    s->options = *o;
    s->devices = leat_new_array(leat_device *, o->n_devices + 1);
    for (int i = 0; i < o->n_devices; i++)
        s->devices[i] = leat_device_ref(o->devices[i]);
    s->options.devices = s->devices;
    if (o->far)
        leat_far_ref(o->far);
    s->options.deadline_ns = 0;
    s->options.cancellation = NULL;
    s->options.callables = s;
    return s;
}

static leat_callables *set_new(const leat_plan_options *o)
{
    leat_callables *s = set_new_without(o);
    s->library = leat_graph_new();
    return s;
}

leat_callables *leat_callables_again(leat_callables *origin)
{
    leat_callables *s = set_new_without(&origin->options);
    leat_callables_ref(origin);
    s->origin = origin;
    s->library = origin->library;
    atomic_init(&s->seeded, atomic_load(&origin->seeded));
    return s;
}

static bool has_seed(const Leat__FunctionDef *f)
{
    for (size_t i = 0; i < f->n_node_def; i++) {
        const Leat__NodeDef *n = f->node_def[i];
        for (size_t j = 0; j < n->n_attr; j++) {
            const char *key = n->attr[j]->key;
            const Leat__AttrValue *v = n->attr[j]->value;
            if ((strcmp(key, "seed") == 0 || strcmp(key, "seed2") == 0) && v &&
                v->value_case == LEAT__ATTR_VALUE__VALUE_I && v->i != 0)
                return true;
        }
    }
    return false;
}

/* Functions were added to the library. Called with the set's lock held. */
static void look_for_seeds(leat_callables *s)
{
    for (; s->n_looked_at < s->library->n_functions; s->n_looked_at++)
        if (has_seed(s->library->function_list[s->n_looked_at]->def))
            atomic_store(&s->seeded, true);
}

bool leat_callable_seeded(const leat_callable *c)
{
    return atomic_load_explicit(&c->set->seeded, memory_order_relaxed);
}

/* Gives a reference to the set that all plans of a session with other tasks share; a new set if the
 * session is closed. */
static leat_callables *set_of_session(const leat_plan_options *o)
{
    leat_far *far = o->far;
    pthread_mutex_lock(&far->lock);
    leat_callables *s = far->callables;
    if (!s && !atomic_load(&far->closed))
        s = far->callables = set_new(o);
    if (s)
        leat_callables_ref(s);
    pthread_mutex_unlock(&far->lock);
    return s ? s : set_new(o);
}

leat_status leat_callables_of(leat_graph *const *graphs, int n, const leat_plan_options *o,
                              leat_callables **out)
{
    leat_callables *s = o->far ? set_of_session(o) : set_new(o);
    leat_status bad = NULL;
    pthread_mutex_lock(&s->lock);
    for (int i = 0; i < n && !bad; i++)
        if (graphs[i])
            bad = leat_functions_gather(graphs[i], graphs[i], s->library);
    look_for_seeds(s);
    pthread_mutex_unlock(&s->lock);
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
    leat_plan_cache_release(&c->plans);
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
    leat_far_unref(s->options.far);
    for (int i = 0; i < s->options.n_devices; i++)
        leat_device_unref(s->devices[i]);
    leat_map_release(&s->by_node);
    leat_map_release(&s->by_text);
    if (!s->origin)
        leat_graph_free(s->library);
    leat_callables_unref(s->origin);
    pthread_mutex_destroy(&s->lock);
    free(s->devices);
    free(s);
}

leat_status leat_callables_find_device(const leat_callables *s, const char *name, const char **out)
{
    const leat_far *far = s->options.far;
    int n = far ? far->n : s->options.n_devices;
    leat_device_name asked;
    leat_strbuf all = {0};
    LEAT_TRY(leat_device_name_parse(name, &asked));
    for (int i = 0; i < n; i++) {
        const char *device = far ? far->targets[i].name : s->devices[i]->name;
        if (leat_device_name_fits(far ? &far->targets[i].parsed : &s->devices[i]->parsed, &asked)) {
            leat_strbuf_release(&all);
            *out = device;
            return NULL;
        }
        leat_strbuf_printf(&all, "%s%s", i ? ", " : "", device);
    }
    leat_status bad =
        leat_error(NOT_FOUND, "The session has no device %s to run a function on: it has %s", name,
                   leat_strbuf_text(&all));
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

/* ---- Signatures ---- */

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

/* Reads the signature on the first call. If that fails, all calls return the error. */
static leat_status make_ready(leat_callable *c)
{
    pthread_mutex_lock(&c->lock);
    if (!c->ready) {
        leat_body b;
        c->bad = leat_callable_instantiate(c, &b);
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

/* ---- Finding ---- */

/* Adds to *out the text that differs for different callables of a set. */
static leat_status key_of(const leat_func *f, bool gradient, const char *device, leat_strbuf *out)
{
    Leat__AttrValue *v;
    const leat_attr a = {.name = "f", .kind = LEAT_ARG_FUNC, .func = f};
    LEAT_TRY(leat_attr_to_proto(&a, &v));
    leat_strbuf_printf(out, "%s;%d;", device, gradient);
    leat_status s = leat_proto_pack(v, out);
    leat_proto_free(v);
    return s;
}

/* Called with the set's lock held. */
static leat_callable *add(leat_callables *s, const leat_func *f, bool gradient, const char *device)
{
    leat_callable *c = leat_new(leat_callable);
    const leat_attr a = {.name = "f", .kind = LEAT_ARG_FUNC, .func = f};
    leat_arena_init(&c->arena);
    pthread_mutex_init(&c->lock, NULL);
    leat_plan_cache_init(&c->plans);
    c->set = s;
    c->f = leat_attr_copy(&c->arena, &a);
    c->gradient = gradient;
    c->device = device;
    c->next = s->all;
    s->all = c;
    return c;
}

leat_status leat_callables_get(leat_callables *s, const leat_func *f, bool gradient,
                               const char *device, leat_callable **out)
{
    const struct {
        const void *f, *device;
        uintptr_t gradient; /* As wide as a pointer, so that the key has no padding. */
    } node_key = {f, device, gradient};
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
            c->hash = leat_hash(leat_strbuf_text(&key), key.n, 0);
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

bool leat_kernel_again(const leat_kernel *k)
{
    return k->bound->callables && k->bound->callables->origin;
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
                              a->kind == LEAT_ARG_FUNC ? a->func : &a->funcs[i], false,
                              k->device->name, out);
}
