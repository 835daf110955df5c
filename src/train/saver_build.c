/* saver_build.c -- the nodes of a saver, as TensorFlow's Saver builds them, name by name:
 * save/Const is fed with a path, save/SaveV2 writes, save/RestoreV2 and save/Assign... restore. The
 * sharded form has these nodes for each device; the devices' files are merged at the end. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/random.h>

#include "core/alloc.h"
#include "graph/device_name.h"
#include "runtime/device_kind.h"
#include "train/input_state.h"
#include "train/saver.h"
#include "train/train_int.h"

typedef struct item { /* a variable, or a part of the input, to be saved */
    leat_out var, value;
    const char *name, *slice;
    bool input;           /* restored with the input's position */
    leat_input_part part; /* of a handle; part.save is NULL for a variable */
    char device[128];     /* of the variable */
    char host[128];       /* the CPU device of the variable's task */
} item;

/* ---- The variables to save ---- */

/* The order in which TensorFlow sorts variables: by "w/part_1:0", so that part 10 comes before part
 * 1. */
static int by_variable(const char *x, const char *y)
{
    while (*x && *x == *y)
        x++, y++;
    return (*x ? *x : ':') - (*y ? *y : ':');
}

static int by_name(const void *a, const void *b)
{
    const item *x = a, *y = b;
    int c = strcmp(x->name, y->name);
    return c ? c : by_variable(x->var.node->name, y->var.node->name);
}

static int by_device(const void *a, const void *b)
{
    const item *x = a, *y = b;
    int c = strcmp(x->device, y->device);
    return c ? c : by_name(a, b);
}

static leat_status item_place(item *i)
{
    leat_device_name d;
    LEAT_TRY(leat_device_name_parse(i->var.node->device, &d));
    leat_device_name_text(&d, i->device, sizeof(i->device));
    snprintf(d.type, sizeof(d.type), "%s", leat_host_kind()->type);
    d.id = 0;
    leat_device_name_text(&d, i->host, sizeof(i->host));
    return NULL;
}

static leat_status item_set(item *i, const leat_saver_var *v)
{
    leat_variable_nodes nodes;
    LEAT_REQUIRE(v->var.node && leat_variable_find(v->var, &nodes), INVALID_ARGUMENT,
                 "%s cannot be saved: it is not a variable",
                 v->var.node ? v->var.node->name : "NULL");
    const char *whole = leat_variable_name(v->var), *slice = v->slice;
    if (!slice) /* a slice of a partitioned variable is already known */
        slice = leat_variable_slice(v->var, &whole);
    i->var = leat_variable_ref(v->var);
    i->value = nodes.resource || slice ? leat_variable_value(v->var) : i->var;
    i->name = v->name ? v->name : whole;
    i->slice = slice ? slice : "";
    return item_place(i);
}

/* The key is the one that TensorFlow gives to the state of an iterator. */
static leat_status item_set_part(leat_graph *g, item *i, const leat_input_part *p)
{
    i->input = true;
    if (!p->save)
        return item_set(i, &(leat_saver_var){.var = p->of});
    i->part = *p;
    i->var = p->of;
    i->slice = "";
    i->name = leat_arena_printf(&g->arena, "%s:%d-state", p->of.node->name, p->of.index);
    return item_place(i);
}

/* Adds what has a position in the graph's input to the n items. A counter of epochs may be among
 * the variables already, and two counters may be one. */
static leat_status add_input(leat_graph *g, item **items, int *n)
{
    leat_input_part *parts;
    int n_parts;
    leat_status s = NULL;
    LEAT_TRY(leat_input_parts(g, &parts, &n_parts));
    *items = leat_xrealloc(*items, sizeof(**items) * (size_t)(*n + n_parts + 1));
    for (int i = 0; i < n_parts && !s; i++) {
        item *new = &(*items)[*n];
        *new = (item){0};
        s = item_set_part(g, new, &parts[i]);
        bool there = false;
        for (int j = 0; j < *n && !s; j++)
            there |= (*items)[j].var.node == new->var.node;
        *n += !s && !there;
    }
    free(parts);
    return s;
}

