/* checkpoint_state.c -- the text file "checkpoint", as TensorFlow writes it, replaced
 * atomically. */
#include "io/checkpoint_state.h"

#include <stdlib.h>
#include <string.h>

#include "core/alloc.h"
#include "core/strbuf.h"
#include "io/bundle.h"
#include "io/file.h"
#include "io/path.h"
#include "proto/text.h"

/* A relative path in the file, made relative to the current directory. */
static void from_here(const char *dir, char **path)
{
    if (leat_path_absolute(*path))
        return;
    char *full = leat_path_join(dir, *path);
    free(*path);
    *path = full;
}

leat_status leat_checkpoint_state_read(const char *dir, const char *name,
                                       Leat__CheckpointState **out)
{
    char *path = leat_path_join(dir, name ? name : "checkpoint"), *text = NULL;
    size_t n = 0;
    Leat__CheckpointState *state = NULL;
    leat_status s = leat_file_read(path, &text, &n);
    if (!s)
        s = leat_status_prefix(LEAT_FROM_TEXT(checkpoint_state, text, n, &state), "%s: ", path);
    if (!s && (!state->model_checkpoint_path || !*state->model_checkpoint_path))
        s = leat_error(INVALID_ARGUMENT, "Invalid checkpoint state loaded from %s", dir);
    free(text);
    free(path);
    if (s) {
        leat_proto_free(state);
        return s;
    }
    from_here(dir, &state->model_checkpoint_path);
    for (size_t i = 0; i < state->n_all_model_checkpoint_paths; i++)
        from_here(dir, &state->all_model_checkpoint_paths[i]);
    *out = state;
    return NULL;
}

/* The path in the form that is written to the file. */
static char *from_dir(const char *dir, const char *path, bool relative)
{
    size_t n = strlen(dir);
    bool below = n && strncmp(path, dir, n) == 0 && (path[n] == '/' || dir[n - 1] == '/');
    if (below && (relative || *dir != '/'))
        path += n;
    else
        below = false;
    while (below && *path == '/')
        path++;
    return (char *)path;
}

leat_status leat_checkpoint_state_write(const char *dir, const char *name, const char *const *paths,
                                        int n, bool relative)
{
    Leat__CheckpointState state = LEAT__CHECKPOINT_STATE__INIT;
    char **all = leat_new_array(char *, n ? n : 1);
    for (int i = 0; i < n; i++)
        all[i] = from_dir(dir, paths[i], relative);
    state.model_checkpoint_path = n ? all[n - 1] : "";
    state.n_all_model_checkpoint_paths = (size_t)n;
    state.all_model_checkpoint_paths = all;
    leat_strbuf text = {0};
    leat_proto_to_text(&state, &text);
    char *path = leat_path_join(dir, name ? name : "checkpoint");
    leat_status s =
        n && strcmp(path, paths[n - 1]) == 0
            ? leat_error(INVALID_ARGUMENT,
                         "Save path '%s' conflicts with path used for checkpoint state.  Please "
                         "use a different save path.",
                         path)
            : leat_file_write(path, text.s, text.n);
    free(path);
    free(all);
    leat_strbuf_release(&text);
    return s;
}

static void remove_matches(const char *prefix, const char *pattern)
{
    leat_strbuf b = {0};
    /* Escapes characters of the name that have a meaning in patterns. */
    for (const char *p = prefix; *p; p++) {
        if (strchr("*?[\\", *p))
            leat_strbuf_putc(&b, '\\');
        leat_strbuf_putc(&b, *p);
    }
    leat_strbuf_puts(&b, pattern);
    char **found = NULL;
    size_t n = 0;
    leat_status_free(leat_path_match(leat_strbuf_text(&b), &found, &n));
    for (size_t i = 0; i < n; i++)
        leat_status_free(leat_path_remove(found[i]));
    leat_paths_free(found, n);
    leat_strbuf_release(&b);
}

void leat_checkpoint_remove(const char *prefix)
{
    remove_matches(prefix, ".index");
    remove_matches(prefix, ".meta");
    remove_matches(prefix, ".data-*-of-*"); /* also files that a killed writer has left */
}
