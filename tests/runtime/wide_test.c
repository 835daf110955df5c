/* wide_test.c -- graphs in which very many nodes are ready at the same time: a step's time grows
 * with the number of nodes, not with its square. */
#include "test.h"

#include <leat/leat.h>
#include <time.h>

static double now(void)
{
    struct timespec t;
    clock_gettime(CLOCK_MONOTONIC, &t);
    return (double)t.tv_sec + (double)t.tv_nsec / 1e9;
}

/* A star: one node, n random numbers that wait for it, and after each of these another node.
 * Returns the shortest time of three steps in seconds. With `products` every eighth arm ends with a
 * product that other threads are to compute. */
static double run_star(int n, bool products)
{
    leat_graph *g = leat_graph_new();
    leat_session *s = NULL;
    leat_out shape = leat_placeholder(g, LEAT_INT32, leat_shape(2));
    leat_out *ends = malloc(sizeof(*ends) * (size_t)n);
    for (int i = 0; i < n; i++) {
        leat_out x = LEAT_OP1("RandomUniform", shape, leat_attr_type("dtype", LEAT_FLOAT));
        ends[i] = products && i % 8 == 0 ? leat_matmul(x, x) : leat_neg(x);
    }
    leat_out sum = leat_add_n(ends, n);
    leat_tensor *fed;
    const int32_t two[] = {2, 2};
    CHECK_OK(leat_tensor_copy_of(LEAT_INT32, leat_shape(2), two, &fed));
    CHECK_OK(leat_session_open(g, &s));
    double least = 1e9;
    for (int i = 0; i < 4; i++) { /* The first run compiles the graph. */
        double began = now();
        CHECK_OK(leat_session_run(s, LEAT_FEED({shape, fed}), LEAT_NO_FETCH, LEAT_TARGET(sum)));
        double took = now() - began;
        least = i && took < least ? took : least;
    }
    leat_tensor_unref(fed);
    leat_session_close(s);
    leat_graph_free(g);
    free(ends);
    return least;
}

static void check_growth(bool products)
{
    double few = run_star(4000, products), many = 1e9;
    for (int i = 0; i < 3 && many > 48 * few; i++)
        many = run_star(32000, products);
    printf("4000 arms: %.4f s, 32000: %.4f s\n", few, many);
    CHECK(many < 48 * few);
}

static void cheap(void)
{
    check_growth(false);
}

static void expensive(void)
{
    check_growth(true);
}

/* With LEAT_ARMS=100000 prints the time of a step with as many arms. */
static void star(void)
{
    const char *text = getenv("LEAT_ARMS");
    int n = text ? atoi(text) : 0;
    if (n > 0)
        printf("%d arms: %.4f s; with products: %.4f s\n", n, run_star(n, false),
               run_star(n, true));
}

int main(int argc, char **argv)
{
    return RUN(argc, argv, {"cheap", cheap}, {"expensive", expensive}, {"star", star});
}
