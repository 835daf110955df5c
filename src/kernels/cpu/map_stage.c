/* map_stage.c -- staging maps: MapStage puts tensors under a key, MapUnstage takes those of a key,
 * MapPeek reads them, MapUnstageNoKey takes those of any key; of an OrderedMap, of the least key.
 * Tensors may be put and taken in parts: a tuple can be taken from when all its tensors were put.
 * Kernels wait without a thread (waiter.h), MapStage for room, the others for a tuple; each is
 * served as soon as it can be, in the order of arrival. */
#include <pthread.h>
#include <stdlib.h>

#include "core/alloc.h"
#include "kernels/any/resource_op.h"
#include "kernels/any/waiter.h"

typedef struct entry {
    int64_t key;
    leat_tensor **v; /* of each dtype of the map: a tensor, owned, or NULL */
} entry;

/* Entries by ascending key. */
typedef struct entries {
    entry *v;
    int64_t n, cap;
} entries;

typedef struct map {
    leat_resource base;
    int64_t capacity, memory_limit; /* complete tuples, bytes; 0: no limit */
    int n;                          /* tensors of a tuple */
    pthread_mutex_t lock;           /* guards what follows; a step's lock is taken under it */
    entries complete, incomplete;
    size_t bytes;
    leat_waiters waiters; /* a list of attempt */
} map;

typedef enum attempt_kind { PUT, TAKE, TAKE_ANY, PEEK } attempt_kind;

typedef struct attempt {
    leat_waiter base;
    attempt_kind kind;
    int64_t key; /* of TAKE_ANY: set when it is served */
    const leat_tensor *indices;
    leat_tensor **v; /* as many as indices: to be put, or taken */
    size_t bytes;
} attempt;

/* ---- Entries ---- */

static int64_t lower_bound(const entries *l, int64_t key)
{
    int64_t low = 0, high = l->n;
    while (low < high) {
        const int64_t middle = low + (high - low) / 2;
        if (l->v[middle].key < key)
            low = middle + 1;
        else
            high = middle;
    }
    return low;
}

static entry *find(const entries *l, int64_t key)
{
    const int64_t i = lower_bound(l, key);
    return i < l->n && l->v[i].key == key ? &l->v[i] : NULL;
}

static void add(entries *l, int64_t key, leat_tensor **v)
{
    const int64_t i = lower_bound(l, key);
    leat_grow(l->v, l->n, l->cap);
    memmove(&l->v[i + 1], &l->v[i], sizeof(*l->v) * (size_t)(l->n++ - i));
    l->v[i] = (entry){key, v};
}

/* Takes an entry out; its tensors are the caller's. */
static leat_tensor **take_out(entries *l, entry *e)
{
    leat_tensor **v = e->v;
    memmove(e, e + 1, sizeof(*e) * (size_t)(--l->n - (e - l->v)));
    return v;
}

static void tuple_free(leat_tensor **v, int64_t n)
{
    for (int64_t i = 0; v && i < n; i++)
        leat_tensor_unref(v[i]);
    free(v);
}

static void entries_clear(const map *m, entries *l)
{
    for (int64_t i = 0; i < l->n; i++)
        tuple_free(l->v[i].v, m->n);
    l->n = 0;
}

static size_t tensor_bytes(const leat_tensor *t)
{
    size_t bytes = (size_t)t->count * leat_dtype_size(t->dtype);
    for (int64_t i = 0; t->dtype == LEAT_STRING && i < t->count; i++)
        bytes += AT(leat_string, t)[i].size;
    return bytes;
}

/* ---- Maps ---- */

static void map_free(void *resource)
{
    map *m = resource;
    entries_clear(m, &m->complete);
    entries_clear(m, &m->incomplete);
    free(m->complete.v);
    free(m->incomplete.v);
    pthread_mutex_destroy(&m->lock);
    free(m);
}

static const leat_resource_type map_type = {"N10tensorflow12_GLOBAL__N_110StagingMapILb0EEE",
                                            map_free};
static const leat_resource_type ordered_type = {"N10tensorflow12_GLOBAL__N_110StagingMapILb1EEE",
                                                map_free};

static const leat_resource_type *type_of(const leat_kernel *k)
{
    const char *op = leat_node_op(leat_kernel_node((leat_kernel *)k));
    return strncmp(op, "Ordered", 7) == 0 ? &ordered_type : &map_type;
}

