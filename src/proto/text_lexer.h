/* text_lexer.h -- the tokens of the text format; for text_parse.c. */
#ifndef LEAT_PROTO_TEXT_LEXER_H
#define LEAT_PROTO_TEXT_LEXER_H

#include <leat/status.h>
#include "core/strbuf.h"

typedef enum leat_token {
    LEAT_TOKEN_END,
    LEAT_TOKEN_NAME,   /* a letter or _, then letters, digits and _ */
    LEAT_TOKEN_NUMBER, /* a digit, or a point and a digit, and what belongs to it: 1.5e-7f, 0x1F */
    LEAT_TOKEN_STRING, /* with its quotes, which may be " or ' */
    LEAT_TOKEN_SYMBOL, /* any other byte */
} leat_token;

typedef struct leat_lexer {
    const char *text, *end;
    leat_token kind;   /* of the token looked at, */
    const char *start; /* which begins here */
    size_t n;          /* and has so many bytes */
    bool closed;       /* of a string: its other quote is on the same line */
} leat_lexer;

void leat_lexer_init(leat_lexer *l, const char *text, size_t n); /* looks at the first token */
void leat_lexer_next(leat_lexer *l);
bool leat_lexer_is(const leat_lexer *l, char symbol);
bool leat_lexer_skip(leat_lexer *l, char symbol); /* steps over it if it is there */
bool leat_lexer_matches(const leat_lexer *l, const char *word);
/* As matches, but in any case: letters must be ASCII. */
bool leat_lexer_matches_any_case(const leat_lexer *l, const char *word);

/* An error "line:column: message" at a place in the text. */
leat_status leat_lexer_error(const leat_lexer *l, const char *at, const char *fmt, ...)
    LEAT_PRINTF(3, 4) LEAT_MUST_CHECK;

/* The token, which is a number, as an integer without sign: decimal, 0x1f, 017. False if it is
 * none or above 2**64 - 1. */
bool leat_lexer_integer(const leat_lexer *l, uint64_t *out);
/* The token, a number or a name (inf, infinity, nan), as a float. */
bool leat_lexer_float(const leat_lexer *l, double *out);
/* Adds the bytes of this string and of all that follow it, and steps over them. */
leat_status leat_lexer_string(leat_lexer *l, leat_strbuf *out) LEAT_MUST_CHECK;

#endif
