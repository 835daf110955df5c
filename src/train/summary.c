/* summary.c -- nodes of summaries, with the names that tf.summary gives them. */
#include <leat/summary.h>

#include <stdlib.h>
#include <string.h>

#include "core/buffer.h"
#include "train/train_int.h"

leat_out leat_summary_at(leat_loc at, const char *op, const char *tag_input, const char *name,
                         leat_out x)
{
    leat_graph *g = leat_graph_of(x);
    if (!leat_out_ok(x))
        return (leat_out){g->poison, 0};
    leat_loc outer = leat_at_enter(g, at);
    leat_name_scope_enter(g, name);
    const char *scope = leat_name_scope(g); /* "a/loss/": the tag is this without the slash */
    size_t n = strlen(scope);
    leat_tensor *t = NULL;
    leat_status s = leat_tensor_of_string(scope, n ? n - 1 : 0, &t);
    if (s)
        leat_graph_fail(g, at, s);
    leat_out tag = leat_op(g, "Const", leat_attr_tensor("value", t),
                           leat_attr_type("dtype", LEAT_STRING), leat_name(tag_input));
    leat_out y = leat_op(g, op, leat_in(tag), leat_in(x), leat_name(scope));
    leat_tensor_unref(t);
    leat_name_scope_leave(g);
    leat_collect(g, LEAT_SUMMARIES, y);
    leat_at_leave(g, outer);
    return y;
}

leat_out leat_merge_summaries_at(leat_loc at, leat_graph *g, const leat_out *xs, int n)
{
    if (!LEAT_USABLE(GRAPH, g))
        return (leat_out){0};
    leat_loc outer = leat_at_enter(g, at);
    leat_out y = {0};
    leat_with_name(g, "Merge") y = leat_op(g, "MergeSummary", leat_ins(xs, n));
    leat_at_leave(g, outer);
    return y;
}

leat_out leat_merge_all_summaries_at(leat_loc at, leat_graph *g)
{
    if (!LEAT_USABLE(GRAPH, g))
        return (leat_out){0};
    int n;
    leat_out *all = leat_collection(g, LEAT_SUMMARIES, NULL, &n);
    leat_out y = n ? leat_merge_summaries_at(at, g, all, n) : (leat_out){0};
    free(all);
    return y;
}
