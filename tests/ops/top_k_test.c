/* top_k_test.c -- TopKV2 that need not be sorted: the order is TensorFlow's, written down from it.
 */
#include <leat/leat.h>

#include "test.h"

static const int32_t want_2[] = {10, 9, 9, 0, 11, 8};
static const int32_t want_3[] = {6, 9, 10, 10, 9, 0, 0, 8, 11};
static const int32_t want_5[] = {5, 1, 9, 10, 6, 1, 10, 6, 9, 0, 10, 9, 11, 8, 0};
static const int32_t want_12[] = {11, 8, 2, 3, 4,  12, 6, 7, 1, 9, 10, 5,  8, 3, 2, 7, 4, 12,
                                  6,  0, 1, 9, 10, 5,  4, 7, 2, 5, 10, 12, 6, 1, 8, 9, 0, 11};
static const int32_t want_13[] = {9, 10, 6,  1, 5,  7, 12, 2,  4, 3,  8, 11, 0,
                                  0, 9,  10, 6, 1,  5, 7,  12, 2, 4,  3, 8,  11,
                                  8, 11, 0,  9, 10, 6, 1,  5,  7, 12, 2, 4,  3};

static void unsorted(void)
{
    static const struct {
        int k;
        const int32_t *want;
    } rows[] = {{2, want_2}, {3, want_3}, {5, want_5}, {12, want_12}, {13, want_13}};
    float x[39];
    for (int i = 0; i < 39; i++)
        x[i] = (float)((i / 13 * 37 + i % 13 * (i % 13) * 11) % 19);
    leat_graph *g = leat_graph_new();
    leat_tensor *fed = NULL;
    CHECK_OK(leat_tensor_copy_of(LEAT_FLOAT, leat_shape(3, 13), x, &fed));
    leat_out in = leat_const(g, fed);
    leat_session *s;
    CHECK_OK(leat_session_open(g, &s));
    for (size_t r = 0; r < sizeof(rows) / sizeof(*rows); r++) {
        leat_out k = leat_scalar(g, LEAT_INT32, rows[r].k);
        leat_out y = leat_op(g, "TopKV2", leat_in(in), leat_in(k), leat_attr_bool("sorted", false));
        leat_tensor *values = NULL, *indices = NULL;
        CHECK_OK(leat_session_run(s, LEAT_NO_FEED,
                                  LEAT_FETCH({y, &values}, {leat_output(y, 1), &indices}),
                                  LEAT_NO_TARGET));
        for (int i = 0; i < 3 * rows[r].k; i++) {
            CHECK_INT((int64_t)leat_tensor_at(indices, i), rows[r].want[i]);
            CHECK_NEAR(leat_tensor_at(values, i), x[i / rows[r].k * 13 + rows[r].want[i]], 0);
        }
        leat_tensor_unref(values);
        leat_tensor_unref(indices);
    }
    leat_session_close(s);
    leat_tensor_unref(fed);
    leat_graph_free(g);
}

int main(int argc, char **argv)
{
    return RUN(argc, argv, {"unsorted", unsorted});
}
