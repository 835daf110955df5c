/* where.c -- the user's file and line in the errors of runs. Executors, passes and other tasks name
 * the node of an error as TensorFlow does, "[[{{node NAME}}]]". The user's session
 * looks the name up in its graph. A node that was imported from a GraphDef has no line. */
#include "runtime/where.h"

#include <stdlib.h>

#include "core/alloc.h"
#include "graph/function.h"
#include "graph/graph_int.h"

leat_status leat_status_of_node(leat_status s, const leat_node *n)
{
    return leat_status_suffix(s, "\n\t [[{{node %s}}]]", n->name);
}

/* Gives the text between tag and "}}", or NULL if there is none. Free it with free(). */
static char *tagged(const char *message, const char *tag)
{
    const char *begin = strstr(message, tag), *end = begin ? strstr(begin, "}}") : NULL;
    if (!end)
        return NULL;
    begin += strlen(tag);
    return leat_xstrndup(begin, (size_t)(end - begin));
}

static leat_loc line_in_function(const leat_graph *g, const char *function, const char *name)
{
    const leat_function *f = leat_function_find(g, function);
    for (int i = 0; f && i < f->n_lines; i++)
        if (strcmp(f->lines[i].node, name) == 0)
            return f->lines[i].at;
    return (leat_loc){0};
}

/* Returns the line of node `name`, or of the node of the graph that it was made from: passes name
 * the nodes that they make after a node of the graph, with a slash and a suffix. "call/Add" is node
 * Add of the function that node "call" calls. Overwrites name. */
static leat_loc line_in_graph(const leat_graph *g, char *name)
{
    leat_loc at = {0};
    pthread_mutex_lock((pthread_mutex_t *)&g->lock); /* Another thread may add nodes. */
    for (char *end = name + strlen(name); end; end = strrchr(name, '/')) {
        *end = 0;
        const leat_node *n = *name ? leat_graph_find(g, name) : NULL;
        if (n) {
            at = n->at;
            break;
        }
    }
    pthread_mutex_unlock((pthread_mutex_t *)&g->lock);
    return at;
}

leat_status leat_status_where(leat_status s, const leat_graph *g)
{
    char *name = s ? tagged(leat_status_message(s), "{{node ") : NULL;
    if (!name)
        return s;
    char *function = tagged(leat_status_message(s), "{{function_node ");
    leat_loc at = function ? line_in_function(g, function, name) : line_in_graph(g, name);
    free(name);
    free(function);
    return at.file ? leat_status_suffix(s, " (at %s:%d)", at.file, at.line) : s;
}
