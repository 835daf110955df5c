/* layers_pool.c -- the layers of pooling, max_pooling2d and average_pooling2d. They have no
 * variables; their windows are given by height and width, whatever the layout of the images is. */
#include <leat/nn.h>

#include <inttypes.h>

#include "graph/given.h"
#include "train/train_int.h"

/* What the two layers differ in. */
typedef struct pool {
    const char *function, *scope, *op;
} pool;

static leat_status check(const pool *p, leat_out x, int64_t height, int64_t width,
                         const leat_pool_options *o, int64_t size[4], int64_t strides[4])
{
    const leat_shape s = leat_out_shape(x);
    const int64_t window[] = {height, width};
    LEAT_REQUIRE(height > 0 && width > 0, INVALID_ARGUMENT,
                 "%s: height and width must be positive, got %" PRId64 ", %" PRId64, p->function,
                 height, width);
    LEAT_REQUIRE(s.rank == 4 || s.rank < 0, INVALID_ARGUMENT,
                 "%s: the inputs should have 4 dimensions. Found shape %s.", p->function,
                 leat_shape_show(&s).s);
    LEAT_TRY(leat_layer_steps(&o->given, p->function, "strides", o->strides, window,
                              o->channels_first, strides));
    for (int i = 0; i < 4; i++)
        size[i] = 1;
    size[o->channels_first ? 2 : 1] = height;
    size[o->channels_first ? 3 : 2] = width;
    return NULL;
}

static leat_out pool_at(leat_loc at, const pool *p, leat_out x, int64_t height, int64_t width,
                        const leat_pool_options *o)
{
    int64_t size[4], strides[4];
    if (!x.node || !leat_out_ok(x))
        return x;
    leat_graph *g = leat_graph_of(x);
    leat_loc outer = leat_at_enter(g, at);
    leat_out y = {0};
    leat_status bad = check(p, x, height, width, o, size, strides);
    if (bad)
        y = leat_graph_fail(g, (leat_loc){0}, bad);
    else
        leat_with_variable_scope(g, o->name, .default_name = p->scope) y = LEAT_OP1(
            p->op, x, leat_attr_ints("ksize", size, 4), leat_attr_ints("strides", strides, 4),
            leat_attr_string("padding", o->same ? "SAME" : "VALID"),
            leat_attr_string("data_format", o->channels_first ? "NCHW" : "NHWC"));
    leat_at_leave(g, outer);
    return y;
}

leat_out leat_max_pool_layer_at(leat_loc at, leat_out x, int64_t height, int64_t width,
                                const leat_pool_options *o)
{
    static const pool max = {"leat_max_pool_layer", "max_pooling2d", "MaxPool"};
    return pool_at(at, &max, x, height, width, o);
}

leat_out leat_avg_pool_layer_at(leat_loc at, leat_out x, int64_t height, int64_t width,
                                const leat_pool_options *o)
{
    static const pool average = {"leat_avg_pool_layer", "average_pooling2d", "AvgPool"};
    return pool_at(at, &average, x, height, width, o);
}
