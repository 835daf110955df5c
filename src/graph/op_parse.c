/* op_parse.c -- parses the three strings of an op definition, in TensorFlow's spelling. */
#include <ctype.h>
#include <stdlib.h>
#include <string.h>

#include "core/arena.h"
#include "graph/graph_int.h"
#include "graph/op_info.h"
#include "proto/tensor_codec.h"
#include "proto/text.h"

#define NUMBER_TYPES                                                                               \
    (LEAT_TYPES_REAL | LEAT_TYPES_COMPLEX | LEAT_T(QINT8) | LEAT_T(QUINT8) | LEAT_T(QINT32))
#define QUANTIZED_TYPES                                                                            \
    (LEAT_T(QINT8) | LEAT_T(QUINT8) | LEAT_T(QINT32) | LEAT_T(QINT16) | LEAT_T(QUINT16))
enum { MOST = 32 }; /* limit of attributes, arguments and items of one definition */

typedef struct parser {
    leat_arena *arena;
    const char *op, *text, *p; /* text: the whole string, for messages */
} parser;

static leat_status bad(parser *s, const char *what)
{
    return leat_error(INVALID_ARGUMENT, "Op %s: %s at \"%s\" in \"%s\"", s->op, what, s->p,
                      s->text);
}

static void blanks(parser *s)
{
    while (isspace((unsigned char)*s->p))
        s->p++;
}

static bool eat(parser *s, const char *token)
{
    blanks(s);
    size_t n = strlen(token);
    if (strncmp(s->p, token, n) != 0)
        return false;
    s->p += n;
    return true;
}

static char *word(parser *s)
{
    blanks(s);
    const char *b = s->p;
    while (isalnum((unsigned char)*s->p) || *s->p == '_')
        s->p++;
    return leat_arena_strndup(s->arena, b, (size_t)(s->p - b));
}

static char *quoted(parser *s) /* NULL if there is no string at this position */
{
    blanks(s);
    char q = *s->p;
    if (q != '\'' && q != '"')
        return NULL;
    const char *b = ++s->p;
    while (*s->p && *s->p != q)
        s->p++;
    char *v = leat_arena_strndup(s->arena, b, (size_t)(s->p - b));
    if (*s->p)
        s->p++;
    return v;
}

static double number(parser *s)
{
    char *end;
    double v = strtod(s->p, &end);
    s->p = end;
    return v;
}

static leat_types named_types(const char *w)
{
    if (strcmp(w, "numbertype") == 0)
        return NUMBER_TYPES;
    if (strcmp(w, "realnumbertype") == 0)
        return LEAT_TYPES_REAL;
    if (strcmp(w, "quantizedtype") == 0)
        return QUANTIZED_TYPES;
    if (strcmp(w, "type") == 0)
        return LEAT_TYPES_ANY;
    return 0;
}

/* Parses {float, int32} or {'SAME', 'VALID'} after the opening brace. */
static leat_status value_set(parser *s, leat_attr_info *a)
{
    const char *strings[MOST];
    a->types = 0;
    do {
        char *v = quoted(s);
        if (v) {
            if (a->n_strings == MOST)
                return bad(s, "too many strings");
            strings[a->n_strings++] = v;
            continue;
        }
        char *w = word(s);
        leat_types set = named_types(w);
        leat_dtype t = leat_dtype_parse(w);
        if (!set && !t)
            return bad(s, "unknown dtype");
        a->types |= set ? set : UINT64_C(1) << t;
    } while (eat(s, ","));
    a->kind = a->n_strings ? LEAT_ARG_STRING : LEAT_ARG_TYPE;
    if (a->n_strings)
        a->strings = leat_arena_memdup(s->arena, strings, sizeof(*strings) * (size_t)a->n_strings);
    return eat(s, "}") ? NULL : bad(s, "missing }");
}

static const struct {
    const char *name;
    int kind, list;
} kinds[] = {
    {"int", LEAT_ARG_INT, LEAT_ARG_INTS},       {"float", LEAT_ARG_FLOAT, LEAT_ARG_FLOATS},
    {"bool", LEAT_ARG_BOOL, LEAT_ARG_BOOLS},    {"string", LEAT_ARG_STRING, LEAT_ARG_STRINGS},
    {"shape", LEAT_ARG_SHAPE, LEAT_ARG_SHAPES}, {"tensor", LEAT_ARG_TENSOR, LEAT_ARG_TENSORS},
    {"func", LEAT_ARG_FUNC, LEAT_ARG_FUNCS},    {"type", LEAT_ARG_TYPE, LEAT_ARG_TYPES},
};

