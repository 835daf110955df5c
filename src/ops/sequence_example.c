/* sequence_example.c -- ParseSequenceExample and ParseSingleSequenceExample: tensors from
 * serialized tensorflow.SequenceExamples, which have a context, a map of features, and lists of
 * features. */
#include <stdio.h>

#include "ops/infer_util.h"

/* Indices, values and shapes of n sparse tensors of this rank, from output *at on. */
static void sparse(leat_infer *c, int *at, int n, int rank)
{
    for (int i = 0; i < n; i++) {
        leat_infer_out(c, *at + i, leat_shape(-1, rank));
        leat_infer_out(c, *at + n + i, leat_shape(-1));
        leat_infer_out(c, *at + 2 * n + i, leat_shape(rank));
    }
    *at += 3 * n;
}

/* n dense tensors, whose shapes begin with prefix. */
static leat_status dense(leat_infer *c, int *at, int n, const char *attr, const leat_shape *prefix)
{
    int count;
    const leat_shape *shapes = leat_node_shapes(leat_infer_node(c), attr, &count);
    LEAT_REQUIRE(count == n, INVALID_ARGUMENT, "len(%.*s_keys) != len(%s)", (int)strlen(attr) - 7,
                 attr, attr);
    for (int i = 0; i < n; i++)
        leat_infer_out(c, (*at)++, leat_shape_concat(prefix, &shapes[i], 0));
    return NULL;
}

/* The lists of types, and of keys where they are attributes, are as long as their counts say. */
static leat_status check_counts(leat_infer *c, bool keys)
{
    static const char *const kinds[][3] = {
        {"Ncontext_sparse", "context_sparse", "context_sparse_types"},
        {"Ncontext_dense", "context_dense", "Tcontext_dense"},
        {"Nfeature_list_sparse", "feature_list_sparse", "feature_list_sparse_types"},
        {"Nfeature_list_dense", "feature_list_dense", "feature_list_dense_types"}};
    const leat_node *n = leat_infer_node(c);
    for (int i = 0; i < 4; i++) {
        const int64_t want = leat_node_int(n, kinds[i][0]);
        int count;
        leat_node_types(n, kinds[i][2], &count);
        LEAT_REQUIRE(want == count, INVALID_ARGUMENT, "len(%s_keys) != len(%s_types)", kinds[i][1],
                     kinds[i][1]);
        char attr[64];
        snprintf(attr, sizeof(attr), "%s_keys", kinds[i][1]);
        if (keys)
            leat_node_strings(n, attr, &count);
        LEAT_REQUIRE(want == count, INVALID_ARGUMENT,
                     "%s (%" PRId64 ") must match the size of %s (%d)", kinds[i][0] + 1, want, attr,
                     count);
    }
    return NULL;
}

static leat_status set_outputs(leat_infer *c, const leat_shape *batch)
{
    const leat_node *n = leat_infer_node(c);
    const int lists = (int)leat_node_int(n, "Nfeature_list_dense");
    const leat_shape rows = leat_shape(-1), prefix = leat_shape_concat(batch, &rows, 0);
    int at = 0;
    sparse(c, &at, (int)leat_node_int(n, "Ncontext_sparse"), batch->rank + 1);
    LEAT_TRY(dense(c, &at, (int)leat_node_int(n, "Ncontext_dense"), "context_dense_shapes", batch));
    sparse(c, &at, (int)leat_node_int(n, "Nfeature_list_sparse"), batch->rank + 2);
    LEAT_TRY(dense(c, &at, lists, "feature_list_dense_shapes", &prefix));
    for (int i = 0; batch->rank && i < lists; i++)
        leat_infer_out(c, at++, *batch);
    return NULL;
}

static leat_status batch_shape(leat_infer *c)
{
    leat_shape batch, unused;
    LEAT_TRY(check_counts(c, true));
    LEAT_TRY(leat_infer_rank(c, 0, 1, &batch));
    LEAT_TRY(leat_infer_rank(c, 1, 1, &unused));
    return set_outputs(c, &batch);
}

static leat_status single_shape(leat_infer *c)
{
    leat_shape batch, unused;
    LEAT_TRY(check_counts(c, false));
    LEAT_TRY(leat_infer_rank(c, 0, 0, &batch));
    LEAT_TRY(leat_infer_rank(c, 1, 1, &unused));
    return set_outputs(c, &batch);
}

#define KINDS "list({float, int64, string}) >= 0 = []"
#define COUNTS                                                                                     \
    "Ncontext_sparse: int >= 0 = 0; Ncontext_dense: int >= 0 = 0; "                                \
    "Nfeature_list_sparse: int >= 0 = 0; Nfeature_list_dense: int >= 0 = 0; "
#define TYPES                                                                                      \
    "context_sparse_types: " KINDS "; Tcontext_dense: " KINDS "; feature_list_dense_types: " KINDS \
    "; context_dense_shapes: list(shape) >= 0 = []; feature_list_sparse_types: " KINDS             \
    "; feature_list_dense_shapes: list(shape) >= 0 = []"
#define OUTPUTS                                                                                    \
    "context_sparse_indices: Ncontext_sparse * int64, "                                            \
    "context_sparse_values: context_sparse_types, "                                                \
    "context_sparse_shapes: Ncontext_sparse * int64, context_dense_values: Tcontext_dense, "       \
    "feature_list_sparse_indices: Nfeature_list_sparse * int64, "                                  \
    "feature_list_sparse_values: feature_list_sparse_types, "                                      \
    "feature_list_sparse_shapes: Nfeature_list_sparse * int64, "                                   \
    "feature_list_dense_values: feature_list_dense_types"

const leat_op_def leat_ops_sequence_example[] = {
    {.name = "ParseSequenceExample",
     .inputs = "serialized: string, debug_name: string, context_dense_defaults: Tcontext_dense",
     .outputs = OUTPUTS ", feature_list_dense_lengths: Nfeature_list_dense * int64",
     .attrs = "feature_list_dense_missing_assumed_empty: list(string) >= 0; "
              "context_sparse_keys: list(string) >= 0; context_dense_keys: list(string) >= 0; "
              "feature_list_sparse_keys: list(string) >= 0; "
              "feature_list_dense_keys: list(string) >= 0; " COUNTS TYPES,
     .shape = batch_shape,
     .grad = leat_grad_none},
    {.name = "ParseSingleSequenceExample",
     .inputs = "serialized: string, feature_list_dense_missing_assumed_empty: string, "
               "context_sparse_keys: Ncontext_sparse * string, "
               "context_dense_keys: Ncontext_dense * string, "
               "feature_list_sparse_keys: Nfeature_list_sparse * string, "
               "feature_list_dense_keys: Nfeature_list_dense * string, "
               "context_dense_defaults: Tcontext_dense, debug_name: string",
     .outputs = OUTPUTS,
     .attrs = COUNTS TYPES,
     .shape = single_shape,
     .grad = leat_grad_none},
    {0},
};
