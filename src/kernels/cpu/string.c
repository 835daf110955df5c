/* string.c -- StringJoin, AsString, StringToNumber, StringLength. */
#include <ctype.h>
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>

#include "core/strbuf.h"
#include "kernels/cpu/parse_number.h"

static leat_status set(leat_string *s, const leat_strbuf *b)
{
    LEAT_TRY(leat_strbuf_check(b));
    LEAT_REQUIRE(leat_string_set(s, b->s, b->n), RESOURCE_EXHAUSTED,
                 "no memory for a string of %zu bytes", b->n);
    return NULL;
}

/* ---- StringJoin ---- */

static leat_status join(leat_kernel *k, leat_strbuf *b)
{
    const char *separator = leat_node_string(leat_kernel_node(k), "separator");
    int n = leat_kernel_inputs(k);
    leat_shape shape = {0};
    for (int i = 0; i < n; i++) {
        const leat_shape *s = &leat_kernel_in(k, i)->shape;
        LEAT_REQUIRE(s->rank == 0 || shape.rank == 0 || leat_shape_equal(s, &shape),
                     INVALID_ARGUMENT, "Input shapes do not match: %s vs. %s",
                     leat_shape_show(&shape).s, leat_shape_show(s).s);
        shape = s->rank == 0 ? shape : *s;
    }
    leat_tensor *y;
    LEAT_TRY(leat_kernel_out(k, 0, &shape, &y));
    for (int64_t e = 0; e < y->count; e++) {
        leat_strbuf_clear(b);
        for (int i = 0; i < n; i++) {
            const leat_tensor *x = leat_kernel_in(k, i);
            const leat_string *s = AT(leat_string, x) + (x->shape.rank == 0 ? 0 : e);
            leat_strbuf_puts(b, i ? separator : "");
            leat_strbuf_add(b, s->data, s->size);
        }
        LEAT_TRY(set(AT(leat_string, y) + e, b));
    }
    return NULL;
}

static leat_status join_run(leat_kernel *k)
{
    leat_strbuf b = {.checked = true};
    leat_status s = join(k, &b);
    leat_strbuf_release(&b);
    return s;
}

/* ---- AsString ---- */

enum { LONGEST = 1 << 20 }; /* limit of width and precision */

typedef struct as_string_state {
    char format[48]; /* of one number, for printf */
} as_string_state;

static bool is_floating(leat_dtype t)
{
    return t == LEAT_FLOAT || t == LEAT_DOUBLE || t == LEAT_COMPLEX64 || t == LEAT_COMPLEX128;
}

static leat_status as_string_init(const leat_node *n, void *state)
{
    leat_dtype t = leat_node_type(n, "T");
    bool scientific = leat_node_bool(n, "scientific"), shortest = leat_node_bool(n, "shortest");
    int64_t width = leat_node_int(n, "width"), precision = leat_node_int(n, "precision");
    const char *fill = leat_node_string(n, "fill");
    LEAT_REQUIRE(is_floating(t) || !(scientific || shortest), INVALID_ARGUMENT,
                 "scientific and shortest format not supported for datatype %s",
                 leat_dtype_name(t));
    LEAT_REQUIRE(is_floating(t) || precision < 0, INVALID_ARGUMENT,
                 "precision not supported for datatype %s", leat_dtype_name(t));
    LEAT_REQUIRE(strlen(fill) <= 1, INVALID_ARGUMENT,
                 "Fill string must be one or fewer characters");
    LEAT_REQUIRE(!(scientific && shortest), INVALID_ARGUMENT,
                 "Cannot select both scientific and shortest notation");
    LEAT_REQUIRE(!*fill || strchr(" +-0#", *fill), INVALID_ARGUMENT,
                 "Fill argument not supported: \"%s\"", fill);
    LEAT_REQUIRE(width <= LONGEST && precision <= LONGEST, INVALID_ARGUMENT,
                 "width %lld or precision %lld is too large", (long long)width,
                 (long long)precision);
    char *f = ((as_string_state *)state)->format;
    size_t size = sizeof(((as_string_state *)state)->format), at;
    at = (size_t)snprintf(f, size, "%%%s", fill);
    if (width > -1)
        at += (size_t)snprintf(f + at, size - at, "%d", (int)width);
    if (precision > -1)
        at += (size_t)snprintf(f + at, size - at, ".%d", (int)precision);
    const char *kind = shortest ? "g" : scientific ? "e" : "f";
    snprintf(f + at, size - at, "%s", is_floating(t) ? kind : t == LEAT_INT64 ? "lld" : "d");
    return NULL;
}

static void put_complex(leat_strbuf *b, const char *format, double re, double im)
{
    leat_strbuf_putc(b, '(');
    leat_strbuf_printf(b, format, re);
    leat_strbuf_putc(b, ',');
    leat_strbuf_printf(b, format, im);
    leat_strbuf_putc(b, ')');
}

