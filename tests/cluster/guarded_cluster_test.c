/* guarded_cluster_test.c -- two tasks, each with a device whose memory is not the host's: variables
 * on the one, the net on the other. Tensors are sent from, and received into, the host's memory. */
#include "test.h"

#include <leat/leat.h>

#include "cluster/pair.h"
#include "guarded_device.h"
#include "mlp.h"

static const leat_server_options options = {.devices = "cpu:1,guarded:1"};

/* To the other task and back, from each memory to each. */
static void there_and_back(void)
{
    static const char *const kinds[] = {"CPU", "GUARDED"};
    pair p;
    pair_start(&p, &options);
    for (int i = 0; i < 8; i++) {
        char here[64], there[64], back[64];
        leat_graph *g = leat_graph_new();
        leat_session *s;
        leat_tensor *t = NULL, *fed = mlp_tensor(leat_shape(40), 1);
        leat_out x, y, z;
        snprintf(here, sizeof(here), "/job:worker/task:0/device:%s:0", kinds[i & 1]);
        snprintf(there, sizeof(there), "/job:ps/task:0/device:%s:0", kinds[i >> 1 & 1]);
        snprintf(back, sizeof(back), "/job:worker/task:0/device:%s:0", kinds[i >> 2]);
        leat_with_device(g, here) x = leat_placeholder(g, LEAT_FLOAT, leat_shape(40));
        leat_with_device(g, there) y = leat_neg(leat_square(x));
        leat_with_device(g, back) z = leat_neg(y);
        CHECK_OK(
            leat_session_open(g, &s, .target = leat_server_target(p.worker), .timeout_ms = 20000));
        for (int k = 0; k < 5; k++) {
            CHECK_OK(leat_session_run(s, LEAT_FEED({x, fed}), LEAT_FETCH({z, &t}), LEAT_NO_TARGET));
            double v = leat_tensor_at(fed, 39);
            CHECK_NEAR(leat_tensor_at(t, 39), v * v, 1e-6);
            leat_tensor_unref(t);
        }
        leat_session_close(s);
        leat_tensor_unref(fed);
        leat_graph_free(g);
    }
    pair_stop(&p);
}

/* The same batch again and again: the same losses as in one process on a CPU. */
static void trains(void)
{
    enum { STEPS = 30 };
    float losses[2][STEPS];
    leat_tensor *x, *y;
    pair p;
    mlp_batch(16, 20, 4, &x, &y);
    pair_start(&p, &options);
    mlp m;
    mlp_build(&m, false, 16, 20, 8, 4);
    for (int i = 0; i < m.g->n_nodes; i++) /* variables and what is colocated with them to the ps */
        m.g->nodes[i]->device =
            leat_node_is(m.g->nodes[i], "VariableV2") ? "/job:ps/task:0/device:GUARDED:0" : "";
    for (int far = 0; far < 2; far++) {
        leat_session *s;
        CHECK_OK(leat_session_open(m.g, &s, .target = far ? leat_server_target(p.worker) : "",
                                   .timeout_ms = 20000, .allow_soft_placement = true));
        CHECK_OK(leat_session_run(s, LEAT_NO_FEED, LEAT_NO_FETCH, LEAT_TARGET(m.init)));
        for (int i = 0; i < STEPS; i++) {
            leat_tensor *loss = NULL;
            CHECK_OK(leat_session_run(s, LEAT_FEED({m.x, x}, {m.y, y}), LEAT_FETCH({m.loss, &loss}),
                                      LEAT_TARGET(m.train)));
            losses[far][i] = loss ? (float)leat_tensor_at(loss, 0) : NAN;
            leat_tensor_unref(loss);
        }
        leat_session_close(s);
    }
    for (int i = 0; i < STEPS; i++)
        CHECK_NEAR(losses[1][i], losses[0][i], 1e-4 * (1 + losses[0][i]));
    CHECK(losses[1][STEPS - 1] < 0.8f * losses[1][0]);
    mlp_free(&m);
    leat_tensor_unref(x);
    leat_tensor_unref(y);
    pair_stop(&p);
}

int main(int argc, char **argv)
{
    LEAT_DIE_ON_ERROR(leat_device_kind_register(&guarded_kind));
    return RUN(argc, argv, {"there_and_back", there_and_back}, {"trains", trains});
}