static leat_status map_new(void *arg, leat_resource **out)
{
    const leat_node *n = leat_kernel_node(arg);
    map *m = leat_new(map);
    leat_resource_init(&m->base, type_of(arg));
    pthread_mutex_init(&m->lock, NULL);
    m->capacity = leat_node_int(n, "capacity");
    m->memory_limit = leat_node_int(n, "memory_limit");
    leat_node_types(n, "dtypes", &m->n);
    *out = &m->base;
    return NULL;
}

/* The map that k's node names; made if it is not there. Shared. */
static leat_status map_of(leat_kernel *k, map **out)
{
    leat_resource_place p = {0};
    leat_resource *r = NULL;
    LEAT_TRY(leat_resource_place_of(k, &p));
    LEAT_TRY(leat_resources_find_or_make(p.where, p.container, p.name, type_of(k), map_new, k, &r));
    *out = (map *)r;
    return NULL;
}

/* ---- Serving; the lock is held ---- */

static bool fits(const map *m, size_t bytes)
{
    return !m->memory_limit || m->bytes + bytes <= (size_t)m->memory_limit;
}

static leat_status check_index(const map *m, const attempt *x, int64_t index)
{
    LEAT_REQUIRE(index >= 0 && index < m->n, INVALID_ARGUMENT,
                 "Index '%lld' for key '%lld' was out of bounds '%d'.", (long long)index,
                 (long long)x->key, m->n);
    return NULL;
}

static bool is_whole(const map *m, leat_tensor *const *v)
{
    for (int i = 0; i < m->n; i++)
        if (!v[i])
            return false;
    return true;
}

/* Puts a part of a tuple. */
static leat_status put_part(map *m, attempt *x)
{
    entry *e = find(&m->incomplete, x->key);
    for (int64_t i = 0; i < x->indices->count; i++) {
        const int32_t index = AT(int32_t, x->indices)[i];
        LEAT_TRY(check_index(m, x, index));
        LEAT_REQUIRE(!e || !e->v[index], INVALID_ARGUMENT,
                     "The tensor for index '%d' for key '%lld' was already initialized '%d'.",
                     index, (long long)x->key, m->n);
    }
    if (!e) {
        add(&m->incomplete, x->key, leat_new_array(leat_tensor *, m->n + 1));
        e = find(&m->incomplete, x->key);
    }
    for (int64_t i = 0; i < x->indices->count; i++) {
        e->v[AT(int32_t, x->indices)[i]] = x->v[i];
        x->v[i] = NULL;
    }
    m->bytes += x->bytes;
    if (is_whole(m, e->v))
        add(&m->complete, x->key, take_out(&m->incomplete, e));
    return NULL;
}

/* True if the attempt is over; its status says how. */
static bool serve_put(map *m, attempt *x)
{
    const bool whole = x->indices->count == m->n;
    if (!fits(m, x->bytes) || (whole && m->capacity && m->complete.n >= m->capacity))
        return false;
    if (!whole) {
        x->base.status = put_part(m, x);
        return true;
    }
    for (int64_t i = 0; i < m->n; i++) {
        x->base.status = check_index(m, x, AT(int32_t, x->indices)[i]);
        if (x->base.status)
            return true;
    }
    if (!find(&m->complete, x->key)) { /* As in TensorFlow, a key that is there stays as it is. */
        add(&m->complete, x->key, x->v);
        m->bytes += x->bytes;
        x->v = NULL;
    }
    return true;
}

static leat_status get(map *m, attempt *x, entry *e)
{
    for (int64_t i = 0; i < x->indices->count; i++) {
        const int32_t index = AT(int32_t, x->indices)[i];
        LEAT_TRY(check_index(m, x, index));
        LEAT_REQUIRE(e->v[index], INVALID_ARGUMENT,
                     "Tensor at index '%d' for key '%lld' has already been removed.", index,
                     (long long)e->key);
    }
    bool empty = true;
    for (int64_t i = 0; i < x->indices->count; i++) {
        leat_tensor **from = &e->v[AT(int32_t, x->indices)[i]];
        x->v[i] = x->kind == PEEK ? leat_tensor_ref(*from) : *from;
        if (x->kind == PEEK)
            continue;
        m->bytes -= tensor_bytes(*from);
        *from = NULL;
    }
    for (int i = 0; i < m->n; i++)
        empty &= !e->v[i];
    if (empty)
        free(take_out(&m->complete, e));
    return NULL;
}

