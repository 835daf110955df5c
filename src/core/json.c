/* json.c -- see json.h. */
#include "core/json.h"

#include <string.h>

#include "core/map.h"
#include "core/strbuf.h"

typedef struct reader {
    leat_arena *arena;
    const char *p; /* the next character; the text ends with a NUL, which no rule accepts */
    int depth;
    const char *mark, *start; /* where `line` was counted up to, and where that line begins */
    int line;
} reader;

/* The line and column of `at`. Calls come in the order of the text: lines are counted on. */
static void place(reader *r, const char *at, int *line, int *column)
{
    for (; r->mark < at; r->mark++)
        if (*r->mark == '\n')
            r->line++, r->start = r->mark + 1;
    *line = r->line;
    *column = (int)(at - r->start) + 1;
}

static leat_status wrong(reader *r, const char *at, const char *what)
{
    int line, column;
    place(r, at, &line, &column);
    if (!*at)
        return leat_error(INVALID_ARGUMENT, "line %d, column %d: %s, but the text ends", line,
                          column, what);
    return leat_error(INVALID_ARGUMENT, "line %d, column %d: %s, at \"%.20s\"", line, column, what,
                      at);
}

static void blanks(reader *r)
{
    r->p += strspn(r->p, " \t\r\n");
}

static int hex4(const char *p)
{
    int v = 0;
    for (int i = 0; i < 4; i++) {
        const char *digits = "0123456789abcdefABCDEF", *d = p[i] ? strchr(digits, p[i]) : NULL;
        if (!d)
            return -1;
        int n = (int)(d - digits);
        v = v * 16 + (n > 15 ? n - 6 : n);
    }
    return v;
}

static void utf8(leat_strbuf *b, unsigned v)
{
    if (v < 0x80) {
        leat_strbuf_putc(b, (char)v);
        return;
    }
    int more = v < 0x800 ? 1 : v < 0x10000 ? 2 : 3;
    static const unsigned char lead[] = {0, 0xc0, 0xe0, 0xf0};
    leat_strbuf_putc(b, (char)(lead[more] | v >> (6 * more)));
    while (more--)
        leat_strbuf_putc(b, (char)(0x80 | (v >> (6 * more) & 0x3f)));
}

/* r->p is at the backslash. */
static leat_status escape(reader *r, leat_strbuf *b)
{
    static const char from[] = "\"\\/bfnrt", to[] = "\"\\/\b\f\n\r\t";
    const char *at = r->p++, *known = *r->p ? strchr(from, *r->p) : NULL;
    if (known) {
        leat_strbuf_putc(b, to[known - from]);
        r->p++;
        return NULL;
    }
    int v = *r->p == 'u' ? hex4(r->p + 1) : -1;
    if (v < 0)
        return wrong(r, at, "no such escape");
    r->p += 5;
    unsigned code = (unsigned)v;
    if (v >= 0xd800 && v < 0xdc00) {
        int low = r->p[0] == '\\' && r->p[1] == 'u' ? hex4(r->p + 2) : -1;
        if (low < 0xdc00 || low > 0xdfff)
            return wrong(r, at, "half of a character");
        code = 0x10000 + ((code - 0xd800) << 10) + (unsigned)(low - 0xdc00);
        r->p += 6;
    } else if (v >= 0xdc00 && v < 0xe000) {
        return wrong(r, at, "half of a character");
    }
    if (code == 0)
        return wrong(r, at, "a NUL within a string");
    utf8(b, code);
    return NULL;
}

/* r->p is at the quote. */
static leat_status string(reader *r, const char **out)
{
    leat_strbuf b = {0};
    leat_status s = NULL;
    const char *open = r->p++;
    while (!s && *r->p != '"') {
        if (!*r->p)
            s = wrong(r, open, "a string without an end");
        else if ((unsigned char)*r->p < 0x20)
            s = wrong(r, r->p, "a control character within a string");
        else if (*r->p == '\\')
            s = escape(r, &b);
        else
            leat_strbuf_putc(&b, *r->p++);
    }
    if (!s) {
        r->p++;
        *out = leat_arena_strdup(r->arena, leat_strbuf_text(&b));
    }
    leat_strbuf_release(&b);
    return s;
}

static size_t digits(const char *p)
{
    return strspn(p, "0123456789");
}

