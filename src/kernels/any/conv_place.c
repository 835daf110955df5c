/* conv_place.c -- how the windows of a convolution lie on its images: attributes, sizes, checks. */
#include "kernels/cpu/conv.h"

/* A value for each dimension of an image: 1 for batch and channels, positive in space. */
static leat_status read_steps(const leat_node *n, const char *name, const char *field,
                              const char *plural, const leat_conv_attrs *a, int64_t *out)
{
    const int64_t *v;
    int count;
    LEAT_TRY(leat_window_attr(n, name, &v, &count));
    LEAT_REQUIRE(count == a->space + 2, INVALID_ARGUMENT, "%s field must specify %d dimensions",
                 field, a->space + 2);
    LEAT_REQUIRE(v[0] == 1 && v[a->channels_first ? 1 : count - 1] == 1, INVALID_ARGUMENT,
                 "Current implementation does not yet support %s in the batch and depth "
                 "dimensions.",
                 plural);
    out[0] = 1;
    for (int i = 0; i < a->space; i++)
        out[LEAT_CONV_SPACE - a->space + i] = v[i + (a->channels_first ? 2 : 1)];
    return NULL;
}

leat_status leat_conv_init(const leat_node *n, void *state)
{
    leat_conv_attrs *a = state;
    int count = 0;
    const int64_t *pads = NULL;
    const bool three = !strncmp(leat_node_op(n), "Conv3D", 6);
    *a = (leat_conv_attrs){.space = three ? 3 : 2,
                           .channels_first = leat_channels_first(n),
                           .padding = leat_padding_of(n)};
    LEAT_TRY(read_steps(n, "strides", "Sliding window strides", "strides", a, a->stride));
    LEAT_TRY(read_steps(n, "dilations", three ? "Dilation rates" : "Sliding window dilations",
                        three ? "dilation rates" : "dilations", a, a->rate));
    for (int i = 0; i < LEAT_CONV_SPACE; i++) {
        LEAT_REQUIRE(a->stride[i] > 0, INVALID_ARGUMENT, "%s strides should be larger than 0.",
                     three ? "Spatial" : "Row and column");
        LEAT_REQUIRE(a->rate[i] > 0, INVALID_ARGUMENT, "Dilated rates should be larger than 0.");
    }
    if (leat_node_has(n, "explicit_paddings"))
        pads = leat_node_ints(n, "explicit_paddings", &count);
    LEAT_TRY(leat_window_check_pads(a->padding, pads, count, a->space + 2,
                                    a->channels_first ? 1 : a->space + 1));
    for (int i = 0; i < a->space && a->padding == LEAT_PADDING_EXPLICIT; i++) {
        const int d = i + (a->channels_first ? 2 : 1), to = LEAT_CONV_SPACE - a->space + i;
        a->before[to] = pads[2 * d];
        a->after[to] = pads[2 * d + 1];
    }
    return NULL;
}

/* The sizes in space of images or, if not `image`, of a filter. */
static void read_space(const leat_conv_attrs *a, const leat_shape *s, bool image, int64_t *out)
{
    out[0] = 1;
    for (int i = 0; i < a->space; i++)
        out[LEAT_CONV_SPACE - a->space + i] = s->dim[i + (!image ? 0 : a->channels_first ? 2 : 1)];
}

static leat_status place(const leat_conv_attrs *a, const leat_shape *x, const leat_shape *w,
                         leat_conv *c)
{
    c->batch = x->dim[0];
    c->in_depth = x->dim[a->channels_first ? 1 : a->space + 1];
    c->out_depth = w->dim[a->space + 1];
    c->groups = w->dim[a->space] ? c->in_depth / w->dim[a->space] : 0;
    read_space(a, x, true, c->in);
    read_space(a, w, false, c->window);
    for (int i = 0; i < LEAT_CONV_SPACE; i++) {
        LEAT_REQUIRE(c->window[i] > 0, INVALID_ARGUMENT, "Windows of the filter are empty: %s",
                     leat_shape_show(w).s);
        c->stride[i] = a->stride[i];
        c->rate[i] = a->rate[i];
        c->before[i] = a->before[i];
        LEAT_TRY(leat_window_place(c->in[i], c->window[i], c->rate[i], c->stride[i], a->padding,
                                   &c->before[i], a->after[i], &c->out[i]));
    }
    return NULL;
}

leat_status leat_conv_place(const leat_conv_attrs *a, const leat_shape *x, const leat_shape *w,
                            leat_conv *c)
{
    const int rank = a->space + 2;
    LEAT_REQUIRE(x->rank == rank, INVALID_ARGUMENT, "input must be %d-dimensional%s", rank,
                 leat_shape_show(x).s);
    LEAT_REQUIRE(w->rank == rank, INVALID_ARGUMENT, "filter must be %d-dimensional: %s", rank,
                 leat_shape_show(w).s);
    LEAT_TRY(leat_window_check_depths(x->dim[a->channels_first ? 1 : rank - 1], w->dim[rank - 2],
                                      w->dim[rank - 1]));
    return place(a, x, w, c);
}

