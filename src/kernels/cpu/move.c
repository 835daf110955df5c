/* move.c -- the engine of move.h. The two inner dims form planes, whose rows are copied, filled
 * or gathered; the dims outside are counted up. Where the source runs along another dim than the
 * destination, planes are transposed by tiles instead. */
#include "kernels/cpu/move.h"

/* Unsigned, because products may wrap if a dimension is 0 and others are large. */
static int64_t times(int64_t a, int64_t b)
{
    return (int64_t)((uint64_t)a * (uint64_t)b);
}

void leat_move_dim(leat_move *m, int64_t dim, int64_t to, int64_t from)
{
    if (dim == 1)
        return;
    if (dim == 0)
        m->empty = true;
    int last = m->rank - 1;
    if (last >= 0 && m->to[last] == times(dim, to) && m->from[last] == times(dim, from)) {
        m->dim[last] *= dim;
        m->to[last] = to;
        m->from[last] = from;
        return;
    }
    m->dim[m->rank] = dim;
    m->to[m->rank] = to;
    m->from[m->rank] = from;
    m->rank++;
}

typedef struct plane {
    int64_t rows, n;          /* n elements in a row */
    int64_t to_row, from_row; /* from row to row */
    int64_t to, from;         /* from element to element */
} plane;

typedef struct job {
    int outer; /* dims outside the plane */
    int64_t dim[LEAT_MOVE_RANK], to_stride[LEAT_MOVE_RANK], from_stride[LEAT_MOVE_RANK];
    plane p;
    size_t size; /* of an element */
    char *to;
    const char *from;
    int64_t chunk, chunks; /* a piece of a row, or of a plane's columns; how many there are */
    int64_t strip, strips; /* rows at a time, when transposing */
} job;

static void copy_dense(char *to, int64_t to_row, const char *from, int64_t from_row, int64_t rows,
                       size_t bytes)
{
#define CONSTANT(N)                                                                                \
    case N:                                                                                        \
        for (int64_t r = 0; r < rows; r++)                                                         \
            memcpy(to + r * to_row, from + r * from_row, N);                                       \
        return;
    switch (bytes) {
        CONSTANT(4)
        CONSTANT(8)
        CONSTANT(12)
        CONSTANT(16)
        CONSTANT(32)
    default:
        for (int64_t r = 0; r < rows; r++)
            memcpy(to + r * to_row, from + r * from_row, bytes);
    }
}

#define STRIDED(T)                                                                                 \
    static void fill_##T(T *to, const T *from, const plane *p)                                     \
    {                                                                                              \
        for (int64_t r = 0; r < p->rows; r++) {                                                    \
            T v = from[r * p->from_row], *y = to + r * p->to_row;                                  \
            for (int64_t i = 0; i < p->n; i++)                                                     \
                y[i] = v;                                                                          \
        }                                                                                          \
    }                                                                                              \
    static void strided_##T(T *to, const T *from, const plane *p)                                  \
    {                                                                                              \
        const int64_t n = p->n, ts = p->to, fs = p->from;                                          \
        for (int64_t r = 0; r < p->rows; r++) {                                                    \
            T *restrict y = to + r * p->to_row;                                                    \
            const T *restrict x = from + r * p->from_row;                                          \
            for (int64_t i = 0; i < n; i++)                                                        \
                y[i * ts] = x[i * fs];                                                             \
        }                                                                                          \
    }
STRIDED(leat_m1)
STRIDED(leat_m2)
STRIDED(leat_m4)
STRIDED(leat_m8)
STRIDED(leat_m16)

#define PLANE(bytes, T)                                                                            \
    case bytes:                                                                                    \
        if (p->to == 1 && p->from == 0)                                                            \
            fill_##T((T *)to, (const T *)from, p);                                                 \
        else                                                                                       \
            strided_##T((T *)to, (const T *)from, p);                                              \
        break;

static void copy_plane(size_t size, char *to, const char *from, const plane *p)
{
    if (p->to == 1 && p->from == 1) {
        copy_dense(to, p->to_row * (int64_t)size, from, p->from_row * (int64_t)size, p->rows,
                   (size_t)p->n * size);
        return;
    }
    switch (size) {
        PLANE(1, leat_m1)
        PLANE(2, leat_m2)
        PLANE(4, leat_m4)
        PLANE(8, leat_m8)
        PLANE(16, leat_m16)
    }
}

