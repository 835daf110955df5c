/* string_join.c -- ops that split, join and format strings: StringSplit, StringSplitV2, ReduceJoin,
 * UnsortedSegmentJoin, StringFormat. */
#include <ctype.h>
#include <stdlib.h>

#include "core/alloc.h"
#include "core/strbuf.h"
#include "kernels/cpu/cpu.h"

static leat_status set(leat_string *s, const char *text, size_t n)
{
    LEAT_REQUIRE(leat_string_set(s, text, n), RESOURCE_EXHAUSTED,
                 "no memory for a string of %zu bytes", n);
    return NULL;
}

/* ---- StringSplit and StringSplitV2 ---- */

typedef struct token {
    int64_t row, column;
    const char *text; /* in the input */
    size_t size;
} token;

typedef struct tokens {
    token *v;
    int64_t n, cap, row, column, columns; /* position of the next item; length of the longest row */
} tokens;

static void add(tokens *t, const char *text, size_t size)
{
    leat_grow(t->v, t->n, t->cap);
    t->v[t->n++] = (token){t->row, t->column++, text, size};
    if (t->column > t->columns)
        t->columns = t->column;
}

/* Splits at each byte that is in the delimiter; without a delimiter after each byte. */
static void split(tokens *t, const leat_string *s, const leat_string *delimiter, bool skip_empty)
{
    size_t from = 0;
    if (s->size == 0)
        return;
    for (size_t i = 0; i <= s->size; i++) {
        if (delimiter->size == 0) {
            if (i < s->size)
                add(t, s->data + i, 1);
        } else if (i == s->size || memchr(delimiter->data, s->data[i], delimiter->size)) {
            if (i > from || !skip_empty)
                add(t, s->data + from, i - from);
            from = i + 1;
        }
    }
}

static const char *find(const char *s, size_t n, const leat_string *what)
{
    for (size_t i = 0; i + what->size <= n; i++)
        if (memcmp(s + i, what->data, what->size) == 0)
            return s + i;
    return NULL;
}

/* Splits like Python's str.split. */
static void split_v2(tokens *t, const leat_string *s, const leat_string *separator, int64_t most)
{
    const char *at = s->data ? s->data : "", *end = at + s->size;
    int64_t n = 0;
    if (most == 0) {
        add(t, at, s->size);
        return;
    }
    if (separator->size == 0) {
        for (;;) {
            while (at < end && isspace((unsigned char)*at))
                at++;
            if (most > 0 && n == most) {
                add(t, at, (size_t)(end - at));
                return;
            }
            const char *from = at;
            while (at < end && !isspace((unsigned char)*at))
                at++;
            if (at == from)
                return;
            add(t, from, (size_t)(at - from));
            n++;
        }
    }
    const char *p;
    while ((most < 0 || n < most) && (p = find(at, (size_t)(end - at), separator))) {
        add(t, at, (size_t)(p - at));
        at = p + separator->size;
        n++;
    }
    add(t, at, (size_t)(end - at));
}

static leat_status give(leat_kernel *k, const tokens *t, int64_t rows)
{
    leat_tensor *indices, *values, *shape;
    LEAT_TRY(leat_kernel_out(k, 0, &(leat_shape){.rank = 2, .dim = {t->n, 2}}, &indices));
    LEAT_TRY(leat_kernel_out(k, 1, &(leat_shape){.rank = 1, .dim = {t->n}}, &values));
    LEAT_TRY(leat_kernel_out(k, 2, &(leat_shape){.rank = 1, .dim = {2}}, &shape));
    AT(int64_t, shape)[0] = rows;
    AT(int64_t, shape)[1] = t->columns;
    for (int64_t i = 0; i < t->n; i++) {
        AT(int64_t, indices)[2 * i] = t->v[i].row;
        AT(int64_t, indices)[2 * i + 1] = t->v[i].column;
        LEAT_TRY(set(AT(leat_string, values) + i, t->v[i].text, t->v[i].size));
    }
    return NULL;
}