leat_status leat_conv_place_grad(const leat_conv_attrs *a, const char *label, const leat_shape *x,
                                 const leat_shape *w, const leat_shape *y, leat_conv *c)
{
    const int rank = a->space + 2, channel = a->channels_first ? 1 : rank - 1;
    int64_t out[LEAT_CONV_SPACE];
    LEAT_REQUIRE(x->rank == rank, INVALID_ARGUMENT, "%s: input must be %d-dimensional", label,
                 rank);
    LEAT_REQUIRE(w->rank == rank, INVALID_ARGUMENT, "%s: filter must be %d-dimensional", label,
                 rank);
    LEAT_REQUIRE(y->rank == rank, INVALID_ARGUMENT, "%s: out_backprop must be %d-dimensional",
                 label, rank);
    LEAT_REQUIRE(x->dim[0] == y->dim[0], INVALID_ARGUMENT,
                 "%s: input and out_backprop must have the same batch size. Input batch: %" PRId64
                 ", outbackprop batch: %" PRId64,
                 label, x->dim[0], y->dim[0]);
    LEAT_REQUIRE(w->dim[rank - 2] > 0 && x->dim[channel] % w->dim[rank - 2] == 0, INVALID_ARGUMENT,
                 "%s: input depth must be evenly divisible by filter depth", label);
    LEAT_REQUIRE(w->dim[rank - 1] == y->dim[channel], INVALID_ARGUMENT,
                 "%s: filter and out_backprop must have the same out_depth", label);
    LEAT_TRY(leat_window_check_depths(x->dim[channel], w->dim[rank - 2], w->dim[rank - 1]));
    LEAT_TRY(place(a, x, w, c));
    read_space(a, y, true, out);
    for (int i = LEAT_CONV_SPACE - a->space; i < LEAT_CONV_SPACE; i++)
        LEAT_REQUIRE(out[i] == c->out[i], INVALID_ARGUMENT,
                     "%s: Size of out_backprop doesn't match computed: actual = %" PRId64
                     ", computed = %" PRId64 " spatial_dim: %d input: %" PRId64 " filter: %" PRId64
                     " output: %" PRId64 " stride: %" PRId64 " dilation: %" PRId64,
                     label, out[i], c->out[i],
                     i - (LEAT_CONV_SPACE - a->space) + (a->channels_first ? 2 : 1), c->in[i],
                     c->window[i], out[i], c->stride[i], c->rate[i]);
    return NULL;
}

leat_shape leat_conv_shape(const leat_conv_attrs *a, int64_t batch, const int64_t *size,
                           int64_t depth)
{
    leat_shape s = {.rank = a->space + 2, .dim = {batch}};
    s.dim[a->channels_first ? 1 : a->space + 1] = depth;
    for (int i = 0; i < a->space; i++)
        s.dim[i + (a->channels_first ? 2 : 1)] = size[LEAT_CONV_SPACE - a->space + i];
    return s;
}

leat_status leat_conv_read_sizes(const leat_tensor *t, const char *what, leat_shape *out)
{
    LEAT_REQUIRE(t->shape.rank == 1, INVALID_ARGUMENT, "%s input must be 1-dim, not %d", what,
                 t->shape.rank);
    LEAT_REQUIRE(t->count <= LEAT_MAX_RANK, INVALID_ARGUMENT,
                 "%s input has %" PRId64 " sizes, which are too many", what, t->count);
    out->rank = (int)t->count;
    for (int i = 0; i < out->rank; i++) {
        out->dim[i] = leat_index_at(t, i);
        LEAT_REQUIRE(out->dim[i] >= 0, INVALID_ARGUMENT, "Dimension %" PRId64 " must be >= 0",
                     out->dim[i]);
    }
    return NULL;
}

bool leat_conv_suits_minimal(const leat_conv *c)
{
    enum {
        WINDOW = 5,
        TILE = LEAT_CONV_MINIMAL_TILE,
        UNIT = LEAT_CONV_MINIMAL_UNIT,
        LEAST_CHANNELS = 32, /* from which on it pays */
        LEAST_TILES = 32     /* from which on it pays to transform the filter */
    };
    if (c->groups != 1 || c->in_depth % UNIT || c->out_depth % UNIT ||
        c->in_depth < LEAST_CHANNELS || c->out_depth < LEAST_CHANNELS || c->window[0] != 1 ||
        c->in[0] != 1 || c->out[0] != 1 || c->before[0] != 0)
        return false;
    for (int i = 1; i < LEAT_CONV_SPACE; i++)
        if (c->window[i] != WINDOW || c->stride[i] != 1 || c->rate[i] != 1)
            return false;
    const int64_t down = (c->out[1] + TILE - 1) / TILE, across = (c->out[2] + TILE - 1) / TILE;
    const int64_t tiles = c->batch * down * across;
    return tiles >= LEAST_TILES && tiles * TILE * TILE <= 2 * c->batch * c->out[1] * c->out[2];
}
