/* ctc_beam.c -- CTCBeamSearchDecoder: the likeliest sequences of labels, each summed over its
 * alignments with time, among the beam_width best beginnings at each time (Graves, 2012, 7.5.3).
 *
 * A beginning is a node of a tree; its labels are those on the way from the root. Invariants:
 * 1. Nodes of the beam are in `beam`, a heap whose first is the least likely.
 * 2. A node that has left the beam keeps its place in the tree while it has children, because it
 * may come back; without children it is freed at the end of the step. */
#include <inttypes.h>
#include <stdlib.h>

#include "core/alloc.h"
#include "kernels/cpu/ctc.h"

enum { BLOCK = 256 };

typedef struct node {
    /* Logarithms of the probabilities after this step: of the labels, and of those of their
     * alignments that end with a blank, and with the last label. */
    double total, blank, last;
    double old_total, old_blank;                 /* the same before this step */
    struct node *parent, *child, *next, *before; /* next, before: children of one parent */
    int64_t order;        /* of arrival: of equal nodes the first is better */
    int32_t label;        /* -1: the root */
    bool in_beam, listed; /* listed: in `left` */
} node;

typedef struct nodes {
    node **at;
    int64_t n, room;
} nodes;

/* The search for one sequence. */
typedef struct search {
    int64_t width, arrivals;
    nodes beam, branches, left, blocks; /* left: those that left the beam in this step */
    node *root, *spare;                 /* spare: linked by `next` */
    int64_t used;                       /* of the last block */
} search;

typedef struct beam_args {
    leat_kernel *k;
    leat_ctc in;
    int64_t width, paths;
    bool merge;
    leat_tensor *score;
    leat_ctc_decoded *decoded; /* paths of each sequence; their labels are malloc'ed */
    leat_status *failed;       /* of each sequence */
} beam_args;

/* log(e^a + e^b) */
static double log_sum(double a, double b)
{
    if (a == -INFINITY || b == -INFINITY)
        return a == -INFINITY ? b : a;
    return a > b ? a + log1p(exp(b - a)) : b + log1p(exp(a - b));
}

/* ---- The beam ---- */

static leat_status add(nodes *s, node *x)
{
    if (s->n == s->room) {
        const int64_t room = s->room ? 2 * s->room : 32;
        node **at;
        LEAT_TRY(leat_try_array(room, &at));
        if (s->n)
            memcpy(at, s->at, sizeof(*at) * (size_t)s->n);
        free(s->at);
        s->at = at;
        s->room = room;
    }
    s->at[s->n++] = x;
    return NULL;
}

static bool worse(const node *a, const node *b)
{
    const double x = a->total == a->total ? a->total : -INFINITY,
                 y = b->total == b->total ? b->total : -INFINITY;
    return x < y || (x == y && a->order > b->order);
}

static int best_first(const void *a, const void *b)
{
    const node *x = *(node *const *)a, *y = *(node *const *)b;
    return worse(x, y) ? 1 : worse(y, x) ? -1 : 0;
}

static void sink(nodes *h, int64_t i)
{
    node *x = h->at[i];
    for (int64_t child; (child = 2 * i + 1) < h->n; i = child) {
        if (child + 1 < h->n && worse(h->at[child + 1], h->at[child]))
            child++;
        if (!worse(h->at[child], x))
            break;
        h->at[i] = h->at[child];
    }
    h->at[i] = x;
}

/* Adds a node to the beam. If the beam is full, the least likely one leaves it. */
static leat_status enter(search *s, node *x)
{
    x->in_beam = true;
    x->order = s->arrivals++;
    if (s->beam.n == s->width) {
        node *out = s->beam.at[0];
        out->in_beam = false;
        s->beam.at[0] = x;
        sink(&s->beam, 0);
        if (out->listed)
            return NULL;
        out->listed = true;
        return add(&s->left, out);
    }
    LEAT_TRY(add(&s->beam, x));
    int64_t i = s->beam.n - 1;
    for (int64_t up; i > 0 && worse(x, s->beam.at[up = (i - 1) / 2]); i = up)
        s->beam.at[i] = s->beam.at[up];
    s->beam.at[i] = x;
    return NULL;
}

/* ---- The tree ---- */

