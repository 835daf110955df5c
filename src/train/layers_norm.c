/* layers_norm.c -- the layer of batch normalisation: gamma * (x - mean) / sqrt(variance) + beta, by
 * the mean and variance of each channel over the batch while a net is trained, and by their moving
 * averages when it is used. */
#include <leat/nn.h>

#include "graph/given.h"
#include "train/train_int.h"

/* The variables and what stands for those that are left out. */
typedef struct norm {
    leat_graph *g;
    leat_dtype t; /* of the variables: float also for halves */
    leat_shape channels;
    const leat_batch_norm_options *o;
} norm;

static leat_out variable(const norm *n, const char *name, bool ones, bool average,
                         leat_initializer init, leat_regularizer regularizer)
{
    const leat_initializer plain = ones ? leat_ones_initializer() : leat_zeros_initializer();
    return leat_get_variable(n->g, name, n->channels, .dtype = n->t,
                             .initializer = init.make ? init : plain, .regularizer = regularizer,
                             .not_trainable = average || n->o->not_trainable);
}

static leat_out number(const norm *n, leat_shape s, double value)
{
    return leat_full_named_at((leat_loc){0}, n->g, n->t, s, value, "Const");
}

/* Moves an average towards the batch's value; the node is one of the graph's update ops. */
static void follow(const norm *n, leat_out average, leat_out value, leat_out momentum)
{
    leat_with_colocate(n->g, leat_variable_ref(average)) leat_with_name(n->g, "AssignMovingAvg")
    {
        leat_out by = leat_py_left("Sub", "sub", 1, momentum);
        leat_collect(n->g, LEAT_UPDATE_OPS,
                     leat_average_follow(average, value, by, leat_name_scope(n->g)));
    }
}

/* x (batch, height, width, channels), or with the channels second. */
static leat_out normalize(const norm *n, leat_out x)
{
    const leat_batch_norm_options *o = n->o;
    const double momentum = leat_is_given(&o->given, "momentum", o->momentum) ? o->momentum : 0.99;
    const double epsilon = leat_is_given(&o->given, "epsilon", o->epsilon) ? o->epsilon : 1e-3;
    const leat_initializer none = {0};
    const leat_regularizer free_of = leat_no_regularizer();
    leat_out gamma = {0}, beta = {0}, use[2];
    if (!o->no_scale)
        gamma = variable(n, "gamma", true, false, o->gamma_initializer, o->gamma_regularizer);
    if (!o->no_center)
        beta = variable(n, "beta", false, false, o->beta_initializer, o->beta_regularizer);
    if (o->no_scale)
        gamma = number(n, n->channels, 1);
    if (o->no_center)
        beta = number(n, n->channels, 0);
    leat_out mean = variable(n, "moving_mean", false, true, none, free_of);
    leat_out variance = variable(n, "moving_variance", true, true, none, free_of);
    use[0] = o->training ? number(n, leat_shape(0), 0) : leat_variable_value(mean);
    use[1] = o->training ? number(n, leat_shape(0), 0) : leat_variable_value(variance);
    const leat_out in[] = {x, gamma, beta, use[0], use[1]};
    leat_out y = LEAT_OPN("FusedBatchNormV3", in, 5, leat_attr_bool("is_training", o->training),
                          leat_attr_float("epsilon", epsilon),
                          leat_attr_string("data_format", o->channels_first ? "NCHW" : "NHWC"));
    leat_out decay = number(n, leat_shape(), momentum);
    if (o->training) {
        follow(n, mean, (leat_out){y.node, 1}, decay);
        follow(n, variance, (leat_out){y.node, 2}, decay);
    }
    return y;
}

/* Rows of features (batch, features) are images of one pixel. */
static leat_out rows(const norm *n, leat_out x)
{
    const int64_t features = n->channels.dim[0];
    leat_out y =
        normalize(n, leat_reshape(x, n->o->channels_first ? leat_ints(n->g, -1, features, 1, 1)
                                                          : leat_ints(n->g, -1, 1, 1, features)));
    return leat_reshape(y, leat_ints(n->g, -1, features));
}

static leat_out batch_norm(leat_graph *g, leat_out x, const leat_batch_norm_options *o)
{
    const leat_shape s = leat_out_shape(x);
    const leat_dtype t = leat_dtype_base(leat_out_dtype(x));
    const int channel = s.rank == 2 || o->channels_first ? 1 : 3;
    if ((s.rank != 4 && s.rank != 2) || s.dim[channel] < 1)
        return leat_graph_fail(g, (leat_loc){0},
                               leat_error(INVALID_ARGUMENT,
                                          "leat_batch_norm_layer: the inputs should be images "
                                          "(4 dimensions) or rows of features (2), whose number "
                                          "of channels is known and positive. Found shape %s.",
                                          leat_shape_show(&s).s));
    const bool small = t == LEAT_HALF || t == LEAT_BFLOAT16;
    const norm n = {
        .g = g, .t = small ? LEAT_FLOAT : t, .channels = leat_shape(s.dim[channel]), .o = o};
    return s.rank == 2 ? rows(&n, x) : normalize(&n, x);
}

leat_out leat_batch_norm_layer_at(leat_loc at, leat_out x, const leat_batch_norm_options *o)
{
    if (!x.node || !leat_out_ok(x))
        return x;
    leat_graph *g = leat_graph_of(x);
    const bool set = leat_is_given(&o->given, "momentum", o->momentum);
    if (set && !(o->momentum >= 0 && o->momentum <= 1))
        return leat_graph_fail(
            g, at,
            leat_error(INVALID_ARGUMENT,
                       "leat_batch_norm_layer: momentum must be from 0 to 1, got %g", o->momentum));
    leat_loc outer = leat_at_enter(g, at);
    leat_out y = {0};
    leat_with_variable_scope(g, o->name, .default_name = "batch_normalization", .reuse = o->reuse)
        y = batch_norm(g, x, o);
    leat_at_leave(g, outer);
    return y;
}