/* The start of plane number i, in elements; index receives its position in the outer dims. */
static void place_of(const job *j, int64_t i, int64_t *index, int64_t *to, int64_t *from)
{
    *to = *from = 0;
    for (int d = j->outer - 1; d >= 0; d--) {
        index[d] = i % j->dim[d];
        i /= j->dim[d];
        *to += index[d] * j->to_stride[d];
        *from += index[d] * j->from_stride[d];
    }
}

static void place_next(const job *j, int64_t *index, int64_t *to, int64_t *from)
{
    for (int d = j->outer - 1; d >= 0; d--) {
        *to += j->to_stride[d];
        *from += j->from_stride[d];
        if (++index[d] < j->dim[d])
            return;
        *to -= j->dim[d] * j->to_stride[d];
        *from -= j->dim[d] * j->from_stride[d];
        index[d] = 0;
    }
}

/* A unit of work is a chunk of a row, or several rows: unit = (plane * rows + row) * chunks +
 * chunk. */
static void rows_part(void *arg, int64_t begin, int64_t end)
{
    const job *j = arg;
    int64_t index[LEAT_MOVE_RANK], to, from, chunk = begin % j->chunks, row = begin / j->chunks;
    place_of(j, row / j->p.rows, index, &to, &from);
    row %= j->p.rows;
    while (begin < end) {
        plane p = j->p;
        int64_t first = chunk * j->chunk;
        if (j->chunks > 1) {
            p.rows = 1;
            p.n = j->p.n - first < j->chunk ? j->p.n - first : j->chunk;
        } else {
            p.rows = j->p.rows - row < end - begin ? j->p.rows - row : end - begin;
        }
        copy_plane(j->size, j->to + (to + row * p.to_row + first * p.to) * (int64_t)j->size,
                   j->from + (from + row * p.from_row + first * p.from) * (int64_t)j->size, &p);
        begin += p.rows;
        chunk = j->chunks > 1 ? (chunk + 1) % j->chunks : 0;
        row += chunk ? 0 : p.rows;
        if (row == j->p.rows) {
            row = 0;
            place_next(j, index, &to, &from);
        }
    }
}

/* A unit of work is a tile of `strip` rows and `chunk` columns. */
static void crossed_part(void *arg, int64_t begin, int64_t end)
{
    const job *j = arg;
    int64_t per_plane = j->strips * j->chunks, index[LEAT_MOVE_RANK], to, from;
    place_of(j, begin / per_plane, index, &to, &from);
    for (int64_t u = begin; u < end; u++) {
        int64_t a = u % per_plane / j->chunks * j->strip, b = u % j->chunks * j->chunk;
        int64_t na = j->p.rows - a < j->strip ? j->p.rows - a : j->strip;
        int64_t nb = j->p.n - b < j->chunk ? j->p.n - b : j->chunk;
        leat_move_crossed(j->size, j->to + (to + a * j->p.to_row + b) * (int64_t)j->size,
                          j->p.to_row, j->from + (from + a + b * j->p.from) * (int64_t)j->size,
                          j->p.from, na, nb);
        if ((u + 1) % per_plane == 0)
            place_next(j, index, &to, &from);
    }
}

/* Strings, handles and variants are copied one by one or in runs, by this thread. */
static leat_status move_managed(const job *j, leat_dtype t)
{
    int64_t index[LEAT_MOVE_RANK], to, from, planes = 1;
    bool dense = j->p.to == 1 && j->p.from == 1;
    for (int d = 0; d < j->outer; d++)
        planes *= j->dim[d];
    place_of(j, 0, index, &to, &from);
    for (int64_t i = 0; i < planes; i++, place_next(j, index, &to, &from))
        for (int64_t r = 0; r < j->p.rows; r++) {
            char *y = j->to + (to + r * j->p.to_row) * (int64_t)j->size;
            const char *x = j->from + (from + r * j->p.from_row) * (int64_t)j->size;
            for (int64_t e = 0; e < (dense ? 1 : j->p.n); e++)
                LEAT_TRY(leat_elements_copy(t, y + e * j->p.to * (int64_t)j->size,
                                            x + e * j->p.from * (int64_t)j->size,
                                            dense ? j->p.n : 1));
        }
    return NULL;
}

/* The dim along which the source is contiguous, if that is not the last one; else -1. */
static int crossing(const leat_move *m)
{
    int last = m->rank - 1;
    if (m->to[last] != 1 || m->from[last] == 1 || m->from[last] == 0 || m->dim[last] < 4)
        return -1;
    for (int d = 0; d < last; d++)
        if (m->from[d] == 1 && m->dim[d] >= 4)
            return d;
    return -1;
}

