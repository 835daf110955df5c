/* summary.c -- ScalarSummary, HistogramSummary, MergeSummary, TensorSummary and TensorSummaryV2:
 * Summary messages as strings. */
#include <stdlib.h>

#include "core/alloc.h"
#include "core/map.h"
#include "core/strbuf.h"
#include "kernels/any/histogram.h"
#include "kernels/cpu/summary.h"
#include "proto/tensor_codec.h"
#include "proto/wire.h"

/* ---- Output 0: a message as a string ---- */
leat_status leat_summary_put(leat_kernel *k, Leat__Summary *m)
{
    leat_strbuf b = {0};
    leat_tensor *y;
    if (leat_node_outputs(leat_kernel_node(k)) == 0)
        return leat_summary_write_to(k, m);
    leat_status s = leat_proto_pack(m, &b);
    if (!s)
        s = leat_kernel_out(k, 0, &(leat_shape){0}, &y);
    if (!s && !leat_string_set(y->data, b.s, b.n))
        s = leat_error(RESOURCE_EXHAUSTED, "no memory for a summary of %zu bytes", b.n);
    leat_strbuf_release(&b);
    return s;
}

leat_status leat_summary_put_value(leat_kernel *k, Leat__Summary__Value *v)
{
    Leat__Summary m = LEAT__SUMMARY__INIT;
    m.n_value = 1;
    m.value = &v;
    return leat_summary_put(k, &m);
}

char *leat_summary_tag(const leat_tensor *t, int64_t i)
{
    leat_string *s = AT(leat_string, t) + i;
    return s->data ? s->data : "";
}

static leat_status scalar_summary(leat_kernel *k)
{
    const leat_tensor *tags = leat_kernel_in(k, 0), *values = leat_kernel_in(k, 1);
    bool one = tags->count == 1;
    LEAT_REQUIRE(leat_shape_equal(&tags->shape, &values->shape) || (one && values->count == 1),
                 INVALID_ARGUMENT, "tags and values not the same shape: %s != %s%s%s%s",
                 leat_shape_show(&tags->shape).s, leat_shape_show(&values->shape).s,
                 one ? " (tag '" : "", one ? leat_summary_tag(tags, 0) : "", one ? "')" : "");
    size_t n = (size_t)tags->count;
    Leat__Summary__Value *v = leat_new_array(Leat__Summary__Value, n ? n : 1);
    Leat__Summary__Value **list = leat_new_array(Leat__Summary__Value *, n ? n : 1);
    for (size_t i = 0; i < n; i++) {
        leat__summary__value__init(&v[i]);
        v[i].tag = leat_summary_tag(tags, (int64_t)i);
        v[i].value_case = LEAT__SUMMARY__VALUE__VALUE_SIMPLE_VALUE;
        v[i].simple_value = (float)leat_tensor_at(values, (int64_t)i);
        list[i] = &v[i];
    }
    Leat__Summary m = LEAT__SUMMARY__INIT;
    m.n_value = n;
    m.value = list;
    leat_status s = leat_summary_put(k, &m);
    free(v);
    free(list);
    return s;
}

leat_status leat_summary_histogram(leat_kernel *k, char *tag, const char *name_in_errors,
                                   const leat_tensor *values)
{
    leat_histogram h;
    leat_histogram_message m;
    leat_histogram_init(&h);
    for (int64_t i = 0; i < values->count; i++) {
        double v = values->dtype == LEAT_FLOAT ? AT(float, values)[i] : leat_tensor_at(values, i);
        LEAT_REQUIRE(!isnan(v), INVALID_ARGUMENT, "Nan in summary histogram for: %s",
                     name_in_errors);
        LEAT_REQUIRE(!isinf(v), INVALID_ARGUMENT, "Infinity in summary histogram for: %s",
                     name_in_errors);
        leat_histogram_add(&h, v);
    }
    leat_histogram_encode(&h, &m);
    Leat__Summary__Value v = LEAT__SUMMARY__VALUE__INIT;
    v.tag = tag;
    v.value_case = LEAT__SUMMARY__VALUE__VALUE_HISTO;
    v.histo = &m.proto;
    return leat_summary_put_value(k, &v);
}

static leat_status histogram_summary(leat_kernel *k)
{
    const leat_tensor *tag = leat_kernel_in(k, 0);
    LEAT_REQUIRE(tag->count == 1, INVALID_ARGUMENT, "tags must be scalar");
    return leat_summary_histogram(k, leat_summary_tag(tag, 0), leat_node_name(leat_kernel_node(k)),
                                  leat_kernel_in(k, 1));
}

