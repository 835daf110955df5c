/* sequence_example.c -- ParseSequenceExample and ParseSingleSequenceExample; see example.h. The
 * second one parses one message, and its outputs have no batch dimension. The errors of both are
 * TensorFlow's, which words them differently for the two ops. */
#include <stdio.h>
#include <stdlib.h>

#include "core/alloc.h"
#include "core/strbuf.h"
#include "kernels/cpu/example.h"

/* What a message has for a feature of the context, or for a list of features. */
typedef struct cell {
    leat_span value;
    bool there;
    int64_t rows, n; /* features of the list, and values of all of them */
} cell;

/* One of the two maps of the messages. */
typedef struct map {
    leat_wanted wanted;
    int n_sparse, n_dense, first_out; /* first_out: its first output */
    cell *cells;                      /* of each message, of each feature */
} map;

typedef struct parse {
    leat_kernel *k;
    const leat_string *serialized;
    int64_t messages;
    const leat_string *names; /* of the messages, for errors; or NULL */
    bool single;
    map context, lists;
    bool *may_miss; /* of each dense list */
} parse;

static const char *name_of(const parse *p, int64_t m)
{
    const char *name = p->names ? p->names[m].data : "<unknown>";
    return name ? name : "";
}

#define KEY(f) (int)leat_span_size((f)->key), (const char *)(f)->key.p

/* ---- Errors ---- */

static leat_status malformed(const parse *p, int64_t m, leat_span bytes)
{
    if (!p->single)
        return leat_error(INVALID_ARGUMENT, "Invalid protocol message input, example id: %s",
                          name_of(p, m));
    return leat_example_malformed("Could not parse example input, value", bytes.p,
                                  leat_span_size(bytes));
}

/* "float_list { 2 values }" */
static leat_text feature_text(leat_dtype kind, leat_span list)
{
    leat_text t = {""};
    if (kind != LEAT_INVALID)
        snprintf(t.s, sizeof(t.s), "%s_list { %lld values }",
                 kind == LEAT_STRING ? "bytes" : leat_dtype_name(kind),
                 (long long)leat_feature_count(kind, list));
    return t;
}

/* Feature `row` of a list, or a feature of the context (row -1), is malformed or of another type.
 */
static leat_status wrong_type(const parse *p, const leat_feature *f, int64_t m, int64_t row,
                              leat_dtype kind, leat_span list)
{
    const char *name = name_of(p, m), *want = leat_dtype_name(f->dtype);
    if (!p->single)
        return leat_error(INVALID_ARGUMENT, "Error in %s feature %.*s in example %s",
                          row < 0 ? "context" : "sequence", KEY(f), name);
    if (row < 0)
        return leat_error(INVALID_ARGUMENT,
                          "Name: %s, Context feature: %.*s.  Data types don't match. Expected "
                          "type: %s  Feature is: %s",
                          name, KEY(f), want, feature_text(kind, list).s);
    return leat_error(INVALID_ARGUMENT,
                      "Name: %s, Feature %s: %.*s, Index: %lld.  Data types don't match. Expected "
                      "type: %s  Feature is: %s",
                      name, f->role == LEAT_FEATURE_SPARSE ? "List" : "list", KEY(f),
                      (long long)row, want, feature_text(kind, list).s);
}

static leat_status wrong_count(const parse *p, const leat_feature *f, int64_t m, int64_t row,
                               int64_t n)
{
    const char *name = name_of(p, m);
    if (!p->single && row < 0)
        return leat_error(INVALID_ARGUMENT,
                          "Inconsistent number of elements for feature %.*s: %lld vs %lld in "
                          "example %s",
                          KEY(f), (long long)n, (long long)f->stride, name);
    if (!p->single)
        return leat_error(INVALID_ARGUMENT,
                          "Unexpected number of elements in feature %.*s, example %s: feature %lld "
                          "of the list has %lld, expected are %lld",
                          KEY(f), name, (long long)row, (long long)n, (long long)f->stride);
    return leat_error(INVALID_ARGUMENT,
                      "Name: %s, Key: %.*s, Index: %lld.  Number of %s values != expected.  values "
                      "size: %lld but output shape: %s",
                      name, KEY(f), (long long)(row < 0 ? 0 : row),
                      f->dtype == LEAT_STRING ? "bytes" : leat_dtype_name(f->dtype), (long long)n,
                      leat_shape_show(&f->shape).s);
}

