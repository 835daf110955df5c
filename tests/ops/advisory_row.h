/* advisory_row.h -- reads a row of advisories.txt, whose head describes the notation, and makes the
 * GraphDef that it stands for, in text. */
#ifndef LEAT_TEST_ADVISORY_ROW_H
#define LEAT_TEST_ADVISORY_ROW_H

#include <ctype.h>
#include <leat/leat.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "core/strbuf.h"

enum { ROW_NODES = 8, ROW_INPUTS = 64, ROW_CONST_BYTES = 1 << 16 };

typedef struct advisory_row {
    char id[48];
    bool must_fail;              /* "error": a result would be wrong */
    char ops[ROW_NODES][64];     /* of the nodes n0, n1, ...; the last one is run */
    int n_nodes;                 /* 0: the row is a GraphDef, and its node "a" is run */
    leat_tensor *in[ROW_INPUTS]; /* literals: the nodes i0, i1, ... */
    int n_in;
    leat_strbuf graph;  /* the nodes n0 ..., or the GraphDef */
    const char *at;     /* where the reader is */
    const char *broken; /* what is wrong with the row's notation; NULL: nothing */
} advisory_row;

static inline void row_blank(advisory_row *r)
{
    while (*r->at == ' ')
        r->at++;
}

static inline bool row_take(advisory_row *r, const char *word)
{
    row_blank(r);
    if (strncmp(r->at, word, strlen(word)) != 0)
        return false;
    r->at += strlen(word);
    return true;
}

static inline void row_want(advisory_row *r, const char *word)
{
    if (!row_take(r, word) && !r->broken)
        r->broken = r->at;
}

static inline bool row_name(advisory_row *r, char *name, size_t n)
{
    size_t k = 0;
    row_blank(r);
    while (isalnum((unsigned char)*r->at) || *r->at == '_') {
        if (k + 1 < n)
            name[k++] = *r->at;
        r->at++;
    }
    name[k] = 0;
    if (!k && !r->broken)
        r->broken = r->at;
    return k > 0;
}

/* A string in quotes, with \" \\ and octal escapes. */
static inline size_t row_quoted(advisory_row *r, char *bytes, size_t room)
{
    size_t n = 0;
    row_want(r, "\"");
    while (*r->at && *r->at != '"') {
        char c = *r->at++;
        if (c == '\\' && isdigit((unsigned char)*r->at)) {
            c = (char)((r->at[0] - '0') * 64 + (r->at[1] - '0') * 8 + (r->at[2] - '0'));
            r->at += 3;
        } else if (c == '\\') {
            c = *r->at++;
        }
        if (n < room)
            bytes[n++] = c;
    }
    row_want(r, "\"");
    return n;
}

/* Writes one element of t at p: its bytes, or a string. */
static inline void row_element(advisory_row *r, leat_dtype t, void *p)
{
    char *end = NULL, text[256];
    row_blank(r);
    if (t == LEAT_STRING) {
        size_t n = row_quoted(r, text, sizeof(text));
        if (!leat_string_set(p, text, n))
            abort();
        return;
    }
    const double f = strtod(r->at, &end);
    if (t == LEAT_FLOAT)
        *(float *)p = (float)f;
    else if (t == LEAT_DOUBLE)
        *(double *)p = f;
    else if (t == LEAT_HALF)
        *(leat_half *)p = leat_half_from_float((float)f);
    else if (t == LEAT_BFLOAT16)
        *(leat_bfloat16 *)p = leat_bfloat16_from_float((float)f);
    else if (t == LEAT_COMPLEX64)
        *(leat_complex64 *)p = (leat_complex64){(float)f, (float)strtod(end, &end)};
    else if (t == LEAT_COMPLEX128)
        *(leat_complex128 *)p = (leat_complex128){f, strtod(end, &end)};
    else {
        const int64_t v =
            *r->at == '-' ? (int64_t)strtoll(r->at, &end, 10) : (int64_t)strtoull(r->at, &end, 10);
        memcpy(p, &v, leat_dtype_size(t));
    }
    if (end == r->at && !r->broken)
        r->broken = r->at;
    r->at = end;
}

/* float[2,3]{1 2*4 3}: the elements in order, v*n is n times v. When they end too soon, they begin
 * anew. */
