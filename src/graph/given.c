/* given.c -- looks for the name of an option in the text of a constructor's arguments. */
#include "graph/given.h"

#include <ctype.h>

/* Returns the end of the argument that begins at p, which is a comma or the final 0. Commas in
 * brackets, strings and character constants belong to the argument. */
static const char *argument_end(const char *p)
{
    int depth = 0;
    for (; *p && (*p != ',' || depth > 0); p++) {
        if (strchr("([{", *p))
            depth++;
        else if (strchr(")]}", *p))
            depth--;
        else if (*p == '"' || *p == '\'')
            for (char quote = *p++; *p && *p != quote; p++)
                p += *p == '\\' && p[1];
        if (!*p)
            break;
    }
    return p;
}

/* True if the argument at p is a designated initializer of the option, as in ".rate = 0". */
static bool names(const char *p, const char *option)
{
    size_t n = strlen(option);
    while (isspace((unsigned char)*p))
        p++;
    if (*p++ != '.')
        return false;
    while (isspace((unsigned char)*p))
        p++;
    return strncmp(p, option, n) == 0 && p[n] != '_' && !isalnum((unsigned char)p[n]);
}

bool leat_is_given(const leat_given *given, const char *option, double value)
{
    if (value != 0)
        return true;
    for (const char *p = given->options; p && *p; p += *p == ',') {
        if (names(p, option))
            return true;
        p = argument_end(p);
    }
    return false;
}

double leat_given_or(const leat_given *given, const char *option, double value, double fallback)
{
    return leat_is_given(given, option, value) ? value : fallback;
}

int64_t leat_given_int_or(const leat_given *given, const char *option, int64_t value,
                          int64_t fallback)
{
    return leat_is_given(given, option, value != 0) ? value : fallback;
}

leat_status leat_require_given(const leat_given *given, const char *constructor, const char *option,
                               double value)
{
    LEAT_REQUIRE(leat_is_given(given, option, value), INVALID_ARGUMENT,
                 "%s has no %s, and there is no default: give .%s", constructor, option, option);
    return NULL;
}