static leat_status items_of(leat_graph *g, const leat_saver_options *o, item **out, int *n_out)
{
    int n = o->n_vars;
    leat_saver_var *all = NULL;
    if (!o->vars) {
        leat_out *vars = leat_global_variables(g, &n);
        all = leat_new_array(leat_saver_var, n + 1);
        for (int i = 0; i < n; i++)
            all[i].var = vars[i];
        free(vars);
    }
    const leat_saver_var *v = all ? all : o->vars;
    item *items = leat_new_array(item, n + 1);
    leat_status s = NULL;
    for (int i = 0; i < n && !s; i++)
        s = item_set(&items[i], &v[i]);
    free(all);
    if (!s && !o->vars && leat_input_saved(g))
        s = add_input(g, &items, &n);
    if (!s)
        qsort(items, (size_t)n, sizeof(*items), by_name);
    for (int i = 1; i < n && !s; i++)
        if (strcmp(items[i - 1].name, items[i].name) == 0 &&
            strcmp(items[i - 1].slice, items[i].slice) == 0)
            s = leat_error(INVALID_ARGUMENT, "At least two variables have the same name: %s",
                           items[i].name);
    if (!s && n == 0 && !o->allow_empty)
        s = leat_error(INVALID_ARGUMENT, "No variables to save");
    *out = items;
    *n_out = n;
    return s;
}

/* ---- Constants ---- */
static leat_out strings(leat_graph *g, const char *const *v, int n, const char *name)
{
    leat_tensor *t = NULL;
    leat_status s = leat_tensor_new(LEAT_STRING, n < 0 ? leat_shape() : leat_shape(n), &t);
    if (s)
        return leat_graph_fail(g, (leat_loc){0}, s);
    for (int i = 0; i < (n < 0 ? 1 : n) && !s; i++)
        if (!leat_string_set((leat_string *)leat_tensor_mutable(t) + i, v[i], strlen(v[i])))
            s = leat_error(RESOURCE_EXHAUSTED, "no memory for the name %s", v[i]);
    if (s)
        leat_graph_fail(g, (leat_loc){0}, s);
    leat_out c = leat_op(g, "Const", leat_attr_tensor("value", t),
                         leat_attr_type("dtype", LEAT_STRING), leat_name(name));
    leat_tensor_unref(t);
    return c;
}

/* The constants tensor_names and shape_and_slices of some items, in the open scope. */
static void names_of(leat_graph *g, const item *items, int n, leat_out *names, leat_out *slices)
{
    const char **v = leat_new_array(const char *, n + 1);
    for (int i = 0; i < n; i++)
        v[i] = items[i].name;
    *names = strings(g, v, n, "tensor_names");
    for (int i = 0; i < n; i++)
        v[i] = items[i].slice;
    *slices = strings(g, v, n, "shape_and_slices");
    free(v);
}

/* ---- Saving ---- */

/* Writes items to a path; the output is the path, after it was written. */
static leat_out save_items(leat_graph *g, leat_out path, const item *items, int n)
{
    leat_out names, slices, saved = {0}, after = {0};
    leat_out *values = leat_new_array(leat_out, n + 1);
    for (int i = 0; i < n; i++)
        values[i] = items[i].value;
    leat_with_name(g, "SaveV2")
    {
        names_of(g, items, n, &names, &slices);
        saved = leat_op(g, "SaveV2", leat_in(path), leat_in(names), leat_in(slices),
                        leat_ins(values, n), leat_name(leat_name_scope(g)));
    }
    free(values);
    leat_with_name(g, "control_dependency") leat_with_colocate(g, path) after =
        leat_op(g, "Identity", leat_in(path), leat_after(saved), leat_name(leat_name_scope(g)));
    return after;
}

