/* example_features.c -- the features that a node wants; see example.h. */
#include <stdlib.h>

#include "core/alloc.h"
#include "core/strbuf.h"
#include "kernels/cpu/example.h"

leat_feature *leat_wanted_add(leat_wanted *w, const char *key, size_t n, leat_feature_role role,
                              leat_dtype t, int index)
{
    leat_grow(w->v, w->n, w->cap);
    leat_feature *f = &w->v[w->n++];
    *f = (leat_feature){
        .key = leat_span_of(key, n), .role = role, .dtype = t, .stride = 1, .index = index};
    return f;
}

leat_status leat_wanted_index(leat_wanted *w)
{
    w->by_key.borrows_keys = true;
    w->by_key.seed = leat_hash_secret();
    for (int i = 0; i < w->n; i++) {
        const size_t n = leat_span_size(w->v[i].key);
        LEAT_REQUIRE(!leat_map_put_n(&w->by_key, w->v[i].key.p, n, &w->v[i]), INVALID_ARGUMENT,
                     "The feature key '%.*s' is given twice", (int)n, w->v[i].key.p);
    }
    return NULL;
}

void leat_wanted_release(leat_wanted *w)
{
    leat_map_release(&w->by_key);
    free(w->v);
}

leat_status leat_feature_set_shape(leat_feature *f, int i, const leat_shape *s)
{
    bool good = s->rank >= 0;
    for (int d = 1; d < s->rank; d++)
        good &= s->dim[d] >= 0;
    LEAT_REQUIRE(good, INVALID_ARGUMENT,
                 "dense_shapes[%d] has unknown rank or unknown inner dimensions: %s", i,
                 leat_shape_show(s).s);
    leat_shape row = *s;
    f->shape = *s;
    f->role = LEAT_FEATURE_DENSE;
    if (s->rank > 0 && s->dim[0] < 0) {
        f->role = LEAT_FEATURE_VARIABLE;
        row.rank--;
        memmove(row.dim, row.dim + 1, sizeof(*row.dim) * (size_t)row.rank);
    }
    f->stride = leat_shape_count(&row);
    LEAT_REQUIRE(f->stride >= 0, INVALID_ARGUMENT, "dense_shapes[%d] is too large: %s", i,
                 leat_shape_show(s).s);
    return NULL;
}

leat_status leat_feature_check_default(const leat_feature *f, int i, const leat_tensor *t)
{
    if (f->role == LEAT_FEATURE_VARIABLE)
        LEAT_REQUIRE(t->count == 1, INVALID_ARGUMENT,
                     "dense_shape[%d] is a variable length shape: %s, therefore def_value[%d] must "
                     "contain a single element (the padding element).  But its shape is: %s",
                     i, leat_shape_show(&f->shape).s, i, leat_shape_show(&t->shape).s);
    else if (t->count > 0)
        LEAT_REQUIRE(leat_shape_compatible(&f->shape, &t->shape), INVALID_ARGUMENT,
                     "def_value[%d].shape() == %s is not compatible with dense_shapes_[%d] == %s",
                     i, leat_shape_show(&t->shape).s, i, leat_shape_show(&f->shape).s);
    return NULL;
}

leat_status leat_feature_set_default(leat_feature *f, int i, const leat_tensor *t)
{
    f->missing = t;
    return leat_feature_check_default(f, i, t);
}

leat_status leat_example_malformed(const char *what, const void *bytes, size_t n)
{
    leat_strbuf b = {0};
    leat_strbuf_add_shown(&b, bytes, n);
    leat_status s = leat_error(INVALID_ARGUMENT, "%s: '%s'", what, leat_strbuf_text(&b));
    leat_strbuf_release(&b);
    return s;
}
