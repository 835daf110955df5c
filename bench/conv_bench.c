/* conv_bench.c -- how fast the convolutions, the pooling and the normalisation of the CIFAR-10 net
 * are, for Leat; bench/peers/tensorflow_conv.py prints the same figures for TensorFlow.
 * LEAT_NUM_THREADS gives the number of threads.
 *
 *     conv_bench SECONDS [BATCH]    GFLOP/s of each convolution and its two gradients, and of
 *                                   products of matrices of the same sizes; milliseconds of
 * pooling, LRN and their gradients; each is measured for SECONDS, by its fastest run
 */
#include <leat/leat.h>
#include <stdio.h>
#include <stdlib.h>
#include <time.h>

typedef struct layer {
    int64_t size, in, out, window;
} layer;

static const layer layers[] = {{24, 3, 64, 5}, {12, 64, 64, 5}};

static double now(void)
{
    struct timespec t;
    clock_gettime(CLOCK_MONOTONIC, &t);
    return (double)t.tv_sec + (double)t.tv_nsec * 1e-9;
}

static leat_tensor *numbers(leat_shape s)
{
    leat_tensor *t;
    LEAT_DIE_ON_ERROR(leat_tensor_new(LEAT_FLOAT, s, &t));
    float *p = leat_tensor_mutable(t);
    uint32_t random = 123456789;
    for (int64_t i = 0; i < leat_tensor_count(t); i++) {
        random = random * 1664525 + 1013904223;
        p[i] = (float)(random >> 8) / 16777216.0f - 0.5f;
    }
    return t;
}

/* The seconds of the fastest run of an op. */
static double fastest(leat_session *s, leat_feeds feeds, leat_out op, double seconds)
{
    double best = 0;
    for (double start = now(), begin = start; begin - start < seconds;) {
        LEAT_DIE_ON_ERROR(leat_session_run(s, feeds, LEAT_NO_FETCH, LEAT_TARGET(leat_done(op))));
        const double end = now();
        if (best == 0 || end - begin < best)
            best = end - begin;
        begin = end;
    }
    return best;
}

/* The rate of an op of two inputs. */
static void measure(const layer *l, const char *name, leat_session *s, leat_out a, leat_tensor *ta,
                    leat_out b, leat_tensor *tb, leat_out op, double flops, double seconds)
{
    const double best = fastest(s, LEAT_FEED({a, ta}, {b, tb}), op, seconds);
    printf("%dx%d_to_%d_%s_gflops %.1f\n", (int)l->size, (int)l->in, (int)l->out, name,
           flops / best * 1e-9);
    fflush(stdout);
}

static void run(const layer *l, int64_t batch, double seconds)
{
    static const int64_t strides[] = {1, 1, 1, 1};
    const int64_t pixels = batch * l->size * l->size, patch = l->window * l->window * l->in;
    const double flops = 2.0 * (double)pixels * (double)patch * (double)l->out;
    leat_graph *g = leat_graph_new();
    leat_session *s;
    leat_tensor *images = numbers(leat_shape(batch, l->size, l->size, l->in));
    leat_tensor *filter = numbers(leat_shape(l->window, l->window, l->in, l->out));
    leat_tensor *errors = numbers(leat_shape(batch, l->size, l->size, l->out));
    leat_tensor *left = numbers(leat_shape(pixels, patch)),
                *right = numbers(leat_shape(patch, l->out));
    leat_out x = leat_placeholder(g, LEAT_FLOAT, leat_tensor_shape(images));
    leat_out w = leat_placeholder(g, LEAT_FLOAT, leat_tensor_shape(filter));
    leat_out dy = leat_placeholder(g, LEAT_FLOAT, leat_tensor_shape(errors));
    leat_out m = leat_placeholder(g, LEAT_FLOAT, leat_tensor_shape(left));
    leat_out n = leat_placeholder(g, LEAT_FLOAT, leat_tensor_shape(right));
#define WINDOW leat_attr_ints("strides", strides, 4), leat_attr_string("padding", "SAME")
    leat_out y = LEAT_OP2("Conv2D", x, w, WINDOW);
    leat_out dx = LEAT_OP3("Conv2DBackpropInput", leat_shape_of(x), w, dy, WINDOW);
    leat_out dw = LEAT_OP3("Conv2DBackpropFilter", x, leat_shape_of(w), dy, WINDOW);
    leat_out product = leat_matmul(m, n);
    LEAT_DIE_ON_ERROR(leat_session_open(g, &s));
    measure(l, "product", s, m, left, n, right, product, flops, seconds);
    measure(l, "forward", s, x, images, w, filter, y, flops, seconds);
    measure(l, "by_input", s, w, filter, dy, errors, dx, flops, seconds);
    measure(l, "by_filter", s, x, images, dy, errors, dw, flops, seconds);
    leat_session_close(s);
    leat_graph_free(g);
    leat_tensor *all[] = {images, filter, errors, left, right};
    for (int i = 0; i < 5; i++)
        leat_tensor_unref(all[i]);
}

