/* init_checkpoint.c -- variables whose initial values are read from a checkpoint of another model:
 * init_from_checkpoint and warm_start. Such a variable W has a second assignment, named
 * W/CheckpointAssign, which leat_variable_find takes for the one that initializes it. */
#include <leat/saver.h>

#include <regex.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "core/alloc.h"
#include "core/log.h"
#include "core/strbuf.h"
#include "graph/device_name.h"
#include "io/slice.h"
#include "runtime/device_kind.h"
#include "train/train_int.h"

typedef struct source {
    leat_graph *g;
    leat_checkpoint *c;
    leat_out *vars; /* all variables that may get values */
    int n;
} source;

/* The name of the tensor that holds the variable in a checkpoint: of a slice that of the whole. */
static const char *saved_name(leat_out v, const char **slice_out)
{
    const char *whole = leat_variable_name(v);
    *slice_out = leat_variable_slice(v, &whole);
    return whole;
}

/* ---- One variable ---- */

static leat_status check_fit(const source *s, leat_out v, const char *slice,
                             const leat_checkpoint_entry *e)
{
    leat_shape shape = leat_variable_shape(v), part;
    leat_slice where;
    const leat_dtype t = leat_variable_dtype(v);
    if (slice)
        LEAT_TRY(leat_slice_parse(slice, strlen(slice), &shape, &where, &part));
    bool same = shape.rank < 0 || shape.rank == e->shape.rank;
    for (int i = 0; same && i < shape.rank; i++)
        same = shape.dim[i] < 0 || shape.dim[i] == e->shape.dim[i];
    LEAT_REQUIRE(same, INVALID_ARGUMENT,
                 "Shape of variable %s (%s) doesn't match with shape of tensor %s (%s) from "
                 "checkpoint %s",
                 leat_variable_name(v), leat_shape_show(&shape).s, e->name,
                 leat_shape_show(&e->shape).s, leat_checkpoint_path(s->c));
    LEAT_REQUIRE(t == e->dtype, INVALID_ARGUMENT,
                 "Variable %s is %s, but tensor %s in checkpoint %s is %s", leat_variable_name(v),
                 leat_dtype_name(t), e->name, leat_checkpoint_path(s->c),
                 leat_dtype_name(e->dtype));
    return NULL;
}

/* RestoreV2 runs on the CPU of the variable's task. */
static leat_status host_of(leat_out v, char *out, size_t size)
{
    leat_device_name d;
    LEAT_TRY(leat_device_name_parse(leat_variable_ref(v).node->device, &d));
    snprintf(d.type, sizeof(d.type), "%s", leat_host_kind()->type);
    d.id = 0;
    leat_device_name_text(&d, out, size);
    return NULL;
}

static leat_status read_from(const source *s, leat_out v, const char *tensor)
{
    const char *slice = NULL;
    char host[128];
    saved_name(v, &slice);
    const leat_checkpoint_entry *e = leat_checkpoint_find(s->c, tensor);
    LEAT_REQUIRE(e, NOT_FOUND, "Tensor %s, for the variable %s, is not found in checkpoint %s",
                 tensor, leat_variable_name(v), leat_checkpoint_path(s->c));
    LEAT_TRY(check_fit(s, v, slice, e));
    LEAT_TRY(host_of(v, host, sizeof(host)));
    const leat_dtype t = leat_variable_dtype(v);
    const leat_out self = leat_variable_ref(v);
    leat_out value = {0};
    leat_strbuf scope = {0};
    leat_strbuf_printf(&scope, "%s/", leat_variable_name(v));
    leat_name_scope_enter(s->g, scope.s); /* a slash at the end: this scope, and no new one */
    leat_with_device(s->g, host)
    {
        leat_out names = leat_string_vector(s->g, &e->name, 1);
        leat_out slices = leat_string_vector(s->g, &(const char *){slice ? slice : ""}, 1);
        value =
            leat_op(s->g, "RestoreV2", leat_in(leat_string_const(s->g, leat_checkpoint_path(s->c))),
                    leat_in(names), leat_in(slices), leat_attr_types("dtypes", &t, 1),
                    leat_name("checkpoint_initializer"));
    }
    leat_with_device(s->g, self.node->device)
        leat_op(s->g, leat_variable_is_resource(v) ? "AssignVariableOp" : "Assign", leat_in(self),
                leat_in(value), leat_name("CheckpointAssign"));
    leat_name_scope_leave(s->g);
    leat_strbuf_release(&scope);
    LEAT_LOG(INFO, "Initialize variable %s from checkpoint %s with %s", leat_variable_name(v),
             leat_checkpoint_path(s->c), tensor);
    return leat_graph_status(s->g);
}

/* ---- Maps ---- */

/* Reads the variable `to`, or its slices. Sets *found_out if there is one. */
static leat_status map_variable(const source *s, const leat_checkpoint_map *m, bool *found_out)
{
    *found_out = false;
    for (int i = 0; i < s->n; i++) {
        const char *slice = NULL, *whole = saved_name(s->vars[i], &slice);
        if (strcmp(whole, m->to) != 0 && strcmp(leat_variable_name(s->vars[i]), m->to) != 0)
            continue;
        *found_out = true;
        LEAT_TRY(read_from(s, s->vars[i], m->from));
    }
    return NULL;
}

