/* sparse_map.c -- sparse tensors that are stored under numbers. Numbers ascend; the present entries
 * are an array from the oldest one on. */
#include <inttypes.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdlib.h>

#include "core/alloc.h"
#include "core/element.h"
#include "kernels/cpu/sparse.h"

typedef struct entry {
    leat_tensor *indices, *values; /* owned; NULL: the entry was taken */
    leat_shape shape;
} entry;

typedef struct sparse_map {
    leat_resource base;
    char *name;
    pthread_mutex_t lock; /* guards the following fields; no other lock is taken under it */
    entry *entries;       /* entries[i] has the number first + i */
    int64_t first, n, cap;
} sparse_map;

static void entry_release(entry *e)
{
    leat_tensor_unref(e->indices);
    leat_tensor_unref(e->values);
    *e = (entry){0};
}

static void map_free(void *resource)
{
    sparse_map *m = resource;
    for (int64_t i = 0; i < m->n; i++)
        entry_release(&m->entries[i]);
    free(m->entries);
    pthread_mutex_destroy(&m->lock);
    free(m->name);
    free(m);
}

static const leat_resource_type map_type = {"N10tensorflow16SparseTensorsMapE", map_free};

/* ---- Finding the map, once for each node of a plan ---- */

typedef struct map_state {
    _Atomic(sparse_map *) map;
} map_state;

static void state_release(void *state)
{
    sparse_map *m = atomic_load(&((map_state *)state)->map);
    leat_resource_unref(m ? &m->base : NULL);
}

static leat_status map_make(void *arg, leat_resource **out)
{
    sparse_map *m = leat_new(sparse_map);
    leat_resource_init(&m->base, &map_type);
    pthread_mutex_init(&m->lock, NULL);
    m->name = leat_xstrdup(arg);
    *out = &m->base;
    return NULL;
}

static leat_status map_of(leat_kernel *k, sparse_map **out)
{
    map_state *state = leat_kernel_state(k);
    sparse_map *m = atomic_load_explicit(&state->map, memory_order_acquire), *none = NULL;
    if (!m) {
        const leat_node *n = leat_kernel_node(k);
        const char *shared = leat_node_string(n, "shared_name");
        const char *name = *shared ? shared : leat_node_name(n);
        leat_resource *r;
        LEAT_TRY(leat_resources_find_or_make(leat_kernel_resources(k),
                                             leat_node_string(n, "container"), name, &map_type,
                                             map_make, (void *)name, &r));
        m = (sparse_map *)r;
        if (!atomic_compare_exchange_strong(&state->map, &none, m)) {
            leat_resource_unref(r); /* another step has made it meanwhile */
            m = none;
        }
    }
    *out = m;
    return NULL;
}

/* ---- Adding ---- */

/* Takes the contents of e; gives its number. */
static int64_t map_add(sparse_map *m, entry e)
{
    pthread_mutex_lock(&m->lock);
    leat_grow(m->entries, m->n, m->cap);
    m->entries[m->n++] = e;
    int64_t number = m->first + m->n - 1;
    pthread_mutex_unlock(&m->lock);
    return number;
}

static leat_status add(leat_kernel *k)
{
    leat_sparse s;
    sparse_map *m;
    leat_tensor *y;
    leat_shape scalar = {0};
    LEAT_TRY(leat_sparse_input(k, 0, &s));
    LEAT_TRY(map_of(k, &m));
    LEAT_TRY(leat_kernel_out(k, 0, &scalar, &y));
    entry e = {leat_tensor_ref(s.indices), leat_tensor_ref(s.values), s.shape};
    AT(int64_t, y)[0] = map_add(m, e);
    return NULL;
}

/* Entries [begin, end) of s, all in the same row, without their first dimension. */
static leat_status row_of(leat_kernel *k, const leat_sparse *s, int64_t begin, int64_t end,
                          entry *out)
{
    leat_allocator *a = leat_kernel_device(k)->allocator;
    int64_t n = end - begin;
    leat_shape places = {.rank = 2, .dim = {n, s->rank - 1}}, vector = {.rank = 1, .dim = {n}};
    entry e = {.shape.rank = s->rank - 1};
    memcpy(e.shape.dim, s->shape.dim + 1, sizeof(*e.shape.dim) * (size_t)e.shape.rank);
    leat_status bad = leat_tensor_alloc(a, LEAT_INT64, &places, &e.indices);
    if (!bad)
        bad = leat_tensor_alloc(a, s->values->dtype, &vector, &e.values);
    size_t size = leat_element_size(s->values->dtype);
    if (!bad)
        bad = leat_elements_copy(s->values->dtype, e.values->data,
                                 (const char *)s->values->data + (size_t)begin * size, n);
    for (int64_t i = 0; !bad && i < n; i++)
        memcpy(AT(int64_t, e.indices) + i * (s->rank - 1), leat_sparse_at(s, begin + i) + 1,
               sizeof(int64_t) * (size_t)(s->rank - 1));
    if (bad)
        entry_release(&e);
    else
        *out = e;
    return bad;
}

static leat_status add_many(leat_kernel *k)
{
    leat_sparse s;
    sparse_map *m;
    leat_tensor *y;
    LEAT_TRY(leat_sparse_input(k, 0, &s));
    LEAT_REQUIRE(s.rank > 1, INVALID_ARGUMENT,
                 "Rank of input SparseTensor should be > 1, but saw rank: %d", s.rank);
    LEAT_TRY(leat_sparse_check(&s, true));
    LEAT_TRY(map_of(k, &m));
    leat_shape vector = {.rank = 1, .dim = {s.shape.dim[0]}};
    LEAT_TRY(leat_kernel_out(k, 0, &vector, &y));
    for (int64_t row = 0, at = 0; row < y->count; row++) {
        int64_t begin = at;
        while (at < s.n && leat_sparse_at(&s, at)[0] == row)
            at++;
        entry e;
        LEAT_TRY(row_of(k, &s, begin, at, &e));
        AT(int64_t, y)[row] = map_add(m, e);
    }
    return NULL;
}

