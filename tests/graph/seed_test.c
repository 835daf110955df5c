/* Seeds as TensorFlow's client derives them (tests/vectors/seeds.txt); the nodes that constructors
 * of random ops make; and streams of random numbers that go on from run to run. */
#include <leat/ops.h>
#include <leat/session.h>

#include "test.h"

static bool number(const char *s, int64_t *out)
{
    *out = strcmp(s, "none") == 0 ? 0 : strtoll(s, NULL, 10);
    return strcmp(s, "none") != 0;
}

/* graph's seed, op's seed, nodes in the graph, seed, seed2 */
static void check_pair(char w[5][64])
{
    int64_t graph_seed, op_seed, nodes, want, want2, seed, seed2;
    leat_graph *g = leat_graph_new();
    if (number(w[0], &graph_seed))
        leat_graph_set_seed(g, graph_seed);
    bool has = number(w[1], &op_seed);
    number(w[2], &nodes);
    number(w[3], &want);
    number(w[4], &want2);
    for (int64_t i = 0; i < nodes; i++)
        leat_no_op(g);
    leat_graph_seeds(g, has ? &op_seed : NULL, &seed, &seed2);
    CHECK_INT(seed, want);
    CHECK_INT(seed2, want2);
    leat_graph_free(g);
}

/* The call, the op's seed, the random node's name, seed, seed2. */
static void check_call(leat_graph *g, char w[5][64])
{
    int64_t seed, want, want2;
    leat_shape s = leat_shape(2, 3);
    number(w[1], &seed);
    number(w[3], &want);
    number(w[4], &want2);
    leat_random_options o = {.seed = seed}; /* 0: none */
    if (strcmp(w[0], "random_uniform") == 0)
        leat_random_at(LEAT_AT, g, "random_uniform", s, &o);
    else if (strcmp(w[0], "random_uniform_int") == 0)
        leat_random_at(LEAT_AT, g, "random_uniform", leat_shape(2),
                       &(leat_random_options){.high = 10, .dtype = LEAT_INT32, .seed = seed});
    else if (strcmp(w[0], "random_normal") == 0)
        leat_random_at(LEAT_AT, g, "random_normal", s, &o);
    else if (strcmp(w[0], "truncated_normal") == 0)
        leat_random_at(LEAT_AT, g, "truncated_normal", s, &o);
    else if (strcmp(w[0], "random_shuffle") == 0)
        leat_random_shuffle_at(LEAT_AT, leat_ints(g, 1, 2, 3), &o);
    else if (strcmp(w[0], "glorot_uniform") == 0)
        leat_random_at(LEAT_AT, g, "random_uniform", s, &o);
    else
        return;
    leat_node *n = leat_graph_find(g, w[2]);
    CHECK(n != NULL);
    if (n) {
        CHECK_INT(leat_node_int(n, "seed"), want);
        CHECK_INT(leat_node_int(n, "seed2"), want2);
    }
}

static void as_the_client(void)
{
    FILE *f = fopen(LEAT_SOURCE_DIR "/tests/vectors/seeds.txt", "r");
    CHECK(f != NULL);
    if (!f)
        return;
    leat_graph *g = leat_graph_new();
    leat_graph_set_seed(g, 1234);
    char line[256], w[5][64];
    int lines = 0;
    while (fgets(line, sizeof line, f)) {
        if (line[0] == '#' ||
            sscanf(line, "%63s %63s %63s %63s %63s", w[0], w[1], w[2], w[3], w[4]) != 5)
            continue;
        lines++;
        if (strspn(w[0], "none-0123456789") == strlen(w[0]))
            check_pair(w);
        else
            check_call(g, w);
    }
    CHECK(lines > 100);
    CHECK_OK(leat_graph_status(g));
    leat_graph_free(g);
    fclose(f);
}

