/* remap.c -- GenerateVocabRemapping and LoadAndRemapMatrix: parts of a warm start from a model that
 * has another vocabulary. They read files, and so run in threads of their own. */
#include <stdlib.h>

#include "core/alloc.h"
#include "core/map.h"
#include "io/bundle.h"
#include "kernels/cpu/cpu.h"
#include "kernels/cpu/lookup.h"
#include "proto/wire.h"

static leat_status file_name(leat_kernel *k, int i, const char *name, const char **out)
{
    const leat_tensor *t = leat_kernel_in(k, i);
    LEAT_REQUIRE(t->shape.rank == 0, INVALID_ARGUMENT, "%s should be a single string, but got %s",
                 name, leat_shape_show(&t->shape).s);
    *out = AT(leat_string, t)[0].data;
    LEAT_REQUIRE(*out && **out, INVALID_ARGUMENT, "new vocab filename cannot be empty.");
    return NULL;
}

/* ---- GenerateVocabRemapping ---- */

/* Numbers are stored plus one, since 0 is no value of the map, whose keys are those of tokens. */
static leat_status number_tokens(const leat_tensor *tokens, leat_map *out)
{
    const leat_string *v = tokens->data;
    out->borrows_keys = true;
    out->seed = leat_hash_secret();
    for (int64_t i = 0; i < tokens->count; i++) {
        const void *old = leat_map_put_n(out, v[i].data, v[i].size, (void *)(intptr_t)(i + 1));
        LEAT_REQUIRE(!old, FAILED_PRECONDITION,
                     "HashTable has different value for same key. Key %s has %lld and trying to "
                     "add value %lld",
                     v[i].data, (long long)((intptr_t)old - 1), (long long)i);
    }
    return NULL;
}

/* Gives the old number of each of the n new tokens, -1 where there is none. */
static leat_status find_tokens(leat_kernel *k, const leat_string *token, int64_t n,
                               const leat_map *old)
{
    leat_tensor *numbers, *present;
    const leat_shape vector = leat_shape(n), scalar = leat_shape();
    LEAT_TRY(leat_kernel_out(k, 0, &vector, &numbers));
    LEAT_TRY(leat_kernel_out(k, 1, &scalar, &present));
    int32_t found = 0;
    for (int64_t i = 0; i < n; i++) {
        const int64_t at = (intptr_t)leat_map_get_n(old, token[i].data, token[i].size) - 1;
        AT(int64_t, numbers)[i] = at;
        found += at >= 0;
    }
    AT(int32_t, present)[0] = found;
    return NULL;
}

static leat_status vocabulary_run(leat_kernel *k)
{
    const leat_node *node = leat_kernel_node(k);
    const int64_t offset = leat_node_int(node, "new_vocab_offset");
    const int64_t n = leat_node_int(node, "num_new_vocab");
    const char *new_path = NULL, *old_path = NULL;
    leat_tensor *new_tokens = NULL, *old_tokens = NULL;
    leat_map old = {0};
    LEAT_TRY(file_name(k, 0, "new_vocab_file", &new_path));
    LEAT_TRY(file_name(k, 1, "old_vocab_file", &old_path));
    leat_status s = leat_vocabulary_read(new_path, -1, &new_tokens);
    if (!s && (offset > new_tokens->count || n > new_tokens->count - offset))
        s = leat_error(INVALID_ARGUMENT,
                       "lookup table size must be larger than last new vocab entry's line");
    if (!s)
        s = leat_vocabulary_read(old_path, leat_node_int(node, "old_vocab_size"), &old_tokens);
    if (!s)
        s = number_tokens(old_tokens, &old);
    if (!s)
        s = find_tokens(k, AT(leat_string, new_tokens) + offset, n, &old);
    leat_map_release(&old);
    leat_tensor_unref(new_tokens);
    leat_tensor_unref(old_tokens);
    return s;
}

/* ---- LoadAndRemapMatrix ---- */

typedef struct remap {
    const leat_tensor *rows, *cols; /* the old number of each new row and column; -1: none */
    int64_t n_rows, n_cols;         /* of the result */
    int64_t first, last;            /* the old rows that are read; none if last < first */
    int64_t old_cols;               /* columns of the old matrix */
    int64_t *new_row;               /* the new number of each old row from `first` on; -1: none */
    leat_tensor *out;
} remap;

