/* name.c -- node names: which are valid, and how they are made unique (as TensorFlow does). */
#include <ctype.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "core/alloc.h"
#include "graph/graph_int.h"

bool leat_name_valid(const char *name)
{
    if (!name || !(isalnum((unsigned char)name[0]) || name[0] == '.' || name[0] == '_'))
        return false;
    for (const char *p = name; *p; p++)
        if (!isalnum((unsigned char)*p) && !strchr("_.\\-/>", *p))
            return false;
    return true;
}

static char *lower(const char *s)
{
    char *l = leat_xstrdup(s);
    for (char *p = l; *p; p++)
        *p = (char)tolower((unsigned char)*p);
    return l;
}

static intptr_t used(leat_graph *g, const char *key)
{
    return (intptr_t)leat_map_get(&g->names_used, key);
}

/* key is the name in lower case; the table keeps one of them, in the arena. */
static void set_used(leat_graph *g, const char *key, const char *name, intptr_t count)
{
    if (!used(g, key))
        key = strcmp(key, name) == 0 ? name : leat_arena_strdup(&g->arena, key);
    leat_map_put(&g->names_used, key, (void *)count);
}

/* Names that differ only in case count as the same, because file systems and TensorBoard may not
 * distinguish them. */
const char *leat_unique_name(leat_graph *g, const char *name)
{
    char *full = leat_arena_printf(&g->arena, "%s%s", leat_name_scope(g), name);
    char *key = lower(full);
    intptr_t i = used(g, key);
    set_used(g, key, full, i + 1);
    if (i > 0) {
        size_t n = strlen(key) + 24;
        char *numbered = leat_xmalloc(n);
        snprintf(numbered, n, "%s", key);
        while (used(g, numbered))
            snprintf(numbered, n, "%s_%lld", key, (long long)i++);
        full = leat_arena_printf(&g->arena, "%s_%lld", full, (long long)i - 1);
        set_used(g, numbered, full, 1);
        free(numbered);
    }
    free(key);
    return full;
}

void leat_name_use(leat_graph *g, const char *name)
{
    char *key = lower(name);
    if (!used(g, key))
        set_used(g, key, name, 1);
    free(key);
}
