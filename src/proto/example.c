/* example.c -- see example.h. All reading stays within the span that is read. */
#include "proto/example.h"

#include "core/buffer.h"

#include <string.h>

enum { VARINT = 0, FIXED64 = 1, DELIMITED = 2, FIXED32 = 5 };
#define TAG(field, type) ((unsigned)(field) << 3 | (type))

static bool get_varint(leat_span *s, uint64_t *out)
{
    uint64_t v = 0;
    for (unsigned shift = 0; shift < 70 && s->p < s->end; shift += 7) {
        const unsigned char b = *s->p++;
        v |= shift < 64 ? (uint64_t)(b & 127) << shift : 0;
        if (!(b & 128)) {
            *out = v;
            return true;
        }
    }
    return false;
}

/* A length and as many bytes. */
static bool get_bytes(leat_span *s, leat_span *out)
{
    uint64_t n;
    if (s->p < s->end && *s->p < 128)
        n = *s->p++;
    else if (!get_varint(s, &n))
        return false;
    if (n > leat_span_size(*s))
        return false;
    *out = (leat_span){s->p, s->p + n};
    s->p += n;
    return true;
}

static bool expect(leat_span *s, unsigned tag)
{
    if (s->p == s->end || *s->p != tag)
        return false;
    s->p++;
    return true;
}

static bool skip_field(leat_span *s)
{
    uint64_t tag, v;
    leat_span bytes;
    if (!get_varint(s, &tag) || tag >> 3 == 0)
        return false;
    size_t fixed = 0;
    switch (tag & 7) {
    case VARINT:
        return get_varint(s, &v);
    case DELIMITED:
        return get_bytes(s, &bytes);
    case FIXED64:
        fixed = 8;
        break;
    case FIXED32:
        fixed = 4;
        break;
    default:
        return false; /* groups are not supported, as in TensorFlow */
    }
    if (fixed > leat_span_size(*s))
        return false;
    s->p += fixed;
    return true;
}

static bool walk_map(leat_span map, int field, leat_example_fn fn, void *arg)
{
    while (map.p < map.end) {
        leat_span entry, key, value;
        if (!expect(&map, TAG(1, DELIMITED)) || !get_bytes(&map, &entry) ||
            !expect(&entry, TAG(1, DELIMITED)) || !get_bytes(&entry, &key) ||
            !expect(&entry, TAG(2, DELIMITED)) || !get_bytes(&entry, &value) ||
            entry.p != entry.end)
            return false;
        fn(arg, field, key, value);
    }
    return true;
}

bool leat_example_walk(leat_span m, bool lists, leat_example_fn fn, void *arg)
{
    while (m.p < m.end) {
        leat_span map;
        int field = *m.p == TAG(1, DELIMITED)            ? LEAT_EXAMPLE_FEATURES
                    : lists && *m.p == TAG(2, DELIMITED) ? LEAT_EXAMPLE_LISTS
                                                         : 0;
        if (!field) {
            if (!skip_field(&m))
                return false;
            continue;
        }
        m.p++;
        if (!get_bytes(&m, &map) || !walk_map(map, field, fn, arg))
            return false;
    }
    return true;
}

bool leat_feature_open(leat_span f, leat_dtype *kind, leat_span *list)
{
    *kind = LEAT_INVALID;
    *list = f;
    if (f.p == f.end)
        return true;
    switch (*f.p++) {
    case TAG(1, DELIMITED):
        *kind = LEAT_STRING;
        break;
    case TAG(2, DELIMITED):
        *kind = LEAT_FLOAT;
        break;
    case TAG(3, DELIMITED):
        *kind = LEAT_INT64;
        break;
    default:
        return false;
    }
    return get_bytes(&f, list);
}

/* ---- Lists: pieces, each of them packed numbers, or one value ---- */

/* The next piece of a list of numbers. */
static bool next_piece(leat_span *list, unsigned single, leat_span *out)
{
    const unsigned tag = *list->p++;
    if (tag == TAG(1, DELIMITED))
        return get_bytes(list, out);
    if (tag != TAG(1, single))
        return false;
    *out = *list;
    if (single == FIXED32) {
        if (leat_span_size(*list) < 4)
            return false;
        list->p += 4;
    } else {
        uint64_t v;
        if (!get_varint(list, &v))
            return false;
    }
    out->end = list->p;
    return true;
}