static inline leat_tensor *row_literal(advisory_row *r)
{
    char name[32];
    leat_shape shape = {0};
    leat_tensor *x = NULL;
    row_name(r, name, sizeof(name));
    const leat_dtype t = leat_dtype_parse(name);
    row_want(r, "[");
    while (!r->broken && !row_take(r, "]")) {
        char *end;
        if (shape.rank == LEAT_MAX_RANK)
            r->broken = r->at;
        else
            shape.dim[shape.rank++] = strtoll(r->at, &end, 10), r->at = end;
        row_take(r, ",");
    }
    row_want(r, "{");
    leat_status s = r->broken ? NULL : leat_tensor_new(t, shape, &x);
    if (s || !x || t == LEAT_RESOURCE || t == LEAT_VARIANT) {
        r->broken = r->broken ? r->broken : r->at;
        leat_status_free(s);
        return x;
    }
    const size_t size = leat_dtype_size(t);
    char *data = leat_tensor_mutable(x);
    int64_t n = leat_tensor_count(x), k = 0;
    while (!r->broken && !row_take(r, "}")) {
        if (k >= n) {
            r->broken = r->at;
            break;
        }
        row_element(r, t, data + (size_t)k * size);
        int64_t times = *r->at == '*' ? strtoll(r->at + 1, (char **)&r->at, 10) : 1;
        for (int64_t i = 1; i < times && k + i < n && t != LEAT_STRING; i++)
            memcpy(data + (size_t)(k + i) * size, data + (size_t)k * size, size);
        for (int64_t i = 1; i < times && k + i < n && t == LEAT_STRING; i++) {
            const leat_string *v = (leat_string *)(data + (size_t)k * size);
            if (!leat_string_set((leat_string *)data + k + i, v->data, v->size))
                abort();
        }
        k += times;
    }
    for (int64_t i = k; k && i < n && t != LEAT_STRING; i++)
        memcpy(data + (size_t)i * size, data + (size_t)(i % k) * size, size);
    for (int64_t i = k; k && i < n && t == LEAT_STRING; i++) {
        const leat_string *v = (leat_string *)data + i % k;
        if (!leat_string_set((leat_string *)data + i, v->data, v->size))
            abort();
    }
    return x;
}

/* An input: a literal, an output of an earlier node (#0, #0:1), or a list of them in brackets. */
static inline void row_input(advisory_row *r)
{
    if (row_take(r, "[")) {
        while (!r->broken && !row_take(r, "]"))
            row_input(r);
    } else if (row_take(r, "#")) {
        const long node = strtol(r->at, (char **)&r->at, 10);
        const long out = *r->at == ':' ? strtol(r->at + 1, (char **)&r->at, 10) : 0;
        leat_strbuf_printf(&r->graph, "input: 'n%ld:%ld' ", node, out);
    } else if (r->n_in == ROW_INPUTS) {
        r->broken = r->broken ? r->broken : r->at;
    } else {
        leat_strbuf_printf(&r->graph, "input: 'i%d' ", r->n_in);
        r->in[r->n_in++] = row_literal(r);
    }
}

/* One value of an attribute, as a field of an AttrValue: 3, 0.5, true, float, "text", <2,?>. */
static inline void row_value(advisory_row *r)
{
    leat_strbuf *g = &r->graph;
    row_blank(r);
    const char *from = r->at;
    if (*from == '"') {
        char text[256];
        row_quoted(r, text, sizeof(text));
        leat_strbuf_printf(g, "s: %.*s ", (int)(r->at - from), from);
    } else if (row_take(r, "<?>")) {
        leat_strbuf_puts(g, "shape { unknown_rank: true } ");
    } else if (row_take(r, "<")) {
        leat_strbuf_puts(g, "shape { ");
        while (!r->broken && !row_take(r, ">")) {
            const long long d = row_take(r, "?") ? -1 : strtoll(r->at, (char **)&r->at, 10);
            leat_strbuf_printf(g, "dim { size: %lld } ", d);
            row_take(r, ",");
        }
        leat_strbuf_puts(g, "} ");
    } else if (row_take(r, "true") || row_take(r, "false")) {
        leat_strbuf_printf(g, "b: %.*s ", (int)(r->at - from), from);
    } else if (isdigit((unsigned char)*from) || *from == '-' || *from == '.') {
        while (isalnum((unsigned char)*r->at) || strchr("+-.", *r->at))
            r->at++;
        const int n = (int)(r->at - from);
        leat_strbuf_printf(g, "%s: %.*s ", strcspn(from, ".einf") < (size_t)n ? "f" : "i", n, from);
    } else {
        char name[32];
        row_name(r, name, sizeof(name));
        leat_strbuf_printf(g, "type: %d ", leat_dtype_parse(name));
    }
}