static leat_status missing(const parse *p, const leat_feature *f, int64_t m, bool list)
{
    const char *name = name_of(p, m);
    if (list && p->single)
        return leat_error(INVALID_ARGUMENT,
                          "Name: %s, Feature list '%.*s' is required but could not be found.  Did "
                          "you mean to include it in feature_list_dense_missing_assumed_empty or "
                          "feature_list_dense_defaults?",
                          name, KEY(f));
    if (list)
        return leat_error(INVALID_ARGUMENT, "Missing feature %.*s in example %s", KEY(f), name);
    if (p->single)
        return leat_error(INVALID_ARGUMENT,
                          "Name: %s, Context feature '%.*s' is required but could not be found.",
                          name, KEY(f));
    return leat_error(INVALID_ARGUMENT,
                      "Feature: %.*s (data type: %s) is required but could not be found.", KEY(f),
                      leat_dtype_name(f->dtype));
}

/* ---- The first pass: finds and counts ---- */

typedef struct finder {
    parse *p;
    int64_t m;
} finder;

static void find(void *arg, int field, leat_span key, leat_span value)
{
    const finder *x = arg;
    map *a = field == LEAT_EXAMPLE_FEATURES ? &x->p->context : &x->p->lists;
    const int i = leat_wanted_find(&a->wanted, key);
    if (i >= 0)
        a->cells[x->m * a->wanted.n + i] = (cell){.value = value, .there = true};
}

/* The values of one feature. row is -1 for a feature of the context. */
static leat_status open_feature(const parse *p, const leat_feature *f, int64_t m, int64_t row,
                                leat_span feature, leat_span *list_out, int64_t *n_out)
{
    leat_dtype kind;
    *n_out = 0;
    const bool good = leat_feature_open(feature, &kind, list_out);
    const bool none = good && kind == LEAT_INVALID;
    if (none && (f->role == LEAT_FEATURE_SPARSE || !p->single)) {
        if (f->role == LEAT_FEATURE_SPARSE || f->stride == 0)
            return NULL;
        return wrong_count(p, f, m, row, 0);
    }
    *n_out = good && kind == f->dtype ? leat_feature_count(kind, *list_out) : -1;
    if (*n_out < 0)
        return wrong_type(p, f, m, row, kind, *list_out);
    return f->role == LEAT_FEATURE_SPARSE || *n_out == f->stride
               ? NULL
               : wrong_count(p, f, m, row, *n_out);
}

static leat_status count_list(const parse *p, const leat_feature *f, int64_t m, cell *c)
{
    leat_span rest = c->value, feature, list;
    bool bad = false;
    int64_t n;
    for (; leat_feature_next(&rest, &feature, &bad); c->rows++) {
        LEAT_TRY(open_feature(p, f, m, c->rows, feature, &list, &n));
        c->n += n;
    }
    return bad ? wrong_type(p, f, m, c->rows, LEAT_INVALID, rest) : NULL;
}

static leat_status count_message(parse *p, int64_t m)
{
    leat_span list;
    for (int i = 0; i < p->context.wanted.n; i++) {
        const leat_feature *f = &p->context.wanted.v[i];
        cell *c = &p->context.cells[m * p->context.wanted.n + i];
        if (c->there)
            LEAT_TRY(open_feature(p, f, m, -1, c->value, &list, &c->n));
        else if (f->role == LEAT_FEATURE_DENSE && f->missing->count == 0)
            return missing(p, f, m, false);
    }
    for (int i = 0; i < p->lists.wanted.n; i++) {
        const leat_feature *f = &p->lists.wanted.v[i];
        cell *c = &p->lists.cells[m * p->lists.wanted.n + i];
        if (!c->there && f->role == LEAT_FEATURE_DENSE && !p->may_miss[f->index])
            return missing(p, f, m, true);
        LEAT_TRY(count_list(p, f, m, c));
    }
    return NULL;
}

