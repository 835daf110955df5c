/* variable_scope.c -- variable scopes and leat_get_variable: whether a variable is shared or new is
 * determined by the scope's reuse. Rules and error words are those of TensorFlow's
 * variable_scope.py.
 *
 * Variables that were made by leat_get_variable are in the graph's extras under "get_variable:" and
 * their name.
 */
#include <stdlib.h>
#include <string.h>

#include "core/alloc.h"
#include "core/object.h"
#include "core/strbuf.h"
#include "train/variable_scope.h"

typedef leat_variable_scope scope;

/* How often a scope inside a reopened scope had been opened before. */
typedef struct before {
    struct before *next;
    struct opened *of;
    int count;
} before;

struct leat_variable_scope {
    scope *outer;
    const char *name;
    leat_reuse reuse;
    leat_initializer initializer;
    leat_regularizer regularizer;
    leat_partitioner partitioner;
    leat_dtype dtype;
    bool use_resource;
    bool has_name_scope; /* a name scope was entered with it */
    before *before;
};

/* How often a scope was opened, for making names unique. */
typedef struct opened {
    struct opened *next;
    const char *name;
    int count;
} opened;

typedef struct store {
    scope *scope; /* the innermost, NULL outside */
    opened *opened;
} store;

static store *store_of(leat_graph *g)
{
    return leat_graph_extra(g, "variable scopes", sizeof(store));
}

static const scope *current(leat_graph *g)
{
    static const scope root = {.name = ""};
    const scope *s = store_of(g)->scope;
    return s ? s : &root;
}

static opened *find_opened(store *st, const char *name)
{
    opened *o = st->opened;
    while (o && strcmp(o->name, name) != 0)
        o = o->next;
    return o;
}

static int times_opened(store *st, const char *name)
{
    opened *o = find_opened(st, name);
    return o ? o->count : 0;
}

static void count_opened(leat_graph *g, store *st, const char *name)
{
    opened *o = find_opened(st, name);
    if (!o) {
        o = leat_arena_new(&g->arena, opened);
        *o = (opened){st->opened, name, 0};
        st->opened = o;
    }
    o->count++;
}

static bool is_inside(const char *name, const char *outer)
{
    size_t n = strlen(outer);
    return strncmp(name, outer, n) == 0 && (n == 0 || name[n] == '/');
}

/* The counts of inner scopes are reset when the scope is left, so that they get the same names
 * again. */
static void forget_inside(store *st, const scope *s)
{
    for (opened *o = st->opened; o; o = o->next)
        if (is_inside(o->name, s->name))
            o->count = 0;
    for (const before *b = s->before; b; b = b->next)
        b->of->count = b->count;
}

static void remember_inside(leat_graph *g, store *st, scope *s)
{
    s->before = NULL;
    for (opened *o = st->opened; o; o = o->next)
        if (o->count && is_inside(o->name, s->name)) {
            before *b = leat_arena_new(&g->arena, before);
            *b = (before){s->before, o, o->count};
            s->before = b;
        }
}

static const char *join(leat_graph *g, const char *outer, const char *name)
{
    return outer[0] ? leat_arena_printf(&g->arena, "%s/%s", outer, name)
                    : leat_arena_strdup(&g->arena, name);
}

static const char *unique_scope(leat_graph *g, const char *base)
{
    store *st = store_of(g);
    const char *name = join(g, current(g)->name, base);
    if (!times_opened(st, name))
        return name;
    for (int i = 1;; i++) {
        const char *numbered = leat_arena_printf(&g->arena, "%s_%d", name, i);
        if (!times_opened(st, numbered))
            return numbered;
    }
}

static leat_status check_enter(const char *name, const leat_variable_scope_options *o)
{
    LEAT_REQUIRE(name || o->default_name || o->scope, INVALID_ARGUMENT,
                 "A variable scope needs a name, .default_name or .scope");
    LEAT_REQUIRE(name || o->scope || o->reuse != LEAT_REUSE, INVALID_ARGUMENT,
                 ".reuse = LEAT_REUSE needs a name or .scope");
    LEAT_REQUIRE(!name || !o->scope, INVALID_ARGUMENT,
                 "A variable scope is entered by name (%s) or again, not both", name);
    return NULL;
}

void leat_variable_scope_enter_at(leat_loc at, leat_graph *g, const char *name,
                                  const leat_variable_scope_options *options)
{
    if (!LEAT_USABLE(GRAPH, g))
        return;
    store *st = store_of(g);
    const scope *again = options->scope, *outer = again ? again : current(g);
    scope *s = leat_arena_new(&g->arena, scope);
    leat_status bad = check_enter(name, options);
    if (bad)
        leat_graph_fail(g, at, bad);
    const char *base = name ? name : options->default_name, *slash = NULL;
    if (again) {
        slash = strrchr(again->name, '/');
        base = slash ? slash + 1 : again->name;
    }
    *s = *outer;
    s->outer = st->scope;
    s->before = NULL;
    base = base ? base : "";
    s->has_name_scope = base[0] != 0;
    if (s->has_name_scope)
        leat_name_scope_enter(g, base);
    if (!again)
        s->name = name ? join(g, outer->name, base) : unique_scope(g, base);
    s->reuse = options->reuse ? options->reuse : outer->reuse;
    if (options->initializer.make)
        s->initializer = options->initializer;
    if (options->regularizer.make)
        s->regularizer = options->regularizer;
    if (options->partitioner.slices)
        s->partitioner = options->partitioner;
    if (options->dtype)
        s->dtype = options->dtype;
    s->use_resource |= options->use_resource;
    if (again)
        remember_inside(g, st, s);
    count_opened(g, st, s->name);
    st->scope = s;
}