static inline void row_attr(advisory_row *r)
{
    char name[64];
    row_name(r, name, sizeof(name));
    row_want(r, "=");
    leat_strbuf_printf(&r->graph, "attr { key: '%s' value { ", name);
    if (row_take(r, "[")) {
        leat_strbuf_puts(&r->graph, "list { ");
        while (!r->broken && !row_take(r, "]"))
            row_value(r);
        leat_strbuf_puts(&r->graph, "} ");
    } else {
        row_value(r);
    }
    leat_strbuf_puts(&r->graph, "} } ");
}

/* Op(input, input; attr=value, attr=value) */
static inline void row_node(advisory_row *r)
{
    if (r->n_nodes == ROW_NODES) {
        r->broken = r->at;
        return;
    }
    char *op = r->ops[r->n_nodes];
    row_name(r, op, sizeof(r->ops[0]));
    leat_strbuf_printf(&r->graph, "node { name: 'n%d' op: '%s' ", r->n_nodes++, op);
    row_want(r, "(");
    while (!r->broken && *r->at != ';' && *r->at != ')') {
        row_input(r);
        row_take(r, ",");
        row_blank(r);
    }
    if (r->n_nodes > 1)
        leat_strbuf_printf(&r->graph, "input: '^n%d' ", r->n_nodes - 2);
    row_take(r, ";");
    while (!r->broken && !row_take(r, ")")) {
        row_attr(r);
        row_take(r, ",");
    }
    leat_strbuf_puts(&r->graph, "} ");
}

/* Reads a row: its line and the lines that continue it, which begin with a blank. */
static inline void row_read(advisory_row *r, const char *text)
{
    *r = (advisory_row){.at = text};
    const size_t n = strcspn(text, " ");
    snprintf(r->id, sizeof(r->id), "%.*s", (int)n, text);
    r->at += n;
    r->must_fail = row_take(r, "error ");
    if (!r->must_fail)
        row_want(r, "any ");
    if (row_take(r, "GraphDef ")) {
        leat_strbuf_puts(&r->graph, r->at);
        return;
    }
    do
        row_node(r);
    while (!r->broken && row_take(r, "\n"));
    if (!r->broken && *r->at)
        r->broken = r->at;
}

static inline void row_release(advisory_row *r)
{
    for (int i = 0; i < r->n_in; i++)
        leat_tensor_unref(r->in[i]);
    leat_strbuf_release(&r->graph);
}

/* Adds the node i<k>: a Const with the literal's value, or a Placeholder that says nothing of its
 * shape. A literal too long for a text is always the latter. */
static inline bool row_source(const advisory_row *r, int k, bool constant, leat_strbuf *g)
{
    const leat_tensor *x = r->in[k];
    const leat_dtype t = leat_tensor_dtype(x);
    constant = constant && leat_tensor_bytes(x) <= ROW_CONST_BYTES;
    leat_strbuf_printf(g, "node { name: 'i%d' op: '%s' attr { key: 'dtype' value { type: %d } } ",
                       k, constant ? "Const" : "Placeholder", t);
    if (constant) {
        leat_strbuf_printf(g, "attr { key: 'value' value { tensor { dtype: %d tensor_shape { ", t);
        for (int i = 0; i < leat_tensor_rank(x); i++)
            leat_strbuf_printf(g, "dim { size: %lld } ", (long long)leat_tensor_dim(x, i));
        leat_strbuf_puts(g, "} ");
        const leat_string *s = leat_tensor_data(x);
        const leat_string all = {(char *)leat_tensor_data(x), leat_tensor_bytes(x)};
        const int64_t n = t == LEAT_STRING ? leat_tensor_count(x) : 1;
        for (int64_t i = 0; i < n; i++) {
            const leat_string *v = t == LEAT_STRING ? &s[i] : &all;
            leat_strbuf_puts(g, t == LEAT_STRING ? "string_val: '" : "tensor_content: '");
            for (size_t c = 0; c < v->size; c++)
                leat_strbuf_printf(g, "\\%03o", (unsigned char)v->data[c]);
            leat_strbuf_puts(g, "' ");
        }
        leat_strbuf_puts(g, "} } } ");
    }
    leat_strbuf_puts(g, "} ");
    return constant;
}

#endif
