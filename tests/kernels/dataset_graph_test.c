/* dataset_graph_test.c -- DatasetToGraph and DatasetFromGraph: what they refuse, and that the graph
 * can be used where the one that it was made of is gone. dataset_test has a round trip of each
 * kind. */
#include "dataset_functions.h"

static void draws(leat_graph *g, void *arg, const leat_out *in, leat_out *out)
{
    leat_out shape = leat_const(g, arg);
    out[0] =
        leat_cast(leat_op(g, "RandomUniform", leat_in(shape), leat_attr_type("dtype", LEAT_FLOAT)),
                  LEAT_INT64);
}

static leat_out to_graph(leat_graph *g, leat_out d, const char *listed)
{
    return leat_op(g, "DatasetToGraph", leat_in(d),
                   leat_attr_strings("stateful_whitelist", &listed, listed ? 1 : 0));
}

static leat_status fetch(leat_graph *g, leat_out x, leat_tensor **out)
{
    leat_session *s;
    CHECK_OK(leat_graph_status(g));
    CHECK_OK(leat_session_open(g, &s));
    leat_status bad = leat_session_run(s, LEAT_NO_FEED, LEAT_FETCH({x, out}), LEAT_NO_TARGET);
    leat_session_close(s);
    return bad;
}

/* The bytes outlive the graph, its functions and its session. */
static void elsewhere(void)
{
    leat_graph *g = graph();
    leat_tensor *bytes = NULL;
    CHECK_OK(fetch(g, to_graph(g, parallel_map(g, make_group(g), "Twice", 2), NULL), &bytes));
    leat_graph_free(g);
    g = leat_graph_new();
    elements e = elements_of(g, leat_op(g, "DatasetFromGraph", leat_in(leat_const(g, bytes))));
    char text[256] = "";
    CHECK_OK(begin(&e));
    read_some(&e, 9, text, sizeof(text));
    CHECK_STR(text, "[0 6] [2 8] [4 10] [12] [14] END");
    close_elements(&e);
    leat_tensor_unref(bytes);
}

static void state(void)
{
    leat_graph *g = graph();
    leat_tensor *bytes = NULL, *none;
    CHECK_OK(leat_tensor_new(LEAT_INT32, leat_shape(0), &none));
    leat_function_define(g, "Draws", draws, none, 1, LEAT_INT64);
    leat_out d = map(g, range(g, 3), "Draws");
    CHECK_ERROR(fetch(g, to_graph(g, d, NULL), &bytes), FAILED_PRECONDITION,
                "RandomUniform is stateful. (function Draws, node RandomUniform)");
    CHECK_ERROR(fetch(g, to_graph(g, d, "NoSuchOp"), &bytes), NOT_FOUND,
                "Op type not registered 'NoSuchOp'");
    CHECK_OK(fetch(g, to_graph(g, d, "RandomUniform"), &bytes));
    leat_tensor_unref(bytes);
    leat_tensor_unref(none);
    leat_graph_free(g);
}

static void resources(void)
{
    leat_graph *g = graph();
    leat_tensor *bytes = NULL;
    leat_out seeds = leat_op(g, "AnonymousRandomSeedGenerator", N(1), N(2));
    leat_out d = DATASET("ShuffleDatasetV2", leat_in(range(g, 3)), N(2), leat_in(seeds));
    CHECK_ERROR(fetch(g, to_graph(g, d, NULL), &bytes), FAILED_PRECONDITION,
                "Dataset ShuffleDatasetV2 (ShuffleDatasetV2) uses a resource of this process, "
                "input 2 of its node: it cannot be written as a graph");
    leat_graph_free(g);
}

static leat_status from(const void *bytes, size_t n)
{
    leat_graph *g = leat_graph_new();
    leat_tensor *t = leat_scalar_string(bytes, n);
    elements e = elements_of(g, leat_op(g, "DatasetFromGraph", leat_in(leat_const(g, t))));
    leat_tensor_unref(t);
    leat_status s = begin(&e);
    close_elements(&e);
    return s;
}

