/* digits.c -- digits drawn as strokes: each is a few lines and arcs in a unit square, which are
 * bent, slanted, turned, scaled and shifted at random, then drawn with a pen of random width on
 * noisy paper. Easier than MNIST, but single pixels do not suffice to tell the digits apart. */
#include "data/digits.h"

#include <math.h>
#include <string.h>

#include "core/buffer.h"
#include "data/random.h"

enum { SIDE = 28 };

/* A stroke: an arc around (x, y) with radii rx and ry from angle a to b, in degrees, clockwise from
 * the right as y goes down; or, with rx 0, the line from (x, y) to (a, b). */
typedef struct stroke {
    float x, y, rx, ry, a, b;
} stroke;

static const struct {
    int n;
    stroke strokes[4];
} digits[10] = {
    {1, {{.5f, .5f, .3f, .45f, 0, 360}}},
    {2, {{.35f, .2f, 0, 0, .55f, .05f}, {.55f, .05f, 0, 0, .55f, .95f}}},
    {3,
     {{.5f, .3f, .3f, .25f, -170, 45},
      {.71f, .48f, 0, 0, .2f, .95f},
      {.2f, .95f, 0, 0, .85f, .95f}}},
    {2, {{.45f, .28f, .3f, .23f, -160, 90}, {.45f, .73f, .33f, .23f, -90, 160}}},
    {3,
     {{.6f, .05f, 0, 0, .15f, .65f},
      {.15f, .65f, 0, 0, .85f, .65f},
      {.65f, .4f, 0, 0, .65f, .95f}}},
    {4,
     {{.8f, .05f, 0, 0, .3f, .05f},
      {.3f, .05f, 0, 0, .25f, .45f},
      {.25f, .45f, 0, 0, .45f, .4f},
      {.45f, .67f, .33f, .27f, -90, 150}}},
    {2, {{.75f, .7f, .55f, .65f, -180, -95}, {.5f, .7f, .28f, .25f, 0, 360}}},
    {2, {{.15f, .05f, 0, 0, .85f, .05f}, {.85f, .05f, 0, 0, .4f, .95f}}},
    {2, {{.5f, .27f, .24f, .22f, 0, 360}, {.5f, .72f, .3f, .24f, 0, 360}}},
    {2, {{.5f, .3f, .28f, .25f, 0, 360}, {.78f, .3f, 0, 0, .68f, .95f}}},
};

typedef struct pen {
    float m[6]; /* from the unit square to pixels */
    float width;
    leat_rng *rng;
    unsigned char *image;
} pen;

/* Draws a line; darkness falls off over one pixel at its edge. */
static void draw_line(pen *p, float x0, float y0, float x1, float y1)
{
    float reach = p->width + 1, dx = x1 - x0, dy = y1 - y0, length = dx * dx + dy * dy + 1e-6f;
    int left = (int)fmaxf(0, floorf(fminf(x0, x1) - reach));
    int right = (int)fminf(SIDE - 1, ceilf(fmaxf(x0, x1) + reach));
    int top = (int)fmaxf(0, floorf(fminf(y0, y1) - reach));
    int bottom = (int)fminf(SIDE - 1, ceilf(fmaxf(y0, y1) + reach));
    for (int y = top; y <= bottom; y++)
        for (int x = left; x <= right; x++) {
            float t = (((float)x - x0) * dx + ((float)y - y0) * dy) / length;
            t = fminf(1, fmaxf(0, t));
            float ax = x0 + t * dx - (float)x, ay = y0 + t * dy - (float)y;
            float ink = p->width + .5f - sqrtf(ax * ax + ay * ay);
            int dark = (int)(255 * fminf(1, fmaxf(0, ink)));
            unsigned char *at = &p->image[y * SIDE + x];
            *at = *at > dark ? *at : (unsigned char)dark;
        }
}

static void draw_stroke(pen *p, const stroke *s)
{
    int pieces = s->rx > 0 ? 3 + (int)(fabsf(s->b - s->a) / 30) : 1;
    float last_x = 0, last_y = 0;
    float wobble_x = leat_rng_uniform(p->rng, -.04f, .04f);
    float wobble_y = leat_rng_uniform(p->rng, -.04f, .04f);
    for (int i = 0; i <= pieces; i++) {
        float t = (float)i / (float)pieces, u, v;
        float angle = (s->a + t * (s->b - s->a)) * (float)(M_PI / 180);
        if (s->rx > 0) {
            u = s->x + s->rx * cosf(angle);
            v = s->y + s->ry * sinf(angle);
        } else {
            u = s->x + t * (s->a - s->x);
            v = s->y + t * (s->b - s->y);
        }
        u += wobble_x;
        v += wobble_y;
        float x = p->m[0] * u + p->m[1] * v + p->m[2], y = p->m[3] * u + p->m[4] * v + p->m[5];
        if (i > 0)
            draw_line(p, last_x, last_y, x, y);
        last_x = x;
        last_y = y;
    }
}

/* The square's middle goes near the image's; it is turned, slanted and stretched on the way. */
static void place(pen *p)
{
    leat_rng *r = p->rng;
    float turn = leat_rng_uniform(r, -.25f, .25f), slant = leat_rng_uniform(r, -.3f, .3f);
    float wide = leat_rng_uniform(r, 11, 18), high = leat_rng_uniform(r, 16, 21);
    float c = cosf(turn), s = sinf(turn);
    p->m[0] = wide * c;
    p->m[1] = -high * s - slant * high * c;
    p->m[3] = wide * s;
    p->m[4] = high * c - slant * high * s;
    p->m[2] = 13.5f + leat_rng_uniform(r, -2.5f, 2.5f) - (p->m[0] + p->m[1]) / 2;
    p->m[5] = 13.5f + leat_rng_uniform(r, -2.5f, 2.5f) - (p->m[3] + p->m[4]) / 2;
    p->width = leat_rng_uniform(r, .5f, 1.5f);
}

static void draw_digit(leat_rng *rng, int digit, unsigned char *image)
{
    pen p = {.rng = rng, .image = image};
    memset(image, 0, SIDE * SIDE);
    place(&p);
    for (int i = 0; i < digits[digit].n; i++)
        draw_stroke(&p, &digits[digit].strokes[i]);
    for (int i = 0; i < 24; i++) { /* noise */
        int64_t at = leat_rng_below(rng, SIDE * SIDE);
        int light = image[at] + (int)leat_rng_uniform(rng, -90, 90);
        image[at] = (unsigned char)(light < 0 ? 0 : light > 255 ? 255 : light);
    }
}

leat_status leat_digits_draw(uint64_t seed, int64_t n, leat_tensor **images_out,
                             leat_tensor **labels_out)
{
    leat_tensor *images, *labels;
    leat_shape shape = leat_shape(n, SIDE, SIDE), vector = leat_shape(n);
    LEAT_TRY(leat_tensor_alloc(NULL, LEAT_UINT8, &shape, &images));
    leat_status s = leat_tensor_alloc(NULL, LEAT_UINT8, &vector, &labels);
    if (s) {
        leat_tensor_unref(images);
        return s;
    }
    leat_rng rng;
    leat_rng_init(&rng, seed);
    for (int64_t i = 0; i < n; i++) {
        int digit = (int)leat_rng_below(&rng, 10);
        ((unsigned char *)labels->data)[i] = (unsigned char)digit;
        draw_digit(&rng, digit, (unsigned char *)images->data + i * SIDE * SIDE);
    }
    *images_out = images;
    *labels_out = labels;
    return NULL;
}