/* ---- Taking ---- */

/* Takes n entries out of the map; if one is missing, those before it are lost. */
static leat_status map_take(sparse_map *m, const int64_t *numbers, int64_t n, entry *out)
{
    leat_status s = NULL;
    pthread_mutex_lock(&m->lock);
    for (int64_t i = 0; i < n && !s; i++) {
        int64_t at = numbers[i] < m->first ? -1 : numbers[i] - m->first;
        if (at >= 0 && at < m->n && m->entries[at].indices) {
            out[i] = m->entries[at];
            m->entries[at] = (entry){0};
        } else {
            s = leat_error(INVALID_ARGUMENT, "Unable to find SparseTensor: %" PRId64 " in map: %s",
                           numbers[i], m->name);
        }
    }
    int64_t gone = 0;
    while (gone < m->n && !m->entries[gone].indices)
        gone++;
    if (gone > m->n / 2) { /* done rarely, so that the cost of moving the rest is negligible */
        memmove(m->entries, m->entries + gone, sizeof(entry) * (size_t)(m->n - gone));
        m->first += gone;
        m->n -= gone;
    }
    pthread_mutex_unlock(&m->lock);
    return s;
}

static leat_status check_taken(const entry *e, int64_t n, leat_dtype t, leat_shape *shape_out)
{
    leat_shape s = {.rank = e[0].shape.rank + 1, .dim = {n}};
    for (int64_t i = 0; i < n; i++) {
        LEAT_REQUIRE(e[i].values->dtype == t, INVALID_ARGUMENT,
                     "Requested SparseTensor of type %s but SparseTensor[%" PRId64
                     "].values.dtype() == %s",
                     leat_dtype_name(t), i, leat_dtype_name(e[i].values->dtype));
        LEAT_REQUIRE(e[i].shape.rank + 1 == s.rank, INVALID_ARGUMENT,
                     "Inconsistent rank across SparseTensors: rank prior to SparseTensor[%" PRId64
                     "] was: %d but rank of SparseTensor[%" PRId64 "] is: %d",
                     i, s.rank, i, e[i].shape.rank + 1);
        for (int d = 1; d < s.rank; d++)
            if (e[i].shape.dim[d - 1] > s.dim[d])
                s.dim[d] = e[i].shape.dim[d - 1];
    }
    LEAT_REQUIRE(s.rank <= LEAT_MAX_RANK, INVALID_ARGUMENT,
                 "A batch of SparseTensors has too many dimensions: %d", s.rank);
    *shape_out = s;
    return NULL;
}

static leat_status give(leat_kernel *k, const entry *e, int64_t n)
{
    leat_tensor *indices, *values, *shape;
    leat_shape dense, places = {.rank = 2}, vector = {.rank = 1};
    LEAT_TRY(check_taken(e, n, leat_kernel_out_dtype(k, 1), &dense));
    for (int64_t i = 0; i < n; i++)
        vector.dim[0] += e[i].values->count;
    places.dim[0] = vector.dim[0];
    places.dim[1] = dense.rank;
    LEAT_TRY(leat_kernel_out(k, 0, &places, &indices));
    LEAT_TRY(leat_kernel_out(k, 1, &vector, &values));
    vector.dim[0] = dense.rank;
    LEAT_TRY(leat_kernel_out(k, 2, &vector, &shape));
    memcpy(shape->data, dense.dim, sizeof(*dense.dim) * (size_t)dense.rank);
    int64_t *place = indices->data;
    char *to = values->data;
    size_t each = sizeof(int64_t) * (size_t)(dense.rank - 1);
    for (int64_t i = 0; i < n; i++) {
        int64_t count = e[i].values->count;
        for (int64_t r = 0; r < count; r++, place += dense.rank) {
            place[0] = i;
            memcpy(place + 1, AT(int64_t, e[i].indices) + r * (dense.rank - 1), each);
        }
        LEAT_TRY(leat_elements_copy(values->dtype, to, e[i].values->data, count));
        to += (size_t)count * leat_element_size(values->dtype);
    }
    return NULL;
}

static leat_status take_many(leat_kernel *k)
{
    const leat_tensor *x = leat_kernel_in(k, 0);
    sparse_map *m;
    LEAT_TRY(map_of(k, &m));
    LEAT_REQUIRE(x->shape.rank == 1, INVALID_ARGUMENT,
                 "sparse_handles should be a vector but received shape %s",
                 leat_shape_show(&x->shape).s);
    LEAT_REQUIRE(x->count > 0, INVALID_ARGUMENT,
                 "Must have at least 1 serialized SparseTensor, but input matrix has 0 rows");
    entry *e;
    LEAT_TRY(leat_try_array(x->count, &e));
    leat_status s = map_take(m, x->data, x->count, e);
    if (!s)
        s = give(k, e, x->count);
    for (int64_t i = 0; i < x->count; i++)
        entry_release(&e[i]);
    free(e);
    return s;
}

#define STATE .state_size = sizeof(map_state), .release = state_release

const leat_kernel_def leat_cpu_sparse_map[] = {
    {.op = "AddSparseToTensorsMap", .run = add, STATE},
    {.op = "AddManySparseToTensorsMap", .run = add_many, STATE},
    {.op = "TakeManySparseFromTensorsMap", .run = take_many, STATE},
    {0},
};