static bool serve_one(map *m, attempt *x)
{
    if (x->kind == PUT)
        return serve_put(m, x);
    entry *e = x->kind != TAKE_ANY ? find(&m->complete, x->key)
               : m->complete.n     ? m->complete.v
                                   : NULL;
    if (!e)
        return false;
    x->key = e->key;
    x->base.status = get(m, x, e);
    return true;
}

/* Serves those that can be served, until nothing changes. */
static void serve(map *m, leat_waiters *finished)
{
    for (bool again = true; again;) {
        again = false;
        for (leat_waiter *w = m->waiters.first, *next; w; w = next) {
            next = w->next;
            if (!serve_one(m, (attempt *)w))
                continue;
            leat_waiters_remove(&m->waiters, w);
            leat_waiters_done(finished, w);
            again = true;
        }
    }
}

static void cancel_locked(map *m, leat_waiter *w, leat_waiters *finished)
{
    leat_waiters_remove(&m->waiters, w);
    w->status = leat_error(CANCELLED, "Staging operation was cancelled");
    leat_waiters_done(finished, w);
}

/* ---- The functions of a waiter; the lock is released ---- */

static leat_status give_tensors(leat_kernel *k, const attempt *x)
{
    const leat_node *n = leat_kernel_node(k);
    const int first = x->kind == TAKE_ANY;
    LEAT_REQUIRE(x->indices->count == n->n_out - first, INVALID_ARGUMENT,
                 "output/indices size mismatch: %d vs. %lld", n->n_out - first,
                 (long long)x->indices->count);
    for (int i = first; i < n->n_out; i++) {
        leat_tensor *t = x->v[i - first];
        LEAT_REQUIRE(t->dtype == n->out_types[i], INVALID_ARGUMENT,
                     "Mismatch stage/unstage: tensor %d is %s, not %s", i - first,
                     leat_dtype_name(t->dtype), leat_dtype_name(n->out_types[i]));
        leat_kernel_set(k, i, leat_tensor_ref(t));
    }
    leat_tensor *key;
    if (first) {
        LEAT_TRY(leat_kernel_out(k, 0, &(leat_shape){0}, &key));
        *AT(int64_t, key) = x->key;
    }
    return NULL;
}

static void give(leat_waiter *w)
{
    attempt *x = (attempt *)w;
    if (!w->status && x->kind != PUT)
        w->status = give_tensors(w->kernel, x);
    tuple_free(x->v, x->indices->count);
}

static void cancelled(leat_waiter *w)
{
    map *m = (map *)w->resource;
    leat_waiters finished = {0};
    pthread_mutex_lock(&m->lock);
    if (w->waiting)
        cancel_locked(m, w, &finished);
    pthread_mutex_unlock(&m->lock);
    leat_waiters_finish(&finished);
}

static const leat_waiter_ops ops = {.size = sizeof(attempt), .give = give, .cancelled = cancelled};

/* Takes the reference to m, and the tensors. */
static void begin(map *m, leat_kernel *k, attempt from)
{
    attempt *x = leat_waiter_new(&ops, k, &m->base);
    from.base = x->base;
    *x = from;
    leat_waiters finished = {0};
    pthread_mutex_lock(&m->lock);
    leat_waiters_add(&m->waiters, &x->base);
    serve(m, &finished);
    if (x->base.waiting && !leat_waiter_watch(&x->base))
        cancel_locked(m, &x->base, &finished);
    pthread_mutex_unlock(&m->lock);
    leat_waiters_finish(&finished);
}

/* ---- Kernels ---- */

static leat_status read_key(leat_kernel *k, int64_t *out)
{
    const leat_tensor *t = leat_kernel_in(k, 0);
    LEAT_REQUIRE(t->count > 0, INVALID_ARGUMENT, "key must not be empty");
    LEAT_REQUIRE(t->count == 1, INVALID_ARGUMENT,
                 "key must be an int64 scalar, got tensor with shape: %s",
                 leat_shape_show(&t->shape).s);
    *out = AT(int64_t, t)[0];
    return NULL;
}

