// line.cc -- the README's program in C++20: a line through four points. Options by name
// (.learning_rate = 0.1) are what wants C++20; the headers themselves are C++11.
#include <leat/leat.h>

#include <cstdio>

int main()
{
    leat_graph *g = leat_graph_new();
    leat_out x = leat_placeholder(g, LEAT_FLOAT, leat_shape(-1, 1));
    leat_out t = leat_placeholder(g, LEAT_FLOAT, leat_shape(-1, 1));
    leat_out w = leat_variable(g, "w", leat_zeros(g, LEAT_FLOAT, leat_shape(1, 1)));
    leat_out b = leat_variable(g, "b", leat_zeros(g, LEAT_FLOAT, leat_shape(1)));
    leat_out product = leat_op(g, "MatMul", leat_in(x), leat_in(w), leat_name("product"));
    leat_out loss = leat_reduce_mean(leat_square(leat_sub(leat_add(product, b), t)));
    leat_optimizer *sgd = leat_gradient_descent(.learning_rate = 0.1);
    leat_out train = leat_minimize(sgd, loss);

    leat_session *s;
    LEAT_DIE_ON_ERROR(leat_session_open(g, &s, .cpu_devices = 2));
    LEAT_DIE_ON_ERROR(leat_session_run(s, LEAT_NO_FEED, LEAT_NO_FETCH,
                                       LEAT_TARGET(leat_global_variables_initializer(g))));
    const float points[] = {0, 1, 2, 3}, targets[] = {1, 3, 5, 7};
    leat_tensor *xs, *ts, *value;
    LEAT_DIE_ON_ERROR(leat_tensor_copy_of(LEAT_FLOAT, leat_shape(4, 1), points, &xs));
    LEAT_DIE_ON_ERROR(leat_tensor_copy_of(LEAT_FLOAT, leat_shape(4, 1), targets, &ts));
    for (int i = 0; i <= 200; i++) {
        LEAT_DIE_ON_ERROR(leat_session_run(s, LEAT_FEED({x, xs}, {t, ts}),
                                           LEAT_FETCH({loss, &value}), LEAT_TARGET(train)));
        if (i % 50 == 0)
            std::printf("step %3d  loss %.6f\n", i, leat_tensor_at(value, 0));
        leat_tensor_unref(value);
    }
    leat_tensor_unref(xs);
    leat_tensor_unref(ts);
    leat_session_close(s);
    leat_optimizer_free(sgd);
    leat_graph_free(g);
}
