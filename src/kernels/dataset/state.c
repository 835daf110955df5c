/* state.c -- see state.h. */
#include "kernels/dataset/state.h"

#include <stdlib.h>

#include "core/alloc.h"
#include "kernels/dataset/tensor_variant.h"
#include "proto/tensor_codec.h"
#include "proto/wire.h"

enum { MOST_NESTED = 8 }; /* tensors of variants inside each other */

/* ---- Writing ---- */

static void put(leat_state_writer *w, char kind, uint64_t x)
{
    unsigned char b[9] = {(unsigned char)kind};
    for (int i = 0; i < 8; i++)
        b[1 + i] = (unsigned char)(x >> 8 * i);
    leat_strbuf_add(&w->bytes, b, sizeof(b));
}

void leat_state_put_int(leat_state_writer *w, int64_t x)
{
    put(w, 'i', (uint64_t)x);
}

void leat_state_put_text(leat_state_writer *w, const char *text)
{
    put(w, 's', strlen(text));
    leat_strbuf_puts(&w->bytes, text);
}

/* Variants that hold tensors, or nothing. */
static leat_status put_variants(leat_state_writer *w, const leat_tensor *t)
{
    put(w, 'v', (uint64_t)t->shape.rank);
    for (int i = 0; i < t->shape.rank; i++)
        leat_state_put_int(w, t->shape.dim[i]);
    for (int64_t i = 0; i < t->count; i++) {
        const leat_variant *v = &AT(leat_variant, t)[i];
        const leat_tensor *x = leat_tensor_variant_get(v);
        LEAT_REQUIRE(x || !v->type, UNIMPLEMENTED,
                     "The position of an input that keeps variants of type \"%s\" cannot be saved",
                     v->type->name);
        leat_state_put_int(w, x != NULL);
        LEAT_REQUIRE(w->nested <= MOST_NESTED, UNIMPLEMENTED,
                     "The position of an input that keeps variants inside each other %d deep "
                     "cannot be saved",
                     w->nested);
        w->nested++;
        if (x)
            LEAT_TRY(leat_state_put_tensor(w, x));
        w->nested--;
    }
    return NULL;
}

leat_status leat_state_put_tensor(leat_state_writer *w, const leat_tensor *t)
{
    Leat__TensorProto *p;
    leat_strbuf bytes = {.checked = true};
    if (t->dtype == LEAT_VARIANT)
        return put_variants(w, t);
    LEAT_REQUIRE(t->dtype != LEAT_RESOURCE, UNIMPLEMENTED,
                 "The position of an input that keeps tensors of type %s cannot be saved",
                 leat_dtype_name(t->dtype));
    LEAT_TRY(leat_tensor_to_proto(t, LEAT_TENSOR_CONTENT, &p));
    leat_status s = leat_proto_pack(p, &bytes);
    leat_proto_free(p);
    if (!s)
        s = leat_strbuf_check(&bytes);
    if (!s) {
        put(w, 't', bytes.n);
        leat_strbuf_add(&w->bytes, leat_strbuf_text(&bytes), bytes.n);
    }
    leat_strbuf_release(&bytes);
    return s;
}

leat_status leat_state_put_element(leat_state_writer *w, const leat_element *e)
{
    put(w, 'e', (uint64_t)e->n);
    for (int i = 0; i < e->n; i++)
        LEAT_TRY(leat_state_put_tensor(w, e->v[i]));
    return NULL;
}

leat_status leat_state_put_elements(leat_state_writer *w, const leat_elements *l)
{
    leat_state_put_int(w, l->n);
    for (int64_t i = 0; i < l->n; i++)
        LEAT_TRY(leat_state_put_element(w, &l->v[i]));
    return NULL;
}

leat_status leat_state_put_iterator(leat_state_writer *w, leat_iterator *it)
{
    leat_state_put_int(w, it != NULL);
    if (!it)
        return NULL;
    leat_state_put_text(w, it->d->op);
    leat_state_put_int(w, it->count);
    leat_state_put_int(w, it->ended);
    leat_state_put_int(w, it->which);
    if (!it->d->kind->no_input)
        LEAT_TRY(leat_state_put_iterator(w, it->input));
    return it->d->kind->save ? it->d->kind->save(it, w) : NULL;
}