static leat_status first_pass(parse *p)
{
    for (int64_t m = 0; m < p->messages; m++) {
        const leat_span bytes = leat_span_of(p->serialized[m].data, p->serialized[m].size);
        finder x = {p, m};
        if (!leat_example_walk(bytes, true, find, &x))
            return malformed(p, m, bytes);
        LEAT_TRY(count_message(p, m));
        LEAT_TRY(leat_kernel_check(p->k));
    }
    return NULL;
}

/* ---- The second pass: copies ---- */

static leat_status copy(const parse *p, const leat_feature *f, int64_t m, int64_t row,
                        leat_span feature, void *to)
{
    leat_dtype kind;
    leat_span list;
    leat_feature_open(feature, &kind, &list);
    leat_status s = leat_feature_copy(kind, list, to);
    if (leat_status_code(s) != LEAT_INVALID_ARGUMENT)
        return s;
    leat_status_free(s);
    return wrong_type(p, f, m, row, kind, list);
}

/* Copies the features of a list, one after another; writes their indices unless it is NULL. */
static leat_status copy_list(const parse *p, const leat_feature *f, int64_t m, const cell *c,
                             leat_tensor *values, int64_t at, int64_t **indices, int64_t *most)
{
    leat_span rest = c->value, feature, list;
    bool bad;
    int64_t n;
    for (int64_t row = 0; leat_feature_next(&rest, &feature, &bad); row++) {
        LEAT_TRY(open_feature(p, f, m, row, feature, &list, &n));
        LEAT_TRY(copy(p, f, m, row, feature, leat_element_at(values, at)));
        at += n;
        *most = n > *most ? n : *most;
        for (int64_t j = 0; indices && j < n; j++) {
            if (!p->single)
                *(*indices)++ = m;
            *(*indices)++ = row;
            *(*indices)++ = j;
        }
    }
    return NULL;
}

static leat_status make_sparse(const parse *p, const map *a, int i)
{
    const leat_feature *f = &a->wanted.v[i];
    const bool lists = a == &p->lists;
    const int rank = !p->single + 1 + lists;
    int64_t total = 0, at = 0, rows = 0, most = 0;
    for (int64_t m = 0; m < p->messages; m++) {
        const cell *c = &a->cells[m * a->wanted.n + i];
        total += c->n;
        rows = c->rows > rows ? c->rows : rows;
    }
    const leat_shape where = leat_shape(total, rank), vector = leat_shape(total);
    const leat_shape dims = leat_shape(rank);
    leat_tensor *indices, *values, *shape;
    LEAT_TRY(leat_kernel_out(p->k, a->first_out + f->index, &where, &indices));
    LEAT_TRY(leat_kernel_out(p->k, a->first_out + a->n_sparse + f->index, &vector, &values));
    LEAT_TRY(leat_kernel_out(p->k, a->first_out + 2 * a->n_sparse + f->index, &dims, &shape));
    int64_t *to = indices->data;
    for (int64_t m = 0; m < p->messages; m++) {
        const cell *c = &a->cells[m * a->wanted.n + i];
        if (lists) {
            LEAT_TRY(copy_list(p, f, m, c, values, at, &to, &most));
        } else if (c->n) {
            LEAT_TRY(copy(p, f, m, -1, c->value, leat_element_at(values, at)));
            most = c->n > most ? c->n : most;
            for (int64_t j = 0; j < c->n; j++) {
                if (!p->single)
                    *to++ = m;
                *to++ = j;
            }
        }
        at += c->n;
    }
    int64_t *s = shape->data;
    if (!p->single)
        *s++ = p->messages;
    if (lists)
        *s++ = rows;
    *s = most;
    return NULL;
}

