/* example.c -- ParseExample, ParseExampleV2 and ParseSingleExample; see example.h. */
#include <stdlib.h>

#include "core/alloc.h"
#include "kernels/cpu/example.h"

/* The values of a feature of which the output is placed by the second pass. */
typedef struct cell {
    leat_span list;
    int64_t n, at;    /* values, and the index of the first among those of all messages */
    size_t room;      /* bytes that dense strings need, */
    char *bytes;      /* and where they go; NULL: each string has memory of its own */
    size_t longest;   /* of dense strings */
    bool use_default; /* of a dense feature */
} cell;

typedef struct parse {
    leat_kernel *k; /* NULL: the outputs go to `outputs` */
    leat_tensor **outputs;
    const leat_string *serialized;
    int64_t messages;
    const leat_string *names; /* of the messages, for errors; or NULL */
    bool single;              /* the one message is a scalar: outputs have no batch dimension */
    leat_wanted wanted;
    int n_sparse, n_dense, n_ragged;
    int first_default;    /* input of the first dense feature's default; 0: features have theirs */
    bool two_passes;      /* not all features are placed by the first pass */
    leat_tensor **out;    /* of each feature: its values */
    cell *cells;          /* of each message, of each feature; NULL unless two_passes */
    pthread_mutex_t lock; /* guards the following fields */
    int64_t bad_at;       /* the first message with an error, */
    leat_status bad;      /* and the error */
} parse;

static const char *name_of(const parse *p, int64_t m)
{
    const char *name = p->names ? p->names[m].data : "<unknown>";
    return name ? name : "";
}

/* Dense numbers are copied by the first pass. The others have to be measured before; strings also
 * if they are dense, since those of all messages are put into one block of memory. */
static bool in_first_pass(const leat_feature *f)
{
    return f->role == LEAT_FEATURE_DENSE && f->dtype != LEAT_STRING;
}

static bool dense_strings(const leat_feature *f)
{
    return f->role == LEAT_FEATURE_DENSE && f->dtype == LEAT_STRING;
}

/* ---- Errors ---- */

/* "Name: x, Key: a, Index: 3.  " before the message of s. */
static leat_status of_feature(const parse *p, const leat_feature *f, int64_t m, leat_status s)
{
    const int n = (int)leat_span_size(f->key);
    if (p->single)
        return leat_status_prefix(s, "Key: %.*s.  ", n, (const char *)f->key.p);
    return leat_status_prefix(s, "Name: %s, Key: %.*s, Index: %lld.  ", name_of(p, m), n,
                              (const char *)f->key.p, (long long)m);
}
#define FEATURE_ERROR(p, f, m, ...) of_feature(p, f, m, leat_error(INVALID_ARGUMENT, __VA_ARGS__))

static leat_status required(const parse *p, const leat_feature *f, int64_t m)
{
    leat_status s = leat_error(INVALID_ARGUMENT,
                               "Feature: %.*s (data type: %s) is required but could not be found.",
                               (int)leat_span_size(f->key), f->key.p, leat_dtype_name(f->dtype));
    return p->single ? s : leat_status_prefix(s, "Name: %s, ", name_of(p, m));
}

static const char *kind_name(leat_dtype t)
{
    return t == LEAT_STRING ? "bytes" : leat_dtype_name(t);
}

static leat_status wrong_count(const parse *p, const leat_feature *f, int64_t m, int64_t n)
{
    if (f->role == LEAT_FEATURE_DENSE)
        return FEATURE_ERROR(
            p, f, m, "Number of %s values != expected.  Values size: %lld but output shape: %s",
            kind_name(f->dtype), (long long)n, leat_shape_show(&f->shape).s);
    return FEATURE_ERROR(p, f, m,
                         "Number of %s values is not a multiple of stride length. Saw %lld values "
                         "but output shape is: %s",
                         kind_name(f->dtype), (long long)n, leat_shape_show(&f->shape).s);
}