static leat_status no_variable(const source *s, const char *name)
{
    const char **names = leat_new_array(const char *, s->n + 1);
    for (int i = 0; i < s->n; i++)
        names[i] = leat_variable_name(s->vars[i]);
    const char *near = leat_nearest_name(name, names, s->n);
    free(names);
    return leat_error(NOT_FOUND,
                      "The graph has no variable %s%s%s%s. Scopes end with a slash on both sides: "
                      "{\"old/\", \"new/\"}",
                      name, near ? "; did you mean " : "", near ? near : "", near ? "?" : "");
}

/* "old/" to "new/": the variable new/w is read from old/w. "/" is the scope of all names. */
static leat_status map_scope(const source *s, const leat_checkpoint_map *m)
{
    const char *from = strcmp(m->from, "/") ? m->from : "", *to = strcmp(m->to, "/") ? m->to : "";
    bool any = false;
    leat_status bad = NULL;
    for (int i = 0; i < s->n && !bad; i++) {
        const char *slice = NULL, *whole = saved_name(s->vars[i], &slice);
        leat_strbuf tensor = {0};
        if (strncmp(whole, to, strlen(to)) != 0)
            continue;
        any = true;
        leat_strbuf_printf(&tensor, "%s%s", from, whole + strlen(to));
        bad = read_from(s, s->vars[i], tensor.s);
        leat_strbuf_release(&tensor);
    }
    LEAT_REQUIRE(bad || any, NOT_FOUND, "The graph has no variable in the scope %s", m->to);
    return bad;
}

static bool is_scope(const char *name)
{
    return *name && name[strlen(name) - 1] == '/';
}

static leat_status map_all(const source *s, const leat_checkpoint_map *map, int n)
{
    for (int i = 0; i < n; i++) {
        bool found;
        LEAT_REQUIRE(map[i].from && map[i].to, INVALID_ARGUMENT,
                     "Entry %d of the map has no name on one side", i);
        LEAT_REQUIRE(is_scope(map[i].from) == is_scope(map[i].to), INVALID_ARGUMENT,
                     "A scope is mapped to a scope, a variable to a variable: not %s to %s",
                     map[i].from, map[i].to);
        if (is_scope(map[i].to)) {
            LEAT_TRY(map_scope(s, &map[i]));
            continue;
        }
        LEAT_TRY(map_variable(s, &map[i], &found));
        if (!found)
            return no_variable(s, map[i].to);
    }
    return NULL;
}

leat_status leat_init_from_checkpoint_at(leat_loc at, leat_graph *g, const char *path,
                                         const leat_checkpoint_map *map, int n)
{
    LEAT_CHECK(GRAPH, g);
    source s = {.g = g};
    LEAT_TRY(leat_checkpoint_open(path, &s.c));
    s.vars = leat_global_variables(g, &s.n);
    leat_loc outer = leat_at_enter(g, at);
    leat_status bad = map ? map_all(&s, map, n) : map_scope(&s, &(leat_checkpoint_map){"/", "/"});
    leat_at_leave(g, outer);
    free(s.vars);
    leat_checkpoint_free(s.c);
    return bad;
}

/* ---- Warm start ---- */

static const char *renamed(const leat_warm_start_options *o, const char *name)
{
    for (int i = 0; i < o->n_renames; i++)
        if (strcmp(o->renames[i].to, name) == 0)
            return o->renames[i].from;
    return name;
}

/* Reads the variables whose names begin with what `which` matches. */
static leat_status warm(const source *s, const leat_warm_start_options *o, const regex_t *which)
{
    int matched = 0;
    for (int i = 0; i < s->n; i++) {
        const char *slice = NULL, *whole = saved_name(s->vars[i], &slice);
        regmatch_t at;
        if (which && (regexec(which, whole, 1, &at, 0) != 0 || at.rm_so != 0))
            continue;
        matched++;
        LEAT_TRY(read_from(s, s->vars[i], renamed(o, whole)));
    }
    LEAT_REQUIRE(matched, NOT_FOUND, "No trainable variable matches \"%s\"",
                 o->vars ? o->vars : "");
    return NULL;
}

leat_status leat_warm_start_with(leat_graph *g, const char *path, const leat_warm_start_options *o)
{
    LEAT_CHECK(GRAPH, g);
    source s = {.g = g};
    regex_t which;
    LEAT_REQUIRE(!o->vars || regcomp(&which, o->vars, REG_EXTENDED) == 0, INVALID_ARGUMENT,
                 "leat_warm_start: .vars is no regular expression: \"%s\"", o->vars);
    leat_status bad = leat_checkpoint_open(path, &s.c);
    if (!bad) {
        s.vars = leat_trainable_variables(g, &s.n);
        leat_loc outer = leat_at_enter(g, o->given.at);
        bad = warm(&s, o, o->vars ? &which : NULL);
        leat_at_leave(g, outer);
        free(s.vars);
        leat_checkpoint_free(s.c);
    }
    if (o->vars)
        regfree(&which);
    return bad;
}
