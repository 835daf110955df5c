/* dataset_functions.h -- for tests of datasets: functions in a graph, and datasets that call them.
 */
#ifndef LEAT_TEST_DATASET_FUNCTIONS_H
#define LEAT_TEST_DATASET_FUNCTIONS_H

#include "dataset_graph.h"

static inline void twice(leat_graph *g, void *arg, const leat_out *in, leat_out *out)
{
    out[0] = leat_mul(in[0], number(g, 2));
}

static inline void map_twice(leat_graph *g, void *arg, const leat_out *in, leat_out *out)
{
    out[0] = map(g, in[0], "Twice");
}

static inline void even(leat_graph *g, void *arg, const leat_out *in, leat_out *out)
{
    out[0] =
        leat_equal(leat_op(g, "FloorMod", leat_in(in[0]), leat_in(number(g, 2))), number(g, 0));
}

static inline void below_5(leat_graph *g, void *arg, const leat_out *in, leat_out *out)
{
    out[0] = leat_less(in[0], number(g, 5));
}

static inline void up_to(leat_graph *g, void *arg, const leat_out *in, leat_out *out)
{
    out[0] = DATASET("RangeDataset", leat_in(number(g, 0)), leat_in(in[0]), leat_in(number(g, 1)));
}

static inline void sum(leat_graph *g, void *arg, const leat_out *in, leat_out *out)
{
    out[0] = leat_add(in[0], in[1]);
    out[1] = leat_add(in[0], number(g, 100));
}

static inline void rest_of_3(leat_graph *g, void *arg, const leat_out *in, leat_out *out)
{
    out[0] = leat_op(g, "FloorMod", leat_in(in[0]), leat_in(number(g, 3)));
}

static inline void batch_of_2(leat_graph *g, void *arg, const leat_out *in, leat_out *out)
{
    out[0] = counted(g, "BatchDataset", in[1], 2);
}

static inline void window_batch(leat_graph *g, void *arg, const leat_out *in, leat_out *out)
{
    out[0] = DATASET("DatasetToSingleElement", leat_in(counted(g, "BatchDataset", in[0], 2)));
}

static inline void size_2(leat_graph *g, void *arg, const leat_out *in, leat_out *out)
{
    out[0] = number(g, 2);
}

static inline void zero(leat_graph *g, void *arg, const leat_out *in, leat_out *out)
{
    out[0] = number(g, 0);
}

static inline void plus(leat_graph *g, void *arg, const leat_out *in, leat_out *out)
{
    out[0] = leat_add(in[0], in[1]);
}

static inline void same(leat_graph *g, void *arg, const leat_out *in, leat_out *out)
{
    out[0] = leat_identity(in[0]);
}

static inline void fails_at_3(leat_graph *g, void *arg, const leat_out *in, leat_out *out)
{
    out[0] = leat_op(g, "FloorDiv", leat_in(number(g, 12)), leat_in(leat_sub(in[0], number(g, 3))));
}

static inline void to_float(leat_graph *g, void *arg, const leat_out *in, leat_out *out)
{
    out[0] = leat_cast(in[0], LEAT_FLOAT);
}

static inline leat_graph *graph(void)
{
    leat_graph *g = leat_graph_new();
    leat_function_define(g, "Twice", twice, NULL, 1, LEAT_INT64);
    leat_function_define(g, "MapTwice", map_twice, NULL, 1, LEAT_VARIANT);
    leat_function_define(g, "Even", even, NULL, 1, LEAT_INT64);
    leat_function_define(g, "Below5", below_5, NULL, 1, LEAT_INT64);
    leat_function_define(g, "UpTo", up_to, NULL, 1, LEAT_INT64);
    leat_function_define(g, "SumOf", sum, NULL, 2, LEAT_INT64, LEAT_INT64);
    leat_function_define(g, "RestOf3", rest_of_3, NULL, 1, LEAT_INT64);
    leat_function_define(g, "WindowBatch", window_batch, NULL, 1, LEAT_VARIANT);
    leat_function_define(g, "BatchOf2", batch_of_2, NULL, 1, LEAT_INT64, LEAT_VARIANT);
    leat_function_define(g, "Size2", size_2, NULL, 1, LEAT_INT64);
    leat_function_define(g, "Zero", zero, NULL, 1, LEAT_INT64);
    leat_function_define(g, "Plus", plus, NULL, 1, LEAT_INT64, LEAT_INT64);
    leat_function_define(g, "Same", same, NULL, 1, LEAT_INT64);
    leat_function_define(g, "FailsAt3", fails_at_3, NULL, 1, LEAT_INT64);
    leat_function_define(g, "ToFloat", to_float, NULL, 1, LEAT_INT64);
    return g;
}

#define F(name, f) leat_attr_func(name, f)
#define NONE leat_ins(NULL, 0)
#define N(x) leat_in(number(g, x))

static inline leat_out make_interleave(leat_graph *g)
{
    return DATASET("InterleaveDataset", leat_in(range(g, 5)), NONE, N(2), N(2), F("f", "UpTo"));
}
static inline leat_out make_parallel_interleave(leat_graph *g)
{
    return DATASET("ParallelInterleaveDatasetV2", leat_in(range(g, 5)), NONE, N(2), N(2), N(2),
                   F("f", "UpTo"));
}
static inline leat_out make_group(leat_graph *g)
{
    return DATASET("GroupByWindowDataset", leat_in(range(g, 8)), NONE, NONE, NONE,
                   F("key_func", "RestOf3"), F("reduce_func", "BatchOf2"),
                   F("window_size_func", "Size2"));
}
static inline leat_out make_reducer(leat_graph *g)
{
    return DATASET("GroupByReducerDataset", leat_in(range(g, 8)), NONE, NONE, NONE, NONE,
                   F("key_func", "RestOf3"), F("init_func", "Zero"), F("reduce_func", "Plus"),
                   F("finalize_func", "Same"));
}

#endif