static leat_status wrong_type(const parse *p, const leat_feature *f, int64_t m, leat_dtype kind)
{
    const char *is = leat_dtype_name(kind), *want = leat_dtype_name(f->dtype);
    if (f->role == LEAT_FEATURE_DENSE || f->role == LEAT_FEATURE_VARIABLE)
        return FEATURE_ERROR(p, f, m, "Data types don't match. Data type: %s but expected type: %s",
                             is, want);
    return FEATURE_ERROR(p, f, m, "Data types don't match. Expected type: %s, Actual type: %s",
                         want, is);
}

/* ---- The first pass: finds values, and copies dense numbers ---- */

static leat_status copy(const parse *p, const leat_feature *f, int64_t m, leat_span list, void *to)
{
    leat_status s = leat_feature_copy(f->dtype, list, to);
    if (leat_status_code(s) != LEAT_INVALID_ARGUMENT)
        return s;
    leat_status_free(s);
    return FEATURE_ERROR(p, f, m, "Can't parse serialized Example.");
}

static leat_status use(const parse *p, int i, int64_t m, leat_span value)
{
    const leat_feature *f = &p->wanted.v[i];
    leat_span list;
    leat_dtype kind;
    const bool good = leat_feature_open(value, &kind, &list);
    LEAT_REQUIRE(good || kind != LEAT_INVALID, INVALID_ARGUMENT, "Unsupported datatype.");
    if (kind != LEAT_INVALID && kind != f->dtype)
        return wrong_type(p, f, m, kind);
    const int64_t n = good ? leat_feature_count(kind, list) : -1;
    if (n < 0)
        return FEATURE_ERROR(p, f, m, "Can't parse serialized Example.");
    if (f->role == LEAT_FEATURE_DENSE && n != f->stride)
        return wrong_count(p, f, m, n);
    if (in_first_pass(f))
        return copy(p, f, m, list, leat_element_at(p->out[i], m * f->stride));
    if (f->role == LEAT_FEATURE_VARIABLE && (f->stride ? n % f->stride : n) != 0)
        return wrong_count(p, f, m, n);
    cell *c = &p->cells[m * p->wanted.n + i];
    *c = (cell){.list = list, .n = n};
    if (dense_strings(f))
        c->room = leat_feature_room(list, &c->longest);
    return NULL;
}

/* The default of a dense feature; without elements: there is none. */
static const leat_tensor *default_of(const parse *p, const leat_feature *f)
{
    return p->first_default ? leat_kernel_in(p->k, p->first_default + f->index) : f->missing;
}

static leat_status use_default(const parse *p, int i, int64_t m)
{
    const leat_feature *f = &p->wanted.v[i];
    if (f->role != LEAT_FEATURE_DENSE)
        return NULL;
    const leat_tensor *missing = default_of(p, f);
    if (missing->count == 0)
        return required(p, f, m);
    if (dense_strings(f)) {
        cell *c = &p->cells[m * p->wanted.n + i];
        *c = (cell){.n = missing->count, .use_default = true};
        for (int64_t j = 0; j < missing->count; j++) {
            const size_t size = AT(leat_string, missing)[j].size;
            c->room += leat_strings_room(size);
            c->longest = size > c->longest ? size : c->longest;
        }
        return NULL;
    }
    return leat_elements_copy(f->dtype, leat_element_at(p->out[i], m * f->stride), missing->data,
                              missing->count);
}

typedef struct finder {
    const parse *p;
    leat_found *found;
} finder;

static void find(void *arg, int field, leat_span key, leat_span value)
{
    const finder *x = arg;
    (void)field;
    const int i = leat_wanted_find(&x->p->wanted, key);
    if (i < 0)
        return;
    const leat_feature_role role = x->p->wanted.v[i].role;
    /* As in TensorFlow, an empty feature is as good as none for a dense one. */
    if (value.p == value.end && (role == LEAT_FEATURE_DENSE || role == LEAT_FEATURE_VARIABLE))
        return;
    x->found[i] = (leat_found){value, true};
}

