/* json.h -- a small strict reader of JSON, for environment variables and Examples.
 *
 * All of RFC 8259 and nothing else: no comments, no trailing commas, no NaN, no second value of one
 * key, no NUL in a string. Texts beyond LEAT_JSON_MAX_SIZE and nesting beyond LEAT_JSON_MAX_DEPTH
 * are refused. Errors name the place, as line and column from 1, and the text found there.
 */
#ifndef LEAT_CORE_JSON_H
#define LEAT_CORE_JSON_H

#include <leat/status.h>

#include "core/arena.h"

enum { LEAT_JSON_MAX_SIZE = 1 << 20, LEAT_JSON_MAX_DEPTH = 32 };

typedef enum leat_json_kind {
    LEAT_JSON_NULL,
    LEAT_JSON_FALSE,
    LEAT_JSON_TRUE,
    LEAT_JSON_NUMBER,
    LEAT_JSON_STRING,
    LEAT_JSON_LIST,
    LEAT_JSON_OBJECT,
} leat_json_kind;

typedef struct leat_json {
    leat_json_kind kind;
    const char *key;  /* of a member of an object, else NULL */
    const char *text; /* a string's characters; a number as it was written */
    const struct leat_json *first,
        *next;        /* first member of a list or object; next member after this one */
    int n;            /* number of members */
    int line, column; /* where the value begins */
} leat_json;

/* Gives a value that lives in the arena. */
leat_status leat_json_read(leat_arena *a, const char *text, const leat_json **out) LEAT_MUST_CHECK;
/* A member of an object; NULL if there is none, or v is NULL or no object. */
const leat_json *leat_json_get(const leat_json *v, const char *key);
const char *leat_json_kind_name(const leat_json *v); /* "a list", for messages */

#endif