/* The bytes of a graph that returns x; of no output: without a _Retval. */
static leat_status from_graph(leat_graph *g, leat_out x)
{
    void *bytes;
    size_t n;
    if (x.node)
        leat_op(g, "_Retval", leat_in(x), leat_attr_int("index", 0));
    CHECK_OK(leat_graph_to_binary(g, &bytes, &n));
    leat_status s = from(bytes, n);
    free(bytes);
    leat_graph_free(g);
    return s;
}

static void bad_graphs(void)
{
    CHECK_ERROR(from("\x0a\xff", 2), DATA_LOSS, "graph_def: ");
    CHECK_ERROR(from("", 0), INVALID_ARGUMENT,
                "graph_def: The graph has no _Retval node that returns a dataset");
    leat_graph *g = graph();
    range(g, 3);
    CHECK_ERROR(from_graph(g, (leat_out){0}), INVALID_ARGUMENT, "no _Retval node");
    g = graph();
    CHECK_ERROR(from_graph(g, number(g, 3)), INVALID_ARGUMENT,
                "Dataset tensor must be a scalar of dtype DT_VARIANT.");
    g = graph();
    CHECK_ERROR(from_graph(g, leat_op(g, "OptionalNone", leat_name("none"))), INVALID_ARGUMENT,
                "Tensor must be a Dataset object.");
    g = graph();
    CHECK_ERROR(from_graph(g, counted(g, "BatchDataset", range(g, 3), 0)), INVALID_ARGUMENT,
                "Batch size must be greater than zero.");
}

/* A graph whose bytes were changed anywhere is an error, or a dataset. */
static void damaged_graphs(void)
{
    leat_graph *g = graph();
    leat_tensor *t = NULL;
    CHECK_OK(fetch(g, to_graph(g, make_interleave(g), NULL), &t));
    const leat_string *s = leat_tensor_data(t);
    for (size_t i = 0; i < s->size; i += 7) {
        char *copy = malloc(s->size);
        memcpy(copy, s->data, s->size);
        copy[i] ^= 0x15;
        leat_status_free(from(copy, i % 2 ? s->size : i));
        free(copy);
    }
    leat_tensor_unref(t);
    leat_graph_free(g);
}

/* A graph that waits without end: the run's time limit ends it. */
static void waits(void)
{
    leat_graph *g = leat_graph_new();
    const leat_dtype variant[] = {LEAT_VARIANT};
    leat_out queue = leat_op(g, "FIFOQueueV2", leat_attr_types("component_types", variant, 1));
    leat_out x = leat_op(g, "QueueDequeueV2", leat_in(queue),
                         leat_attr_types("component_types", variant, 1));
    leat_op(g, "_Retval", leat_in(x), leat_attr_int("index", 0));
    void *bytes;
    size_t n;
    CHECK_OK(leat_graph_to_binary(g, &bytes, &n));
    leat_graph_free(g);
    g = leat_graph_new();
    leat_tensor *t = leat_scalar_string(bytes, n);
    elements e = elements_of(g, leat_op(g, "DatasetFromGraph", leat_in(leat_const(g, t))));
    const leat_run_options o = {.timeout_ms = 200};
    CHECK_ERROR(leat_session_run_with(e.s, &o, LEAT_NO_FEED, LEAT_NO_FETCH, LEAT_TARGET(e.init)),
                DEADLINE_EXCEEDED, "Timed out");
    close_elements(&e);
    leat_tensor_unref(t);
    free(bytes);
}

int main(int argc, char **argv)
{
    return RUN(argc, argv, {"elsewhere", elsewhere}, {"state", state}, {"resources", resources},
               {"bad_graphs", bad_graphs}, {"damaged_graphs", damaged_graphs}, {"waits", waits});
}
