/* partitioned_test.c -- variables in slices: how many, who is refused, and that they train and are
 * looked up as whole ones are. What partitioners answer was written down from TensorFlow 1.15. */
#include <leat/session.h>
#include <leat/train.h>

#include "test.h"

static leat_status mistake(leat_graph *g)
{
    leat_status s = leat_graph_status(g);
    leat_graph_free(g);
    return s;
}

static void partitioners(void)
{
    const leat_partitioner ps[] = {
        leat_fixed_size_partitioner(3),
        leat_fixed_size_partitioner(20),
        leat_variable_axis_size_partitioner(64),
        leat_variable_axis_size_partitioner(64, .n = 2),
        leat_min_max_variable_partitioner(4, .bytes = 64),
        leat_min_max_variable_partitioner(4, .bytes = 16),
    };
    const struct {
        leat_shape shape;
        leat_dtype dtype;
        int64_t want[6]; /* along the first axis, by partitioner */
    } rows[] = {
        {leat_shape(10, 3), LEAT_FLOAT, {3, 10, 2, 2, 2, 4}},
        {leat_shape(1), LEAT_FLOAT, {1, 1, 1, 1, 1, 1}},
        {leat_shape(100, 7), LEAT_DOUBLE, {3, 20, 100, 2, 4, 4}},
        {leat_shape(7), LEAT_STRING, {3, 7, 2, 2, 2, 4}},
        {leat_shape(2, 100), LEAT_INT32, {2, 2, 2, 2, 2, 2}},
    };
    for (int r = 0; r < 5; r++)
        for (int p = 0; p < 6; p++) {
            leat_shape slices;
            CHECK_OK(ps[p].slices(&rows[r].shape, rows[r].dtype, &ps[p], &slices));
            CHECK_INT(slices.rank, rows[r].shape.rank);
            CHECK_INT(slices.dim[0], rows[r].want[p]);
        }
}

static leat_status both_axes(const leat_shape *shape, leat_dtype t, const leat_partitioner *self,
                             leat_shape *out)
{
    *out = leat_shape(2, 2);
    return NULL;
}

static void refused(void)
{
    const leat_partitioner two = leat_fixed_size_partitioner(2);
    leat_graph *g = leat_graph_new();
    leat_get_variable(g, "v", leat_shape(4));
    leat_with_variable_scope(g, "", .reuse = LEAT_AUTO_REUSE)
        leat_get_variable(g, "v", leat_shape(4), .partitioner = two);
    CHECK_ERROR(mistake(g), INVALID_ARGUMENT,
                "A partitioner was provided, but an unpartitioned version of the variable was "
                "found: v.");
    g = leat_graph_new();
    leat_get_variable(g, "v", leat_shape(4), .partitioner = two);
    leat_with_variable_scope(g, "", .reuse = LEAT_REUSE) leat_get_variable(g, "v", leat_shape(4));
    CHECK_ERROR(mistake(g), INVALID_ARGUMENT,
                "No partitioner was provided, but a partitioned version of the variable was found: "
                "v/part_0.");
    g = leat_graph_new();
    leat_get_variable(g, "v", leat_shape(4), .partitioner = two);
    leat_get_variable(g, "v", leat_shape(4), .partitioner = two);
    CHECK_ERROR(mistake(g), ALREADY_EXISTS, "Partitioned variable with name v already exists.");
    g = leat_graph_new();
    leat_get_variable(g, "v", leat_shape(4), .partitioner = two);
    leat_with_variable_scope(g, "", .reuse = LEAT_REUSE)
        leat_get_variable(g, "v", leat_shape(4), .partitioner = leat_fixed_size_partitioner(3));
    CHECK_ERROR(mistake(g), INVALID_ARGUMENT,
                "Trying to reuse partitioned variable v, but specified partitions [3] and found "
                "partitions [2].");
    g = leat_graph_new();
    leat_with_variable_scope(g, "", .reuse = LEAT_REUSE)
        leat_get_variable(g, "v", leat_shape(4), .partitioner = two);
    CHECK_ERROR(mistake(g), NOT_FOUND, "PartitionedVariable v does not exist");
    g = leat_graph_new();
    leat_get_variable(g, "v", leat_shape(-1, 2), .partitioner = two);
    CHECK_ERROR(mistake(g), INVALID_ARGUMENT,
                "Shape of a new partitioned variable must be fully defined");
    g = leat_graph_new();
    leat_get_variable(g, "v", leat_shape(4, 4), .partitioner = LEAT_PARTITIONER(both_axes));
    CHECK_ERROR(mistake(g), INVALID_ARGUMENT, "Can only slice a variable along one dimension");
    g = leat_graph_new();
    leat_get_variable(g, "v", leat_shape(4), .partitioner = leat_fixed_size_partitioner(0));
    CHECK_ERROR(mistake(g), INVALID_ARGUMENT,
                "Partitioner returned zero partitions for some axes: [0].");
    g = leat_graph_new();
    leat_get_variable(g, "v", leat_shape(4),
                      .partitioner = leat_fixed_size_partitioner(2, .axis = 1));
    CHECK_ERROR(mistake(g), INVALID_ARGUMENT, "Can not partition variable along axis 1");
}

