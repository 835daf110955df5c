/* saver.c -- saving and restoring with a session, and which checkpoints are kept. */
#include "train/saver.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "core/alloc.h"
#include "core/arg.h"
#include "core/buffer.h"
#include "core/strbuf.h"
#include "graph/given.h"
#include "io/checkpoint_state.h"
#include "io/event.h"
#include "io/file.h"
#include "io/path.h"
#include "train/input_state.h"
#include "train/train_int.h"

leat_saver *leat_saver_make(leat_graph *g, const leat_saver_options *o)
{
    leat_saver *v = leat_new_object(leat_saver, SAVER);
    v->graph = g;
    int64_t most = leat_given_int_or(&o->given, "max_to_keep", o->max_to_keep, 5);
    v->max_to_keep = most < 0 ? 0 : (int)most;
    v->keep_every_hours = leat_given_or(&o->given, "keep_every_hours", o->keep_every_hours, 10000);
    v->keep_next = leat_wall_time() + v->keep_every_hours * 3600;
    v->sharded = o->sharded;
    v->relative = o->relative_paths;
    return v;
}

leat_saver *leat_saver_new_at(leat_loc at, leat_graph *g, const leat_saver_options *o)
{
    if (!LEAT_USABLE(GRAPH, g))
        return NULL;
    leat_saver *v = leat_saver_make(g, o);
    leat_loc outer = leat_at_enter(g, at);
    leat_saver_build(v, g, o);
    leat_at_leave(g, outer);
    return v;
}

void leat_saver_free(leat_saver *v)
{
    if (!v)
        return;
    if (!LEAT_USABLE(SAVER, v))
        return;
    for (int i = 0; i < v->n_kept; i++)
        free(v->kept[i].path);
    free(v->kept);
    free(v->paths);
    leat_object_free(&v->object);
}

const char *const *leat_saver_checkpoints(const leat_saver *v, int *count_out)
{
    *count_out = 0;
    if (!LEAT_USABLE(SAVER, v))
        return NULL;
    *count_out = v->n_kept;
    return v->paths;
}

/* Adds a checkpoint as the newest; an older entry of the same path is replaced. */
static void keep(leat_saver *v, const char *path, double time)
{
    for (int i = 0; i < v->n_kept; i++)
        if (strcmp(v->kept[i].path, path) == 0) {
            free(v->kept[i].path);
            memmove(&v->kept[i], &v->kept[i + 1], sizeof(*v->kept) * (size_t)(v->n_kept - i - 1));
            v->n_kept--;
            break;
        }
    leat_grow(v->kept, v->n_kept, v->cap_kept);
    v->kept[v->n_kept++] = (leat_kept){leat_xstrdup(path), time};
}

static void list_paths(leat_saver *v)
{
    v->paths = leat_xrealloc(v->paths, sizeof(*v->paths) * (size_t)(v->n_kept + 1));
    for (int i = 0; i < v->n_kept; i++)
        v->paths[i] = v->kept[i].path;
}

/* Removes the oldest checkpoint from the list: it is kept for good, or deleted. */
static void let_go(leat_saver *v, leat_kept old)
{
    if (old.time > v->keep_next)
        v->keep_next += v->keep_every_hours * 3600;
    else
        leat_checkpoint_remove(old.path);
    free(old.path);
}

static leat_status update_state(leat_saver *v, const char *path, const char *latest)
{
    leat_kept old = {0};
    const char *only[] = {path};
    if (v->max_to_keep) {
        keep(v, path, leat_wall_time());
        if (v->n_kept > v->max_to_keep) {
            old = v->kept[0];
            memmove(v->kept, v->kept + 1, sizeof(*v->kept) * (size_t)--v->n_kept);
        }
        list_paths(v);
    }
    char *dir = leat_path_dir(path);
    if (strcmp(dir, ".") == 0 && path[0] != '.') /* paths in the file begin like the given path */
        dir[0] = 0;
    leat_status s = leat_checkpoint_state_write(dir, latest, v->max_to_keep ? v->paths : only,
                                                v->max_to_keep ? v->n_kept : 1, v->relative);
    free(dir);
    if (old.path && !s)
        let_go(v, old);
    else
        free(old.path);
    if (!s)
        leat_checkpoints_sweep(path);
    return s;
}

static leat_status run_save_op(leat_saver *v, leat_session *s, const char *path, char **saved)
{
    leat_tensor *value = NULL, *name;
    LEAT_TRY(leat_tensor_of_string(path, strlen(path), &name));
    leat_status status = leat_session_run(s, LEAT_FEED({v->filename, name}),
                                          LEAT_FETCH({v->save, &value}), LEAT_NO_TARGET);
    leat_tensor_unref(name);
    LEAT_TRY(status);
    const leat_string *text = leat_tensor_data(value);
    *saved = leat_xstrndup(text->data ? text->data : "", text->size);
    leat_tensor_unref(value);
    return NULL;
}