static leat_status number(reader *r, leat_json *v)
{
    const char *begin = r->p;
    if (*r->p == '-')
        r->p++;
    size_t n = digits(r->p);
    if (!n || (n > 1 && *r->p == '0'))
        return wrong(r, begin, "no number");
    r->p += n;
    if (*r->p == '.') {
        if (!(n = digits(++r->p)))
            return wrong(r, begin, "no number");
        r->p += n;
    }
    if (*r->p == 'e' || *r->p == 'E') {
        r->p++;
        r->p += *r->p == '+' || *r->p == '-';
        if (!(n = digits(r->p)))
            return wrong(r, begin, "no number");
        r->p += n;
    }
    v->text = leat_arena_strndup(r->arena, begin, (size_t)(r->p - begin));
    v->kind = LEAT_JSON_NUMBER;
    return NULL;
}

static leat_status value(reader *r, leat_json **out);

static leat_status member(reader *r, leat_json *into, leat_map *keys, leat_json **out)
{
    const char *key = NULL, *at = r->p;
    if (into->kind == LEAT_JSON_OBJECT) {
        if (*r->p != '"')
            return wrong(r, r->p, "wants a key in quotes");
        LEAT_TRY(string(r, &key));
        if (leat_map_put(keys, key, into))
            return wrong(r, at, "the same key a second time");
        blanks(r);
        if (*r->p != ':')
            return wrong(r, r->p, "wants a colon behind a key");
        r->p++;
        blanks(r);
    }
    LEAT_TRY(value(r, out));
    (*out)->key = key;
    return NULL;
}

/* A list or an object; r->p is at its bracket. */
static leat_status members(reader *r, leat_json *v, char close)
{
    if (r->depth >= LEAT_JSON_MAX_DEPTH)
        return wrong(r, r->p, "nested too deep");
    r->depth++;
    r->p++;
    leat_map keys = {0};
    leat_status s = NULL;
    const leat_json **link = &v->first;
    blanks(r);
    for (bool end = *r->p == close; !s && !end;) {
        leat_json *m = NULL;
        s = member(r, v, &keys, &m);
        if (s)
            break;
        *link = m;
        link = &m->next;
        v->n++;
        blanks(r);
        end = *r->p == close;
        if (!end && *r->p != ',')
            s = wrong(r, r->p, close == ']' ? "wants a comma or ]" : "wants a comma or }");
        else if (!end)
            r->p++, blanks(r);
    }
    leat_map_release(&keys);
    r->depth--;
    r->p += !s;
    return s;
}

static bool word(reader *r, const char *w, leat_json_kind kind, leat_json *v)
{
    size_t n = strlen(w);
    if (strncmp(r->p, w, n) != 0)
        return false;
    r->p += n;
    v->kind = kind;
    return true;
}

static leat_status value(reader *r, leat_json **out)
{
    leat_json *v = *out = leat_arena_new(r->arena, leat_json);
    place(r, r->p, &v->line, &v->column);
    if (*r->p == '{' || *r->p == '[') {
        v->kind = *r->p == '{' ? LEAT_JSON_OBJECT : LEAT_JSON_LIST;
        return members(r, v, *r->p == '{' ? '}' : ']');
    }
    if (*r->p == '"') {
        v->kind = LEAT_JSON_STRING;
        return string(r, &v->text);
    }
    if (*r->p == '-' || digits(r->p))
        return number(r, v);
    if (word(r, "true", LEAT_JSON_TRUE, v) || word(r, "false", LEAT_JSON_FALSE, v) ||
        word(r, "null", LEAT_JSON_NULL, v))
        return NULL;
    return wrong(r, r->p, "wants a value");
}

leat_status leat_json_read(leat_arena *a, const char *text, const leat_json **out)
{
    LEAT_REQUIRE(strlen(text) <= LEAT_JSON_MAX_SIZE, INVALID_ARGUMENT,
                 "%zu bytes are more than the %d that are allowed", strlen(text),
                 LEAT_JSON_MAX_SIZE);
    reader r = {.arena = a, .p = text, .mark = text, .start = text, .line = 1};
    leat_json *v;
    blanks(&r);
    LEAT_TRY(value(&r, &v));
    blanks(&r);
    if (*r.p)
        return wrong(&r, r.p, "more than one value");
    *out = v;
    return NULL;
}

const leat_json *leat_json_get(const leat_json *v, const char *key)
{
    if (!v || v->kind != LEAT_JSON_OBJECT)
        return NULL;
    for (const leat_json *m = v->first; m; m = m->next)
        if (strcmp(m->key, key) == 0)
            return m;
    return NULL;
}

const char *leat_json_kind_name(const leat_json *v)
{
    static const char *const names[] = {"null",     "a boolean", "a boolean", "a number",
                                        "a string", "a list",    "an object"};
    return v ? names[v->kind] : "nothing";
}
