/* image_suppress.c -- NonMaxSuppression and its versions, CombinedNonMaxSuppression: of boxes that
 * overlap much, the one with the highest score is kept.
 *
 * Candidates of equal score are taken in the order that TensorFlow's heap gives, which is that of
 * the C++ library of GCC. Boxes of type half are computed as TensorFlow computes them: each result
 * is rounded to half. */
#include <stdlib.h>

#include "kernels/cpu/cpu.h"

/* ---- Overlaps ---- */

typedef struct boxes {
    const float *v; /* (n, 4), or (n, n) if they are overlaps */
    int64_t n;
    bool overlaps, half; /* half: round each result to half */
} boxes;

static inline float rounded(bool half, float x)
{
    return half ? leat_half_to_float(leat_half_from_float(x)) : x;
}

static inline float least(float a, float b)
{
    return b < a ? b : a;
}

static inline float most(float a, float b)
{
    return a < b ? b : a;
}

/* Intersection over union. */
static float overlap(const boxes *b, int64_t i, int64_t j)
{
    if (b->overlaps)
        return b->v[i * b->n + j];
    const bool half = b->half;
    const float *p = b->v + 4 * i, *q = b->v + 4 * j;
    const float p_top = least(p[0], p[2]), p_left = least(p[1], p[3]);
    const float p_bottom = most(p[0], p[2]), p_right = most(p[1], p[3]);
    const float q_top = least(q[0], q[2]), q_left = least(q[1], q[3]);
    const float q_bottom = most(q[0], q[2]), q_right = most(q[1], q[3]);
    const float p_area =
        rounded(half, rounded(half, p_bottom - p_top) * rounded(half, p_right - p_left));
    const float q_area =
        rounded(half, rounded(half, q_bottom - q_top) * rounded(half, q_right - q_left));
    if (p_area <= 0 || q_area <= 0)
        return 0;
    const float height = rounded(half, least(p_bottom, q_bottom) - most(p_top, q_top));
    const float width = rounded(half, least(p_right, q_right) - most(p_left, q_left));
    const float both = rounded(half, most(height, 0) * most(width, 0));
    return rounded(half, both / rounded(half, rounded(half, p_area + q_area) - both));
}

/* ---- A heap of candidates, the highest score on top ---- */

typedef struct candidate {
    int32_t box;
    float score;
    int64_t compared; /* the number of selected boxes that it was compared with */
} candidate;

static void heap_put(candidate *heap, int64_t hole, candidate c)
{
    for (int64_t up; hole > 0 && heap[up = (hole - 1) / 2].score < c.score; hole = up)
        heap[hole] = heap[up];
    heap[hole] = c;
}

/* Takes the top off a heap of n. The hole goes down to the end along the greater children, and the
 * last candidate is put there. */
static candidate heap_take(candidate *heap, int64_t n)
{
    const candidate top = heap[0], last = heap[--n];
    int64_t hole = 0;
    while (2 * hole + 2 < n) {
        const int64_t right = 2 * hole + 2;
        const int64_t child = heap[right].score < heap[right - 1].score ? right - 1 : right;
        heap[hole] = heap[child];
        hole = child;
    }
    if (2 * hole + 1 < n) {
        heap[hole] = heap[2 * hole + 1];
        hole = 2 * hole + 1;
    }
    if (n > 0)
        heap_put(heap, hole, last);
    return top;
}

/* ---- NonMaxSuppression ---- */

typedef struct limits {
    int64_t size; /* the number of boxes to select at most */
    float overlap, score, sigma;
} limits;

/* How a score is lowered by an overlap with a selected box. */
static float lowered(const boxes *b, const limits *l, float scale, float o)
{
    const float w = rounded(b->half, expf(rounded(b->half, rounded(b->half, scale * o) * o)));
    return o <= l->overlap ? w : 0;
}

typedef struct selection {
    int32_t *box;
    float *score;
    int64_t n, room;
} selection;

