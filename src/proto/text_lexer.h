/* text_lexer.h -- the tokens of the text format; for text_parse.c. */
#ifndef LEAT_PROTO_TEXT_LEXER_H
#define LEAT_PROTO_TEXT_LEXER_H

#include <leat/status.h>
#include "core/strbuf.h"

typedef enum leat_token {
    LEAT_TOKEN_END,
    LEAT_TOKEN_NAME,   /* a letter or _, then letters, digits and _ */
    LEAT_TOKEN_NUMBER, /* starts with a digit, or a point and a digit: 1.5e-7f, 0x1F */
    LEAT_TOKEN_STRING, /* with its quotes, " or ' */
    LEAT_TOKEN_SYMBOL, /* any other byte */
} leat_token;

typedef struct leat_lexer {
    const char *text, *end;
    leat_token kind;   /* kind of the current token */
    const char *start; /* start of the current token */
    size_t n;          /* bytes of the current token */
    bool closed;       /* for a string: the closing quote is on the same line */
} leat_lexer;

/* The first token becomes the current one. */
void leat_lexer_init(leat_lexer *l, const char *text, size_t n);
void leat_lexer_next(leat_lexer *l);
bool leat_lexer_is(const leat_lexer *l, char symbol);
/* Goes to the next token if the current one is this symbol. */
bool leat_lexer_skip(leat_lexer *l, char symbol);
bool leat_lexer_matches(const leat_lexer *l, const char *word);
/* Like leat_lexer_matches, but ignores case; letters must be ASCII. */
bool leat_lexer_matches_any_case(const leat_lexer *l, const char *word);

/* An error "line:column: message" for a position in the text. */
leat_status leat_lexer_error(const leat_lexer *l, const char *at, const char *fmt, ...)
    LEAT_PRINTF(3, 4) LEAT_MUST_CHECK;

/* The current token, which is a number, as an unsigned integer: decimal, 0x1f, 017. False if it is
 * not an integer or above 2**64 - 1. */
bool leat_lexer_integer(const leat_lexer *l, uint64_t *out);
/* The current token, a number or a name (inf, infinity, nan), as a float. */
bool leat_lexer_float(const leat_lexer *l, double *out);
/* Adds the bytes of the current string and of all strings that follow it directly, and goes past
 * them. */
leat_status leat_lexer_string(leat_lexer *l, leat_strbuf *out) LEAT_MUST_CHECK;

#endif
