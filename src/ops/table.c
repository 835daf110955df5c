/* table.c -- tables that look values up by keys, behind resource handles. */
#include "ops/infer_util.h"

static leat_status find_shape(leat_infer *c)
{
    leat_shape keys = leat_infer_in(c, 1), value = leat_infer_in(c, 2);
    LEAT_REQUIRE(value.rank <= 1, INVALID_ARGUMENT, "Shape must be at most rank 1 but is rank %d",
                 value.rank);
    leat_infer_out(c, 0, leat_shape_concat(&keys, &value, 0));
    return NULL;
}

static leat_status export_shape(leat_infer *c)
{
    leat_infer_out(c, 0, leat_shape(-1));
    return NULL;
}

static leat_status pairs_shape(leat_infer *c)
{
    leat_shape unused;
    return leat_infer_rank(c, 1, 1, &unused);
}

#define TABLE(name_, inputs_, outputs_, attrs_, shape_)                                            \
    {                                                                                              \
        .name = name_, .inputs = inputs_, .outputs = outputs_, .attrs = attrs_, .shape = shape_,   \
        .grad = leat_grad_none, .flags = LEAT_OP_STATEFUL                                          \
    }
#define NAMED                                                                                      \
    "container: string = ''; shared_name: string = ''; use_node_name_sharing: bool = false; "      \
    "key_dtype: type; value_dtype: type"

const leat_op_def leat_ops_table[] = {
    TABLE("HashTableV2", NULL, "table_handle: resource", NAMED, leat_shape_scalar),
    TABLE("MutableHashTableV2", NULL, "table_handle: resource", NAMED, leat_shape_scalar),
    TABLE("MutableHashTableOfTensorsV2", NULL, "table_handle: resource",
          NAMED "; value_shape: shape = {}", leat_shape_scalar),
    TABLE("LookupTableFindV2", "table_handle: resource, keys: Tin, default_value: Tout",
          "values: Tout", "Tin: type; Tout: type", find_shape),
    TABLE("LookupTableSizeV2", "table_handle: resource", "size: int64", NULL, leat_shape_scalar),
    TABLE("LookupTableExportV2", "table_handle: resource", "keys: Tkeys, values: Tvalues",
          "Tkeys: type; Tvalues: type", export_shape),
    TABLE("LookupTableImportV2", "table_handle: resource, keys: Tin, values: Tout", NULL,
          "Tin: type; Tout: type", leat_shape_none),
    TABLE("LookupTableInsertV2", "table_handle: resource, keys: Tin, values: Tout", NULL,
          "Tin: type; Tout: type", leat_shape_none),
    TABLE("LookupTableRemoveV2", "table_handle: resource, keys: Tin", NULL, "Tin: type",
          leat_shape_none),
    TABLE("InitializeTableV2", "table_handle: resource, keys: Tkey, values: Tval", NULL,
          "Tkey: type; Tval: type", pairs_shape),
    TABLE("InitializeTableFromTextFileV2", "table_handle: resource, filename: string", NULL,
          "key_index: int >= -2; value_index: int >= -2; vocab_size: int >= -1 = -1; "
          "delimiter: string = '\\t'",
          leat_shape_none),
    {0},
};