static leat_status parse_message(const parse *p, int64_t m, leat_found *found)
{
    const leat_span bytes = leat_span_of(p->serialized[m].data, p->serialized[m].size);
    finder x = {p, found};
    memset(found, 0, sizeof(*found) * (size_t)p->wanted.n);
    if (!leat_example_walk(bytes, false, find, &x))
        return leat_example_malformed("Could not parse example input, value", bytes.p,
                                      leat_span_size(bytes));
    for (int i = 0; i < p->wanted.n; i++)
        if (found[i].there)
            LEAT_TRY(use(p, i, m, found[i].value));
    for (int i = 0; i < p->wanted.n; i++)
        if (!found[i].there)
            LEAT_TRY(use_default(p, i, m));
    return NULL;
}

/* Keeps the error of the first message that has one, however messages are divided among threads. */
static void failed(parse *p, int64_t m, leat_status s)
{
    pthread_mutex_lock(&p->lock);
    if (!p->bad || m < p->bad_at) {
        leat_status old = p->bad;
        p->bad = s;
        p->bad_at = m;
        s = old;
    }
    pthread_mutex_unlock(&p->lock);
    leat_status_free(s);
}

/* Messages that another thread has read are not in this processor's cache: makes it fetch one
 * before it is parsed. */
static void fetch(const leat_string *x)
{
    enum { LINE = 64, MOST = 1024 }; /* bytes; the processor foresees the rest */
    for (size_t i = 0; i < x->size && i < MOST; i += LINE)
        __builtin_prefetch(x->data + i);
}

static void first_pass(void *arg, int64_t begin, int64_t end)
{
    parse *p = arg;
    enum { FEW = 16 };
    leat_found few[FEW], *found = few;
    if (p->wanted.n > FEW)
        found = leat_new_array(leat_found, p->wanted.n);
    leat_status s = NULL;
    for (int64_t m = begin; m < end && !s; m++) {
        if (m + 1 < end)
            fetch(&p->serialized[m + 1]);
        s = parse_message(p, m, found);
        if (s)
            failed(p, m, s);
    }
    if (found != few)
        free(found);
}

/* ---- The second pass: copies values whose place is known now ---- */

static leat_status place(const parse *p, const leat_feature *f, int64_t m, const cell *c, void *to)
{
    if (!c->use_default && !c->bytes)
        return copy(p, f, m, c->list, to);
    if (!c->use_default) {
        leat_feature_put(c->list, to, c->bytes);
        return NULL;
    }
    const leat_tensor *missing = default_of(p, f);
    if (!c->bytes)
        return leat_elements_copy(LEAT_STRING, to, missing->data, missing->count);
    char *at = c->bytes;
    for (int64_t j = 0; j < missing->count; j++)
        at = leat_strings_put((leat_string *)to + j, at, AT(leat_string, missing)[j].data,
                              AT(leat_string, missing)[j].size);
    return NULL;
}

static void second_pass(void *arg, int64_t begin, int64_t end)
{
    parse *p = arg;
    for (int64_t m = begin; m < end; m++)
        for (int i = 0; i < p->wanted.n; i++) {
            const leat_feature *f = &p->wanted.v[i];
            const cell *c = &p->cells[m * p->wanted.n + i];
            if (in_first_pass(f) || !c->n)
                continue;
            leat_status s = place(p, f, m, c, leat_element_at(p->out[i], c->at));
            if (s) {
                failed(p, m, s);
                return;
            }
        }
}

/* Output o, of type t. */
static leat_status output(const parse *p, int o, leat_dtype t, const leat_shape *s,
                          leat_tensor **out)
{
    if (p->k)
        return leat_kernel_out(p->k, o, s, out);
    LEAT_TRY(leat_tensor_new(t, *s, &p->outputs[o]));
    *out = p->outputs[o];
    return NULL;
}

static void for_messages(parse *p, double cost, void (*pass)(void *p, int64_t begin, int64_t end))
{
    if (p->k)
        leat_kernel_for(p->k, p->messages, cost, pass, p);
    else
        pass(p, 0, p->messages);
}

/* Sets where the values of feature i begin for each message; gives their number and the most that a
 * message has. */
