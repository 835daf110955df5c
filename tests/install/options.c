/* options.c -- options of 0 and options that are missing, in C and in C++20, without warnings. */
#include <leat/leat.h>

#include <stdio.h>
#include <string.h>

static leat_graph *minimized(leat_optimizer *opt)
{
    leat_graph *g = leat_graph_new();
    leat_out w = leat_variable(g, "w", leat_zeros(g, LEAT_FLOAT, leat_shape(2)));
    leat_minimize(opt, leat_reduce_sum(w), .name = "update");
    leat_optimizer_free(opt);
    return g;
}

int main(void)
{
    leat_graph *g = minimized(leat_adam(.learning_rate = 0.01, .beta1 = 0));
    leat_node *beta1 = leat_graph_find(g, "update/beta1"),
              *beta2 = leat_graph_find(g, "update/beta2");
    double zero = leat_tensor_at(leat_node_tensor(beta1, "value"), 0);
    double near_one = leat_tensor_at(leat_node_tensor(beta2, "value"), 0);
    leat_graph_free(g);

    g = minimized(leat_gradient_descent());
    leat_status s = leat_graph_status(g);
    bool told =
        strstr(leat_status_message(s), "leat_gradient_descent has no learning_rate") != NULL &&
        strstr(leat_status_message(s), "options.c:25)") != NULL;
    printf("beta1 %g, beta2 %g, %s\n", zero, near_one, leat_status_message(s));
    leat_status_free(s);
    leat_graph_free(g);
    return zero == 0 && near_one > 0.99 && told ? 0 : 1;
}