/* ---- Reading ---- */

static leat_status damaged(const leat_state_reader *r)
{
    return leat_error(DATA_LOSS,
                      "The saved position is damaged, or is that of another input: "
                      "byte %zu of %zu",
                      r->at, r->n);
}

static leat_status get(leat_state_reader *r, char kind, uint64_t *out)
{
    if (r->n - r->at < 9 || r->bytes[r->at] != kind)
        return damaged(r);
    uint64_t x = 0;
    for (int i = 0; i < 8; i++)
        x |= (uint64_t)(unsigned char)r->bytes[r->at + 1 + (size_t)i] << 8 * i;
    r->at += 9;
    *out = x;
    return NULL;
}

leat_status leat_state_get_int(leat_state_reader *r, int64_t *out)
{
    uint64_t x;
    LEAT_TRY(get(r, 'i', &x));
    *out = (int64_t)x;
    return NULL;
}

leat_status leat_state_get_within(leat_state_reader *r, int64_t least, int64_t most, int64_t *out)
{
    int64_t x = 0;
    LEAT_TRY(leat_state_get_int(r, &x));
    if (x < least || x > most)
        return damaged(r);
    *out = x;
    return NULL;
}

leat_status leat_state_get_bool(leat_state_reader *r, bool *out)
{
    int64_t x = 0;
    LEAT_TRY(leat_state_get_within(r, 0, 1, &x));
    *out = x;
    return NULL;
}

static leat_status get_bytes(leat_state_reader *r, char kind, const char **bytes, size_t *n)
{
    uint64_t size;
    LEAT_TRY(get(r, kind, &size));
    if (size > r->n - r->at)
        return damaged(r);
    *bytes = r->bytes + r->at;
    *n = size;
    r->at += size;
    return NULL;
}

leat_status leat_state_get_text(leat_state_reader *r, char **out)
{
    const char *bytes = NULL;
    size_t n = 0;
    LEAT_TRY(get_bytes(r, 's', &bytes, &n));
    if (memchr(bytes, 0, n))
        return damaged(r);
    *out = leat_xstrndup(bytes, n);
    return NULL;
}

static leat_status get_at_depth(leat_state_reader *r, int depth, leat_tensor **out);

static leat_status get_variants(leat_state_reader *r, int depth, leat_tensor **out)
{
    uint64_t rank;
    leat_shape s = {0};
    leat_tensor *t;
    int64_t count;
    LEAT_TRY(get(r, 'v', &rank));
    if (rank > LEAT_MAX_RANK || depth > MOST_NESTED)
        return damaged(r);
    s.rank = (int)rank;
    for (int i = 0; i < s.rank; i++)
        LEAT_TRY(leat_state_get_within(r, 0, INT64_MAX, &s.dim[i]));
    count = leat_shape_count(&s);
    if (count < 0 || (uint64_t)count > (r->n - r->at) / 9)
        return damaged(r);
    LEAT_TRY(leat_tensor_new(LEAT_VARIANT, s, &t));
    leat_status bad = NULL;
    for (int64_t i = 0; i < count && !bad; i++) {
        bool there = false;
        leat_tensor *x = NULL;
        bad = leat_state_get_bool(r, &there);
        if (!bad && there)
            bad = get_at_depth(r, depth + 1, &x);
        if (!bad && there)
            AT(leat_variant, t)[i] = leat_tensor_variant(x);
    }
    if (bad)
        leat_tensor_unref(t);
    else
        *out = t;
    return bad;
}

leat_status leat_state_get_tensor(leat_state_reader *r, leat_tensor **out)
{
    return get_at_depth(r, 0, out);
}

static leat_status get_at_depth(leat_state_reader *r, int depth, leat_tensor **out)
{
    const char *bytes = NULL;
    size_t n = 0;
    Leat__TensorProto *p;
    if (r->at < r->n && r->bytes[r->at] == 'v')
        return get_variants(r, depth, out);
    LEAT_TRY(get_bytes(r, 't', &bytes, &n));
    LEAT_TRY(LEAT_UNPACK(tensor_proto, bytes, n, &p));
    leat_status s = leat_tensor_from_proto(p, out);
    leat_proto_free(p);
    return s;
}