static void place_values(parse *p, int i, int64_t *total_out, int64_t *most_out)
{
    int64_t total = 0, most = 0;
    for (int64_t m = 0; m < p->messages; m++) {
        cell *c = &p->cells[m * p->wanted.n + i];
        c->at = total;
        total += c->n;
        most = c->n > most ? c->n : most;
    }
    *total_out = total;
    *most_out = most;
}

static leat_status make_sparse(parse *p, int i)
{
    const leat_feature *f = &p->wanted.v[i];
    int64_t total, most;
    leat_tensor *indices, *shape;
    place_values(p, i, &total, &most);
    const leat_shape values = leat_shape(total), where = leat_shape(total, p->single ? 1 : 2);
    const leat_shape dims = leat_shape(p->single ? 1 : 2);
    LEAT_TRY(output(p, f->index, LEAT_INT64, &where, &indices));
    LEAT_TRY(output(p, p->n_sparse + f->index, f->dtype, &values, &p->out[i]));
    LEAT_TRY(output(p, 2 * p->n_sparse + f->index, LEAT_INT64, &dims, &shape));
    int64_t *to = indices->data;
    for (int64_t m = 0; m < p->messages; m++)
        for (int64_t j = 0; j < p->cells[m * p->wanted.n + i].n; j++) {
            if (!p->single)
                *to++ = m;
            *to++ = j;
        }
    if (!p->single)
        AT(int64_t, shape)[0] = p->messages;
    AT(int64_t, shape)[p->single ? 0 : 1] = most;
    return NULL;
}

static leat_status fill(const leat_tensor *t, const leat_tensor *with)
{
    if (t->dtype == LEAT_FLOAT)
        for (int64_t i = 0; i < t->count; i++)
            AT(float, t)[i] = *AT(float, with);
    else if (t->dtype == LEAT_INT64)
        for (int64_t i = 0; i < t->count; i++)
            AT(int64_t, t)[i] = *AT(int64_t, with);
    else
        for (int64_t i = 0; i < t->count; i++)
            LEAT_TRY(leat_elements_copy(LEAT_STRING, AT(leat_string, t) + i, with->data, 1));
    return NULL;
}

/* (messages, most rows, ...), padded with the default. */
static leat_status make_variable(parse *p, int i)
{
    const leat_feature *f = &p->wanted.v[i];
    int64_t total, most;
    place_values(p, i, &total, &most);
    leat_shape s = f->shape;
    s.dim[0] = f->stride ? most / f->stride : 0;
    LEAT_REQUIRE(p->single || s.rank < LEAT_MAX_RANK, INVALID_ARGUMENT,
                 "dense_shapes[%d] has too many dimensions", f->index);
    if (!p->single) {
        memmove(s.dim + 1, s.dim, sizeof(*s.dim) * (size_t)s.rank++);
        s.dim[0] = p->messages;
    }
    LEAT_TRY(output(p, 3 * p->n_sparse + f->index, f->dtype, &s, &p->out[i]));
    for (int64_t m = 0; m < p->messages; m++)
        p->cells[m * p->wanted.n + i].at = m * most;
    return p->single ? NULL : fill(p->out[i], default_of(p, f));
}

/* Values, and where those of each message begin and end; no splits for a single message. */
static leat_status make_ragged(parse *p, int i)
{
    const leat_feature *f = &p->wanted.v[i];
    const int out = 3 * p->n_sparse + p->n_dense + f->index;
    int64_t total, most;
    leat_tensor *splits;
    place_values(p, i, &total, &most);
    const leat_shape values = leat_shape(total),
                     bounds = leat_shape(p->single ? 0 : p->messages + 1);
    LEAT_TRY(output(p, out, f->dtype, &values, &p->out[i]));
    LEAT_TRY(output(p, out + p->n_ragged, LEAT_INT64, &bounds, &splits));
    LEAT_REQUIRE(splits->dtype == LEAT_INT64 || total <= INT32_MAX, INVALID_ARGUMENT,
                 "Feature %.*s has %lld values: too many for row splits of int32",
                 (int)leat_span_size(f->key), f->key.p, (long long)total);
    for (int64_t m = 0; m < splits->count; m++) {
        const int64_t at = m < p->messages ? p->cells[m * p->wanted.n + i].at : total;
        if (splits->dtype == LEAT_INT64)
            AT(int64_t, splits)[m] = at;
        else
            AT(int32_t, splits)[m] = (int32_t)at;
    }
    return NULL;
}

