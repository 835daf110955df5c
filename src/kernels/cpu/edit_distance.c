/* edit_distance.c -- EditDistance: how many insertions, deletions and replacements lead from one
 * sequence to another (Levenshtein, 1966), for each row of two sparse tensors. */

#include "core/element.h"
#include "kernels/cpu/sparse.h"

static bool same(const leat_tensor *a, int64_t i, const leat_tensor *b, int64_t j)
{
    if (a->dtype == LEAT_STRING) {
        const leat_string *x = AT(leat_string, a) + i, *y = AT(leat_string, b) + j;
        return x->size == y->size && (x->size == 0 || memcmp(x->data, y->data, x->size) == 0);
    }
    size_t size = leat_element_size(a->dtype);
    return memcmp((const char *)a->data + (size_t)i * size,
                  (const char *)b->data + (size_t)j * size, size) == 0;
}

/* From a's values [a0, a1) to b's [b0, b1); row has room for b1 - b0 + 1. */
static int64_t distance(const leat_tensor *a, int64_t a0, int64_t a1, const leat_tensor *b,
                        int64_t b0, int64_t b1, int64_t *row, leat_look *look)
{
    int64_t n = b1 - b0;
    for (int64_t j = 0; j <= n; j++)
        row[j] = j;
    for (int64_t i = a0; i < a1; i++) {
        if (leat_look_over(look, n))
            break;
        int64_t diagonal = row[0];
        row[0]++;
        for (int64_t j = 1; j <= n; j++) {
            int64_t replace = diagonal + !same(a, i, b, b0 + j - 1);
            int64_t other = (row[j] < row[j - 1] ? row[j] : row[j - 1]) + 1;
            diagonal = row[j];
            row[j] = replace < other ? replace : other;
        }
    }
    return row[n];
}

/* The values of s from `from` on that are in the same row. */
static int64_t row_end(const leat_sparse *s, int64_t from)
{
    int64_t to = from;
    while (to < s->n && memcmp(leat_sparse_at(s, to), leat_sparse_at(s, from),
                               sizeof(int64_t) * (size_t)(s->rank - 1)) == 0)
        to++;
    return to;
}

static int compare_rows(const leat_sparse *a, int64_t i, const leat_sparse *b, int64_t j)
{
    if (i == a->n || j == b->n)
        return i == a->n ? (j == b->n ? 0 : 1) : -1;
    for (int d = 0; d < a->rank - 1; d++) {
        int64_t x = leat_sparse_at(a, i)[d], y = leat_sparse_at(b, j)[d];
        if (x != y)
            return x < y ? -1 : 1;
    }
    return 0;
}

static void all_rows(leat_kernel *k, const leat_sparse *guess, const leat_sparse *truth,
                     bool normalize, int64_t *row, leat_tensor *y)
{
    leat_look look = leat_look_begin(k);
    for (int64_t i = 0, j = 0; i < guess->n || j < truth->n;) {
        int c = compare_rows(guess, i, truth, j);
        const leat_sparse *first = c <= 0 ? guess : truth;
        int64_t at =
            leat_place_flat(&y->shape, y->shape.rank, leat_sparse_at(first, c <= 0 ? i : j));
        int64_t i1 = c <= 0 ? row_end(guess, i) : i, j1 = c >= 0 ? row_end(truth, j) : j;
        float *to = AT(float, y) + at;
        if (c == 0) {
            *to = (float)distance(truth->values, j, j1, guess->values, i, i1, row, &look);
            *to = normalize ? *to / (float)(j1 - j) : *to;
        } else if (c < 0) { /* the truth is empty */
            *to = normalize ? INFINITY : (float)(i1 - i);
        } else { /* the guess is */
            *to = normalize ? 1 : (float)(j1 - j);
        }
        i = i1;
        j = j1;
    }
}

static leat_status edit_run(leat_kernel *k)
{
    leat_sparse guess, truth;
    LEAT_TRY(leat_sparse_input(k, 0, &guess));
    LEAT_TRY(leat_sparse_input(k, 3, &truth));
    LEAT_REQUIRE(truth.rank >= 2, INVALID_ARGUMENT,
                 "Input SparseTensors must have rank at least 2, but truth_shape rank is: %d",
                 truth.rank);
    LEAT_REQUIRE(guess.rank == truth.rank, INVALID_ARGUMENT,
                 "Expected truth and hypothesis to have matching ranks, but their shapes are: %s "
                 "and %s",
                 leat_shape_show(&leat_kernel_in(k, 5)->shape).s,
                 leat_shape_show(&leat_kernel_in(k, 2)->shape).s);
    LEAT_TRY(leat_sparse_check(&guess, false));
    LEAT_TRY(leat_sparse_check(&truth, false));
    leat_shape s = {.rank = truth.rank - 1};
    for (int d = 0; d < s.rank; d++)
        s.dim[d] =
            guess.shape.dim[d] > truth.shape.dim[d] ? guess.shape.dim[d] : truth.shape.dim[d];
    leat_tensor *y, *row;
    LEAT_TRY(leat_kernel_out(k, 0, &s, &y));
    LEAT_TRY(leat_kernel_temp(k, LEAT_INT64, &(leat_shape){.rank = 1, .dim = {guess.n + 1}}, &row));
    memset(y->data, 0, (size_t)y->count * sizeof(float));
    all_rows(k, &guess, &truth, leat_node_bool(leat_kernel_node(k), "normalize"), row->data, y);
    return NULL;
}

#define PLAIN (~(LEAT_T(RESOURCE) | LEAT_T(VARIANT)))

const leat_kernel_def leat_cpu_edit_distance[] = {
    {.op = "EditDistance", .where = {{"T", PLAIN}}, .run = edit_run},
    {0},
};
