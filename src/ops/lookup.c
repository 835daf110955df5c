/* lookup.c -- tables from keys to values that outlive a step. The first versions of the ops take a
 * reference to a string vector [container, name], the V2 ones a resource handle. */
#include "ops/infer_util.h"

static leat_status pair_shape(leat_infer *c)
{
    leat_infer_out(c, 0, leat_shape(2));
    return NULL;
}

static leat_status of_pair(leat_infer *c)
{
    leat_shape s;
    int64_t unused;
    LEAT_TRY(leat_infer_rank(c, 0, 1, &s));
    return leat_dim_merge(s.dim[0], 2, &unused);
}

static leat_status of_handle(leat_infer *c)
{
    leat_shape s;
    return leat_infer_rank(c, 0, 0, &s);
}

/* The table that this op uses, if it is in the same graph; else NULL. */
static const leat_node *table_of(leat_infer *c)
{
    const leat_node *t = leat_node_input(leat_infer_node(c), 0).node;
    return t && leat_node_has(t, "value_dtype") ? t : NULL;
}

static bool is_dense(const leat_node *t)
{
    return t && leat_node_has(t, "max_load_factor");
}

/* The shape of a value, if the table is in the same graph. */
static leat_shape value_shape(leat_infer *c)
{
    const leat_node *t = table_of(c);
    if (!t || strncmp(leat_node_op(t), "Mutable", 7) != 0)
        return leat_shape_unknown();
    return leat_node_has(t, "value_shape") ? leat_node_shape(t, "value_shape") : leat_shape();
}

static leat_status default_value(leat_infer *c)
{
    leat_shape s = leat_infer_in(c, 2);
    LEAT_REQUIRE(s.rank <= 1, INVALID_ARGUMENT, "Shape must be at most rank 1 but is rank %d",
                 s.rank);
    return NULL;
}

static leat_status find_shape(leat_infer *c)
{
    LEAT_TRY(of_pair(c));
    return default_value(c);
}

static leat_status find_v2_shape(leat_infer *c)
{
    LEAT_TRY(of_handle(c));
    LEAT_TRY(default_value(c));
    leat_shape keys = leat_infer_in(c, 1), value = value_shape(c);
    /* a key may be a vector: the last dimensions of keys are its shape. */
    if (is_dense(table_of(c))) {
        leat_shape key = leat_out_shape(leat_node_input(table_of(c), 0));
        if (key.rank < 0 || keys.rank < 0)
            return NULL;
        LEAT_REQUIRE(keys.rank >= key.rank, INVALID_ARGUMENT,
                     "Expected keys to have suffix %s but saw shape: %s", leat_shape_show(&key).s,
                     leat_shape_show(&keys).s);
        keys.rank -= key.rank;
    }
    leat_infer_out(c, 0, leat_shape_concat(&keys, &value, 0));
    return NULL;
}

static leat_status remove_shape(leat_infer *c)
{
    leat_shape s;
    LEAT_TRY(of_handle(c));
    return leat_infer_rank_at_least(c, 1, 1, &s);
}

static leat_status size_shape(leat_infer *c)
{
    LEAT_TRY(of_pair(c));
    return leat_shape_scalar(c);
}

static leat_status size_v2_shape(leat_infer *c)
{
    LEAT_TRY(of_handle(c));
    return leat_shape_scalar(c);
}

static leat_status export_shape(leat_infer *c)
{
    LEAT_TRY(of_pair(c));
    leat_infer_out(c, 0, leat_shape_unknown_dims(1));
    return NULL;
}

static leat_status export_v2_shape(leat_infer *c)
{
    LEAT_TRY(of_handle(c));
    if (is_dense(table_of(c)))
        return NULL; /* the table's internal matrices of buckets */
    leat_shape keys = leat_shape_unknown_dims(1), value = value_shape(c);
    leat_infer_out(c, 0, keys);
    leat_infer_out(c, 1, leat_shape_concat(&keys, &value, 0));
    return NULL;
}

static leat_status keys_and_values(leat_infer *c)
{
    leat_shape keys, values = leat_infer_in(c, 2);
    LEAT_TRY(leat_infer_rank(c, 1, 1, &keys));
    return leat_shape_merge(&keys, &values, &keys);
}

static leat_status initialize_shape(leat_infer *c)
{
    LEAT_TRY(of_pair(c));
    return keys_and_values(c);
}

