/* checkpoint_find.c -- finds the checkpoints of a directory, newest first, even if its state file
 * is damaged, and removes incomplete files that killed writers have left in it. */
#include <ctype.h>
#include <stdlib.h>
#include <string.h>

#include "core/alloc.h"
#include "core/log.h"
#include "core/strbuf.h"
#include "io/checkpoint_state.h"
#include "io/file.h"
#include "io/path.h"
#include "proto/wire.h"

int64_t leat_checkpoint_step(const char *path)
{
    const char *dash = path ? strrchr(path, '-') : NULL;
    char *end = NULL;
    if (!dash || !isdigit((unsigned char)dash[1]))
        return -1;
    int64_t step = strtoll(dash + 1, &end, 10);
    return *end ? -1 : step;
}

/* ---- What a directory has ---- */
static bool ends_with(const char *name, const char *end)
{
    size_t n = strlen(name), m = strlen(end);
    return n > m && strcmp(name + n - m, end) == 0;
}

static int newest_first(const void *a, const void *b)
{
    int64_t x = leat_checkpoint_step(*(char *const *)a),
            y = leat_checkpoint_step(*(char *const *)b);
    return x != y ? (x < y) - (x > y) : strcmp(*(char *const *)a, *(char *const *)b);
}

/* Gives the checkpoints that have an index file in the directory, newest step first. */
static void list_indexes(const char *dir, char ***paths_out, size_t *n_out)
{
    char **names = NULL;
    size_t n = 0, found = 0;
    leat_status_free(leat_dir_list(*dir ? dir : ".", &names, &n));
    for (size_t i = 0; i < n; i++) {
        char *name = names[i];
        if (ends_with(name, ".index")) {
            name[strlen(name) - strlen(".index")] = 0;
            names[found++] = leat_path_join(dir, name);
        }
        free(name);
    }
    if (found)
        qsort(names, found, sizeof(*names), newest_first);
    *paths_out = names;
    *n_out = found;
}

/* ---- What the state file of a directory lists ---- */
static void add_existing(const char *path, char **v, size_t *n)
{
    for (size_t i = 0; i < *n; i++)
        if (strcmp(v[i], path) == 0)
            return;
    if (leat_checkpoint_exists(path))
        v[(*n)++] = leat_xstrdup(path);
}

static void list_state(const char *dir, const Leat__CheckpointState *state, char ***paths_out,
                       size_t *n_out)
{
    const char *newest = state->model_checkpoint_path;
    size_t n = 0, all = state->n_all_model_checkpoint_paths;
    char **v = leat_new_array(char *, all + 1);
    add_existing(newest, v, &n);
    for (size_t i = all; i-- > 0;)
        add_existing(state->all_model_checkpoint_paths[i], v, &n);
    if (!n || strcmp(v[0], newest) != 0)
        LEAT_LOG(WARNING, "%s/checkpoint names %s, which is not there: %s%s", dir, newest,
                 n ? "the one before is used, " : "no other checkpoint that it names is there",
                 n ? v[0] : "");
    *paths_out = v;
    *n_out = n;
}

void leat_checkpoints_find(const char *dir, char ***paths_out, size_t *n_out)
{
    Leat__CheckpointState *state;
    leat_status s = leat_checkpoint_state_read(dir, NULL, &state);
    if (!s) {
        list_state(dir, state, paths_out, n_out);
        leat_proto_free(state);
        return;
    }
    list_indexes(dir, paths_out, n_out);
    if (leat_status_code(s) == LEAT_NOT_FOUND) {
        /* Checkpoints without a state file are not used, because users of TensorFlow remove the
         * file "checkpoint" to start a training from the beginning. */
        if (*n_out)
            LEAT_LOG(WARNING,
                     "%s has no file \"checkpoint\": its checkpoints, the newest of them %s, are "
                     "not used",
                     dir, (*paths_out)[0]);
        leat_paths_free(*paths_out, *n_out);
        *paths_out = NULL;
        *n_out = 0;
    } else {
        LEAT_LOG(WARNING, "The list of checkpoints in %s is damaged (%s): %s%s", dir,
                 leat_status_message(s),
                 *n_out ? "the newest that lies there is used, " : "none lies there",
                 *n_out ? (*paths_out)[0] : "");
    }
    leat_status_free(s);
}

char *leat_latest_checkpoint(const char *dir)
{
    char **paths, *newest = NULL;
    size_t n;
    if (!dir)
        return NULL;
    leat_checkpoints_find(dir, &paths, &n);
    if (n)
        newest = leat_xstrdup(paths[0]);
    leat_paths_free(paths, n);
    return newest;
}

/* ---- What killed writers have left ---- */
/* True if `name` is a file that a killed writer has left: a temporary file, or a .data or .meta
 * file without an index, of a checkpoint base-STEP whose STEP is smaller than `step`. */
static bool left_over(const char *dir, const char *base, const char *name, int64_t step)
{
    size_t n = strlen(base);
    if (strncmp(name, base, n) != 0 || name[n] != '-' || !isdigit((unsigned char)name[n + 1]))
        return false;
    char *end;
    if (strtoll(name + n + 1, &end, 10) >= step)
        return false;
    if (strstr(end, ".tempstate") || strncmp(end, "_temp_", 6) == 0)
        return true;
    if (strncmp(end, ".data-", 6) != 0 && strcmp(end, ".meta") != 0)
        return false;
    leat_strbuf index = {0};
    leat_strbuf_printf(&index, "%s%s%.*s.index", dir, *dir ? "/" : "", (int)(end - name), name);
    bool whole = leat_path_exists(index.s);
    leat_strbuf_release(&index);
    return !whole;
}

static void remove_tree(const char *path)
{
    char **names = NULL;
    size_t n = 0;
    leat_status s = leat_dir_list(path, &names, &n);
    leat_status_free(s);
    if (s) {
        leat_status_free(leat_path_remove(path));
        return;
    }
    for (size_t i = 0; i < n; i++) {
        char *inside = leat_path_join(path, names[i]);
        leat_status_free(leat_path_remove(inside));
        free(inside);
    }
    leat_paths_free(names, n);
    leat_status_free(leat_path_remove_dir(path));
}

void leat_checkpoints_sweep(const char *path)
{
    int64_t step = leat_checkpoint_step(path);
    if (step < 0)
        return;
    char *dir = leat_path_dir(path), *base = leat_xstrdup(leat_path_base(path));
    *strrchr(base, '-') = 0;
    char **names = NULL;
    size_t n = 0;
    leat_status_free(leat_dir_list(dir, &names, &n));
    for (size_t i = 0; i < n; i++)
        if (left_over(dir, base, names[i], step) ||
            strncmp(names[i], "checkpoint.tempstate", 20) == 0) {
            char *file = leat_path_join(dir, names[i]);
            LEAT_LOG(INFO, "Removes %s, which a writer that was killed has left", file);
            remove_tree(file);
            free(file);
        }
    leat_paths_free(names, n);
    free(base);
    free(dir);
}
