/* api_functions.c -- datasets that call functions of the program (leat/data.h). */
#include <stdlib.h>

#include "core/alloc.h"
#include "core/arg.h"
#include "kernels/dataset/ahead_kinds.h"
#include "kernels/dataset/interleave.h"
#include "kernels/dataset/map.h"
#include "kernels/dataset/program.h"

/* Drops d, which a function has taken, and gives back s. */
static leat_status taken(leat_dataset *d, leat_status s)
{
    leat_dataset_unref(d);
    return s;
}

static leat_status check_types(const leat_dtype *types, int n)
{
    LEAT_CHECK_ARG(types);
    LEAT_REQUIRE(n > 0, INVALID_ARGUMENT, "An element has at least one tensor, not %d", n);
    return NULL;
}

static leat_status program_of(leat_program_fn fn, leat_program_fn **out)
{
    LEAT_REQUIRE(fn.map || fn.test || fn.of, INVALID_ARGUMENT, "The function is NULL");
    if (!fn.test)
        LEAT_TRY(check_types(fn.types, fn.n));
    *out = leat_program_new(&fn);
    return NULL;
}

leat_status leat_dataset_map(leat_dataset *d, leat_dataset_fn fn, void *arg,
                             const leat_dtype *types, int n_out, leat_dataset **out)
{
    leat_program_fn *p;
    LEAT_CHECK(DATASET, d);
    leat_status s = program_of(
        (leat_program_fn){.map = fn, .arg = arg, .types = (leat_dtype *)types, .n = n_out}, &p);
    return taken(d, s ? s : leat_dataset_mapped(d, p, out));
}

leat_status leat_dataset_parallel_map(leat_dataset *d, int64_t calls, leat_dataset_fn fn, void *arg,
                                      const leat_dtype *types, int n_out, leat_dataset **out)
{
    leat_program_fn *p;
    LEAT_CHECK(DATASET, d);
    leat_status s = program_of(
        (leat_program_fn){.map = fn, .arg = arg, .types = (leat_dtype *)types, .n = n_out}, &p);
    return taken(d, s ? s : leat_dataset_mapped_ahead(d, p, calls, out));
}

leat_status leat_dataset_filter(leat_dataset *d, leat_dataset_test_fn fn, void *arg,
                                leat_dataset **out)
{
    leat_program_fn *p;
    LEAT_CHECK(DATASET, d);
    leat_status s = program_of((leat_program_fn){.test = fn, .arg = arg}, &p);
    return taken(d, s ? s : leat_dataset_filtered(d, p, out));
}

leat_status leat_dataset_interleave(leat_dataset *d, leat_dataset_of_fn fn, void *arg,
                                    const leat_dtype *types, int n_out, int64_t cycle,
                                    int64_t block, bool parallel, leat_dataset **out)
{
    leat_program_fn *p;
    LEAT_CHECK(DATASET, d);
    leat_status s = program_of(
        (leat_program_fn){.of = fn, .arg = arg, .types = (leat_dtype *)types, .n = n_out}, &p);
    return taken(d, s ? s : leat_dataset_interleaved(d, p, cycle, block, parallel, out));
}

leat_status leat_dataset_flat_map(leat_dataset *d, leat_dataset_of_fn fn, void *arg,
                                  const leat_dtype *types, int n_out, leat_dataset **out)
{
    return leat_dataset_interleave(d, fn, arg, types, n_out, 1, 1, false, out);
}

leat_status leat_dataset_from_generator(const leat_generator *g, const leat_dtype *types, int n,
                                        leat_dataset **out)
{
    LEAT_CHECK_ARG(g);
    LEAT_REQUIRE(g->next, INVALID_ARGUMENT, "The generator has no function `next`");
    LEAT_TRY(check_types(types, n));
    return leat_dataset_generated(g, types, n, out);
}

/* ---- Examples ---- */

typedef struct features {
    int n;
    leat_feature_spec v[];
} features;

static void features_free(void *arg)
{
    features *f = arg;
    for (int i = 0; i < f->n; i++) {
        free((char *)f->v[i].key);
        leat_tensor_unref((leat_tensor *)f->v[i].value);
    }
    free(f);
}

static features *features_copy(const leat_feature_spec *v, int n)
{
    features *f = leat_xmalloc(sizeof(*f) + sizeof(*v) * (size_t)n);
    f->n = n;
    for (int i = 0; i < n; i++) {
        f->v[i] = v[i];
        f->v[i].key = v[i].key ? leat_xstrdup(v[i].key) : NULL;
        f->v[i].value = leat_tensor_ref(v[i].value);
    }
    return f;
}

static leat_status parse(void *arg, leat_tensor *const *in, int n_in, leat_tensor **out, int n_out)
{
    const features *f = arg;
    LEAT_REQUIRE(n_in == 1 && in[0]->dtype == LEAT_STRING && in[0]->shape.rank == 0,
                 INVALID_ARGUMENT, "An Example is one string scalar; the element is %d tensors, %s",
                 n_in, n_in ? leat_dtype_name(in[0]->dtype) : "none");
    const leat_string *x = AT(leat_string, in[0]);
    return leat_example_parse(x->data ? x->data : "", x->size, f->v, n_out, out);
}

leat_status leat_dataset_parse(leat_dataset *d, const leat_feature_spec *specs, int n,
                               leat_dataset **out)
{
    LEAT_CHECK(DATASET, d);
    if (!specs || n <= 0)
        return taken(d, leat_error(INVALID_ARGUMENT, "leat_dataset_parse wants features, not %d",
                                   specs ? n : 0));
    leat_dtype *types = leat_new_array(leat_dtype, n);
    leat_shape *shapes = leat_new_array(leat_shape, n);
    for (int i = 0; i < n; i++) {
        types[i] = specs[i].dtype;
        shapes[i] = specs[i].shape;
    }
    leat_program_fn *p = leat_program_new(&(leat_program_fn){.map = parse,
                                                             .arg = features_copy(specs, n),
                                                             .release = features_free,
                                                             .types = types,
                                                             .n = n});
    leat_status s = taken(d, leat_dataset_mapped(d, p, out));
    if (!s)
        leat_dataset_types(*out, n, types, shapes);
    free(types);
    free(shapes);
    return s;
}