static leat_out table(leat_graph *g, const leat_partitioner *p)
{
    leat_tensor *t = NULL;
    CHECK_OK(leat_tensor_new(LEAT_FLOAT, leat_shape(11, 3), &t));
    for (int i = 0; i < 33; i++)
        ((float *)leat_tensor_mutable(t))[i] = (float)i / 8;
    leat_out v = leat_get_variable(g, "table", leat_shape_unknown(),
                                   .initial_value = leat_const(g, t), .partitioner = *p);
    leat_tensor_unref(t);
    return v;
}

/* Ten steps on all rows and on rows that were looked up. */
static void train(const leat_partitioner *p, float *out)
{
    leat_graph *g = leat_graph_new();
    leat_out v = table(g, p), ids = leat_ints(g, 0, 10, 5, 3, 5, 7);
    int n;
    leat_out *parts = leat_variable_parts(v, &n);
    leat_out rows = leat_embedding_lookup(parts, n, ids, .in_blocks = true);
    leat_out loss = leat_add(leat_reduce_sum(leat_square(v)), leat_reduce_sum(leat_square(rows)));
    leat_optimizer *opt = leat_adam(.learning_rate = 0.1);
    leat_out step = leat_minimize(opt, loss), init = leat_global_variables_initializer(g);
    leat_session *s;
    CHECK_OK(leat_session_open(g, &s));
    CHECK_OK(leat_session_run(s, LEAT_NO_FEED, LEAT_NO_FETCH, LEAT_TARGET(init)));
    leat_tensor *t = NULL, *looked_up = NULL;
    for (int i = 0; i < 10; i++)
        CHECK_OK(leat_session_run(s, LEAT_NO_FEED, LEAT_NO_FETCH, LEAT_TARGET(step)));
    CHECK_OK(
        leat_session_run(s, LEAT_NO_FEED, LEAT_FETCH({v, &t}, {rows, &looked_up}), LEAT_NO_TARGET));
    memcpy(out, leat_tensor_data(t), 33 * sizeof(float));
    memcpy(out + 33, leat_tensor_data(looked_up), 18 * sizeof(float));
    leat_tensor_unref(t);
    leat_tensor_unref(looked_up);
    leat_session_close(s);
    leat_optimizer_free(opt);
    free(parts);
    leat_graph_free(g);
}

static void trained(void)
{
    float whole[51], parts[51];
    train(&(leat_partitioner){0}, whole);
    for (int n = 1; n <= 11; n += 2) {
        const leat_partitioner p = leat_fixed_size_partitioner(n);
        train(&p, parts);
        for (int i = 0; i < 51; i++)
            CHECK_NEAR(parts[i], whole[i], 1e-6);
    }
}

static void slices(void)
{
    static const char *const want[] = {"11 3 0,4:0,3", "11 3 4,4:0,3", "11 3 8,3:0,3"};
    leat_graph *g = leat_graph_new();
    const leat_partitioner three = leat_fixed_size_partitioner(3);
    leat_out v = table(g, &three), whole = leat_get_variable(g, "w", leat_shape(2));
    int n;
    leat_out *parts = leat_variable_parts(v, &n);
    CHECK_INT(n, 3);
    for (int i = 0; i < 3; i++) {
        const char *name = "";
        CHECK_STR(leat_variable_slice(parts[i], &name), want[i]);
        CHECK_STR(name, "table");
    }
    free(parts);
    CHECK(leat_variable_slice(whole, NULL) == NULL);
    parts = leat_variable_parts(whole, &n);
    CHECK_INT(n, 1);
    CHECK(parts[0].node == whole.node);
    free(parts);
    leat_graph_free(g);
}

int main(int argc, char **argv)
{
    return RUN(argc, argv, {"partitioners", partitioners}, {"refused", refused},
               {"trained", trained}, {"slices", slices});
}