/* prefix dimensions in front of s */
static leat_status with_prefix(const leat_feature *f, int64_t *prefix, int n, leat_shape *out)
{
    LEAT_REQUIRE(f->shape.rank + n <= LEAT_MAX_RANK, INVALID_ARGUMENT,
                 "The shape of feature %.*s has too many dimensions: %s", KEY(f),
                 leat_shape_show(&f->shape).s);
    out->rank = f->shape.rank + n;
    memcpy(out->dim, prefix, sizeof(*prefix) * (size_t)n);
    memcpy(out->dim + n, f->shape.dim, sizeof(*prefix) * (size_t)f->shape.rank);
    return NULL;
}

static leat_status make_context_dense(const parse *p, int i)
{
    const map *a = &p->context;
    const leat_feature *f = &a->wanted.v[i];
    leat_shape s;
    leat_tensor *y;
    LEAT_TRY(with_prefix(f, (int64_t[]){p->messages}, !p->single, &s));
    LEAT_TRY(leat_kernel_out(p->k, a->first_out + 3 * a->n_sparse + f->index, &s, &y));
    for (int64_t m = 0; m < p->messages; m++) {
        const cell *c = &a->cells[m * a->wanted.n + i];
        void *to = leat_element_at(y, m * f->stride);
        if (c->there)
            LEAT_TRY(copy(p, f, m, -1, c->value, to));
        else
            LEAT_TRY(leat_elements_copy(f->dtype, to, f->missing->data, f->missing->count));
    }
    return NULL;
}

/* Lists are padded with zeros to the longest. */
static leat_status make_list_dense(const parse *p, int i)
{
    const map *a = &p->lists;
    const leat_feature *f = &a->wanted.v[i];
    const int out = a->first_out + 3 * a->n_sparse + f->index;
    int64_t rows = 0, unused = 0;
    for (int64_t m = 0; m < p->messages; m++)
        if (a->cells[m * a->wanted.n + i].rows > rows)
            rows = a->cells[m * a->wanted.n + i].rows;
    leat_shape s;
    leat_tensor *y, *lengths = NULL;
    int64_t prefix[] = {p->messages, rows};
    LEAT_TRY(with_prefix(f, prefix + p->single, 2 - p->single, &s));
    LEAT_TRY(leat_kernel_out(p->k, out, &s, &y));
    if (!p->single) {
        const leat_shape vector = leat_shape(p->messages);
        LEAT_TRY(leat_kernel_out(p->k, out + a->n_dense, &vector, &lengths));
    }
    for (int64_t m = 0; m < p->messages; m++) {
        const cell *c = &a->cells[m * a->wanted.n + i];
        const int64_t at = m * rows * f->stride;
        LEAT_TRY(copy_list(p, f, m, c, y, at, NULL, &unused));
        if (lengths)
            AT(int64_t, lengths)[m] = c->rows;
        if (f->dtype != LEAT_STRING)
            memset(leat_element_at(y, at + c->n), 0,
                   (size_t)((rows - c->rows) * f->stride) *
                       (f->dtype == LEAT_FLOAT ? sizeof(float) : sizeof(int64_t)));
        else
            for (int64_t j = at + c->n; j < at + rows * f->stride; j++)
                leat_string_set(AT(leat_string, y) + j, "", 0);
    }
    return NULL;
}

static leat_status second_pass(const parse *p)
{
    for (int i = 0; i < p->context.wanted.n; i++)
        LEAT_TRY(p->context.wanted.v[i].role == LEAT_FEATURE_SPARSE ? make_sparse(p, &p->context, i)
                                                                    : make_context_dense(p, i));
    for (int i = 0; i < p->lists.wanted.n; i++)
        LEAT_TRY(p->lists.wanted.v[i].role == LEAT_FEATURE_SPARSE ? make_sparse(p, &p->lists, i)
                                                                  : make_list_dense(p, i));
    return NULL;
}