/* No old number may be given to two new ones. Gives the least and the greatest. */
static leat_status check_numbers(const leat_tensor *t, int64_t *least, int64_t *greatest)
{
    leat_map seen = {0};
    leat_status s = NULL;
    *least = INT64_MAX;
    *greatest = -1;
    for (int64_t i = 0; i < t->count && !s; i++) {
        const int64_t *v = AT(int64_t, t) + i;
        if (*v < 0)
            continue;
        const void *other = leat_map_put_n(&seen, v, sizeof(*v), (void *)(intptr_t)(i + 1));
        if (other)
            s = leat_error(UNIMPLEMENTED,
                           "Old ID %lld is mapped to both new ID %lld and %lld, which is not "
                           "supported.",
                           (long long)*v, (long long)((intptr_t)other - 1), (long long)i);
        *least = *v < *least ? *v : *least;
        *greatest = *v > *greatest ? *v : *greatest;
    }
    leat_map_release(&seen);
    return s;
}

static leat_status check_inputs(leat_kernel *k, remap *r)
{
    const leat_node *n = leat_kernel_node(k);
    int64_t unused, unused2;
    r->rows = leat_kernel_in(k, 2);
    r->cols = leat_kernel_in(k, 3);
    r->n_rows = leat_node_int(n, "num_rows");
    r->n_cols = leat_node_int(n, "num_cols");
    for (int i = 0; i < 2; i++)
        LEAT_REQUIRE(leat_kernel_in(k, i)->count == 1, INVALID_ARGUMENT,
                     "ckpt_path and old_tensor_name must be scalars");
    LEAT_REQUIRE(r->rows->shape.rank == 1 && r->cols->shape.rank == 1, INVALID_ARGUMENT,
                 "row_remapping and col_remapping must be vectors, got shapes %s and %s",
                 leat_shape_show(&r->rows->shape).s, leat_shape_show(&r->cols->shape).s);
    LEAT_REQUIRE(r->rows->count == r->n_rows, INVALID_ARGUMENT,
                 "Size of row_remapping is %lld instead of being equal to num_rows=%lld",
                 (long long)r->rows->count, (long long)r->n_rows);
    LEAT_REQUIRE(r->cols->count == 0 || r->cols->count == r->n_cols, INVALID_ARGUMENT,
                 "Provided col_remapping, but its size is %lld instead of being equal to "
                 "num_cols=%lld",
                 (long long)r->cols->count, (long long)r->n_cols);
    LEAT_TRY(check_numbers(r->rows, &r->first, &r->last));
    return check_numbers(r->cols, &unused, &unused2);
}

static leat_status check_tensor(remap *r, leat_bundle *b, const leat_string *name)
{
    leat_dtype t;
    leat_shape s;
    Leat__BundleEntryProto *entry;
    LEAT_TRY(leat_bundle_entry(b, name->data, name->size, &t, &s, &entry));
    leat_proto_free(entry);
    LEAT_REQUIRE(t == LEAT_FLOAT, INVALID_ARGUMENT,
                 "Tensor %s has invalid type %s instead of expected type float", name->data,
                 leat_dtype_name(t));
    LEAT_REQUIRE(s.rank == 2, INVALID_ARGUMENT,
                 "Tensor %s has shape %s of invalid rank %d instead of expected shape of rank 2.",
                 name->data, leat_shape_show(&s).s, s.rank);
    LEAT_REQUIRE(r->cols->count || r->n_cols == s.dim[1], INVALID_ARGUMENT,
                 "Tensor %s has shape %s, where the size of its 2nd dimension is %lld instead of "
                 "being equal to num_cols=%lld",
                 name->data, leat_shape_show(&s).s, (long long)s.dim[1], (long long)r->n_cols);
    LEAT_REQUIRE(r->last < s.dim[0], INTERNAL,
                 "Extent in dimension 0 out of bounds: shape = %s, row_remapping has %lld",
                 leat_shape_show(&s).s, (long long)r->last);
    r->old_cols = s.dim[1];
    return NULL;
}

/* Copies an old row to its place. Columns that the old matrix does not have stay as they are. */
static void copy_row(const remap *r, const float *from, int64_t new_row)
{
    float *to = AT(float, r->out) + new_row * r->n_cols;
    if (!r->cols->count) {
        memcpy(to, from, sizeof(*to) * (size_t)r->n_cols);
        return;
    }
    for (int64_t i = 0; i < r->n_cols; i++) {
        const int64_t old = AT(int64_t, r->cols)[i];
        if (old >= 0 && old < r->old_cols)
            to[i] = from[old];
    }
}