static leat_status split_all(leat_kernel *k, bool v2)
{
    const leat_node *n = leat_kernel_node(k);
    const leat_tensor *x = leat_kernel_in(k, 0), *by = leat_kernel_in(k, 1);
    LEAT_REQUIRE(x->shape.rank == 1, INVALID_ARGUMENT, "input must be a vector, got shape: %s",
                 leat_shape_show(&x->shape).s);
    LEAT_REQUIRE(by->shape.rank == 0, INVALID_ARGUMENT, "%s must be a scalar, got shape: %s",
                 v2 ? "sep" : "delimiter", leat_shape_show(&by->shape).s);
    tokens t = {0};
    for (int64_t i = 0; i < x->count; i++) {
        t.row = i;
        t.column = 0;
        if (v2)
            split_v2(&t, AT(leat_string, x) + i, AT(leat_string, by), leat_node_int(n, "maxsplit"));
        else
            split(&t, AT(leat_string, x) + i, AT(leat_string, by), leat_node_bool(n, "skip_empty"));
    }
    leat_status s = give(k, &t, x->count);
    free(t.v);
    return s;
}

static leat_status split_run(leat_kernel *k)
{
    return split_all(k, false);
}

static leat_status split_v2_run(leat_kernel *k)
{
    return split_all(k, true);
}

/* ---- ReduceJoin ---- */

typedef struct walk { /* iterates over the elements of some dimensions, the first one slowest */
    int64_t size[LEAT_MAX_RANK], stride[LEAT_MAX_RANK], count;
    int n;
} walk;

static void walk_add(walk *w, const leat_shape *s, int d)
{
    int64_t stride = 1;
    for (int i = d + 1; i < s->rank; i++)
        stride *= s->dim[i];
    w->size[w->n] = s->dim[d];
    w->stride[w->n++] = stride;
    w->count *= s->dim[d];
}

static int64_t walk_at(const walk *w, int64_t i)
{
    int64_t at = 0;
    for (int d = w->n - 1; d >= 0; d--) {
        at += i % w->size[d] * w->stride[d];
        i /= w->size[d];
    }
    return at;
}

static leat_status reduced_dims(const leat_shape *s, const leat_tensor *axes, bool *is_reduced,
                                walk *reduced)
{
    for (int64_t i = 0; i < axes->count; i++) {
        int64_t a = leat_index_at(axes, i);
        LEAT_REQUIRE(a >= -s->rank && a < s->rank, OUT_OF_RANGE,
                     "Invalid reduction dimension %lld for input with %d dimension(s)",
                     (long long)a, s->rank);
        int d = (int)(a < 0 ? a + s->rank : a);
        LEAT_REQUIRE(!is_reduced[d], INVALID_ARGUMENT, "Duplicate reduction dimension %lld",
                     (long long)a);
        is_reduced[d] = true;
    }
    /* The axis that is named first changes fastest. */
    for (int64_t i = axes->count - 1; i >= 0; i--) {
        int64_t a = leat_index_at(axes, i);
        walk_add(reduced, s, (int)(a < 0 ? a + s->rank : a));
    }
    return NULL;
}

static leat_status reduce_join_run(leat_kernel *k)
{
    const leat_node *node = leat_kernel_node(k);
    const leat_tensor *x = leat_kernel_in(k, 0);
    const char *separator = leat_node_string(node, "separator");
    walk reduced = {.count = 1}, kept = {.count = 1};
    bool is_reduced[LEAT_MAX_RANK] = {false};
    LEAT_TRY(reduced_dims(&x->shape, leat_kernel_in(k, 1), is_reduced, &reduced));
    leat_shape shape = {0};
    for (int d = 0; d < x->shape.rank; d++) {
        if (!is_reduced[d])
            walk_add(&kept, &x->shape, d);
        if (!is_reduced[d] || leat_node_bool(node, "keep_dims"))
            shape.dim[shape.rank++] = is_reduced[d] ? 1 : x->shape.dim[d];
    }
    leat_tensor *y;
    LEAT_TRY(leat_kernel_out(k, 0, &shape, &y));
    leat_strbuf b = {.checked = true};
    leat_status s = NULL;
    for (int64_t i = 0; i < y->count && !s; i++) {
        leat_strbuf_clear(&b);
        for (int64_t j = 0; j < reduced.count; j++) {
            const leat_string *part = AT(leat_string, x) + walk_at(&kept, i) + walk_at(&reduced, j);
            leat_strbuf_puts(&b, j ? separator : "");
            leat_strbuf_add(&b, part->data, part->size);
        }
        s = leat_strbuf_check(&b);
        if (!s)
            s = set(AT(leat_string, y) + i, b.s, b.n);
    }
    leat_strbuf_release(&b);
    return s;
}

/* ---- UnsortedSegmentJoin ---- */

