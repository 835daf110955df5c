/* function.c -- the library of functions of a graph: adding, finding, import and export. */
#include "graph/function.h"

#include <stdlib.h>
#include <string.h>

#include "core/alloc.h"
#include "graph/graphdef.h"
#include "proto/wire.h"

const leat_function *leat_function_find(const leat_graph *g, const char *name)
{
    const leat_function *f = NULL;
    for (; g && !f; g = g->library) {
        pthread_mutex_lock((pthread_mutex_t *)&g->lock);
        f = leat_map_get(&g->functions, name);
        pthread_mutex_unlock((pthread_mutex_t *)&g->lock);
    }
    return f;
}

const leat_op_info *leat_function_op(leat_graph *g, const char *name)
{
    const leat_function *f = leat_function_find(g, name);
    return f ? f->info : NULL;
}

static void function_free(leat_function *f)
{
    for (int i = 0; f->info && i < f->info->n_attrs; i++)
        if (f->info->attrs[i].fallback)
            leat_attr_release(f->info->attrs[i].fallback);
    leat_proto_free(f->def);
}

void leat_functions_truncate(leat_graph *g, int n)
{
    while (g->n_functions > n) {
        pthread_mutex_lock(&g->lock);
        leat_function *f = g->function_list[--g->n_functions];
        leat_map_remove(&g->functions, f->name);
        pthread_mutex_unlock(&g->lock);
        function_free(f);
    }
}

void leat_functions_free(leat_graph *g)
{
    leat_functions_truncate(g, 0);
    free(g->function_list);
}

static leat_status same(const Leat__FunctionDef *a, const Leat__FunctionDef *b, bool *out)
{
    leat_strbuf x = {0}, y = {0};
    leat_status s = leat_proto_pack(a, &x);
    if (!s)
        s = leat_proto_pack(b, &y);
    *out = !s && x.n == y.n && (x.n == 0 || memcmp(x.s, y.s, x.n) == 0);
    leat_strbuf_release(&x);
    leat_strbuf_release(&y);
    return s;
}

static leat_status check_name(leat_graph *g, const Leat__FunctionDef *def, bool *known)
{
    *known = false;
    LEAT_REQUIRE(def->signature && def->signature->name[0], INVALID_ARGUMENT,
                 "A function needs a signature with a name");
    const char *name = def->signature->name;
    LEAT_REQUIRE(!leat_op_find(name), INVALID_ARGUMENT,
                 "Cannot add function '%s' because an op with the same name already exists.", name);
    const leat_function *old = leat_map_get(&g->functions, name);
    if (!old)
        return NULL;
    LEAT_TRY(same(old->def, def, known));
    LEAT_REQUIRE(*known, INVALID_ARGUMENT,
                 "Cannot add function '%s' because a different function with the same name already "
                 "exists.",
                 name);
    return NULL;
}

leat_status leat_function_add(leat_graph *g, Leat__FunctionDef *def)
{
    bool known;
    leat_status s = check_name(g, def, &known);
    if (s || known) {
        leat_proto_free(def);
        return s;
    }
    leat_function *f = leat_arena_new(&g->arena, leat_function);
    f->name = leat_arena_strdup(&g->arena, def->signature->name);
    f->def = def;
    s = leat_function_make_op(g, f);
    if (s) {
        function_free(f);
        return leat_status_prefix(s, "Function '%s': ", f->name);
    }
    pthread_mutex_lock(&g->lock);
    leat_grow(g->function_list, g->n_functions, g->cap_functions);
    g->function_list[g->n_functions++] = f;
    leat_map_put(&g->functions, f->name, f);
    pthread_mutex_unlock(&g->lock);
    return NULL;
}

/* A copy of a message of its own. */
static leat_status copy(const ProtobufCMessage *m, void *out)
{
    leat_strbuf b = {0};
    leat_status s = leat_proto_pack(m, &b);
    if (!s)
        s = leat_proto_unpack(m->descriptor, leat_strbuf_text(&b), b.n, (ProtobufCMessage **)out);
    leat_strbuf_release(&b);
    return s;
}

static leat_status import_gradients(leat_graph *g, const Leat__FunctionDefLibrary *lib)
{
    for (size_t i = 0; i < lib->n_gradient; i++) {
        const Leat__GradientDef *d = lib->gradient[i];
        leat_function *f = leat_map_get(&g->functions, d->function_name);
        LEAT_REQUIRE(f, INVALID_ARGUMENT, "A gradient is given for '%s', which is no function",
                     d->function_name);
        LEAT_REQUIRE(!f->gradient || strcmp(f->gradient, d->gradient_func) == 0, INVALID_ARGUMENT,
                     "Cannot assign gradient function '%s' to '%s' because it already has gradient "
                     "function '%s'",
                     d->gradient_func, f->name, f->gradient);
        f->gradient = leat_arena_strdup(&g->arena, d->gradient_func);
    }
    return NULL;
}

leat_status leat_functions_import(leat_graph *g, const Leat__FunctionDefLibrary *lib)
{
    int before = g->n_functions;
    leat_status s = NULL;
    for (size_t i = 0; i < lib->n_function && !s; i++) {
        Leat__FunctionDef *def = NULL;
        s = copy(&lib->function[i]->base, &def);
        if (!s)
            s = leat_function_add(g, def);
    }
    if (!s)
        s = import_gradients(g, lib);
    if (s)
        leat_functions_truncate(g, before);
    return s;
}

leat_status leat_functions_export(const leat_graph *g, Leat__FunctionDefLibrary **out)
{
    Leat__FunctionDefLibrary *lib = leat_xmalloc(sizeof(*lib));
    leat__function_def_library__init(lib);
    lib->function = leat_new_array(Leat__FunctionDef *, g->n_functions + 1);
    lib->gradient = leat_new_array(Leat__GradientDef *, g->n_functions + 1);
    leat_status s = NULL;
    for (int i = 0; i < g->n_functions && !s; i++) {
        const leat_function *f = g->function_list[i];
        s = copy(&f->def->base, &lib->function[lib->n_function]);
        lib->n_function += !s;
        if (s || !f->gradient)
            continue;
        Leat__GradientDef *d = leat_xmalloc(sizeof(*d));
        leat__gradient_def__init(d);
        d->function_name = leat_xstrdup(f->name);
        d->gradient_func = leat_xstrdup(f->gradient);
        lib->gradient[lib->n_gradient++] = d;
    }
    if (s)
        leat_proto_free(lib);
    else
        *out = lib;
    return s;
}