static leat_status attr_kind(parser *s, leat_attr_info *a)
{
    bool list = eat(s, "list(");
    a->types = LEAT_TYPES_ANY;
    if (eat(s, "{")) {
        LEAT_TRY(value_set(s, a));
    } else {
        char *w = word(s);
        leat_types set = named_types(w);
        if (set) {
            a->kind = LEAT_ARG_TYPE;
            a->types = set;
        }
        for (size_t i = 0; !set && i < sizeof(kinds) / sizeof(*kinds); i++)
            if (strcmp(w, kinds[i].name) == 0)
                a->kind = kinds[i].kind;
        if (!a->kind)
            return bad(s, "unknown kind of attribute");
    }
    if (!list)
        return NULL;
    for (size_t i = 0; i < sizeof(kinds) / sizeof(*kinds); i++)
        if (a->kind == kinds[i].kind) {
            a->kind = kinds[i].list;
            break;
        }
    return eat(s, ")") ? NULL : bad(s, "missing )");
}

static leat_status shape_default(parser *s, leat_attr *v)
{
    leat_shape *shape = leat_arena_new(s->arena, leat_shape);
    if (!eat(s, "{"))
        return bad(s, "a shape's default begins with {");
    if (eat(s, "unknown_rank: true"))
        shape->rank = -1;
    v->shape = shape;
    return eat(s, "}") ? NULL : bad(s, "missing }");
}

/* A tensor's default is a TensorProto in text form, with its braces. */
static leat_status tensor_default(parser *s, leat_attr *v)
{
    const char *begin = s->p;
    int depth = 0;
    do {
        depth += (*s->p == '{') - (*s->p == '}');
        if (!*s->p++)
            return bad(s, "a tensor's default is a TensorProto in braces");
    } while (depth);
    Leat__TensorProto *p = NULL;
    LEAT_TRY(LEAT_FROM_TEXT(tensor_proto, begin + 1, (size_t)(s->p - begin - 2), &p));
    leat_status bad_tensor = leat_tensor_from_proto(p, &v->tensor);
    leat_proto_free(p);
    return bad_tensor;
}

/* Parses lists of ints, bools, floats, types and strings after the opening bracket. */
static leat_status list_default(parser *s, leat_attr *v)
{
    int64_t ints[MOST];
    double floats[MOST];
    leat_dtype types[MOST];
    const char *strings[MOST];
    int sizes[MOST];
    while (!eat(s, "]")) {
        if (v->n == MOST)
            return bad(s, "too long a list");
        const char *before = s->p;
        if (v->kind == LEAT_ARG_STRINGS) {
            strings[v->n] = quoted(s);
            sizes[v->n] = strings[v->n] ? (int)strlen(strings[v->n]) : 0;
        } else if (v->kind == LEAT_ARG_TYPES) {
            types[v->n] = leat_dtype_parse(word(s));
        } else if (v->kind == LEAT_ARG_BOOLS) {
            ints[v->n] = strcmp(word(s), "true") == 0;
        } else {
            floats[v->n] = number(s);
            ints[v->n] = (int64_t)floats[v->n];
        }
        if (s->p == before)
            return bad(s, "cannot read a list's item");
        v->n++;
        eat(s, ",");
    }
    size_t n = (size_t)v->n;
    if (v->kind == LEAT_ARG_STRINGS) {
        v->strings = leat_arena_memdup(s->arena, strings, n * sizeof(*strings));
        v->sizes = leat_arena_memdup(s->arena, sizes, n * sizeof(*sizes));
    } else if (v->kind == LEAT_ARG_TYPES) {
        v->types = leat_arena_memdup(s->arena, types, n * sizeof(*types));
    } else if (v->kind == LEAT_ARG_FLOATS) {
        v->floats = leat_arena_memdup(s->arena, floats, n * sizeof(*floats));
    } else {
        v->ints = leat_arena_memdup(s->arena, ints, n * sizeof(*ints));
    }
    return NULL;
}

static leat_status attr_default(parser *s, leat_attr_info *a)
{
    leat_attr *v = leat_arena_new(s->arena, leat_attr);
    v->name = a->name;
    v->kind = a->kind;
    a->fallback = v;
    blanks(s);
    const char *before = s->p;
    switch (a->kind) {
    case LEAT_ARG_INT:
        v->i = (int64_t)number(s);
        return s->p != before ? NULL : bad(s, "not an integer");
    case LEAT_ARG_FLOAT:
        v->f = (float)number(s); /* attributes hold floats */
        eat(s, "f");
        return s->p != before ? NULL : bad(s, "not a number");
    case LEAT_ARG_BOOL:
        v->i = eat(s, "true");
        return v->i || eat(s, "false") ? NULL : bad(s, "not true or false");
    case LEAT_ARG_TYPE:
        v->i = leat_dtype_parse(word(s));
        return v->i ? NULL : bad(s, "not a dtype");
    case LEAT_ARG_STRING:
        v->s = quoted(s);
        if (!v->s)
            return bad(s, "not a string");
        v->n = (int)strlen(v->s);
        return NULL;
    case LEAT_ARG_SHAPE:
        return shape_default(s, v);
    case LEAT_ARG_TENSOR:
        return tensor_default(s, v);
    default:
        return eat(s, "[") ? list_default(s, v) : bad(s, "a list begins with [");
    }
}

