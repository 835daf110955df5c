/* pool.cl -- max and average pooling. Images are (images, planes, rows, columns, channels), as in
 * kernels/cpu/windows.h. A work item computes blocks of LANES channels of one window, or, for the
 * gradients, of all windows of an image, which may overlap. */
typedef struct windows {
    int images, channels;
    int in[3], out[3], size[3], stride[3], before[3];
} windows;

/* The bounds of window o in dimension d, without the padding. */
DEVICE int2 bounds(const windows *w, int d, int o)
{
    const int start = o * w->stride[d] - w->before[d];
    return (int2)(max(start, 0), min(start + w->size[d], w->in[d]));
}

#define EACH_PIXEL(at)                                                                             \
    for (int p_ = p.x; p_ < p.y; p_++)                                                             \
        for (int r_ = r.x; r_ < r.y; r_++)                                                         \
            for (int at = (p_ * w->in[1] + r_) * w->in[2] + c.x, end_ = at + c.y - c.x; at < end_; \
                 at++)

DEVICE void pool_max(const windows *w, GLOBAL const float *x, GLOBAL float *y, int n, int2 p,
                     int2 r, int2 c)
{
    lanes most = -INFINITY;
    const int ch = w->channels;
    EACH_PIXEL(at)
    {
        const lanes v = get(x + (long)at * ch, n);
        most = v > most || v != v ? v : most;
    }
    put(y, n, most);
}

DEVICE void pool_average(const windows *w, GLOBAL const float *x, GLOBAL float *y, int n, int2 p,
                         int2 r, int2 c)
{
    lanes sum = 0;
    const int ch = w->channels, count = (p.y - p.x) * (r.y - r.x) * (c.y - c.x);
    EACH_PIXEL(at) sum += get(x + (long)at * ch, n);
    put(y, n, sum / (float)count);
}

#define FORWARD(name, FN)                                                                          \
    KERNEL name(TENSOR(x), TENSOR(y), const windows given, int blocks)                             \
    {                                                                                              \
        const windows *w = &given;                                                                 \
        const int ch = w->channels;                                                                \
        const long size = (long)w->in[0] * w->in[1] * w->in[2] * ch;                               \
        const long all = (long)w->images * w->out[0] * w->out[1] * w->out[2];                      \
        EACH_ROW(i, all * blocks)                                                                  \
        {                                                                                          \
            const long o = i / blocks;                                                             \
            const int c0 = (int)(i - o * blocks) * LANES, column = o % w->out[2];                  \
            const long row = o / w->out[2], plane = row / w->out[1];                               \
            const int2 c = bounds(w, 2, column), r = bounds(w, 1, (int)(row % w->out[1]));         \
            const int2 p = bounds(w, 0, (int)(plane % w->out[0]));                                 \
            GLOBAL const float *x = OF(const float, x) + plane / w->out[0] * size + c0;            \
            GLOBAL float *y = OF(float, y) + o * ch + c0;                                          \
            if (ch - c0 >= LANES)                                                                  \
                FN(w, x, y, LANES, p, r, c);                                                       \
            else                                                                                   \
                FN(w, x, y, ch - c0, p, r, c);                                                     \
        }                                                                                          \
    }
FORWARD(max_pool, pool_max)
FORWARD(average_pool, pool_average)

/* The first of the largest elements of a window gets the gradient. */
DEVICE void spread_max(const windows *w, GLOBAL const float *x, GLOBAL float *dx, lanes most,
                       lanes d, int n, int2 p, int2 r, int2 c)
{
    const int ch = w->channels;
    choice left = -1;
    EACH_PIXEL(at)
    {
        const lanes v = get(x + (long)at * ch, n);
        const choice hit = left & -(choice)((v == most) & 1);
        put(dx + (long)at * ch, n, get(dx + (long)at * ch, n) + (hit != 0 ? d : (lanes)0));
        left &= ~hit;
    }
}

DEVICE void spread_average(const windows *w, GLOBAL const float *x, GLOBAL float *dx, lanes most,
                           lanes d, int n, int2 p, int2 r, int2 c)
{
    const int ch = w->channels, count = (p.y - p.x) * (r.y - r.x) * (c.y - c.x);
    const lanes each = d / (float)count;
    EACH_PIXEL(at) put(dx + (long)at * ch, n, get(dx + (long)at * ch, n) + each);
}

#define BACKWARD(name, FN)                                                                         \
    /* n channels of an image. */                                                                  \
    DEVICE void name##_image(const windows *w, GLOBAL const float *x, GLOBAL const float *y,       \
                             GLOBAL const float *dy, GLOBAL float *dx, int n)                      \
    {                                                                                              \
        const int ch = w->channels, rows = w->out[0] * w->out[1];                                  \
        const long size = (long)w->in[0] * w->in[1] * w->in[2] * ch;                               \
        for (long at = 0; at < size; at += ch)                                                     \
            put(dx + at, n, 0);                                                                    \
        for (int row = 0; row < rows; row++) {                                                     \
            const int2 r = bounds(w, 1, row % w->out[1]), p = bounds(w, 0, row / w->out[1]);       \
            for (int column = 0; column < w->out[2]; column++, y += ch, dy += ch) {                \
                const int2 c = bounds(w, 2, column);                                               \
                FN(w, x, dx, get(y, n), get(dy, n), n, p, r, c);                                   \
            }                                                                                      \
        }                                                                                          \
    }                                                                                              \
    KERNEL name(TENSOR(x), TENSOR(y), TENSOR(dy), TENSOR(dx), const windows given, int blocks)     \
    {                                                                                              \
        const windows *w = &given;                                                                 \
        const int ch = w->channels;                                                                \
        const long size = (long)w->in[0] * w->in[1] * w->in[2] * ch;                               \
        const long results = (long)w->out[0] * w->out[1] * w->out[2] * ch;                         \
        EACH_ROW(i, (long)w->images * blocks)                                                      \
        {                                                                                          \
            const long image = i / blocks;                                                         \
            const int c0 = (int)(i - image * blocks) * LANES;                                      \
            GLOBAL const float *x = OF(const float, x) + image * size + c0;                        \
            GLOBAL const float *y = OF(const float, y) + image * results + c0;                     \
            GLOBAL const float *dy = OF(const float, dy) + image * results + c0;                   \
            GLOBAL float *dx = OF(float, dx) + image * size + c0;                                  \
            if (ch - c0 >= LANES)                                                                  \
                name##_image(w, x, y, dy, dx, LANES);                                              \
            else                                                                                   \
                name##_image(w, x, y, dy, dx, ch - c0);                                            \
        }                                                                                          \
    }
BACKWARD(max_pool_grad, spread_max)
BACKWARD(average_pool_grad, spread_average)
