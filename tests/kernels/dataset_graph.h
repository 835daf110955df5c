/* dataset_graph.h -- for tests of datasets: graphs of dataset ops over int64 scalars, and their
 * elements. */
#ifndef LEAT_TEST_DATASET_GRAPH_H
#define LEAT_TEST_DATASET_GRAPH_H

#include <leat/leat.h>
#include <pthread.h>

#include "test.h"

static const leat_dtype int64_type[] = {LEAT_INT64};

#define ELEMENTS                                                                                   \
    leat_attr_types("output_types", int64_type, 1),                                                \
        leat_attr_shapes("output_shapes", (leat_shape[]){leat_shape_unknown()}, 1)
#define DATASET(op, ...) leat_op(g, op, __VA_ARGS__, ELEMENTS)

static inline leat_out number(leat_graph *g, int64_t x)
{
    leat_tensor *t = leat_scalar_int64(x);
    leat_out c = leat_const(g, t);
    leat_tensor_unref(t);
    return c;
}

static inline leat_out yes(leat_graph *g, bool x)
{
    leat_tensor *t;
    CHECK_OK(leat_tensor_copy_of(LEAT_BOOL, leat_shape(), &x, &t));
    leat_out c = leat_const(g, t);
    leat_tensor_unref(t);
    return c;
}

static inline leat_out range(leat_graph *g, int64_t n)
{
    return DATASET("RangeDataset", leat_in(number(g, 0)), leat_in(number(g, n)),
                   leat_in(number(g, 1)));
}

static inline leat_out counted(leat_graph *g, const char *op, leat_out in, int64_t n)
{
    return DATASET(op, leat_in(in), leat_in(number(g, n)));
}

static inline leat_out map(leat_graph *g, leat_out in, const char *f)
{
    return DATASET("MapDataset", leat_in(in), leat_ins(NULL, 0), leat_attr_func("f", f));
}

static inline leat_out parallel_map(leat_graph *g, leat_out in, const char *f, int calls)
{
    leat_tensor *t = leat_scalar_int32(calls);
    leat_out n = leat_const(g, t);
    leat_tensor_unref(t);
    return DATASET("ParallelMapDataset", leat_in(in), leat_ins(NULL, 0), leat_in(n),
                   leat_attr_func("f", f));
}

/* An iterator over a dataset, in a session. */
typedef struct elements {
    leat_graph *g;
    leat_session *s;
    leat_out handle, init, next, position, saved, restore;
} elements;

static inline elements elements_of(leat_graph *g, leat_out dataset)
{
    elements e = {.g = g};
    e.handle = leat_op(g, "IteratorV2", leat_attr_string("shared_name", ""),
                       leat_attr_string("container", ""), ELEMENTS);
    e.init = leat_op(g, "MakeIterator", leat_in(dataset), leat_in(e.handle));
    e.next = leat_op(g, "IteratorGetNext", leat_in(e.handle), ELEMENTS);
    e.position = leat_op(g, "SerializeIterator", leat_in(e.handle));
    e.saved = leat_placeholder(g, LEAT_VARIANT, leat_shape());
    e.restore = leat_op(g, "DeserializeIterator", leat_in(e.handle), leat_in(e.saved));
    CHECK_OK(leat_graph_status(g));
    CHECK_OK(leat_session_open(g, &e.s));
    return e;
}

static inline leat_status begin(const elements *e)
{
    return leat_session_run(e->s, LEAT_NO_FEED, LEAT_NO_FETCH, LEAT_TARGET(e->init));
}

static inline leat_status get(const elements *e, leat_tensor **out)
{
    return leat_session_run(e->s, LEAT_NO_FEED, LEAT_FETCH({e->next, out}), LEAT_NO_TARGET);
}

/* Adds the next elements to text, "0 1 2 [3 4] END", or the name of an error's code. */
static inline void read_some(const elements *e, int n, char *text, size_t size)
{
    for (int i = 0; i < n; i++) {
        leat_tensor *t = NULL;
        leat_status s = get(e, &t);
        size_t used = strlen(text);
        char *value = s ? NULL : leat_tensor_text(t, -1);
        const bool end = leat_status_code(s) == LEAT_OUT_OF_RANGE;
        snprintf(text + used, size - used, "%s%s", used ? " " : "",
                 value ? value
                 : end ? "END"
                       : leat_code_name(leat_status_code(s)));
        free(value);
        leat_tensor_unref(t);
        leat_status_free(s);
        if (end)
            return;
    }
}

static inline void close_elements(elements *e)
{
    leat_session_close(e->s);
    leat_graph_free(e->g);
}

#endif