/* "_temp_4f0a.../part": constant in all runs of this graph, and different from other graphs'. */
static leat_out temporary_path(leat_graph *g, leat_out path)
{
    unsigned char random[16];
    char text[64] = "_temp_";
    if (getrandom(random, sizeof(random), 0) != (ssize_t)sizeof(random))
        memset(random, 0, sizeof(random));
    for (size_t i = 0; i < sizeof(random); i++)
        snprintf(text + 6 + 2 * i, 3, "%02x", random[i]);
    strcat(text, "/part");
    leat_out y = {0};
    leat_with_name(g, "StringJoin")
    {
        const char *suffix = text;
        leat_out part[] = {path, strings(g, &suffix, -1, "inputs_1")};
        y = leat_op(g, "StringJoin", leat_ins(part, 2), leat_name(leat_name_scope(g)));
    }
    return y;
}

static leat_out shard_path(leat_graph *g, leat_out base, int shard, leat_out n_shards)
{
    leat_out y = {0};
    leat_with_name(g, "ShardedFilename")
    {
        leat_out i = leat_py_number(g, LEAT_INT32, shard, "shard");
        y = leat_op(g, "ShardedFilename", leat_in(base), leat_in(i), leat_in(n_shards),
                    leat_name(leat_name_scope(g)));
    }
    return y;
}

static leat_out merge(leat_graph *g, const leat_out *paths, int n, leat_out path)
{
    leat_out merged = {0};
    leat_with_name(g, "MergeV2Checkpoints")
    {
        leat_out all = leat_op(g, "Pack", leat_ins(paths, n), leat_name("checkpoint_prefixes"));
        merged = leat_op(g, "MergeV2Checkpoints", leat_in(all), leat_in(path),
                         leat_name(leat_name_scope(g)));
    }
    return leat_op(g, "Identity", leat_in(path), leat_after(merged), leat_name("Identity"));
}

/* The index of the first item of the next device. Items are sorted by device. */
static int device_end(const item *items, int begin, int n)
{
    int end = begin;
    while (end < n && strcmp(items[end].device, items[begin].device) == 0)
        end++;
    return end;
}

static int device_count(const item *items, int n)
{
    int count = 0;
    for (int i = 0; i < n; i = device_end(items, i, n))
        count++;
    return count;
}

static leat_out save_sharded(leat_graph *g, leat_out path, const item *items, int n)
{
    int shards = device_count(items, n), shard = 0;
    leat_out base = temporary_path(g, path);
    leat_out n_shards = leat_py_number(g, LEAT_INT32, shards, "num_shards");
    leat_out *paths = leat_new_array(leat_out, shards + 1);
    leat_out *saved = leat_new_array(leat_out, shards + 1), y = {0};
    const item *last = items;
    for (int i = 0; i < n; i = device_end(items, i, n), shard++) {
        last = &items[i];
        leat_device_enter(g, items[i].host);
        paths[shard] = shard_path(g, base, shard, n_shards);
        saved[shard] = save_items(g, paths[shard], &items[i], device_end(items, i, n) - i);
        leat_device_leave(g);
    }
    leat_control_enter(g, saved, shards);
    leat_device_enter(g, last->host);
    y = merge(g, paths, shards, path);
    leat_device_leave(g);
    leat_control_leave(g);
    free(paths);
    free(saved);
    return y;
}

/* ---- Restoring ---- */
static leat_out assign(leat_graph *g, const item *i, leat_out value)
{
    leat_out y = {0};
    if (i->part.restore) {
        leat_with_colocate(g, i->var) y =
            leat_op(g, i->part.restore, leat_in(i->var), leat_in(value));
        return leat_done(y);
    }
    if (leat_variable_is_resource(i->var)) {
        leat_with_device(g, i->device)
        {
            leat_out x = leat_op(g, "Identity", leat_in(value), leat_name("Identity"));
            y = leat_op(g, "AssignVariableOp", leat_in(i->var), leat_in(x));
        }
        return leat_done(y);
    }
    leat_shape shape = leat_variable_shape(i->var);
    return leat_op(g, "Assign", leat_in(i->var), leat_in(value),
                   leat_attr_bool("validate_shape", leat_shape_known(&shape)));
}