static void print_ms(int64_t size, const char *name, double seconds)
{
    printf("%dx64_%s_ms %.3f\n", (int)size, name, seconds * 1e3);
    fflush(stdout);
}

/* Max-pooling of images of size x size x 64, and of smaller ones LRN, which the net has of them. */
static void others(int64_t size, int64_t batch, double seconds)
{
    leat_graph *g = leat_graph_new();
    leat_session *s;
    leat_tensor *images = numbers(leat_shape(batch, size, size, 64));
    leat_tensor *errors = numbers(leat_shape(batch, size / 2, size / 2, 64));
    leat_out x = leat_placeholder(g, LEAT_FLOAT, leat_tensor_shape(images));
    leat_out dy = leat_placeholder(g, LEAT_FLOAT, leat_tensor_shape(errors));
    leat_out y = leat_placeholder(g, LEAT_FLOAT, leat_tensor_shape(errors));
    leat_out pool = leat_max_pool(x, 3, 3, 2, 2, "SAME");
    leat_out pool_grad = LEAT_OP3("MaxPoolGrad", x, y, dy, LEAT_POOL_ATTRS(3, 3, 2, 2, "SAME"));
#define LRN_ATTRS                                                                                  \
    leat_attr_int("depth_radius", 4), leat_attr_float("bias", 1),                                  \
        leat_attr_float("alpha", 0.001 / 9), leat_attr_float("beta", 0.75)
    leat_out lrn = LEAT_OP1("LRN", x, LRN_ATTRS);
    leat_out lrn_grad = LEAT_OP3("LRNGrad", x, x, x, LRN_ATTRS);
    LEAT_DIE_ON_ERROR(leat_session_open(g, &s));
    print_ms(size, "pool", fastest(s, LEAT_FEED({x, images}), pool, seconds));
    /* What was pooled does not change the time, so the errors are fed in its place. */
    print_ms(size, "pool_grad",
             fastest(s, LEAT_FEED({x, images}, {y, errors}, {dy, errors}), pool_grad, seconds));
    if (size < 24) {
        print_ms(size, "lrn", fastest(s, LEAT_FEED({x, images}), lrn, seconds));
        print_ms(size, "lrn_grad", fastest(s, LEAT_FEED({x, images}), lrn_grad, seconds));
    }
    leat_session_close(s);
    leat_graph_free(g);
    leat_tensor_unref(images);
    leat_tensor_unref(errors);
}

static void peak(double seconds)
{
    enum { SIZE = 768 };
    const layer none = {SIZE, SIZE, SIZE, 1};
    leat_graph *g = leat_graph_new();
    leat_session *s;
    leat_tensor *left = numbers(leat_shape(SIZE, SIZE)), *right = numbers(leat_shape(SIZE, SIZE));
    leat_out m = leat_placeholder(g, LEAT_FLOAT, leat_tensor_shape(left));
    leat_out n = leat_placeholder(g, LEAT_FLOAT, leat_tensor_shape(right));
    leat_out product = leat_matmul(m, n);
    LEAT_DIE_ON_ERROR(leat_session_open(g, &s));
    measure(&none, "peak", s, m, left, n, right, product, 2.0 * SIZE * SIZE * SIZE, seconds);
    leat_session_close(s);
    leat_graph_free(g);
    leat_tensor_unref(left);
    leat_tensor_unref(right);
}

int main(int argc, char **argv)
{
    if (argc < 2 || argc > 3) {
        fprintf(stderr, "usage: conv_bench SECONDS [BATCH]\n");
        return 2;
    }
    /* A product that stays in cache: what the machine can do. */
    peak(atof(argv[1]));
    const int64_t batch = argc == 3 ? atoi(argv[2]) : 128;
    for (int i = 0; i < 2; i++) {
        run(&layers[i], batch, atof(argv[1]));
        others(layers[i].size, batch, atof(argv[1]));
    }
    return 0;
}