static void check_values(leat_session *s, leat_out x, leat_out also, const double *want, int n)
{
    leat_tensor *t = NULL, *u = NULL;
    if (also.node)
        CHECK_OK(
            leat_session_run(s, LEAT_NO_FEED, LEAT_FETCH({x, &t}, {also, &u}), LEAT_NO_TARGET));
    else
        CHECK_OK(leat_session_run(s, LEAT_NO_FEED, LEAT_FETCH({x, &t}), LEAT_NO_TARGET));
    for (int i = 0; t && i < n; i++)
        CHECK_NEAR(leat_tensor_at(t, i), want[i], 1e-6);
    leat_tensor_unref(t);
    leat_tensor_unref(u);
}

/* What TensorFlow 1.15 gives for the same calls, in the same order. */
static void streams(void)
{
    leat_graph *g = leat_graph_new();
    leat_graph_set_seed(g, 42);
    leat_out a = leat_truncated_normal(g, leat_shape(2, 3), .stddev = 0.5), none = {0};
    leat_out b = leat_random_uniform(g, leat_shape(3), .low = -1, .high = 1);
    leat_out c = leat_random_normal(g, leat_shape(2), .seed = 7);
    leat_out d = leat_random_uniform(g, leat_shape(4), .high = 10, .dtype = LEAT_INT32);
    leat_out e = leat_random_shuffle(leat_ints(g, 1, 2, 3, 4, 5));
    leat_out f = leat_random_uniform(g, leat_shape(3), .dtype = LEAT_DOUBLE);
    leat_session *s;
    CHECK_OK(leat_session_open(g, &s));
    check_values(
        s, a, none,
        (double[]){0.40107274, 0.25283951, 0.90600634, -0.01594562, 0.18181218, -0.17983285}, 6);
    check_values(s, b, none, (double[]){0.59214807, -0.00368428, 0.34482169}, 3);
    check_values(s, c, none, (double[]){-0.45274156, -0.30040753}, 2);
    check_values(s, d, none, (double[]){7, 4, 1, 4}, 4);
    check_values(s, e, none, (double[]){3, 1, 2, 5, 4}, 5);
    check_values(s, f, none, (double[]){0.98479788, 0.73235415, 0.8739615}, 3);
    /* Fetched with something else, each goes on where it was. */
    check_values(s, a, b,
                 (double[]){-0.09427898, -0.42676264, 0.3981573, -0.1226995, 0.25430611, 0.0453735},
                 6);
    check_values(s, d, b, (double[]){5, 5, 5, 1}, 4);
    leat_session_close(s);
    leat_graph_free(g);
}

static void by_chance(void)
{
    leat_graph *g = leat_graph_new();
    leat_out a = leat_random_uniform(g, leat_shape(8)), b = leat_random_uniform(g, leat_shape(8));
    leat_session *s;
    leat_tensor *x = NULL, *y = NULL;
    CHECK_OK(leat_session_open(g, &s));
    CHECK_OK(leat_session_run(s, LEAT_NO_FEED, LEAT_FETCH({a, &x}, {b, &y}), LEAT_NO_TARGET));
    int same = 0;
    for (int i = 0; x && y && i < 8; i++) {
        double u = leat_tensor_at(x, i);
        CHECK(u >= 0 && u < 1);
        same += u == leat_tensor_at(y, i);
    }
    CHECK(same < 8);
    leat_tensor_unref(x);
    leat_tensor_unref(y);
    leat_session_close(s);
    leat_graph_free(g);
}

static void unknown_shape(void)
{
    leat_graph *g = leat_graph_new();
    leat_random_normal(g, leat_shape(-1, 3));
    CHECK_ERROR(leat_graph_status(g), INVALID_ARGUMENT, "not fully known");
    leat_graph_free(g);
}

int main(int argc, char **argv)
{
    return RUN(argc, argv, {"as_the_client", as_the_client}, {"streams", streams},
               {"by_chance", by_chance}, {"unknown_shape", unknown_shape});
}