static leat_status selection_add(leat_kernel *k, selection *s, const candidate *c)
{
    if (s->n == s->room) {
        leat_tensor *box, *score;
        const leat_shape twice = {1, {2 * s->room + 16}};
        LEAT_TRY(leat_kernel_temp(k, LEAT_INT32, &twice, &box));
        LEAT_TRY(leat_kernel_temp(k, LEAT_FLOAT, &twice, &score));
        if (s->n > 0) {
            memcpy(box->data, s->box, (size_t)s->n * sizeof(*s->box));
            memcpy(score->data, s->score, (size_t)s->n * sizeof(*s->score));
        }
        s->box = AT(int32_t, box);
        s->score = AT(float, score);
        s->room = twice.dim[0];
    }
    s->box[s->n] = c->box;
    s->score[s->n++] = c->score;
    return NULL;
}

/* A box that was selected is a candidate again, as in TensorFlow, and is dropped since it overlaps
 * with itself; a box without an area does not, and is selected again and again. */
static leat_status select_boxes(leat_kernel *k, const boxes *b, const float *scores,
                                const limits *l, selection *s)
{
    leat_tensor *memory;
    LEAT_TRY(leat_kernel_temp(
        k, LEAT_INT64, &(leat_shape){2, {b->n + 1, sizeof(candidate) / sizeof(int64_t)}}, &memory));
    candidate *heap = memory->data;
    int64_t n = 0, work = 0;
    for (int64_t i = 0; i < b->n; i++)
        if (scores[i] > l->score)
            heap_put(heap, n++, (candidate){.box = (int32_t)i, .score = scores[i]});
    const float scale = l->sigma > 0 ? rounded(b->half, -0.5f / l->sigma) : 0;
    while (s->n < l->size && n > 0) {
        candidate c = heap_take(heap, n--);
        const float score = c.score;
        bool dropped = false;
        work += s->n - c.compared + 1;
        for (int64_t j = s->n - 1; j >= c.compared; j--) {
            const float o = overlap(b, c.box, s->box[j]);
            c.score = rounded(b->half, c.score * lowered(b, l, scale, o));
            dropped = o >= l->overlap;
            if (dropped || c.score <= l->score)
                break;
        }
        if (work > 1 << 20) {
            work = 0;
            if (leat_kernel_cancelled(k))
                return NULL; /* the step has failed: the result is not used */
        }
        c.compared = s->n;
        if (dropped)
            continue;
        if (c.score == score)
            LEAT_TRY(selection_add(k, s, &c));
        if (c.score > l->score)
            heap_put(heap, n++, c);
    }
    return NULL;
}

static leat_status scalar_in(leat_kernel *k, int i, const char *name, float *out)
{
    const leat_tensor *t = leat_kernel_in(k, i);
    LEAT_REQUIRE(t->shape.rank == 0, INVALID_ARGUMENT, "%s must be 0-D, got shape %s", name,
                 leat_shape_show(&t->shape).s);
    *out = AT(float, t)[0];
    return NULL;
}

static leat_status size_in(leat_kernel *k, int i, const char *name, int64_t *out)
{
    const leat_tensor *t = leat_kernel_in(k, i);
    LEAT_REQUIRE(t->shape.rank == 0, INVALID_ARGUMENT, "%s must be 0-D, got shape %s", name,
                 leat_shape_show(&t->shape).s);
    *out = AT(int32_t, t)[0];
    return NULL;
}

/* Reads the scalars, of which each version of the op has one more. */
static leat_status read_limits(leat_kernel *k, const boxes *b, limits *l)
{
    const leat_node *n = leat_kernel_node(k);
    const int inputs = leat_kernel_inputs(k);
    *l = (limits){.score = b->half ? -65504.0f : -3.402823466e+38f};
    LEAT_TRY(size_in(k, 2, "max_output_size", &l->size));
    if (inputs > 3)
        LEAT_TRY(scalar_in(k, 3, b->overlaps ? "overlap_threshold" : "iou_threshold", &l->overlap));
    else
        l->overlap = (float)leat_node_float(n, "iou_threshold");
    LEAT_REQUIRE(b->overlaps || (l->overlap >= 0 && l->overlap <= 1), INVALID_ARGUMENT,
                 "iou_threshold must be in [0, 1]");
    if (inputs > 4)
        LEAT_TRY(scalar_in(k, 4, "score_threshold", &l->score));
    if (inputs > 5) {
        LEAT_TRY(scalar_in(k, 5, "soft_nms_sigma", &l->sigma));
        LEAT_REQUIRE(l->sigma >= 0, INVALID_ARGUMENT, "soft_nms_sigma_val must be >= 0");
    }
    return NULL;
}