static void put(leat_strbuf *b, const char *format, const leat_tensor *x, int64_t i)
{
    switch (x->dtype) {
    case LEAT_INT8:
        leat_strbuf_printf(b, format, AT(int8_t, x)[i]);
        break;
    case LEAT_INT16:
        leat_strbuf_printf(b, format, AT(int16_t, x)[i]);
        break;
    case LEAT_INT32:
        leat_strbuf_printf(b, format, AT(int32_t, x)[i]);
        break;
    case LEAT_INT64:
        leat_strbuf_printf(b, format, (long long)AT(int64_t, x)[i]);
        break;
    case LEAT_FLOAT:
        leat_strbuf_printf(b, format, (double)AT(float, x)[i]);
        break;
    case LEAT_DOUBLE:
        leat_strbuf_printf(b, format, AT(double, x)[i]);
        break;
    case LEAT_COMPLEX64:
        put_complex(b, format, AT(leat_complex64, x)[i].re, AT(leat_complex64, x)[i].im);
        break;
    case LEAT_COMPLEX128:
        put_complex(b, format, AT(leat_complex128, x)[i].re, AT(leat_complex128, x)[i].im);
        break;
    default:
        leat_strbuf_puts(b, AT(bool, x)[i] ? "true" : "false");
    }
}

static leat_status as_string_run(leat_kernel *k)
{
    const leat_tensor *x = leat_kernel_in(k, 0);
    const char *format = ((as_string_state *)leat_kernel_state(k))->format;
    leat_tensor *y;
    LEAT_TRY(leat_kernel_out(k, 0, &x->shape, &y));
    leat_strbuf b = {.checked = true};
    leat_status s = NULL;
    for (int64_t i = 0; i < x->count && !s; i++) {
        leat_strbuf_clear(&b);
        put(&b, format, x, i);
        s = set(AT(leat_string, y) + i, &b);
    }
    leat_strbuf_release(&b);
    return s;
}

/* ---- StringToNumber ---- */

bool leat_parse_number(const char *text, size_t size, leat_tensor *y, int64_t i)
{
    char *end;
    errno = 0;
    if (y->dtype == LEAT_FLOAT) {
        AT(float, y)[i] = strtof(text, &end);
    } else if (y->dtype == LEAT_DOUBLE) {
        AT(double, y)[i] = strtod(text, &end);
    } else {
        long long v = strtoll(text, &end, 10);
        if (errno == ERANGE || (y->dtype == LEAT_INT32 && v != (int32_t)v))
            return false;
        if (y->dtype == LEAT_INT32)
            AT(int32_t, y)[i] = (int32_t)v;
        else
            AT(int64_t, y)[i] = v;
    }
    bool any = end != text;
    while (isspace((unsigned char)*end))
        end++;
    return any && end == text + size;
}

static leat_status to_number_run(leat_kernel *k)
{
    const leat_tensor *x = leat_kernel_in(k, 0);
    leat_tensor *y;
    LEAT_TRY(leat_kernel_out(k, 0, &x->shape, &y));
    for (int64_t i = 0; i < x->count; i++) {
        const leat_string *s = AT(leat_string, x) + i;
        LEAT_REQUIRE(s->size > 0 && leat_parse_number(s->data, s->size, y, i), INVALID_ARGUMENT,
                     "StringToNumberOp could not correctly convert string: %.*s",
                     s->size > 1000 ? 1000 : (int)s->size, s->data ? s->data : "");
    }
    return NULL;
}

/* ---- StringLength: counts bytes, or first bytes of UTF-8 characters ---- */

static leat_status length_run(leat_kernel *k)
{
    const leat_tensor *x = leat_kernel_in(k, 0);
    bool utf8 = strcmp(leat_node_string(leat_kernel_node(k), "unit"), "UTF8_CHAR") == 0;
    leat_tensor *y;
    LEAT_TRY(leat_kernel_out(k, 0, &x->shape, &y));
    for (int64_t i = 0; i < x->count; i++) {
        const leat_string *s = AT(leat_string, x) + i;
        size_t n = utf8 ? 0 : s->size;
        for (size_t c = 0; utf8 && c < s->size; c++)
            n += ((unsigned char)s->data[c] & 0xc0) != 0x80;
        AT(int32_t, y)[i] = (int32_t)n;
    }
    return NULL;
}

#define NUMBERS (LEAT_T(FLOAT) | LEAT_T(DOUBLE) | LEAT_TYPES_INDEX)

const leat_kernel_def leat_cpu_string[] = {
    {.op = "StringJoin", .run = join_run},
    {.op = "AsString",
     .run = as_string_run,
     .init = as_string_init,
     .state_size = sizeof(as_string_state)},
    {.op = "StringToNumber", .where = {{"out_type", NUMBERS}}, .run = to_number_run},
    {.op = "StringLength", .run = length_run},
    {0},
};
