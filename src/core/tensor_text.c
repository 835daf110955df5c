/* tensor_text.c -- a tensor's values as TensorFlow's Print shows them: a bracket for each
 * dimension, "..." where the limit cut. Scalars have no brackets. */
#include <float.h>
#include <inttypes.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>

#include "core/alloc.h"
#include "core/buffer.h"
#include "core/element.h"
#include "core/strbuf.h"

/* Prints with the shorter of two precisions if that reads back as the same number, else with the
 * longer. */
static void number(leat_strbuf *out, double v, bool is_double)
{
    char text[40];
    snprintf(text, sizeof text, "%.*g", is_double ? DBL_DIG : FLT_DIG, v);
    bool same = is_double ? strtod(text, NULL) == v : strtof(text, NULL) == (float)v;
    if (isnan(v))
        snprintf(text, sizeof text, "nan"); /* without the sign that printf shows */
    else if (!same)
        snprintf(text, sizeof text, "%.*g", is_double ? DBL_DIG + 2 : FLT_DIG + 3, v);
    leat_strbuf_puts(out, text);
}

static void escaped(leat_strbuf *out, const leat_string *s)
{
    for (size_t i = 0; i < s->size; i++) {
        unsigned char c = (unsigned char)s->data[i];
        switch (c) {
        case '\n':
            leat_strbuf_puts(out, "\\n");
            break;
        case '\r':
            leat_strbuf_puts(out, "\\r");
            break;
        case '\t':
            leat_strbuf_puts(out, "\\t");
            break;
        case '"':
        case '\'':
        case '\\':
            leat_strbuf_putc(out, '\\');
            leat_strbuf_putc(out, (char)c);
            break;
        default:
            if (c < 0x20 || c >= 0x7f)
                leat_strbuf_printf(out, "\\%03o", c);
            else
                leat_strbuf_putc(out, (char)c);
        }
    }
}

static void pair(leat_strbuf *out, double re, double im, bool is_double)
{
    leat_strbuf_putc(out, '(');
    number(out, re, is_double);
    leat_strbuf_putc(out, ',');
    number(out, im, is_double);
    leat_strbuf_putc(out, ')');
}

static void element(leat_strbuf *out, const leat_tensor *t, int64_t i)
{
    const void *p = (const char *)t->data + (size_t)i * leat_element_size(t->dtype);
    switch (t->dtype) {
    case LEAT_STRING:
        escaped(out, p);
        break;
    case LEAT_RESOURCE:
        leat_strbuf_puts(out, *(leat_handle *const *)p ? (*(leat_handle *const *)p)->name : "?");
        break;
    case LEAT_VARIANT:
        leat_strbuf_puts(
            out, ((const leat_variant *)p)->type ? ((const leat_variant *)p)->type->name : "?");
        break;
    case LEAT_INT64:
        leat_strbuf_printf(out, "%" PRId64, *(const int64_t *)p);
        break;
    case LEAT_UINT64:
        leat_strbuf_printf(out, "%" PRIu64, *(const uint64_t *)p);
        break;
    case LEAT_COMPLEX64:
        pair(out, (double)((const leat_complex64 *)p)->re, (double)((const leat_complex64 *)p)->im,
             false);
        break;
    case LEAT_COMPLEX128:
        pair(out, ((const leat_complex128 *)p)->re, ((const leat_complex128 *)p)->im, true);
        break;
    case LEAT_FLOAT:
    case LEAT_HALF:
    case LEAT_BFLOAT16:
        number(out, leat_tensor_at(t, i), false);
        break;
    case LEAT_DOUBLE:
        number(out, leat_tensor_at(t, i), true);
        break;
    default: /* integers of up to 32 bits, and bool: exact as doubles */
        leat_strbuf_printf(out, "%.0f", leat_tensor_at(t, i));
    }
}

/* Prints dimension d from element *at on; stops at the limit. */
static void dimension(leat_strbuf *out, const leat_tensor *t, int d, int64_t limit, int64_t *at)
{
    for (int64_t i = 0; i < t->shape.dim[d]; i++) {
        if (*at >= limit) {
            if (d == t->shape.rank - 1 && d > 0)
                leat_strbuf_puts(out, "...");
            return;
        }
        if (d == t->shape.rank - 1) {
            if (i > 0)
                leat_strbuf_putc(out, ' ');
            element(out, t, (*at)++);
        } else {
            leat_strbuf_putc(out, '[');
            dimension(out, t, d + 1, limit, at);
            leat_strbuf_putc(out, ']');
        }
    }
}

char *leat_tensor_text(const leat_tensor *t, int64_t max)
{
    leat_strbuf out = {0};
    if (!leat_tensor_usable(t, __func__))
        return leat_xstrdup("");
    int64_t limit = max >= 0 && max < t->count ? max : t->count, at = 0;
    if (t->shape.rank == 0) {
        if (limit > 0)
            element(&out, t, 0);
        else
            leat_strbuf_puts(&out, "...");
        return leat_strbuf_take(&out);
    }
    leat_strbuf_putc(&out, '[');
    if (t->count > 0)
        dimension(&out, t, 0, limit, &at);
    if (t->count > limit)
        leat_strbuf_puts(&out, "...");
    leat_strbuf_putc(&out, ']');
    return leat_strbuf_take(&out);
}

/* ---- The form of tf.print: a line for each row, only the ends of long dimensions, strings in
 * quotes ---- */

static void spacing(leat_strbuf *out, int d, int rank)
{
    if (d == rank - 1) {
        leat_strbuf_putc(out, ' ');
        return;
    }
    for (int i = 0; i < rank - d - 1; i++)
        leat_strbuf_putc(out, '\n');
    for (int i = 0; i <= d; i++)
        leat_strbuf_putc(out, ' ');
}

/* Dimension d from element `at` on; `ends` items at each end. */
static void summary(leat_strbuf *out, const leat_tensor *t, int d, int64_t ends, int64_t at)
{
    if (d == t->shape.rank) {
        bool quoted = t->dtype == LEAT_STRING;
        leat_strbuf_puts(out, quoted ? "\"" : "");
        element(out, t, at);
        leat_strbuf_puts(out, quoted ? "\"" : "");
        return;
    }
    int64_t n = t->shape.dim[d], each = 1;
    for (int i = d + 1; i < t->shape.rank; i++)
        each *= t->shape.dim[i];
    leat_strbuf_putc(out, '[');
    for (int64_t i = 0; i < n; i++) {
        if (i >= ends && i < n - ends) { /* elements left out are shown once, as "..." */
            if (i > 0)
                spacing(out, d, t->shape.rank);
            leat_strbuf_puts(out, "...");
            i = n - ends - 1;
            continue;
        }
        if (i > 0)
            spacing(out, d, t->shape.rank);
        summary(out, t, d + 1, ends, at + i * each);
    }
    leat_strbuf_putc(out, ']');
}

char *leat_tensor_summary(const leat_tensor *t, int64_t ends)
{
    leat_strbuf out = {0};
    if (!leat_tensor_usable(t, __func__))
        return leat_xstrdup("");
    leat_strbuf_puts(&out, "");
    summary(&out, t, 0, ends < 0 ? INT64_MAX / 2 : ends, 0);
    return leat_strbuf_take(&out);
}
