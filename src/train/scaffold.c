/* scaffold.c -- the ops that make a model ready and tell whether it is, as TensorFlow's Scaffold
 * builds them. */
#include <stdlib.h>

#include "train/session_manager.h"
#include "train/train_int.h"

static leat_out group2(leat_graph *g, leat_out a, leat_out b)
{
    const leat_out both[2] = {a, b};
    return leat_done(leat_group_at(LEAT_AT, g, both, 2, NULL));
}

/* TensorFlow also initialises resources and tables here; Leat's graphs have none. */
static leat_out default_init(leat_graph *g)
{
    leat_out all = leat_global_variables_initializer(g);
    return group2(g, all, leat_no_op(g, leat_name("init")));
}

static leat_out default_local_init(leat_graph *g)
{
    leat_out local = leat_local_variables_initializer(g);
    const leat_out all[3] = {local, leat_no_op(g, leat_name("init_all_tables")),
                             leat_no_op(g, leat_name("init"))};
    return leat_done(leat_group_at(LEAT_AT, g, all, 3, NULL));
}

static leat_out and_resources(leat_graph *g, leat_out names)
{
    leat_out both[2] = {names}, y = {0};
    leat_with_name(g, "report_uninitialized_resources") leat_with_device(g, "/cpu:0") both[1] =
        leat_string_vector(g, NULL, 0);
    leat_with_name(g, "concat")
    {
        leat_out axis = leat_py_number(g, LEAT_INT32, 0, "axis");
        y = leat_op(g, "ConcatV2", leat_ins(both, 2), leat_in(axis), leat_name(leat_name_scope(g)));
    }
    return y;
}

static leat_out default_ready(leat_graph *g)
{
    return and_resources(g, leat_report_uninitialized_variables(g));
}

static leat_out default_ready_for_local_init(leat_graph *g)
{
    int n;
    leat_out *global = leat_global_variables(g, &n);
    leat_out names = leat_report_uninitialized_of(g, global, n);
    free(global);
    return and_resources(g, names);
}

static leat_out default_summary(leat_graph *g)
{
    return leat_merge_all_summaries(g);
}

static leat_status get_or_make(leat_graph *g, const char *collection,
                               leat_out (*make)(leat_graph *g), leat_out *x)
{
    if (x->node)
        return NULL;
    int n;
    leat_out *v = leat_collection(g, collection, NULL, &n), found = n ? v[0] : (leat_out){0};
    free(v);
    LEAT_REQUIRE(n <= 1, INVALID_ARGUMENT,
                 "More than one item in the collection \"%s\". Please indicate which one to use by "
                 "setting it in the scaffold",
                 collection);
    if (!found.node) {
        found = make(g);
        if (found.node)
            leat_collect(g, collection, found);
    }
    *x = found;
    return NULL;
}

leat_status leat_scaffold_finish(leat_graph *g, leat_scaffold *s)
{
    LEAT_TRY(leat_graph_status(g));
    LEAT_TRY(get_or_make(g, "init_op", default_init, &s->init_op));
    LEAT_TRY(get_or_make(g, "ready_op", default_ready, &s->ready_op));
    LEAT_TRY(get_or_make(g, "ready_for_local_init_op", default_ready_for_local_init,
                         &s->ready_for_local_init_op));
    LEAT_TRY(get_or_make(g, "local_init_op", default_local_init, &s->local_init_op));
    LEAT_TRY(get_or_make(g, "summary_op", default_summary, &s->summary_op));
    return leat_graph_status(g);
}
