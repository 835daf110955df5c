/* print_test.c -- Print's first_n counts over all runs of a session, whatever they fetch. */
#include <leat/leat.h>

#include "test.h"

static void count(void *arg, leat_log_level level, const char *file, int line, const char *message)
{
    *(int *)arg += strstr(message, "printed: ") != NULL;
}

static void first_n(void)
{
    int n = 0;
    leat_log_set_sink(count, &n, LEAT_LOG_INFO);
    leat_graph *g = leat_graph_new();
    leat_out x = leat_placeholder(g, LEAT_FLOAT, leat_shape());
    leat_out y = leat_op(g, "Print", leat_in(x), leat_ins(&x, 1),
                         leat_attr_string("message", "printed: "), leat_attr_int("first_n", 3));
    leat_out several[] = {leat_neg(y), leat_exp(y), y};
    leat_tensor *one = leat_scalar_float(1);
    for (int session = 1; session <= 2; session++) {
        leat_session *s;
        CHECK_OK(leat_session_open(g, &s));
        for (int i = 0; i < 6; i++) {
            leat_tensor *t = NULL;
            CHECK_OK(leat_session_run(s, LEAT_FEED({x, one}), LEAT_FETCH({several[i % 3], &t}),
                                      LEAT_NO_TARGET));
            leat_tensor_unref(t);
        }
        leat_session_close(s);
        CHECK_INT(n, 3 * session);
    }
    leat_log_set_sink(NULL, NULL, LEAT_LOG_INFO);
    leat_tensor_unref(one);
    leat_graph_free(g);
}

int main(int argc, char **argv)
{
    return RUN(argc, argv, {"first_n", first_n});
}