/* The result: vectors of indices and, if there are three outputs, of scores, filled with zeros up
 * to `size`; the last of several outputs is the number selected. */
static leat_status put_result(leat_kernel *k, const selection *s, int64_t size, int outputs)
{
    leat_tensor *y;
    const leat_shape shape = {1, {size}};
    LEAT_TRY(leat_kernel_out(k, 0, &shape, &y));
    memset(y->data, 0, (size_t)size * sizeof(int32_t));
    if (s->n > 0)
        memcpy(y->data, s->box, (size_t)s->n * sizeof(int32_t));
    if (outputs > 2) {
        LEAT_TRY(leat_kernel_out(k, 1, &shape, &y));
        memset(y->data, 0, (size_t)size * sizeof(float));
        if (s->n > 0)
            memcpy(y->data, s->score, (size_t)s->n * sizeof(float));
    }
    if (outputs > 1) {
        LEAT_TRY(leat_kernel_out(k, outputs - 1, &(leat_shape){0}, &y));
        AT(int32_t, y)[0] = (int32_t)s->n;
    }
    return NULL;
}

static leat_status suppress(leat_kernel *k, bool overlaps, int outputs)
{
    const leat_node *node = leat_kernel_node(k);
    const leat_tensor *x = leat_kernel_in(k, 0), *scores = leat_kernel_in(k, 1);
    boxes b = {.v = AT(const float, x),
               .overlaps = overlaps,
               .half = leat_node_has(node, "T") && leat_node_type(node, "T") == LEAT_HALF};
    limits l;
    LEAT_TRY(read_limits(k, &b, &l));
    const char *what = overlaps ? "overlaps" : "boxes";
    LEAT_REQUIRE(x->shape.rank == 2, INVALID_ARGUMENT, "%s must be 2-D%s", what,
                 leat_shape_show(&x->shape).s);
    b.n = x->shape.dim[0];
    LEAT_REQUIRE(overlaps || x->shape.dim[1] == 4, INVALID_ARGUMENT, "boxes must have 4 columns");
    LEAT_REQUIRE(!overlaps || x->shape.dim[1] == b.n, INVALID_ARGUMENT, "overlaps must be square%s",
                 leat_shape_show(&x->shape).s);
    LEAT_REQUIRE(scores->shape.rank == 1, INVALID_ARGUMENT, "scores must be 1-D%s",
                 leat_shape_show(&scores->shape).s);
    LEAT_REQUIRE(scores->count == b.n && b.n <= INT32_MAX, INVALID_ARGUMENT,
                 "scores has incompatible shape");
    LEAT_REQUIRE(l.size >= 0, INVALID_ARGUMENT, "output size must be non-negative");
    const bool pad = leat_node_has(node, "pad_to_max_output_size") &&
                     leat_node_bool(node, "pad_to_max_output_size");
    selection chosen = {0};
    LEAT_TRY(select_boxes(k, &b, AT(const float, scores), &l, &chosen));
    return put_result(k, &chosen, pad ? l.size : chosen.n, outputs);
}

static leat_status indices_run(leat_kernel *k)
{
    return suppress(k, false, 1);
}

static leat_status valid_run(leat_kernel *k)
{
    return suppress(k, false, 2);
}

static leat_status scores_run(leat_kernel *k)
{
    return suppress(k, false, 3);
}

static leat_status overlaps_run(leat_kernel *k)
{
    return suppress(k, true, 1);
}

