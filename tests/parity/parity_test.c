/* parity_test.c -- an MNIST net exported by TensorFlow 1.15 with its seeds (make.py): 100 steps
 * give TensorFlow's losses, to 1e-4. */
#include "test.h"

#include <leat/leat.h>

enum { BATCH = 100, STEPS = 100 };

static void make_batch(int step, leat_tensor **images, leat_tensor **labels)
{
    CHECK_OK(leat_tensor_new(LEAT_FLOAT, leat_shape(BATCH, 784), images));
    CHECK_OK(leat_tensor_new(LEAT_FLOAT, leat_shape(BATCH, 10), labels));
    float *x = leat_tensor_mutable(*images), *y = leat_tensor_mutable(*labels);
    for (int r = 0; r < BATCH; r++) {
        int label = (r * 7 + step) % 10;
        for (int c = 0; c < 784; c++) {
            uint64_t i = (uint64_t)step * BATCH * 784 + (uint64_t)(r * 784 + c);
            x[r * 784 + c] =
                (float)(0.3 * ((double)(i * 2654435761u % (UINT64_C(1) << 32)) / 4294967296.0));
            if (c >= label * 78 && c < label * 78 + 40)
                x[r * 784 + c] += 0.5f;
        }
        y[r * 10 + label] = 1;
    }
}

static leat_out find(leat_graph *g, const char *name)
{
    leat_out x = {0};
    CHECK_OK(leat_graph_find_out(g, name, &x));
    return x;
}

static leat_status import(leat_graph *g, const char *path)
{
    static char bytes[1 << 20];
    FILE *f = fopen(path, "rb");
    size_t n = f ? fread(bytes, 1, sizeof(bytes), f) : 0;
    if (f)
        fclose(f);
    return leat_graph_from_binary(g, bytes, n, "");
}

static void mnist(void)
{
    leat_graph *g = leat_graph_new();
    CHECK_OK(import(g, LEAT_SOURCE_DIR "/tests/parity/mnist.pb"));
    FILE *losses = fopen(LEAT_SOURCE_DIR "/tests/parity/mnist.losses", "r");
    leat_out x = find(g, "x:0"), y_ = find(g, "y_:0"), loss = find(g, "loss:0");
    leat_session *s;
    CHECK_OK(leat_session_open(g, &s));
    CHECK_OK(leat_session_run(s, LEAT_NO_FEED, LEAT_NO_FETCH, LEAT_TARGET(find(g, "^init"))));
    double worst = 0;
    for (int step = 0; step < STEPS; step++) {
        leat_tensor *images = NULL, *labels = NULL, *value = NULL;
        double want = 0;
        make_batch(step, &images, &labels);
        CHECK_OK(leat_session_run(s, LEAT_FEED({x, images}, {y_, labels}),
                                  LEAT_FETCH({loss, &value}), LEAT_TARGET(find(g, "^train"))));
        CHECK(losses && fscanf(losses, "%lf", &want) == 1);
        double off = value ? fabs(leat_tensor_at(value, 0) - want) / fabs(want) : INFINITY;
        worst = off > worst ? off : worst;
        leat_tensor_unref(images);
        leat_tensor_unref(labels);
        leat_tensor_unref(value);
    }
    printf("losses of %d steps differ by at most %.2g (relative)\n", STEPS, worst);
    CHECK(worst < 1e-4);
    if (losses)
        fclose(losses);
    leat_session_close(s);
    leat_graph_free(g);
}

int main(int argc, char **argv)
{
    return RUN(argc, argv, {"mnist", mnist});
}