static leat_status new_cells(parse *p, map *a)
{
    int64_t n;
    LEAT_TRY(leat_wanted_index(&a->wanted));
    LEAT_REQUIRE(leat_mul_ok(p->messages, a->wanted.n, &n), RESOURCE_EXHAUSTED,
                 "Too many features");
    return leat_try_array(n, &a->cells);
}

/* ---- The features that a node wants ---- */

/* Keys are the strings of a list attribute, or of scalar inputs. */
typedef struct keys {
    const char *const *attr;
    leat_kernel *k;
    int first; /* input */
    const char *what;
} keys;

static leat_status key_at(const keys *from, int i, const char **key, size_t *n)
{
    if (from->attr) {
        *key = from->attr[i];
        *n = strlen(*key);
        return NULL;
    }
    const leat_tensor *t = leat_kernel_in(from->k, from->first + i);
    LEAT_REQUIRE(t->shape.rank == 0, INVALID_ARGUMENT,
                 "Expected %s[%d] to be a scalar, got shape: %s", from->what, i,
                 leat_shape_show(&t->shape).s);
    *key = AT(leat_string, t)->data ? AT(leat_string, t)->data : "";
    *n = AT(leat_string, t)->size;
    return NULL;
}

static leat_status want_sparse(map *a, const keys *from, const leat_dtype *types)
{
    for (int i = 0; i < a->n_sparse; i++) {
        const char *key = NULL;
        size_t n = 0;
        LEAT_TRY(key_at(from, i, &key, &n));
        leat_wanted_add(&a->wanted, key, n, LEAT_FEATURE_SPARSE, types[i], i);
    }
    return NULL;
}

static leat_status want_dense(map *a, const keys *from, const leat_dtype *types,
                              const leat_shape *shapes)
{
    for (int i = 0; i < a->n_dense; i++) {
        const char *key = NULL;
        size_t n = 0;
        LEAT_TRY(key_at(from, i, &key, &n));
        leat_feature *f = leat_wanted_add(&a->wanted, key, n, LEAT_FEATURE_DENSE, types[i], i);
        f->shape = shapes[i];
        f->stride = leat_shape_count(&shapes[i]);
        LEAT_REQUIRE(f->stride >= 0, INVALID_ARGUMENT,
                     "The shape of feature %.*s is not fully known, or too large: %s", KEY(f),
                     leat_shape_show(&shapes[i]).s);
    }
    return NULL;
}

/* first: the first of the inputs context_dense_defaults. */
static leat_status want_defaults(parse *p, int first)
{
    for (int d = 0; d < p->context.n_dense; d++) {
        leat_feature *f = &p->context.wanted.v[p->context.n_sparse + d];
        f->missing = leat_kernel_in(p->k, first + d);
        if (f->missing->count > 0)
            LEAT_REQUIRE(leat_shape_equal(&f->missing->shape, &f->shape), INVALID_ARGUMENT,
                         "def_value[%d].shape() == %s != context_dense_shapes_[%d] == %s", d,
                         leat_shape_show(&f->missing->shape).s, d, leat_shape_show(&f->shape).s);
    }
    return NULL;
}