static leat_status dense_shape(const parse *p, const leat_feature *f, leat_shape *out)
{
    *out = f->shape;
    LEAT_REQUIRE(p->single || out->rank < LEAT_MAX_RANK, INVALID_ARGUMENT,
                 "dense_shapes[%d] has too many dimensions", f->index);
    if (!p->single) {
        memmove(out->dim + 1, out->dim, sizeof(*out->dim) * (size_t)out->rank++);
        out->dim[0] = p->messages;
    }
    return NULL;
}

static leat_status make_dense(parse *p, int i)
{
    const leat_feature *f = &p->wanted.v[i];
    leat_shape s;
    LEAT_TRY(dense_shape(p, f, &s));
    return output(p, 3 * p->n_sparse + f->index, f->dtype, &s, &p->out[i]);
}

/* Short strings are in one block of memory with the output's elements. */
static leat_status make_strings(parse *p, int i)
{
    const leat_feature *f = &p->wanted.v[i];
    const int out = 3 * p->n_sparse + f->index;
    size_t room = 0, longest = 0;
    leat_shape s;
    char *bytes = NULL;
    for (int64_t m = 0; m < p->messages; m++) {
        cell *c = &p->cells[m * p->wanted.n + i];
        c->at = m * f->stride;
        room += c->room;
        longest = c->longest > longest ? c->longest : longest;
    }
    if (longest > LEAT_SHORT_STRING)
        return make_dense(p, i);
    LEAT_TRY(dense_shape(p, f, &s));
    LEAT_TRY(leat_strings_new(&s, room, &p->out[i], &bytes));
    if (p->k)
        leat_kernel_set(p->k, out, p->out[i]);
    else
        p->outputs[out] = p->out[i];
    for (int64_t m = 0; m < p->messages && bytes; m++) {
        cell *c = &p->cells[m * p->wanted.n + i];
        c->bytes = bytes;
        bytes += c->room;
    }
    return NULL;
}

static leat_status run_passes(parse *p)
{
    double bytes = 0;
    for (int64_t m = 0; m < p->messages; m++)
        bytes += (double)p->serialized[m].size;
    const double cost = 100 + 0.2 * bytes / (double)(p->messages ? p->messages : 1);
    for (int i = 0; i < p->wanted.n; i++)
        if (in_first_pass(&p->wanted.v[i]))
            LEAT_TRY(make_dense(p, i));
    for_messages(p, cost, first_pass);
    if (p->k)
        LEAT_TRY(leat_kernel_check(p->k));
    if (p->bad)
        return NULL;
    for (int i = 0; i < p->wanted.n; i++) {
        const leat_feature_role role = p->wanted.v[i].role;
        if (role == LEAT_FEATURE_SPARSE)
            LEAT_TRY(make_sparse(p, i));
        else if (role == LEAT_FEATURE_VARIABLE)
            LEAT_TRY(make_variable(p, i));
        else if (role == LEAT_FEATURE_RAGGED)
            LEAT_TRY(make_ragged(p, i));
        else if (dense_strings(&p->wanted.v[i]))
            LEAT_TRY(make_strings(p, i));
    }
    if (p->two_passes)
        for_messages(p, cost, second_pass);
    return NULL;
}

