/* text_lexer.c -- the tokens of the text format; see text_lexer.h. */
#include "proto/text_lexer.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>

static bool is_digit(char c)
{
    return c >= '0' && c <= '9';
}

static bool is_letter(char c)
{
    return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || c == '_';
}

static const char *skip_blank(const char *p, const char *end)
{
    for (; p < end; p++) {
        if (*p == '#')
            while (p + 1 < end && p[1] != '\n')
                p++;
        else if (*p != ' ' && *p != '\n' && *p != '\t' && *p != '\r' && *p != '\v' && *p != '\f')
            break;
    }
    return p;
}

static const char *number_end(const char *p, const char *end)
{
    bool hex = end - p > 1 && p[0] == '0' && (p[1] == 'x' || p[1] == 'X');
    for (p++; p < end; p++) {
        bool sign = (*p == '+' || *p == '-') && !hex && (p[-1] == 'e' || p[-1] == 'E');
        if (!is_digit(*p) && !is_letter(*p) && *p != '.' && !sign)
            break;
    }
    return p;
}

/* Gives the position after the closing quote, or the end of the line if there is none. */
static const char *string_end(const char *p, const char *end, bool *closed)
{
    char quote = *p++;
    *closed = false;
    for (; p < end && *p != '\n'; p++) {
        if ((*closed = *p == quote))
            return p + 1;
        if (*p == '\\' && p + 1 < end && p[1] != '\n')
            p++;
    }
    return p;
}

static void look(leat_lexer *l, const char *p)
{
    const char *end = l->end;
    p = skip_blank(p, end);
    l->start = p;
    l->kind = LEAT_TOKEN_SYMBOL;
    if (p == end) {
        l->kind = LEAT_TOKEN_END;
    } else if (is_letter(*p)) {
        l->kind = LEAT_TOKEN_NAME;
        while (p < end && (is_letter(*p) || is_digit(*p)))
            p++;
    } else if (is_digit(*p) || (*p == '.' && p + 1 < end && is_digit(p[1]))) {
        l->kind = LEAT_TOKEN_NUMBER;
        p = number_end(p, end);
    } else if (*p == '"' || *p == '\'') {
        l->kind = LEAT_TOKEN_STRING;
        p = string_end(p, end, &l->closed);
    } else {
        p++;
    }
    l->n = (size_t)(p - l->start);
}

void leat_lexer_init(leat_lexer *l, const char *text, size_t n)
{
    l->text = text;
    l->end = text + n;
    look(l, text);
}

void leat_lexer_next(leat_lexer *l)
{
    look(l, l->start + l->n);
}

bool leat_lexer_is(const leat_lexer *l, char symbol)
{
    return l->kind == LEAT_TOKEN_SYMBOL && *l->start == symbol;
}

bool leat_lexer_skip(leat_lexer *l, char symbol)
{
    if (!leat_lexer_is(l, symbol))
        return false;
    leat_lexer_next(l);
    return true;
}

bool leat_lexer_matches(const leat_lexer *l, const char *word)
{
    return strlen(word) == l->n && memcmp(l->start, word, l->n) == 0;
}

bool leat_lexer_matches_any_case(const leat_lexer *l, const char *word)
{
    return strlen(word) == l->n && strncasecmp(l->start, word, l->n) == 0;
}

leat_status leat_lexer_error(const leat_lexer *l, const char *at, const char *fmt, ...)
{
    int line = 1, column = 1;
    char message[1024];
    for (const char *p = l->text; p < at; p++) {
        column++;
        if (*p == '\n') {
            line++;
            column = 1;
        }
    }
    va_list ap;
    va_start(ap, fmt);
    vsnprintf(message, sizeof(message), fmt, ap);
    va_end(ap);
    return leat_error(INVALID_ARGUMENT, "%d:%d: %s", line, column, message);
}

/* ---- Numbers ---- */

static int digit_value(char c)
{
    return is_digit(c)              ? c - '0'
           : (c >= 'a' && c <= 'f') ? c - 'a' + 10
           : (c >= 'A' && c <= 'F') ? c - 'A' + 10
                                    : 99;
}

bool leat_lexer_integer(const leat_lexer *l, uint64_t *out)
{
    const char *p = l->start, *end = p + l->n;
    unsigned base = 10;
    uint64_t v = 0;
    if (l->kind != LEAT_TOKEN_NUMBER)
        return false;
    if (end - p > 2 && p[0] == '0' && (p[1] == 'x' || p[1] == 'X')) {
        base = 16;
        p += 2;
    } else if (*p == '0') {
        base = 8;
    }
    for (; p < end; p++) {
        unsigned d = (unsigned)digit_value(*p);
        if (d >= base || __builtin_mul_overflow(v, base, &v) || __builtin_add_overflow(v, d, &v))
            return false;
    }
    *out = v;
    return true;
}