static leat_status want_all(parse *p, const keys *from)
{
    const leat_node *n = leat_kernel_node(p->k);
    int cs, cd, cds, ls, ld, lds;
    const leat_dtype *context_sparse = leat_node_types(n, "context_sparse_types", &cs);
    const leat_dtype *context_dense = leat_node_types(n, "Tcontext_dense", &cd);
    const leat_shape *context_shapes = leat_node_shapes(n, "context_dense_shapes", &cds);
    const leat_dtype *list_sparse = leat_node_types(n, "feature_list_sparse_types", &ls);
    const leat_dtype *list_dense = leat_node_types(n, "feature_list_dense_types", &ld);
    const leat_shape *list_shapes = leat_node_shapes(n, "feature_list_dense_shapes", &lds);
    map *c = &p->context, *l = &p->lists;
    c->n_sparse = (int)leat_node_int(n, "Ncontext_sparse");
    c->n_dense = (int)leat_node_int(n, "Ncontext_dense");
    l->n_sparse = (int)leat_node_int(n, "Nfeature_list_sparse");
    l->n_dense = (int)leat_node_int(n, "Nfeature_list_dense");
    l->first_out = 3 * c->n_sparse + c->n_dense;
    LEAT_REQUIRE(c->n_sparse == cs, INVALID_ARGUMENT,
                 "len(context_sparse_keys) != len(context_sparse_types)");
    LEAT_REQUIRE(c->n_dense == cd && cd == cds, INVALID_ARGUMENT,
                 "len(context_dense_keys) != len(context_dense_types) or "
                 "len(context_dense_shapes)");
    LEAT_REQUIRE(l->n_sparse == ls, INVALID_ARGUMENT,
                 "len(feature_list_sparse_keys) != len(feature_list_sparse_types)");
    LEAT_REQUIRE(l->n_dense == ld && ld == lds, INVALID_ARGUMENT,
                 "len(feature_list_dense_keys) != len(feature_list_dense_types) or "
                 "len(feature_list_dense_shapes)");
    LEAT_TRY(want_sparse(c, &from[0], context_sparse));
    LEAT_TRY(want_dense(c, &from[1], context_dense, context_shapes));
    LEAT_TRY(want_sparse(l, &from[2], list_sparse));
    return want_dense(l, &from[3], list_dense, list_shapes);
}

static void set_may_miss(parse *p, const char *key, size_t size)
{
    const int i = leat_wanted_find(&p->lists.wanted, leat_span_of(key, size));
    if (i >= 0 && p->lists.wanted.v[i].role == LEAT_FEATURE_DENSE)
        p->may_miss[p->lists.wanted.v[i].index] = true;
}

/* serialized, debug_name, context_dense_defaults; the keys are attributes. */
static leat_status batch(parse *p)
{
    static const char *const attrs[] = {"context_sparse_keys", "context_dense_keys",
                                        "feature_list_sparse_keys", "feature_list_dense_keys"};
    const leat_node *n = leat_kernel_node(p->k);
    const leat_tensor *t = leat_kernel_in(p->k, 0), *names = leat_kernel_in(p->k, 1);
    static const char *const counts[] = {"Ncontext_sparse", "Ncontext_dense",
                                         "Nfeature_list_sparse", "Nfeature_list_dense"};
    keys from[4];
    for (int i = 0; i < 4; i++) {
        int count;
        from[i] = (keys){.attr = leat_node_strings(n, attrs[i], &count)};
        LEAT_REQUIRE(count == leat_node_int(n, counts[i]), INVALID_ARGUMENT,
                     "%s (%lld) must match the size of %s (%d)", counts[i],
                     (long long)leat_node_int(n, counts[i]), attrs[i], count);
    }
    LEAT_REQUIRE(t->shape.rank == 1, INVALID_ARGUMENT,
                 "Expected serialized to be a vector, got shape: %s", leat_shape_show(&t->shape).s);
    if (names->count) {
        LEAT_REQUIRE(names->shape.rank == 1, INVALID_ARGUMENT,
                     "Expected debug_name to be a vector, got shape: %s",
                     leat_shape_show(&names->shape).s);
        LEAT_REQUIRE(names->count == p->messages, INVALID_ARGUMENT,
                     "example_names must be empty or have the correct number of elements");
        p->names = names->data;
    }
    LEAT_TRY(want_all(p, from));
    LEAT_TRY(want_defaults(p, 2));
    LEAT_TRY(new_cells(p, &p->context));
    LEAT_TRY(new_cells(p, &p->lists));
    p->may_miss = leat_new_array(bool, p->lists.n_dense + 1);
    int n_miss;
    const char *const *miss =
        leat_node_strings(n, "feature_list_dense_missing_assumed_empty", &n_miss);
    for (int i = 0; i < n_miss; i++)
        set_may_miss(p, miss[i], strlen(miss[i]));
    return NULL;
}

