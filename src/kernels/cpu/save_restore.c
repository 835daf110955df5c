/* save_restore.c -- SaveV2, RestoreV2, MergeV2Checkpoints, and the names of shards. The kernels of
 * the first checkpoint format are in save_slices.c. All of them wait for disks, and so run in
 * threads of their own. */
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

#include "core/alloc.h"
#include "core/strbuf.h"
#include "io/bundle.h"
#include "io/file.h"
#include "kernels/cpu/cpu.h"
#include "kernels/cpu/save_slices.h"
#include "proto/wire.h"

enum { FIXED = 3 }; /* prefix, tensor_names, shape_and_slices */

static const char *text(const leat_tensor *t, int64_t i)
{
    const leat_string *s = AT(leat_string, t) + i;
    return s->data ? s->data : "";
}

static leat_status check_inputs(leat_kernel *k)
{
    const leat_tensor *prefix = leat_kernel_in(k, 0), *names = leat_kernel_in(k, 1);
    const leat_tensor *specs = leat_kernel_in(k, 2);
    LEAT_REQUIRE(prefix->count == 1, INVALID_ARGUMENT,
                 "Input prefix should have a single element, got %lld instead.",
                 (long long)prefix->count);
    LEAT_REQUIRE(names->shape.rank == 1 && specs->shape.rank == 1, INVALID_ARGUMENT,
                 "Input tensor_names and shape_and_slices should be an 1-D tensors, got %s and %s "
                 "instead.",
                 leat_shape_show(&names->shape).s, leat_shape_show(&specs->shape).s);
    LEAT_REQUIRE(names->count == specs->count, INVALID_ARGUMENT,
                 "tensor_names and shape_and_slices have different number of elements: %lld vs. "
                 "%lld",
                 (long long)names->count, (long long)specs->count);
    return NULL;
}

/* ---- SaveV2 ---- */

static leat_status save_one(leat_kernel *k, leat_bundle_writer *w, int i)
{
    const leat_string *name = AT(leat_string, leat_kernel_in(k, 1)) + i;
    const leat_string *spec = AT(leat_string, leat_kernel_in(k, 2)) + i;
    const leat_tensor *t = leat_kernel_in(k, i + FIXED);
    if (!spec->size)
        return leat_bundle_add(w, name->data, name->size, t);
    leat_shape whole, part;
    leat_slice slice;
    LEAT_TRY(leat_slice_parse(spec->data, spec->size, &whole, &slice, &part));
    LEAT_REQUIRE(
        leat_shape_equal(&part, &t->shape), INVALID_ARGUMENT,
        "Slice in shape_and_slice specification does not match the shape of the tensor to  "
        "save: %s, tensor: %s",
        spec->data, leat_shape_show(&t->shape).s);
    return leat_bundle_add_slice(w, name->data, name->size, &whole, &slice, t);
}

static leat_status save_v2(leat_kernel *k)
{
    LEAT_TRY(check_inputs(k));
    int64_t n = leat_kernel_in(k, 1)->count;
    LEAT_REQUIRE(leat_kernel_inputs(k) == n + FIXED, INVALID_ARGUMENT,
                 "Got %lld tensor names but %d tensors.", (long long)n,
                 leat_kernel_inputs(k) - FIXED);
    leat_bundle_writer *w;
    LEAT_TRY(leat_bundle_writer_open(text(leat_kernel_in(k, 0), 0), &w));
    leat_status s = NULL;
    for (int i = 0; i < n && !s && !(s = leat_kernel_check(k)); i++)
        s = save_one(k, w, i);
    if (!s)
        s = leat_bundle_finish(w);
    leat_bundle_writer_free(w);
    return s;
}

/* ---- RestoreV2 ---- */

/* An error with a line for each tensor whose dtype is not the expected one. */
static leat_status check_dtypes(leat_kernel *k, leat_bundle *b)
{
    const leat_tensor *names = leat_kernel_in(k, 1);
    leat_strbuf wrong = {0};
    leat_status s = NULL;
    for (int i = 0; i < names->count && !s; i++) {
        const leat_string *name = AT(leat_string, names) + i;
        leat_dtype stored, expected = leat_kernel_out_dtype(k, i);
        leat_shape shape;
        Leat__BundleEntryProto *e;
        s = leat_bundle_entry(b, name->data, name->size, &stored, &shape, &e);
        if (s)
            break;
        leat_proto_free(e);
        if (stored != expected)
            leat_strbuf_printf(&wrong,
                               "%stensor_name = %s; expected dtype %s does not equal original "
                               "dtype %s",
                               wrong.n ? "\n" : "", text(names, i), leat_dtype_name(expected),
                               leat_dtype_name(stored));
    }
    if (!s && wrong.n)
        s = leat_error(INVALID_ARGUMENT, "%s", wrong.s);
    leat_strbuf_release(&wrong);
    return s;
}

/* Finds the stored pieces of output i, and allocates the output. */
static leat_status plan_one(leat_kernel *k, leat_bundle *b, int i, leat_bundle_item *item)
{
    const leat_string *name = AT(leat_string, leat_kernel_in(k, 1)) + i;
    const leat_string *spec = AT(leat_string, leat_kernel_in(k, 2)) + i;
    leat_shape whole, part;
    leat_slice slice;
    if (spec->size) {
        leat_dtype dtype;
        leat_shape stored;
        Leat__BundleEntryProto *e;
        LEAT_TRY(leat_slice_parse(spec->data, spec->size, &whole, &slice, &part));
        LEAT_TRY(leat_bundle_entry(b, name->data, name->size, &dtype, &stored, &e));
        leat_proto_free(e);
        LEAT_REQUIRE(leat_shape_equal(&whole, &stored), INVALID_ARGUMENT,
                     "tensor_name = %s; shape in shape_and_slice spec %s does not match the shape "
                     "stored in checkpoint: %s",
                     name->data, leat_shape_show(&whole).s, leat_shape_show(&stored).s);
    }
    LEAT_TRY(leat_bundle_find(b, name->data, name->size, spec->size ? &slice : NULL, item));
    leat_tensor *t;
    leat_status s = leat_kernel_out(k, i, &item->shape, &t);
    if (s)
        leat_bundle_item_release(item);
    else
        item->data = t->data;
    return s;
}