static leat_status new_node(search *s, node *parent, int32_t label, node **out)
{
    node *x = s->spare;
    if (x) {
        s->spare = x->next;
    } else {
        if (s->blocks.n == 0 || s->used == BLOCK) {
            LEAT_TRY(leat_try_array(BLOCK, &x));
            leat_status bad = add(&s->blocks, x);
            if (bad)
                free(x);
            LEAT_TRY(bad);
            s->used = 0;
        }
        x = s->blocks.at[s->blocks.n - 1] + s->used++;
    }
    *x = (node){.parent = parent, .label = label, .blank = -INFINITY};
    if (parent) {
        x->next = parent->child;
        if (x->next)
            x->next->before = x;
        parent->child = x;
    }
    *out = x;
    return NULL;
}

/* Frees nodes that neither are in the beam nor have children, from x towards the root. */
static void drop(search *s, node *x)
{
    while (x->parent && !x->in_beam && !x->child && !x->listed) {
        node *parent = x->parent;
        if (x->before)
            x->before->next = x->next;
        else
            parent->child = x->next;
        if (x->next)
            x->next->before = x->before;
        x->next = s->spare;
        s->spare = x;
        x = parent;
    }
}

static void sweep(search *s)
{
    for (int64_t i = 0; i < s->left.n; i++) {
        s->left.at[i]->listed = false;
        drop(s, s->left.at[i]);
    }
    s->left.n = 0;
}

/* ---- A step in time ---- */

/* The beginnings of the beam stay as they are: by a blank, or by one more alignment of the last
 * label. */
static leat_status keep(search *s, const beam_args *a, int64_t b, int64_t t, double norm)
{
    const double blank = leat_ctc_logit(&a->in, t, b, a->in.blank) - norm;
    for (int64_t i = 0; i < s->branches.n; i++) {
        node *x = s->branches.at[i], *p = x->parent;
        if (p) {
            if (p->in_beam)
                x->last = log_sum(x->last, x->label == p->label ? p->old_blank : p->old_total);
            x->last += leat_ctc_logit(&a->in, t, b, x->label) - norm;
        }
        x->blank = x->old_total + blank;
        x->total = log_sum(x->blank, x->last);
    }
    s->beam.n = 0;
    for (int64_t i = 0; i < s->branches.n; i++)
        LEAT_TRY(enter(s, s->branches.at[i]));
    return NULL;
}

static bool is_candidate(const search *s, double total)
{
    return total > -INFINITY && (s->beam.n < s->width || total > s->beam.at[0]->total);
}

/* Adds the number of children that were looked at to *seen. */
static node *child_of(node *x, int32_t label, int64_t *seen)
{
    node *c = x->child;
    for (; c && c->label != label; c = c->next)
        ++*seen;
    return c;
}

/* x goes on with another label, if that is likely enough for the beam. Else, as in TensorFlow, if
 * these labels were in the beam before this step and have left it, they are not gone on with. */
static leat_status extend(search *s, node *x, int32_t label, double likely, int64_t *seen)
{
    const bool enters = is_candidate(s, likely);
    if (!enters && s->left.n == 0)
        return NULL;
    node *c = child_of(x, label, seen);
    if (c && c->in_beam)
        return NULL;
    if (!enters) {
        if (c)
            c->old_total = -INFINITY;
        return NULL;
    }
    if (!c)
        LEAT_TRY(new_node(s, x, label, &c));
    c->blank = -INFINITY;
    c->last = c->total = likely;
    return enter(s, c);
}

static leat_status step(search *s, const beam_args *a, int64_t b, int64_t t, leat_look *look)
{
    const leat_ctc *in = &a->in;
    double most = -INFINITY, sum = 0;
    for (int64_t c = 0; c < in->classes; c++) {
        const double x = leat_ctc_logit(in, t, b, c);
        if (x > most) /* not fmax, at which gcc 12 breaks off for 64-bit ARM */
            most = x;
    }
    for (int64_t c = 0; c < in->classes; c++)
        sum += exp(leat_ctc_logit(in, t, b, c) - most);
    const double norm = most + log(sum);
    s->branches.n = 0;
    for (int64_t i = 0; i < s->beam.n; i++) {
        node *x = s->beam.at[i];
        x->old_total = x->total;
        x->old_blank = x->blank;
        LEAT_TRY(add(&s->branches, x));
    }
    qsort(s->branches.at, (size_t)s->branches.n, sizeof(node *), best_first);
    LEAT_TRY(keep(s, a, b, t, norm));
    for (int64_t i = 0; i < s->branches.n; i++) {
        node *x = s->branches.at[i];
        if (!is_candidate(s, x->old_total))
            continue;
        for (int64_t c = 0, seen = 0; c < in->blank; c++, seen = 0) {
            const double likely =
                leat_ctc_logit(in, t, b, c) - norm + (c == x->label ? x->old_blank : x->old_total);
            LEAT_TRY(extend(s, x, (int32_t)c, likely, &seen));
            if (leat_look_over(look, 4 + 4 * seen))
                return NULL;
        }
    }
    sweep(s);
    return NULL;
}

