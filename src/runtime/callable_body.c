/* callable_body.c -- compiles the bodies of callables, each when it is first called. A callable has
 * one plan for each combination of the devices of the resources whose handles are arguments. */
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "core/alloc.h"
#include "core/strbuf.h"
#include "runtime/callable_int.h"
#include "runtime/session_int.h"

/* The argument of compile: one body to compile. */
typedef struct wanted {
    leat_callable *callable;
    const char **arg_devices; /* The result of arg_device for each argument. */
    int64_t deadline_ns;
    leat_cancellation *cancellation;
} wanted;

leat_status leat_callable_instantiate(leat_callable *c, leat_body *out)
{
    leat_graph *library = c->set->library;
    LEAT_TRY(c->gradient ? leat_function_instantiate_grad(library, NULL, c->f.func, out)
                         : leat_function_instantiate(library, NULL, c->f.func, out));
    for (int i = 0; i < out->g->n_nodes; i++)
        if (!out->g->nodes[i]->device[0])
            out->g->nodes[i]->device = c->device;
    return NULL;
}

/* ---- Names ---- */

static bool has_tensorflow_tasks(const leat_far *far)
{
    for (int i = 0; far && i < far->n; i++)
        if (far->targets[i].process != 0 && !far->targets[i].together)
            return true;
    return false;
}

/* Adds the prefix to the names of nodes in the colocations ("loc:@NAME") of n. */
static void rename_colocations(leat_node *n, const char *prefix)
{
    const leat_attr *a = leat_node_attr(n, "_class");
    if (!a || a->kind != LEAT_ARG_STRINGS)
        return;
    leat_arena *arena = &n->graph->arena;
    const char **strings = leat_arena_array(arena, const char *, a->n + 1);
    int *sizes = leat_arena_array(arena, int, a->n + 1);
    for (int i = 0; i < a->n; i++) {
        bool node = strncmp(a->strings[i], "loc:@", 5) == 0;
        strings[i] =
            node ? leat_arena_printf(arena, "loc:@%s%s", prefix, a->strings[i] + 5) : a->strings[i];
        sizes[i] = node ? (int)strlen(strings[i]) : a->sizes[i];
    }
    leat_attr renamed = *a;
    renamed.strings = strings;
    renamed.sizes = sizes;
    leat_node_set_attr(n, &renamed);
}

/* Makes the names of a body's nodes differ from those of the session's other graphs, because a
 * TensorFlow task keeps the kernels of stateful nodes by name until the session is closed. */
static void make_names_own(const leat_callable *c, leat_body *b)
{
    leat_arena *arena = &b->g->arena;
    const char *prefix = leat_arena_printf(arena, "%s_%016" PRIx64 "/", c->f.func->name, c->hash);
    for (int i = 0; i < b->g->n_nodes; i++) {
        leat_node *n = b->g->nodes[i];
        n->name = leat_arena_printf(arena, "%s%s", prefix, n->name);
        rename_colocations(n, prefix);
    }
}

/* ---- Compiling ---- */

static bool has_device(const leat_plan_options *o, const char *name)
{
    for (int i = 0; i < o->n_devices; i++)
        if (strcmp(o->devices[i]->name, name) == 0)
            return true;
    for (int i = 0; o->far && i < o->far->n; i++)
        if (strcmp(o->far->targets[i].name, name) == 0)
            return true;
    return false;
}

static leat_status check_arg_devices(const wanted *w)
{
    const leat_callable *c = w->callable;
    for (int i = 0; i < c->n_args; i++)
        LEAT_REQUIRE(!w->arg_devices[i] || has_device(&c->set->options, w->arg_devices[i]),
                     INVALID_ARGUMENT,
                     "Argument %d of function %s is a resource on %s, which is no device of the "
                     "session",
                     i, c->f.func->name, w->arg_devices[i]);
    return NULL;
}

