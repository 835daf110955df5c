/* dtype.c -- names and sizes of dtypes, from the one list in tensor.h. */
#include "core/element.h"

#include <string.h>
#include <strings.h>

const uint8_t leat_dtype_sizes[LEAT_DTYPE_MAX + 1] = {
#define X(NAME, number, text, ctype) [number] = sizeof(ctype),
    LEAT_DTYPES(X)
#undef X
};

static const struct {
    const char *name, *ref_name;
} dtypes[] = {
#define X(NAME, number, text, ctype) [number] = {text, text "_ref"},
    LEAT_DTYPES(X)
#undef X
};
enum { DTYPES = sizeof dtypes / sizeof dtypes[0] };

/* Names of some dtypes in numpy and in TensorFlow's Python client. */
static const struct {
    const char *name;
    leat_dtype dtype;
} aliases[] = {{"float32", LEAT_FLOAT}, {"float64", LEAT_DOUBLE}, {"float16", LEAT_HALF}};

const char *leat_dtype_name(leat_dtype t)
{
    unsigned base = (unsigned)leat_dtype_base(t);
    if (base >= DTYPES || !dtypes[base].name)
        return "invalid";
    return leat_dtype_is_ref(t) ? dtypes[base].ref_name : dtypes[base].name;
}

size_t leat_dtype_size(leat_dtype t)
{
    return leat_element_size(leat_dtype_base(t));
}

static bool same(const char *name, size_t n, const char *known, bool any_case)
{
    return strlen(known) == n &&
           (any_case ? strncasecmp(name, known, n) : strncmp(name, known, n)) == 0;
}

leat_dtype leat_dtype_parse(const char *name)
{
    if (!name)
        return LEAT_INVALID;
    bool proto = strncmp(name, "DT_", 3) == 0; /* DT_FLOAT, DT_FLOAT_REF */
    if (proto)
        name += 3;
    size_t n = strlen(name);
    int ref = 0;
    if (n > 4 && strcmp(name + n - 4, proto ? "_REF" : "_ref") == 0) {
        n -= 4;
        ref = LEAT_REF;
    }
    for (unsigned i = 0; i < DTYPES; i++) {
        if (dtypes[i].name && same(name, n, dtypes[i].name, proto))
            return (leat_dtype)(i + ref);
    }
    for (unsigned i = 0; !proto && i < sizeof aliases / sizeof aliases[0]; i++) {
        if (same(name, n, aliases[i].name, false))
            return (leat_dtype)(aliases[i].dtype + ref);
    }
    return LEAT_INVALID;
}