static leat_status restore_bundle(leat_kernel *k, leat_bundle *b)
{
    LEAT_TRY(check_dtypes(k, b));
    int n = (int)leat_kernel_in(k, 1)->count, planned = 0;
    leat_bundle_item *items = leat_new_array(leat_bundle_item, n ? n : 1);
    leat_status s = NULL;
    while (planned < n && !s) {
        s = plan_one(k, b, planned, &items[planned]);
        planned += !s;
    }
    if (!s)
        s = leat_bundle_read(b, items, (size_t)n);
    for (int i = 0; i < planned; i++)
        leat_bundle_item_release(&items[i]);
    free(items);
    return s;
}

static leat_status restore_v2(leat_kernel *k)
{
    int expected;
    leat_node_types(leat_kernel_node(k), "dtypes", &expected);
    int64_t n = leat_kernel_in(k, 1)->count;
    LEAT_REQUIRE(n == expected, INVALID_ARGUMENT, "Got %lld tensor names, but %d expected dtypes.",
                 (long long)n, expected);
    LEAT_TRY(check_inputs(k));
    const char *prefix = text(leat_kernel_in(k, 0), 0);
    if (!leat_bundle_exists(prefix)) /* the checkpoint may be of the first format */
        return leat_restore_slices(k);
    leat_bundle *b;
    LEAT_TRY(leat_bundle_open(prefix, &b));
    leat_status s = restore_bundle(k, b);
    leat_bundle_free(b);
    return s;
}

/* ---- MergeV2Checkpoints ---- */

static leat_status merge_v2(leat_kernel *k)
{
    const leat_tensor *prefixes = leat_kernel_in(k, 0), *merged = leat_kernel_in(k, 1);
    LEAT_REQUIRE(prefixes->shape.rank == 1, INVALID_ARGUMENT,
                 "Input checkpoint_prefixes should be an 1-D tensor, got %s instead.",
                 leat_shape_show(&prefixes->shape).s);
    LEAT_REQUIRE(merged->shape.rank == 0, INVALID_ARGUMENT,
                 "Input destination_prefix should be a scalar tensor, got %s instead.",
                 leat_shape_show(&merged->shape).s);
    size_t n = (size_t)prefixes->count;
    const char **paths = leat_new_array(const char *, n ? n : 1);
    for (size_t i = 0; i < n; i++)
        paths[i] = text(prefixes, (int64_t)i);
    leat_status s = leat_bundle_merge(paths, n, text(merged, 0));
    char *home = leat_path_dir(text(merged, 0));
    bool clean = !s && leat_node_bool(leat_kernel_node(k), "delete_old_dirs");
    for (size_t i = 0; i < n && clean; i++) {
        char *dir = leat_path_dir(paths[i]);
        if (strcmp(dir, home) != 0)
            rmdir(dir); /* if several shards are in one directory, the last one removes it */
        free(dir);
    }
    free(home);
    free(paths);
    return s;
}

/* ---- Names of shards ---- */

static leat_status name_out(leat_kernel *k, const char *const *inputs, const char *format,
                            int32_t first, int32_t second)
{
    for (int i = 0; i < leat_kernel_inputs(k); i++) {
        const leat_tensor *t = leat_kernel_in(k, i);
        LEAT_REQUIRE(t->shape.rank == 0, INVALID_ARGUMENT, "%s must be a scalar, got shape %s",
                     inputs[i], leat_shape_show(&t->shape).s);
    }
    leat_tensor *y;
    leat_strbuf name = {0};
    leat_strbuf_printf(&name, "%s-", text(leat_kernel_in(k, 0), 0));
    if (format)
        leat_strbuf_puts(&name, format);
    else
        leat_strbuf_printf(&name, "%05d", first);
    leat_strbuf_printf(&name, "-of-%05d", second);
    leat_status s = leat_kernel_out(k, 0, &(leat_shape){0}, &y);
    if (!s && !leat_string_set(y->data, name.s, name.n))
        s = leat_error(RESOURCE_EXHAUSTED, "no memory for a string of %zu bytes", name.n);
    leat_strbuf_release(&name);
    return s;
}

static int32_t number(leat_kernel *k, int i)
{
    const leat_tensor *t = leat_kernel_in(k, i);
    return t->count == 1 ? AT(int32_t, t)[0] : 0;
}

static leat_status sharded_filename(leat_kernel *k)
{
    static const char *const inputs[] = {"basename", "shard", "num_shards"};
    return name_out(k, inputs, NULL, number(k, 1), number(k, 2));
}

static leat_status sharded_filespec(leat_kernel *k)
{
    static const char *const inputs[] = {"basename", "num_shards"};
    return name_out(k, inputs, "?????", 0, number(k, 1));
}

const leat_kernel_def leat_cpu_save_restore[] = {
    {.op = "SaveV2", .run = save_v2, .flags = LEAT_KERNEL_BLOCKS},
    {.op = "RestoreV2", .run = restore_v2, .flags = LEAT_KERNEL_BLOCKS},
    {.op = "MergeV2Checkpoints", .run = merge_v2, .flags = LEAT_KERNEL_BLOCKS},
    {.op = "ShardedFilename", .run = sharded_filename},
    {.op = "ShardedFilespec", .run = sharded_filespec},
    {0},
};