const leat_variable_scope *leat_variable_scope_current(leat_graph *g)
{
    if (!LEAT_USABLE(GRAPH, g))
        return NULL;
    scope *s = leat_arena_new(&g->arena, scope);
    *s = *current(g);
    return s;
}

void leat_variable_scope_leave(leat_graph *g)
{
    if (!LEAT_USABLE(GRAPH, g))
        return;
    store *st = store_of(g);
    scope *s = st->scope;
    if (!s)
        return;
    forget_inside(st, s);
    if (s->has_name_scope)
        leat_name_scope_leave(g);
    st->scope = s->outer;
}

const char *leat_variable_scope_name(leat_graph *g)
{
    if (!LEAT_USABLE(GRAPH, g))
        return "";
    return current(g)->name;
}

void leat_variable_scope_reuse(leat_graph *g)
{
    if (!LEAT_USABLE(GRAPH, g))
        return;
    if (store_of(g)->scope)
        store_of(g)->scope->reuse = LEAT_REUSE;
}

/* ---- get_variable ---- */

static leat_out *slot_for(leat_graph *g, const char *name, bool make)
{
    leat_strbuf key = {0};
    leat_strbuf_printf(&key, "get_variable:%s", name);
    leat_out *v = make ? leat_graph_extra(g, leat_strbuf_text(&key), sizeof(leat_out))
                       : leat_map_get(&g->extras, leat_strbuf_text(&key));
    leat_strbuf_release(&key);
    return v;
}

static leat_status check_shared(const char *name, leat_out v, leat_reuse reuse, leat_shape shape,
                                leat_dtype t)
{
    leat_loc at = v.node->at;
    LEAT_REQUIRE(reuse != LEAT_REUSE_INHERIT, ALREADY_EXISTS,
                 "Variable %s already exists, disallowed. Did you mean to set .reuse = LEAT_REUSE "
                 "or LEAT_AUTO_REUSE in the variable scope? Originally defined at: %s:%d",
                 name, at.file ? at.file : "(imported)", at.line);
    leat_shape found = leat_variable_shape(v);
    LEAT_REQUIRE(leat_shape_compatible(&shape, &found), INVALID_ARGUMENT,
                 "Trying to share variable %s, but specified shape %s and found shape %s.", name,
                 leat_shape_show(&shape).s, leat_shape_show(&found).s);
    LEAT_REQUIRE(t == leat_variable_dtype(v), INVALID_ARGUMENT,
                 "Trying to share variable %s, but specified dtype %s and found dtype %s.", name,
                 leat_dtype_name(t), leat_dtype_name(leat_variable_dtype(v)));
    return NULL;
}

static leat_status check_new(const char *name, leat_reuse reuse, const leat_variable_spec *spec)
{
    LEAT_REQUIRE(reuse != LEAT_REUSE, NOT_FOUND,
                 "Variable %s does not exist, or was not created with leat_get_variable. Did you "
                 "mean to set .reuse = LEAT_AUTO_REUSE in the variable scope?",
                 name);
    LEAT_REQUIRE(spec->initial.node || leat_shape_known(&spec->shape), INVALID_ARGUMENT,
                 "Shape of a new variable (%s) must be fully defined, but instead was %s.", name,
                 leat_shape_show(&spec->shape).s);
    LEAT_REQUIRE(spec->initial.node || spec->initializer->make, INVALID_ARGUMENT,
                 "An initializer for variable %s of %s is required", name,
                 leat_dtype_name(spec->dtype));
    return NULL;
}

static leat_initializer default_initializer(leat_dtype t)
{
    if (leat_types_has(LEAT_TYPES_FLOATING, t))
        return leat_glorot_uniform_initializer();
    if (leat_types_has(LEAT_TYPES_INTEGER | LEAT_T(BOOL) | LEAT_T(STRING), t))
        return leat_zeros_initializer();
    return (leat_initializer){0};
}

static void regularize(leat_graph *g, const char *name, leat_out v, const leat_regularizer *r)
{
    if (!r->make || !leat_out_ok(v))
        return;
    leat_out loss = {0};
    leat_with_colocate(g, leat_variable_ref(v))
    {
        leat_with_name(g, leat_arena_printf(&g->arena, "%s/Regularizer/", name)) loss =
            r->make(v, r);
    }
    if (loss.node)
        leat_collect(g, LEAT_REGULARIZATION_LOSSES, loss);
}