static leat_status segment_join(const leat_tensor *x, const leat_tensor *ids, int64_t segments,
                                const char *separator, leat_tensor *y)
{
    int64_t inner = ids->count ? x->count / ids->count : 0;
    leat_strbuf b = {.checked = true};
    bool *begun;
    leat_status s = leat_try_array(segments, &begun);
    for (int64_t i = 0; i < ids->count && !s; i++) {
        int64_t id = leat_index_at(ids, i);
        if (id < 0 || id >= segments)
            s = leat_error(INVALID_ARGUMENT, "segment_ids are not allowed to exceed num_segments "
                                             "or to have negative values.");
    }
    for (int64_t i = 0; i < ids->count && !s; i++) {
        int64_t id = leat_index_at(ids, i);
        for (int64_t j = 0; j < inner && !s; j++) {
            leat_string *to = AT(leat_string, y) + id * inner + j;
            const leat_string *from = AT(leat_string, x) + i * inner + j;
            leat_strbuf_clear(&b);
            leat_strbuf_add(&b, to->data, to->size);
            leat_strbuf_puts(&b, begun[id] ? separator : "");
            leat_strbuf_add(&b, from->data, from->size);
            s = leat_strbuf_check(&b);
            if (!s)
                s = set(to, b.s, b.n);
        }
        begun[id] = true;
    }
    free(begun);
    leat_strbuf_release(&b);
    return s;
}

static leat_status segment_join_run(leat_kernel *k)
{
    const leat_tensor *x = leat_kernel_in(k, 0), *ids = leat_kernel_in(k, 1),
                      *n = leat_kernel_in(k, 2);
    LEAT_REQUIRE(ids->shape.rank != 0, INVALID_ARGUMENT, "Segment_id cannot have rank 0");
    LEAT_REQUIRE(ids->shape.rank <= x->shape.rank, OUT_OF_RANGE,
                 "Invalid segment_id rank %d for input with %d dimension(s)", ids->shape.rank,
                 x->shape.rank);
    for (int d = 0; d < ids->shape.rank; d++)
        LEAT_REQUIRE(ids->shape.dim[d] == x->shape.dim[d], INVALID_ARGUMENT,
                     "Segment dimension is %lld while input dimension is %d in rank %d",
                     (long long)ids->shape.dim[d], x->shape.rank, d);
    LEAT_REQUIRE(n->count == 1, INVALID_ARGUMENT, "Number of segments should be a scalar");
    int64_t segments = leat_index_at(n, 0);
    LEAT_REQUIRE(segments >= 0, INVALID_ARGUMENT, "Number of segments cannot be negative");
    leat_shape shape = {.rank = 1, .dim = {segments}};
    for (int d = ids->shape.rank; d < x->shape.rank; d++)
        shape.dim[shape.rank++] = x->shape.dim[d];
    leat_tensor *y;
    LEAT_TRY(leat_kernel_out(k, 0, &shape, &y));
    for (int64_t i = 0; i < y->count; i++)
        LEAT_TRY(set(AT(leat_string, y) + i, "", 0));
    return segment_join(x, ids, segments, leat_node_string(leat_kernel_node(k), "separator"), y);
}

/* ---- StringFormat ---- */

static leat_status format_run(leat_kernel *k)
{
    const leat_node *n = leat_kernel_node(k);
    const char *at = leat_node_string(n, "template"), *next;
    const char *hole = leat_node_string(n, "placeholder");
    leat_strbuf b = {.checked = true};
    int inputs = leat_kernel_inputs(k);
    for (int i = 0; *hole && i < inputs && (next = strstr(at, hole)); i++) {
        leat_strbuf_add(&b, at, (size_t)(next - at));
        char *text = leat_tensor_summary(leat_kernel_in(k, i), leat_node_int(n, "summarize"));
        leat_strbuf_puts(&b, text);
        free(text);
        at = next + strlen(hole);
    }
    leat_strbuf_puts(&b, at);
    leat_tensor *y;
    leat_status s = leat_strbuf_check(&b);
    if (!s)
        s = leat_kernel_out(k, 0, &(leat_shape){0}, &y);
    if (!s)
        s = set(AT(leat_string, y), b.s, b.n);
    leat_strbuf_release(&b);
    return s;
}

const leat_kernel_def leat_cpu_string_join[] = {
    {.op = "StringSplit", .run = split_run},
    {.op = "StringSplitV2", .run = split_v2_run},
    {.op = "ReduceJoin", .run = reduce_join_run},
    {.op = "UnsortedSegmentJoin", .run = segment_join_run},
    {.op = "StringFormat", .run = format_run},
    {0},
};