/* Queue runners rest while the position of the input is saved. */
static leat_status run_save(leat_saver *v, leat_session *s, const char *path, char **saved)
{
    if (!v->restore_input.node)
        return run_save_op(v, s, path, saved);
    LEAT_TRY(leat_runners_hold(v->graph, s));
    leat_status status = run_save_op(v, s, path, saved);
    leat_runners_release(v->graph, s);
    return status;
}

static leat_status write_meta(leat_saver *v, const char *path)
{
    leat_strbuf b = {0};
    leat_strbuf_printf(&b, "%s.meta", path);
    leat_status s = leat_meta_graph_write(v->graph, v, b.s);
    leat_strbuf_release(&b);
    return s;
}

leat_status leat_saver_save_with(leat_saver *v, leat_session *s, const char *path, int64_t step,
                                 const leat_save_options *o, char **path_out)
{
    LEAT_CHECK(SAVER, v);
    LEAT_CHECK(SESSION, s);
    LEAT_CHECK_ARG(path);
    const char *latest = o->latest_filename ? o->latest_filename : "checkpoint";
    LEAT_REQUIRE(!strchr(latest, '/'), INVALID_ARGUMENT,
                 "'latest_filename' must not contain path components");
    LEAT_REQUIRE(step >= 0 || v->sharded || strcmp(leat_path_base(path), latest) != 0,
                 INVALID_ARGUMENT, "'latest_filename' collides with 'save_path': '%s' and '%s'",
                 latest, path);
    LEAT_TRY(leat_graph_status(v->graph));
    leat_strbuf name = {0};
    leat_strbuf_puts(&name, path);
    if (step >= 0)
        leat_strbuf_printf(&name, "-%lld", (long long)step);
    char *saved = NULL;
    leat_status status = v->empty ? NULL : run_save(v, s, name.s, &saved);
    if (!status && saved && !o->no_state)
        status = update_state(v, saved, latest);
    if (!status && !o->no_meta_graph)
        status = write_meta(v, name.s);
    if (!status && path_out)
        *path_out = saved ? leat_xstrdup(saved) : leat_strbuf_take(&name);
    leat_strbuf_release(&name);
    free(saved);
    return status;
}

static leat_status run_restore(leat_saver *v, leat_session *s, const char *path,
                               leat_targets targets)
{
    LEAT_TRY(leat_graph_status(v->graph));
    LEAT_REQUIRE(leat_checkpoint_exists(path), INVALID_ARGUMENT,
                 "The passed save_path is not a valid checkpoint: %s", path);
    leat_tensor *name;
    LEAT_TRY(leat_tensor_of_string(path, strlen(path), &name));
    leat_status status =
        leat_session_run(s, LEAT_FEED({v->filename, name}), LEAT_NO_FETCH, targets);
    leat_tensor_unref(name);
    leat_code code = leat_status_code(status);
    const char *why = code == LEAT_NOT_FOUND ? "a Variable name or other graph key that is missing"
                      : code == LEAT_INVALID_ARGUMENT
                          ? "a mismatch between the current graph and the graph"
                          : NULL;
    return why ? leat_status_prefix(
                     status,
                     "Restoring from checkpoint failed. This is most likely due to %s from the "
                     "checkpoint. Please ensure that you have not altered the graph expected based "
                     "on the checkpoint. Original error:\n\n",
                     why)
               : status;
}

leat_status leat_saver_restore_variables(leat_saver *v, leat_session *s, const char *path)
{
    if (v->empty)
        return NULL;
    const leat_out ops[] = {v->restore, v->read_input};
    return run_restore(v, s, path, (leat_targets){ops, v->read_input.node ? 2 : 1});
}

leat_status leat_saver_restore_input(leat_saver *v, leat_session *s, const char *path)
{
    return v->restore_input.node ? run_restore(v, s, path, LEAT_TARGET(v->restore_input)) : NULL;
}

leat_status leat_saver_restore(leat_saver *v, leat_session *s, const char *path)
{
    LEAT_CHECK(SAVER, v);
    LEAT_CHECK(SESSION, s);
    LEAT_CHECK_ARG(path);
    LEAT_TRY(leat_saver_restore_variables(v, s, path));
    return leat_saver_restore_input(v, s, path);
}

void leat_saver_go_on(leat_saver *v, char *const *paths, size_t n)
{
    double now = leat_wall_time();
    while (n-- > 0)
        keep(v, paths[n], now);
    list_paths(v);
}

leat_status leat_saver_recover(leat_saver *v, const char *dir)
{
    LEAT_CHECK(SAVER, v);
    LEAT_CHECK_ARG(dir);
    char **paths;
    size_t n;
    leat_checkpoints_find(dir, &paths, &n);
    leat_saver_go_on(v, paths, n);
    leat_paths_free(paths, n);
    return NULL;
}