static leat_status compile_body(const wanted *w, leat_body *b, leat_plan **out)
{
    leat_plan_options o = w->callable->set->options;
    o.deadline_ns = w->deadline_ns;
    o.cancellation = w->cancellation;
    leat_out *targets = leat_new_array(leat_out, b->n_to_run + 1);
    for (int i = 0; i < b->n_to_run; i++)
        targets[i] = (leat_out){b->to_run[i], -1};
    for (int i = 0; i < b->n_args; i++)
        if (w->arg_devices[i])
            b->args[i]->device = w->arg_devices[i];
    leat_request q = {.fetches = b->results,
                      .n_fetches = b->n_results,
                      .targets = targets,
                      .n_targets = b->n_to_run};
    leat_status s = leat_plan_new(b->g, &q, &o, out);
    free(targets);
    return s ? leat_status_prefix(s, "Function '%s': ", w->callable->f.func->name) : NULL;
}

static leat_status compile(void *arg, leat_plan **out)
{
    const wanted *w = arg;
    leat_body b;
    LEAT_TRY(check_arg_devices(w));
    LEAT_TRY(leat_callable_instantiate(w->callable, &b));
    if (has_tensorflow_tasks(w->callable->set->options.far))
        make_names_own(w->callable, &b);
    leat_status s = compile_body(w, &b, out);
    leat_body_free(&b);
    return s;
}

/* ---- Finding ---- */

/* Returns the device of the resource if t is a handle, and NULL if t is no handle or the device is
 * the callable's. */
static const char *arg_device(const leat_callable *c, const leat_tensor *t)
{
    if (t->dtype != LEAT_RESOURCE || t->count != 1 || !*(leat_handle **)t->data)
        return NULL;
    const char *name = (*(leat_handle **)t->data)->device;
    return name && name[0] && strcmp(name, c->device) != 0 ? name : NULL;
}

/* Adds to *key the text that differs for different bodies of a callable; nothing if no argument is
 * the handle of a resource on another device. */
static void put_key(const leat_callable *c, leat_tensor *const *args, leat_strbuf *key)
{
    for (int i = 0; i < c->n_args; i++) {
        const char *device = arg_device(c, args[i]);
        if (device)
            leat_strbuf_printf(key, "%d:%s;", i, device);
    }
}

static void cancel_compilation(void *arg, leat_status why)
{
    leat_cancel_runs(arg);
}

static leat_status compile_new(leat_callable *c, leat_tensor *const *args, leat_step *step,
                               const leat_strbuf *key, leat_plan **out)
{
    wanted w = {.callable = c,
                .arg_devices = leat_new_array(const char *, c->n_args + 1),
                .deadline_ns = step ? step->deadline_ns : 0,
                .cancellation = leat_cancellation_new()};
    leat_cancel on_step = {.fn = cancel_compilation, .arg = w.cancellation};
    for (int i = 0; i < c->n_args; i++)
        w.arg_devices[i] = arg_device(c, args[i]);
    if (step && !leat_step_on_cancel(step, &on_step))
        leat_cancel_runs(w.cancellation);
    leat_status s = leat_plan_cache_get(&c->plans, leat_strbuf_text(key), key->n, w.deadline_ns,
                                        w.cancellation, compile, &w, out);
    if (step)
        leat_step_off_cancel(step, &on_step);
    leat_cancellation_free(w.cancellation);
    free(w.arg_devices);
    return s;
}

leat_status leat_callable_plan(leat_callable *c, leat_tensor *const *args, leat_step *step,
                               leat_plan **out)
{
    leat_strbuf key = {0};
    leat_status s = NULL;
    put_key(c, args, &key);
    leat_plan *plan = key.n ? NULL : atomic_load_explicit(&c->here, memory_order_acquire);
    if (!plan)
        plan = leat_plan_cache_find(&c->plans, leat_strbuf_text(&key), key.n);
    if (!plan)
        s = compile_new(c, args, step, &key, &plan);
    if (!s && key.n == 0)
        atomic_store_explicit(&c->here, plan, memory_order_release);
    leat_strbuf_release(&key);
    if (!s)
        *out = plan;
    return s;
}