/* ---- CombinedNonMaxSuppression: each class of each image on its own, then the best of all ---- */

typedef struct found {
    float score;
    int32_t box, class;
    int64_t order; /* in which it was found: of equal scores the first is taken first */
} found;

static int by_score(const void *a, const void *b)
{
    const found *x = a, *y = b;
    if (x->score != y->score)
        return x->score > y->score ? -1 : 1;
    return x->order < y->order ? -1 : x->order > y->order;
}

typedef struct combined {
    const float *boxes;  /* (n, q, 4) */
    const float *scores; /* (n, classes) */
    int64_t n, q, classes;
    int64_t each; /* boxes of a class at most */
    float overlap, score;
} combined;

static const float *box_of(const combined *c, int32_t box, int32_t class)
{
    return c->boxes + 4 * (box * c->q + (c->q > 1 ? class : 0));
}

static bool is_free(const combined *c, const found *f, const found *kept, int64_t n)
{
    float pair[8];
    memcpy(pair, box_of(c, f->box, f->class), sizeof(pair) / 2);
    for (int64_t j = n - 1; j >= 0; j--) {
        memcpy(pair + 4, box_of(c, kept[j].box, kept[j].class), sizeof(pair) / 2);
        if (overlap(&(boxes){.v = pair, .n = 2}, 0, 1) > c->overlap)
            return false;
    }
    return true;
}

/* The boxes kept of one image, best first, in `kept`; `scratch` has n elements. */
static int64_t combine(leat_kernel *k, const combined *c, found *scratch, found *kept)
{
    int64_t all = 0;
    for (int32_t class = 0; class < c->classes && !leat_kernel_cancelled(k); class ++) {
        int64_t n = 0, mine = 0;
        leat_look look = leat_look_begin(k);
        for (int32_t i = 0; i < c->n; i++)
            if (c->scores[i * c->classes + class] > c->score)
                scratch[n++] = (found){c->scores[i * c->classes + class], i, class, i};
        qsort(scratch, (size_t)n, sizeof(*scratch), by_score);
        for (int64_t i = 0; i < n && mine < c->each; i++) {
            if (leat_look_over(&look, 8 * (mine + 1)))
                break;
            if (is_free(c, &scratch[i], kept + all, mine))
                kept[all + mine++] = scratch[i];
        }
        all += mine;
    }
    for (int64_t i = 0; i < all; i++)
        kept[i].order = i;
    qsort(kept, (size_t)all, sizeof(*kept), by_score);
    return all;
}

static leat_status combined_sizes(leat_kernel *k, combined *c, int64_t *total)
{
    const leat_shape *b = &leat_kernel_in(k, 0)->shape, *s = &leat_kernel_in(k, 1)->shape;
    LEAT_REQUIRE(b->rank == 4, INVALID_ARGUMENT, "boxes must be 4-D%s", leat_shape_show(b).s);
    LEAT_REQUIRE(s->rank == 3, INVALID_ARGUMENT, "scores must be 3-D%s", leat_shape_show(s).s);
    LEAT_REQUIRE(b->dim[0] == s->dim[0], INVALID_ARGUMENT,
                 "boxes and scores must have same batch size");
    LEAT_TRY(size_in(k, 2, "max_size_per_class", &c->each));
    LEAT_REQUIRE(c->each > 0, INVALID_ARGUMENT, "max_size_per_class must be positive");
    LEAT_TRY(size_in(k, 3, "max_total_size", total));
    LEAT_REQUIRE(*total > 0, INVALID_ARGUMENT, "max_total_size must be > 0");
    LEAT_TRY(scalar_in(k, 4, "iou_threshold", &c->overlap));
    LEAT_TRY(scalar_in(k, 5, "score_threshold", &c->score));
    LEAT_REQUIRE(c->overlap >= 0 && c->overlap <= 1, INVALID_ARGUMENT,
                 "iou_threshold must be in [0, 1]");
    c->n = b->dim[1];
    c->q = b->dim[2];
    c->classes = s->dim[2];
    LEAT_REQUIRE(c->q == 1 || c->q == c->classes, INVALID_ARGUMENT,
                 "third dimension of boxes must be either 1 or num classes");
    LEAT_REQUIRE(b->dim[3] == 4, INVALID_ARGUMENT, "boxes must have 4 columns");
    LEAT_REQUIRE(s->dim[1] == c->n && c->n <= INT32_MAX && c->classes <= INT32_MAX,
                 INVALID_ARGUMENT, "scores has incompatible shape");
    if (leat_node_bool(leat_kernel_node(k), "pad_per_class") && c->classes * c->each < *total)
        *total = c->classes * c->each;
    if (c->each > c->n)
        c->each = c->n;
    return NULL;
}