bool leat_lexer_float(const leat_lexer *l, double *out)
{
    if (l->kind == LEAT_TOKEN_NAME) {
        if (leat_lexer_matches_any_case(l, "inf") || leat_lexer_matches_any_case(l, "infinity"))
            *out = (double)INFINITY;
        else if (leat_lexer_matches_any_case(l, "nan"))
            *out = (double)NAN;
        else
            return false;
        return true;
    }
    if (l->kind != LEAT_TOKEN_NUMBER || memchr(l->start, 'x', l->n) || memchr(l->start, 'X', l->n))
        return false;
    char small[64], *s = l->n < sizeof(small) ? small : malloc(l->n + 1), *end;
    if (!s)
        return false;
    size_t n = l->n;
    memcpy(s, l->start, n);
    if (s[n - 1] == 'f' || s[n - 1] == 'F')
        n--;
    s[n] = '\0';
    *out = strtod(s, &end);
    bool all = end == s + n;
    if (s != small)
        free(s);
    return all;
}

/* ---- Strings ---- */

static void put_utf8(leat_strbuf *out, uint32_t c)
{
    if (c < 0x80) {
        leat_strbuf_putc(out, (char)c);
    } else if (c < 0x800) {
        leat_strbuf_putc(out, (char)(0xc0 | c >> 6));
        leat_strbuf_putc(out, (char)(0x80 | (c & 0x3f)));
    } else {
        if (c < 0x10000) {
            leat_strbuf_putc(out, (char)(0xe0 | c >> 12));
        } else {
            leat_strbuf_putc(out, (char)(0xf0 | c >> 18));
            leat_strbuf_putc(out, (char)(0x80 | (c >> 12 & 0x3f)));
        }
        leat_strbuf_putc(out, (char)(0x80 | (c >> 6 & 0x3f)));
        leat_strbuf_putc(out, (char)(0x80 | (c & 0x3f)));
    }
}

/* Reads at most max digits of a base; gives how many there were. */
static int escape_digits(const char *p, const char *end, int max, int base, uint32_t *out)
{
    int n = 0;
    for (*out = 0; n < max && p < end && digit_value(*p) < base; n++)
        *out = *out * (uint32_t)base + (uint32_t)digit_value(*p++);
    return n;
}

/* p is after a backslash. Gives the end of the escape sequence, NULL if it is not valid. */
static const char *put_escape(leat_strbuf *out, const char *p, const char *end)
{
    static const char letters[] = "abfnrtv\\'\"?", bytes[] = "\a\b\f\n\r\t\v\\'\"?";
    const char *found;
    uint32_t c;
    int n;
    if (p == end)
        return NULL;
    if (*p && (found = strchr(letters, *p))) {
        leat_strbuf_putc(out, bytes[found - letters]);
        return p + 1;
    }
    if ((n = escape_digits(p, end, 3, 8, &c)) > 0 && c < 256) {
        leat_strbuf_putc(out, (char)c);
        return p + n;
    }
    if ((*p == 'x' || *p == 'X') && (n = escape_digits(p + 1, end, 2, 16, &c)) > 0) {
        leat_strbuf_putc(out, (char)c);
        return p + 1 + n;
    }
    if (*p == 'u' || *p == 'U') {
        int want = *p == 'u' ? 4 : 8;
        if (escape_digits(p + 1, end, want, 16, &c) == want && c <= 0x10ffff) {
            put_utf8(out, c);
            return p + 1 + want;
        }
    }
    return NULL;
}

leat_status leat_lexer_string(leat_lexer *l, leat_strbuf *out)
{
    if (l->kind != LEAT_TOKEN_STRING)
        return leat_lexer_error(l, l->start, "Expected string.");
    for (; l->kind == LEAT_TOKEN_STRING; leat_lexer_next(l)) {
        const char *p = l->start + 1, *end = l->start + l->n - 1;
        if (!l->closed)
            return leat_lexer_error(l, l->start, "String missing ending quote.");
        while (p < end) {
            const char *slash = memchr(p, '\\', (size_t)(end - p)), *plain = slash ? slash : end;
            leat_strbuf_add(out, p, (size_t)(plain - p));
            p = plain;
            if (slash && !(p = put_escape(out, slash + 1, end)))
                return leat_lexer_error(l, slash, "Invalid escape sequence in string literal.");
        }
    }
    return NULL;
}