/* read_out, unless it is NULL, becomes the op that reads. */
static leat_out restore_items(leat_graph *g, leat_out path, const item *items, int n,
                              const char *name, leat_out *read_out)
{
    leat_out names, slices, read = {0};
    leat_dtype *types = leat_new_array(leat_dtype, n + 1);
    leat_out *done = leat_new_array(leat_out, n + 1);
    for (int i = 0; i < n; i++)
        types[i] = items[i].part.save ? items[i].part.state : leat_variable_dtype(items[i].var);
    leat_with_device(g, "/cpu:0") leat_with_name(g, "RestoreV2")
    {
        names_of(g, items, n, &names, &slices);
        read = leat_op(g, "RestoreV2", leat_in(path), leat_in(names), leat_in(slices),
                       leat_attr_types("dtypes", types, n), leat_name(leat_name_scope(g)));
    }
    for (int i = 0; i < n; i++)
        done[i] = assign(g, &items[i], leat_output(read, i));
    leat_out y = leat_group_at((leat_loc){0}, g, done, n, name);
    if (read_out)
        *read_out = leat_done(read);
    free(types);
    free(done);
    return leat_done(y);
}

static leat_out restore_sharded(leat_graph *g, leat_out path, const item *items, int n)
{
    leat_out *done = leat_new_array(leat_out, n + 1);
    int shard = 0;
    for (int i = 0; i < n; i = device_end(items, i, n)) {
        leat_device_enter(g, items[i].device);
        done[shard++] =
            restore_items(g, path, &items[i], device_end(items, i, n) - i, "restore_shard", NULL);
        leat_device_leave(g);
    }
    leat_out y = leat_group_at((leat_loc){0}, g, done, shard, "restore_all");
    free(done);
    return leat_done(y);
}

/* The items that are input, or those that are not, in their order; gives their number. */
static int items_where(const item *items, int n, bool input, item *to)
{
    int k = 0;
    for (int i = 0; i < n; i++)
        if (items[i].input == input)
            to[k++] = items[i];
    return k;
}

/* Variables are restored by v->restore, as in TensorFlow, the position of the input by
 * v->restore_input; v->read_input only reads it. */
static void build_restore(leat_saver *v, leat_graph *g, bool sharded, const item *items, int n)
{
    item *some = leat_new_array(item, n + 1);
    int k = items_where(items, n, false, some);
    v->restore = sharded ? restore_sharded(g, v->filename, some, k)
                         : restore_items(g, v->filename, some, k, "restore_all", NULL);
    k = items_where(items, n, true, some);
    if (k)
        v->restore_input =
            restore_items(g, v->filename, some, k, LEAT_RESTORE_INPUT, &v->read_input);
    free(some);
}

static void build(leat_saver *v, leat_graph *g, const leat_saver_options *o, item *items, int n)
{
    const char *filename = o->filename ? o->filename : "model";
    leat_name_scope_enter(g, o->name ? o->name : "save");
    leat_out input = strings(g, &filename, -1, "filename/input");
    leat_out path = leat_placeholder_with_default(input, leat_shape(), leat_name("filename"));
    v->filename = leat_placeholder_with_default(path, leat_shape(), leat_name("Const"));
    for (int i = 0; i < n; i++)
        if (items[i].part.save)
            leat_with_colocate(g, items[i].var) items[i].value =
                leat_op(g, items[i].part.save, leat_in(items[i].var));
    if (o->sharded)
        qsort(items, (size_t)n, sizeof(*items), by_device);
    v->save =
        o->sharded ? save_sharded(g, v->filename, items, n) : save_items(g, v->filename, items, n);
    build_restore(v, g, o->sharded, items, n);
    leat_name_scope_leave(g);
    if (v->restore_input.node)
        leat_runners_prepare(g);
}

void leat_saver_build(leat_saver *v, leat_graph *g, const leat_saver_options *o)
{
    item *items;
    int n;
    leat_status s = items_of(g, o, &items, &n);
    if (s)
        leat_graph_fail(g, (leat_loc){0}, s);
    v->empty = n == 0;
    if (!s && n)
        build(v, g, o, items, n);
    free(items);
}