static leat_status initialize_v2_shape(leat_infer *c)
{
    LEAT_TRY(of_handle(c));
    return keys_and_values(c);
}

static leat_status file_shape(leat_infer *c)
{
    leat_shape s;
    LEAT_TRY(of_pair(c));
    return leat_infer_rank(c, 1, 0, &s);
}

static leat_status file_v2_shape(leat_infer *c)
{
    leat_shape s;
    LEAT_TRY(of_handle(c));
    return leat_infer_rank(c, 1, 0, &s);
}

#define TABLE_ATTRS                                                                                \
    "container: string = ''; shared_name: string = ''; use_node_name_sharing: bool = false; "      \
    "key_dtype: type; value_dtype: type"

#define TABLE(op, more)                                                                            \
    {.name = op,                                                                                   \
     .outputs = "table_handle: Ref(string)",                                                       \
     .attrs = TABLE_ATTRS more,                                                                    \
     .shape = pair_shape,                                                                          \
     .grad = leat_grad_none,                                                                       \
     .flags = LEAT_OP_STATEFUL},                                                                   \
    {                                                                                              \
        .name = op "V2", .outputs = "table_handle: resource", .attrs = TABLE_ATTRS more,           \
        .shape = leat_shape_scalar, .grad = leat_grad_none, .flags = LEAT_OP_STATEFUL              \
    }

/* An op that uses a table, in both forms. The form for handles is stateful. */
#define ON_TABLE(op, ins, outs, types, old_shape, new_shape, gradient)                             \
    {.name = op,                                                                                   \
     .inputs = "table_handle: Ref(string)" ins,                                                    \
     .outputs = outs,                                                                              \
     .attrs = types,                                                                               \
     .shape = old_shape,                                                                           \
     .grad = gradient},                                                                            \
    {                                                                                              \
        .name = op "V2", .inputs = "table_handle: resource" ins, .outputs = outs, .attrs = types,  \
        .shape = new_shape, .grad = gradient, .flags = LEAT_OP_STATEFUL                            \
    }

const leat_op_def leat_ops_lookup[] = {
    TABLE("HashTable", ""),
    TABLE("MutableHashTable", ""),
    TABLE("MutableHashTableOfTensors", "; value_shape: shape = {}"),
    {.name = "MutableDenseHashTableV2",
     .inputs = "empty_key: key_dtype, deleted_key: key_dtype",
     .outputs = "table_handle: resource",
     .attrs = TABLE_ATTRS "; value_shape: shape = {}; initial_num_buckets: int = 131072; "
                          "max_load_factor: float = 0.8",
     .shape = leat_shape_scalar,
     .grad = leat_grad_none,
     .flags = LEAT_OP_STATEFUL},
    ON_TABLE("InitializeTable", ", keys: Tkey, values: Tval", NULL, "Tkey: type; Tval: type",
             initialize_shape, initialize_v2_shape, leat_grad_none),
    ON_TABLE("InitializeTableFromTextFile", ", filename: string", NULL,
             "key_index: int >= -2; value_index: int >= -2; vocab_size: int >= -1 = -1; "
             "delimiter: string = '\t'",
             file_shape, file_v2_shape, leat_grad_none),
    ON_TABLE("LookupTableFind", ", keys: Tin, default_value: Tout", "values: Tout",
             "Tin: type; Tout: type", find_shape, find_v2_shape, leat_grad_none),
    ON_TABLE("LookupTableInsert", ", keys: Tin, values: Tout", NULL, "Tin: type; Tout: type",
             of_pair, of_handle, leat_grad_none),
    ON_TABLE("LookupTableImport", ", keys: Tin, values: Tout", NULL, "Tin: type; Tout: type",
             of_pair, initialize_v2_shape, leat_grad_missing),
    ON_TABLE("LookupTableExport", "", "keys: Tkeys, values: Tvalues", "Tkeys: type; Tvalues: type",
             export_shape, export_v2_shape, leat_grad_missing),
    ON_TABLE("LookupTableSize", "", "size: int64", NULL, size_shape, size_v2_shape, leat_grad_none),
    {.name = "LookupTableRemoveV2",
     .inputs = "table_handle: resource, keys: Tin",
     .attrs = "Tin: type",
     .shape = remove_shape,
     .grad = leat_grad_missing,
     .flags = LEAT_OP_STATEFUL},
    {0},
};