static leat_status parse_attrs(leat_arena *arena, const leat_op_def *def, leat_op_info *op)
{
    leat_attr_info list[MOST];
    parser s = {arena, def->name, def->attrs ? def->attrs : "", def->attrs ? def->attrs : ""};
    blanks(&s);
    while (*s.p) {
        if (op->n_attrs == MOST)
            return bad(&s, "too many attributes");
        leat_attr_info *a = &list[op->n_attrs++];
        memset(a, 0, sizeof(*a));
        a->name = word(&s);
        if (!*a->name || !eat(&s, ":"))
            return bad(&s, "want name: kind");
        LEAT_TRY(attr_kind(&s, a));
        if (eat(&s, ">=")) {
            a->has_min = true;
            a->min = (int64_t)number(&s);
        }
        if (eat(&s, "="))
            LEAT_TRY(attr_default(&s, a));
        if (!eat(&s, ";") && *s.p)
            return bad(&s, "want ; between attributes");
        blanks(&s);
    }
    op->attrs = leat_arena_memdup(arena, list, sizeof(*list) * (size_t)op->n_attrs);
    return NULL;
}

/* "name: T", "name: N * T", "name: Ref(T)", "name: float", "name: Tlist" */
static leat_status parse_arg(parser *s, leat_op_info *op, bool input, leat_arg_info *a)
{
    *a = (leat_arg_info){.type_attr = -1, .number_attr = -1, .list_attr = -1};
    a->name = word(s);
    if (!*a->name || !eat(s, ":"))
        return bad(s, "want name: type");
    a->is_ref = eat(s, "Ref(");
    char *w = word(s);
    if (eat(s, "*")) {
        a->number_attr = leat_op_attr_index(op, w);
        if (a->number_attr < 0)
            return bad(s, "no attribute for the number");
        op->attrs[a->number_attr].inferred |= input;
        a->is_ref |= eat(s, "Ref(");
        w = word(s);
    }
    int attr = leat_op_attr_index(op, w);
    if (attr >= 0 && op->attrs[attr].kind == LEAT_ARG_TYPES)
        a->list_attr = attr;
    else if (attr >= 0)
        a->type_attr = attr;
    else if (!(a->type = leat_dtype_parse(w)))
        return bad(s, "neither an attribute nor a dtype");
    if (attr >= 0)
        op->attrs[attr].inferred |= input;
    if (a->is_ref && !eat(s, ")"))
        return bad(s, "missing )");
    return NULL;
}

static leat_status parse_args(leat_arena *arena, leat_op_info *op, const char *text, bool input,
                              leat_arg_info **args_out, int *n_out)
{
    leat_arg_info list[MOST];
    int n = 0;
    parser s = {arena, op->def->name, text ? text : "", text ? text : ""};
    blanks(&s);
    while (*s.p) {
        if (n == MOST)
            return bad(&s, "too many arguments");
        LEAT_TRY(parse_arg(&s, op, input, &list[n++]));
        if (!eat(&s, ",") && *s.p)
            return bad(&s, "want , between arguments");
        blanks(&s);
    }
    *args_out = leat_arena_memdup(arena, list, sizeof(*list) * (size_t)n);
    *n_out = n;
    return NULL;
}

leat_status leat_op_parse(leat_arena *a, const leat_op_def *def, leat_op_info **out)
{
    leat_op_info *op = leat_arena_new(a, leat_op_info);
    op->def = def;
    LEAT_TRY(parse_attrs(a, def, op));
    LEAT_TRY(parse_args(a, op, def->inputs, true, &op->in, &op->n_in));
    LEAT_TRY(parse_args(a, op, def->outputs, false, &op->out, &op->n_out));
    LEAT_TRY(leat_op_check(op));
    *out = op;
    return NULL;
}

int leat_op_attr_index(const leat_op_info *op, const char *name)
{
    for (int i = 0; i < op->n_attrs; i++)
        if (strcmp(op->attrs[i].name, name) == 0)
            return i;
    return -1;
}