/* Reads n old rows from `begin` on, and copies those that are wanted. */
static leat_status read_rows(remap *r, leat_bundle *b, const leat_string *name, int64_t begin,
                             int64_t n)
{
    leat_slice slice = leat_slice_all(2);
    leat_bundle_item item = {0};
    leat_tensor *t = NULL;
    slice.start[0] = begin;
    slice.length[0] = n;
    LEAT_TRY(leat_bundle_find(b, name->data, name->size, &slice, &item));
    leat_status s = leat_tensor_new(LEAT_FLOAT, item.shape, &t);
    if (!s) {
        item.data = leat_tensor_mutable(t);
        s = leat_bundle_read(b, &item, 1);
    }
    for (int64_t i = 0; i < n && !s; i++) {
        const int64_t new_row = r->new_row[begin + i - r->first];
        if (new_row >= 0)
            copy_row(r, AT(float, t) + i * r->old_cols, new_row);
    }
    leat_bundle_item_release(&item);
    leat_tensor_unref(t);
    return s;
}

static leat_status read_all(leat_kernel *k, remap *r, leat_bundle *b, const leat_string *name)
{
    const int64_t most = leat_node_int(leat_kernel_node(k), "max_rows_in_memory");
    const int64_t n = r->last - r->first + 1;
    if (r->last < r->first)
        return NULL;
    LEAT_TRY(leat_try_array(n, &r->new_row));
    for (int64_t i = 0; i < n; i++)
        r->new_row[i] = -1;
    for (int64_t i = 0; i < r->n_rows; i++)
        if (AT(int64_t, r->rows)[i] >= 0)
            r->new_row[AT(int64_t, r->rows)[i] - r->first] = i;
    const int64_t each = most > 0 && most < n ? most : n;
    for (int64_t at = r->first; at <= r->last; at += each) {
        LEAT_TRY(leat_kernel_check(k));
        LEAT_TRY(read_rows(r, b, name, at, each < r->last - at + 1 ? each : r->last - at + 1));
    }
    return NULL;
}

/* Elements that have no old row or no old column get the values, in order. */
static leat_status fill_missing(const remap *r, const leat_tensor *values)
{
    int64_t used = 0;
    for (int64_t i = 0; i < r->n_rows; i++)
        for (int64_t c = 0; c < r->n_cols; c++) {
            const bool has_column = !r->cols->count || AT(int64_t, r->cols)[c] >= 0;
            if (AT(int64_t, r->rows)[i] >= 0 && has_column)
                continue;
            LEAT_REQUIRE(used < values->count, INVALID_ARGUMENT,
                         "initializing_values contained %lld elements, but more missing values "
                         "remain.",
                         (long long)values->count);
            AT(float, r->out)[i * r->n_cols + c] = AT(float, values)[used++];
        }
    LEAT_REQUIRE(used == values->count, INVALID_ARGUMENT,
                 "initializing_values contained %lld elements, but only %lld elements were used "
                 "to fill in missing values.",
                 (long long)values->count, (long long)used);
    return NULL;
}

static leat_status matrix_run(leat_kernel *k)
{
    remap r = {0};
    leat_bundle *b = NULL;
    LEAT_TRY(check_inputs(k, &r));
    const leat_string *path = leat_kernel_in(k, 0)->data, *name = leat_kernel_in(k, 1)->data;
    const leat_shape shape = leat_shape(r.n_rows, r.n_cols);
    LEAT_TRY(leat_bundle_open(path->data ? path->data : "", &b));
    leat_status s = check_tensor(&r, b, name);
    if (!s)
        s = leat_kernel_out(k, 0, &shape, &r.out);
    if (!s)
        memset(r.out->data, 0, sizeof(float) * (size_t)r.out->count);
    if (!s)
        s = read_all(k, &r, b, name);
    if (!s)
        s = fill_missing(&r, leat_kernel_in(k, 4));
    free(r.new_row);
    leat_bundle_free(b);
    return s;
}

const leat_kernel_def leat_cpu_remap[] = {
    {.op = "GenerateVocabRemapping", .run = vocabulary_run, .flags = LEAT_KERNEL_BLOCKS},
    {.op = "LoadAndRemapMatrix", .run = matrix_run, .flags = LEAT_KERNEL_BLOCKS},
    {0},
};
