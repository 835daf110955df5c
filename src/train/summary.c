/* summary.c -- nodes of summaries, with the names that tf.summary gives them. */
#include <leat/summary.h>

#include <stdlib.h>
#include <string.h>

#include "core/buffer.h"
#include "train/train_int.h"

static leat_out string_const(leat_graph *g, leat_loc at, const char *name, const char *text,
                             size_t n)
{
    leat_tensor *t = NULL;
    leat_status s = leat_tensor_of_string(text, n, &t);
    if (s)
        return leat_graph_fail(g, at, s);
    leat_out x = leat_op(g, "Const", leat_attr_tensor("value", t),
                         leat_attr_type("dtype", LEAT_STRING), leat_name(name));
    leat_tensor_unref(t);
    return x;
}

/* A summary that is being made: in a name scope of its own, whose name is the tag. */
typedef struct making {
    leat_graph *g;
    leat_loc at, outer;
    const char *scope; /* "a/loss/": the tag is this without the slash */
} making;

static making begin(leat_loc at, const char *name, leat_out x)
{
    making m = {.g = leat_graph_of(x), .at = at};
    m.outer = leat_at_enter(m.g, at);
    leat_name_scope_enter(m.g, name);
    m.scope = leat_name_scope(m.g);
    return m;
}

static leat_out tag_of(const making *m, const char *name)
{
    const size_t n = strlen(m->scope);
    return string_const(m->g, m->at, name, m->scope, n ? n - 1 : 0);
}

static leat_out end(const making *m, leat_out y)
{
    leat_name_scope_leave(m->g);
    leat_collect(m->g, LEAT_SUMMARIES, y);
    leat_at_leave(m->g, m->outer);
    return y;
}

leat_out leat_summary_at(leat_loc at, const char *op, const char *tag_input, const char *name,
                         leat_out x)
{
    if (!leat_out_ok(x))
        return (leat_out){leat_graph_of(x)->poison, 0};
    making m = begin(at, name, x);
    return end(&m,
               leat_op(m.g, op, leat_in(tag_of(&m, tag_input)), leat_in(x), leat_name(m.scope)));
}

leat_out leat_image_summary_at(leat_loc at, const char *name, leat_out x, int most)
{
    if (!leat_out_ok(x))
        return (leat_out){leat_graph_of(x)->poison, 0};
    making m = begin(at, name, x);
    return end(&m, leat_op(m.g, "ImageSummary", leat_in(tag_of(&m, "tag")), leat_in(x),
                           leat_attr_int("max_images", most), leat_name(m.scope)));
}

leat_out leat_audio_summary_at(leat_loc at, const char *name, leat_out x, double rate, int most)
{
    if (!leat_out_ok(x))
        return (leat_out){leat_graph_of(x)->poison, 0};
    making m = begin(at, name, x);
    leat_out hertz = leat_py_number(m.g, LEAT_FLOAT, rate, "sample_rate");
    return end(&m, leat_op(m.g, "AudioSummaryV2", leat_in(tag_of(&m, "tag")), leat_in(x),
                           leat_in(hertz), leat_attr_int("max_outputs", most), leat_name(m.scope)));
}

leat_out leat_text_summary_at(leat_loc at, const char *name, leat_out x)
{
    /* A SummaryMetadata whose plugin is called "text". */
    static const char metadata[] = "\n\006\n\004text";
    if (!leat_out_ok(x))
        return (leat_out){leat_graph_of(x)->poison, 0};
    making m = begin(at, name, x);
    leat_out tag = tag_of(&m, "tag");
    leat_out plugin =
        string_const(m.g, at, "serialized_summary_metadata", metadata, sizeof(metadata) - 1);
    return end(&m, leat_op(m.g, "TensorSummaryV2", leat_in(tag), leat_in(x), leat_in(plugin),
                           leat_name(m.scope)));
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

leat_out leat_merge_all_summaries_at(leat_loc at, leat_graph *g, const char *scope)
{
    if (!LEAT_USABLE(GRAPH, g))
        return (leat_out){0};
    int n;
    leat_out *all = leat_collection(g, LEAT_SUMMARIES, scope, &n);
    leat_out y = n ? leat_merge_summaries_at(at, g, all, n) : (leat_out){0};
    free(all);
    return y;
}