/* serialized, feature_list_dense_missing_assumed_empty, keys, context_dense_defaults, debug_name */
static leat_status single(parse *p)
{
    const leat_node *n = leat_kernel_node(p->k);
    const int cs = (int)leat_node_int(n, "Ncontext_sparse");
    const int cd = (int)leat_node_int(n, "Ncontext_dense");
    const int ls = (int)leat_node_int(n, "Nfeature_list_sparse");
    const int ld = (int)leat_node_int(n, "Nfeature_list_dense");
    const keys from[] = {{.k = p->k, .first = 2, .what = "context_sparse_keys"},
                         {.k = p->k, .first = 2 + cs, .what = "context_dense_keys"},
                         {.k = p->k, .first = 2 + cs + cd, .what = "feature_list_sparse_keys"},
                         {.k = p->k, .first = 2 + cs + cd + ls, .what = "feature_list_dense_keys"}};
    const int defaults = 2 + cs + cd + ls + ld;
    LEAT_REQUIRE(leat_kernel_inputs(p->k) == defaults + cd + 1, INVALID_ARGUMENT,
                 "len(context_dense_keys) != len(context_dense_types)");
    const leat_tensor *t = leat_kernel_in(p->k, 0), *miss = leat_kernel_in(p->k, 1);
    const leat_tensor *name = leat_kernel_in(p->k, defaults + cd);
    p->single = true;
    LEAT_TRY(want_all(p, from));
    LEAT_REQUIRE(miss->shape.rank == 1, INVALID_ARGUMENT,
                 "Expected feature_list_dense_missing_assumed_empty to be a vector, got shape: %s",
                 leat_shape_show(&miss->shape).s);
    if (name->count) {
        LEAT_REQUIRE(name->shape.rank == 0, INVALID_ARGUMENT,
                     "Expected debug_name to be a scalar, got shape: %s",
                     leat_shape_show(&name->shape).s);
        p->names = name->data;
    }
    LEAT_REQUIRE(t->shape.rank == 0, INVALID_ARGUMENT,
                 "Expected serialized to be a scalar, got shape: %s", leat_shape_show(&t->shape).s);
    LEAT_TRY(want_defaults(p, defaults));
    LEAT_TRY(new_cells(p, &p->context));
    LEAT_TRY(new_cells(p, &p->lists));
    p->may_miss = leat_new_array(bool, p->lists.n_dense + 1);
    for (int64_t i = 0; i < miss->count; i++)
        set_may_miss(p, AT(leat_string, miss)[i].data, AT(leat_string, miss)[i].size);
    return NULL;
}

static leat_status run(leat_kernel *k, leat_status (*want)(parse *p))
{
    const leat_tensor *t = leat_kernel_in(k, 0);
    parse p = {.k = k, .serialized = t->data, .messages = t->count};
    leat_status s = want(&p);
    if (!s)
        s = first_pass(&p);
    if (!s)
        s = second_pass(&p);
    leat_wanted_release(&p.context.wanted);
    leat_wanted_release(&p.lists.wanted);
    free(p.context.cells);
    free(p.lists.cells);
    free(p.may_miss);
    return s;
}

static leat_status parse_batch(leat_kernel *k)
{
    return run(k, batch);
}

static leat_status parse_single(leat_kernel *k)
{
    return run(k, single);
}

const leat_kernel_def leat_cpu_sequence_example[] = {
    {.op = "ParseSequenceExample", .run = parse_batch, .flags = LEAT_KERNEL_EXPENSIVE},
    {.op = "ParseSingleSequenceExample", .run = parse_single},
    {0},
};