static leat_status check_order(const leat_tensor *indices)
{
    LEAT_REQUIRE(indices->count > 0, INVALID_ARGUMENT, "Indices are empty");
    for (int64_t i = 1; i < indices->count; i++)
        LEAT_REQUIRE(AT(int32_t, indices)[i - 1] < AT(int32_t, indices)[i], INVALID_ARGUMENT,
                     "Indices are not strictly ordered");
    return NULL;
}

/* The tensors that MapStage is given. */
static leat_status read_values(leat_kernel *k, const map *m, attempt *x)
{
    const int n = leat_kernel_inputs(k) - 2;
    LEAT_REQUIRE(n == x->indices->count, INVALID_ARGUMENT, "There are %d values for %lld indices",
                 n, (long long)x->indices->count);
    for (int i = 0; i < n; i++)
        x->bytes += tensor_bytes(leat_kernel_in(k, 2 + i));
    LEAT_REQUIRE(!m->memory_limit || x->bytes <= (size_t)m->memory_limit, RESOURCE_EXHAUSTED,
                 "Attempted to insert tensors with combined size of '%zu' bytes into Staging Area "
                 "with a memory limit of '%lld'.",
                 x->bytes, (long long)m->memory_limit);
    for (int i = 0; i < n; i++)
        x->v[i] = leat_tensor_ref((leat_tensor *)leat_kernel_in(k, 2 + i));
    return NULL;
}

static void use(leat_kernel *k, attempt_kind kind)
{
    map *m = NULL;
    attempt x = {.kind = kind, .indices = leat_kernel_in(k, kind == TAKE_ANY ? 0 : 1)};
    leat_status s = map_of(k, &m);
    if (!s && kind != TAKE_ANY)
        s = read_key(k, &x.key);
    if (!s)
        s = check_order(x.indices);
    if (!s)
        s = leat_try_array(x.indices->count + 1, &x.v);
    if (!s && kind == PUT)
        s = read_values(k, m, &x);
    if (!s) {
        begin(m, k, x);
        return;
    }
    free(x.v);
    leat_resource_unref(m ? &m->base : NULL);
    leat_kernel_done(k, s);
}

static void stage(leat_kernel *k)
{
    use(k, PUT);
}

static void unstage(leat_kernel *k)
{
    use(k, TAKE);
}

static void unstage_any(leat_kernel *k)
{
    use(k, TAKE_ANY);
}

static void peek(leat_kernel *k)
{
    use(k, PEEK);
}

static leat_status give_size(leat_kernel *k, bool complete)
{
    map *m;
    leat_tensor *y;
    const leat_shape scalar = {0};
    LEAT_TRY(leat_kernel_out(k, 0, &scalar, &y));
    LEAT_TRY(map_of(k, &m));
    pthread_mutex_lock(&m->lock);
    AT(int32_t, y)[0] = (int32_t)(complete ? m->complete.n : m->incomplete.n);
    pthread_mutex_unlock(&m->lock);
    leat_resource_unref(&m->base);
    return NULL;
}

static leat_status size(leat_kernel *k)
{
    return give_size(k, true);
}

static leat_status incomplete_size(leat_kernel *k)
{
    return give_size(k, false);
}

static leat_status clear(leat_kernel *k)
{
    map *m;
    leat_waiters finished = {0};
    LEAT_TRY(map_of(k, &m));
    pthread_mutex_lock(&m->lock);
    entries_clear(m, &m->complete);
    entries_clear(m, &m->incomplete);
    m->bytes = 0;
    serve(m, &finished);
    pthread_mutex_unlock(&m->lock);
    leat_waiters_finish(&finished);
    leat_resource_unref(&m->base);
    return NULL;
}

#define BOTH(name, ...)                                                                            \
    {.op = "Map" name, __VA_ARGS__},                                                               \
    {                                                                                              \
        .op = "OrderedMap" name, __VA_ARGS__                                                       \
    }
const leat_kernel_def leat_cpu_map_stage[] = {
    BOTH("Stage", .run_async = stage),
    BOTH("Unstage", .run_async = unstage),
    BOTH("UnstageNoKey", .run_async = unstage_any),
    BOTH("Peek", .run_async = peek),
    BOTH("Size", .run = size),
    BOTH("IncompleteSize", .run = incomplete_size),
    BOTH("Clear", .run = clear),
    {0},
};