/* A plane consists of the dims `row` (-1: there is one row) and the last. */
static void job_dims(job *j, const leat_move *m, int row)
{
    int last = m->rank - 1;
    j->p = (plane){.rows = row < 0 ? 1 : m->dim[row],
                   .to_row = row < 0 ? 0 : m->to[row],
                   .from_row = row < 0 ? 0 : m->from[row],
                   .n = last < 0 ? 1 : m->dim[last],
                   .to = last < 0 ? 1 : m->to[last],
                   .from = last < 0 ? 1 : m->from[last]};
    j->outer = 0;
    for (int d = 0; d < last; d++)
        if (d != row) {
            j->dim[j->outer] = m->dim[d];
            j->to_stride[j->outer] = m->to[d];
            j->from_stride[j->outer++] = m->from[d];
        }
}

leat_status leat_move_run(leat_kernel *k, const leat_move *m, leat_dtype t, void *to,
                          const void *from)
{
    enum { ROW = 1 << 14, STRIP_BYTES = 64, COLUMNS = 512 };
    if (m->empty)
        return NULL;
    if (leat_move_is_far(k))
        return k->device->kind->move(k->device, m, leat_element_size(t), to, from);
    job j;
    j.size = leat_element_size(t);
    j.to = to;
    j.from = from;
    int cross = m->rank < 2 || leat_is_managed(t) ? -1 : crossing(m);
    job_dims(&j, m, cross >= 0 ? cross : m->rank - 2);
    if (leat_is_managed(t))
        return move_managed(&j, t);
    int64_t planes = 1;
    for (int d = 0; d < j.outer; d++)
        planes *= j.dim[d];
    j.chunk = cross >= 0 ? COLUMNS : ROW;
    j.chunks = j.p.n > 2 * j.chunk ? (j.p.n + j.chunk - 1) / j.chunk : 1;
    j.chunk = j.chunks > 1 ? j.chunk : j.p.n;
    double ns = 0.06 * (double)j.size; /* an element's, in dense rows, from memory */
    if (cross >= 0) {
        j.strip = STRIP_BYTES / (int64_t)j.size;
        j.strips = (j.p.rows + j.strip - 1) / j.strip;
        leat_kernel_for(k, planes * j.strips * j.chunks, 3 * ns * (double)(j.strip * j.chunk),
                        crossed_part, &j);
    } else {
        if (j.p.to != 1 || j.p.from > 1 || j.p.from < 0)
            ns += 0.5;
        leat_kernel_for(k, planes * j.p.rows * j.chunks, 2 + ns * (double)j.chunk, rows_part, &j);
    }
    return NULL;
}

leat_status leat_move_flat(leat_kernel *k, leat_dtype t, void *to, const void *from, int64_t n)
{
    if (!leat_is_managed(t) && !leat_move_is_far(k) &&
        (size_t)n * leat_element_size(t) <= 1 << 16) {
        memcpy(to, from, (size_t)n * leat_element_size(t));
        return NULL;
    }
    leat_move m;
    leat_move_begin(&m);
    leat_move_dim(&m, n, 1, 1);
    return leat_move_run(k, &m, t, to, from);
}

leat_status leat_move_fill(leat_kernel *k, leat_tensor *y, const void *value)
{
    leat_move m;
    leat_move_begin(&m);
    leat_move_dim(&m, y->count, 1, 0);
    return leat_move_run(k, &m, y->dtype, y->data, value);
}

static void zero_part(void *arg, int64_t begin, int64_t end)
{
    memset((char *)arg + begin * 4096, 0, (size_t)(end - begin) * 4096);
}

leat_status leat_move_zero(leat_kernel *k, leat_tensor *y)
{
    size_t bytes = leat_tensor_bytes(y), pages = bytes >> 12;
    if (leat_move_is_far(k)) {
        leat_move m;
        leat_move_begin(&m);
        leat_move_dim(&m, y->count, 1, 0);
        return m.empty ? NULL
                       : k->device->kind->move(k->device, &m, leat_element_size(y->dtype), y->data,
                                               NULL);
    }
    if (leat_is_managed(y->dtype)) {
        leat_elements_release(y->dtype, y->data, y->count);
        return NULL;
    }
    leat_kernel_for(k, (int64_t)pages, 150, zero_part, y->data);
    memset((char *)y->data + (pages << 12), 0, bytes & 4095);
    return NULL;
}