/* ---- The best paths ---- */

static leat_status labels_of(const node *x, bool merge, leat_ctc_decoded *out)
{
    int64_t n = 0;
    int32_t after = -1;
    for (const node *i = x; i->parent; after = i->label, i = i->parent)
        n += !(merge && i->label == after);
    LEAT_TRY(leat_try_array(n ? n : 1, &out->label));
    out->n = n;
    after = -1;
    for (const node *i = x; i->parent; after = i->label, i = i->parent)
        if (!(merge && i->label == after))
            out->label[--n] = i->label;
    return NULL;
}

static leat_status best(search *s, const beam_args *a, int64_t b)
{
    LEAT_REQUIRE(a->paths <= a->width, INVALID_ARGUMENT,
                 "requested more paths than the beam width. top_paths is %" PRId64
                 ", beam_width is %" PRId64,
                 a->paths, a->width);
    LEAT_REQUIRE(a->paths <= s->beam.n, INVALID_ARGUMENT,
                 "Less leaves in the beam search than requested. top_paths is %" PRId64
                 ", sequence %" PRId64 " gives %" PRId64,
                 a->paths, b, s->beam.n);
    qsort(s->beam.at, (size_t)s->beam.n, sizeof(node *), best_first);
    for (int64_t p = 0; p < a->paths; p++) {
        const int64_t at = b * a->paths + p;
        const double total = s->beam.at[p]->total;
        LEAT_TRY(labels_of(s->beam.at[p], a->merge, &a->decoded[at]));
        if (a->score->dtype == LEAT_FLOAT)
            AT(float, a->score)[at] = (float)total;
        else
            AT(double, a->score)[at] = total;
    }
    return NULL;
}

static leat_status search_one(search *s, const beam_args *a, int64_t b, leat_look *look)
{
    LEAT_TRY(new_node(s, NULL, -1, &s->root));
    s->root->last = -INFINITY;
    LEAT_TRY(enter(s, s->root));
    for (int64_t t = 0; t < a->in.length[b]; t++) {
        if (leat_look_over(look, a->in.classes))
            return NULL;
        LEAT_TRY(step(s, a, b, t, look));
    }
    return best(s, a, b);
}

static void part(void *arg, int64_t begin, int64_t end)
{
    beam_args *a = arg;
    leat_look look = leat_look_begin(a->k);
    for (int64_t b = begin; b < end; b++) {
        search s = {.width = a->width};
        a->failed[b] = search_one(&s, a, b, &look);
        for (int64_t i = 0; i < s.blocks.n; i++)
            free(s.blocks.at[i]);
        nodes *const lists[] = {&s.beam, &s.branches, &s.left, &s.blocks};
        for (int i = 0; i < 4; i++)
            free(lists[i]->at);
    }
}

static leat_status beam_run(leat_kernel *k)
{
    const leat_node *n = leat_kernel_node(k);
    beam_args a = {.k = k,
                   .width = leat_node_int(n, "beam_width"),
                   .paths = leat_node_int(n, "top_paths"),
                   .merge = leat_node_bool(n, "merge_repeated")};
    leat_status s = NULL;
    LEAT_TRY(leat_ctc_inputs(k, 1, LEAT_FAILED_PRECONDITION, &a.in));
    const int64_t batch = a.in.batch;
    const leat_shape scores = leat_shape(batch, a.paths);
    LEAT_TRY(leat_kernel_out(k, (int)(3 * a.paths), &scores, &a.score));
    LEAT_TRY(leat_try_array(batch, &a.failed));
    s = leat_try_array(a.score->count, &a.decoded);
    if (!s)
        leat_kernel_for(k, batch, (double)a.in.time * (double)a.in.classes * 50, part, &a);
    for (int64_t b = 0; b < batch; b++)
        s = leat_status_first(s, a.failed[b]);
    if (!s)
        s = leat_ctc_store(k, batch, a.paths, a.decoded);
    for (int64_t i = 0; a.decoded && i < a.score->count; i++)
        free(a.decoded[i].label);
    free(a.decoded);
    free(a.failed);
    return s;
}

const leat_kernel_def leat_cpu_ctc_beam[] = {
    {.op = "CTCBeamSearchDecoder", .run = beam_run},
    {0},
};