bool leat_single_exists(leat_graph *g, const char *name)
{
    return slot_for(g, name, false) != NULL;
}

leat_status leat_get_single(leat_graph *g, const leat_variable_wish *w, leat_out *out)
{
    leat_out *found = slot_for(g, w->name, false);
    if (found) {
        LEAT_TRY(check_shared(w->name, *found, w->reuse, w->spec.shape, w->spec.dtype));
        *out = *found;
        return NULL;
    }
    leat_variable_spec spec = w->spec;
    spec.name = w->name;
    LEAT_TRY(check_new(w->name, w->reuse, &spec));
    leat_name_scope_enter(g, NULL); /* variables are named by variable scopes, not by name scopes */
    leat_out v = leat_variable_make(g, &spec);
    regularize(g, w->name, v, &w->regularizer);
    leat_name_scope_leave(g);
    if (leat_out_ok(v))
        *slot_for(g, w->name, true) = v;
    *out = v;
    return NULL;
}

static leat_status check_initial(leat_out initial, leat_shape shape, leat_dtype t)
{
    LEAT_REQUIRE(!initial.node || leat_dtype_base(leat_out_dtype(initial)) == t, INVALID_ARGUMENT,
                 "Initializer type '%s' and explicit dtype '%s' don't match.",
                 leat_dtype_name(leat_dtype_base(leat_out_dtype(initial))), leat_dtype_name(t));
    LEAT_REQUIRE(!initial.node || shape.rank < 0, INVALID_ARGUMENT,
                 "If initializer is a constant, do not specify shape.");
    return NULL;
}

static leat_status not_in_slices(leat_graph *g, const char *name)
{
    const char *first = leat_arena_printf(&g->arena, "%s/part_0", name);
    LEAT_REQUIRE(!leat_single_exists(g, first), INVALID_ARGUMENT,
                 "No partitioner was provided, but a partitioned version of the variable was "
                 "found: %s. Perhaps a variable of the same name was already created with "
                 "partitioning?",
                 first);
    return NULL;
}

/* Like leat_get_variable, but with this reuse; name "" is the scope's own name. */
static leat_status get_variable(leat_graph *g, const char *name, leat_shape shape, leat_reuse reuse,
                                const leat_get_variable_options *o, leat_out *out)
{
    const scope *in = current(g);
    const char *full = in->name[0] ? leat_arena_printf(&g->arena, "%s/%s", in->name, name) : name;
    leat_dtype t = o->dtype                ? o->dtype
                   : o->initial_value.node ? leat_dtype_base(leat_out_dtype(o->initial_value))
                   : in->dtype             ? in->dtype
                                           : LEAT_FLOAT;
    LEAT_TRY(check_initial(o->initial_value, shape, t));
    leat_initializer init = o->initializer.make    ? o->initializer
                            : in->initializer.make ? in->initializer
                                                   : default_initializer(t);
    leat_variable_wish w = {.name = full, .reuse = reuse};
    w.regularizer = o->regularizer.make ? o->regularizer : in->regularizer;
    w.spec = (leat_variable_spec){.initial = o->initial_value, .dtype = t, .shape = shape};
    w.spec.initializer = o->initial_value.node ? NULL : &init;
    w.spec.options = (leat_variable_options){.not_trainable = o->not_trainable,
                                             .use_resource = o->use_resource || in->use_resource,
                                             .any_shape = o->any_shape,
                                             .collections = o->collections};
    const leat_partitioner *p = o->partitioner.slices ? &o->partitioner : &in->partitioner;
    if (p->slices && shape.rank != 0 && name[0])
        return leat_get_partitioned(g, &w, p, out);
    LEAT_TRY(not_in_slices(g, full));
    return leat_get_single(g, &w, out);
}

leat_out leat_get_variable_at(leat_loc at, leat_graph *g, const char *name, leat_shape shape,
                              const leat_get_variable_options *options)
{
    if (!LEAT_USABLE(GRAPH, g))
        return (leat_out){0};
    if (g->status)
        return (leat_out){g->poison, 0};
    leat_loc outer = leat_at_enter(g, at);
    leat_out v;
    leat_status s =
        name ? get_variable(g, name, shape, current(g)->reuse, options, &v)
             : leat_error(INVALID_ARGUMENT, "leat_get_variable: the variable's name is NULL");
    if (s)
        v = leat_graph_fail(g, (leat_loc){0}, s);
    leat_at_leave(g, outer);
    return v;
}

leat_out leat_scope_variable(leat_graph *g, leat_shape shape,
                             const leat_get_variable_options *options)
{
    leat_out v;
    if (g->status)
        return (leat_out){g->poison, 0};
    leat_status s = get_variable(g, "", shape, LEAT_AUTO_REUSE, options, &v);
    return s ? leat_graph_fail(g, (leat_loc){0}, s) : v;
}