static leat_status combined_run(leat_kernel *k)
{
    combined c = {0};
    int64_t total = 0;
    LEAT_TRY(combined_sizes(k, &c, &total));
    const leat_tensor *boxes_in = leat_kernel_in(k, 0), *scores_in = leat_kernel_in(k, 1);
    const int64_t batch = boxes_in->shape.dim[0];
    leat_tensor *y[4], *scratch, *kept;
    const leat_shape shapes[] = {
        {3, {batch, total, 4}}, {2, {batch, total}}, {2, {batch, total}}, {1, {batch}}};
    for (int i = 0; i < 4; i++) {
        LEAT_TRY(leat_kernel_out(k, i, &shapes[i], &y[i]));
        memset(y[i]->data, 0, (size_t)y[i]->count * sizeof(float));
    }
    enum { WORDS = sizeof(found) / sizeof(int64_t) };
    LEAT_TRY(leat_kernel_temp(k, LEAT_INT64, &(leat_shape){2, {c.n, WORDS}}, &scratch));
    LEAT_TRY(leat_kernel_temp(k, LEAT_INT64, &(leat_shape){3, {c.classes, c.each, WORDS}}, &kept));
    const bool clip = leat_node_bool(leat_kernel_node(k), "clip_boxes");
    for (int64_t b = 0; b < batch; b++) {
        c.boxes = AT(const float, boxes_in) + b * c.n * c.q * 4;
        c.scores = AT(const float, scores_in) + b * c.n * c.classes;
        const found *f = kept->data;
        int64_t n = combine(k, &c, scratch->data, kept->data);
        if (n > total)
            n = total;
        for (int64_t i = 0; i < n; i++) {
            float *box = AT(float, y[0]) + (b * total + i) * 4;
            const float *from = box_of(&c, f[i].box, f[i].class);
            for (int j = 0; j < 4; j++)
                box[j] = clip ? most(least(from[j], 1), 0) : from[j];
            AT(float, y[1])[b * total + i] = f[i].score;
            AT(float, y[2])[b * total + i] = (float)f[i].class;
        }
        AT(int32_t, y[3])[b] = (int32_t)n;
    }
    return NULL;
}

#define SUPPRESS(op_, run_)                                                                        \
    {                                                                                              \
        .op = op_, .where = {{"T", LEAT_T(FLOAT)}, {"T_threshold", LEAT_T(FLOAT)}}, .run = run_,   \
        .flags = LEAT_KERNEL_VIA_FLOAT                                                             \
    }

const leat_kernel_def leat_cpu_image_suppress[] = {
    {.op = "NonMaxSuppression", .run = indices_run},
    SUPPRESS("NonMaxSuppressionV2", indices_run),
    SUPPRESS("NonMaxSuppressionV3", indices_run),
    SUPPRESS("NonMaxSuppressionV4", valid_run),
    {.op = "NonMaxSuppressionV5",
     .where = {{"T", LEAT_T(FLOAT)}},
     .run = scores_run,
     .flags = LEAT_KERNEL_VIA_FLOAT},
    {.op = "NonMaxSuppressionWithOverlaps", .run = overlaps_run},
    {.op = "CombinedNonMaxSuppression", .run = combined_run},
    {0},
};