leat_status leat_state_get_element(leat_state_reader *r, leat_element *out)
{
    uint64_t n;
    LEAT_TRY(get(r, 'e', &n));
    if (n > (r->n - r->at) / 9)
        return damaged(r);
    leat_element_clear(out);
    *out = leat_element_new((int)n);
    leat_status s = NULL;
    for (int i = 0; i < out->n && !s; i++)
        s = leat_state_get_tensor(r, &out->v[i]);
    if (s)
        leat_element_clear(out);
    return s;
}

static leat_status check_components(const leat_state_reader *r, int n, const leat_dtype *types,
                                    leat_element *e)
{
    bool same = e->n == n;
    for (int i = 0; same && i < n; i++)
        same = e->v[i]->dtype == leat_dtype_base(types[i]);
    if (same)
        return NULL;
    leat_element_clear(e);
    return leat_error(DATA_LOSS,
                      "The saved position is damaged, or is that of another input: an element that "
                      "ends at byte %zu of %zu has other components than the dataset",
                      r->at, r->n);
}

leat_status leat_state_get_element_of(leat_state_reader *r, int n, const leat_dtype *types,
                                      leat_element *out)
{
    LEAT_TRY(leat_state_get_element(r, out));
    return check_components(r, n, types, out);
}

leat_status leat_state_get_element_or_none(leat_state_reader *r, int n, const leat_dtype *types,
                                           leat_element *out)
{
    LEAT_TRY(leat_state_get_element(r, out));
    if (out->n)
        return check_components(r, n, types, out);
    leat_element_clear(out);
    return NULL;
}

leat_status leat_state_get_elements_of(leat_state_reader *r, int n, const leat_dtype *types,
                                       leat_elements *out)
{
    int64_t count;
    leat_elements_clear(out);
    LEAT_TRY(leat_state_get_within(r, 0, (int64_t)((r->n - r->at) / 9), &count));
    for (int64_t i = 0; i < count; i++) {
        leat_element e = {0};
        LEAT_TRY(leat_state_get_element_of(r, n, types, &e));
        leat_elements_add(out, &e);
    }
    return NULL;
}

static leat_status restore(leat_state_reader *r, leat_iterator *it)
{
    const char *op = NULL;
    size_t n = 0;
    int64_t which;
    LEAT_TRY(get_bytes(r, 's', &op, &n));
    LEAT_REQUIRE(n == strlen(it->d->op) && memcmp(op, it->d->op, n) == 0, INVALID_ARGUMENT,
                 "The position that is to be restored is that of another dataset: it has a %.*s "
                 "where the iterator has %s (%s)",
                 n < 100 ? (int)n : 100, op, it->d->name, it->d->op);
    LEAT_TRY(leat_state_get_within(r, 0, INT64_MAX, &it->count));
    LEAT_TRY(leat_state_get_bool(r, &it->ended));
    LEAT_TRY(leat_state_get_within(r, 0, it->d->n_in, &which));
    it->which = (int)which;
    if (!it->d->kind->no_input) {
        leat_dataset *in = which < it->d->n_in ? it->d->in[which] : NULL;
        LEAT_TRY(leat_state_get_iterator(r, it->iteration, in, it, which, &it->input));
    }
    return it->d->kind->restore ? it->d->kind->restore(it, r) : NULL;
}

leat_status leat_state_get_iterator(leat_state_reader *r, leat_iteration *in, leat_dataset *d,
                                    const leat_iterator *parent, int64_t i, leat_iterator **at)
{
    bool there;
    LEAT_TRY(leat_state_get_bool(r, &there));
    if (!there || (*at && (*at)->d != d)) {
        leat_iterator_free(*at);
        *at = NULL;
    }
    if (!there)
        return NULL;
    if (!d)
        return damaged(r);
    if (!*at)
        LEAT_TRY(leat_iterator_new(in, d, parent, i, at));
    return restore(r, *at);
}

leat_status leat_state_end(const leat_state_reader *r)
{
    return r->at == r->n ? NULL : damaged(r);
}
