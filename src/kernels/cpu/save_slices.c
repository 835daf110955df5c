/* save_slices.c -- Save, SaveSlices, Restore, RestoreSlice: checkpoints of the first format
 * (V1). */
#include "kernels/cpu/save_slices.h"

#include <stdlib.h>

#include "core/alloc.h"
#include "io/slice_table.h"
#include "kernels/cpu/cpu.h"

static const char *text(const leat_string *s)
{
    return s->data ? s->data : "";
}

typedef struct named {
    const leat_string *name, *spec; /* spec NULL: the whole tensor */
    const leat_tensor *tensor;
} named;

static int by_name(const void *a, const void *b)
{
    const leat_string *x = ((const named *)a)->name, *y = ((const named *)b)->name;
    size_t n = x->size < y->size ? x->size : y->size;
    int c = n ? memcmp(x->data, y->data, n) : 0;
    return c ? c : (x->size > y->size) - (x->size < y->size);
}

static leat_status save_one(leat_slice_writer *w, const named *v)
{
    leat_shape whole = v->tensor->shape, part;
    leat_slice slice = leat_slice_all(whole.rank);
    if (v->spec && v->spec->size) {
        LEAT_TRY(leat_slice_parse(v->spec->data, v->spec->size, &whole, &slice, &part));
        LEAT_REQUIRE(
            leat_shape_equal(&part, &v->tensor->shape), INVALID_ARGUMENT,
            "Slice in shape_and_slice specification does not match the shape of the tensor "
            "to  save: %s, tensor: %s",
            v->spec->data, leat_shape_show(&v->tensor->shape).s);
    }
    return leat_slice_writer_add(w, text(v->name), v->name->size, &whole, &slice, v->tensor);
}

static leat_status save_all(leat_kernel *k, int fixed)
{
    const leat_tensor *path = leat_kernel_in(k, 0), *names = leat_kernel_in(k, 1);
    const leat_tensor *specs = fixed == 3 ? leat_kernel_in(k, 2) : NULL;
    int64_t n = names->count;
    LEAT_REQUIRE(path->count == 1, INVALID_ARGUMENT,
                 "Input 0 (filename) must be a string scalar; got a tensor of %lldelements",
                 (long long)path->count);
    LEAT_REQUIRE(!specs || specs->count == n, INVALID_ARGUMENT,
                 "Expected %lld elements for the tensor shapes and slices but got %lld",
                 (long long)n, specs ? (long long)specs->count : 0);
    LEAT_REQUIRE(leat_kernel_inputs(k) == n + fixed, INVALID_ARGUMENT,
                 "Expected totally %lld inputs as input #1 (which is a string tensor of saved "
                 "names) contains %lld names, but received %d inputs",
                 (long long)n + fixed, (long long)n, leat_kernel_inputs(k));
    named *v = leat_new_array(named, n ? n : 1);
    for (int i = 0; i < n; i++)
        v[i] = (named){AT(leat_string, names) + i, specs ? AT(leat_string, specs) + i : NULL,
                       leat_kernel_in(k, i + fixed)};
    qsort(v, (size_t)n, sizeof(*v), by_name);
    leat_slice_writer w = {0};
    leat_status s = NULL;
    for (int i = 0; i < n && !s; i++)
        s = save_one(&w, &v[i]);
    if (!s)
        s = leat_slice_writer_finish(&w, text(path->data));
    leat_slice_writer_release(&w);
    free(v);
    return s;
}

static leat_status save(leat_kernel *k)
{
    return save_all(k, 2);
}

static leat_status save_slices(leat_kernel *k)
{
    return save_all(k, 3);
}

/* Output i: the tensor of name i, or the part of it that spec i describes. */
static leat_status restore_one(leat_kernel *k, const leat_slice_reader *r, int i)
{
    const leat_string *name = AT(leat_string, leat_kernel_in(k, 1)) + i;
    const leat_string *spec =
        leat_kernel_inputs(k) > 2 ? AT(leat_string, leat_kernel_in(k, 2)) + i : NULL;
    leat_dtype stored, expected = leat_kernel_out_dtype(k, i);
    leat_shape shape, whole, part;
    LEAT_REQUIRE(leat_slice_reader_has(r, text(name), name->size, &stored, &shape), NOT_FOUND,
                 "Tensor name \"%s\" not found in checkpoint files %s", text(name),
                 text(leat_kernel_in(k, 0)->data));
    LEAT_REQUIRE(stored == expected, INVALID_ARGUMENT,
                 "Expected to restore a tensor of type %s, got a tensor of type %s instead: "
                 "tensor_name = %s",
                 leat_dtype_name(expected), leat_dtype_name(stored), text(name));
    leat_slice slice = leat_slice_all(shape.rank);
    if (spec && spec->size) {
        LEAT_TRY(leat_slice_parse(spec->data, spec->size, &whole, &slice, &part));
        LEAT_REQUIRE(leat_shape_equal(&whole, &shape), INVALID_ARGUMENT,
                     "Shape in shape_and_slice spec does not match the shape in the save file: %s, "
                     "save file shape: %s",
                     leat_shape_show(&whole).s, leat_shape_show(&shape).s);
    }
    leat_tensor *t;
    LEAT_TRY(leat_slice_reader_read(r, text(name), name->size, &slice, &t));
    leat_kernel_set(k, i, t);
    return NULL;
}

leat_status leat_restore_slices(leat_kernel *k)
{
    const leat_tensor *pattern = leat_kernel_in(k, 0);
    int64_t n = leat_kernel_in(k, 1)->count;
    LEAT_REQUIRE(pattern->count == 1, INVALID_ARGUMENT,
                 "Input 0 (file_pattern) must be a string scalar; got a tensor of %lldelements",
                 (long long)pattern->count);
    LEAT_REQUIRE(leat_kernel_inputs(k) < 3 || leat_kernel_in(k, 2)->count == n, INVALID_ARGUMENT,
                 "tensor_name and shape_and_slice have different numbers of elements");
    leat_slice_reader *r;
    LEAT_TRY(leat_slice_reader_open(text(pattern->data), &r));
    leat_status s = NULL;
    for (int i = 0; i < n && !s; i++)
        s = restore_one(k, r, i);
    leat_slice_reader_free(r);
    return s;
}

static leat_status restore(leat_kernel *k)
{
    LEAT_REQUIRE(leat_kernel_in(k, 1)->count == 1, INVALID_ARGUMENT,
                 "Input 1 (tensor_name) must be a string scalar");
    return leat_restore_slices(k);
}

const leat_kernel_def leat_cpu_save_slices[] = {
    {.op = "Save", .run = save, .flags = LEAT_KERNEL_BLOCKS},
    {.op = "SaveSlices", .run = save_slices, .flags = LEAT_KERNEL_BLOCKS},
    {.op = "Restore", .run = restore, .flags = LEAT_KERNEL_BLOCKS},
    {.op = "RestoreSlice", .run = restore, .flags = LEAT_KERNEL_BLOCKS},
    {0},
};