/* Parses after `wanted` is set. */
static leat_status parse_all(parse *p)
{
    int64_t cells;
    for (int i = 0; i < p->wanted.n; i++)
        p->two_passes |= !in_first_pass(&p->wanted.v[i]);
    LEAT_REQUIRE(leat_mul_ok(p->messages, p->wanted.n, &cells), RESOURCE_EXHAUSTED,
                 "Too many features");
    leat_status s = p->two_passes ? leat_try_array(cells, &p->cells) : NULL;
    if (!s)
        s = leat_try_array(p->wanted.n + 1, &p->out);
    pthread_mutex_init(&p->lock, NULL);
    if (!s)
        s = run_passes(p);
    pthread_mutex_destroy(&p->lock);
    free(p->cells);
    free(p->out);
    return leat_status_first(s, p->bad);
}

leat_status leat_wanted_parse(const leat_wanted *w, int n_sparse, int n_dense,
                              const leat_string *serialized, int64_t n, leat_tensor **outputs)
{
    parse p = {.outputs = outputs,
               .serialized = serialized,
               .messages = n,
               .wanted = *w,
               .n_sparse = n_sparse,
               .n_dense = n_dense};
    leat_status s = parse_all(&p);
    for (int i = 0; s && i < 3 * n_sparse + n_dense; i++) {
        leat_tensor_unref(outputs[i]);
        outputs[i] = NULL;
    }
    return s;
}

/* ---- The features that a node wants ---- */

static leat_status describe_dense(leat_wanted *w, const leat_node *node, int i, const char *key,
                                  size_t n)
{
    int n_types, n_shapes;
    const leat_dtype *types = leat_node_types(node, "Tdense", &n_types);
    const leat_shape *shapes = leat_node_shapes(node, "dense_shapes", &n_shapes);
    LEAT_REQUIRE(i < n_types, INVALID_ARGUMENT, "len(dense_keys) != len(dense_types)");
    LEAT_REQUIRE(i < n_shapes, INVALID_ARGUMENT, "len(dense_keys) != len(dense_shapes)");
    leat_feature *f = leat_wanted_add(w, key, n, LEAT_FEATURE_DENSE, types[i], i);
    return leat_feature_set_shape(f, i, &shapes[i]);
}

static leat_status add_dense(parse *p, int i, const char *key, size_t n, const leat_tensor *missing)
{
    LEAT_TRY(describe_dense(&p->wanted, leat_kernel_node(p->k), i, key, n));
    return leat_feature_set_default(&p->wanted.v[p->wanted.n - 1], i, missing);
}

static leat_status key_of(leat_kernel *k, int input, const leat_string **out)
{
    const leat_tensor *t = leat_kernel_in(k, input);
    LEAT_REQUIRE(t->count == 1, INVALID_ARGUMENT, "Expected each key to be a scalar, got shape: %s",
                 leat_shape_show(&t->shape).s);
    *out = t->data;
    return NULL;
}

static leat_status names_of(parse *p, const leat_tensor *names)
{
    if (names->count == 0)
        return NULL;
    LEAT_REQUIRE(names->shape.rank == 1, INVALID_ARGUMENT,
                 "Expected names to be a vector, got shape: %s", leat_shape_show(&names->shape).s);
    LEAT_REQUIRE(names->count == p->messages, INVALID_ARGUMENT,
                 "Expected len(names) == len(serialized), but got: %lld vs. %lld",
                 (long long)names->count, (long long)p->messages);
    p->names = names->data;
    return NULL;
}

static void begin(parse *p, leat_kernel *k)
{
    const leat_tensor *t = leat_kernel_in(k, 0);
    *p = (parse){.k = k, .serialized = t->data, .messages = t->count};
}