static int64_t count_strings(leat_span list)
{
    int64_t n = 0;
    for (leat_span bytes; list.p < list.end; n++)
        if (!expect(&list, TAG(1, DELIMITED)) || !get_bytes(&list, &bytes))
            return -1;
    return n;
}

static int64_t count_floats(leat_span list)
{
    int64_t n = 0;
    for (leat_span piece; list.p < list.end; n += (int64_t)(leat_span_size(piece) / 4))
        if (!next_piece(&list, FIXED32, &piece))
            return -1;
    return n;
}

/* A number ends with a byte below 128. */
static int64_t count_varints(leat_span s)
{
    int64_t n = 0;
    for (const unsigned char *p = s.p; p < s.end; p++)
        n += *p < 128;
    return s.p < s.end && s.end[-1] >= 128 ? -1 : n;
}

static int64_t count_ints(leat_span list)
{
    int64_t n = 0;
    for (leat_span piece; list.p < list.end;) {
        const int64_t more = next_piece(&list, VARINT, &piece) ? count_varints(piece) : -1;
        if (more < 0)
            return -1;
        n += more;
    }
    return n;
}

int64_t leat_feature_count(leat_dtype kind, leat_span list)
{
    return kind == LEAT_STRING  ? count_strings(list)
           : kind == LEAT_FLOAT ? count_floats(list)
           : kind == LEAT_INT64 ? count_ints(list)
                                : 0;
}

static leat_status copy_strings(leat_span list, leat_string *to)
{
    for (leat_span bytes; list.p < list.end; to++) {
        if (!expect(&list, TAG(1, DELIMITED)) || !get_bytes(&list, &bytes))
            return leat_error(INVALID_ARGUMENT, "malformed list of strings");
        LEAT_REQUIRE(leat_string_set(to, (const char *)bytes.p, leat_span_size(bytes)),
                     RESOURCE_EXHAUSTED, "No memory for a string of %zu bytes",
                     leat_span_size(bytes));
    }
    return NULL;
}

static leat_status copy_floats(leat_span list, float *to)
{
    for (leat_span piece; list.p < list.end;) {
        LEAT_REQUIRE(next_piece(&list, FIXED32, &piece), INVALID_ARGUMENT,
                     "malformed list of floats");
        const size_t n = leat_span_size(piece) / 4;
        memcpy(to, piece.p, 4 * n);
        to += n;
    }
    return NULL;
}

static leat_status copy_ints(leat_span list, int64_t *to)
{
    for (leat_span piece; list.p < list.end;) {
        bool good = next_piece(&list, VARINT, &piece);
        while (good && piece.p < piece.end) {
            uint64_t v = *piece.p;
            if (v < 128)
                piece.p++;
            else
                good = get_varint(&piece, &v);
            *to++ = (int64_t)v;
        }
        LEAT_REQUIRE(good, INVALID_ARGUMENT, "malformed list of integers");
    }
    return NULL;
}

leat_status leat_feature_copy(leat_dtype kind, leat_span list, void *to)
{
    return kind == LEAT_STRING  ? copy_strings(list, to)
           : kind == LEAT_FLOAT ? copy_floats(list, to)
           : kind == LEAT_INT64 ? copy_ints(list, to)
                                : NULL;
}

size_t leat_feature_room(leat_span list, size_t *longest)
{
    size_t room = 0;
    for (leat_span bytes; list.p < list.end;) {
        if (!expect(&list, TAG(1, DELIMITED)) || !get_bytes(&list, &bytes))
            break;
        const size_t n = leat_span_size(bytes);
        room += leat_strings_room(n);
        *longest = n > *longest ? n : *longest;
    }
    return room;
}

void leat_feature_put(leat_span list, leat_string *to, char *at)
{
    for (leat_span bytes; list.p < list.end; to++) {
        if (!expect(&list, TAG(1, DELIMITED)) || !get_bytes(&list, &bytes))
            break;
        at = leat_strings_put(to, at, bytes.p, leat_span_size(bytes));
    }
}

bool leat_feature_next(leat_span *rest, leat_span *feature, bool *bad)
{
    if (rest->p == rest->end)
        return false;
    *bad = !expect(rest, TAG(1, DELIMITED)) || !get_bytes(rest, feature);
    return !*bad;
}