/* ---- MergeSummary ---- */
typedef struct merged {
    Leat__Summary **parts; /* to be freed */
    size_t n, cap;
    Leat__Summary__Value **values;
    size_t n_values, cap_values;
    leat_map tags;
} merged;

static leat_status merge_one(merged *m, const leat_string *bytes)
{
    Leat__Summary *part;
    leat_status s = LEAT_UNPACK(summary, bytes->data, bytes->size, &part);
    if (s && leat_status_code(s) != LEAT_RESOURCE_EXHAUSTED) {
        leat_status_free(s);
        return leat_error(INVALID_ARGUMENT, "Could not parse one of the summary inputs");
    }
    LEAT_TRY(s);
    leat_grow(m->parts, m->n, m->cap);
    m->parts[m->n++] = part;
    for (size_t i = 0; i < part->n_value; i++) {
        Leat__Summary__Value *v = part->value[i];
        LEAT_REQUIRE(!v->tag || !*v->tag || !leat_map_put(&m->tags, v->tag, v), INVALID_ARGUMENT,
                     "Duplicate tag %s found in summary inputs", v->tag);
        leat_grow(m->values, m->n_values, m->cap_values);
        m->values[m->n_values++] = v;
    }
    return NULL;
}

static leat_status merge_summary(leat_kernel *k)
{
    merged m = {0};
    leat_status s = NULL;
    for (int i = 0; i < leat_kernel_inputs(k); i++) {
        const leat_tensor *t = leat_kernel_in(k, i);
        for (int64_t e = 0; e < t->count && !s; e++)
            s = merge_one(&m, AT(leat_string, t) + e);
    }
    Leat__Summary all = LEAT__SUMMARY__INIT;
    all.n_value = m.n_values;
    all.value = m.values;
    if (!s)
        s = leat_summary_put(k, &all);
    for (size_t i = 0; i < m.n; i++)
        leat_proto_free(m.parts[i]);
    free(m.parts);
    free(m.values);
    leat_map_release(&m.tags);
    return s;
}

/* ---- TensorSummary ---- */
leat_status leat_summary_tensor(leat_kernel *k, const leat_tensor *t, Leat__Summary__Value *v)
{
    Leat__TensorProto *p;
    LEAT_TRY(leat_tensor_to_proto(t, LEAT_TENSOR_CONTENT, &p));
    v->value_case = LEAT__SUMMARY__VALUE__VALUE_TENSOR;
    v->tensor = p;
    leat_status s = leat_summary_put_value(k, v);
    leat_proto_free(p);
    return s;
}

static leat_status tensor_summary(leat_kernel *k)
{
    Leat__Summary__Value v = LEAT__SUMMARY__VALUE__INIT;
    v.node_name = (char *)leat_node_name(leat_kernel_node(k));
    return leat_summary_tensor(k, leat_kernel_in(k, 0), &v);
}

static leat_status tensor_summary_v2(leat_kernel *k)
{
    const leat_tensor *tag = leat_kernel_in(k, 0), *metadata = leat_kernel_in(k, 2);
    LEAT_REQUIRE(tag->count == 1, INVALID_ARGUMENT, "tag must be scalar");
    LEAT_REQUIRE(metadata->count == 1, INVALID_ARGUMENT,
                 "serialized_summary_metadata must be scalar");
    const leat_string *bytes = metadata->data;
    Leat__Summary__Value v = LEAT__SUMMARY__VALUE__INIT;
    v.tag = leat_summary_tag(tag, 0);
    LEAT_TRY(LEAT_UNPACK(summary_metadata, bytes->data, bytes->size, &v.metadata));
    leat_status s = leat_summary_tensor(k, leat_kernel_in(k, 1), &v);
    leat_proto_free(v.metadata);
    return s;
}

const leat_kernel_def leat_cpu_summary[] = {
    {.op = "ScalarSummary", .where = {{"T", LEAT_TYPES_REAL}}, .run = scalar_summary},
    {.op = "HistogramSummary",
     .where = {{"T", LEAT_TYPES_REAL}},
     .run = histogram_summary,
     .flags = LEAT_KERNEL_EXPENSIVE},
    {.op = "MergeSummary", .run = merge_summary},
    {.op = "TensorSummary", .run = tensor_summary},
    {.op = "TensorSummaryV2", .run = tensor_summary_v2},
    {0},
};