/* serialized, names, sparse_keys, dense_keys, dense_defaults */
static leat_status want_inputs(parse *p)
{
    const leat_node *node = leat_kernel_node(p->k);
    const leat_tensor *t = leat_kernel_in(p->k, 0);
    int n_types;
    const leat_dtype *types = leat_node_types(node, "sparse_types", &n_types);
    p->n_sparse = (int)leat_node_int(node, "Nsparse");
    p->n_dense = (int)leat_node_int(node, "Ndense");
    LEAT_REQUIRE(p->n_sparse == n_types, INVALID_ARGUMENT, "len(sparse_keys) != len(sparse_types)");
    LEAT_REQUIRE(leat_kernel_inputs(p->k) == 2 + p->n_sparse + 2 * p->n_dense, INVALID_ARGUMENT,
                 "len(dense_keys) != len(dense_types)");
    LEAT_REQUIRE(t->shape.rank == 1, INVALID_ARGUMENT,
                 "Expected serialized to be a vector, got shape: %s", leat_shape_show(&t->shape).s);
    LEAT_TRY(names_of(p, leat_kernel_in(p->k, 1)));
    const leat_string *key = NULL;
    for (int i = 0; i < p->n_sparse; i++) {
        LEAT_TRY(key_of(p->k, 2 + i, &key));
        leat_wanted_add(&p->wanted, key->data, key->size, LEAT_FEATURE_SPARSE, types[i], i);
    }
    for (int i = 0; i < p->n_dense; i++) {
        LEAT_TRY(key_of(p->k, 2 + p->n_sparse + i, &key));
        LEAT_TRY(add_dense(p, i, key->data, key->size,
                           leat_kernel_in(p->k, 2 + p->n_sparse + p->n_dense + i)));
    }
    return NULL;
}

/* What a ParseSingleExample wants is in its attributes: it is read once. */
typedef struct single_state {
    leat_wanted wanted;
    int n_sparse, n_dense;
} single_state;

static leat_status read_attributes(const leat_node *node, single_state *s)
{
    int n_types, n_defaults, n_dense, n_sparse;
    const leat_dtype *types = leat_node_types(node, "sparse_types", &n_types);
    const char *const *sparse = leat_node_strings(node, "sparse_keys", &n_sparse);
    const char *const *dense = leat_node_strings(node, "dense_keys", &n_dense);
    leat_node_types(node, "Tdense", &n_defaults);
    s->n_sparse = n_sparse;
    s->n_dense = n_dense;
    const int num_sparse = (int)leat_node_int(node, "num_sparse");
    LEAT_REQUIRE(num_sparse == n_sparse && num_sparse == n_types, INVALID_ARGUMENT,
                 "num_sparse (%d) must match the size of sparse_keys (%d) and sparse_types (%d)",
                 num_sparse, n_sparse, n_types);
    LEAT_REQUIRE(n_defaults == n_dense, INVALID_ARGUMENT,
                 "Expected len(dense_defaults) == len(dense_keys) but got: %d vs. %d", n_defaults,
                 n_dense);
    for (int i = 0; i < n_sparse; i++)
        leat_wanted_add(&s->wanted, sparse[i], strlen(sparse[i]), LEAT_FEATURE_SPARSE, types[i], i);
    for (int i = 0; i < n_dense; i++)
        LEAT_TRY(describe_dense(&s->wanted, node, i, dense[i], strlen(dense[i])));
    return leat_wanted_index(&s->wanted);
}

static void release_single(void *state)
{
    leat_wanted_release(&((single_state *)state)->wanted);
}

static leat_status read_single(const leat_node *node, void *state)
{
    leat_status s = read_attributes(node, state);
    if (s)
        release_single(state);
    return s;
}

/* Input i, a vector of n keys. */
static leat_status keys_of(const parse *p, int i, int n, const char *what, const leat_string **out)
{
    const leat_tensor *t = leat_kernel_in(p->k, i);
    LEAT_REQUIRE(t->shape.rank == 1 && t->count == n, INVALID_ARGUMENT,
                 "Expected %s to be a vector of %d keys, got shape: %s", what, n,
                 leat_shape_show(&t->shape).s);
    *out = t->data;
    return NULL;
}

