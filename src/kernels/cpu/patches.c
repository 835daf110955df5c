/* patches.c -- ExtractImagePatches and ExtractVolumePatches: all windows, each as one pixel. An
 * image is computed as a volume of one plane. */
#include "core/checked.h"
#include "kernels/cpu/cpu.h"

enum { SPACE = 3, COLUMNS = 2 }; /* planes, rows, columns */

typedef struct patches {
    const leat_tensor *x;
    leat_tensor *y;
    int64_t in[SPACE], out[SPACE], window[SPACE], stride[SPACE], rate[SPACE], pad[SPACE];
    size_t depth; /* bytes of a pixel */
} patches;

/* The values of an attribute for space; what an image lacks is 1. */
static leat_status read_spatial(leat_kernel *k, const char *name, int64_t out[SPACE])
{
    int n;
    const leat_node *node = leat_kernel_node(k);
    out[0] = out[1] = out[2] = 1;
    if (!leat_node_has(node, name)) /* rates, of volumes */
        return NULL;
    const int64_t *v = leat_node_ints(node, name, &n);
    const int space = leat_node_has(node, "rates") ? 2 : 3;
    LEAT_REQUIRE(n == space + 2, INVALID_ARGUMENT, "%s must have %d values, got %d", name,
                 space + 2, n);
    LEAT_REQUIRE(v[0] == 1 && v[n - 1] == 1, UNIMPLEMENTED, "Only support %s across space.", name);
    for (int i = 0; i < space; i++) {
        LEAT_REQUIRE(v[1 + i] >= 1 && v[1 + i] <= INT32_MAX, OUT_OF_RANGE, "%s is out of range.",
                     name);
        out[SPACE - space + i] = v[1 + i];
    }
    return NULL;
}

static leat_status place_windows(patches *p, int i, bool same)
{
    int64_t span;
    LEAT_REQUIRE(leat_mul_ok(p->window[i] - 1, p->rate[i], &span) && span < INT32_MAX, OUT_OF_RANGE,
                 "ksizes and rates are out of range.");
    span++;
    if (same) {
        p->out[i] = (p->in[i] + p->stride[i] - 1) / p->stride[i];
        const int64_t need = (p->out[i] - 1) * p->stride[i] + span - p->in[i];
        p->pad[i] = need > 0 ? need / 2 : 0;
    } else {
        p->out[i] = (p->in[i] - span + p->stride[i]) / p->stride[i];
    }
    LEAT_REQUIRE(p->out[i] >= 0, INVALID_ARGUMENT,
                 "Computed output size would be negative: %lld [input_size: %lld, "
                 "effective_filter_size: %lld, stride: %lld]",
                 (long long)p->out[i], (long long)p->in[i], (long long)span,
                 (long long)p->stride[i]);
    return NULL;
}

/* One row of a window, from column x of image row `row`. */
static char *put_row(const patches *p, const char *row, int64_t x, char *to)
{
    const int64_t n = p->window[COLUMNS], step = p->rate[COLUMNS], columns = p->in[COLUMNS];
    if (step == 1 && x >= 0 && x + n <= columns) {
        memcpy(to, row + (size_t)x * p->depth, (size_t)n * p->depth);
        return to + (size_t)n * p->depth;
    }
    for (int64_t j = 0; j < n; j++, x += step, to += p->depth) {
        if (x >= 0 && x < columns)
            memcpy(to, row + (size_t)x * p->depth, p->depth);
        else
            memset(to, 0, p->depth);
    }
    return to;
}

/* The window that begins at plane z, row y, column x of a volume. */
static char *put_window(const patches *p, const char *volume, int64_t z, int64_t y, int64_t x,
                        char *to)
{
    const size_t row = (size_t)p->in[2] * p->depth, plane = (size_t)p->in[1] * row;
    const size_t window_row = (size_t)p->window[2] * p->depth;
    for (int64_t i = 0; i < p->window[0]; i++)
        for (int64_t j = 0; j < p->window[1]; j++) {
            const int64_t from = z + i * p->rate[0], at = y + j * p->rate[1];
            if (from >= 0 && from < p->in[0] && at >= 0 && at < p->in[1]) {
                to = put_row(p, volume + (size_t)from * plane + (size_t)at * row, x, to);
            } else {
                memset(to, 0, window_row);
                to += window_row;
            }
        }
    return to;
}

/* Rows of patches [begin, end), counted over all planes of patches of all volumes. */
static void patches_part(void *arg, int64_t begin, int64_t end)
{
    const patches *p = arg;
    const size_t volume = (size_t)(p->in[0] * p->in[1] * p->in[2]) * p->depth;
    const size_t patch = (size_t)(p->window[0] * p->window[1] * p->window[2]) * p->depth;
    char *to = (char *)p->y->data + (size_t)(begin * p->out[2]) * patch;
    for (int64_t i = begin; i < end; i++) {
        const int64_t plane = i / p->out[1];
        const char *from = (const char *)p->x->data + (size_t)(plane / p->out[0]) * volume;
        const int64_t z = plane % p->out[0] * p->stride[0] - p->pad[0];
        const int64_t y = i % p->out[1] * p->stride[1] - p->pad[1];
        for (int64_t c = 0; c < p->out[2]; c++)
            to = put_window(p, from, z, y, c * p->stride[2] - p->pad[2], to);
    }
}

static leat_status patches_run(leat_kernel *k)
{
    const leat_node *n = leat_kernel_node(k);
    patches p = {.x = leat_kernel_in(k, 0), .in = {1, 1, 1}};
    const leat_shape *s = &p.x->shape;
    const int space = leat_node_has(n, "rates") ? 2 : 3;
    LEAT_TRY(read_spatial(k, "ksizes", p.window));
    LEAT_TRY(read_spatial(k, "strides", p.stride));
    LEAT_TRY(read_spatial(k, "rates", p.rate));
    LEAT_REQUIRE(s->rank == space + 2, INVALID_ARGUMENT, "input must be %d-dimensional%s",
                 space + 2, leat_shape_show(s).s);
    const bool same = !strcmp(leat_node_string(n, "padding"), "SAME");
    leat_shape out = {.rank = s->rank, .dim = {s->dim[0]}};
    int64_t depth = s->dim[space + 1];
    bool fits = true;
    for (int i = 0; i < SPACE; i++) {
        const int d = i - (SPACE - space);
        p.in[i] = d < 0 ? 1 : s->dim[1 + d];
        LEAT_TRY(place_windows(&p, i, same));
        fits = fits && leat_mul_ok(depth, p.window[i], &depth);
        if (d >= 0)
            out.dim[1 + d] = p.out[i];
    }
    LEAT_REQUIRE(fits, INVALID_ARGUMENT, "ksizes of %lld by %lld by %lld are too large",
                 (long long)p.window[0], (long long)p.window[1], (long long)p.window[2]);
    out.dim[space + 1] = depth;
    LEAT_TRY(leat_kernel_out(k, 0, &out, &p.y));
    if (p.y->count == 0)
        return NULL;
    p.depth = (size_t)s->dim[space + 1] * leat_dtype_size(p.x->dtype);
    leat_kernel_for(k, s->dim[0] * p.out[0] * p.out[1], 0.5 * (double)(p.out[2] * depth),
                    patches_part, &p);
    return NULL;
}

const leat_kernel_def leat_cpu_patches[] = {
    {.op = "ExtractImagePatches", .where = {{"T", LEAT_TYPES_REAL}}, .run = patches_run},
    {.op = "ExtractVolumePatches", .where = {{"T", LEAT_TYPES_REAL}}, .run = patches_run},
    {0},
};