/* serialized, names, sparse_keys, dense_keys, ragged_keys, dense_defaults; one message, or many. */
static leat_status want_vectors(parse *p)
{
    const leat_node *node = leat_kernel_node(p->k);
    const leat_tensor *t = leat_kernel_in(p->k, 0), *names = leat_kernel_in(p->k, 1);
    int n_splits;
    const leat_dtype *sparse = leat_node_types(node, "sparse_types", &p->n_sparse);
    const leat_dtype *ragged = leat_node_types(node, "ragged_value_types", &p->n_ragged);
    leat_node_types(node, "ragged_split_types", &n_splits);
    leat_node_types(node, "Tdense", &p->n_dense);
    const leat_string *keys = NULL;
    LEAT_REQUIRE(p->n_sparse == leat_node_int(node, "num_sparse") && p->n_ragged == n_splits,
                 INVALID_ARGUMENT,
                 "num_sparse must match the size of sparse_types, and ragged_value_types that of "
                 "ragged_split_types");
    LEAT_REQUIRE(t->shape.rank <= 1, INVALID_ARGUMENT,
                 "Expected serialized to be a scalar or vector, got shape: %s",
                 leat_shape_show(&t->shape).s);
    p->single = t->shape.rank == 0;
    if (names->count) {
        LEAT_REQUIRE(leat_shape_equal(&names->shape, &t->shape), INVALID_ARGUMENT,
                     "Expected names have the same shape as serialized: name.shape=%s, "
                     "serialized.shape=%s",
                     leat_shape_show(&names->shape).s, leat_shape_show(&t->shape).s);
        p->names = names->data;
    }
    LEAT_TRY(keys_of(p, 2, p->n_sparse, "sparse_keys", &keys));
    for (int i = 0; i < p->n_sparse; i++)
        leat_wanted_add(&p->wanted, keys[i].data, keys[i].size, LEAT_FEATURE_SPARSE, sparse[i], i);
    LEAT_TRY(keys_of(p, 3, p->n_dense, "dense_keys", &keys));
    for (int i = 0; i < p->n_dense; i++)
        LEAT_TRY(add_dense(p, i, keys[i].data, keys[i].size, leat_kernel_in(p->k, 5 + i)));
    LEAT_TRY(keys_of(p, 4, p->n_ragged, "ragged_keys", &keys));
    for (int i = 0; i < p->n_ragged; i++)
        leat_wanted_add(&p->wanted, keys[i].data, keys[i].size, LEAT_FEATURE_RAGGED, ragged[i], i);
    return NULL;
}

static leat_status run(leat_kernel *k, leat_status (*want)(parse *p))
{
    parse p;
    begin(&p, k);
    leat_status s = want(&p);
    if (!s)
        s = leat_wanted_index(&p.wanted);
    if (!s)
        s = parse_all(&p);
    leat_wanted_release(&p.wanted);
    return s;
}

static leat_status parse_example(leat_kernel *k)
{
    return run(k, want_inputs);
}

static leat_status parse_example_v2(leat_kernel *k)
{
    return run(k, want_vectors);
}

/* serialized, dense_defaults */
static leat_status parse_single_example(leat_kernel *k)
{
    const single_state *s = leat_kernel_state(k);
    const leat_tensor *t = leat_kernel_in(k, 0);
    LEAT_REQUIRE(t->shape.rank == 0, INVALID_ARGUMENT,
                 "Expected serialized to be a scalar, got shape: %s", leat_shape_show(&t->shape).s);
    parse p;
    begin(&p, k);
    p.single = true;
    p.wanted = s->wanted; /* borrowed */
    p.n_sparse = s->n_sparse;
    p.n_dense = s->n_dense;
    p.first_default = 1;
    for (int i = s->n_sparse; i < p.wanted.n; i++)
        LEAT_TRY(leat_feature_check_default(&p.wanted.v[i], i - s->n_sparse,
                                            leat_kernel_in(k, 1 + i - s->n_sparse)));
    return parse_all(&p);
}

const leat_kernel_def leat_cpu_example[] = {
    {.op = "ParseExample", .run = parse_example, .flags = LEAT_KERNEL_EXPENSIVE},
    {.op = "ParseExampleV2", .run = parse_example_v2, .flags = LEAT_KERNEL_EXPENSIVE},
    {.op = "ParseSingleExample",
     .run = parse_single_example,
     .state_size = sizeof(single_state),
     .init = read_single,
     .release = release_single},
    {0},
};
